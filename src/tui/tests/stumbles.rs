//! What first users stumbled over, so that nobody does again.

use std::time::Duration;

use ratatui::layout::Rect;
use serde_json::json;

use crate::host::form::FieldInput;
use crate::host::validate::{ValuePath, Violation};
use crate::model::traffic::{Direction, MessageInfo, TrafficKind};
use crate::model::{
    CallId, Error, ErrorKind, HostEvent, Question, QuestionBody, QuestionReply, ServerState,
    Signal, ToolResult,
};
use crate::stats::count::ToolKey;
use crate::tui::app::AppState;
use crate::tui::context::Overlay;
use crate::tui::event::{AppEffect, AppEvent, AskId, ConsoleCallId, UserInput};
use crate::tui::keys::KeyPress;
use crate::tui::layout::{Pane, ViewId};
use crate::tui::tests::check_of;
use crate::tui::tests::craft::{begun, ended, shown_text};
use crate::tui::tests::drawing::{cells, cells_of, picture};
use crate::tui::tests::{listed, press, sample, tool, with_sum};
use crate::tui::theme::{ColourDepth, Role, Theme};
use crate::tui::views::offerings::tests as offerings;
use crate::tui::views::tools::list::{ToolLine, UsageFigures};
use crate::tui::views::trace::tests::crossed;
use crate::tui::views::{bench, history, servers, stats, trace};

fn sized(mut state: AppState, width: u16, height: u16) -> AppState {
    state.update(AppEvent::Input(UserInput::Resize { width, height }));
    state
}

fn shown(state: &AppState) -> String {
    picture(state, Theme::default())
}

fn message(state: &AppState) -> &str {
    state.context.message.as_ref().map_or("", |message| message.text.as_str())
}

fn ask(state: &mut AppState) {
    let body = QuestionBody::Form {
        message: "Which one?".to_owned(),
        schema: json!({ "type": "object", "properties": { "n": { "type": "string" } } }),
    };
    let (server, call) = ("srv".to_owned(), Some(CallId("c1".into())));
    let question = Question { server, call, round: None, key: None, time_left: None, body };
    state.update(AppEvent::Question { id: AskId(7), question: Box::new(question) });
}

#[test]
fn the_key_that_answers_a_question_works_where_it_is_named() {
    let mut state = sample();
    press(&mut state, &["<enter>", "1"]);
    ask(&mut state);
    assert!(message(&state).ends_with("(press ^Q to answer)"), "{}", message(&state));
    state.update(AppEvent::Input(UserInput::Key(KeyPress::Ctrl('q'))));
    assert_eq!(state.context.view, ViewId::Inbox);
    let form = state.tools.form.as_ref().unwrap();
    assert_eq!(form.arguments()["expression"], "1", "and what was typed is there");
}

#[test]
fn after_the_last_answer_one_is_where_one_was() {
    let mut state = sample();
    press(&mut state, &["4"]);
    ask(&mut state);
    press(&mut state, &["8", "<enter>", "a"]);
    let effects = press(&mut state, &["<f5>"]);
    assert!(matches!(effects[..], [AppEffect::ValidateArguments { .. }]), "{effects:?}");
    press(&mut state, &["<esc>"]);
    let effects = press(&mut state, &["d"]);
    let declined = AppEffect::AnswerQuestion(AskId(7), QuestionReply::Decline.into());
    assert_eq!(effects[..1], [declined]);
    assert_eq!(state.context.view, ViewId::Stats);
}

#[test]
fn the_log_of_a_broken_server_shows_what_it_wrote() {
    let mut state = servers::tests::sample();
    let text = "no database\ngiving up".to_owned();
    state.update(crossed("web", TrafficKind::Stderr(text)));
    press(&mut state, &["j", "l"]);
    let seen = shown(&state);
    assert!(seen.contains("no database") && !seen.contains("nothing on stderr"), "{seen}");
}

