//! `list`: the catalogue as a table, and the listing failures.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value};

use crate::catalogue::scan::FindingsByTool;
use crate::catalogue::{Catalogue, ServerListing};
use crate::host::example::resolve;
use crate::model::{Diagnostic, Error, ErrorKind, Speed, ToolDefinition, ToolSource, ToolStatus};
use crate::present::{
    Line, Page, Role, Table, TableColumn, caret, configuration::out_of_service, findings,
    first_sentence, messages, plural,
};
use crate::stats::Usage;
use crate::stats::comparison::ExceededSpeed;
use crate::util::text::shorten;

const MAX_DESCRIPTION: usize = 160;

/// The tools as a table, with a legend for the marks that occur in it. Findings in `flagged` that
/// are more than a note are marked, and shown below their tool. So are tools that `usages` shows to
/// be slower than declared.
pub fn page(
    tools: &[&ToolDefinition],
    flagged: &FindingsByTool,
    usages: &[Usage],
    width: Option<usize>,
) -> Page {
    let mut table = Table::new([
        TableColumn::new(""),
        TableColumn::new("NAME").shrinks_last_to(24),
        TableColumn::new("ARGUMENTS").shrinks_to(16).droppable(3),
        TableColumn::new("SOURCE").shrinks_to(8).droppable(1),
        TableColumn::new("SPEED").droppable(2),
        TableColumn::new("DESCRIPTION").shrinks_to(20),
    ]);
    let usages: HashMap<&str, &Usage> =
        usages.iter().map(|usage| (usage.tool.name.as_str(), usage)).collect();
    // Where there is little room, what a tool does says more than what it takes.
    let is_wide = width.is_none_or(|width| width >= 110);
    let mut seen = BTreeSet::new();
    for tool in tools {
        let marks = marks(tool, flagged, usages.get(tool.name.full().as_str()).copied());
        seen.extend(marks.iter().copied());
        let mut mark = Line::default();
        for each in &marks {
            let (role, sign, _) = each.look();
            mark.push(role, sign);
        }
        let dim = matches!(tool.status, ToolStatus::Unavailable | ToolStatus::Untrusted);
        let speed = if tool.speed == Speed::default() { "" } else { tool.speed.as_str() };
        table.row([
            mark,
            Line::styled(if dim { Role::Dim } else { Role::Name }, tool.name.full()),
            Line::styled(Role::Dim, if is_wide { arguments(tool) } else { String::new() }),
            Line::styled(Role::Dim, source(tool)),
            Line::plain(speed),
            Line::styled(if dim { Role::Dim } else { Role::Plain }, description(tool)),
        ]);
        if let Some(findings) = flagged.get(&tool.name.full()) {
            let mut below = Page::default();
            findings::lines(&mut below, findings, 0, width.map(|width| width.saturating_sub(4)));
            table.details(&below);
        }
    }
    let mut page = table.layout(width);
    if !seen.is_empty() {
        page.blank_line();
        let mut legend = Line::default();
        for mark in seen {
            let (role, sign, meaning) = mark.look();
            let next = Line::styled(role, sign).then(Role::Dim, format!(" {meaning}   "));
            if width.is_some_and(|width| legend.width() + next.width() > width) {
                page.push(std::mem::take(&mut legend));
            }
            legend.append(next);
        }
        page.push(legend);
    }
    page
}

