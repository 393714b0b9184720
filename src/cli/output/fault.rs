//! A fault, a warning and a problem as text and as JSON.
//!
//! Owns: the shape of every message on stderr. One `error:` line; everything that belongs to it
//! stands indented below it.

use serde_json::{Value, json};

use super::caret;
pub use super::caret::location;
use super::page::{Label, Line, Page};
use crate::model::{Fault, FaultKind, Phase, Problem};
use crate::util::text;

/// The most lines of evidence that are shown: the last of what a server or a program wrote.
const MAX_DETAILS: usize = 40;
/// The same for what is told from the top, such as what would start if it were allowed.
const MAX_TOLD: usize = 400;
/// The most characters of a message, a line of evidence or a hint that people are shown; JSON has
/// all of them.
const MAX_TEXT: usize = 4_000;

/// The fault for people.
pub fn page(fault: &Fault) -> Page {
    let headline = headline(fault);
    let headline = text::shorten(&headline, MAX_TEXT);
    let mut page =
        Page::from(Line::of(Label::Error, "error:").then(Label::Plain, format!(" {headline}")));
    if let Some(place) = fault.at_place() {
        page.push(Line::of(Label::Dim, format!("at {}", caret::location(place))).indented(2));
        for line in caret::excerpt(place) {
            page.push(line.indented(2));
        }
    }
    let from_the_top = tells_from_the_top(fault);
    let shown = details(fault, if from_the_top { MAX_TOLD } else { MAX_DETAILS });
    let hidden = fault.detail_lines().len() - shown.len();
    let left_out = |which: &str| {
        Line::of(Label::Dim, format!("({hidden} {which} lines left out)")).indented(2)
    };
    if hidden > 0 && !from_the_top {
        page.push(left_out("earlier"));
    }
    for detail in shown {
        // Whoever allows a command has to see the whole of it.
        let line = if from_the_top { detail.into() } else { text::shorten(detail, MAX_TEXT) };
        page.push(Line::plain(line).indented(2));
    }
    if hidden > 0 && from_the_top {
        page.push(left_out("more"));
    }
    if let Some(hint) = fault.hint_text() {
        let hint = text::shorten(hint, MAX_TEXT);
        page.push(
            Line::of(Label::Hint, "hint:").then(Label::Plain, format!(" {hint}")).indented(2),
        );
    }
    page
}

/// Whether the first lines of a fault's evidence tell most, not the last: a refusal says what would
/// start, a list of several failures begins with the first of them.
pub fn tells_from_the_top(fault: &Fault) -> bool {
    matches!(fault.kind(), FaultKind::Denied | FaultKind::Partial)
}

/// The lines of evidence that tell most, at most so many.
pub fn details(fault: &Fault, most: usize) -> &[String] {
    let lines = fault.detail_lines();
    let shown = if tells_from_the_top(fault) {
        lines.get(..most)
    } else {
        lines.get(lines.len().saturating_sub(most)..)
    };
    shown.unwrap_or(lines)
}

/// Server, message, and the step when the message alone could mean another one.
pub fn headline(fault: &Fault) -> String {
    let step = match (fault.kind(), fault.at_phase()) {
        (FaultKind::Unreachable, Some(Phase::Handshake)) => "during the handshake",
        (FaultKind::Unreachable, Some(Phase::List)) => "while listing what it offers",
        _ => return fault.to_string(),
    };
    if fault.message().contains("handshake") || fault.message().contains(" list") {
        return fault.to_string();
    }
    format!("{fault} {step}")
}

/// The line that stands on stderr under `--json`.
pub fn line(fault: &Fault) -> Value {
    let mut error = object(fault);
    if let Some(fields) = error.as_object_mut() {
        fields.insert("exit".to_owned(), fault.kind().exit_code().into());
    }
    json!({ "error": error })
}

/// The fault as the `error` of a JSON answer.
pub fn object(fault: &Fault) -> Value {
    let mut error = json!({
        "kind": fault.kind().as_str(),
        "message": fault.message(),
        "server": fault.server_name(),
        "hint": fault.hint_text(),
    });
    if let Some(fields) = error.as_object_mut() {
        if let Some(phase) = fault.at_phase() {
            fields.insert("phase".to_owned(), phase.as_str().into());
        }
        if !fault.detail_lines().is_empty() {
            fields.insert("details".to_owned(), fault.detail_lines().into());
        }
        if let Some(place) = fault.at_place() {
            fields.insert("file".to_owned(), place.file.display().to_string().into());
            // A whole file has no position in it.
            if place.line > 0 {
                fields.insert("line".to_owned(), place.line.into());
                fields.insert("column".to_owned(), place.column.into());
            }
        }
        if let Some(data) = fault.evidence() {
            fields.insert("data".to_owned(), data.clone());
        }
    }
    error
}

/// A warning for people.
pub fn warning(text: &str) -> Line {
    let text = text::shorten(text, MAX_TEXT);
    Line::of(Label::Warning, "warning:").then(Label::Plain, format!(" {text}"))
}