#[test]
fn names_are_whole_where_there_is_room_and_columns_have_headings() {
    let name = "get_structured_content_of_page";
    for (width, height) in [(120, 40), (160, 45)] {
        let schema = json!({ "type": "object" });
        let mut state = sized(sample(), width, height);
        state.update(listed(vec![tool(&format!("web-{name}"), schema.clone()), tool("b", schema)]));
        let (key, calls) = (format!("web-{name}"), 3);
        let tool =
            ToolKey { name: key.clone(), server: Some("web".to_owned()), ..ToolKey::default() };
        let usage = (key, vec![(tool, UsageFigures { calls, ..UsageFigures::default() })]);
        state.tools.catalogue.set_usage([usage].into());
        let seen = shown(&state);
        assert!(seen.contains(name), "{width}: {seen}");
        assert!(width < 160 || seen.contains(" p50 "), "{seen}");
    }
    // Where names leave room, columns have headings on a smaller screen, too.
    let mut state = sized(sample(), 120, 40);
    let tool = ToolKey { name: "clock".to_owned(), ..ToolKey::default() };
    let usage = vec![(tool, UsageFigures { calls: 3, ..UsageFigures::default() })];
    state.tools.catalogue.set_usage([("clock".to_owned(), usage)].into());
    let seen = shown(&state);
    let heading = seen.lines().find(|line| line.contains("Tools 4")).unwrap();
    assert!([" p50 ", " calls ", " err "].iter().all(|title| heading.contains(title)), "{seen}");
}

#[test]
fn what_a_mark_means_is_in_the_help() {
    let mut asks = tool("web-x", json!({ "type": "object" }));
    asks.requires_approval = true;
    asks.annotations.destructive = Some(true);
    asks.requires_task = true;
    let mut state = sized(sample(), 160, 45);
    state.update(listed(vec![asks, tool("b", json!({ "type": "object" }))]));
    let seen = shown(&state);
    let row = seen.lines().find(|line| line.contains("     x ")).unwrap();
    assert!(row.contains(" DESTRUCTIVE ") && row.contains(" ASKS "), "{seen}");
    // The same words wherever a tool is chosen.
    press(&mut state, &["5", "a", "webx"]);
    let seen = shown(&state);
    let row = seen.lines().find(|line| line.contains("web-x")).unwrap();
    assert!(row.contains(" DESTRUCTIVE ") && row.contains(" ASKS "), "{seen}");
    press(&mut state, &["<esc>", "?", "/", "marks of tools", "<enter>"]);
    let help = shown(&state);
    for (mark, meaning) in [
        ("DESTRUCTIVE", "may destroy something"),
        ("ASKS", "asks for approval before a call"),
        (" TASK", "its server runs it as a task"),
        (" A ", "on a server: asks before each call"),
    ] {
        let line = help.lines().find(|line| line.contains(mark));
        assert!(line.is_some_and(|line| line.contains(meaning)), "{mark}: {help}");
    }
}

/// Whether the chosen row of a pane, which contains these words, is one bar from end to end.
fn assert_bar(state: &AppState, pane: Pane, words: &str) {
    for depth in [ColourDepth::Sixteen, ColourDepth::True] {
        let theme = Theme { depth, ..Theme::default() };
        let buffer = cells(state, theme);
        let inner = state.context.inside(state.context.area_of(pane).unwrap());
        let symbols = |row: &Rect| row.positions().map(|at| buffer[at].symbol().to_owned());
        let row = inner.rows().find(|row| symbols(row).collect::<String>().contains(words));
        let row = row.unwrap_or_else(|| panic!("{words}: {}", shown(state)));
        let bar = theme.style(Role::Selected);
        for at in row.positions() {
            let cell = &buffer[at];
            assert_eq!(cell.bg, bar.bg.unwrap_or_default(), "{words}, {depth:?}: {at}");
            assert!(cell.modifier.contains(bar.add_modifier), "{words}, {depth:?}: {at}");
        }
    }
}

