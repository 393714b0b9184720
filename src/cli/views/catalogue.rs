//! `list`: the catalogue as a table, as names, and as JSON; and what its failures mean.

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::findings;
use super::first_sentence;
use super::pins::Flagged;
use super::tool;
use crate::catalogue::{Catalogue, ServerListing};
use crate::cli::context::{out_of_service, plural};
use crate::cli::output::table::{Column, Table};
use crate::cli::output::{Label, Line, Page, fault};
use crate::config::spec::UntrustedEntry;
use crate::model::{Fault, Problem, Source, Speed, ToolDefinition, ToolStatus};

/// The most characters of a description that are shown in a list.
const MAX_DESCRIPTION: usize = 160;

/// The tools as a table, with a legend of the marks that occur in it. What is in `flagged` and is
/// more than a note is marked, and told below its tool.
pub fn page(tools: &[&ToolDefinition], flagged: &Flagged, width: Option<usize>) -> Page {
    let mut table = Table::new([
        Column::new(""),
        Column::new("NAME").cut_last(24),
        Column::new("SOURCE").shrinks_to(8).droppable(1),
        Column::new("SPEED").droppable(2),
        Column::new("DESCRIPTION").shrinks_to(20),
    ]);
    let mut seen = BTreeSet::new();
    for tool in tools {
        let marks = marks(tool, flagged);
        seen.extend(marks.iter().copied());
        let mut mark = Line::default();
        for each in &marks {
            mark.push(each.label(), each.sign());
        }
        let dim = matches!(tool.status, ToolStatus::Unavailable | ToolStatus::Untrusted);
        let speed = if tool.speed == Speed::default() { "" } else { tool.speed.as_str() };
        table.row([
            mark,
            Line::of(if dim { Label::Dim } else { Label::Name }, tool.name.full()),
            Line::of(Label::Dim, source(tool)),
            Line::plain(speed),
            Line::of(if dim { Label::Dim } else { Label::Plain }, description(tool)),
        ]);
        if let Some(found) = flagged.get(&tool.name.full()) {
            let mut below = Page::default();
            findings::lines(&mut below, found, 0, width.map(|width| width.saturating_sub(4)));
            for line in below.lines() {
                table.below(line.clone());
            }
        }
    }
    let mut page = table.layout(width);
    if !seen.is_empty() {
        page.gap();
        let mut legend = Line::default();
        for mark in seen {
            let next = Line::of(mark.label(), mark.sign())
                .then(Label::Dim, format!(" {}   ", mark.meaning()));
            if width.is_some_and(|width| legend.width() + next.width() > width) {
                page.push(std::mem::take(&mut legend));
            }
            legend.append(next);
        }
        page.push(legend);
    }
    page
}

/// `23 tools from 2 kinds and 1 server`.
pub fn summary(tools: &[&ToolDefinition]) -> String {
    let kinds: BTreeSet<&str> =
        tools.iter().filter(|t| t.source == Source::Internal).map(|t| t.kind).collect();
    let servers: BTreeSet<&str> = tools
        .iter()
        .filter(|t| t.source == Source::Mcp)
        .filter_map(|t| t.name.component())
        .collect();
    let mut text = plural(tools.len(), "tool", "tools");
    let kinds = (!kinds.is_empty()).then(|| plural(kinds.len(), "kind", "kinds"));
    let servers = (!servers.is_empty()).then(|| plural(servers.len(), "server", "servers"));
    let sources: Vec<String> = kinds.into_iter().chain(servers).collect();
    if !sources.is_empty() {
        text.push_str(" from ");
        text.push_str(&sources.join(" and "));
    }
    text
}

/// The documented JSON of `list`; with `flagged` each tool has its findings.
pub fn json<'a>(
    tools: &'a [&'a ToolDefinition],
    flagged: Option<&'a Flagged>,
    catalogue: &Catalogue,
    untrusted: &[UntrustedEntry],
    problems: Vec<Value>,
) -> impl Serialize + use<'a> {
    let servers: Vec<Value> = catalogue
        .servers
        .iter()
        .map(|server| {
            let is_untrusted = untrusted.iter().any(|entry| entry.name == server.name);
            let status = match (&server.fault, server.partial) {
                (Some(_), _) if is_untrusted => "untrusted",
                (Some(_), _) => "failed",
                (None, true) => "partial",
                (None, false) => "ok",
            };
            json!({
                "name": server.name,
                "status": status,
                "error": server.fault.as_ref().map(fault::object),
            })
        })
        .collect();
    Listing { tools: Tools { tools, flagged }, servers, problems }
}

#[derive(Serialize)]
struct Listing<'a> {
    tools: Tools<'a>,
    servers: Vec<Value>,
    problems: Vec<Value>,
}

