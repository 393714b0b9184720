//! What is inside the file: tables, and the steps from one version of them to the next.

use rusqlite::{Connection, Transaction, TransactionBehavior};

/// Marks a `SQLite` file as one of ours (`THst`), so that nobody else's is ever written to.
const APPLICATION: i32 = 0x5448_7374;

/// Each step leads from one version to the next; the first makes the tables. A file says in
/// `user_version` how many were taken. Triggers keep the sums that quotas are about.
const STEPS: [&str; 1] = ["
    CREATE TABLE entry (
        space TEXT NOT NULL,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        version INTEGER NOT NULL,
        size INTEGER NOT NULL,
        expires INTEGER,
        PRIMARY KEY (space, key)
    ) STRICT;
    CREATE INDEX expiring ON entry (expires) WHERE expires IS NOT NULL;
    CREATE TABLE space (name TEXT PRIMARY KEY NOT NULL, keys INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE total (bytes INTEGER NOT NULL, version INTEGER NOT NULL) STRICT;
    INSERT INTO total VALUES (0, 0);
    CREATE TRIGGER entry_came AFTER INSERT ON entry BEGIN
        INSERT INTO space VALUES (new.space, 1) ON CONFLICT DO UPDATE SET keys = keys + 1;
        UPDATE total SET bytes = bytes + new.size;
    END;
    CREATE TRIGGER entry_changed AFTER UPDATE OF size ON entry BEGIN
        UPDATE total SET bytes = bytes + new.size - old.size;
    END;
    CREATE TRIGGER entry_went AFTER DELETE ON entry BEGIN
        UPDATE space SET keys = keys - 1 WHERE name = old.space;
        DELETE FROM space WHERE name = old.space AND keys = 0;
        UPDATE total SET bytes = bytes - old.size;
    END;
"];

/// The version this toolhost makes.
fn newest() -> i64 {
    i64::try_from(STEPS.len()).unwrap_or(i64::MAX)
}

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// A store this version can use, after the missing steps.
    Ours,
    /// A store of a newer toolhost; the number is its version.
    Newer(i64),
    /// A `SQLite` database of somebody else.
    Foreign,
}

/// Recognises a file.
pub(super) fn recognise(db: &Connection) -> rusqlite::Result<Layout> {
    let number = |name| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let version = number("user_version")?;
    Ok(if number("application_id")? != i64::from(APPLICATION) {
        Layout::Foreign
    } else if version > newest() {
        Layout::Newer(version)
    } else {
        Layout::Ours
    })
}

/// Takes the steps that are missing, all or none of them.
pub(super) fn bring_up(db: &Connection) -> rusqlite::Result<()> {
    let taken = |db: &Connection| {
        let version = db.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))?;
        Ok::<usize, rusqlite::Error>(usize::try_from(version).unwrap_or(0))
    };
    if taken(db)? == STEPS.len() {
        return Ok(());
    }
    let transaction = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
    // Another process may have taken them while this one waited.
    for step in STEPS.iter().skip(taken(&transaction)?) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", newest())?;
    transaction.commit()
}

/// Makes the tables in an empty file and marks it.
pub(super) fn make(db: &Connection) -> rusqlite::Result<()> {
    db.pragma_update(None, "application_id", APPLICATION)?;
    bring_up(db)
}