/// `23 tools from 2 kinds and 1 with_server`.
pub fn summary(tools: &[&ToolDefinition]) -> String {
    let kinds: BTreeSet<&str> =
        tools.iter().filter(|t| t.source == ToolSource::Internal).map(|t| &*t.kind).collect();
    let servers: BTreeSet<&str> = tools
        .iter()
        .filter(|t| t.source == ToolSource::Mcp)
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

/// The error of a listing of everything, if any: what servers, groups of internal tools and entries
/// that are out of service left out. `answered` says whether internal tools could be listed.
pub fn whole_verdict(
    catalogue: &Catalogue,
    failures: &[&Error],
    problems: &[Diagnostic],
    broken: usize,
    answered: bool,
) -> Option<Error> {
    let answered = answered || catalogue.servers.iter().any(|server| server.error.is_none());
    let verdict = with_failures(verdict(catalogue, broken, answered), failures, answered);
    with_disabled_entries(verdict, problems, answered)
}

/// The error of a failed listing, if any: exit code 11 if at least one server or kind
/// responded, otherwise the decisive failure itself. Beside those that were asked there are `broken`
/// servers, whose entries are out of service.
pub fn verdict(catalogue: &Catalogue, broken: usize, answered: bool) -> Option<Error> {
    let incomplete: Vec<&ServerListing> =
        catalogue.servers.iter().filter(|s| s.error.is_some() || s.is_partial).collect();
    let errors: Vec<&Error> = incomplete.iter().filter_map(|s| s.error.as_ref()).collect();
    let total = catalogue.servers.len() + broken;
    let Some(decisive) = messages::decisive(errors.iter().copied()) else {
        return partial(incomplete.iter().map(|server| server.name.as_str()), total);
    };
    let error = if errors.len() == catalogue.servers.len() && !answered {
        if let ([only], 0) = (&errors[..], broken) {
            return Some((*only).clone());
        }
        // A mistake in an entry counts before what a server does.
        let kind = if broken > 0 { ErrorKind::Config } else { decisive.kind() };
        Error::new(kind, format!("none of {} answered", plural(total, "server", "servers")))
    } else {
        let (missing, total) = (errors.len() + broken, plural(total, "server", "servers"));
        Error::partial(format!("the list is incomplete: {missing} of {total} could not be listed"))
    };
    let shared = shared_hint(&errors);
    let error = error.with_details(incomplete.iter().flat_map(|server| match &server.error {
        Some(error) => evidence(error, shared.is_none()),
        None => vec![missing_part(&server.name)],
    }));
    Some(shared.into_iter().fold(error, Error::with_hint))
}

/// The error of servers that returned only part of their list, if there are any.
pub fn partial<'s>(servers: impl Iterator<Item = &'s str>, total: usize) -> Option<Error> {
    let details: Vec<String> = servers.map(missing_part).collect();
    let total = plural(total, "server", "servers");
    let message =
        format!("the list is incomplete: {} of {total} returned a partial list", details.len());
    (!details.is_empty()).then(|| Error::partial(message).with_details(details))
}

fn missing_part(server: &str) -> String {
    format!("server '{server}': part of its list is missing")
}

fn shared_hint<'f>(errors: &[&'f Error]) -> Option<&'f str> {
    let first = errors.first()?.hint()?;
    errors.iter().all(|error| error.hint() == Some(first)).then_some(first)
}

/// The error of a failed listing, including internal tools that could not be listed. If nothing
/// responded, that is the failure itself.
fn with_failures(servers: Option<Error>, failures: &[&Error], answered: bool) -> Option<Error> {
    let Some(first) = messages::decisive(failures.iter().copied()) else { return servers };
    let lines = failures.iter().flat_map(|error| evidence(error, true));
    Some(match (servers, failures) {
        (Some(error), _) => error.with_details(lines),
        (None, [only]) if !answered => (*only).clone(),
        (None, _) => {
            let count =
                plural(failures.len(), "group of internal tools", "groups of internal tools");
            let kind = if answered { Error::partial("").kind() } else { first.kind() };
            Error::new(kind, format!("the list is incomplete: {count} could not be listed"))
                .with_details(lines)
        }
    })
}

/// The error of a listing, including entries that are out of service: these make it incomplete, and
/// useless if nothing `answered`.
fn with_disabled_entries(
    servers: Option<Error>,
    problems: &[Diagnostic],
    answered: bool,
) -> Option<Error> {
    const SHOWN: usize = 5;
    let errors: Vec<&Diagnostic> = problems.iter().filter(|problem| problem.is_error()).collect();
    if errors.is_empty() {
        return servers;
    }
    let count =
        format!("{} out of service", plural(out_of_service(problems), "entry is", "entries are"));
    let lines = errors.iter().take(SHOWN).map(|problem| messages::located(problem));
    if let Some(error) = servers {
        let lines = lines.map(|line| format!("  {line}"));
        return Some(error.with_detail(count).with_details(lines));
    }
    let error = if answered {
        Error::partial(format!("the list is incomplete: {count}"))
    } else {
        Error::config(format!("nothing could be listed: {count}"))
    };
    let hint = "'toolhost config check' shows each with its line";
    Some(error.with_details(lines).with_hint(hint))
}

/// A failed server in a few lines: the failure, the last lines of its output, and its hint. For a
/// refusal, the first lines are shown instead: they say what would be started.
fn evidence(error: &Error, hinted: bool) -> Vec<String> {
    const LAST_WORDS: usize = 3;
    const FIRST_LINES: usize = 12;
    let most = if messages::has_leading_details(error) { FIRST_LINES } else { LAST_WORDS };
    // A refusal has a location too, but there is no mistake at it.
    let place = error.location().filter(|_| error.kind() == ErrorKind::Config);
    std::iter::once(messages::headline(error))
        .chain(place.map(|place| format!("  at {}", caret::location(place))))
        .chain(messages::details(error, most).iter().map(|line| format!("  {line}")))
        .chain(error.hint().filter(|_| hinted).map(|hint| format!("  hint: {hint}")))
        .collect()
}