/// Tools that become JSON one at a time: a tree of twenty thousand of them takes more memory than
/// everything else.
struct Tools<'a> {
    tools: &'a [&'a ToolDefinition],
    flagged: Option<&'a Flagged>,
}

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.tools.iter().map(|tool| {
            let mut value = tool::json(tool);
            if let Some(flagged) = self.flagged {
                let found = flagged.get(&tool.name.full()).map(Vec::as_slice);
                value["findings"] = findings::json(found.unwrap_or_default());
            }
            value
        }))
    }
}

/// What a listing failed with, when it did: 11 as long as something of what was asked for
/// answered, otherwise the decisive failure itself.
pub fn verdict(catalogue: &Catalogue, answered: bool) -> Option<Fault> {
    let incomplete: Vec<&ServerListing> =
        catalogue.servers.iter().filter(|s| s.fault.is_some() || s.partial).collect();
    if incomplete.is_empty() {
        return None;
    }
    let faults: Vec<&Fault> = incomplete.iter().filter_map(|s| s.fault.as_ref()).collect();
    let all_failed = faults.len() == catalogue.servers.len();
    if all_failed && !answered {
        let first = fault::decisive(faults.iter().copied())?;
        if let [only] = faults[..] {
            return Some(only.clone());
        }
        let message = format!("none of {} answered", plural(faults.len(), "server", "servers"));
        let shared = shared_hint(&faults);
        let fault = Fault::new(first.kind(), message)
            .details(faults.iter().flat_map(|fault| evidence(fault, shared.is_none())));
        return Some(match shared {
            Some(hint) => fault.hint(hint),
            None => fault,
        });
    }
    let total = plural(catalogue.servers.len(), "server", "servers");
    let message = if faults.is_empty() {
        format!("the list is incomplete: {} of {total} left something out", incomplete.len())
    } else {
        format!("the list is incomplete: {} of {total} could not be listed", faults.len())
    };
    let shared = shared_hint(&faults);
    let fault =
        Fault::partial(message).details(incomplete.iter().flat_map(|server| match &server.fault {
            Some(fault) => evidence(fault, shared.is_none()),
            None => vec![format!("server '{}': some of what it lists is missing", server.name)],
        }));
    Some(match shared {
        Some(hint) => fault.hint(hint),
        None => fault,
    })
}

/// The hint that helps against all of these.
fn shared_hint<'f>(faults: &[&'f Fault]) -> Option<&'f str> {
    let first = faults.first()?.hint_text()?;
    faults.iter().all(|fault| fault.hint_text() == Some(first)).then_some(first)
}

/// What a listing failed with, internal tools that could not be listed included. When nothing
/// of what was asked for answered, that is the failure itself.
pub fn with_failures(servers: Option<Fault>, failures: &[&Fault], answered: bool) -> Option<Fault> {
    let Some(first) = fault::decisive(failures.iter().copied()) else { return servers };
    let lines = failures.iter().flat_map(|fault| evidence(fault, true));
    Some(match (servers, failures) {
        (Some(fault), _) => fault.details(lines),
        (None, [only]) if !answered => (*only).clone(),
        (None, _) => {
            let count =
                plural(failures.len(), "group of internal tools", "groups of internal tools");
            let kind = if answered { Fault::partial("").kind() } else { first.kind() };
            Fault::new(kind, format!("the list is incomplete: {count} could not be listed"))
                .details(lines)
        }
    })
}

/// What a listing failed with, entries out of service included: with those it is usable and
/// incomplete.
pub fn joined(servers: Option<Fault>, problems: &[Problem]) -> Option<Fault> {
    const SHOWN: usize = 5;
    let errors: Vec<&Problem> = problems.iter().filter(|problem| problem.is_error()).collect();
    if errors.is_empty() {
        return servers;
    }
    let count =
        format!("{} out of service", plural(out_of_service(problems), "entry is", "entries are"));
    let lines = errors.iter().take(SHOWN).map(|problem| {
        let place = problem.place.as_ref().map(|place| format!("{}: ", fault::location(place)));
        format!("{}{}", place.unwrap_or_default(), problem.message)
    });
    Some(match servers {
        Some(fault) => fault.detail(count).details(lines.map(|line| format!("  {line}"))),
        None => Fault::partial(format!("the list is incomplete: {count}"))
            .details(lines)
            .hint("'toolhost config check' shows each with its line"),
    })
}

