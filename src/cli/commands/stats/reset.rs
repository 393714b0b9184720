//! `stats --reset`.

use std::sync::Arc;

use super::StatsArgs;
use super::name::Meant;
use super::reading::Reading;
use crate::cli::context::{Context, Outcome};
use crate::cli::output::{Line, Page};
use crate::cli::prompt;
use crate::host::approval::Approval;
use crate::model::Fault;
use crate::util::clock::{Clock as _, SystemClock};

/// Forgets what was counted, once a person agreed.
pub(super) async fn run(
    args: &StatsArgs,
    mut reading: Reading,
    meant: &Meant,
    context: &Context,
) -> Outcome {
    let tools = meant.tools();
    if !args.yes {
        let what = match (&args.name, meant) {
            (Some(name), Meant::Server(_)) => format!("of all tools of '{name}'"),
            (_, Meant::Tool(tool)) => format!("of '{tool}'"),
            _ => "of all tools".to_owned(),
        };
        let page = Page::from(Line::plain(format!("What was counted {what} will be forgotten.")));
        match prompt::confirm(Arc::clone(&context.door), page, "Forget it?").await {
            Approval::Granted => {}
            Approval::Refused => return Err(Fault::denied("nothing was forgotten").into()),
            Approval::Nobody => {
                return Err(Fault::denied("nothing was forgotten: nobody can be asked")
                    .hint("--yes forgets without asking")
                    .into());
            }
        }
    }
    let forget =
        reading.with(move |statistics| statistics.reset(tools.as_deref(), SystemClock.unix()));
    let calls = forget.await?;
    reading.tell();
    let count = if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") };
    context.door.note(&Line::plain(format!("{count} forgotten")));
    Ok(())
}
