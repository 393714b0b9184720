//! Errors, warnings and diagnostics as text.

use crate::model::{Diagnostic, Error, ErrorKind, ErrorPhase};
pub use crate::present::caret::location;
use crate::present::{Line, Page, Role, caret};
use crate::util::text;

/// Maximum number of detail lines to show: the last lines that a server or program wrote.
const MAX_DETAILS: usize = 40;
/// The same for details shown from the top, such as what would start if it were allowed.
const MAX_LEADING_DETAILS: usize = 400;
/// Maximum number of characters of a message, a detail line or a hint in text output; JSON has
/// all of them.
const MAX_TEXT: usize = 4_000;

pub fn page(error: &Error) -> Page {
    let headline = headline(error);
    let headline = text::shorten(&headline, MAX_TEXT);
    let mut page =
        Page::from(Line::styled(Role::Error, "error:").then(Role::Plain, format!(" {headline}")));
    if let Some(place) = error.location() {
        page.push(Line::styled(Role::Dim, format!("at {}", caret::location(place))).indented(2));
        for line in caret::excerpt(place) {
            page.push(line.indented(2));
        }
    }
    let from_the_top = has_leading_details(error);
    let shown = details(error, if from_the_top { MAX_LEADING_DETAILS } else { MAX_DETAILS });
    let hidden = error.details().len() - shown.len();
    let left_out = |which: &str| {
        Line::styled(Role::Dim, format!("({hidden} {which} lines left out)")).indented(2)
    };
    if hidden > 0 && !from_the_top {
        page.push(left_out("earlier"));
    }
    for detail in shown {
        // A command that needs approval must be shown in full.
        let line = if from_the_top { detail.into() } else { text::shorten(detail, MAX_TEXT) };
        page.push(Line::plain(line).indented(2));
    }
    if hidden > 0 && from_the_top {
        page.push(left_out("more"));
    }
    server_data(&mut page, error, 2);
    if let Some(hint) = error.hint() {
        page.hint(&text::shorten(hint, MAX_TEXT));
    }
    page
}

/// Appends what a server's JSON-RPC error says beside its message.
fn server_data(page: &mut Page, error: &Error, indent: usize) {
    if let Some(data) = error.rpc_data().filter(|data| !data.is_null()) {
        page.text(Role::Plain, indent, &text::shorten(&format!("data: {data}"), MAX_TEXT));
    }
}

/// An error where there is one line for it: what happened, and the last words of what it is about.
pub fn in_one_line(error: &Error) -> String {
    let last_words = error.details().iter().rev().find_map(|line| line.strip_prefix("stderr: "));
    match last_words.filter(|line| *line != "(nothing)") {
        Some(last_words) => format!("{}: {last_words}", error.message()),
        None => error.message().to_owned(),
    }
}

/// An error where the screen has room for all of it: its kind, message, details and hint.
pub fn failure(error: &Error) -> Page {
    let mut page = Page::default();
    page.text(Role::Error, 0, &format!("{}: {}", error.kind().as_str(), error.message()));
    // The words of a server are the message, and may be among its details again.
    for line in error.details().iter().filter(|line| *line != error.message()) {
        page.text(Role::Plain, 0, line);
    }
    server_data(&mut page, error, 0);
    if let Some(hint) = error.hint() {
        page.text(Role::Dim, 0, &format!("hint: {hint}"));
    }
    page
}

/// Appends all details of an error, and its hint.
pub fn evidence(page: &mut Page, error: &Error) {
    for line in error.details() {
        page.push(Line::plain(line).indented(2));
    }
    server_data(page, error, 2);
    if let Some(hint) = error.hint() {
        page.hint(hint);
    }
}

/// Whether the first detail lines of an error matter most, not the last: a refusal says what would
/// start, a list of several failures starts with the first of them.
pub fn has_leading_details(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Denied | ErrorKind::Partial)
}

/// The most informative detail lines, at most `most` of them.
pub fn details(error: &Error, most: usize) -> &[String] {
    let lines = error.details();
    let shown = if has_leading_details(error) {
        lines.get(..most)
    } else {
        lines.get(lines.len().saturating_sub(most)..)
    };
    shown.unwrap_or(lines)
}

/// Server, message, and the step in which the connection was lost, which messages do not name.
pub fn headline(error: &Error) -> String {
    let step = match (error.kind(), error.phase()) {
        (ErrorKind::Unreachable, Some(ErrorPhase::Handshake)) => "during the handshake",
        (ErrorKind::Unreachable, Some(ErrorPhase::List)) => "while listing what it offers",
        _ => return error.to_string(),
    };
    format!("{error} {step}")
}

pub fn warning(text: &str) -> Line {
    let text = text::shorten(text, MAX_TEXT);
    Line::styled(Role::Warning, "warning:").then(Role::Plain, format!(" {text}"))
}

/// A diagnostic in one line: its location and message.
pub fn located(problem: &Diagnostic) -> String {
    match &problem.location {
        Some(place) => format!("{}: {}", location(place), problem.message),
        None => problem.message.clone(),
    }
}

