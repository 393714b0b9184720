//! Tests of the benchmark view, driven by keys.

use super::*;

use crate::bench::bench_result::{AcceptanceCriteria, BenchFindings};
use crate::bench::control::RunPhase;
use crate::bench::environment::BenchEnvironment;
use crate::bench::fixtures::{report, rounds, running, target, timed_out};
use crate::bench::plan::Sharing;
use crate::bench::report::TargetReport;
use crate::tui::event::UserInput;
use crate::tui::tests::drawing::{ASCII, picture};
use crate::tui::tests::{press, sample, tell};
use crate::tui::theme::Theme;
use crate::util::histogram::Durations;

fn times(micros: u64) -> Vec<Duration> {
    (1..=100).map(|n| Duration::from_micros(n * micros)).collect()
}

/// What is seen of a run on two tools in its middle.
pub fn seen() -> BenchSnapshot {
    let target = |name: &str, micros| {
        let mut durations = Durations::default();
        for time in times(micros) {
            durations.record(time);
        }
        let target = running(name, durations, (0..40).map(|n| n % 13));
        TargetReport { warm_up: 100, ..target }
    };
    let mut second = target("web-search", 25);
    timed_out(&mut second, 2);
    BenchSnapshot {
        phase: RunPhase::Measuring,
        elapsed: Duration::from_millis(4_200),
        progress: Some(0.42),
        round: Some((9, 20)),
        in_flight: 2,
        targets: vec![target("calculator", 10), second],
    }
}

/// The account of a run in which the second tool is 2.5 times as slow.
pub fn account() -> BenchResult {
    let mut report = report(vec![target("calculator", times(10)), target("web-search", times(25))]);
    report.plan.sharing = Sharing::Interleaved { rounds: 20 };
    report.rounds = rounds(&[10, 25], 20);
    let environment = BenchEnvironment { cpus: Some(4), ..BenchEnvironment::default() };
    let findings = BenchFindings::conclude(&report, &environment, &AcceptanceCriteria::default());
    BenchResult { report, environment, findings }
}

/// A run that was begun on two tools, by keys.
pub fn begun() -> AppState {
    let mut state = sample();
    press(&mut state, &["5", "a", "calc", "<enter>", "b", "websea", "<enter>"]);
    let effects = press(&mut state, &["<enter>"]);
    let BenchRun { number, spec, control, .. } = state.bench.run.as_ref().unwrap();
    assert_eq!(effects, [tasks::start(*number, spec.clone(), control.clone()).into()]);
    assert_eq!(
        (*number, &spec.tools[..]),
        (1, &["calculator", "web-search"].map(str::to_owned)[..])
    );
    state
}

fn finish(state: &mut AppState, snapshot: BenchSnapshot) -> Vec<AppEffect> {
    tell(state, |state| {
        state.bench.finished(1, Box::new(snapshot), Ok(account()), &mut state.context);
    })
}

pub fn middle() -> AppState {
    let mut state = begun();
    state.bench.started(1, Vec::new());
    state.bench.seen(1, Box::new(seen()));
    state
}

pub fn ended() -> AppState {
    let mut state = middle();
    let over = BenchSnapshot { phase: RunPhase::Done, progress: Some(1.0), ..seen() };
    finish(&mut state, over);
    state
}

