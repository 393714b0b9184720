//! A recorded call, and the difference between two, as text.

use std::time::Duration;

use serde_json::Value;

use crate::history::HistoryEntry;
use crate::history::compare::CallComparison;
use crate::history::json::HistoryDetailJson;
use crate::model::Error;
use crate::tui::theme::StyleRole;
use crate::tui::widgets::json_lines;
use crate::tui::widgets::scroll_text::{ScrollText, StyledSpan};
use crate::util::diff::{DiffMark, Hunk};
use crate::util::json;
use crate::util::timestamp::local_time;
use crate::util::units::{show_duration, show_size};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EntryFormat {
    #[default]
    Text,
    Json,
    /// The result as it was kept, on one line.
    Raw,
}

impl EntryFormat {
    pub const ALL: [Self; 3] = [Self::Text, Self::Json, Self::Raw];

    pub fn title(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Raw => "raw",
        }
    }
}

/// The text of one call in a format: status, arguments, result and facts.
pub fn entry(
    entry: &HistoryEntry,
    changed: Option<&Result<Option<bool>, Error>>,
    look: EntryFormat,
) -> ScrollText {
    let mut page = ScrollText::default();
    if look == EntryFormat::Json {
        page.text(StyleRole::Plain, &json::pretty(&HistoryDetailJson::from(entry)));
        return page;
    }
    let took = show_duration(entry.duration());
    let (meaning, status) = match &entry.error {
        None => (StyleRole::Success, "ok"),
        Some(error) => (StyleRole::Error, error.kind.as_str()),
    };
    let mut head = vec![(meaning, status.to_owned()), (StyleRole::Plain, format!(" {took}"))];
    if let Some(waited) = entry.waited() {
        head.push((StyleRole::Dim, format!(", {} waiting for a person", show_duration(waited))));
    }
    head.push(definition(changed));
    page.push(head);
    if let Some(error) = &entry.error {
        page.text(StyleRole::Error, &error.message);
    }
    page.heading("arguments");
    match &entry.arguments {
        None => page.line(StyleRole::Warning, "too large to keep"),
        Some(arguments) if arguments.is_empty() => page.line(StyleRole::Dim, "none"),
        Some(arguments) if look == EntryFormat::Raw => {
            page.line(StyleRole::Plain, json::compact(arguments));
        }
        Some(arguments) => json_lines::push(&mut page, &Value::Object(arguments.clone())),
    }
    if let Some(result) = &entry.result {
        let mut note = show_size(result.bytes);
        if !result.kinds.is_empty() {
            note = format!("{note}, {}", result.kinds.join(", "));
        }
        if result.cut {
            note.push_str(", truncated");
        }
        page.heading(format!("result  {note}"));
        match (look, &result.output) {
            (EntryFormat::Raw, output) => page.line(StyleRole::Plain, json::compact(output)),
            (_, Value::String(text)) => page.text(StyleRole::Plain, text),
            (_, output) => json_lines::push(&mut page, output),
        }
    }
    page.heading("call");
    facts(&mut page, entry);
    page
}

fn facts(page: &mut ScrollText, entry: &HistoryEntry) {
    page.fact("id", &entry.id);
    page.fact("time", local_time(entry.unix));
    let optional = [
        ("server", &entry.server),
        ("protocol", &entry.protocol),
        ("decision", &entry.decision),
        ("session", &entry.session),
        ("part of", &entry.parent),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            page.fact(name, value);
        }
    }
    if let Some(caller) = &entry.caller {
        let names = [
            ("user", caller.user_id.clone().unwrap_or_default()),
            ("client", caller.client.clone().unwrap_or_default()),
            ("directory", caller.cwd.clone()),
            ("variables", caller.environment.join(", ")),
            ("metadata", caller.metadata.join(", ")),
        ];
        for (name, value) in names.into_iter().filter(|(_, value)| !value.is_empty()) {
            page.fact(name, value);
        }
    }
    if entry.attempts > 1 {
        page.fact("attempts", entry.attempts.to_string());
    }
}

fn definition(changed: Option<&Result<Option<bool>, Error>>) -> StyledSpan {
    let (meaning, text) = match changed {
        None => (StyleRole::Dim, "comparing…".to_owned()),
        Some(Ok(Some(false))) => (StyleRole::Dim, "unchanged".to_owned()),
        Some(Ok(Some(true))) => (StyleRole::Warning, "changed since this call".to_owned()),
        Some(Ok(None)) => (StyleRole::Dim, "not recorded".to_owned()),
        Some(Err(error)) => (StyleRole::Warning, format!("unknown: {}", error.message())),
    };
    (meaning, format!("   definition: {text}"))
}

pub fn comparison(comparison: &CallComparison) -> ScrollText {
    let mut page = ScrollText::default();
    let [then, now] = comparison.durations;
    for (sign, at, more) in [("- ", 0, String::new()), ("+ ", 1, duration_difference(then, now))] {
        page.push(vec![
            (StyleRole::Key, sign.to_owned()),
            (StyleRole::Name, comparison.tools[at].clone()),
            (StyleRole::Plain, format!("  {}{more}", show_duration(comparison.durations[at]))),
            (StyleRole::Dim, format!("  {}", comparison.ids[at])),
        ]);
    }
    let (meaning, text) = match comparison.same_definition {
        Some(true) => (StyleRole::Plain, "same definition"),
        Some(false) => (StyleRole::Warning, "different definitions"),
        None => (StyleRole::Dim, "definitions not recorded"),
    };
    page.line(meaning, text);
    hunks(&mut page, "arguments", &comparison.arguments);
    hunks(&mut page, "results", &comparison.results);
    if comparison.is_truncated {
        page.line(
            StyleRole::Warning,
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
    if hunks.is_empty() {
        page.heading(format!("{what}  the same"));
        return;
    }
    page.heading(format!("{what}  differ"));
    for hunk in hunks {
        page.line(
            StyleRole::Dim,
            format!("@@ line {}, now {} @@", hunk.old.start + 1, hunk.new.start + 1),
        );
        for line in &hunk.lines {
            let meaning = match line.mark {
                DiffMark::Same => StyleRole::Plain,
                DiffMark::Removed => StyleRole::Error,
                DiffMark::Added => StyleRole::Success,
            };
            page.line(meaning, format!("{}{}", line.mark.sign(), line.text));
        }
    }
}
