//! `servers`, and `inspect` of a server.

use std::time::Duration;

use crate::present::{
    Line, Page, Role, Table, TableColumn, messages, plural, server_entry::ServerEntryView,
};
use serde_json::Value;

use crate::model::{Error, ErrorKind, PastError, ServerState, ServerStatus};
use crate::util::json;
use crate::util::tail::reports_error;
use crate::util::text::shorten;
use crate::util::timestamp::local_time;
use crate::util::units::{show_duration, show_size, show_span};

/// Maximum number of characters of instructions to show; JSON has all of them.
const MAX_INSTRUCTIONS: usize = 2_000;
const MAX_CAPABILITIES: usize = 4_000;

/// The most informative line of a failure: what a refusal kept from starting, what the server wrote
/// about its error or wrote last, else what was found last.
fn key_line(error: &Error) -> Option<&str> {
    let lines = error.details();
    if error.kind() == ErrorKind::Denied {
        return lines.first().map(String::as_str);
    }
    let written = || lines.iter().filter(|line| line.starts_with("stderr: "));
    let reported = written().rfind(|line| reports_error(line.trim_start_matches("stderr: ")));
    reported.or(written().next_back()).or(lines.last()).map(String::as_str)
}

/// The servers as a table, with the last failure of each below its row, and with `verbose` the end
/// of its stderr.
pub fn table(servers: &[ServerStatus], verbose: bool, width: Option<usize>) -> Page {
    let mut table = Table::new([
        TableColumn::new("NAME").shrinks_last_to(12),
        TableColumn::new("STATUS"),
        TableColumn::new("ERA").droppable(12),
        TableColumn::new("PROTOCOL").droppable(8),
        TableColumn::new("TRANSPORT").droppable(7),
        TableColumn::new("PID").right().droppable(6),
        TableColumn::new("MEM").right().droppable(4),
        TableColumn::new("CONNECT").right().droppable(3),
        TableColumn::new("PING").right().droppable(2),
        TableColumn::new("UPTIME").right().droppable(9),
        TableColumn::new("RESTARTS").right().droppable(5),
        TableColumn::new("WEIGHT").right().droppable(5),
        TableColumn::new("TOOLS").right(),
        TableColumn::new("RESOURCES").right().droppable(10),
        TableColumn::new("PROMPTS").right().droppable(10),
    ]);
    for server in servers {
        let count = |value: Option<usize>| {
            Line::plain(value.map(|count| count.to_string()).unwrap_or_default())
        };
        let duration =
            |value: Option<Duration>| Line::plain(value.map(show_duration).unwrap_or_default());
        table.row([
            Line::styled(Role::Name, &server.name),
            Line::styled(state_label(&server.state), server.state.as_str()),
            Line::plain(server.era.map(crate::model::Era::as_str).unwrap_or_default()),
            Line::plain(server.protocol.as_deref().unwrap_or_default()),
            Line::plain(&*server.transport),
            Line::plain(server.pid.map(|pid| pid.to_string()).unwrap_or_default()),
            Line::plain(server.memory.map(show_size).unwrap_or_default()),
            duration(server.connect),
            duration(server.ping),
            Line::plain(uptime(server).unwrap_or_default()),
            Line::plain(restarts(server).map(|count| count.to_string()).unwrap_or_default()),
            Line::plain(server.weight.map(|weight| weight.to_string()).unwrap_or_default()),
            count(server.tools),
            count(server.resources),
            count(server.prompts),
        ]);
        if let Some(error) = server.state.error() {
            table.detail_line(
                Line::styled(Role::Error, format!("{}: ", error.kind().as_str()))
                    .then(Role::Plain, error.message()),
            );
            if let Some(line) = key_line(error) {
                table.detail_line(Line::styled(Role::Dim, line));
            }
            if let Some(hint) = error.hint() {
                table.detail_line(Line::styled(Role::Hint, "hint: ").then(Role::Plain, hint));
            }
        }
        if let (Some(past), false) = (&server.last_error, is_failed(server)) {
            let text = format!("last error, {}", past_error(past));
            table.detail_line(Line::styled(Role::Dim, text));
        }
        for warning in &server.warnings {
            table.detail_line(Line::styled(Role::Warning, "warning: ").then(Role::Plain, warning));
        }
        if verbose {
            for line in last(&server.stderr_tail, TAIL) {
                table.detail_line(Line::styled(Role::Dim, "stderr: ").then(Role::Dim, line));
            }
        }
    }
    table.layout(width)
}

