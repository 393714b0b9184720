//! Tests of overlays, running calls and remembered state, without a terminal.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::tests::{listed, press, sample, tool};
use super::*;
use crate::host::request::CallOutcome;
use crate::model::{CallId, CallMetadata, Error, HostEvent, LogLevel, ToolResult};
use crate::tui::event::persistence::PersistenceEvent;
use crate::tui::event::tools::{ResultExport, ToolsEffect};
use crate::tui::event::{AppEvent, ConsoleCallId, UserInput};
use crate::tui::keys::KeyPress;
use crate::tui::persisted_state::PersistedState;
use crate::tui::settings::ConsoleSettings;
use crate::tui::theme::ColourScheme;

/// A call of the calculator that runs; its number.
pub(in crate::tui) fn begun(state: &mut AppState, expression: &str) -> ConsoleCallId {
    let arguments = json!({ "expression": expression }).as_object().cloned().unwrap();
    let run = state.context.calls.begin("calculator".into(), arguments);
    state.update(AppEvent::CallStarted { run, call: CallId(format!("call-{}", run.0)) });
    run
}

pub(in crate::tui) fn ended(state: &mut AppState, run: ConsoleCallId, result: ToolResult) {
    let definition = Arc::clone(&state.tools.catalogue.find_by_name("calculator").unwrap().tool);
    let metadata = CallMetadata {
        call_id: CallId(format!("call-{}", run.0)),
        duration: Duration::from_micros(900),
        question_wait: Duration::ZERO,
        connect: None,
        attempts: 1,
        protocol: None,
        routing: None,
    };
    let outcome = CallOutcome { definition, result: Ok(result), metadata };
    state.update(AppEvent::CallFinished { run, outcome: Box::new(Ok(outcome)) });
}

pub(in crate::tui) fn told(state: &mut AppState, event: HostEvent) {
    state.update(AppEvent::Host(event));
}

pub(in crate::tui) fn id(run: ConsoleCallId) -> CallId {
    CallId(format!("call-{}", run.0))
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
        HostEvent::CallStarted { call_id: child.clone(), tool: "clock".into(), parent },
    );
    let grandchild = CallId("grandchild".into());
    let parent = Some(child.clone());
    told(&mut state, HostEvent::CallStarted { call_id: grandchild, tool: "web-x".into(), parent });
    let duration = Duration::from_millis(2);
    told(
        &mut state,
        HostEvent::CallFinished { call_id: child, tool: "clock".into(), success: true, duration },
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
    let live = &state.context.calls.get(run).unwrap().activity;
    assert_eq!(live.progress.as_ref().and_then(CallProgress::share), Some(0.75));
    let nested: Vec<_> =
        live.children.iter().map(|n| (n.tool.as_str(), n.depth, n.ended)).collect();
    assert_eq!(nested, [("clock", 1, Some((true, duration))), ("web-x", 2, None)]);
    assert_eq!(live.log, [("info".to_owned(), "hm".to_owned())]);
    assert_eq!(state.context.calls.get(other).unwrap().activity.progress, None);
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
    let retry = state.context.calls.get(run).unwrap().activity.retry.clone().unwrap();
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
    assert_eq!(palette.chosen().unwrap().command, PaletteCommand::Action(Action::Run));
    press(&mut state, &["theme mono", "<enter>"]);
    assert_eq!(state.context.appearance.theme().palette, ColourScheme::Mono);
    press(&mut state, &["^p", "zzzz", "<enter>"]);
    assert_eq!(state.context.overlay, None);
}

#[test]
fn every_action_of_a_view_is_in_its_palette_with_a_key_that_does_it() {
    for view in ViewId::ALL {
        let mut state = sample();
        state.show(view);
        let places = state.view_key_contexts();
        press(&mut state, &[":"]);
        let Some(Overlay::Palette(palette)) = &state.context.overlay else { panic!("{view:?}") };
        for entry in palette.from(0) {
            if let (PaletteCommand::Action(action), Some(key)) = (entry.command, entry.key) {
                assert_eq!(state.context.keys.action(key, &places), Some(action), "{view:?} {key}");
            }
        }
        assert!(palette.len() > 20);
    }
}

#[test]
fn a_letter_leads_to_its_pane() {
    let mut state = sample();
    let jump = AppEvent::Input(UserInput::Key(KeyPress::Ctrl('o')));
    state.update(jump);
    press(&mut state, &["c"]);
    assert_eq!((state.context.focus, &state.context.overlay), (Pane::Result, &None));
}

#[test]
fn results_are_turned_stepped_through_and_saved() {
    let mut state = sample();
    let first = begun(&mut state, "1");
    ended(&mut state, first, ToolResult::json(json!({ "value": 1, "list": [1, 2] })));
    let second = begun(&mut state, "2");
    ended(&mut state, second, ToolResult::text("two"));
    let text =
        |state: &AppState| state.tools.viewer.text.to_text().lines().next().map(str::to_owned);
    assert_eq!(text(&state).as_deref(), Some("two"));
    state.context.focus = Pane::Result;
    press(&mut state, &["<left>"]);
    assert_eq!(text(&state).as_deref(), Some("{"));
    press(&mut state, &["<left>", "t"]);
    assert_eq!(state.tools.viewer.tree.len(), 5);
    press(&mut state, &["j", "j", "<enter>"]);
    assert_eq!(state.tools.viewer.tree.len(), 3);
    let effects = press(&mut state, &["E"]);
    let what = Box::new(ResultExport::Json(json!({ "value": 1, "list": [1, 2] })));
    let stem = "calculator-call0".to_owned();
    assert_eq!(effects, [AppEffect::Tools(ToolsEffect::Save { stem, what })]);
    press(&mut state, &["<right>", "<right>", "t"]);
    assert!(text(&state).unwrap().starts_with('{'), "{:?}", text(&state));
}

