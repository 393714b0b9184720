//! `stats --watch`: statistics as calls are made.

use std::collections::BTreeMap;
use std::time::Duration;

use super::blocking_statistics::BlockingStatistics;
use super::stats_scope::StatsScope;
use super::{StatsArgs, page};
use crate::cli::context::{CommandContext, CommandResult};
use crate::cli::json::stats::StatsJson;
use crate::cli::output::{CommandError, Format, SpanStyle, StyledLine, StyledPage};
use crate::cli::records::local_time;
use crate::cli::views;
use crate::stats::Summary;
use crate::stats::count::ToolKey;
use crate::stats::summary::sort;
use crate::util::clock::{Clock as _, SystemClock};

/// Poll interval of the spool.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Number of polls without changes between two refreshes: the time window moves on.
const IDLE_POLLS: u32 = 4;

/// Shows statistics as calls are made, until a signal arrives or stdout is closed. A terminal gets
/// a table that is redrawn; other outputs get one line per tool that was called, or with `--json`
/// all statistics in one line on each change.
pub(super) async fn run(
    args: &StatsArgs,
    mut reading: BlockingStatistics,
    scope: &StatsScope,
    context: &CommandContext,
    format: Format,
) -> CommandResult {
    let output = &context.output;
    let (mut above, mut rested, mut changed) = (0, 0, true);
    let mut known: Option<BTreeMap<ToolKey, u64>> = None;
    loop {
        rested += 1;
        let pictures = output.is_terminal() && format != Format::Json;
        if changed || (pictures && rested >= IDLE_POLLS) {
            rested = 0;
            let filter = args.filter(scope, reading.project(), SystemClock.unix());
            let (mut summary, slices) =
                reading.summary(filter, scope.is_single_tool() && pictures).await?;
            sort(&mut summary.tools, args.sort.order());
            if format == Format::Json {
                output.line(&StatsJson::new(&summary, None))?;
            } else if pictures {
                let mut shown = StyledPage::from(headline(&summary));
                shown.blank_line();
                shown.append(page(args, &summary, scope, &slices, output.width()));
                shown.blank_line();
                let shown = match output.width() {
                    Some(width) => shown.wrap(width),
                    None => shown,
                };
                above = output.repaint(&shown, above)?;
            } else {
                let before = known.replace(counted(&summary));
                for line in changed_lines(&summary, before.as_ref()) {
                    output.page(&StyledPage::from(line))?;
                }
            }
        }
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Ok(()),
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
        if output.is_stdout_closed() {
            return Err(CommandError::OutputClosed);
        }
        changed = reading.refresh().await?;
    }
}

fn headline(summary: &Summary) -> StyledLine {
    let calls = summary.total().map_or(0, |total| total.counts.calls());
    let text = format!("{}  {calls} calls", local_time(summary.now.as_secs_f64()));
    StyledLine::styled(SpanStyle::Dim, text)
}

fn counted(summary: &Summary) -> BTreeMap<ToolKey, u64> {
    let calls = |usage: &crate::stats::Usage| (usage.tool.clone(), usage.counts.calls());
    summary.tools.iter().map(calls).collect()
}

/// One line per tool called since the last time; at first for all tools with calls.
fn changed_lines(summary: &Summary, before: Option<&BTreeMap<ToolKey, u64>>) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    for usage in &summary.tools {
        let known = before.and_then(|before| before.get(&usage.tool)).copied().unwrap_or(0);
        let more = usage.counts.calls().saturating_sub(known);
        if more > 0 {
            lines.push(views::stats::update_line(usage, more));
        }
    }
    lines
}
