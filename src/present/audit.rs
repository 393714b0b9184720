//! `audit`: recorded calls as pages.

use std::time::Duration;

use crate::audit::read::{AuditOutcome, AuditedCall};
use crate::present::{Line, Page, Role, Table, TableColumn};
use crate::util::json::short as short_arguments;
use crate::util::timestamp::local_time;
use crate::util::units::{show_duration, show_span};

/// Shown for a call whose outcome was never recorded.
const NO_OUTCOME: &str = "no outcome (crashed, killed or running)";

pub fn page(calls: &[AuditedCall], width: Option<usize>) -> Page {
    let mut table = Table::new([
        TableColumn::new("TIME"),
        TableColumn::new("TOOL").shrinks_to(16),
        TableColumn::new("SERVER").shrinks_to(8).droppable(5),
        TableColumn::new("OUTCOME"),
        TableColumn::new("DURATION").right().droppable(3),
        TableColumn::new("DECISION").shrinks_to(12).droppable(2),
        TableColumn::new("ARGUMENTS").shrinks_to(12).droppable(1),
    ]);
    for call in calls {
        let arguments = call.arguments.as_ref().map(short_arguments).unwrap_or_default();
        table.row([
            Line::styled(Role::Dim, local_time(call.at)),
            Line::styled(Role::Name, &call.tool),
            Line::plain(call.server.as_deref().unwrap_or_default()),
            result(call),
            Line::plain(call.outcome.as_ref().map(took).unwrap_or_default()),
            Line::plain(call.decision_text()),
            Line::styled(Role::Dim, arguments),
        ]);
        for line in notes(call) {
            table.detail_line(line);
        }
    }
    table.layout(width)
}

pub fn line(call: &AuditedCall, width: Option<usize>) -> Page {
    let mut page = Page::default();
    for note in notes(call).into_iter().filter(|_| call.clock_set_back_by.is_some()) {
        page.push(note);
    }
    let mut line = Line::styled(Role::Dim, local_time(call.at));
    line.pad_to(21);
    line.append(result(call));
    line.pad_to(34);
    line.push(Role::Plain, call.outcome.as_ref().map(took).unwrap_or_default());
    line.pad_to(43);
    line.push(Role::Name, &call.tool);
    line.pad_to(68);
    line.push(Role::Plain, call.decision_text());
    if let Some(arguments) = &call.arguments {
        line = line.then(Role::Plain, "  ").then(Role::Dim, short_arguments(arguments));
    }
    page.push(line.truncate(width.unwrap_or(usize::MAX)));
    page
}

fn result(call: &AuditedCall) -> Line {
    match &call.outcome {
        None => Line::styled(Role::Warning, "none"),
        Some(outcome) if outcome.result == "ok" => Line::styled(Role::Success, "ok"),
        Some(outcome) => Line::styled(Role::Error, &outcome.result),
    }
}

/// Notes: why it failed, that its outcome is unknown, that the clock was set back.
fn notes(call: &AuditedCall) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(client) = call.caller.as_ref().and_then(|caller| caller.client.as_ref()) {
        lines.push(Line::styled(Role::Dim, format!("client {client}")));
    }
    if let Some(seconds) = call.clock_set_back_by {
        let back = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let notice = format!("the clock was set back by {}", show_span(back));
        lines.push(Line::styled(Role::Warning, notice));
    }
    match &call.outcome {
        None => lines.push(Line::styled(Role::Warning, NO_OUTCOME)),
        Some(outcome) => {
            let message = outcome.message.iter().filter(|message| !message.is_empty());
            lines.extend(message.map(|message| Line::styled(Role::Dim, message)));
        }
    }
    lines
}

fn took(outcome: &AuditOutcome) -> String {
    if outcome.attempts == 0 {
        return String::new();
    }
    show_duration(Duration::from_micros(outcome.duration_us))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;
    use crate::cli::commands::audit::AuditedCallJson;
    use crate::present::page::LineRenderer;

    fn call(tool: &str, result: Option<(&str, u32)>) -> AuditedCall {
        AuditedCall {
            call: format!("id-{tool}"),
            at: 1_795_304_776.5,
            tool: tool.to_owned(),
            decision: result.is_none_or(|(_, n)| n > 0).then(|| "allowed".to_owned()),
            arguments: json!({ "text": "a b", "n": 1 }).as_object().cloned(),
            outcome: result.map(|(word, attempts)| AuditOutcome {
                result: word.to_owned(),
                message: (word != "ok").then(|| "no\u{1b}[31m way".to_owned()),
                duration_us: 1_500,
                attempts,
                bytes: 3,
            }),
            ..AuditedCall::default()
        }
    }

    #[test]
    fn a_table_tells_ends_refusals_and_what_has_no_end() {
        let mut later = call("later", Some(("ok", 1)));
        later.clock_set_back_by = Some(90_000.0);
        let calls = [
            call("fine", Some(("ok", 1))),
            call("bad", Some(("tool", 1))),
            call("gone", None),
            later,
            call("never", Some(("denied", 0))),
        ];
        let text = LineRenderer::default().page(&page(&calls, None));
        let text = text.replace(&local_time(1_795_304_776.5), "2026-11-21 23:46:16");
        assert_snapshot!(text, @r#"
            TIME                 TOOL   OUTCOME  DURATION  DECISION  ARGUMENTS
            2026-11-21 23:46:16  fine   ok        1.50 ms  allowed   text="a b" n=1
            2026-11-21 23:46:16  bad    tool      1.50 ms  allowed   text="a b" n=1
              no␛[31m way
            2026-11-21 23:46:16  gone   none               allowed   text="a b" n=1
              no outcome (crashed, killed or running)
            2026-11-21 23:46:16  later  ok        1.50 ms  allowed   text="a b" n=1
              the clock was set back by 25 h
            2026-11-21 23:46:16  never  denied             refused   text="a b" n=1
              no␛[31m way
            "#);
    }

    #[test]
    fn followed_calls_stand_on_one_line() {
        let text = LineRenderer::default().page(&line(&call("fine", Some(("ok", 1))), Some(90)));
        let text = text.replace(&local_time(1_795_304_776.5), "2026-11-21 23:46:16");
        assert_snapshot!(text, @r#"2026-11-21 23:46:16  ok           1.50 ms  fine                     allowed  text="a b" n…"#);
    }

    #[test]
    fn json_has_the_same_keys_for_every_call() {
        let value = |call: &AuditedCall| serde_json::to_value(AuditedCallJson::from(call)).unwrap();
        let keys = |call: &AuditedCall| value(call).as_object().unwrap().keys().cloned().collect();
        let fine: Vec<String> = keys(&call("fine", Some(("ok", 1))));
        assert_eq!(fine, keys(&call("gone", None)));
        assert_eq!(value(&call("never", Some(("denied", 0))))["refused"], true);
    }
}
