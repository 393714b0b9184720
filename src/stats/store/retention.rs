//! Removing old statistics.
//!
//! A clock that is wrong must not cost what was counted: from one run to the next the time up to
//! which is cleared moves on by a day at most, and never back.

use std::time::Duration;

use rusqlite::{Transaction, TransactionBehavior, params};

use super::columns::signed;
use super::fold::{fact, read_retention_bounds, set_fact};
use super::{StatsStore, StoreError};
use crate::stats::granularity::Granularity;

const MAX_ADVANCE: i64 = 86_400;

/// How many seconds have to pass before it is remembered that time passed.
const PRUNE_INTERVAL: u64 = 3_600;

/// How many grains of a level one run removes: a person waits for the command.
const MAX_REMOVALS: i64 = 20_000;

const MAX_PAGES: i64 = 2_000;

impl StatsStore {
    /// Lets go what is older than `retention`, and minutes and hours that became too old; `now` is
    /// the time since the Unix epoch. What is left for the next run is not read any more.
    pub(in crate::stats) fn prune(
        &self,
        now: Duration,
        retention: Duration,
    ) -> Result<(), StoreError> {
        let now = signed(now.as_secs());
        let transaction = Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate)?;
        let Some(before) = fact(&transaction, "clock")? else {
            // Nothing tells yet whether this clock is right.
            set_fact(&transaction, "clock", now)?;
            return Ok(transaction.commit()?);
        };
        let clock = now.min(before.saturating_add(MAX_ADVANCE));
        let earlier = read_retention_bounds(&transaction)?;
        let bounds = earlier.advanced(clock.min(before), signed(retention.as_secs()));
        if bounds == earlier && clock.abs_diff(before) < PRUNE_INTERVAL {
            return Ok(());
        }
        set_fact(&transaction, "clock", clock)?;
        set_fact(&transaction, "minutes", bounds.minutes)?;
        set_fact(&transaction, "hours", bounds.hours)?;
        set_fact(&transaction, "days", bounds.days)?;
        let mut removed = 0;
        for level in Granularity::ALL {
            removed += transaction
                .prepare_cached(
                    "DELETE FROM grain WHERE (level, start, tool) IN
                     (SELECT level, start, tool FROM grain WHERE level = ?1 AND start < ?2 LIMIT ?3)",
                )?
                .execute(params![level.number(), bounds.complete_from(level), MAX_REMOVALS])?;
        }
        if removed > 0 {
            transaction.execute(
                "DELETE FROM tool WHERE id NOT IN (SELECT tool FROM grain WHERE level = ?1)",
                [Granularity::Day.number()],
            )?;
        }
        transaction.commit()?;
        if removed > 0 {
            // When others use the file it is done next time.
            let _later = self.db.execute_batch(&format!("PRAGMA incremental_vacuum({MAX_PAGES})"));
        }
        Ok(())
    }
}