/// Minimum uptime worth a column: in a short run every server is younger than this.
const WORTH_TELLING: Duration = Duration::from_secs(5);
const TAIL: usize = 5;

fn uptime(server: &ServerStatus) -> Option<String> {
    server.uptime.filter(|uptime| *uptime >= WORTH_TELLING).map(show_span)
}

fn is_failed(server: &ServerStatus) -> bool {
    server.state.error().is_some()
}

fn restarts(server: &ServerStatus) -> Option<u32> {
    Some(server.starts.saturating_sub(1)).filter(|count| *count > 0)
}

fn past_error(past: &PastError) -> String {
    let at = local_time(past.at.as_secs_f64());
    format!("{at}: {}", past.error.message())
}

fn last(lines: &[String], count: usize) -> &[String] {
    lines.get(lines.len().saturating_sub(count)..).unwrap_or_default()
}

/// Everything about a server and its entry, for people.
pub fn page(
    server: &ServerStatus,
    entry: Option<&ServerEntryView<'_>>,
    width: Option<usize>,
) -> Page {
    let mut page = Page::default();
    page.push(
        Line::styled(Role::Name, &server.name)
            .then(Role::Plain, "  ")
            .then(state_label(&server.state), server.state.as_str()),
    );
    if let Some(description) = &server.description {
        page.blank_line();
        page.paragraph(Role::Plain, 2, description, width);
    }
    if let Some(error) = server.state.error() {
        page.heading("Failure");
        page.paragraph(Role::Error, 2, error.message(), width);
        messages::evidence(&mut page, error);
    }
    page.heading("Facts");
    facts(&mut page, server, width);
    if let Some(entry) = entry {
        entry.facts(&mut page, width);
        if let Some(report) = entry.pins.filter(|report| !report.servers.is_empty()) {
            page.heading("Changed since it was pinned");
            for changed in &report.servers {
                super::pins::parts(&mut page, &changed.changes, super::pins::MAX_LINES);
            }
        }
    }
    if let Some(instructions) = &server.instructions {
        page.heading("Instructions");
        page.paragraph(Role::Plain, 2, &shorten(instructions, MAX_INSTRUCTIONS), width);
    }
    if let Some(entry) = entry {
        if !entry.instructions.is_empty() {
            page.blank_line();
        }
        page.append(super::findings::page(entry.instructions, width));
    }
    if let Some(capabilities) = &server.capabilities {
        page.heading("Capabilities");
        page.text(Role::Plain, 2, &shorten(&json::pretty(capabilities), MAX_CAPABILITIES));
    }
    if !server.warnings.is_empty() {
        page.heading("Warnings");
        for warning in &server.warnings {
            page.push(Line::styled(Role::Warning, warning).indented(2));
        }
    }
    if !server.stderr_tail.is_empty() {
        page.heading("Last lines of stderr");
        for line in &server.stderr_tail {
            page.push(Line::styled(Role::Dim, line).indented(2));
        }
    }
    page
}