#[test]
fn the_selection_covers_the_whole_row_also_of_what_failed() {
    let mut state = servers::tests::sample();
    press(&mut state, &["j"]);
    assert_bar(&state, Pane::Servers, "connection refused");
    press(&mut state, &["1", "j"]);
    state.tools.catalogue.folded.insert("web".to_owned());
    state.tools.catalogue.fold(Some(false));
    let at = state
        .tools
        .catalogue
        .lines
        .iter()
        .position(|line| matches!(line, ToolLine::Group(group) if group.name == "web"));
    let length = state.tools.catalogue.lines.len();
    state.tools.catalogue.list.choose(at.unwrap(), length);
    assert_bar(&state, Pane::Catalogue, "connection refused");
    assert_bar(&history::tests::shown(), Pane::HistoryList, "expression=1/0");
    let mut state = trace::tests::sample();
    press(&mut state, &["3", "/", "escapes", "<enter>", "<tab>"]);
    assert_bar(&state, Pane::TraceList, "path escapes root");
}

#[test]
fn a_form_leaves_the_result_half_of_the_height() {
    let mut state = sample();
    press(&mut state, &["<enter>"]);
    let height = |state: &AppState, pane| {
        let panes = state.context.panes_shown();
        panes.into_iter().find(|(shown, _)| *shown == pane).unwrap().1.height
    };
    assert!(height(&state, Pane::Result) >= height(&state, Pane::Detail));
    let keys = |state: &AppState| -> Vec<String> {
        let form = state.tools.form.as_ref().unwrap();
        form.fields.iter().map(|row| row.key.clone()).collect()
    };
    let before = keys(&state);
    // Required fields first, else as the schema has them.
    assert_eq!(before, ["expression", "precision", "mode"]);
    // What is only typed is no choice yet, and no field moves.
    press(&mut state, &["1", "<down>", "2", "<down>"]);
    for typed in ["x", "e"] {
        press(&mut state, &[typed]);
        assert_eq!(keys(&state), before);
        let form = state.tools.form.as_ref().unwrap();
        let mode = form.node_of(&form.fields[2]).unwrap();
        assert!(matches!(mode.input, FieldInput::Text(_)), "{:?}", mode.input);
        let seen = shown(&state);
        let row = seen.lines().find(|line| line.contains("mode  ")).unwrap();
        assert!(row.contains(typed) && !row.contains('<'), "{seen}");
        assert!(!seen.contains("> exact") && !seen.contains("> float"), "{seen}");
        press(&mut state, &["^u"]);
    }
    press(&mut state, &["f"]);
    assert!(shown(&state).contains("  float"), "it is offered: {}", shown(&state));
    press(&mut state, &["<tab>"]);
    let seen = shown(&state);
    assert!(seen.contains("< float >"), "and taken when the field is left: {seen}");
    assert_eq!(keys(&state), before);
}

#[test]
fn what_is_still_to_be_filled_in_does_not_look_done() {
    let schema = json!({
        "type": "object",
        "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
        "required": ["a", "b"],
    });
    let mut state = sample();
    state.update(listed(vec![tool("sum", schema)]));
    state.tools.choose("sum");
    press(&mut state, &["<enter>"]);
    let theme = Theme { depth: ColourDepth::True, ..Theme::default() };
    let role_of = |state: &AppState, words: &str| {
        let buffer = cells(state, theme);
        let styles: Vec<_> =
            cells_of(&buffer, buffer.area, words).iter().map(|cell| cell.fg).collect();
        assert!(styles.iter().all(|fg| *fg == styles[0]), "{words}: {styles:?}");
        styles[0]
    };
    let warning = theme.style(Role::Warning).fg.unwrap();
    assert_eq!(role_of(&state, "0/2 required"), warning);
    press(&mut state, &["1"]);
    assert_eq!(role_of(&state, "1/2 required"), warning);
    press(&mut state, &["<down>", "2"]);
    assert!(!shown(&state).contains("required"), "{}", shown(&state));
}

