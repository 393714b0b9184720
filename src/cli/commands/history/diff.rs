//! `toolhost history diff`: what two calls gave, compared line by line.

use std::time::Duration;

use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::json;
use similar::{ChangeTag, TextDiff};

use crate::cli::complete;
use crate::cli::context::{Context, Outcome};
use crate::cli::output::{Format, Label, Line, Page};
use crate::cli::views;
use crate::history::Entry;
use crate::history::log;
use crate::history::read::KeptResult;
use crate::host::request::{CallOutcome, CallRequest};
use crate::model::{Fault, FaultKind};

/// Lines around a difference that are shown.
const AROUND: usize = 3;

/// How long the shortest way from one text to the other is looked for; then any way will do.
const EFFORT: Duration = Duration::from_secs(1);

/// Compare the results of two calls, line by line.
///
/// Structured results are compared as indented JSON. Ends with exit code 8 when they differ.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The call: its identity, a beginning that only it has, or 'last'
    #[arg(add = ArgValueCompleter::new(complete::calls))]
    pub id: String,
    /// The call to compare it with
    #[arg(required_unless_present = "replay", conflicts_with = "replay",
          add = ArgValueCompleter::new(complete::calls))]
    pub other: Option<String>,
    /// Compare it with what the same call gives now
    #[arg(long)]
    pub replay: bool,
    /// Approve the call of --replay without being asked
    #[arg(short, long, requires = "replay")]
    pub yes: bool,
}

/// One side of the comparison.
struct Side {
    name: String,
    text: String,
    cut: bool,
}

/// Runs the command.
///
/// # Errors
/// A difference, an unknown call, and whatever calling again runs into.
pub(super) async fn run(args: &DiffArgs, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json, Format::Yaml])?;
    let entry = super::entry(&args.id, context)?;
    let now = if let Some(other) = &args.other {
        Side::of(&super::entry(other, context)?)
    } else {
        let (assembly, request) = super::replay::prepare(&entry, &[], context).await?;
        let request = CallRequest { assume_yes: args.yes, ..request };
        Side::now(&assembly.host.call(request).await?)
    };
    let then = Side::of(&entry);
    if then.cut || now.cut {
        context.door.warn("only the beginnings of the results were kept and compared");
    }
    let diff = TextDiff::configure().timeout(EFFORT).diff_lines(&then.text, &now.text);
    let equal = then.text == now.text;
    match format {
        Format::Json | Format::Yaml => {
            let changed = diff.iter_all_changes().filter(|line| line.tag() != ChangeTag::Equal);
            let lines: Vec<_> = changed
                .map(|line| {
                    json!({
                        "op": line.tag().to_string(),
                        "line": line.value().trim_end_matches('\n'),
                        "old_line": line.old_index().map(|index| index + 1),
                        "new_line": line.new_index().map(|index| index + 1),
                    })
                })
                .collect();
            let value =
                json!({ "a": then.name, "b": now.name, "equal": equal, "differences": lines });
            context.door.value(format, &value)?;
        }
        _ if equal => context.door.note(&Line::plain("the results are the same")),
        _ => context.door.page(&page(&diff, &then.name, &now.name))?,
    }
    if equal {
        return Ok(());
    }
    let message = format!("the results of {} and {} differ", then.name, now.name);
    Err(Fault::new(FaultKind::Check, message).into())
}

impl Side {
    fn of(entry: &Entry) -> Self {
        let fault = entry.fault.as_ref().map(|f| (f.kind.as_str(), f.message.as_str()));
        Self::new(&entry.id, entry.result.as_ref(), fault)
    }

    fn now(outcome: &CallOutcome) -> Self {
        let kept = outcome.result.as_ref().ok().map(log::kept);
        let fault = outcome.fault().map(|fault| (fault.kind().as_str(), fault.message()));
        Self::new(&outcome.metadata.call_id.0, kept.as_ref(), fault)
    }

    fn new(name: &str, result: Option<&KeptResult>, fault: Option<(&str, &str)>) -> Self {
        let mut text = match (result, fault) {
            (Some(result), _) => views::history::text(result),
            (None, Some((kind, message))) => format!("no result: {kind}: {message}"),
            (None, None) => String::new(),
        };
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        Self { name: name.to_owned(), text, cut: result.is_some_and(|result| result.cut) }
    }
}

fn page(diff: &TextDiff<'_, '_, '_, str>, then: &str, now: &str) -> Page {
    let mut page = Page::from(Line::of(Label::Heading, format!("--- {then}")));
    page.push(Line::of(Label::Heading, format!("+++ {now}")));
    for group in diff.grouped_ops(AROUND) {
        if let (Some(first), Some(last)) = (group.first(), group.last()) {
            let (old, new) = (first.old_range().start + 1, first.new_range().start + 1);
            let (old_end, new_end) = (last.old_range().end, last.new_range().end);
            let head = format!("@@ lines {old}-{old_end}, now {new}-{new_end} @@");
            page.push(Line::of(Label::Dim, head));
        }
        for line in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let (mark, label) = match line.tag() {
                ChangeTag::Delete => ("-", Label::Error),
                ChangeTag::Insert => ("+", Label::Good),
                ChangeTag::Equal => (" ", Label::Plain),
            };
            let text = line.value().trim_end_matches('\n');
            page.push(Line::of(label, format!("{mark}{text}")));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::cli::output::Palette;

    #[test]
    fn differences_stand_between_what_is_the_same() {
        let text = |changed: &str| {
            let lines: Vec<String> = (1..=20)
                .map(|n| if n == 10 { format!("ten {changed}\u{1b}") } else { format!("{n}") })
                .collect();
            lines.join("\n") + "\n"
        };
        let (then, now) = (text("then"), text("now"));
        let diff = TextDiff::from_lines(&then, &now);
        assert_snapshot!(Palette::default().page(&page(&diff, "a", "b")), @r"
        --- a
        +++ b
        @@ lines 7-13, now 7-13 @@
         7
         8
         9
        -ten then␛
        +ten now␛
         11
         12
         13
        ");
    }

    #[test]
    fn a_failure_without_a_result_is_compared_by_its_words() {
        let side = Side::new("a", None, Some(("timeout", "too late")));
        assert_eq!(side.text, "no result: timeout: too late\n");
    }
}
