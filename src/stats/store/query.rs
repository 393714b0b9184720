//! Queries of the statistics store.

use std::collections::HashMap;

use rusqlite::{Connection, params};

use super::columns::{add, unsigned};
use super::{StatsStore, StoreError};
use crate::model::{CallFilter, CallPlace};
use crate::stats::count::{CallCounts, ToolKey, UsagePeriod};
use crate::stats::granularity::GrainRange;

pub(in crate::stats) trait GrainSink {
    /// The counts that a grain belongs to; `None` when it is not wanted.
    fn counts_for(&mut self, grain: Grain<'_>) -> Option<&mut CallCounts>;
}

#[derive(Debug, Clone, Copy)]
pub(in crate::stats) struct Grain<'a> {
    pub(in crate::stats) tool: &'a ToolKey,
    /// When it was used, within this grain or not.
    pub(in crate::stats) period: UsagePeriod,
    pub(in crate::stats) start: i64,
}

impl StatsStore {
    /// The names of all tools that were ever counted and not let go, with their servers.
    pub(in crate::stats) fn tools(&self) -> Result<Vec<ToolKey>, StoreError> {
        let mut tools: Vec<ToolKey> =
            tool_rows(&self.db)?.into_iter().map(|row| row.tool).collect();
        tools.sort_unstable();
        Ok(tools)
    }

    /// Adds up the grains of these ranges, of some tools or of all. Gives the number of grains
    /// whose durations could not be read.
    pub(in crate::stats) fn read(
        &self,
        ranges: &[GrainRange],
        filter: &CallFilter,
        sink: &mut impl GrainSink,
    ) -> Result<u64, StoreError> {
        let mut damaged = 0;
        let rows = tool_rows(&self.db)?.into_iter().filter(|row| row.tool.is_wanted(filter));
        let tools: HashMap<i64, (ToolKey, UsagePeriod)> =
            rows.map(|row| (row.id, (row.tool, row.used))).collect();
        let mut grains = self.db.prepare_cached(
            "SELECT tool, start, ok, failed, attempts, recovered, bytes, durations FROM grain
             WHERE level = ?1 AND start >= ?2 AND start < ?3",
        )?;
        for range in ranges {
            let mut rows =
                grains.query(params![range.granularity.number(), range.from, range.to])?;
            while let Some(row) = rows.next()? {
                let Some((tool, used)) = tools.get(&row.get::<_, i64>(0)?) else { continue };
                let grain = Grain { tool, period: *used, start: row.get(1)? };
                if let Some(counts) = sink.counts_for(grain)
                    && !add(row, 2, counts)?
                {
                    damaged += 1;
                }
            }
        }
        Ok(damaged)
    }

    /// The size of the file in bytes.
    pub(in crate::stats) fn size(&self) -> Result<u64, StoreError> {
        let number = |name| self.db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        Ok(unsigned(number("page_count")?.saturating_mul(number("page_size")?)))
    }
}

pub(super) struct ToolTableRow {
    pub(super) id: i64,
    pub(super) tool: ToolKey,
    pub(super) used: UsagePeriod,
}

pub(super) fn tool_rows(db: &Connection) -> rusqlite::Result<Vec<ToolTableRow>> {
    let mut query =
        db.prepare_cached("SELECT id, name, server, project, program, first, last FROM tool")?;
    let rows = query.query_map([], |row| {
        let word = |at| row.get(at).map(|text: String| Some(text).filter(|text| !text.is_empty()));
        let place = CallPlace { project: word(3)?, program: word(4)? };
        Ok(ToolTableRow {
            id: row.get(0)?,
            tool: ToolKey { name: row.get(1)?, server: word(2)?, place },
            used: UsagePeriod { first: unsigned(row.get(5)?), last: unsigned(row.get(6)?) },
        })
    })?;
    rows.collect()
}