#[test]
fn a_message_leaves_when_what_it_says_is_over() {
    let mut state = servers::tests::sample();
    for (key, begins) in [("c", "connecting to"), ("R", "restarting")] {
        press(&mut state, &[key]);
        assert!(message(&state).starts_with(begins), "{}", message(&state));
        let (server, ready) = ("files".to_owned(), ServerState::Ready);
        state.update(AppEvent::Host(HostEvent::ServerStateChanged { server, state: ready }));
        assert_eq!(message(&state), "");
    }
    let mut state = sample();
    let run = begun(&mut state, "1");
    press(&mut state, &["^c"]);
    assert_eq!(message(&state), "cancelling calculator…");
    let cancelled =
        Box::new(Err(Error::new(ErrorKind::Interrupted(Signal::Interrupt), "cancelled")));
    state.update(AppEvent::CallFinished { run, outcome: cancelled });
    assert_eq!(message(&state), "");
    state.update(listed(vec![tool("only", json!({ "type": "object" }))]));
    assert!(shown(&state).contains("1 tool ") && !shown(&state).contains("1 tools"));
    press(&mut state, &["^c"]);
    assert!(!shown(&state).contains("0 running"), "{}", shown(&state));
}

#[test]
fn statistics_tell_tools_apart_that_begin_alike() {
    let state = stats::tests::named(["everything-trigger-a", "everything-trigger-b"]);
    let seen = shown(&sized(state, 120, 40));
    assert!(seen.contains("everything-trigger-a") && seen.contains("everything-trigger-b"));
}

#[test]
fn the_palette_has_whole_names() {
    let mut state = sized(with_sum(), 80, 24);
    press(&mut state, &[":", "getsum"]);
    assert!(shown(&state).contains("everything-get-sum "), "{}", shown(&state));
}

#[test]
fn the_palette_goes_to_a_server_whatever_the_filter_leaves_out() {
    let mut state = sized(sample(), 120, 40);
    let statuses = vec![servers::tests::ready("files"), servers::tests::ready("notes")];
    state.update(AppEvent::ServerStatuses(statuses));
    press(&mut state, &["2", "/", "files", "<enter>", "1", ":", "notes", "<enter>"]);
    assert_eq!(state.context.view, ViewId::Servers);
    assert_eq!(state.servers.chosen().map(|server| &*server.name), Some("notes"));
}

#[test]
fn what_toolhost_asks_of_its_own_accord_is_no_failure_of_a_server() {
    let mut state = sample();
    let mut refused = |id: u64, method: &str, code: i64| {
        let error = json!({ "code": code, "message": "unknown" });
        let text = json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string();
        let method = Some(method.to_owned());
        let info = MessageInfo::Response { id: id.into(), method, is_error: true };
        let (direction, latency) = (Direction::Received, None);
        let bytes = text.into();
        state.update(crossed("web", TrafficKind::Message { direction, bytes, info, latency }));
        state.trace.newest_of("web", 1).next().unwrap().is_error
    };
    assert!(refused(2_147_483_002, "initialize", -32603), "a failed handshake is a failure");
    assert!(!refused(2_147_483_002, "initialize", -32022), "the newer era was agreed meanwhile");
    assert!(!refused(2_147_483_001, "server/discover", -32601));
    press(&mut state, &["3", "<enter>"]);
    assert!(!state.trace.chosen().unwrap().is_error);
    // The number says nothing, but the message is shown as it was sent.
    let seen = shown(&state);
    assert!(!seen.contains("#21474830"), "{seen}");
    assert!(seen.contains("\"jsonrpc\": \"2.0\"") && seen.contains("\"id\": 2147483001"), "{seen}");
}

