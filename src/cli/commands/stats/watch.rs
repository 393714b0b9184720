//! `stats --watch`.

use std::collections::BTreeMap;
use std::time::Duration;

use super::name::Meant;
use super::reading::Reading;
use super::{StatsArgs, page};
use crate::cli::context::{Context, Outcome};
use crate::cli::output::{Format, Label, Line, Page, Stop};
use crate::cli::records::local_time;
use crate::cli::views;
use crate::stats::Summary;
use crate::stats::count::Tool;
use crate::stats::summary::sort;
use crate::util::clock::{Clock as _, SystemClock};

/// How often the spool is looked at.
const TICK: Duration = Duration::from_millis(250);

/// How many looks without news there are between two pictures: a window moves on by itself.
const REST: u32 = 4;

/// Shows statistics as calls are made, until a signal comes or nobody reads any more. A terminal
/// gets one picture that changes; anything else a line for each tool that was called, or with
/// `--json` the whole in one line whenever it changed.
pub(super) async fn run(
    args: &StatsArgs,
    mut reading: Reading,
    meant: &Meant,
    context: &Context,
    format: Format,
) -> Outcome {
    let door = &context.door;
    let (mut above, mut rested, mut changed) = (0, 0, true);
    let mut known: Option<BTreeMap<Tool, u64>> = None;
    loop {
        rested += 1;
        let pictures = door.is_terminal() && format != Format::Json;
        if changed || (pictures && rested >= REST) {
            rested = 0;
            let query = args.query(meant, SystemClock.unix());
            let (mut summary, course) = reading.summary(query, meant.is_one() && pictures).await?;
            sort(&mut summary.tools, args.sort.order());
            if format == Format::Json {
                door.line(&views::stats::json(&summary))?;
            } else if pictures {
                let mut shown = Page::from(headline(&summary));
                shown.gap();
                shown.append(page(args, &summary, meant, &course, door.width()));
                shown.gap();
                let shown = match door.width() {
                    Some(width) => shown.broken(width),
                    None => shown,
                };
                above = door.repaint(&shown, above)?;
            } else {
                let before = known.replace(counted(&summary));
                for line in news(&summary, before.as_ref()) {
                    door.page(&Page::from(line))?;
                }
            }
        }
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Ok(()),
            () = tokio::time::sleep(TICK) => {}
        }
        if door.reader_is_gone() {
            return Err(Stop::ReaderGone);
        }
        changed = reading.refresh().await?;
    }
}

fn headline(summary: &Summary) -> Line {
    let calls = summary.total().map_or(0, |total| total.counts.calls());
    let text = format!("{}  {calls} calls", local_time(summary.now.as_secs_f64()));
    Line::of(Label::Dim, text)
}

fn counted(summary: &Summary) -> BTreeMap<Tool, u64> {
    let calls = |usage: &crate::stats::Usage| (usage.tool.clone(), usage.counts.calls());
    summary.tools.iter().map(calls).collect()
}

/// A line for each tool that was called since; at first for every tool that ever was.
fn news(summary: &Summary, before: Option<&BTreeMap<Tool, u64>>) -> Vec<Line> {
    let mut lines = Vec::new();
    for usage in &summary.tools {
        let known = before.and_then(|before| before.get(&usage.tool)).copied().unwrap_or(0);
        let more = usage.counts.calls().saturating_sub(known);
        if more > 0 {
            lines.push(views::stats::news(usage, more));
        }
    }
    lines
}
