//! `toolhost audit`: showing and following the audit log.

use super::call_selection::CallSelection;
use super::prelude::*;
use crate::audit;
use crate::audit::read::{self, AuditJoiner, AuditedCall};
use crate::cli::records;
use crate::model::{BreakpointRecord, CallFilter, CallerRecord, JsonObject};
use crate::util::segments::{LineFollower, ReverseLines};
use crate::util::timestamp::rfc3339;
use crate::util::units::millis;

const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Show the audit log: calls made and calls refused.
///
/// The audit log has two records for each call, one before it and one after it, shown as one line.
/// A call without a second record crashed, was killed, or is still running. The newest call is
/// last.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::ROWS))]
pub struct AuditArgs {
    #[command(flatten)]
    pub calls: CallSelection,
    /// Only decisions that contain this text, such as refused, --yes or a rule
    #[arg(long, value_name = "WORDS")]
    pub decision: Option<String>,
    /// Keep printing calls as they end, until interrupted
    #[arg(short, long)]
    pub follow: bool,
}

pub async fn run(args: &AuditArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::ROWS)?;
    if args.follow && format == Format::Yaml {
        return Err(Error::usage("--follow prints only text or JSON lines").into());
    }
    let location =
        context.record_location(("audit log", "audit", audit::log::FILE), |all| &all.audit)?;
    // Before anything is read, so that no line is missed between reading and following.
    let follow = args.follow.then(|| LineFollower::from_end(location.clone()));
    let follow = follow.transpose().map_err(Error::unreadable_records)?;
    let filter = CallFilter { decision: args.decision.clone(), ..args.calls.filter(context.now()) };
    let lines = ReverseLines::all(&location).map_err(Error::unreadable_records)?;
    let page =
        read::newest(lines, &filter, args.calls.limit()).map_err(Error::unreadable_records)?;
    let output = &context.output;
    records::warn_unreadable_lines(output, page.damaged, &location.path);
    if let Some(follow) = follow {
        let show = |call: &AuditedCall| match format {
            Format::Json => output.line(&AuditedCallJson::from(call)),
            _ => output.page(&present::audit::line(call, output.width())),
        };
        page.calls.iter().try_for_each(show)?;
        return watch(follow, AuditJoiner::after(&page.calls), &filter, context, show).await;
    }
    let all: Vec<_> = page.calls.iter().map(AuditedCallJson::from).collect();
    let shown = || present::audit::page(&page.calls, output.width());
    if output.report(format, &all, shown)? && page.calls.is_empty() {
        output.note(hint(format!("no such call in {}", location.path.display())));
    }
    Ok(())
}

/// Shows calls as they end, until a signal arrives or stdout is closed.
async fn watch(
    mut follow: LineFollower,
    mut joiner: AuditJoiner,
    filter: &CallFilter,
    context: &CommandContext,
    show: impl Fn(&AuditedCall) -> CommandResult,
) -> CommandResult {
    loop {
        for line in follow.poll().map_err(Error::unreadable_records)? {
            if let Some(call) = joiner.push(&line).filter(|call| filter.matches(&call.facts())) {
                show(&call)?;
            }
        }
        let damaged = std::mem::take(&mut joiner.damaged);
        records::warn_unreadable_lines(&context.output, damaged, follow.path());
        if !pause(context, POLL_INTERVAL).await? {
            return Ok(());
        }
    }
}

shape! {
    /// A call from the audit log.
    pub AuditedCallJson<'a> of call: &'a AuditedCall, with {
        let outcome = call.outcome.as_ref();
    } {
        /// The ID of the call.
        call: &'a str = &call.call,
        /// When it started or was refused (RFC 3339).
        time: String = rfc3339(call.at),
        /// The same time in seconds since the Unix epoch.
        unix: f64 = call.at,
        /// The full name of the tool.
        tool: &'a str = &call.tool,
        /// The server, for MCP tools.
        server: Option<&'a str> = call.server.as_deref(),
        /// `internal` or `mcp`.
        source: Option<&'a str> = call.source.as_deref(),
        /// The session it belongs to.
        session: Option<&'a str> = call.session.as_deref(),
        /// Who made the call; null in lines from earlier versions.
        caller: Option<&'a CallerRecord> = call.caller.as_ref(),
        /// The call it was part of.
        parent: Option<&'a str> = call.parent.as_deref(),
        /// The user it ran as.
        user: Option<&'a str> = call.user.as_deref(),
        /// The process that made the call.
        pid: Option<u32> = call.pid,
        /// The decision about the call, and why.
        decision: Option<&'a str> = call.decision.as_deref(),
        /// Whether it was refused, so that nothing was sent.
        refused: bool = call.was_refused(),
        /// Its arguments; secrets are masked and long values are cut.
        arguments: Option<&'a JsonObject> = call.arguments.as_ref(),
        /// What breakpoints did to the call, and then to its result.
        breakpoints: &'a [BreakpointRecord] = &call.breakpoints,
        /// `ok` or the kind of error; null when no outcome was recorded.
        result: Option<&'a str> = outcome.map(|outcome| outcome.result.as_str()),
        /// The error message of the call.
        message: Option<&'a str> = outcome.and_then(|outcome| outcome.message.as_deref()),
        /// Time from the first attempt to the response.
        duration_ms: Option<f64> =
            outcome.map(|outcome| millis(Duration::from_micros(outcome.duration_us))),
        /// Attempts made; 0 when nothing was sent.
        attempts: Option<u32> = outcome.map(|outcome| outcome.attempts),
        /// Bytes of the result as JSON.
        bytes: Option<u64> = outcome.map(|outcome| outcome.bytes),
        /// By how many seconds the clock was set back just before.
        clock_back_s: Option<f64> = call.clock_set_back_by,
    }
}
