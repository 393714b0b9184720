//! Which recorded calls are shown.

use super::prelude::*;
use crate::cli::records::{Since, parse_since};
use crate::model::CallFilter;

#[derive(Debug, Args)]
pub struct CallSelection {
    /// Only calls since a time ago (30m, 7d) or a date (2026-11-01)
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    since: Option<Since>,
    /// Only tools whose full name matches this pattern (* and ?)
    #[arg(long, value_name = "PATTERN", add = ArgValueCompleter::new(complete::tools))]
    tool: Option<String>,
    /// Only calls that failed or did not end
    #[arg(long)]
    failed: bool,
    /// Only calls of this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Show at most this many calls, the newest
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50,
          allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    limit: u32,
}

impl CallSelection {
    pub(super) fn filter(&self, now: Duration) -> CallFilter {
        CallFilter {
            since: self.since.map(|since| since.time(now)),
            tools: self.tool.clone().map(|tool| vec![tool]),
            failed: self.failed.then_some(true),
            session: self.session.clone(),
            ..CallFilter::default()
        }
    }

    pub(super) fn limit(&self) -> usize {
        usize::try_from(self.limit).unwrap_or(usize::MAX)
    }
}
