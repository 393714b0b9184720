//! The schema of a database file, and its migrations.

use rusqlite::{Connection, Transaction, TransactionBehavior};

#[derive(Debug, Clone, Copy)]
pub struct DatabaseSchema {
    /// Marks a file as one of this kind (`PRAGMA application_id`), so that another program's file
    /// is never written to.
    pub application_id: i32,
    /// Each step leads from one version to the next; the first makes the tables. A file says in
    /// `user_version` how many were taken.
    pub migrations: &'static [&'static str],
}

/// What a database file turns out to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaCheck {
    /// One that this version can use, after the missing steps.
    Ours,
    /// One of a newer toolhost; the number is its version.
    Newer(i64),
    /// A database that another program made.
    Foreign,
}

impl DatabaseSchema {
    pub fn latest_version(&self) -> i64 {
        i64::try_from(self.migrations.len()).unwrap_or(i64::MAX)
    }

    pub fn check(&self, db: &Connection) -> rusqlite::Result<SchemaCheck> {
        let number = |name| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let version = number("user_version")?;
        Ok(if number("application_id")? != i64::from(self.application_id) {
            SchemaCheck::Foreign
        } else if version > self.latest_version() {
            SchemaCheck::Newer(version)
        } else {
            SchemaCheck::Ours
        })
    }

    /// Takes the steps that are missing, all or none of them.
    pub fn migrate(&self, db: &Connection) -> rusqlite::Result<()> {
        let steps_taken = |db: &Connection| {
            let version =
                db.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))?;
            Ok::<usize, rusqlite::Error>(usize::try_from(version).unwrap_or(0))
        };
        if steps_taken(db)? == self.migrations.len() {
            return Ok(());
        }
        let transaction = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
        // Another process may have taken them while this one waited.
        for step in self.migrations.iter().skip(steps_taken(&transaction)?) {
            transaction.execute_batch(step)?;
        }
        transaction.pragma_update(None, "user_version", self.latest_version())?;
        transaction.commit()
    }

    /// Makes the tables in an empty file and marks it.
    pub fn create(&self, db: &Connection) -> rusqlite::Result<()> {
        db.pragma_update(None, "application_id", self.application_id)?;
        self.migrate(db)
    }
}
