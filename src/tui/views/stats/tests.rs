//! Tests of the statistics view.

use super::*;
use crate::stats::Summary;
use crate::stats::count::{CallCounts, UsagePeriod};
use crate::stats::summary::TimeSeriesSet;
use crate::tui::event::UserInput;
use crate::tui::keys::KeyPress;
use crate::tui::tests::drawing::{ASCII, picture};
use crate::tui::tests::{press, sample, tell};
use crate::tui::theme::Theme;

const NOW: u64 = 1_795_304_776;

fn usage(name: &str, server: Option<&str>, micros: u64, calls: u64) -> Usage {
    let mut counts = CallCounts { ok: calls, attempts: calls, ..CallCounts::default() };
    for call in 1..=calls {
        counts.durations.record(Duration::from_micros(micros + call * micros / 50));
    }
    let server = server.map(str::to_owned);
    let tool = ToolKey { name: name.into(), server, ..ToolKey::default() };
    Usage {
        tool,
        counts,
        period: UsagePeriod { first: (NOW - 3_000) * 1_000, last: NOW * 1_000 },
        is_partial: false,
    }
}

pub fn seen(window: StatsWindow) -> StatsSnapshot {
    let mut failing = usage("web-search", Some("web"), 210_000, 31);
    failing.counts.add_failures("timeout", 4);
    failing.counts.add_failures("tool", 3);
    failing.counts.attempts = 50;
    let tools = vec![
        usage("calculator", None, 800, 2_000),
        usage("files-read_file", Some("files"), 900, 12),
        failing,
    ];
    let point = |at: u64| SeriesPoint {
        calls: at,
        failed: u64::from(at % 7 == 3),
        p95: (at > 0).then(|| Duration::from_millis(at)),
    };
    let timeline = |usage: &Usage| (usage.tool.clone(), (0..30).map(point).collect());
    let timelines = TimeSeriesSet {
        length: Duration::from_mins(1),
        series: tools.iter().map(timeline).collect(),
    };
    let now = Duration::from_secs(NOW);
    let from = Some(Duration::from_secs(NOW - 3_600));
    StatsSnapshot {
        all_projects: false,
        window,
        summary: Summary { from, now, tools, ..Summary::default() },
        earlier: None,
        timelines,
        place: "/state/toolhost/stats.spool".to_owned(),
        size: Some(61_440),
        is_recording: true,
    }
}

/// Statistics of tools with these names.
pub fn named(names: [&str; 2]) -> AppState {
    let mut state = measured();
    let mut snapshot = seen(StatsWindow::Hour);
    snapshot.summary.tools = names.map(|name| usage(name, Some("srv"), 100, 9)).into();
    loaded(&mut state, snapshot);
    state
}

pub fn measured() -> AppState {
    let mut state = sample();
    assert_eq!(press(&mut state, &["4"]).len(), 1, "it is looked at once");
    loaded(&mut state, seen(StatsWindow::Hour));
    loaded(&mut state, seen(StatsWindow::Hour));
    state
}

fn loaded(state: &mut AppState, snapshot: StatsSnapshot) -> Vec<AppEffect> {
    read(state, Ok(snapshot))
}

fn read(state: &mut AppState, snapshot: Result<StatsSnapshot, Error>) -> Vec<AppEffect> {
    tell(state, |state| state.stats.loaded(snapshot, &mut state.context))
}

fn tick(state: &mut AppState, seconds: u64) -> Vec<AppEffect> {
    state.update(AppEvent::Tick(Duration::from_secs(NOW + seconds)))
}

fn names(state: &AppState) -> Vec<&str> {
    state.stats.rows().iter().map(|usage| usage.tool.name.as_str()).collect()
}

/// What is asked of the store.
fn looks(effects: &[AppEffect]) -> Vec<String> {
    let all = effects.iter().map(|effect| format!("{effect:?}"));
    all.filter(|name| name.contains("statistics")).collect()
}

fn is_of_window(effects: &[AppEffect], window: StatsWindow) -> bool {
    looks(effects)[0].contains(&format!("window: {window:?}"))
}

#[test]
fn it_is_looked_at_every_second_and_never_twice_at_once() {
    let mut state = measured();
    assert!(state.is_moving());
    assert_eq!(looks(&tick(&mut state, 1)).len(), 1);
    assert_eq!(tick(&mut state, 2), [], "the first look is not over");
    loaded(&mut state, seen(StatsWindow::Hour));
    assert_eq!(looks(&tick(&mut state, 3)).len(), 1);
}

