//! The operations in SQL. Each runs inside a transaction of `writer`, which makes it atomic.

use rusqlite::{Connection, OptionalExtension as _, named_params};

use crate::providers::engines::{
    KeyInfo, KeyPage, StoredValue, TakeOutcome, WriteOutcome, WriteRequest, expiry, numbered,
};

/// Numbers beyond what `SQLite` can hold stand for "as many as there are".
fn to_sql_integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn from_sql_integer(value: i64) -> u64 {
    u64::try_from(value).unwrap_or_default()
}

pub(super) fn read(
    db: &Connection,
    space: &str,
    key: &str,
    now: u64,
) -> rusqlite::Result<Option<StoredValue>> {
    db.prepare_cached(
        "SELECT value, version FROM entry
         WHERE space = :space AND key = :key AND (expires IS NULL OR expires > :now)",
    )?
    .query_row(named_params! { ":space": space, ":key": key, ":now": to_sql_integer(now) }, |row| {
        Ok(StoredValue { value: row.get(0)?, version: from_sql_integer(row.get(1)?) })
    })
    .optional()
}

pub(super) fn write(
    db: &Connection,
    write: &WriteRequest,
    now: u64,
) -> rusqlite::Result<WriteOutcome> {
    forget_expired(db, now)?;
    let (total, last): (i64, i64) = db
        .prepare_cached("SELECT bytes, version FROM total")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let version = from_sql_integer(last) + 1;
    let key = write.key.clone().unwrap_or_else(|| numbered(version));
    let current: Option<(i64, i64)> = db
        .prepare_cached("SELECT version, size FROM entry WHERE space = ?1 AND key = ?2")?
        .query_row([&write.space, &key], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let at = current.map(|(version, _)| from_sql_integer(version));
    if !write.condition.holds(at) {
        return Ok(WriteOutcome::Conflict(at));
    }
    let keys: Option<i64> = db
        .prepare_cached("SELECT keys FROM space WHERE name = ?1")?
        .query_row([&write.space], |row| row.get(0))
        .optional()?;
    let (keys, total) = (from_sql_integer(keys.unwrap_or_default()), from_sql_integer(total));
    let size = write.size(&key);
    let bytes = total.saturating_sub(current.map_or(0, |(_, size)| from_sql_integer(size))) + size;
    let refused = write.quota.refuses((keys, keys + u64::from(at.is_none())), (total, bytes));
    if let Some(refused) = refused {
        return Ok(refused);
    }
    db.prepare_cached("UPDATE total SET version = ?1")?.execute([to_sql_integer(version)])?;
    db.prepare_cached(
        "INSERT INTO entry (space, key, value, version, size, expires)
         VALUES (:space, :key, :value, :version, :size, :expires)
         ON CONFLICT DO UPDATE SET value = :value, version = :version, size = :size,
                                   expires = :expires",
    )?
    .execute(named_params! {
        ":space": write.space,
        ":key": key,
        ":value": write.value,
        ":version": to_sql_integer(version),
        ":size": to_sql_integer(size),
        ":expires": expiry(now, write.ttl).map(to_sql_integer),
    })?;
    Ok(WriteOutcome::Done { key, version })
}

pub(super) fn take(
    db: &Connection,
    space: &str,
    key: &str,
    version: Option<u64>,
    now: u64,
) -> rusqlite::Result<TakeOutcome> {
    forget_expired(db, now)?;
    let Some(entry) = read(db, space, key, now)? else { return Ok(TakeOutcome::Absent) };
    if version.is_some_and(|version| version != entry.version) {
        return Ok(TakeOutcome::Conflict(entry.version));
    }
    db.prepare_cached("DELETE FROM entry WHERE space = ?1 AND key = ?2")?.execute([space, key])?;
    Ok(TakeOutcome::Removed(entry))
}

pub(super) fn page(
    db: &Connection,
    space: &str,
    prefix: &str,
    after: Option<&str>,
    limit: usize,
    now: u64,
) -> rusqlite::Result<KeyPage> {
    // The cursor itself may be at hand still; it is skipped below.
    let from = after.filter(|after| *after >= prefix).unwrap_or(prefix);
    let mut statement = db.prepare_cached(
        "SELECT key, version, octet_length(value) FROM entry
         WHERE space = :space AND key >= :from AND (expires IS NULL OR expires > :now)
         ORDER BY key",
    )?;
    let parameters = named_params! { ":space": space, ":from": from, ":now": to_sql_integer(now) };
    let mut rows = statement.query(parameters)?;
    let mut page = KeyPage::default();
    while let Some(row) = rows.next()? {
        let key: String = row.get(0)?;
        if Some(key.as_str()) == after {
            continue;
        }
        if !key.starts_with(prefix) {
            break;
        }
        if page.items.len() == limit {
            page.more = true;
            break;
        }
        page.items.push(KeyInfo {
            key,
            version: from_sql_integer(row.get(1)?),
            bytes: from_sql_integer(row.get(2)?),
        });
    }
    Ok(page)
}

pub(super) fn clear(db: &Connection, space: &str, now: u64) -> rusqlite::Result<u64> {
    forget_expired(db, now)?;
    let removed = db.prepare_cached("DELETE FROM entry WHERE space = ?1")?.execute([space])?;
    Ok(removed as u64)
}

pub(super) fn spaces(
    db: &Connection,
    prefix: &str,
    limit: usize,
) -> rusqlite::Result<Vec<(String, u64)>> {
    let mut statement =
        db.prepare_cached("SELECT name, keys FROM space WHERE name >= ?1 ORDER BY name")?;
    let mut rows = statement.query([prefix])?;
    let mut spaces = Vec::new();
    while spaces.len() < limit
        && let Some(row) = rows.next()?
    {
        let name: String = row.get(0)?;
        if !name.starts_with(prefix) {
            break;
        }
        spaces.push((name, from_sql_integer(row.get(1)?)));
    }
    Ok(spaces)
}

fn forget_expired(db: &Connection, now: u64) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM entry WHERE expires <= ?1")?.execute([to_sql_integer(now)])?;
    Ok(())
}
