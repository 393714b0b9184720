//! One call of the past, and the difference of two, as text.

use std::time::Duration;

use serde_json::Value;

use crate::history::Entry;
use crate::history::compare::Comparison;
use crate::history::json as documented;
use crate::model::Fault;
use crate::tui::state::{Page, Piece};
use crate::tui::theme::Meaning;
use crate::util::difference::{Hunk, Mark};
use crate::util::json;
use crate::util::moment::local_time;
use crate::util::units::{show_duration, show_size};

/// How a result is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Look {
    /// Text as it is, everything else as indented JSON.
    #[default]
    Text,
    /// The whole call as JSON, in the documented shape.
    Json,
    /// The result as it was kept, on one line.
    Raw,
}

impl Look {
    /// All of them, in their order.
    pub const ALL: [Self; 3] = [Self::Text, Self::Json, Self::Raw];

    /// What it is called.
    pub fn title(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Raw => "raw",
        }
    }

    /// The next one.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Text => Self::Json,
            Self::Json => Self::Raw,
            Self::Raw => Self::Text,
        }
    }
}

/// One call.
pub(super) fn entry(
    entry: &Entry,
    changed: Option<&Result<Option<bool>, Fault>>,
    look: Look,
) -> Page {
    let mut page = Page::default();
    if look == Look::Json {
        page.text(Meaning::Plain, &json::pretty(&documented::whole(entry)));
        return page;
    }
    let took = show_duration(entry.duration());
    let (meaning, status) = match &entry.fault {
        None => (Meaning::Good, "ok"),
        Some(fault) => (Meaning::Bad, fault.kind.as_str()),
    };
    let mut head = vec![(meaning, status.to_owned()), (Meaning::Plain, format!(" {took}"))];
    head.push(definition(changed));
    page.push(head);
    if let Some(fault) = &entry.fault {
        page.text(Meaning::Bad, &fault.message);
    }
    page.heading("arguments");
    match &entry.arguments {
        None => page.line(Meaning::Doubt, "too large to be kept"),
        Some(arguments) if arguments.is_empty() => page.line(Meaning::Dim, "none"),
        Some(arguments) if look == Look::Raw => {
            page.line(Meaning::Plain, json::compact(arguments));
        }
        Some(arguments) => page.text(Meaning::Plain, &json::pretty(arguments)),
    }
    if let Some(result) = &entry.result {
        let mut note = show_size(result.bytes);
        if !result.kinds.is_empty() {
            note = format!("{note}, {}", result.kinds.join(", "));
        }
        if result.cut {
            note.push_str(", only the beginning was kept");
        }
        page.heading(format!("result  {note}"));
        match (look, &result.output) {
            (Look::Raw, output) => page.line(Meaning::Plain, json::compact(output)),
            (_, Value::String(text)) => page.text(Meaning::Plain, text),
            (_, output) => page.text(Meaning::Plain, &json::pretty(output)),
        }
    }
    page.heading("call");
    facts(&mut page, entry);
    page
}

fn facts(page: &mut Page, entry: &Entry) {
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
    if entry.attempts > 1 {
        page.fact("attempts", entry.attempts.to_string());
    }
}

/// Whether the tool is what it was then.
fn definition(changed: Option<&Result<Option<bool>, Fault>>) -> Piece {
    let (meaning, said) = match changed {
        None => (Meaning::Dim, "being compared".to_owned()),
        Some(Ok(Some(false))) => (Meaning::Dim, "the same today".to_owned()),
        Some(Ok(Some(true))) => (Meaning::Doubt, "changed since this call".to_owned()),
        Some(Ok(None)) => (Meaning::Dim, "was not kept".to_owned()),
        Some(Err(fault)) => (Meaning::Doubt, format!("not known today: {}", fault.message())),
    };
    (meaning, format!("   definition: {said}"))
}

/// The difference of two calls.
pub(super) fn comparison(comparison: &Comparison) -> Page {
    let mut page = Page::default();
    let [then, now] = comparison.durations;
    for (sign, at, more) in [("- ", 0, String::new()), ("+ ", 1, later(then, now))] {
        page.push(vec![
            (Meaning::Key, sign.to_owned()),
            (Meaning::Name, comparison.tools[at].clone()),
            (Meaning::Plain, format!("  {}{more}", show_duration(comparison.durations[at]))),
            (Meaning::Dim, format!("  {}", comparison.ids[at])),
        ]);
    }
    let (meaning, said) = match comparison.same_definition {
        Some(true) => (Meaning::Plain, "of the same definition"),
        Some(false) => (Meaning::Doubt, "of different definitions"),
        None => (Meaning::Dim, "of definitions that were not kept"),
    };
    page.line(meaning, said);
    hunks(&mut page, "arguments", &comparison.arguments);
    hunks(&mut page, "results", &comparison.results);
    if comparison.cut {
        page.line(Meaning::Doubt, "only the beginnings of the results were kept and compared");
    }
    page
}

/// How much longer or shorter the later call took.
fn later(then: Duration, now: Duration) -> String {
    let sign = if now >= then { '+' } else { '-' };
    let by = now.abs_diff(then);
    format!(" ({sign}{})", show_duration(by))
}

fn hunks(page: &mut Page, what: &str, hunks: &[Hunk]) {
    if hunks.is_empty() {
        page.heading(format!("{what}  the same"));
        return;
    }
    page.heading(format!("{what}  differ"));
    for hunk in hunks {
        page.line(
            Meaning::Dim,
            format!("@@ line {}, now {} @@", hunk.old.start + 1, hunk.new.start + 1),
        );
        for line in &hunk.lines {
            let meaning = match line.mark {
                Mark::Same => Meaning::Plain,
                Mark::Gone => Meaning::Bad,
                Mark::New => Meaning::Good,
            };
            page.line(meaning, format!("{}{}", line.mark.sign(), line.text));
        }
    }
}
