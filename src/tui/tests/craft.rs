//! Tests of overlays, running calls and remembered state, without a terminal.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use strum::VariantArray as _;

use crate::host::request::CallOutcome;
use crate::model::{CallId, CallMetadata, Error, HostEvent, LogLevel, ToolResult};
use crate::stats::count::ToolKey;
use crate::tui::app::*;
use crate::tui::calls::{CallProgress, ConsoleCall};
use crate::tui::context::Overlay;
use crate::tui::event::{AppEffect, AppEvent, ConsoleCallId, UserInput};
use crate::tui::keys::{Action, KeyPress};
use crate::tui::layout::{Pane, ViewId};
use crate::tui::settings::ConsoleSettings;
use crate::tui::tasks::Recollection;
use crate::tui::tests::drawing::{ASCII, picture};
use crate::tui::tests::{listed, press, sample, tool};
use crate::tui::theme::{Appearance, ColourScheme};
use crate::tui::views::bench::plan::PlanField;
use crate::tui::views::offerings::tree::OfferingRow;
use crate::tui::views::overlays::palette::PaletteCommand;
use crate::tui::views::result::presentation::{ResultBody, ResultFormat};
use crate::tui::views::tools::list::UsageFigures;
use crate::tui::views::tools::tasks;
use crate::tui::views::{history, inbox, offerings, stats, trace};

/// A call of the calculator that runs; its number.
pub fn begun(state: &mut AppState, expression: &str) -> ConsoleCallId {
    let arguments = json!({ "expression": expression }).as_object().cloned().unwrap();
    let run = state.context.calls.begin("calculator".into(), arguments);
    state.update(AppEvent::CallStarted { run, call: CallId(format!("call-{}", run.0).into()) });
    run
}

fn call(state: &AppState, run: ConsoleCallId) -> &ConsoleCall {
    state.context.calls.all.iter().find(|call| call.run == run).unwrap()
}

pub fn ended(state: &mut AppState, run: ConsoleCallId, result: ToolResult) {
    ended_unrecorded(state, run, result, None);
}

/// A call ended that is missing in a record for this reason.
pub fn ended_unrecorded(
    state: &mut AppState,
    run: ConsoleCallId,
    result: ToolResult,
    unrecorded: Option<String>,
) {
    let definition = Arc::clone(&state.tools.catalogue.find_by_name("calculator").unwrap().tool);
    let metadata = CallMetadata {
        call_id: CallId(format!("call-{}", run.0).into()),
        duration: Duration::from_micros(900),
        person_wait: Duration::ZERO,
        connect: None,
        attempts: 1,
        protocol: None,
        routing: None,
        host_pid: None,
        unrecorded,
    };
    let outcome = CallOutcome { definition, result: Ok(result), metadata };
    state.update(AppEvent::CallFinished { run, outcome: Box::new(Ok(outcome)) });
}

pub fn told(state: &mut AppState, event: HostEvent) {
    state.update(AppEvent::Host(event));
}

pub fn id(run: ConsoleCallId) -> CallId {
    CallId(format!("call-{}", run.0).into())
}

/// The result of the chosen tool, where it is shown as text.
pub fn shown_text(state: &AppState) -> Option<String> {
    match state.tools.viewer.shown() {
        ResultBody::Text(text) => Some(text.to_text()),
        _ => None,
    }
}

#[test]
fn what_is_told_of_a_running_call_is_kept_with_it() {
    let mut state = sample();
    let run = begun(&mut state, "1");
    let other = begun(&mut state, "2");
    told(
        &mut state,
        HostEvent::Progress {
            call_id: id(run),
            progress: 3.0,
            total: Some(4.0),
            message: Some("almost".into()),
        },
    );
    let child = CallId("child".into());
    let parent = Some(id(run));
    told(
        &mut state,
        HostEvent::CallStarted {
            call_id: child.clone(),
            tool: "clock".into(),
            parent,
            client: None,
        },
    );
    let grandchild = CallId("grandchild".into());
    let parent = Some(child.clone());
    told(
        &mut state,
        HostEvent::CallStarted { call_id: grandchild, tool: "web-x".into(), parent, client: None },
    );
    let duration = Duration::from_millis(2);
    told(
        &mut state,
        HostEvent::CallFinished {
            call_id: child,
            tool: "clock".into(),
            success: true,
            is_cancelled: false,
            duration,
        },
    );
    let level = LogLevel("info".into());
    told(
        &mut state,
        HostEvent::Log {
            origin: "calculator".into(),
            call_id: None,
            level: level.clone(),
            text: "hm".into(),
        },
    );
    told(
        &mut state,
        HostEvent::Log { origin: "calc".into(), call_id: None, level, text: "not its own".into() },
    );
    let live = &call(&state, run).activity;
    assert_eq!(live.progress.as_ref().and_then(CallProgress::share), Some(0.75));
    let nested: Vec<_> =
        live.children.iter().map(|n| (n.tool.as_str(), n.depth, n.ended)).collect();
    assert_eq!(nested, [("clock", 1, Some((true, duration))), ("web-x", 2, None)]);
    assert_eq!(live.log, [("info".to_owned(), "hm".to_owned())]);
    assert_eq!(call(&state, other).activity.progress, None);
}

