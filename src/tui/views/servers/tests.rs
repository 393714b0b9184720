//! Tests of the servers view, without a terminal.

use super::*;
use serde_json::json;

use crate::catalogue::ServerListing;
use crate::model::{Era, ListKind, ListOwner, LogLevel, PastError, ToolStatus};
use crate::tui::event::UserInput;
use crate::tui::keys::KeyPress;
use crate::tui::tests::drawing::{ASCII, picture};
use crate::tui::tests::{press as typed, tool};
use crate::tui::theme::Theme;
use crate::util::timestamp;

/// The time in these tests.
pub const NOW: Duration = Duration::from_secs(1_795_304_776);

pub fn ready(name: &str) -> ServerStatus {
    ServerStatus {
        name: name.to_owned(),
        description: None,
        state: ServerState::Ready,
        transport: "stdio".into(),
        endpoint: format!("mcp-{name} --stdio"),
        confinement: Vec::new(),
        permissions: crate::model::ServerPermissions::default(),
        credentials: Vec::new(),
        sandbox: None,
        era: Some(Era::Legacy),
        protocol: Some("2025-11-25".to_owned()),
        supported_versions: Vec::new(),
        server_info: Some(json!({ "name": format!("mcp-{name}"), "version": "1.4.2" })),
        capabilities: Some(json!({ "tools": { "listChanged": true }, "logging": {} })),
        instructions: Some("Search first.\u{1b}[2J".to_owned()),
        pid: Some(4121),
        memory: Some(31 << 20),
        cpu_time: Some(Duration::ZERO),
        connect: Some(Duration::from_millis(38)),
        ping: Some(Duration::from_micros(300)),
        tools: Some(3),
        is_tool_list_partial: false,
        resources: None,
        prompts: None,
        starts: 1,
        uptime: Some(Duration::from_secs(2_467)),
        last_error: None,
        weight: None,
        connections: None,
        warnings: Vec::new(),
        stderr_tail: vec!["listening".to_owned(), "\u{1b}[31mreloaded config".to_owned()],
    }
}

fn dead(name: &str) -> ServerStatus {
    let error = Error::unreachable("connection refused").with_server(name).with_hint("start it");
    ServerStatus {
        state: ServerState::Failed(error.clone()),
        transport: "http".into(),
        endpoint: "http://127.0.0.1:8002/mcp".to_owned(),
        protocol: None,
        era: None,
        server_info: None,
        capabilities: None,
        instructions: None,
        pid: None,
        memory: None,
        connect: None,
        ping: None,
        tools: None,
        starts: 3,
        uptime: None,
        last_error: Some(PastError { at: NOW, error }),
        stderr_tail: Vec::new(),
        ..ready(name)
    }
}

fn listed(servers: &[&str], tools: Vec<ToolDefinition>) -> AppEvent {
    let listing =
        |name: &str| ServerListing { name: name.to_owned(), error: None, is_partial: false };
    let catalogue = Catalogue {
        tools: tools.into_iter().map(Into::into).collect(),
        // The host names the servers that it asked: none for what is declared.
        servers: servers.iter().copied().map(listing).collect(),
        ..Catalogue::default()
    };
    let servers = servers.iter().map(|name| (*name).to_owned()).collect();
    AppEvent::ToolsListed { servers, catalogue: Box::new(catalogue) }
}

/// One server that is ready and differs from what is declared of it, and one that is dead.
pub fn sample() -> AppState {
    use ToolStatus::{Declared, Drifted, Live, Unavailable};

    let mut state = AppState::new((120, 40));
    let of = |name: &str, text: &str, status: ToolStatus| {
        let mut tool = tool(name, json!({ "type": "object" }));
        (tool.description, tool.status) = (Some(text.to_owned()), status);
        tool
    };
    for micros in [850, 1_200, 300] {
        let ping = Some(Duration::from_micros(micros));
        state.update(AppEvent::ServerStatuses(vec![
            ServerStatus { ping, ..ready("files") },
            dead("web"),
        ]));
    }
    let declared =
        ["files-read", "files-move", "files-chmod"].map(|name| of(name, "as declared", Declared));
    state.update(listed(&[], declared.to_vec()));
    let live = vec![
        of("files-read", "as declared", Live),
        of("files-move", "otherwise", Drifted),
        of("files-stat", "new", Live),
        of("files-chmod", "as declared", Unavailable),
    ];
    state.update(listed(&["files"], live));
    state.update(AppEvent::Tick(NOW));
    state.update(AppEvent::Host(HostEvent::Log {
        origin: "files".to_owned(),
        call_id: None,
        level: LogLevel("info".to_owned()),
        text: "two files are open".to_owned(),
    }));
    state.update(AppEvent::Input(UserInput::Key(KeyPress::Char('2'))));
    state.update(AppEvent::Tick(NOW));
    state
}