pub fn facts(page: &mut Page, server: &ServerStatus, width: Option<usize>) {
    let mut fact = |key: &str, value: Option<String>| {
        page.field(key, Role::Plain, &value.unwrap_or_default(), width);
    };
    // For a server that is not trusted, only what its entry says is known.
    let is_known = !server.transport.is_empty();
    fact("transport", is_known.then(|| format!("{}, {}", server.transport, server.endpoint)));
    for (index, line) in server.confinement.iter().enumerate() {
        fact(if index == 0 { "sandbox" } else { "" }, Some(line.clone()));
    }
    let claimed = |key: &str| server.server_info.as_ref()?.get(key)?.as_str();
    let identity = match (claimed("name"), claimed("version")) {
        (Some(name), Some(version)) => Some(format!("{name} {version}")),
        (name, _) => name.map(str::to_owned),
    };
    fact("identity", identity);
    let era = server.era.map(crate::model::Era::as_str);
    fact(
        "protocol",
        server.protocol.as_ref().map(|p| match era {
            Some(era) => format!("{p} ({era})"),
            None => p.clone(),
        }),
    );
    fact("speaks", Some(server.supported_versions.join(", ")));
    let extensions = server.capabilities.as_ref().and_then(|all| all.get("extensions"));
    let extensions = extensions.and_then(Value::as_object);
    let names = extensions.map(|all| all.keys().take(20).cloned().collect::<Vec<_>>().join(", "));
    fact("extensions", names);
    fact("pid", server.pid.map(|pid| pid.to_string()));
    fact("memory", server.memory.map(show_size));
    fact("connect", server.connect.map(show_duration));
    fact("ping", server.ping.map(show_duration));
    let counts: Vec<String> = [
        server.tools.map(|n| plural(n, "tool", "tools")),
        server.resources.map(|n| plural(n, "resource", "resources")),
        server.prompts.map(|n| plural(n, "prompt", "prompts")),
    ]
    .into_iter()
    .flatten()
    .collect();
    fact("offers", Some(counts.join(", ")));
    fact("uptime", uptime(server));
    fact("restarts", restarts(server).map(|count| count.to_string()));
    fact("connections", server.connections.map(|open| format!("{open}, one per client session")));
    fact("routing", server.weight.map(|weight| format!("weight {weight}")));
    fact("last error", server.last_error.as_ref().filter(|_| !is_failed(server)).map(past_error));
}

/// The error of a server check, if any server failed or listed only part of its tools.
pub fn verdict(servers: &[ServerStatus]) -> Option<Error> {
    let partial = servers.iter().filter(|server| server.is_tool_list_partial);
    failure(servers).or_else(|| {
        super::catalogue::partial(partial.map(|server| server.name.as_str()), servers.len())
    })
}

pub fn failure(servers: &[ServerStatus]) -> Option<Error> {
    let errors: Vec<&Error> = servers.iter().filter_map(|s| s.state.error()).collect();
    if errors.is_empty() {
        return None;
    }
    if let ([only], 1) = (&errors[..], servers.len()) {
        return Some((*only).clone());
    }
    let total = plural(servers.len(), "server", "servers");
    if errors.len() == servers.len() {
        let kind = messages::decisive(errors.iter().copied())?.kind();
        return Some(Error::new(kind, format!("none of {total} answered")));
    }
    Some(Error::partial(format!("{} of {total} did not answer", errors.len())))
}

/// The verdict without the details that the same screen already shows.
pub fn without_details(verdict: &Error) -> Error {
    let error = Error::new(verdict.kind(), verdict.message());
    match verdict.server() {
        Some(server) => error.with_server(server),
        None => error,
    }
}