#[test]
fn the_time_until_the_next_attempt_runs_down() {
    let mut state = sample();
    let run = begun(&mut state, "1");
    told(
        &mut state,
        HostEvent::AttemptFailed {
            call_id: id(run),
            attempt: 1,
            error: Error::tool("busy"),
            delay: Duration::from_secs(4),
        },
    );
    state.update(AppEvent::Tick(Duration::from_secs(10)));
    state.update(AppEvent::Tick(Duration::from_secs(13)));
    let retry = call(&state, run).activity.retry.clone().unwrap();
    assert_eq!(retry.remaining(state.context.now), Duration::from_secs(1));
    state.update(AppEvent::Tick(Duration::from_secs(30)));
    assert_eq!(retry.remaining(state.context.now), Duration::ZERO);
}

#[test]
fn one_call_of_many_is_stopped_and_control_c_stops_the_newest() {
    let mut state = sample();
    let old = begun(&mut state, "1");
    let new = begun(&mut state, "2");
    assert_eq!(press(&mut state, &["^x", "j", "<enter>"]), [AppEffect::Cancel(old)]);
    assert_eq!(press(&mut state, &["<esc>", "^c"]), [AppEffect::Cancel(new)]);
}

#[test]
fn the_palette_does_what_is_found_by_a_few_letters() {
    let mut state = sample();
    press(&mut state, &[":", "view-serv", "<enter>"]);
    assert_eq!((state.context.view, &state.context.overlay), (ViewId::Servers, &None));
    press(&mut state, &["1", "<enter>", "^p"]);
    // In the form a colon is a letter, and its own actions come first.
    let Some(Overlay::Palette(palette)) = &state.context.overlay else { panic!() };
    assert_eq!(palette.chosen().unwrap().command, PaletteCommand::Action(Action::NextField));
    press(&mut state, &["theme mono", "<enter>"]);
    assert_eq!(state.context.appearance.theme().palette, ColourScheme::Mono);
    press(&mut state, &["^p", "zzzz", "<enter>"]);
    assert_eq!(state.context.overlay, None);
}

#[test]
fn every_action_of_a_view_is_in_its_palette_with_a_key_that_does_it() {
    for &view in ViewId::VARIANTS {
        let mut state = sample();
        state.show(view);
        let places = state.view_key_contexts();
        press(&mut state, &[":"]);
        let Some(Overlay::Palette(palette)) = &state.context.overlay else { panic!("{view:?}") };
        for entry in palette.found() {
            if let (PaletteCommand::Action(action), Some(key)) = (&entry.command, entry.key) {
                assert_eq!(
                    state.context.keys.action(key, &places),
                    Some(*action),
                    "{view:?} {key}"
                );
            }
        }
        assert!(palette.found().len() > 20);
    }
}

#[test]
fn results_are_turned_stepped_through_and_saved() {
    let mut state = sample();
    let first = begun(&mut state, "1");
    ended(&mut state, first, ToolResult::json(json!({ "value": 1, "list": [1, 2] })));
    let second = begun(&mut state, "2");
    ended(&mut state, second, ToolResult::text("two"));
    let text = |state: &AppState| shown_text(state)?.lines().next().map(str::to_owned);
    let tree = |state: &AppState| match state.tools.viewer.shown() {
        ResultBody::Tree(tree) => tree.len(),
        _ => 0,
    };
    assert_eq!(text(&state).as_deref(), Some("two"));
    state.context.focus = Pane::Result;
    press(&mut state, &["<left>"]);
    assert_eq!(text(&state).as_deref(), Some("{"));
    press(&mut state, &["<left>", "v"]);
    assert_eq!(tree(&state), 5);
    press(&mut state, &["j", "j", "<enter>"]);
    assert_eq!(tree(&state), 3);
    let effects = press(&mut state, &["E"]);
    let outcome = call(&state, first).outcome.clone().unwrap();
    let stem = "calculator-call0".to_owned();
    assert_eq!(effects, [tasks::save(stem, outcome, ResultFormat::Tree).into()]);
    press(&mut state, &["<right>", "<right>", "v"]);
    assert!(text(&state).unwrap().starts_with('{'), "{:?}", text(&state));
}

