//! Queries of the statistics store.

use rusqlite::params;

use super::fold::{add, unsigned};
use super::{StatsStore, StoreError};
use crate::model::CallFilter;
use crate::stats::count::{CallCounts, ToolKey, UsagePeriod};
use crate::stats::granularity::GrainRange;

/// Where grains are added up.
pub(in crate::stats) trait GrainSink {
    /// The counts that a grain belongs to; `None` when it is not wanted.
    fn counts_for(&mut self, grain: Grain<'_>) -> Option<&mut CallCounts>;
}

/// A tool in a grain of time.
#[derive(Debug, Clone, Copy)]
pub(in crate::stats) struct Grain<'a> {
    /// The tool that was counted.
    pub(in crate::stats) tool: &'a ToolKey,
    /// When it was used, within this grain or not.
    pub(in crate::stats) period: UsagePeriod,
    /// The beginning of the grain.
    pub(in crate::stats) start: i64,
}

impl StatsStore {
    /// The names of all tools that were ever counted and not let go, with their servers.
    pub(in crate::stats) fn tools(&self) -> Result<Vec<ToolKey>, StoreError> {
        let mut query =
            self.db.prepare_cached("SELECT name, server FROM tool ORDER BY name, server")?;
        let rows = query.query_map([], |row| Ok(tool(row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
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
        let mut tools = self.db.prepare_cached("SELECT id, name, server, first, last FROM tool")?;
        let mut known = std::collections::HashMap::new();
        let mut rows = tools.query([])?;
        while let Some(row) = rows.next()? {
            let found = tool(row.get(1)?, row.get(2)?);
            if filter.matches_tool(&found.name) {
                let used =
                    UsagePeriod { first: unsigned(row.get(3)?), last: unsigned(row.get(4)?) };
                known.insert(row.get::<_, i64>(0)?, (found, used));
            }
        }
        let mut grains = self.db.prepare_cached(
            "SELECT tool, start, ok, failed, attempts, recovered, bytes, durations FROM grain
             WHERE level = ?1 AND start >= ?2 AND start < ?3",
        )?;
        for range in ranges {
            let mut rows =
                grains.query(params![range.granularity.number(), range.from, range.to])?;
            while let Some(row) = rows.next()? {
                let Some((tool, used)) = known.get(&row.get::<_, i64>(0)?) else { continue };
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

fn tool(name: String, server: String) -> ToolKey {
    ToolKey { name, server: Some(server).filter(|server| !server.is_empty()) }
}
