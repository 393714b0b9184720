//! Folding the spool into the store: a part of a file and the position behind it, in one
//! transaction. Wherever the process dies in between, a line was folded exactly when its position
//! was.

use std::collections::VecDeque;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use super::columns::{add, failed, signed, unsigned};
use super::{StatsStore, StoreError};
use crate::stats::count::SpoolBatch;
use crate::stats::granularity::{Granularity, RetentionBounds};
use crate::stats::spool_reader::{SpoolFile, SpoolPosition, SpoolPositions};

/// How many positions of files are kept that are no longer there. They are never many, and a file
/// may be overlooked for once when it is being set aside.
const POSITIONS: i64 = 1_000;

impl StatsStore {
    pub(in crate::stats) fn set_lock_timeout(
        &self,
        lock_timeout: Duration,
    ) -> Result<(), StoreError> {
        Ok(self.db.busy_timeout(lock_timeout)?)
    }

    pub(in crate::stats) fn positions(&self) -> Result<SpoolPositions, StoreError> {
        let mut query = self.db.prepare_cached("SELECT key, offset, recent FROM spool")?;
        let rows = query.query_map([], |row| {
            Ok((row.get(0)?, position(row.get(1)?, row.get_ref(2)?.as_str()?)))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Folds what comes next in a file; gives the position behind it and how many calls that were,
    /// or `None` when there was nothing left: another process may have folded it meanwhile.
    pub(in crate::stats) fn fold(
        &self,
        file: &SpoolFile,
    ) -> Result<Option<(SpoolPosition, u64)>, StoreError> {
        let transaction = Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate)?;
        let position = transaction
            .prepare_cached("SELECT offset, recent FROM spool WHERE key = ?1")?
            .query_row([&file.key], |row| Ok(position(row.get(0)?, row.get_ref(1)?.as_str()?)))
            .optional()?
            .unwrap_or_default();
        let chunk = file.read(&position).map_err(|error| {
            StoreError::Failed(format!("{} cannot be read: {error}", file.path.display()))
        })?;
        if chunk.position.offset <= position.offset {
            return Ok(None);
        }
        let bounds = read_retention_bounds(&transaction)?;
        write(&transaction, &chunk.batch, bounds)?;
        remember(&transaction, &file.key, &chunk.position)?;
        transaction.commit()?;
        Ok(Some((chunk.position, chunk.batch.calls)))
    }

    pub(in crate::stats) fn retention_bounds(&self) -> Result<RetentionBounds, StoreError> {
        Ok(read_retention_bounds(&self.db)?)
    }

    /// How many lines of the spool could not be read.
    pub(in crate::stats) fn damaged_lines(&self) -> Result<u64, StoreError> {
        let lines = fact(&self.db, "damaged lines")?;
        Ok(lines.and_then(|lines| u64::try_from(lines).ok()).unwrap_or(0))
    }
}

fn write(db: &Connection, batch: &SpoolBatch, bounds: RetentionBounds) -> rusqlite::Result<()> {
    let mut tool_id = db.prepare_cached(
        "INSERT INTO tool (name, server, project, program, first, last)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT DO UPDATE SET first = min(first, ?5), last = max(last, ?6) RETURNING id",
    )?;
    let mut there = db.prepare_cached(
        "SELECT ok, failed, attempts, recovered, bytes, durations FROM grain
         WHERE level = ?1 AND start = ?2 AND tool = ?3",
    )?;
    let mut put = db.prepare_cached(
        "INSERT OR REPLACE INTO grain
         (level, start, tool, ok, failed, attempts, recovered, bytes, durations)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    for (tool, used) in batch.tools() {
        let (place, times) = (&tool.place, (signed(used.first), signed(used.last)));
        let word = |part: &Option<String>| part.clone().unwrap_or_default();
        let (server, project, program) =
            (word(&tool.server), word(&place.project), word(&place.program));
        let key = params![tool.name, server, project, program, times.0, times.1];
        let id: i64 = tool_id.query_row(key, |row| row.get(0))?;
        for level in Granularity::ALL {
            let grains = batch
                .grains(tool, level)
                .filter(|(start, _)| *start >= bounds.complete_from(level));
            for (start, mut counts) in grains {
                let key = params![level.number(), start, id];
                there
                    .query_row(key, |row| {
                        add(row, 0, &mut counts)?;
                        Ok(())
                    })
                    .optional()?;
                put.execute(params![
                    level.number(),
                    start,
                    id,
                    signed(counts.ok),
                    failed(&counts),
                    signed(counts.attempts),
                    signed(counts.recovered),
                    signed(counts.bytes),
                    counts.durations.encode(),
                ])?;
            }
        }
    }
    if batch.damaged > 0 {
        let before = fact(db, "damaged lines")?.unwrap_or(0);
        set_fact(db, "damaged lines", before.saturating_add(signed(batch.damaged)))?;
    }
    Ok(())
}

fn remember(db: &Connection, key: &str, position: &SpoolPosition) -> rusqlite::Result<()> {
    let recent: Vec<&str> = position.recent.iter().map(String::as_str).collect();
    db.prepare_cached(
        "INSERT INTO spool (key, offset, recent) VALUES (?1, ?2, ?3)
         ON CONFLICT (key) DO UPDATE SET offset = ?2, recent = ?3",
    )?
    .execute(params![key, signed(position.offset), recent.join("\n")])?;
    db.prepare_cached("DELETE FROM spool WHERE id <= (SELECT max(id) FROM spool) - ?1")?
        .execute([POSITIONS])?;
    Ok(())
}

fn position(offset: i64, recent: &str) -> SpoolPosition {
    let recent: VecDeque<String> =
        recent.split('\n').filter(|id| !id.is_empty()).map(str::to_owned).collect();
    SpoolPosition { offset: unsigned(offset), recent }
}

pub(super) fn read_retention_bounds(db: &Connection) -> rusqlite::Result<RetentionBounds> {
    let fact = |name| Ok::<i64, rusqlite::Error>(fact(db, name)?.unwrap_or(i64::MIN));
    Ok(RetentionBounds { minutes: fact("minutes")?, hours: fact("hours")?, days: fact("days")? })
}

pub(super) fn fact(db: &Connection, name: &str) -> rusqlite::Result<Option<i64>> {
    let mut query = db.prepare_cached("SELECT value FROM fact WHERE name = ?1")?;
    query.query_row([name], |row| row.get(0)).optional()
}

pub(super) fn set_fact(db: &Connection, name: &str, value: i64) -> rusqlite::Result<()> {
    let mut put = db.prepare_cached("INSERT OR REPLACE INTO fact VALUES (?1, ?2)")?;
    put.execute(params![name, value]).map(drop)
}

#[cfg(test)]
impl StatsStore {
    /// Folds the next part of each file and ends before the commit, as a killed process would.
    pub(in crate::stats) fn fold_and_crash(&self, files: &[SpoolFile]) {
        let transaction =
            Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate).unwrap();
        let positions = self.positions().unwrap();
        for file in files {
            let position = positions.get(&file.key).cloned().unwrap_or_default();
            let chunk = file.read(&position).unwrap();
            write(&transaction, &chunk.batch, RetentionBounds::default()).unwrap();
            remember(&transaction, &file.key, &chunk.position).unwrap();
        }
        transaction.rollback().unwrap();
    }
}