#[test]
fn json_in_the_trace_has_its_colours() {
    let mut state = sized(sample(), 160, 45);
    let result = json!({ "text": "hi", "all": true });
    state.update(crossed("web", trace::tests::asked(41, "tools/call", &json!({}))));
    state.update(crossed("web", trace::tests::answered(41, "tools/call", &result)));
    press(&mut state, &["3"]);
    let theme = Theme { depth: ColourDepth::True, ..Theme::default() };
    let buffer = cells(&state, theme);
    let frame = state.context.area_of(Pane::Frame).unwrap();
    for (words, role) in [
        ("\"text\"", Role::JsonKey),
        ("\"hi\"", Role::JsonText),
        ("41", Role::JsonNumber),
        ("true", Role::JsonWord),
    ] {
        // Not the number in the title.
        let inner = state.context.inside(frame);
        let colour = theme.style(role).fg.unwrap();
        let cells = cells_of(&buffer, inner, words);
        assert!(cells.iter().all(|cell| cell.fg == colour), "{words}: {cells:?}");
    }
    let seen = shown(&state);
    assert!(seen.contains("#41 tools/call") && seen.contains("Frame #41"), "{seen}");
}

#[test]
fn help_is_searched_and_no_key_acts_on_what_is_behind() {
    let mut state = sized(sample(), 160, 45);
    let before = state.tools.catalogue.chosen().map(|row| row.name.clone());
    press(&mut state, &["?"]);
    let whole = shown(&state);
    for title in ["Tree of tools", "Arguments without text"] {
        assert!(whole.contains(title), "two columns have both: {whole}");
    }
    press(&mut state, &["jb5", "/", "nothing like it"]);
    assert!(shown(&state).contains("No key does that."));
    press(&mut state, &["<esc>", "/", "history of", "<enter>"]);
    let found = shown(&state);
    assert!(found.contains("show the history of this tool"), "{found}");
    assert!(!found.contains("benchmark this tool"), "{found}");
    press(&mut state, &["<esc>", "q"]);
    assert!(!state.has_overlay());
    assert_eq!(state.tools.catalogue.chosen().map(|row| row.name.clone()), before);
    assert_eq!(state.context.view, ViewId::Tools);
}

#[test]
fn what_a_tool_takes_is_seen_before_its_form_is_opened() {
    let mut state = sized(sample(), 160, 45);
    let seen = shown(&state);
    let line = seen.lines().find(|line| line.contains("expression")).unwrap();
    assert!(line.contains("What to calculate"), "{seen}");
    assert!(state.tools.form.is_none() && seen.contains("[Form] Docs "), "{seen}");
    press(&mut state, &["d"]);
    assert!(shown(&state).contains("Parameters"), "{}", shown(&state));
}

#[test]
fn a_list_of_objects_is_a_table_at_once_unless_that_would_hide_something() {
    let list = json!([{ "number": 1, "title": "a" }, { "number": 2, "title": "b" }]);
    for (result, is_table) in [
        (json!({ "items": list }), true),
        (list.clone(), true),
        (json!({ "items": list, "next": "page 2" }), false),
    ] {
        let mut state = sample();
        let run = begun(&mut state, "1");
        ended(&mut state, run, ToolResult::json(result.clone()));
        assert_eq!(state.tools.viewer.table().is_some(), is_table, "{result}");
    }
    let mut state = sample();
    let run = begun(&mut state, "1");
    let mut result = ToolResult::json(list);
    result.content = vec![json!({ "type": "text", "text": "two of many" })];
    ended(&mut state, run, result);
    assert!(state.tools.viewer.table().is_none(), "the text stands beside the list");
}

#[test]
fn a_server_that_failed_says_its_last_words_where_it_is_listed() {
    let mut state = sized(servers::tests::sample(), 160, 45);
    let details = ["stderr: opening", "stderr: no database"].map(str::to_owned);
    let error = Error::unreachable("the process exited with 1").with_details(details);
    let server = "files".into();
    let failed = HostEvent::ServerStateChanged { server, state: ServerState::Failed(error) };
    state.update(AppEvent::Host(failed));
    press(&mut state, &["2"]);
    assert!(shown(&state).contains("exited with 1: no database"), "{}", shown(&state));
}