/// A failed server in a few lines: the failure, the server's last words, and its own hint. Of a
/// refusal the first lines are shown instead: they say what would start.
fn evidence(fault: &Fault, hinted: bool) -> Vec<String> {
    const LAST_WORDS: usize = 3;
    const FIRST_LINES: usize = 12;
    let most = if fault::tells_from_the_top(fault) { FIRST_LINES } else { LAST_WORDS };
    std::iter::once(fault::headline(fault))
        .chain(fault::details(fault, most).iter().map(|line| format!("  {line}")))
        .chain(fault.hint_text().filter(|_| hinted).map(|hint| format!("  hint: {hint}")))
        .collect()
}

/// What is listed under SOURCE: the server, or the kind of an internal tool.
fn source(tool: &ToolDefinition) -> &str {
    match tool.source {
        Source::Mcp => tool.name.component().unwrap_or("mcp"),
        Source::Internal => tool.kind,
    }
}

fn description(tool: &ToolDefinition) -> String {
    let text = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
    let sentence = first_sentence(text);
    let count = sentence.chars().count();
    if count <= MAX_DESCRIPTION {
        return sentence;
    }
    let head: String = sentence.chars().take(MAX_DESCRIPTION).collect();
    format!("{head}… ({count} characters)")
}

/// Something to know about a tool before calling it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    Asks,
    Drifted,
    Changed,
    Flagged,
    Unchecked,
    Unavailable,
    Untrusted,
}

impl Mark {
    fn sign(self) -> &'static str {
        match self {
            Self::Asks => "!",
            Self::Drifted => "~",
            Self::Changed => "%",
            Self::Flagged => "*",
            Self::Unchecked => "?",
            Self::Unavailable => "x",
            Self::Untrusted => "-",
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::Asks => "asks before it runs",
            Self::Drifted => "differs from its declaration",
            Self::Changed => "differs from its pin, verify shows how",
            Self::Flagged => "suspicious",
            Self::Unchecked => "arguments are not checked",
            Self::Unavailable => "cannot be called, inspect says why",
            Self::Untrusted => "not trusted yet, see 'toolhost trust'",
        }
    }

    fn label(self) -> Label {
        match self {
            Self::Asks | Self::Drifted | Self::Unchecked | Self::Flagged | Self::Untrusted => {
                Label::Warning
            }
            Self::Unavailable | Self::Changed => Label::Error,
        }
    }
}