#[test]
fn a_text_that_is_laid_out_is_so_again_after_all_other_formats() {
    let mut state = sample();
    let run = begun(&mut state, "1");
    ended(&mut state, run, ToolResult::text("# One\n\n- **two** and **three**\n"));
    state.context.focus = Pane::Result;
    let laid_out = shown_text(&state).unwrap();
    press(&mut state, &["v", "v", "v"]);
    assert_eq!(state.tools.viewer.format, ResultFormat::Text);
    assert_ne!(shown_text(&state).unwrap(), laid_out);
    press(&mut state, &["v"]);
    assert_eq!(state.tools.viewer.format, ResultFormat::Best);
    assert_eq!(shown_text(&state).unwrap(), laid_out);
}

#[test]
fn what_is_best_shown_as_a_table_has_all_formats_whatever_its_texts_look_like() {
    use ResultFormat::{Raw, Table, Text, Tree};
    let mut state = sample();
    let run = begun(&mut state, "1");
    let issues = r#"[{"title": "a", "body": "see [x](http://e.example) and **bold**"}]"#;
    ended(&mut state, run, ToolResult::text(issues));
    state.context.focus = Pane::Result;
    let mut formats = Vec::new();
    for _ in 0..5 {
        press(&mut state, &["v"]);
        formats.push(state.tools.viewer.format);
    }
    assert_eq!(formats, [Raw, Text, Tree, Table, Raw]);
}

#[test]
fn a_search_in_a_result_counts_its_matches_and_goes_round() {
    let mut state = sample();
    let run = begun(&mut state, "1");
    let word = |n: u32| if n % 50 == 7 { " Needle" } else { "" };
    let lines: Vec<String> = (0..200).map(|n| format!("line {n}{}", word(n))).collect();
    ended(&mut state, run, ToolResult::text(lines.join("\n")));
    state.context.focus = Pane::Result;
    let summary = |state: &AppState| state.tools.viewer.search.summary();
    press(&mut state, &["/", "need"]);
    assert_eq!(summary(&state).as_deref(), Some("/need 1 of 4"));
    assert_eq!(state.tools.catalogue.filter.text(), "", "the list is not filtered");
    let seen = crate::tui::tests::drawing::picture(&state, state.context.appearance.theme());
    assert!(seen.contains("line 7 Needle") && seen.contains("/need 1 of 4"), "{seen}");
    press(&mut state, &["<enter>", "n", "n"]);
    let seen = crate::tui::tests::drawing::picture(&state, state.context.appearance.theme());
    assert!(seen.contains("line 107 Needle") && !seen.contains("line 57 "), "{seen}");
    press(&mut state, &["n", "n"]);
    assert_eq!(summary(&state).as_deref(), Some("/need 1 of 4"));
    press(&mut state, &["N"]);
    assert_eq!(summary(&state).as_deref(), Some("/need 4 of 4"));
    press(&mut state, &["/", "x"]);
    assert_eq!(summary(&state).as_deref(), Some("/needx no matches"));
    press(&mut state, &["<esc>"]);
    assert_eq!(summary(&state), None);
    // In a tree what a match hangs on is opened.
    let run = begun(&mut state, "2");
    ended(&mut state, run, ToolResult::json(json!({ "a": { "b": [{ "c": "deep" }] } })));
    press(&mut state, &["v", "j", "<enter>", "/", "deep", "<enter>"]);
    let Some(AppEffect::Copy(path)) = press(&mut state, &["c"]).pop() else { panic!() };
    assert_eq!(path, ".a.b[0].c");
}