#[test]
fn held_still_nothing_is_looked_at() {
    let mut state = measured();
    assert_eq!(press(&mut state, &[" "]), []);
    assert!(!state.is_moving());
    assert_eq!(tick(&mut state, 5), []);
    assert_eq!(looks(&press(&mut state, &[" "])).len(), 1);
}

#[test]
fn windows_come_in_turn_and_what_was_asked_meanwhile_is_looked_at_next() {
    let mut state = measured();
    assert!(is_of_window(&press(&mut state, &["w"]), StatsWindow::Session));
    // Before that was seen, the next window is wanted.
    assert_eq!(press(&mut state, &["w"]), []);
    let effects = loaded(&mut state, seen(StatsWindow::Session));
    assert!(is_of_window(&effects, StatsWindow::All));
}

#[test]
fn all_projects_are_counted_on_request_and_the_title_says_whose_calls_they_are() {
    let mut state = measured();
    assert_eq!(press(&mut state, &["P"]).len(), 1);
    assert!(state.context.message.as_ref().unwrap().text.contains("no project here"));
    loaded(&mut state, seen(StatsWindow::Hour));
    state.context.shown_projects = ShownProjects::Own;
    let effects = press(&mut state, &["P"]);
    assert!(looks(&effects)[0].contains("all_projects: true"));
    // What was read before is of the project only: it is looked at again.
    let effects = loaded(&mut state, seen(StatsWindow::Hour));
    assert!(looks(&effects)[0].contains("all_projects: true"));
    // The history shows the same.
    let effects = press(&mut state, &["6"]);
    let reads_all = |effect: &AppEffect| {
        let name = format!("{effect:?}");
        name.contains("read history") && name.contains("all_projects: true")
    };
    assert!(effects.iter().any(reads_all), "{effects:?}");
    assert!(!press(&mut state, &["P"]).iter().any(reads_all));
    assert_eq!(state.context.shown_projects, ShownProjects::Own);
}

#[test]
fn a_reset_deletes_nothing_and_counts_from_now() {
    let mut state = measured();
    let effects = press(&mut state, &["0"]);
    assert!(is_of_window(&effects, StatsWindow::SinceReset));
    assert!(looks(&effects)[0].ends_with("true))"), "{effects:?}");
    assert!(state.context.message.as_ref().unwrap().text.contains("counting from now on"));
}

#[test]
fn rows_are_sorted_and_what_was_chosen_stays_chosen() {
    let mut state = measured();
    assert_eq!(names(&state), ["calculator", "web-search", "files-read_file"]);
    press(&mut state, &["<down>"]);
    assert_eq!(state.stats.chosen().unwrap().tool.name, "web-search");
    press(&mut state, &["s"]);
    assert_eq!(names(&state)[0], "web-search", "most errors first");
    assert_eq!(state.stats.list.cursor.chosen(), 0);
    assert_eq!(looks(&press(&mut state, &["t"])).len(), 1);
    let servers: Vec<_> =
        state.stats.rows().iter().map(|usage| usage.tool.server.as_deref()).collect();
    assert_eq!(servers, [Some("web"), None, Some("files")]);
}

#[test]
fn what_is_looked_at_is_what_is_near() {
    let mut state = measured();
    let effects = tick(&mut state, 1);
    for tool in ["calculator", "files-read_file", "web-search"] {
        assert!(looks(&effects)[0].contains(&format!("\"{tool}\"")), "{effects:?}");
    }
}

#[test]
fn a_tool_is_shown_and_benchmarked() {
    let mut state = measured();
    press(&mut state, &["<enter>"]);
    assert_eq!(state.context.view, ViewId::Tools);
    assert_eq!(state.tools.catalogue.chosen().unwrap().name, "calculator");
    press(&mut state, &["4", "b"]);
    assert_eq!(state.context.view, ViewId::Bench);
    assert!(state.bench.form.command_line("").starts_with("toolhost bench calculator"));
}

#[test]
fn a_look_that_failed_is_said_and_repeated() {
    let mut state = measured();
    tick(&mut state, 1);
    read(&mut state, Err(Error::unreachable("the store is locked")));
    assert!(state.stats.error.is_some());
    assert_eq!(names(&state).len(), 3, "what was seen before stays");
    assert_eq!(looks(&tick(&mut state, 3)).len(), 1);
    loaded(&mut state, seen(StatsWindow::Hour));
    assert!(state.stats.error.is_none());
}

fn sized(mut state: AppState, width: u16, height: u16) -> AppState {
    state.update(AppEvent::Input(UserInput::Resize { width, height }));
    state
}