pub fn state_label(state: &ServerState) -> Role {
    match state {
        ServerState::Ready => Role::Success,
        ServerState::Failed(_) => Role::Error,
        ServerState::Starting | ServerState::Untrusted(_) => Role::Warning,
        ServerState::Idle | ServerState::Closed => Role::Dim,
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use serde_json::json;

    use super::*;
    use crate::cli::json::server::ServerJson;
    use crate::model::{Era, ErrorPhase};
    use crate::present::page::LineRenderer;

    #[test]
    fn the_last_words_of_a_server_are_its_own() {
        let error = Error::unreachable("the process exited with 1");
        assert_eq!(key_line(&error), None);
        let error = error
            .with_detail("stderr: loading")
            .with_detail("stderr: no database")
            .with_detail("noise");
        assert_eq!(key_line(&error), Some("stderr: no database"));
        let error = Error::unreachable("the process exited with 1")
            .with_detail("stderr: Error: no token was given")
            .with_detail("stderr: Usage: server --token TOKEN");
        assert_eq!(key_line(&error), Some("stderr: Error: no token was given"));
    }

    fn ready() -> ServerStatus {
        ServerStatus {
            name: "github".to_owned(),
            description: Some("Issues and code".to_owned()),
            state: ServerState::Ready,
            transport: "stdio".into(),
            endpoint: "npx server-github".to_owned(),
            confinement: Vec::new(),
            permissions: crate::model::ServerPermissions::default(),
            credentials: Vec::new(),
            sandbox: None,
            era: Some(Era::Legacy),
            protocol: Some("2025-11-25".to_owned()),
            supported_versions: Vec::new(),
            server_info: Some(json!({ "name": "gh", "version": "1.2" })),
            capabilities: Some(json!({ "tools": {} })),
            instructions: Some("Search first.\u{1b}[2J".to_owned()),
            pid: Some(4242),
            memory: Some(48 << 20),
            cpu_time: None,
            connect: Some(Duration::from_millis(412)),
            ping: Some(Duration::from_micros(850)),
            tools: Some(26),
            is_tool_list_partial: false,
            resources: None,
            prompts: Some(1),
            starts: 1,
            uptime: None,
            last_error: None,
            weight: None,
            connections: None,
            warnings: Vec::new(),
            stderr_tail: vec!["listening".to_owned()],
        }
    }

    fn failed() -> ServerStatus {
        ServerStatus {
            name: "browser".to_owned(),
            description: None,
            state: ServerState::Failed(
                Error::unreachable("exited with status 1 during the handshake")
                    .with_server("browser")
                    .with_phase(ErrorPhase::Handshake)
                    .with_detail("Error: no display")
                    .with_hint("set DISPLAY"),
            ),
            era: None,
            protocol: None,
            server_info: None,
            capabilities: None,
            instructions: None,
            pid: None,
            memory: None,
            cpu_time: None,
            connect: None,
            ping: None,
            tools: None,
            prompts: None,
            warnings: vec!["two answers to one request".to_owned()],
            stderr_tail: vec!["Error: no display".to_owned()],
            ..ready()
        }
    }

    fn shown(width: usize) -> String {
        LineRenderer::default().page(&table(&[ready(), failed()], false, Some(width)))
    }

    #[test]
    fn the_table_fits_every_width() {
        assert_snapshot!(shown(120), @r"
        NAME     STATUS  ERA     PROTOCOL    TRANSPORT   PID       MEM  CONNECT    PING  TOOLS  PROMPTS
        github   ready   legacy  2025-11-25  stdio      4242  48.0 MiB   412 ms  850 µs     26        1
        browser  failed                      stdio
          unreachable: exited with status 1 during the handshake
          Error: no display
          hint: set DISPLAY
          warning: two answers to one request
        ");
        assert_snapshot!(shown(80), @r"
        NAME     STATUS  PROTOCOL    TRANSPORT   PID       MEM  CONNECT    PING  TOOLS
        github   ready   2025-11-25  stdio      4242  48.0 MiB   412 ms  850 µs     26
        browser  failed              stdio
          unreachable: exited with status 1 during the handshake
          Error: no display
          hint: set DISPLAY
          warning: two answers to one request
        ");
        assert_snapshot!(shown(60), @r"
        NAME     STATUS   PID       MEM  CONNECT    PING  TOOLS
        github   ready   4242  48.0 MiB   412 ms  850 µs     26
        browser  failed
          unreachable: exited with status 1 during the handshake
          Error: no display
          hint: set DISPLAY
          warning: two answers to one request
        ");
    }

    #[test]
    fn what_became_of_a_server_is_shown_where_it_is_news() {
        let error = Error::unreachable("exited with status 1");
        let recovered = ServerStatus {
            starts: 3,
            uptime: Some(Duration::from_mins(150)),
            weight: Some(1.5),
            last_error: Some(PastError { at: Duration::from_secs(1_795_304_776), error }),
            ..ready()
        };
        let at = local_time(1_795_304_776.0);
        let table =
            LineRenderer::default().page(&table(std::slice::from_ref(&recovered), true, None));
        for part in ["RESTARTS", "1.5", "2 h", "stderr: listening"] {
            assert!(table.contains(part), "{part} is not in\n{table}");
        }
        let cause = format!("last error, {at}: exited with status 1");
        assert!(table.contains(&cause), "{table}");
        let whole = LineRenderer::default().page(&page(&recovered, None, None));
        for part in ["restarts     2", "weight 1.5", &at] {
            assert!(whole.contains(part), "{part} is not in\n{whole}");
        }
        let value = serde_json::to_value(ServerJson::from(&recovered)).unwrap();
        assert_eq!(value["last_error"]["error"]["message"], "exited with status 1");
    }

    #[test]
    fn a_server_is_shown_whole() {
        assert_snapshot!(LineRenderer::default().page(&page(&ready(), None, Some(80))), @r#"
        github  ready

          Issues and code

        Facts
          transport    stdio, npx server-github
          identity     gh 1.2
          protocol     2025-11-25 (legacy)
          pid          4242
          memory       48.0 MiB
          connect      412 ms
          ping         850 µs
          offers       26 tools, 1 prompt

        Instructions
          Search first.␛[2J

        Capabilities
          {
            "tools": {}
          }

        Last lines of stderr
          listening
        "#);
        assert_snapshot!(LineRenderer::default().page(&page(&failed(), None, Some(80))), @r"
        browser  failed

        Failure
          exited with status 1 during the handshake
          Error: no display
          hint: set DISPLAY

        Facts
          transport    stdio, npx server-github

        Warnings
          two answers to one request

        Last lines of stderr
          Error: no display
        ");
    }

    #[test]
    fn timings_in_json_are_floats() {
        let json = |server: &ServerStatus| serde_json::to_value(ServerJson::from(server)).unwrap();
        let value = json(&ready());
        assert_eq!(value["connect_ms"], json!(412.0));
        assert_eq!(value["ping_ms"], json!(0.85));
        assert_eq!(value["error"], Value::Null);
        assert_eq!(json(&failed())["error"]["kind"], "unreachable");
    }

    #[test]
    fn a_refusal_says_what_would_start_and_a_brief_verdict_leaves_that_to_the_page() {
        let error = Error::denied("not trusted yet")
            .with_server("browser")
            .with_detail("command: x")
            .with_hint("allow it with: toolhost trust mcp.yaml");
        let status = ServerStatus { state: ServerState::Failed(error), ..failed() };
        let page =
            LineRenderer::default().page(&table(std::slice::from_ref(&status), false, Some(80)));
        assert!(page.contains("denied: not trusted yet"), "{page}");
        assert!(page.contains("hint: allow it with"), "{page}");
        assert!(page.contains("command: x"), "{page}");
        let brief = without_details(&verdict(&[status]).unwrap());
        assert_eq!(brief.to_string(), "server 'browser': not trusted yet");
        assert_eq!((brief.hint(), brief.kind().exit_code()), (None, 6));
    }

    #[test]
    fn the_verdict_counts_what_did_not_answer() {
        assert!(verdict(&[ready()]).is_none());
        assert_eq!(verdict(&[ready(), failed()]).unwrap().kind().exit_code(), 11);
        assert_eq!(verdict(&[failed()]).unwrap().kind().exit_code(), 4);
        assert_eq!(verdict(&[failed(), failed()]).unwrap().kind().exit_code(), 4);
        assert!(verdict(&[]).is_none());
    }
}
