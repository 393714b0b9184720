//! `history`: recorded calls as pages.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::history::HistoryEntry;
use crate::present::{Line, Page, Role, Table, TableColumn};
use crate::util::json::short as short_arguments;
use crate::util::timestamp::local_time;
use crate::util::units::{show_duration, show_size};

/// Minimum number of characters of an ID to show: they encode the millisecond.
const SHORT_ID: usize = 13;

pub fn page(entries: &[HistoryEntry], width: Option<usize>) -> Page {
    let mut table = Table::new([
        TableColumn::new("ID"),
        TableColumn::new("TIME").droppable(2),
        TableColumn::new("TOOL").shrinks_to(16),
        TableColumn::new("OUTCOME"),
        TableColumn::new("DURATION").right().droppable(3),
        TableColumn::new("ARGUMENTS").shrinks_to(12).droppable(1),
    ]);
    let length = short_id(entries);
    for entry in entries {
        table.row([
            Line::plain(entry.id.get(..length).unwrap_or(&entry.id)),
            Line::styled(Role::Dim, local_time(entry.unix)),
            Line::styled(Role::Name, &entry.tool),
            outcome(entry),
            Line::plain(show_duration(entry.duration())),
            Line::styled(
                Role::Dim,
                entry.arguments.as_ref().map(short_arguments).unwrap_or_default(),
            ),
        ]);
    }
    table.layout(width)
}

/// How many characters of the IDs are needed to distinguish these calls.
fn short_id(entries: &[HistoryEntry]) -> usize {
    let longest = entries.iter().map(|entry| entry.id.len()).max().unwrap_or(0);
    let all: BTreeSet<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
    let differ = |length: &usize| {
        let heads = all.iter().map(|id| id.get(..*length).unwrap_or(id));
        heads.collect::<BTreeSet<_>>().len() == all.len()
    };
    (SHORT_ID..longest).find(differ).unwrap_or(longest)
}

fn outcome(entry: &HistoryEntry) -> Line {
    match &entry.error {
        None => Line::styled(Role::Success, "ok"),
        Some(error) => Line::styled(Role::Error, &error.kind),
    }
}

pub fn whole(entry: &HistoryEntry, width: Option<usize>) -> Page {
    let mut head = Line::styled(Role::Name, &entry.tool).then(Role::Plain, "  ");
    head.append(outcome(entry));
    head.push(Role::Plain, format!("  {}", show_duration(entry.duration())));
    if let Some(waited) = entry.waited() {
        head.push(Role::Dim, format!(", {} waiting for a person", show_duration(waited)));
    }
    let mut page = Page::from(head);
    if let Some(error) = &entry.error {
        page.text(Role::Error, 2, &error.message);
    }
    page.heading("Arguments");
    match &entry.arguments {
        None => page.push(Line::styled(Role::Dim, "too large to store").indented(2)),
        Some(arguments) if arguments.is_empty() => {
            page.push(Line::styled(Role::Dim, "none").indented(2));
        }
        Some(arguments) => page.json(2, &Value::Object(arguments.clone())),
    }
    if let Some(result) = &entry.result {
        page.heading("Result");
        match &result.output {
            Value::String(text) => page.text(Role::Plain, 2, text.trim_end_matches('\n')),
            output => page.json(2, output),
        }
        let mut note = show_size(result.bytes);
        if !result.kinds.is_empty() {
            note = format!("{note}, {}", result.kinds.join(", "));
        }
        if result.cut {
            note.push_str(", truncated");
        }
        page.push(Line::styled(Role::Dim, format!("({note})")).indented(2));
    }
    page.heading("Call");
    let caller = entry.caller.clone().unwrap_or_default();
    let optional = |value: &Option<String>| value.clone().unwrap_or_default();
    let attempts = if entry.attempts > 1 { entry.attempts.to_string() } else { String::new() };
    for (key, value) in [
        ("id", entry.id.clone()),
        ("time", local_time(entry.unix)),
        ("server", entry.command_end.clone().or(entry.server.clone()).unwrap_or_default()),
        ("attempts", attempts),
        ("session", optional(&entry.session)),
        ("user", optional(&caller.user_id)),
        ("client", optional(&caller.client)),
        ("directory", caller.cwd.clone()),
        ("variables", caller.environment.join(", ")),
        ("metadata", caller.metadata.join(", ")),
        ("part of", optional(&entry.parent)),
        ("protocol", optional(&entry.protocol)),
        ("decision", optional(&entry.decision)),
    ] {
        page.field(key, Role::Plain, &value, width);
    }
    page.field("fingerprint", Role::Dim, &optional(&entry.fingerprint), None);
    page
}

#[cfg(test)]
pub(super) mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;
    use crate::history::read::{StoredError, StoredResult};
    use crate::model::CallPlace;
    use crate::present::page::LineRenderer;

    fn entry(id: &str, error: bool) -> HistoryEntry {
        HistoryEntry {
            id: id.to_owned(),
            unix: 1_795_304_776.5,
            tool: "notes-read".to_owned(),
            server: None,
            place: CallPlace::default(),
            source: Some("internal".to_owned()),
            session: Some("s".to_owned()),
            command_end: None,
            caller: None,
            parent: None,
            protocol: None,
            fingerprint: Some("sha256:00".to_owned()),
            decision: Some("allowed".to_owned()),
            duration_us: 1_500,
            waited_us: 0,
            attempts: 1,
            arguments: json!({ "key": "a\u{1b}[0m" }).as_object().cloned(),
            error: error.then(|| StoredError { kind: "tool".into(), message: "no".into() }),
            result: Some(StoredResult {
                success: !error,
                bytes: 2_048,
                kinds: vec!["text".to_owned()],
                cut: true,
                output: json!({ "a": [1] }),
            }),
        }
    }

    fn shown(page: &Page) -> String {
        let text = LineRenderer::default().page(page);
        text.replace(&local_time(1_795_304_776.5), "2026-11-21 23:46:16")
    }

    #[test]
    fn identities_are_as_short_as_they_can_be() {
        let entries =
            [entry("01a20080-e187-7720-ba10", false), entry("01a20080-e187-7730-ba10", true)];
        assert_snapshot!(shown(&page(&entries, None)), @r"
        ID                 TIME                 TOOL        OUTCOME  DURATION  ARGUMENTS
        01a20080-e187-772  2026-11-21 23:46:16  notes-read  ok        1.50 ms  key=a␛[0m
        01a20080-e187-773  2026-11-21 23:46:16  notes-read  tool      1.50 ms  key=a␛[0m
        ");
        assert_eq!(short_id(&entries[..1]), SHORT_ID);
        assert_eq!(short_id(&[]), 0);
    }

    #[test]
    fn one_call_is_shown_whole_and_safe() {
        assert_snapshot!(shown(&whole(&entry("01a20080", true), Some(60))), @r#"
        notes-read  tool  1.50 ms
          no

        Arguments
          {
            "key": "a\u001b[0m"
          }

        Result
          {
            "a": [
              1
            ]
          }
          (2.0 KiB, text, truncated)

        Call
          id           01a20080
          time         2026-11-21 23:46:16
          session      s
          decision     allowed
          fingerprint  sha256:00
        "#);
    }
}