#[test]
fn a_server_that_failed_is_named_in_red_in_the_header() {
    let theme = Theme { depth: ColourDepth::True, ..Theme::default() };
    for (width, height, words) in [(160, 45, "✗ 1 failed: web"), (80, 24, "✗ 1 failed")] {
        let state = sized(servers::tests::sample(), width, height);
        let buffer = cells(&state, theme);
        let top = Rect { height: 1, ..buffer.area };
        let error = theme.style(Role::Error).fg.unwrap();
        let cells = cells_of(&buffer, top, words);
        assert!(cells.iter().all(|cell| cell.fg == error), "{width}: {cells:?}");
    }
}

#[test]
fn a_benchmark_begins_with_the_tool_one_looks_at() {
    let mut state = sample();
    press(&mut state, &["5"]);
    assert_eq!(state.bench.form.text(bench::plan::PlanField::ToolA), "calculator");
    assert!(!shown(&state).contains("No tool chosen"), "{}", shown(&state));
}

#[test]
fn what_an_error_says_beside_its_message_is_shown() {
    let mut state = sample();
    let run = begun(&mut state, "1");
    let error =
        Error::tool("error -32602: no").with_rpc_error(-32602, Some(&json!({ "field": "path" })));
    let outcome = Box::new(Err(error));
    state.update(AppEvent::CallFinished { run, outcome });
    assert!(shown(&state).contains("data: {\"field\":\"path\"}"), "{}", shown(&state));
}

#[test]
fn a_long_text_in_the_tree_is_read_whole_and_left_again() {
    let mut state = sample();
    let run = begun(&mut state, "1");
    let long = format!("{} end", "word ".repeat(200));
    ended(&mut state, run, ToolResult::json(json!({ "text": long })));
    state.context.focus = Pane::Result;
    press(&mut state, &["v", "j"]);
    let seen = shown(&state);
    let row = seen.lines().find(|row| row.contains("text: \"word")).unwrap();
    assert!(row.contains('…'), "{row}");
    let effects = press(&mut state, &["<enter>"]);
    let [AppEffect::Task(query)] = <[AppEffect; 1]>::try_from(effects).unwrap() else { panic!() };
    state.update(query.computed().unwrap());
    let text = shown_text(&state).unwrap();
    assert!(text.contains("end\""), "{text}");
    press(&mut state, &["<esc>"]);
    assert!(shown_text(&state).is_none(), "the tree is there again");
}

#[test]
fn addresses_are_cut_where_they_do_not_differ() {
    let mut state = sized(offerings::listed(), 80, 24);
    let address = |end| offerings::resource(&format!("file:///srv/{}/{end}", "deep/".repeat(30)));
    let items = vec![address("one.md").into(), address("two.md").into()];
    let lists = crate::tui::views::offerings::tree::ServerOfferings { items, ..Default::default() };
    offerings::offered(&mut state, "memo", lists);
    let seen = shown(&state);
    assert!(seen.contains("/one.md") && seen.contains("/two.md"), "{seen}");
}

#[test]
fn a_run_that_is_stopped_early_says_so_without_an_exit_code() {
    let mut state = bench::tests::begun();
    let error = Error::timeout("stopped before any call was made");
    let run = Box::default();
    state.update(AppEvent::outcome(|state| {
        state.bench.finished(1, run, Err(error), &mut state.context);
    }));
    assert_eq!(message(&state), "run 1: stopped before any call was made");
    assert!(!shown(&state).contains("exit code"), "{}", shown(&state));
    state.update(AppEvent::Tick(Duration::from_secs(1)));
}

