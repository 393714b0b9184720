//! The schema of the statistics store.

use crate::util::database::DatabaseSchema;

/// Tools (the name, the server, the project, the program), what was counted of them in each grain of time, and how far the spool was read. The mark
/// is `THsc`. Times are seconds since the Unix epoch, in `tool` milliseconds; `failed` is a JSON
/// object from kinds to counts, `durations` what `Durations::encode` writes.
pub(super) const SCHEMA: DatabaseSchema = DatabaseSchema {
    application_id: 0x5448_7363,
    migrations: &["
    CREATE TABLE tool (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        server TEXT NOT NULL,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        UNIQUE (name, server)
    ) STRICT;
    CREATE TABLE grain (
        level INTEGER NOT NULL,
        start INTEGER NOT NULL,
        tool INTEGER NOT NULL,
        ok INTEGER NOT NULL,
        failed TEXT NOT NULL,
        attempts INTEGER NOT NULL,
        recovered INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        durations BLOB NOT NULL,
        PRIMARY KEY (level, start, tool)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE spool (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        key TEXT NOT NULL UNIQUE,
        offset INTEGER NOT NULL,
        recent TEXT NOT NULL
    ) STRICT;
    CREATE TABLE fact (name TEXT PRIMARY KEY NOT NULL, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
", "
    CREATE TABLE tool_in_place (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        server TEXT NOT NULL,
        project TEXT NOT NULL,
        program TEXT NOT NULL,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        UNIQUE (name, server, project, program)
    ) STRICT;
    INSERT INTO tool_in_place SELECT id, name, server, '', '', first, last FROM tool;
    DROP TABLE tool;
    ALTER TABLE tool_in_place RENAME TO tool;
"],
};