/// A finding as compilers write theirs: place, severity, message, the line, the caret, the hint.
pub fn finding(problem: &Problem) -> Page {
    let mut line = Line::default();
    if let Some(place) = &problem.place {
        line.push(Label::Name, caret::location(place));
        line.push(Label::Plain, ": ");
    }
    if problem.is_error() {
        line.push(Label::Error, "error:");
    } else {
        line.push(Label::Warning, "warning:");
    }
    line.push(Label::Plain, format!(" {}", text::shorten(&problem.message, MAX_TEXT)));
    if let Some(entry) = &problem.entry {
        line.push(Label::Dim, format!(" ({entry})"));
    }
    let mut page = Page::from(line);
    for line in problem.place.iter().flat_map(caret::excerpt) {
        page.push(line.indented(2));
    }
    if let Some(hint) = &problem.hint {
        page.push(
            Line::of(Label::Hint, "hint:").then(Label::Plain, format!(" {hint}")).indented(2),
        );
    }
    page
}

/// A finding in JSON.
pub fn finding_json(problem: &Problem) -> Value {
    let place = problem.place.as_ref();
    // A whole file has no position in it.
    let position = place.filter(|place| place.line > 0);
    json!({
        "severity": if problem.is_error() { "error" } else { "warning" },
        "file": place.map(|p| p.file.display().to_string()),
        "line": position.map(|p| p.line),
        "column": position.map(|p| p.column),
        "message": problem.message,
        "hint": problem.hint,
        "entry": problem.entry,
    })
}

/// Of several failures of what was asked for, the one that decides the exit code; the first of
/// equals.
pub fn decisive<'f>(faults: impl IntoIterator<Item = &'f Fault>) -> Option<&'f Fault> {
    faults.into_iter().min_by_key(|fault| fault.kind().precedence())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use insta::assert_snapshot;

    use super::super::json::compact;
    use super::super::page::Palette;
    use super::*;
    use crate::model::{Place, Signal};

    fn place() -> Place {
        Place {
            file: Arc::new(PathBuf::from("mcp.yaml")),
            line: 3,
            column: 5,
            text: Arc::from("    comand: npx"),
        }
    }

    #[test]
    fn the_step_is_named_where_a_server_died() {
        let died = Fault::unreachable("the process exited with 3").server("s");
        let said = |fault: Fault| headline(&fault);
        assert_eq!(
            said(died.clone().phase(Phase::Handshake)),
            "server 's': the process exited with 3 during the handshake"
        );
        assert_eq!(said(died.phase(Phase::Call)), "server 's': the process exited with 3");
        let twice = Fault::unreachable("lost in the handshake").phase(Phase::Handshake);
        assert_eq!(said(twice), "lost in the handshake");
    }

    #[test]
    fn a_fault_has_one_error_line_and_indented_details() {
        let fault = Fault::unreachable("exited with status 1\nerror: before the handshake")
            .server("github")
            .phase(Phase::Start)
            .detail("error: missing token\u{1b}[0m")
            .place(place())
            .hint("set GITHUB_TOKEN");
        assert_snapshot!(Palette::default().page(&page(&fault)), @r"
        error: server 'github': exited with status 1␊error: before the handshake
          at mcp.yaml:3:5
          3 │     comand: npx
            │     ^
          error: missing token␛[0m
          hint: set GITHUB_TOKEN
        ");
        let text = Palette::default().page(&page(&fault));
        assert_eq!(text.lines().filter(|l| l.starts_with("error:")).count(), 1);
        assert!(text.lines().skip(1).all(|l| l.starts_with("  ")));
    }

    #[test]
    fn a_fault_in_json_has_the_documented_fields() {
        let fault = Fault::auth("the token was refused").server("github").hint("log in again");
        assert_snapshot!(compact(&line(&fault)), @r#"{"error":{"kind":"auth","message":"the token was refused","server":"github","hint":"log in again","exit":5}}"#);
    }

    #[test]
    fn a_finding_reads_like_a_compilers() {
        let problem = Problem::error("unknown key 'comand'")
            .at(place())
            .entry("github")
            .hint("did you mean 'command'?");
        assert_snapshot!(Palette::default().page(&finding(&problem)), @r"
        mcp.yaml:3:5: error: unknown key 'comand' (github)
          3 │     comand: npx
            │     ^
          hint: did you mean 'command'?
        ");
    }

    #[test]
    fn evidence_is_bounded() {
        let fault = Fault::tool("no").details((0..100).map(|n| format!("line {n}")));
        let text = Palette::default().page(&page(&fault));
        assert_eq!(text.lines().count(), 1 + 1 + MAX_DETAILS);
        assert!(text.contains("60 earlier lines") && text.contains("line 99"), "{text}");
    }

    #[test]
    fn the_documented_precedence_decides_between_failures() {
        let order = [
            FaultKind::Interrupted(Signal::Interrupt),
            FaultKind::Internal,
            FaultKind::Config,
            FaultKind::Usage,
            FaultKind::Auth,
            FaultKind::Denied,
            FaultKind::Timeout,
            FaultKind::Protocol,
            FaultKind::Unreachable,
            FaultKind::Tool,
            FaultKind::Check,
            FaultKind::Partial,
        ];
        let codes: Vec<u8> = order.iter().map(|kind| kind.exit_code()).collect();
        assert_eq!(codes, [130, 1, 9, 2, 5, 6, 7, 10, 4, 3, 8, 11]);
        for (index, winner) in order.iter().enumerate() {
            for loser in order.iter().skip(index + 1) {
                let faults = [Fault::new(*loser, "loser"), Fault::new(*winner, "winner")];
                assert_eq!(decisive(&faults).unwrap().message(), "winner", "{winner:?} {loser:?}");
            }
        }
        assert!(decisive([]).is_none());
    }
}