/// The SOURCE column: the server, or the kind of an internal tool.
fn source(tool: &ToolDefinition) -> &str {
    match tool.source {
        ToolSource::Mcp => tool.name.component().unwrap_or("mcp"),
        ToolSource::Internal => &tool.kind,
    }
}

/// The names of its arguments, those that may be left out in brackets.
fn arguments(tool: &ToolDefinition) -> String {
    const MOST: usize = 8;
    let schema = tool.input_schema.top();
    let schema = resolve(&schema, &schema, 0);
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| {
        required.is_some_and(|all| all.iter().any(|required| required.as_str() == Some(name)))
    };
    let names = properties.into_iter().flat_map(Map::keys);
    let (needed, optional): (Vec<&String>, Vec<&String>) =
        names.partition(|name| is_required(name));
    let optional = optional.into_iter().map(|name| format!("[{name}]"));
    let parameters: Vec<String> = needed.into_iter().cloned().chain(optional).collect();
    let more = if parameters.len() > MOST { " …" } else { "" };
    format!("{}{more}", parameters.get(..MOST).unwrap_or(&parameters).join(" "))
}

/// What a tool does or, if it cannot be called, why not.
fn description(tool: &ToolDefinition) -> String {
    if let (ToolStatus::Unavailable, Some(reason)) = (tool.status, &tool.unavailable_reason) {
        return reason.message().to_owned();
    }
    let text = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
    shorten(&first_sentence(text), MAX_DESCRIPTION).into_owned()
}

/// Something to know about a tool before calling it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ToolMark {
    Asks,
    Destructive,
    ReadOnly,
    Drifted,
    Changed,
    Flagged,
    Unchecked,
    Slow,
    Unavailable,
    Untrusted,
}

impl ToolMark {
    /// Its sign in the list, and what that means.
    fn look(self) -> (Role, &'static str, &'static str) {
        match self {
            Self::Asks => (Role::Warning, "!", "asks before it runs"),
            Self::Destructive => (Role::Error, "d", "may destroy something"),
            Self::ReadOnly => (Role::Dim, "r", "only reads"),
            Self::Drifted => (Role::Warning, "~", "differs from its declaration"),
            Self::Changed => (Role::Error, "%", "differs from its pin, verify shows how"),
            Self::Flagged => (Role::Warning, "*", "suspicious"),
            Self::Unchecked => (Role::Warning, "?", "arguments are not checked"),
            Self::Slow => (Role::Warning, "s", "slower than declared, inspect says how"),
            Self::Unavailable => (Role::Error, "x", "cannot be called, inspect says why"),
            Self::Untrusted => (Role::Warning, "-", "not trusted yet, see 'toolhost trust'"),
        }
    }
}