#[test]
fn the_statistics_in_120_by_40() {
    let mut state = sized(measured(), 120, 40);
    press(&mut state, &["<down>"]);
    insta::assert_snapshot!(picture(&state, Theme::default()));
}

#[test]
fn the_statistics_in_80_by_24() {
    insta::assert_snapshot!(picture(&sized(measured(), 80, 24), ASCII));
}

#[test]
fn the_servers_in_80_by_24() {
    let mut state = sized(measured(), 80, 24);
    press(&mut state, &["t", "H", " "]);
    insta::assert_snapshot!(picture(&state, Theme::default()));
}

#[test]
fn the_statistics_in_60_by_16() {
    let mut state = sized(measured(), 60, 16);
    let table = picture(&state, ASCII);
    press(&mut state, &["<tab>"]);
    insta::assert_snapshot!(format!("{table}\n{}", picture(&state, ASCII)));
}

#[test]
fn the_statistics_in_40_by_10() {
    let mut state = sized(measured(), 40, 10);
    let table = picture(&state, ASCII);
    press(&mut state, &["<tab>"]);
    insta::assert_snapshot!(format!("{table}\n{}", picture(&state, ASCII)));
}

#[test]
fn without_calls_it_is_said_what_to_do() {
    let mut state = sized(sample(), 80, 24);
    press(&mut state, &["4"]);
    assert!(picture(&state, ASCII).contains("Loading..."));
    let mut seen = seen(StatsWindow::default());
    seen.summary.tools.clear();
    loaded(&mut state, seen);
    let shown = picture(&state, ASCII);
    assert!(shown.contains("No calls in this window."), "{shown}");
}

#[test]
fn a_store_that_cannot_be_read_is_said_above_what_was_seen_before() {
    let mut state = sized(measured(), 80, 24);
    let error = crate::model::Error::unreachable("it is locked by process 7").with_hint("end that");
    read(&mut state, Err(error));
    let shown = picture(&state, ASCII);
    for part in
        ["cannot read statistics: it is locked by process 7", "hint: end that", "calculator"]
    {
        assert!(shown.contains(part), "{part}:\n{shown}");
    }
}

#[test]
fn a_tool_tells_its_use_in_its_detail() {
    let mut state = sized(measured(), 120, 40);
    press(&mut state, &["1", "d"]);
    let shown = picture(&state, ASCII);
    assert!(shown.contains("used      2,000 calls, 100.0% ok, p50 16.9 ms"), "{shown}");
}

#[test]
fn no_size_is_too_small() {
    for (width, height) in [(20, 5), (21, 6), (30, 5), (500, 6), (25, 200)] {
        let mut state = sized(measured(), width, height);
        picture(&state, ASCII);
        press(&mut state, &["<tab>", "E"]);
        picture(&state, ASCII);
        state.update(AppEvent::Input(UserInput::Key(KeyPress::Esc)));
    }
}

#[test]
fn what_changed_since_the_period_before_is_told() {
    let mut snapshot = seen(StatsWindow::Hour);
    let mut earlier = seen(StatsWindow::Hour).summary;
    for usage in &mut earlier.tools {
        usage.counts.failures.clear();
    }
    snapshot.earlier = Some(earlier.tools);
    let mut state = sized(measured(), 120, 40);
    loaded(&mut state, snapshot);
    press(&mut state, &["s", "k"]);
    let drawn = picture(&state, ASCII);
    assert!(drawn.contains("change  calls +23%  errors +18.4 pp"), "{drawn}");
}

#[test]
fn a_filter_narrows_the_rows_and_enter_opens_one_of_them() {
    let mut state = measured();
    press(&mut state, &["/", "web"]);
    let shown = picture(&state, ASCII);
    assert!(shown.contains("web-search") && !shown.contains("calculator"), "{shown}");
    press(&mut state, &["<enter>"]);
    assert_eq!(state.tools.catalogue.chosen().unwrap().name, "web-search");
    press(&mut state, &["4", "<esc>"]);
    assert_eq!(state.stats.chosen().unwrap().tool.name, "web-search");
    press(&mut state, &["/", "!web", "<down>", "<down>"]);
    assert_eq!(state.stats.chosen().unwrap().tool.name, "files-read_file");
}

#[test]
fn where_nothing_is_counted_that_is_said() {
    let mut state = sized(sample(), 80, 24);
    press(&mut state, &["4"]);
    let mut seen = seen(StatsWindow::default());
    seen.summary.tools.clear();
    seen.is_recording = false;
    loaded(&mut state, seen);
    let shown = picture(&state, ASCII);
    assert!(
        shown.contains("Set stats: { enabled: true }") && !shown.contains("No calls"),
        "{shown}"
    );
}