/// A diagnostic in compiler style: location, severity, message, the line, the caret, the hint.
pub fn diagnostic(problem: &Diagnostic) -> Page {
    let mut line = Line::default();
    if let Some(place) = &problem.location {
        line.push(Role::Name, caret::location(place));
        line.push(Role::Plain, ": ");
    }
    if problem.is_error() {
        line.push(Role::Error, "error:");
    } else {
        line.push(Role::Warning, "warning:");
    }
    line.push(Role::Plain, format!(" {}", text::shorten(&problem.message, MAX_TEXT)));
    if let Some(entry) = &problem.entry {
        line.push(Role::Dim, format!(" ({entry})"));
    }
    let mut page = Page::from(line);
    for line in problem.location.iter().flat_map(caret::excerpt) {
        page.push(line.indented(2));
    }
    if let Some(hint) = &problem.hint {
        page.hint(hint);
    }
    page
}

/// Of several failures, the one that decides the exit code; the first of
/// equals.
pub fn decisive<'f>(errors: impl IntoIterator<Item = &'f Error>) -> Option<&'f Error> {
    errors.into_iter().min_by_key(|error| error.kind().precedence())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;
    use crate::cli::json::error::ErrorLineJson;
    use crate::model::{Signal, SourceLocation};
    use crate::present::page::LineRenderer;
    use crate::util::json::compact;

    fn place() -> SourceLocation {
        SourceLocation {
            file: Arc::new(PathBuf::from("mcp.yaml")),
            line: 3,
            column: 5,
            text: Arc::from("    comand: npx"),
        }
    }

    #[test]
    fn the_step_is_named_where_a_server_died() {
        let died = Error::unreachable("the process exited with 3").with_server("s");
        let said = |error: Error| headline(&error);
        assert_eq!(
            said(died.clone().with_phase(ErrorPhase::Handshake)),
            "server 's': the process exited with 3 during the handshake"
        );
        assert_eq!(
            said(died.with_phase(ErrorPhase::Call)),
            "server 's': the process exited with 3"
        );
    }

    #[test]
    fn an_error_has_one_error_line_and_indented_details() {
        let error = Error::unreachable("exited with status 1\nerror: before the handshake")
            .with_server("github")
            .with_phase(ErrorPhase::Start)
            .with_detail("error: missing token\u{1b}[0m")
            .with_location(place())
            .with_hint("set GITHUB_TOKEN");
        assert_snapshot!(LineRenderer::default().page(&page(&error)), @r"
        error: server 'github': exited with status 1␊error: before the handshake
          at mcp.yaml:3:5
          3 │     comand: npx
            │     ^
          error: missing token␛[0m
          hint: set GITHUB_TOKEN
        ");
        let text = LineRenderer::default().page(&page(&error));
        assert_eq!(text.lines().filter(|l| l.starts_with("error:")).count(), 1);
        assert!(text.lines().skip(1).all(|l| l.starts_with("  ")));
    }

    #[test]
    fn what_a_server_says_beside_its_message_is_shown() {
        let error = Error::tool("error -32602: no path")
            .with_rpc_error(-32602, Some(&json!({ "field": "path" })));
        assert_snapshot!(LineRenderer::default().page(&page(&error)), @r#"
        error: error -32602: no path
          data: {"field":"path"}
        "#);
    }

    #[test]
    fn an_error_in_json_has_the_documented_fields() {
        let error =
            Error::auth("the token was refused").with_server("github").with_hint("log in again");
        assert_snapshot!(compact(&ErrorLineJson::from(&error)), @r#"{"error":{"kind":"auth","message":"the token was refused","server":"github","hint":"log in again","exit":5}}"#);
    }

    #[test]
    fn a_finding_reads_like_a_compilers() {
        let problem = Diagnostic::error("unknown key 'comand'")
            .with_location(place())
            .with_entry("github")
            .with_hint("did you mean 'command'?");
        assert_snapshot!(LineRenderer::default().page(&diagnostic(&problem)), @r"
        mcp.yaml:3:5: error: unknown key 'comand' (github)
          3 │     comand: npx
            │     ^
          hint: did you mean 'command'?
        ");
    }

    #[test]
    fn evidence_is_bounded() {
        let error = Error::tool("no").with_details((0..100).map(|n| format!("line {n}")));
        let text = LineRenderer::default().page(&page(&error));
        assert_eq!(text.lines().count(), 1 + 1 + MAX_DETAILS);
        assert!(text.contains("60 earlier lines") && text.contains("line 99"), "{text}");
    }

    #[test]
    fn the_documented_precedence_decides_between_failures() {
        let order = [
            ErrorKind::Interrupted(Signal::Interrupt),
            ErrorKind::Internal,
            ErrorKind::Config,
            ErrorKind::Usage,
            ErrorKind::Auth,
            ErrorKind::Denied,
            ErrorKind::Timeout,
            ErrorKind::Protocol,
            ErrorKind::Unreachable,
            ErrorKind::Tool,
            ErrorKind::Check,
            ErrorKind::Partial,
        ];
        let codes: Vec<u8> = order.iter().map(|kind| kind.exit_code()).collect();
        assert_eq!(codes, [130, 1, 9, 2, 5, 6, 7, 10, 4, 3, 8, 11]);
        for (index, winner) in order.iter().enumerate() {
            for loser in order.iter().skip(index + 1) {
                let errors = [Error::new(*loser, "loser"), Error::new(*winner, "winner")];
                assert_eq!(decisive(&errors).unwrap().message(), "winner", "{winner:?} {loser:?}");
            }
        }
        assert!(decisive([]).is_none());
    }
}