fn marks(tool: &ToolDefinition, flagged: &FindingsByTool, usage: Option<&Usage>) -> Vec<ToolMark> {
    let mut marks = Vec::new();
    if tool.requires_approval || tool.annotations.destructive == Some(true) {
        marks.push(ToolMark::Asks);
    }
    match (tool.annotations.destructive, tool.annotations.read_only) {
        (Some(true), _) => marks.push(ToolMark::Destructive),
        (_, Some(true)) => marks.push(ToolMark::ReadOnly),
        _ => {}
    }
    match tool.status {
        ToolStatus::Drifted => marks.push(ToolMark::Drifted),
        ToolStatus::Changed => marks.push(ToolMark::Changed),
        ToolStatus::Unchecked => marks.push(ToolMark::Unchecked),
        ToolStatus::Unavailable => marks.push(ToolMark::Unavailable),
        ToolStatus::Untrusted => marks.push(ToolMark::Untrusted),
        ToolStatus::Live | ToolStatus::Declared => {}
    }
    if flagged
        .get(&tool.name.full())
        .is_some_and(|findings| findings::count_above_note(findings) > 0)
    {
        marks.push(ToolMark::Flagged);
    }
    if usage.is_some_and(|usage| ExceededSpeed::of(tool, usage).is_some()) {
        marks.push(ToolMark::Slow);
    }
    marks
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use crate::cli::json::tool::{ListJson, ListedServers};
    use crate::present::{
        catalogue::*,
        page::LineRenderer,
        tool::tests::{builtin, remote},
    };
    use crate::util::json;

    fn tools() -> Vec<ToolDefinition> {
        let mut asks = remote("github", "delete_repo", "Deletes a repository. Forever.");
        asks.annotations.destructive = Some(true);
        let mut gone = remote("browser", "open", "Opens a page");
        gone.mark_unavailable(Error::unreachable("not running"));
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
        LineRenderer::default().page(&page(&tools, &FindingsByTool::new(), &[], width))
    }

    #[test]
    fn the_list_fits_a_wide_terminal() {
        assert_snapshot!(shown(Some(120)), @r"
            NAME                SOURCE   DESCRIPTION
            calculator          builtin  Computes an expression
            日本語              builtin  Wide name
        !d  github-delete_repo  github   Deletes a repository
        x   browser-open        browser  not running
        ~   evil-x␛[2J          evil     ⟨U+202E⟩reversed␛]0;title\x07

        ! asks before it runs   d may destroy something   ~ differs from its declaration
        x cannot be called, inspect says why
        ");
    }

    #[test]
    fn the_list_fits_an_ordinary_terminal() {
        assert_snapshot!(shown(Some(80)), @r"
            NAME                SOURCE   DESCRIPTION
            calculator          builtin  Computes an expression
            日本語              builtin  Wide name
        !d  github-delete_repo  github   Deletes a repository
        x   browser-open        browser  not running
        ~   evil-x␛[2J          evil     ⟨U+202E⟩reversed␛]0;title\x07

        ! asks before it runs   d may destroy something
        ~ differs from its declaration   x cannot be called, inspect says why
        ");
    }

    #[test]
    fn the_list_fits_a_narrow_terminal() {
        assert_snapshot!(shown(Some(60)), @r"
            NAME                SOURCE   DESCRIPTION
            calculator          builtin  Computes an expression
            日本語              builtin  Wide name
        !d  github-delete_repo  github   Deletes a repository
        x   browser-open        browser  not running
        ~   evil-x␛[2J          evil     ⟨U+202E⟩reversed␛]0;title\…

        ! asks before it runs   d may destroy something
        ~ differs from its declaration
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

    fn listing(name: &str, error: Option<Error>, partial: bool) -> ServerListing {
        ServerListing { name: name.to_owned(), error, is_partial: partial }
    }

    fn with(servers: Vec<ServerListing>) -> Catalogue {
        Catalogue { servers, ..Catalogue::default() }
    }

    #[test]
    fn a_failed_server_beside_an_answer_is_partial() {
        let dead = Error::unreachable("exited")
            .with_server("a")
            .with_detail("boom")
            .with_hint("look at it");
        let catalogue = with(vec![listing("a", Some(dead), false), listing("b", None, false)]);
        let error = verdict(&catalogue, 0, true).unwrap();
        assert_eq!(error.kind().exit_code(), 11);
        assert_snapshot!(LineRenderer::default().page(&messages::page(&error)), @r"
        error: the list is incomplete: 1 of 2 servers could not be listed
          server 'a': exited
            boom
          hint: look at it
        ");
    }

    #[test]
    fn nothing_answered_has_the_code_of_the_failure() {
        let dead = || Error::unreachable("exited").with_server("a");
        let catalogue = with(vec![listing("a", Some(dead()), false)]);
        assert_eq!(verdict(&catalogue, 0, false).unwrap().kind().exit_code(), 4);
        assert_eq!(verdict(&catalogue, 0, true).unwrap().kind().exit_code(), 11);
        let auth = Error::auth("no token").with_server("b");
        let both = with(vec![listing("a", Some(dead()), false), listing("b", Some(auth), false)]);
        assert_eq!(verdict(&both, 0, false).unwrap().kind().exit_code(), 5);
    }

    #[test]
    fn an_incomplete_page_is_partial_and_health_is_nothing() {
        assert!(verdict(&with(vec![listing("a", None, false)]), 0, true).is_none());
        assert!(verdict(&with(Vec::new()), 0, false).is_none());
        let partial = with(vec![listing("a", None, true)]);
        assert_eq!(verdict(&partial, 0, true).unwrap().kind().exit_code(), 11);
    }

    #[test]
    fn the_json_has_the_documented_shape() {
        let tool = builtin("calculator", "Computes");
        let dead = Error::unreachable("exited").with_server("a");
        let catalogue = with(vec![listing("a", Some(dead), false), listing("b", None, false)]);
        let tools = [&tool];
        let listed = ListedServers { catalogue: &catalogue, untrusted: &[], broken: &[] };
        let value = ListJson::new(&tools, None, &[], &listed, std::iter::empty());
        assert_snapshot!(json::pretty(&value), @r#"
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
              "fingerprint": "sha256:a7258cb8a3080f867a65246581b72943480f5d0364e77d16b79d79f1944b816d",
              "program": null,
              "slower_than_declared": null
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
