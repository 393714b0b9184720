//! Comparisons with pins, as pages and as JSON.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{difference, findings};
use crate::catalogue::changes::{self, Change};
use crate::catalogue::pins::{Report, State, ToolReport};
use crate::catalogue::scan::Finding;
use crate::cli::output::{Label, Line, Page};

/// The most lines of one part of a definition; JSON has all of them.
const MAX_LINES: usize = 200;
/// The most new tools that are named one by one.
const MAX_NEW: usize = 30;

/// What is suspicious, by the full names of tools.
pub type Flagged = HashMap<String, Vec<Finding>>;

/// What is not as it was pinned, with the differences. What is the same is only counted.
pub fn page(report: &Report, flagged: &Flagged, width: Option<usize>) -> Page {
    let mut page = Page::default();
    for server in &report.servers {
        page.push(
            Line::of(Label::Error, "changed    ")
                .then(Label::Plain, "server ")
                .then(Label::Name, &server.name),
        );
        parts(&mut page, &server.changes);
    }
    for state in [State::Changed, State::Gone, State::Unchecked, State::New] {
        let all: Vec<&ToolReport> =
            report.tools.iter().filter(|tool| tool.state == state).collect();
        let most = if state == State::New { MAX_NEW } else { usize::MAX };
        for tool in all.iter().take(most) {
            let mut line = Line::of(label(state), state.as_str());
            line.pad_to(11);
            page.push(line.then(Label::Name, &tool.name));
            parts(&mut page, &tool.changes);
            notes(&mut page, tool, flagged, width);
        }
        if let Some(hidden @ 1..) = all.len().checked_sub(most) {
            page.push(Line::of(Label::Dim, format!("and {hidden} more that are new")));
        }
    }
    for tool in report.tools.iter().filter(|tool| tool.state == State::Same) {
        if flagged.contains_key(&tool.name) {
            let mut line = Line::of(label(State::Same), State::Same.as_str());
            line.pad_to(11);
            page.push(line.then(Label::Name, &tool.name));
            notes(&mut page, tool, flagged, width);
        }
    }
    page
}

fn notes(page: &mut Page, tool: &ToolReport, flagged: &Flagged, width: Option<usize>) {
    if let Some(found) = flagged.get(&tool.name) {
        findings::lines(page, found, 2, width);
    }
}

/// Each changed part with its difference.
pub fn parts(page: &mut Page, all: &[Change]) {
    for change in all {
        page.push(Line::of(Label::Heading, change.part).indented(2));
        let hunks = change.hunks();
        if hunks.is_empty() {
            let text = "differs beyond what is compared line by line";
            page.push(Line::of(Label::Dim, text).indented(4));
        }
        let mut body = Page::default();
        for (at, hunk) in hunks.iter().enumerate() {
            if at > 0 {
                body.push(Line::of(Label::Dim, "…").indented(4));
            }
            difference::lines(&mut body, hunk, 4);
        }
        let all = body.lines().len();
        for line in body.lines().iter().take(MAX_LINES) {
            page.push(line.clone());
        }
        if let Some(hidden @ 1..) = all.checked_sub(MAX_LINES) {
            let text = format!("({hidden} more lines, --json has them)");
            page.push(Line::of(Label::Dim, text).indented(4));
        }
    }
}

/// `2 changed, 1 gone, 3 new, 20 the same`.
pub fn summary(report: &Report) -> String {
    let words = [
        (State::Changed, "changed"),
        (State::Gone, "gone"),
        (State::Unchecked, "not checked"),
        (State::New, "new"),
        (State::Same, "the same"),
    ];
    let counts: Vec<String> = words
        .into_iter()
        .filter_map(|(state, word)| {
            let count = report.count(state);
            (count > 0).then(|| format!("{count} {word}"))
        })
        .collect();
    if counts.is_empty() { "no tool".to_owned() } else { counts.join(", ") }
}

/// The documented JSON.
pub fn json(report: &Report, flagged: &Flagged) -> Value {
    let tools = report.tools.iter().map(|tool| {
        let found = flagged.get(&tool.name).map(Vec::as_slice).unwrap_or_default();
        json!({
            "name": tool.name,
            "server": tool.server,
            "state": tool.state.as_str(),
            "pinned": tool.pinned,
            "fingerprint": tool.now,
            "changes": changes::json(&tool.changes),
            "findings": findings::json(found),
        })
    });
    let tools: Vec<Value> = tools.collect();
    let servers = report
        .servers
        .iter()
        .map(|server| json!({ "name": server.name, "changes": changes::json(&server.changes) }));
    let servers: Vec<Value> = servers.collect();
    let counts: serde_json::Map<String, Value> =
        [State::Changed, State::Gone, State::New, State::Unchecked, State::Same]
            .into_iter()
            .map(|state| (state.as_str().to_owned(), report.count(state).into()))
            .collect();
    json!({ "tools": tools, "servers": servers, "counts": counts })
}

fn label(state: State) -> Label {
    match state {
        State::Changed | State::Gone => Label::Error,
        State::New => Label::Good,
        State::Unchecked => Label::Warning,
        State::Same => Label::Dim,
    }
}