fn marks(tool: &ToolDefinition, flagged: &Flagged) -> Vec<Mark> {
    let mut marks = Vec::new();
    if tool.requires_approval || tool.annotations.destructive == Some(true) {
        marks.push(Mark::Asks);
    }
    match tool.status {
        ToolStatus::Drifted => marks.push(Mark::Drifted),
        ToolStatus::Changed => marks.push(Mark::Changed),
        ToolStatus::Unchecked => marks.push(Mark::Unchecked),
        ToolStatus::Unavailable => marks.push(Mark::Unavailable),
        ToolStatus::Untrusted => marks.push(Mark::Untrusted),
        ToolStatus::Live | ToolStatus::Declared => {}
    }
    if flagged.get(&tool.name.full()).is_some_and(|found| findings::serious(found) > 0) {
        marks.push(Mark::Flagged);
    }
    marks
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::super::tool::tests::{builtin, remote};
    use super::*;
    use crate::cli::output::{Palette, json as json_text};

    fn tools() -> Vec<ToolDefinition> {
        let mut asks = remote("github", "delete_repo", "Deletes a repository. Forever.");
        asks.annotations.destructive = Some(true);
        let mut gone = remote("browser", "open", "Opens a page");
        gone.status = ToolStatus::Unavailable;
        let mut evil = remote("evil", "x\u{1b}[2J", "\u{202e}reversed\u{1b}]0;title\u{7}");
        evil.status = ToolStatus::Drifted;
        vec![
            builtin("calculator", "Computes an expression. With operators."),
            builtin("日本語", "Wide name"),
            asks,
            gone,
            evil,
        ]
    }

    fn shown(width: Option<usize>) -> String {
        let tools = tools();
        let tools: Vec<&ToolDefinition> = tools.iter().collect();
        Palette::default().page(&page(&tools, &Flagged::new(), width))
    }

    #[test]
    fn the_list_fits_a_wide_terminal() {
        assert_snapshot!(shown(Some(120)), @r"
           NAME                SOURCE   DESCRIPTION
           calculator          builtin  Computes an expression
           日本語              builtin  Wide name
        !  github-delete_repo  github   Deletes a repository
        x  browser-open        browser  Opens a page
        ~  evil-x␛[2J          evil     ⟨U+202E⟩reversed␛]0;title\x07

        ! asks before it runs   ~ differs from its declaration   x cannot be called, inspect says why
        ");
    }

    #[test]
    fn the_list_fits_an_ordinary_terminal() {
        assert_snapshot!(shown(Some(80)), @r"
           NAME                SOURCE   DESCRIPTION
           calculator          builtin  Computes an expression
           日本語              builtin  Wide name
        !  github-delete_repo  github   Deletes a repository
        x  browser-open        browser  Opens a page
        ~  evil-x␛[2J          evil     ⟨U+202E⟩reversed␛]0;title\x07

        ! asks before it runs   ~ differs from its declaration
        x cannot be called, inspect says why
        ");
    }

    #[test]
    fn the_list_fits_a_narrow_terminal() {
        assert_snapshot!(shown(Some(60)), @r"
           NAME                SOURCE   DESCRIPTION
           calculator          builtin  Computes an expression
           日本語              builtin  Wide name
        !  github-delete_repo  github   Deletes a repository
        x  browser-open        browser  Opens a page
        ~  evil-x␛[2J          evil     ⟨U+202E⟩reversed␛]0;title\x…

        ! asks before it runs   ~ differs from its declaration
        x cannot be called, inspect says why
        ");
    }

    #[test]
    fn the_summary_counts_kinds_and_servers() {
        let tools = tools();
        let tools: Vec<&ToolDefinition> = tools.iter().collect();
        assert_eq!(summary(&tools), "5 tools from 1 kind and 3 servers");
        assert_eq!(summary(&tools[..1]), "1 tool from 1 kind");
        assert_eq!(summary(&[]), "0 tools");
    }

    fn listing(name: &str, fault: Option<Fault>, partial: bool) -> ServerListing {
        ServerListing { name: name.to_owned(), fault, partial }
    }

    fn with(servers: Vec<ServerListing>) -> Catalogue {
        Catalogue { servers, ..Catalogue::default() }
    }

    #[test]
    fn a_failed_server_beside_an_answer_is_partial() {
        let dead = Fault::unreachable("exited").server("a").detail("boom").hint("look at it");
        let catalogue = with(vec![listing("a", Some(dead), false), listing("b", None, false)]);
        let fault = verdict(&catalogue, true).unwrap();
        assert_eq!(fault.kind().exit_code(), 11);
        assert_snapshot!(Palette::default().page(&fault::page(&fault)), @r"
        error: the list is incomplete: 1 of 2 servers could not be listed
          server 'a': exited
            boom
          hint: look at it
        ");
    }

    #[test]
    fn nothing_answered_has_the_code_of_the_failure() {
        let dead = || Fault::unreachable("exited").server("a");
        let catalogue = with(vec![listing("a", Some(dead()), false)]);
        assert_eq!(verdict(&catalogue, false).unwrap().kind().exit_code(), 4);
        assert_eq!(verdict(&catalogue, true).unwrap().kind().exit_code(), 11);
        let auth = Fault::auth("no token").server("b");
        let both = with(vec![listing("a", Some(dead()), false), listing("b", Some(auth), false)]);
        assert_eq!(verdict(&both, false).unwrap().kind().exit_code(), 5);
    }

    #[test]
    fn an_incomplete_page_is_partial_and_health_is_nothing() {
        assert!(verdict(&with(vec![listing("a", None, false)]), true).is_none());
        assert!(verdict(&with(Vec::new()), false).is_none());
        let partial = with(vec![listing("a", None, true)]);
        assert_eq!(verdict(&partial, true).unwrap().kind().exit_code(), 11);
    }

    #[test]
    fn the_json_has_the_documented_shape() {
        let tool = builtin("calculator", "Computes");
        let dead = Fault::unreachable("exited").server("a");
        let catalogue = with(vec![listing("a", Some(dead), false), listing("b", None, false)]);
        let tools = [&tool];
        let value = json(&tools, None, &catalogue, &[], Vec::new());
        assert_snapshot!(json_text::pretty(&value), @r#"
        {
          "tools": [
            {
              "name": "calculator",
              "tool": "calculator",
              "component": null,
              "server": null,
              "source": "internal",
              "kind": "builtin",
              "title": null,
              "description": "Computes",
              "category": null,
              "speed": "medium",
              "safety": "native",
              "requires_approval": false,
              "status": "live",
              "input_schema": {
                "type": "object"
              },
              "output_schema": null,
              "annotations": {},
              "timeout_ms": 30000.0,
              "retries": 0,
              "scope": "global",
              "version": null,
              "fingerprint": "sha256:a7258cb8a3080f867a65246581b72943480f5d0364e77d16b79d79f1944b816d"
            }
          ],
          "servers": [
            {
              "name": "a",
              "status": "failed",
              "error": {
                "kind": "unreachable",
                "message": "exited",
                "server": "a",
                "hint": null
              }
            },
            {
              "name": "b",
              "status": "ok",
              "error": null
            }
          ],
          "problems": []
        }
        "#);
    }
}
