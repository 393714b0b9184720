//! `stats --reset`: removing statistics.

use super::StatsArgs;
use super::blocking_statistics::BlockingStatistics;
use super::stats_scope::StatsScope;
use crate::cli::context::{CommandContext, CommandResult};
use crate::cli::output::{StyledLine, StyledPage};
use crate::cli::prompt;
use crate::stats::Statistics;
use crate::util::clock::{Clock as _, SystemClock};

/// Removes the selected statistics after confirmation.
pub(super) async fn run(
    args: &StatsArgs,
    mut reading: BlockingStatistics,
    scope: &StatsScope,
    context: &CommandContext,
) -> CommandResult {
    let filter = args.filter(scope, reading.project(), SystemClock.unix());
    let place = reading.project().map(|root| format!(" in the project {root}"));
    if !args.yes {
        let what = match (&args.name, scope) {
            (Some(name), StatsScope::Server(_)) => format!("of all tools of '{name}'"),
            (_, StatsScope::Tool(tool)) => format!("of '{tool}'"),
            _ => "of all tools".to_owned(),
        };
        let page = StyledPage::from(StyledLine::plain(format!(
            "The statistics {what}{} will be removed.",
            place.unwrap_or_default()
        )));
        let words = ("nothing was removed", "--yes removes without asking");
        prompt::require_confirmation(context.output.clone(), page, "Remove them?", words).await?;
    }
    let forget = move |statistics: &mut Statistics| statistics.reset(&filter, SystemClock.unix());
    let calls = reading.with(forget).await?;
    reading.print_notes();
    let count = if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") };
    context.output.note(&StyledLine::plain(format!("{count} removed")));
    Ok(())
}
