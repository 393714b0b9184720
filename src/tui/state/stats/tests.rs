//! Tests of the statistics view.

use super::*;
use crate::stats::Summary;
use crate::stats::count::{CallCounts, UsagePeriod};
use crate::stats::summary::TimeSeriesSet;
use crate::tui::event::AppEvent;
use crate::tui::event::history::HistoryEffect;
use crate::tui::state::tests::{press, sample};
use crate::tui::state::{AppState, ViewId};

const NOW: u64 = 1_795_304_776;

fn usage(name: &str, server: Option<&str>, micros: u64, calls: u64) -> Usage {
    let mut counts = CallCounts { ok: calls, attempts: calls, ..CallCounts::default() };
    for call in 1..=calls {
        counts.durations.record(Duration::from_micros(micros + call * micros / 50));
    }
    let server = server.map(str::to_owned);
    let tool = ToolKey { name: name.into(), server, ..ToolKey::default() };
    Usage { tool, counts, period: UsagePeriod { first: (NOW - 3_000) * 1_000, last: NOW * 1_000 } }
}

pub(in crate::tui) fn seen(window: StatsWindow) -> StatsSnapshot {
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
        notes: Vec::new(),
        place: "/state/toolhost/stats.db".to_owned(),
        size: Some(61_440),
    }
}

pub(in crate::tui) fn measured() -> AppState {
    let mut state = sample();
    assert_eq!(press(&mut state, &["4"]).len(), 1, "it is looked at once");
    tell(&mut state, StatsEvent::Loaded(Box::new(seen(StatsWindow::Hour))));
    tell(&mut state, StatsEvent::Loaded(Box::new(seen(StatsWindow::Hour))));
    state
}

fn tell(state: &mut AppState, event: StatsEvent) -> Vec<AppEffect> {
    state.update(AppEvent::Stats(event))
}

fn tick(state: &mut AppState, seconds: u64) -> Vec<AppEffect> {
    state.update(AppEvent::Tick(Duration::from_secs(NOW + seconds)))
}

fn names(state: &AppState) -> Vec<&str> {
    state.stats.rows().iter().map(|usage| usage.tool.name.as_str()).collect()
}

fn looks(effects: &[AppEffect]) -> Vec<&StatsViewQuery> {
    effects.iter().filter_map(look_of).collect()
}

fn look_of(effect: &AppEffect) -> Option<&StatsViewQuery> {
    match effect {
        AppEffect::Stats(StatsEffect::Query(look) | StatsEffect::ResetAndQuery(look)) => Some(look),
        _ => None,
    }
}

#[test]
fn it_is_looked_at_every_second_and_never_twice_at_once() {
    let mut state = measured();
    assert!(state.is_moving());
    assert_eq!(looks(&tick(&mut state, 1)).len(), 1);
    assert_eq!(tick(&mut state, 2), [], "the first look is not over");
    tell(&mut state, StatsEvent::Loaded(Box::new(seen(StatsWindow::Hour))));
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
    assert_eq!(looks(&press(&mut state, &["w"]))[0].window, StatsWindow::Session);
    // Before that was seen, the next window is wanted.
    assert_eq!(press(&mut state, &["w"]), []);
    let effects = tell(&mut state, StatsEvent::Loaded(Box::new(seen(StatsWindow::Session))));
    assert_eq!(looks(&effects)[0].window, StatsWindow::All);
}

#[test]
fn all_projects_are_counted_on_request_and_the_title_says_whose_calls_they_are() {
    let mut state = measured();
    assert_eq!(press(&mut state, &["P"]).len(), 1);
    assert!(state.context.message.as_ref().unwrap().text.contains("no project here"));
    tell(&mut state, StatsEvent::Loaded(Box::new(seen(StatsWindow::Hour))));
    state.context.shown_projects = ShownProjects::Own;
    let effects = press(&mut state, &["P"]);
    assert!(looks(&effects)[0].all_projects);
    // What was read before is of the project only: it is looked at again.
    let effects = tell(&mut state, StatsEvent::Loaded(Box::new(seen(StatsWindow::Hour))));
    assert!(looks(&effects)[0].all_projects);
    // The history shows the same.
    let effects = press(&mut state, &["6"]);
    let reads_all = |effect: &AppEffect| matches!(effect, AppEffect::History(HistoryEffect::Read { filter, .. }) if filter.all_projects);
    assert!(effects.iter().any(reads_all), "{effects:?}");
    assert!(!press(&mut state, &["P"]).iter().any(reads_all));
    assert_eq!(state.context.shown_projects, ShownProjects::Own);
}

#[test]
fn a_reset_deletes_nothing_and_counts_from_now() {
    let mut state = measured();
    let effects = press(&mut state, &["0"]);
    assert!(
        matches!(&effects[..], [AppEffect::Stats(StatsEffect::ResetAndQuery(look))] if look.window == StatsWindow::SinceReset)
    );
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
    assert_eq!(state.stats.list.chosen(), 0);
    assert_eq!(looks(&press(&mut state, &["t"])).len(), 1);
    let servers: Vec<_> =
        state.stats.rows().iter().map(|usage| usage.tool.server.as_deref()).collect();
    assert_eq!(servers, [Some("web"), None, Some("files")]);
}

#[test]
fn what_is_looked_at_is_what_is_near() {
    let mut state = measured();
    let effects = tick(&mut state, 1);
    let mut timelines = looks(&effects)[0].timelines_of.clone();
    timelines.sort_unstable();
    assert_eq!(timelines, ["calculator", "files-read_file", "web-search"]);
}

#[test]
fn a_tool_is_shown_and_benchmarked() {
    let mut state = measured();
    press(&mut state, &["<enter>"]);
    assert_eq!(state.context.view, ViewId::Tools);
    assert_eq!(state.tools.catalogue.chosen().unwrap().name, "calculator");
    press(&mut state, &["4", "b"]);
    assert_eq!(state.context.view, ViewId::Bench);
    assert!(state.bench.form.command_line().starts_with("toolhost bench calculator"));
}

#[test]
fn a_look_that_failed_is_said_and_repeated() {
    let mut state = measured();
    tick(&mut state, 1);
    tell(&mut state, StatsEvent::Failed(Error::unreachable("the store is locked")));
    assert!(state.stats.error.is_some());
    assert_eq!(names(&state).len(), 3, "what was seen before stays");
    assert_eq!(looks(&tick(&mut state, 3)).len(), 1);
    tell(&mut state, StatsEvent::Loaded(Box::new(seen(StatsWindow::Hour))));
    assert!(state.stats.error.is_none());
}