#[test]
fn a_filter_runs_while_it_is_typed_and_the_last_good_values_stay() {
    let mut state = sample();
    let run = begun(&mut state, "1");
    ended(&mut state, run, ToolResult::json(json!({ "items": [{ "n": 1 }, { "n": 2 }] })));
    state.context.focus = Pane::Result;
    let answer = |state: &mut AppState, effects: Vec<AppEffect>| -> Vec<AppEffect> {
        let [AppEffect::Task(query)] = <[AppEffect; 1]>::try_from(effects).unwrap() else {
            panic!("nothing is asked")
        };
        state.update(query.computed().unwrap())
    };
    let first = press(&mut state, &["|"]);
    // One run at a time; what is typed meanwhile runs next.
    assert_eq!(press(&mut state, &[".items[].n"]), []);
    let next = answer(&mut state, first);
    assert_eq!(answer(&mut state, next), []);
    assert_eq!(shown_text(&state).as_deref(), Some("1\n2"));
    let effects = press(&mut state, &["["]);
    assert_eq!(answer(&mut state, effects), []);
    assert!(state.tools.viewer.filter.error.is_some());
    assert_eq!(shown_text(&state).as_deref(), Some("1\n2"));
    press(&mut state, &["<esc>", "<esc>"]);
    assert!(!state.tools.viewer.is_filtered());
}

#[test]
fn a_result_is_compared_with_the_one_before() {
    let mut state = sample();
    state.context.focus = Pane::Result;
    for n in [1, 2] {
        let run = begun(&mut state, "1");
        ended(&mut state, run, ToolResult::json(json!({ "same": true, "n": n })));
        state.context.focus = Pane::Result;
        if n == 1 {
            press(&mut state, &["d"]);
            assert!(state.context.message.clone().unwrap().is_error);
        }
    }
    press(&mut state, &["d"]);
    let shown = shown_text(&state).unwrap();
    assert!(shown.contains("-  \"n\": 1") && shown.contains("+  \"n\": 2"), "{shown}");
    press(&mut state, &["d"]);
    assert!(state.tools.viewer.difference.is_none());
}

#[test]
fn blocks_are_not_called_structured_content_and_json_in_a_text_is_unfolded() {
    let shown = |result: ToolResult| {
        let mut state = sample();
        state.context.appearance.images = false;
        let run = begun(&mut state, "1");
        ended(&mut state, run, result);
        shown_text(&state).unwrap()
    };
    let image = json!({ "type": "image", "data": "aGk=", "mimeType": "image/png" });
    let blocks = shown(ToolResult {
        success: true,
        content: vec![image.clone()],
        output: json!([image]),
        ..ToolResult::default()
    });
    assert!(blocks.contains("[image/png") && !blocks.contains("structured"), "{blocks}");
    let both = shown(ToolResult {
        success: true,
        content: vec![json!({ "type": "text", "text": "hi" })],
        structured: Some(json!({ "a": 1 })),
        ..ToolResult::default()
    });
    assert!(both.contains("structured content"), "{both}");
    let text = shown(ToolResult::text("{\"a\":[1,2]}"));
    assert!(text.starts_with("{\n  \"a\": ["), "{text}");
}

#[test]
fn a_page_of_the_help_is_as_high_as_its_window() {
    let mut state = sample();
    let picture = |state: &AppState| {
        crate::tui::tests::drawing::picture(state, state.context.appearance.theme())
    };
    press(&mut state, &["?"]);
    let before = picture(&state);
    state.update(AppEvent::Input(UserInput::Key(KeyPress::PageDown)));
    let after = picture(&state);
    // The last row inside the frame is the first one of the next page.
    let row = |picture: &str, at: usize| {
        let row = picture.lines().nth(at).unwrap().trim_matches(['"', '│', ' ']);
        // Behind it may stand how many rows are below.
        row.split("  ").filter(|part| !part.is_empty()).take(2).collect::<String>()
    };
    assert!(!row(&before, 36).is_empty(), "{before}");
    assert_eq!(row(&before, 36), row(&after, 3), "{after}");
}