#[test]
fn what_a_tool_requires_is_filled_in_by_an_example() {
    let state = begun();
    let form = &state.bench.form;
    assert_eq!(form.text(PlanField::ArgumentsA), r#"{"expression":"text"}"#);
    assert!(state.bench.is_running());
    assert_eq!(state.context.focus, Pane::Run);
}

#[test]
fn a_tool_of_the_catalogue_is_benchmarked_with_what_it_was_called_with_last() {
    let mut state = sample();
    press(&mut state, &["<enter>", "1+1", "<f5>", "<esc>", "b"]);
    assert_eq!(state.context.view, ViewId::Bench);
    assert_eq!(
        state.bench.form.command_line(""),
        r#"toolhost bench calculator '{"expression":"1+1"}'"#
    );
}

#[test]
fn a_copied_run_names_the_server_that_only_the_command_line_names() {
    let mut state = sample();
    state.context.command_end = " -- python3 memo.py".to_owned();
    press(&mut state, &["5", "a", "clock", "<enter>"]);
    let line = "toolhost bench clock -- python3 memo.py";
    assert_eq!(press(&mut state, &["Y"]), [AppEffect::Copy(line.to_owned())]);
    assert!(picture(&state, ASCII).contains(line));
}

#[test]
fn entries_are_written_and_what_is_wrong_stands_at_its_entry() {
    let mut state = sample();
    press(&mut state, &["5"]);
    state.bench.form = PlanForm::default();
    press(&mut state, &["<enter>"]);
    assert!(state.bench.form.error.is_some(), "without a tool nothing is run");
    assert_eq!(state.context.message.as_ref().unwrap().text, "tool: no tool chosen");
    press(&mut state, &["a", "clock", "<enter>"]);
    press(&mut state, &["j", "j", "j", "e"]);
    assert_eq!(state.bench.form.current(), PlanField::InFlight);
    // Letters are letters here, and the digits are no views.
    press(&mut state, &["5x", "<f5>"]);
    assert_eq!(state.bench.form.text(PlanField::InFlight), "5x");
    assert!(state.bench.run.is_none() && state.context.view == ViewId::Bench);
    assert!(state.context.message.as_ref().unwrap().text.starts_with("in flight: invalid"));
    press(&mut state, &["^u", "5", "<enter>", "fast", "<esc>", "<enter>"]);
    assert_eq!(state.bench.form.current(), PlanField::Rate);
    let message = &state.context.message.as_ref().unwrap();
    assert!(message.is_error && message.text.contains("calls per second"), "{}", message.text);
    assert!(state.bench.run.is_none());
    press(&mut state, &["e", "^u", "50", "<enter>", "7", "<f5>"]);
    assert_eq!(
        state.bench.run.as_ref().unwrap().command_line,
        "toolhost bench clock -c 5 --rate 50 -n 7"
    );
}

#[test]
fn a_run_is_paused_and_stopped_and_only_one_goes_on() {
    let mut state = middle();
    let control = state.bench.run.as_ref().unwrap().control.clone();
    for is_paused in [true, false] {
        assert_eq!(press(&mut state, &[" "]), []);
        assert_eq!(control.is_paused(), is_paused);
    }
    assert_eq!(press(&mut state, &["<enter>"]), []);
    assert!(state.context.message.as_ref().unwrap().is_error);
    assert_eq!(press(&mut state, &["x"]), [AppEffect::Stop(tasks::SLOT.to_owned())]);
}

#[test]
fn leaving_asks_while_a_run_goes_on_and_control_c_stops_it_first() {
    let mut state = middle();
    // It goes on when another view is shown.
    assert_eq!(press(&mut state, &["1", "q"]), []);
    assert_eq!(state.context.overlay, Some(Overlay::ConfirmQuit));
    press(&mut state, &["<esc>"]);
    assert_eq!(press(&mut state, &["^c"]), [AppEffect::Stop(tasks::SLOT.to_owned())]);
    assert_eq!(press(&mut state, &["^c"]), []);
    assert_eq!(press(&mut state, &["y"]), [AppEffect::Quit(None)]);
}

#[test]
fn the_end_of_a_run_is_said_wherever_one_is() {
    let mut state = middle();
    press(&mut state, &["1"]);
    finish(&mut state, seen());
    let text = &state.context.message.as_ref().unwrap().text;
    assert!(text.starts_with("run 1 finished: B is slower than A"), "{text}");
    // What is told of a run that is over, or of another one, changes nothing.
    state.bench.seen(1, Box::default());
    assert_eq!(state.bench.run.as_ref().unwrap().snapshot.as_ref().unwrap().targets.len(), 2);
}

#[test]
fn a_run_is_written_in_each_format() {
    let mut state = ended();
    let effects = press(&mut state, &["E", "<enter>"]);
    let written = format!("{effects:?}");
    let is_report = written.contains("\"bench-1.md\"") && written.contains("web-search");
    assert!(is_report, "{written}");
    for (name, begins) in [("a.csv", "tool"), ("a.html", "<!doctype html>"), ("a.json", "{")] {
        state.bench.file = Some(TextInput::of(name));
        let effects = press(&mut state, &["<enter>"]);
        let written = format!("{effects:?}");
        assert!(written.contains(&format!("\"{name}\", \"{begins}")), "{written}");
    }
    state.bench.file = Some(TextInput::of("a.exe"));
    assert_eq!(press(&mut state, &["<enter>"]), []);
    assert!(state.bench.file.is_some());
}

#[test]
fn a_long_name_of_an_export_is_seen_where_it_is_written() {
    let mut state = sized(ended(), 80, 24);
    press(&mut state, &["E", "^u", "/a/directory/with/a/long/name/run.json"]);
    let seen = picture(&state, ASCII);
    assert!(seen.contains("/run.json"), "{seen}");
}

#[test]
fn a_picker_finds_by_letters_and_is_left_without_a_choice() {
    let mut state = sample();
    press(&mut state, &["5", "a", "rdfl"]);
    assert_eq!(
        state.bench.picker.as_ref().unwrap().tools.chosen().unwrap().name,
        "files-read_file"
    );
    press(&mut state, &["zz"]);
    assert!(picture(&state, ASCII).contains("No matches."));
    press(&mut state, &["<esc>"]);
    assert!(state.bench.picker.is_none());
    assert_eq!(state.bench.form.text(PlanField::ToolA), "calculator");
}

fn sized(mut state: AppState, width: u16, height: u16) -> AppState {
    state.update(AppEvent::Input(UserInput::Resize { width, height }));
    state
}

#[test]
fn a_plan_in_80_by_24() {
    let mut state = sized(sample(), 80, 24);
    press(&mut state, &["5", "a", "calc", "<enter>", "j", "j", "j", "j", "e", "8"]);
    insta::assert_snapshot!(picture(&state, Theme::default()));
}

#[test]
fn a_choice_of_tools_in_80_by_24() {
    let mut state = sized(sample(), 80, 24);
    press(&mut state, &["5", "b", "c"]);
    insta::assert_snapshot!(picture(&state, ASCII));
}

#[test]
fn a_run_in_120_by_40() {
    insta::assert_snapshot!(picture(&sized(middle(), 120, 40), Theme::default()));
}

#[test]
fn a_verdict_in_120_by_40() {
    insta::assert_snapshot!(picture(&sized(ended(), 120, 40), ASCII));
}

#[test]
fn a_run_in_80_by_24() {
    insta::assert_snapshot!(picture(&sized(ended(), 80, 24), ASCII));
}

#[test]
fn a_run_in_60_by_16() {
    let mut state = sized(ended(), 60, 16);
    let run = picture(&state, ASCII);
    press(&mut state, &["<tab>"]);
    insta::assert_snapshot!(format!("{run}\n{}", picture(&state, ASCII)));
}

#[test]
fn a_run_in_40_by_10() {
    let mut state = sized(middle(), 40, 10);
    let run = picture(&state, ASCII);
    press(&mut state, &["<tab>", "<tab>"]);
    insta::assert_snapshot!(format!("{run}\n{}", picture(&state, ASCII)));
}

#[test]
fn no_size_is_too_small() {
    for (width, height) in [(20, 5), (21, 6), (30, 5), (500, 6), (25, 200)] {
        let mut state = sized(ended(), width, height);
        for _ in 0..3 {
            picture(&state, ASCII);
            press(&mut state, &["<tab>"]);
        }
        press(&mut state, &["E"]);
        picture(&state, ASCII);
        press(&mut state, &["<esc>", "a"]);
        picture(&state, ASCII);
    }
}

#[test]
fn a_slash_finds_the_tool_that_is_measured() {
    let mut state = sample();
    press(&mut state, &["5", "/", "websea"]);
    let seen = picture(&state, ASCII);
    assert!(seen.contains("web-search") && !seen.contains("clock"), "{seen}");
    press(&mut state, &["<enter>"]);
    assert_eq!(state.bench.form.text(PlanField::ToolA), "web-search");
}