#[test]
fn what_was_filled_in_is_there_when_one_comes_back_to_the_tool() {
    let mut state = sample();
    press(&mut state, &["<enter>", "2 + 2", "<esc>"]);
    assert!(state.tools.form.is_none() && shown(&state).contains("2 + 2"), "{}", shown(&state));
    state.tools.choose("clock");
    press(&mut state, &["<enter>", "^p", "calculator", "<enter>"]);
    let form = state.tools.form.as_ref().unwrap();
    assert_eq!(form.arguments()["expression"], "2 + 2");
    // What was called is not lost, and what was not filled in neither.
    press(&mut state, &["<esc>", "^c"]);
    assert!(shown(&state).contains("What is filled in would be lost."), "{}", shown(&state));
    assert_eq!(press(&mut state, &["^c"]), []);
    press(&mut state, &["<esc>", "<enter>", "<f5>"]);
    let ended = Box::new(Err(Error::tool("stopped")));
    state.update(AppEvent::CallFinished { run: ConsoleCallId(0), outcome: ended });
    press(&mut state, &["^c"]);
    assert!(shown(&state).contains("Nothing is running."), "{}", shown(&state));
    let mut state = sample();
    press(&mut state, &["<enter>", "^c"]);
    assert!(shown(&state).contains("Nothing is running."), "{}", shown(&state));
}

#[test]
fn a_value_that_is_refused_is_said_once() {
    let mut state = sample();
    press(&mut state, &["<enter>", "1", "<tab>", "7", "<f5>"]);
    let refused = Box::new(Err(Error::usage("1 problem with the arguments")));
    let effects = state.update(AppEvent::CallFinished { run: ConsoleCallId(0), outcome: refused });
    let (schema, arguments) = check_of(&effects);
    let path = ValuePath(Vec::new()).key("precision");
    let problems = vec![Violation::new(path, "must be at most 5")];
    state.update(AppEvent::ArgumentsChecked { schema, arguments, problems });
    let seen = shown(&state);
    assert_eq!(seen.matches("must be at most 5").count(), 1, "{seen}");
}

#[test]
fn a_footer_offers_nothing_to_do_with_a_row_that_is_not_there() {
    for (view, words) in [
        (ViewId::Tools, [" call ", " bench ", " history "]),
        (ViewId::Servers, [" connect ", " restart ", " stop "]),
        (ViewId::Trace, [" pair ", " view ", " export "]),
        (ViewId::Stats, [" tool ", " bench ", " copy "]),
        (ViewId::History, [" open ", " rerun ", " mark "]),
        (ViewId::Offerings, [" open ", " watch ", " write "]),
        (ViewId::Inbox, [" answer ", " send ", " decline "]),
    ] {
        let mut state = AppState::new((300, 50));
        state.show(view);
        let seen = shown(&state);
        let footer = seen.lines().last().unwrap();
        for word in words {
            assert!(!footer.contains(word), "{view:?}: {footer}");
        }
        press(&mut state, &[":"]);
        let Some(Overlay::Palette(palette)) = &state.context.overlay else { panic!("{view:?}") };
        for entry in palette.found() {
            let name = entry.name.as_str();
            assert!(!["copy", "bench", "restart", "rerun"].contains(&name), "{view:?}: {name}");
        }
    }
}

#[test]
fn the_palette_finds_a_tool_by_its_whole_name_first() {
    let schema = || json!({ "type": "object" });
    let mut state = sized(sample(), 80, 24);
    state.update(listed(vec![tool("zoom", schema()), tool("web-view-trace", schema())]));
    press(&mut state, &[":", "zoom", "<enter>"]);
    assert_eq!(state.tools.form.as_ref().unwrap().tool, "zoom");
}

#[test]
fn a_zoomed_pane_says_so_and_a_flag_is_its_letters() {
    let mut state = sample();
    press(&mut state, &["z"]);
    assert!(shown(&state).contains("Tools 4  zoomed"), "{}", shown(&state));
    let mut flag = tool("web-x", json!({ "type": "object" }));
    flag.description = Some("of 🇩🇪 only".to_owned());
    let mut state = sample();
    state.update(listed(vec![flag]));
    assert!(shown(&state).contains("of DE only"), "{}", shown(&state));
}
