//! A recorded call, and the difference between two, as text.

use crate::history::HistoryEntry;
use crate::history::compare::CallComparison;
use crate::history::json::HistoryDetailJson;
use crate::tui::prelude::*;
use crate::tui::widgets::scroll_text::StyledSpan;
use crate::util::diff::Hunk;
use crate::util::json;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum EntryFormat {
    #[default]
    Text,
    Json,
    /// The result as it was kept, on one line.
    Raw,
}

/// The text of one call in a format: status, arguments, result and facts.
pub fn entry(
    entry: &HistoryEntry,
    changed: Option<&Result<Option<bool>, Error>>,
    look: EntryFormat,
) -> ScrollText {
    let mut page = ScrollText::default();
    match look {
        EntryFormat::Json => {
            page.text(Role::Plain, &json::pretty(&HistoryDetailJson::from(entry)));
        }
        EntryFormat::Raw => {
            page.heading("arguments");
            page.line(Role::Plain, json::compact(&entry.arguments));
            page.heading("result");
            let output = entry.result.as_ref().map(|result| &result.output);
            page.line(Role::Plain, json::compact(&output));
        }
        EntryFormat::Text => {
            page.push(vec![definition(changed)]);
            page.page(&present::history::whole(entry, None));
        }
    }
    page
}

fn definition(changed: Option<&Result<Option<bool>, Error>>) -> StyledSpan {
    let (meaning, text) = match changed {
        None => (Role::Dim, "comparing…".to_owned()),
        Some(Ok(Some(false))) => (Role::Dim, "unchanged".to_owned()),
        Some(Ok(Some(true))) => (Role::Warning, "changed since this call".to_owned()),
        Some(Ok(None)) => (Role::Dim, "not recorded".to_owned()),
        Some(Err(error)) => (Role::Warning, format!("unknown: {}", error.message())),
    };
    (meaning, format!("definition: {text}"))
}

pub fn comparison(comparison: &CallComparison) -> ScrollText {
    let mut page = ScrollText::default();
    let [then, now] = comparison.durations;
    for (sign, at, more) in [("- ", 0, String::new()), ("+ ", 1, duration_difference(then, now))] {
        page.push(vec![
            (Role::Key, sign.to_owned()),
            (Role::Name, comparison.tools[at].clone()),
            (Role::Plain, format!("  {}{more}", show_duration(comparison.durations[at]))),
            (Role::Dim, format!("  {}", comparison.ids[at])),
        ]);
    }
    let (meaning, text) = match comparison.same_definition {
        Some(true) => (Role::Plain, "same definition"),
        Some(false) => (Role::Warning, "different definitions"),
        None => (Role::Dim, "definitions not recorded"),
    };
    page.line(meaning, text);
    hunks(&mut page, "arguments", &comparison.arguments);
    hunks(&mut page, "results", &comparison.results);
    if comparison.is_truncated {
        page.line(
            Role::Warning,
            "the recorded results are truncated; only the recorded parts are compared",
        );
    }
    page
}

/// How much longer or shorter the later call took.
fn duration_difference(then: Duration, now: Duration) -> String {
    let sign = if now >= then { '+' } else { '-' };
    let by = now.abs_diff(then);
    format!(" ({sign}{})", show_duration(by))
}

fn hunks(page: &mut ScrollText, what: &str, hunks: &[Hunk]) {
    page.heading(format!("{what}  {}", if hunks.is_empty() { "the same" } else { "differ" }));
    let mut lines = Page::default();
    present::difference::hunks(&mut lines, hunks);
    page.page(&lines);
}
