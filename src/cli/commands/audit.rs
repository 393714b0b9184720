//! `toolhost audit`: showing and following the audit log.

use super::prelude::*;
use crate::audit;
use crate::audit::read::{self, AuditJoiner};
use crate::cli::json::audit::AuditedCallJson;
use crate::cli::records::{self, Since, parse_since};
use crate::model::CallFilter;
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::segments::{LineFollower, ReverseLines};

const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Show the audit log: calls made and calls refused.
///
/// The audit log has two records for each call, one before it and one after it, shown as one line.
/// A call without a second record crashed, was killed, or is still running. The newest call is
/// last.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::ROWS))]
pub struct AuditArgs {
    /// Only calls since a time ago (30m, 7d) or a date (2026-11-01)
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    pub since: Option<Since>,
    /// Only tools whose full name matches this pattern (* and ?)
    #[arg(long, value_name = "PATTERN", add = ArgValueCompleter::new(complete::tools))]
    pub tool: Option<String>,
    /// Only calls that failed or did not end
    #[arg(long)]
    pub failed: bool,
    /// Only calls of this session
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Only decisions that contain this text, such as refused, --yes or a rule
    #[arg(long, value_name = "WORDS")]
    pub decision: Option<String>,
    /// Show at most this many calls, the newest
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50, allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub limit: u32,
    /// Keep printing calls as they end, until interrupted
    #[arg(short, long)]
    pub follow: bool,
}

impl AuditArgs {
    fn filter(&self) -> CallFilter {
        CallFilter {
            since: self.since.map(|since| since.time(SystemClock.unix())),
            tools: self.tool.clone().map(|tool| vec![tool]),
            failed: self.failed.then_some(true),
            session: self.session.clone(),
            decision: self.decision.clone(),
            ..CallFilter::default()
        }
    }
}

pub async fn run(args: &AuditArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::ROWS)?;
    if args.follow && format == Format::Yaml {
        return Err(Error::usage("--follow prints only text or JSON lines").into());
    }
    let location =
        context.record_location(("audit log", "audit", audit::log::FILE), |all| &all.audit)?;
    // Before anything is read, so that no line is missed between reading and following.
    let follow = if args.follow {
        Some(LineFollower::from_end(location.clone()).map_err(Error::unreadable_records)?)
    } else {
        None
    };
    let filter = args.filter();
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let lines = ReverseLines::all(&location).map_err(Error::unreadable_records)?;
    let page = read::newest(lines, &filter, limit).map_err(Error::unreadable_records)?;
    let output = &context.output;
    records::warn_unreadable_lines(output, page.damaged, &location.path);
    match (format, follow) {
        (Format::Json, Some(follow)) => {
            for call in &page.calls {
                output.line(&AuditedCallJson::from(call))?;
            }
            let joiner = AuditJoiner::after(&page.calls);
            watch(follow, joiner, &filter, context, |call| {
                output.line(&AuditedCallJson::from(call))
            })
            .await
        }
        (_, Some(follow)) => {
            let width = output.width();
            for call in &page.calls {
                output.page(&present::audit::line(call, width))?;
            }
            let joiner = AuditJoiner::after(&page.calls);
            let show = |call: &_| output.page(&present::audit::line(call, width));
            watch(follow, joiner, &filter, context, show).await
        }
        (_, None) => {
            let all: Vec<_> = page.calls.iter().map(AuditedCallJson::from).collect();
            let shown = || present::audit::page(&page.calls, output.width());
            if output.report(format, &all, shown)? && page.calls.is_empty() {
                let path = location.path.display();
                output.note(Line::styled(Role::Dim, format!("no such call in {path}")));
            }
            Ok(())
        }
    }
}

/// Shows calls as they end, until a signal arrives or stdout is closed.
async fn watch(
    mut follow: LineFollower,
    mut joiner: AuditJoiner,
    filter: &CallFilter,
    context: &CommandContext,
    show: impl Fn(&read::AuditedCall) -> Result<(), CommandError>,
) -> CommandResult {
    loop {
        for line in follow.poll().map_err(Error::unreadable_records)? {
            if let Some(call) = joiner.push(&line).filter(|call| filter.matches(&call.facts())) {
                show(&call)?;
            }
        }
        records::warn_unreadable_lines(
            &context.output,
            std::mem::take(&mut joiner.damaged),
            follow.path(),
        );
        if context.output.is_stdout_closed() {
            return Err(CommandError::OutputClosed);
        }
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Ok(()),
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
    }
}
