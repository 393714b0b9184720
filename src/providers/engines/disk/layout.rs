//! The schema of the `SQLite` file, and its migrations.

use crate::util::database::DatabaseSchema;

/// Entries and their spaces. The mark is `THst`; triggers keep the sums that quotas are about.
pub(super) const LAYOUT: DatabaseSchema = DatabaseSchema { application_id: 0x5448_7374, migrations: &["
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
"] };