fn press(state: &mut AppState, key: char) -> Vec<AppEffect> {
    let key = if key == '\r' { KeyPress::Enter } else { KeyPress::Char(key) };
    state.update(AppEvent::Input(UserInput::Key(key)))
}

#[test]
fn each_key_asks_for_what_it_says() {
    let name = || "files".to_owned();
    let check = || vec![AppEffect::PingServer(name()), AppEffect::ListServer(name())];
    for (key, wanted) in [
        ('\r', check()),
        ('c', check()),
        ('P', check()),
        ('R', vec![restart(name()).into()]),
        ('x', vec![stop(name()).into()]),
        ('L', vec![set_log_level(name(), "debug").into()]),
        ('l', vec![]),
        ('d', vec![]),
    ] {
        assert_eq!(press(&mut sample(), key), wanted, "{key}");
    }
    for (key, view) in [('t', ViewId::Tools), ('T', ViewId::Trace)] {
        let mut state = sample();
        press(&mut state, key);
        assert_eq!(state.context.view, view);
    }
    let mut state = sample();
    press(&mut state, '\t');
    state.update(AppEvent::Input(UserInput::Key(KeyPress::Tab)));
    press(&mut state, '\r');
    assert_eq!((state.context.view, state.trace.filter.text()), (ViewId::Trace, "srv:=files "));
}

#[test]
fn a_click_chooses_the_server_it_points_at() {
    for is_filtered in [false, true] {
        let mut state = sample();
        if is_filtered {
            press(&mut state, '/');
            press(&mut state, 'e');
        }
        for name in ["web", "files"] {
            let screen = picture(&state, Theme::default());
            // Below the header, in the list on the left.
            let mut lines = screen.lines().enumerate().skip(3);
            let is_row = |line: &str| line.chars().take(20).collect::<String>().contains(name);
            let (row, _) = lines.find(|(_, line)| is_row(line)).unwrap();
            let y = u16::try_from(row).unwrap();
            state.update(AppEvent::Input(UserInput::Click { x: 5, y }));
            assert_eq!(state.servers.chosen().unwrap().name, name, "{screen}");
        }
    }
}

#[test]
fn the_log_level_goes_round() {
    let mut state = sample();
    let mut levels = Vec::new();
    for _ in 0..=LOG_LEVELS.len() {
        press(&mut state, 'L');
        let server = state.servers.chosen().unwrap().name.clone();
        levels.extend(state.servers.activity.get(&server).and_then(|activity| activity.level));
    }
    assert_eq!((&levels[..8], levels[8]), (&LOG_LEVELS[..], "debug"));
}

#[test]
fn how_servers_are_is_looked_up_every_two_seconds_while_they_are_shown() {
    let mut state = sample();
    let mut looks = 0;
    for quarter in 1..=16 {
        let effects = state.update(AppEvent::Tick(NOW + Duration::from_millis(250 * quarter)));
        looks += effects.iter().filter(|effect| **effect == AppEffect::RefreshServers).count();
    }
    assert_eq!(looks, 2);
    press(&mut state, '1');
    assert_eq!(state.update(AppEvent::Tick(NOW + Duration::from_mins(1))), []);
}

#[test]
fn a_state_that_is_told_stands_in_its_row_at_once() {
    let mut state = sample();
    let error = Error::unreachable("killed by signal 9").with_server("files");
    let told =
        HostEvent::ServerStateChanged { server: "files".into(), state: ServerState::Failed(error) };
    assert_eq!(state.update(AppEvent::Host(told)), [AppEffect::RefreshServers]);
    let row = state.servers.chosen().unwrap();
    assert_eq!(state.servers.error(row).unwrap().message(), "killed by signal 9");
}

#[test]
fn pings_seen_here_and_lines_of_logs_are_remembered_for_each() {
    let mut state = sample();
    for micros in [300, 900, 900] {
        let ping = Some(Duration::from_micros(micros));
        state.update(AppEvent::ServerStatuses(vec![ServerStatus { ping, ..ready("files") }]));
    }
    let past = &state.servers.activity["files"];
    assert_eq!((past.pings.len(), past.log.len()), (4, 1));
    assert!(state.servers.activity["web"].pings.is_empty());
    assert_eq!(state.servers.tool_lists["files"].differing(), 2);
}