#[test]
fn tools_are_sorted_by_what_was_counted_and_the_figure_is_shown() {
    let mut state = sample();
    let slow = UsageFigures {
        p95: Some(Duration::from_millis(310)),
        failed: 1,
        ..UsageFigures::default()
    };
    let fast =
        UsageFigures { p95: Some(Duration::from_millis(2)), failed: 7, ..UsageFigures::default() };
    let other =
        UsageFigures { p95: Some(Duration::from_hours(1)), failed: 100, ..UsageFigures::default() };
    let of = |name: &str, figures| {
        let key = ToolKey { name: name.to_owned(), ..ToolKey::default() };
        (key, figures)
    };
    // What another program of this name did is not this tool's.
    let mut elsewhere = of("clock", other);
    elsewhere.0.place.program = Some("0123456789ab".to_owned());
    let usage = [
        ("web-search".to_owned(), vec![of("web-search", slow)]),
        ("clock".to_owned(), vec![elsewhere, of("clock", fast)]),
    ];
    state.tools.catalogue.set_usage(usage.into());
    let names = |state: &AppState| -> Vec<String> {
        state.tools.catalogue.found.iter().map(|row| row.name.clone()).take(2).collect()
    };
    press(&mut state, &["s", "s"]);
    assert_eq!(names(&state), ["web-search", "clock"]);
    let seen = crate::tui::tests::drawing::picture(&state, state.context.appearance.theme());
    assert!(seen.contains("310 ms") && seen.contains("by p95"), "{seen}");
    press(&mut state, &["s"]);
    assert_eq!(names(&state), ["clock", "web-search"]);
}

#[test]
fn the_calls_of_the_chosen_tool_are_seen_as_they_end() {
    let mut state = sample();
    state.update(AppEvent::Tick(Duration::from_secs(1_000)));
    for (call, success) in [("a", true), ("b", true), ("c", false)] {
        let event = HostEvent::CallFinished {
            call_id: CallId(call.into()),
            tool: "calculator".to_owned(),
            success,
            is_cancelled: false,
            duration: Duration::from_millis(4),
        };
        told(&mut state, event);
    }
    let picture = |state: &AppState| {
        crate::tui::tests::drawing::picture(state, state.context.appearance.theme())
    };
    let seen = picture(&state);
    assert!(seen.contains("calls 3  errors 1  p50 4") && seen.contains("1 error"), "{seen}");
    // A chart of them from ten on.
    assert!(!seen.contains("/s in the last"), "{seen}");
    assert!(state.is_moving());
    state.update(AppEvent::Tick(Duration::from_secs(1_061)));
    assert!(!state.is_moving());
    for number in 0..7 {
        let call_id = CallId(format!("more-{number}").into());
        let (tool, duration) = ("calculator".to_owned(), Duration::from_millis(4));
        let event =
            HostEvent::CallFinished { call_id, tool, success: true, is_cancelled: false, duration };
        told(&mut state, event);
    }
    assert!(picture(&state).contains("/s in the last minute"));
}

#[test]
fn a_dry_run_asks_what_would_be_sent_and_calls_nothing() {
    let mut state = sample();
    let effects = press(&mut state, &["<enter>", "1+1", "<f6>"]);
    let arguments = json!({ "expression": "1+1" }).as_object().cloned().unwrap();
    let tool = "calculator".to_owned();
    assert!(effects.contains(&tasks::dry_run(tool, arguments).into()), "{effects:?}");
    assert!(
        effects.iter().any(|effect| matches!(effect, AppEffect::ValidateArguments { .. })),
        "{effects:?}"
    );
    assert_eq!(state.context.calls.all.len(), 0);
}

#[test]
fn settings_hold_and_no_colour_means_none() {
    for has_colour in [true, false] {
        let mut state = sample();
        state.context.appearance.has_colour = has_colour;
        let look = state.context.appearance;
        let look = Appearance { palette: ColourScheme::Light, mouse: false, ..look };
        let settings = ConsoleSettings { look, ..ConsoleSettings::default() };
        state.recall(Recollection { settings, ..Recollection::default() });
        assert!(!state.context.appearance.mouse);
        let shown = if has_colour { ColourScheme::Light } else { ColourScheme::Mono };
        assert_eq!(state.context.appearance.theme().palette, shown);
    }
}

#[test]
fn arguments_of_an_earlier_run_fill_the_form() {
    let arguments = json!({ "expression": "6*7" }).as_object().cloned().unwrap();
    let arguments = std::iter::once(("calculator".to_owned(), arguments)).collect();
    let mut state = sample();
    state.recall(Recollection { arguments, ..Recollection::default() });
    press(&mut state, &["<enter>"]);
    let form = state.tools.form.as_ref().unwrap();
    assert_eq!(Value::Object(form.arguments()), json!({ "expression": "6*7" }));
}

