//! Breakpoints, and a call that one stopped.

use std::time::Duration;

use crate::host::breakpoints::{Breakpoint, HeldCall};
use crate::model::HoldPoint;
use crate::present::{Line, Page, Role, Table, TableColumn, approval};
use crate::util::json;
use crate::util::text::shorten;
use crate::util::units::show_span;

/// Maximum characters of what a client wrote.
const SHORT: usize = 300;

pub fn table(rules: &[Breakpoint], width: Option<usize>) -> Page {
    let mut table = Table::new([
        TableColumn::new("TOOLS").shrinks_last_to(12),
        TableColumn::new("CLIENT"),
        TableColumn::new("STOPS"),
        TableColumn::new("LIMIT").right(),
        TableColumn::new("THEN"),
    ]);
    for rule in rules {
        table.row([
            Line::styled(Role::Name, &rule.pattern),
            Line::plain(rule.client.as_deref().unwrap_or("any")),
            Line::plain(match rule.on {
                HoldPoint::Call => "before the call",
                HoldPoint::Result => "with the result",
            }),
            Line::plain(show_span(rule.limit)),
            Line::plain(then(rule)),
        ]);
    }
    table.layout(width)
}

pub fn then(rule: &Breakpoint) -> &'static str {
    if rule.continues { "continue" } else { "refuse" }
}

/// What a person sees of a stopped call.
pub fn page(held: &HeldCall) -> Page {
    let state = match held.result {
        None => " waits, and is not sent yet",
        Some(_) => " has a result, which waits",
    };
    let name = held.definition.name.full();
    let mut page = Page::from(Line::styled(Role::Name, name).then(Role::Plain, state));
    let mut fact = |key: &str, role: Role, text: &str| page.fact(11, key, Line::styled(role, text));
    if let Some(client) = &held.client {
        fact("client", Role::Plain, &shorten(client, SHORT));
    }
    fact("rule", Role::Plain, &held.rule.pattern);
    let after = if held.rule.continues { "goes on" } else { "is refused" };
    // A moment has passed already.
    let left = held.time_left.saturating_add(Duration::from_millis(999));
    fact("limit", Role::Plain, &format!("{after} in {}", show_span(left)));
    for problem in held.problem.iter().flat_map(|problem| problem.lines()) {
        fact("problem", Role::Error, problem);
    }
    approval::arguments(&mut page, &held.arguments);
    let Some(result) = &held.result else { return page };
    page.push(Line::styled(Role::Dim, "result").indented(2));
    if let Some(error) = &result.error {
        page.text(Role::Error, 4, error);
    }
    match &result.value {
        Some(value) => page.text(Role::Plain, 4, &json::pretty(value)),
        None if result.error.is_none() => page.text(Role::Warning, 4, "too long to be shown"),
        None => {}
    }
    page
}