#[test]
fn changed_tools_of_a_server_are_listed_anew_and_not_twice_at_once() {
    let mut state = sample();
    let change = |state: &mut AppState| {
        let owner = ListOwner::Server("files".to_owned());
        state.update(AppEvent::Host(HostEvent::ListChanged { owner, list: ListKind::Tools }))
    };
    let again = || AppEffect::ListServer("files".to_owned());
    assert_eq!(change(&mut state), [again()]);
    assert_eq!(change(&mut state), []);
    assert_eq!(change(&mut state), []);
    assert!(state.update(listed(&["files"], Vec::new())).contains(&again()));
    assert!(!state.update(listed(&["files"], Vec::new())).contains(&again()));
}

#[test]
fn what_the_program_registers_and_removes_is_asked_for_anew() {
    let mut state = sample();
    let (owner, list) = (ListOwner::Program, ListKind::Tools);
    let effects = state.update(AppEvent::Host(HostEvent::ListChanged { owner, list }));
    assert_eq!(effects, [AppEffect::ListDeclared, AppEffect::RefreshServers]);
    let effects = state.update(AppEvent::AllServers(vec![dead("web"), ready("late")]));
    assert_eq!(effects, [AppEffect::ListServer("late".to_owned())]);
    let names: Vec<&str> = state.servers.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["web", "late"]);
    state.update(listed(&[], Vec::new()));
    assert!(state.tools.catalogue.rows.is_empty());
}

fn sized(width: u16, height: u16, keys: &[KeyPress]) -> AppState {
    let mut state = sample();
    state.update(AppEvent::Input(UserInput::Resize { width, height }));
    for key in keys {
        state.update(AppEvent::Input(UserInput::Key(*key)));
    }
    state
}

/// A picture in which it is the same time everywhere.
fn timed(state: &AppState, theme: Theme) -> String {
    let since = NOW.saturating_sub(ready("files").uptime.unwrap());
    let seen = picture(state, theme).replace(&timestamp::time_of_day(since), "13:22:15");
    seen.replace(&timestamp::time_of_day(NOW), "14:03:22")
}

#[test]
fn the_servers_in_120_by_40() {
    insta::assert_snapshot!(timed(&sized(120, 40, &[]), ASCII));
}

#[test]
fn a_dead_server_in_80_by_24() {
    insta::assert_snapshot!(timed(&sized(80, 24, &[KeyPress::Char('j')]), Theme::default()));
}

#[test]
fn declared_against_advertised_in_80_by_24() {
    insta::assert_snapshot!(timed(&sized(80, 24, &[KeyPress::Char('d')]), Theme::default()));
}

#[test]
fn the_log_in_60_by_16() {
    insta::assert_snapshot!(timed(&sized(60, 16, &[KeyPress::Char('l'), KeyPress::Tab]), ASCII));
}

#[test]
fn the_servers_in_40_by_10() {
    insta::assert_snapshot!(timed(&sized(40, 10, &[]), Theme::default()));
}

#[test]
fn a_filter_narrows_the_servers_and_enter_acts_on_what_it_shows() {
    let mut state = sample();
    assert_eq!(typed(&mut state, &["/", "web"]), []);
    let seen = picture(&state, ASCII);
    assert!(seen.contains("Servers 1/2") && !seen.contains("files  "), "{seen}");
    let effects = typed(&mut state, &["<enter>"]);
    assert_eq!(effects[0], AppEffect::PingServer("web".to_owned()));
    // What is chosen stays so without the filter, and when another server comes.
    typed(&mut state, &["<esc>"]);
    state.update(AppEvent::AllServers(vec![ready("new"), dead("web")]));
    assert_eq!(state.servers.chosen().unwrap().name, "web");
    typed(&mut state, &["/", "nothing like it"]);
    assert!(picture(&state, ASCII).contains("No matches."));
    assert_eq!(typed(&mut state, &["<enter>", "x", "R"]), [], "nothing is chosen");
}

#[test]
fn a_long_name_is_whole_where_there_is_room() {
    let mut state = sample();
    let name = "issues-of-the-whole-company";
    state.update(AppEvent::AllServers(vec![ready(name)]));
    let seen = picture(&state, ASCII);
    assert!(seen.contains(&format!("{name} ")), "{seen}");
}