#[test]
fn the_mouse_chooses_what_it_points_at() {
    let mut state = sample();
    state.update(AppEvent::Input(UserInput::Click { x: 5, y: 4 }));
    assert_eq!(state.tools.catalogue.chosen().unwrap().name, "files-read_file");
    state.update(AppEvent::Input(UserInput::Click { x: 80, y: 25 }));
    assert_eq!(state.context.focus, Pane::Result);
    state.update(AppEvent::Input(UserInput::Wheel { x: 5, y: 4, by: 1 }));
    assert_eq!(state.tools.catalogue.list.chosen(), 4);
    for (x, y) in [(0, 0), (119, 39), (500, 500)] {
        state.update(AppEvent::Input(UserInput::Click { x, y }));
    }
}

/// Points at the first row, from this one on, in which this text stands.
fn point_at(state: &mut AppState, from: usize, text: &str) {
    let screen = picture(state, ASCII);
    let mut lines = screen.lines().enumerate().skip(from);
    let is_row = |line: &str| line.chars().take(40).collect::<String>().contains(text);
    let (row, _) = lines.find(|(_, line)| is_row(line)).unwrap_or_else(|| panic!("{screen}"));
    let (x, y) = (8, u16::try_from(row).unwrap());
    state.update(AppEvent::Input(UserInput::Click { x, y }));
}

#[test]
fn a_click_chooses_a_row_of_every_list() {
    let mut state = trace::tests::sample();
    point_at(&mut state, 3, "web      #41 tools");
    assert_eq!(state.trace.chosen().unwrap().traffic.server, "web");
    assert!(state.trace.chosen().unwrap().is_request());

    let mut state = stats::tests::measured();
    for name in ["web-search", "files-read_file", "calculator"] {
        point_at(&mut state, 3, name);
        assert_eq!(state.stats.chosen().unwrap().tool.name, name);
    }

    let mut state = history::tests::shown();
    point_at(&mut state, 3, "web-search");
    assert_eq!(state.history.chosen().unwrap().id, "c-2");

    let mut state = offerings::tests::listed();
    point_at(&mut state, 3, "memo://two");
    let chosen = state.offerings.chosen();
    assert!(matches!(chosen, Some(OfferingRow::Item(item)) if item.name == "memo://two"));

    let mut state = inbox::tests::several();
    for server in ["second", "first"] {
        point_at(&mut state, 3, server);
        assert_eq!(state.inbox.chosen().unwrap().question.server, server);
    }

    let mut state = sample();
    press(&mut state, &["5"]);
    point_at(&mut state, 3, "duration");
    assert_eq!(state.bench.form.current(), PlanField::Duration);
}

#[test]
fn a_click_below_the_last_row_of_a_list_chooses_nothing_else() {
    let mut state = sample();
    state.update(AppEvent::Input(UserInput::Click { x: 8, y: 30 }));
    assert_eq!(state.context.focus, Pane::Catalogue);
    assert_eq!(state.tools.catalogue.chosen().unwrap().name, "calculator");
}

/// How long a key takes among many tools; run by hand: nothing is asserted about time.
#[test]
#[ignore = "measures, and says so on standard error"]
fn how_long_a_letter_takes_among_twenty_thousand_tools() {
    use std::fmt::Write as _;
    use std::io::Write as _;

    use crate::util::clock::{Clock as _, SystemClock};
    for count in [10_000, 20_000] {
        let schema = json!({ "type": "object" });
        let name = |number: usize| format!("server{}-tool_number_{number}_of_many", number % 40);
        let mut state = AppState::new((120, 40));
        let started = SystemClock.now();
        state
            .update(listed((0..count).map(|number| tool(&name(number), schema.clone())).collect()));
        let mut text = format!("{count} tools: listed {:?}", started.elapsed());
        let backend = ratatui::backend::TestBackend::new(120, 40);
        let mut terminal = ratatui::Terminal::new(backend).unwrap();
        for key in ["/", "n", "u", "m", "1", "7"] {
            let started = SystemClock.now();
            press(&mut state, &[key]);
            let updated = started.elapsed();
            let theme = state.context.appearance.theme();
            terminal
                .draw(|frame| {
                    crate::tui::draw::console(frame.buffer_mut(), &state, theme);
                })
                .unwrap();
            let drawn = started.elapsed().saturating_sub(updated);
            write!(text, ", {key} {updated:?}+{drawn:?}").unwrap();
        }
        press(&mut state, &["<esc>"]);
        let started = SystemClock.now();
        for _ in 0..1_000 {
            press(&mut state, &["<down>"]);
        }
        write!(text, ", 1000 lines down {:?}", started.elapsed()).unwrap();
        writeln!(std::io::stderr(), "{text}").unwrap();
    }
}