#[test]
fn a_dry_run_asks_what_would_be_sent_and_calls_nothing() {
    let mut state = sample();
    let effects = press(&mut state, &["<enter>", "1+1", "<f6>"]);
    let arguments = json!({ "expression": "1+1" }).as_object().cloned().unwrap();
    let tool = "calculator".to_owned();
    assert!(
        effects.contains(&AppEffect::Tools(ToolsEffect::DryRun { tool, arguments })),
        "{effects:?}"
    );
    assert!(
        effects.iter().any(|effect| matches!(effect, AppEffect::ValidateArguments { .. })),
        "{effects:?}"
    );
    assert_eq!(state.context.calls.count(), 0);
}

#[test]
fn settings_hold_unless_other_colours_were_chosen_over_them() {
    let settings =
        |theme| ConsoleSettings { theme: Some(theme), mouse: true, ..ConsoleSettings::default() };
    let recalled = |state: &mut AppState, theme, memory| {
        let event =
            PersistenceEvent { settings: settings(theme), persisted: memory, problems: Vec::new() };
        state.update(AppEvent::Persistence(Box::new(event)));
    };
    let mut state = sample();
    recalled(&mut state, ColourScheme::Light, None);
    assert_eq!(state.context.appearance.palette, ColourScheme::Light);
    assert!(state.context.appearance.mouse);
    assert_eq!(state.take_unsaved(), None);
    press(&mut state, &[":", "theme-high", "<enter>", "2"]);
    let memory = state.take_unsaved().unwrap();
    assert_eq!(memory.view, "servers");
    assert_eq!(state.take_unsaved(), None);
    let mut again = sample();
    recalled(&mut again, ColourScheme::Light, Some(memory.clone()));
    assert_eq!(
        (again.context.appearance.palette, again.context.view),
        (ColourScheme::HighContrast, ViewId::Servers)
    );
    let mut changed = sample();
    recalled(&mut changed, ColourScheme::Default, Some(memory));
    assert_eq!(changed.context.appearance.palette, ColourScheme::Default);
    let mut colourless = sample();
    colourless.context.appearance.has_colour = false;
    recalled(&mut colourless, ColourScheme::Light, None);
    assert_eq!(colourless.context.appearance.theme().palette, ColourScheme::Mono);
}

#[test]
fn arguments_of_an_earlier_run_fill_the_form_and_nothing_is_written_before_they_came() {
    let mut memory = PersistedState::default();
    let arguments = json!({ "expression": "6*7" }).as_object().cloned().unwrap();
    memory.save_arguments("calculator", &arguments, None);
    let mut state = sample();
    press(&mut state, &["2", "1"]);
    assert_eq!(state.take_unsaved(), None);
    let event = PersistenceEvent { persisted: Some(memory), ..PersistenceEvent::default() };
    state.update(AppEvent::Persistence(Box::new(event)));
    press(&mut state, &["<enter>"]);
    let form = state.tools.form.as_ref().unwrap();
    assert_eq!(Value::Object(form.arguments()), json!({ "expression": "6*7" }));
    press(&mut state, &["+1", "<f5>"]);
    let kept = state.take_unsaved().unwrap().arguments["calculator"].clone();
    assert_eq!(Value::Object(kept.arguments), json!({ "expression": "6*7+1" }));
    // The writer has to know what is secret.
    assert!(kept.schema.is_some());
}

#[test]
fn the_mouse_chooses_what_it_points_at() {
    let mut state = sample();
    state.update(AppEvent::Input(UserInput::Click { x: 5, y: 4 }));
    assert_eq!(state.tools.catalogue.chosen().unwrap().name, "clock");
    state.update(AppEvent::Input(UserInput::Click { x: 80, y: 25 }));
    assert_eq!(state.context.focus, Pane::Result);
    state.update(AppEvent::Input(UserInput::Wheel { x: 5, y: 4, by: 1 }));
    assert_eq!(state.tools.catalogue.list.chosen(), 3);
    for (x, y) in [(0, 0), (119, 39), (500, 500)] {
        state.update(AppEvent::Input(UserInput::Click { x, y }));
    }
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
        let mut said = format!("{count} tools: listed {:?}", started.elapsed());
        let backend = ratatui::backend::TestBackend::new(120, 40);
        let mut terminal = ratatui::Terminal::new(backend).unwrap();
        for key in ["/", "n", "u", "m", "1", "7"] {
            let started = SystemClock.now();
            press(&mut state, &[key]);
            let updated = started.elapsed();
            let theme = state.context.appearance.theme();
            terminal.draw(|frame| crate::tui::draw::console(frame, &state, &theme)).unwrap();
            let drawn = started.elapsed().saturating_sub(updated);
            write!(said, ", {key} {updated:?}+{drawn:?}").unwrap();
        }
        press(&mut state, &["<esc>"]);
        let started = SystemClock.now();
        for _ in 0..1_000 {
            press(&mut state, &["<down>"]);
        }
        write!(said, ", 1000 lines down {:?}", started.elapsed()).unwrap();
        writeln!(std::io::stderr(), "{said}").unwrap();
    }
}
