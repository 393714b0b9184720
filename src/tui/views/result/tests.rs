//! Large results: what is made of them elsewhere, and what is shown meanwhile.

use serde_json::{Value, json};

use crate::model::ToolResult;
use crate::tui::app::AppState;
use crate::tui::event::AppEffect;
use crate::tui::layout::Pane;
use crate::tui::tasks::Task;
use crate::tui::tests::craft::{begun, ended};
use crate::tui::tests::{press, sample};
use crate::tui::views::result::presentation::{ResultBody, ResultFormat};

/// A list of objects of more than a megabyte.
fn large(last: &str) -> Value {
    let rows = (0..20_000).map(|n| json!({ "number": n, "text": "some words that are repeated" }));
    Value::Array(rows.chain([json!({ "number": 20_000, "text": last })]).collect())
}

fn requests(effects: Vec<AppEffect>) -> Vec<Task> {
    let request = |effect| match effect {
        AppEffect::Task(task) => Some(task),
        _ => None,
    };
    effects.into_iter().filter_map(request).collect()
}

/// The request that a key leads to; nothing of it is made yet.
fn asked(state: &mut AppState, key: &str) -> Task {
    let [request] = requests(press(state, &[key])).try_into().unwrap();
    request
}

fn shown(state: &AppState) -> String {
    match state.tools.viewer.shown() {
        ResultBody::Text(text) => text.to_text(),
        _ => String::new(),
    }
}

fn answer(state: &mut AppState, request: Task) {
    assert_eq!(state.update(request.computed().unwrap()), []);
}

fn looking(results: &[&str]) -> (AppState, Task) {
    let mut state = sample();
    for last in results {
        let run = begun(&mut state, "1");
        ended(&mut state, run, ToolResult::json(large(last)));
    }
    state.context.focus = Pane::Result;
    // The first request went with the end of the call; turning round once asks again.
    press(&mut state, &["v", "v"]);
    let request = asked(&mut state, "v");
    (state, request)
}

#[test]
fn keys_are_answered_while_a_large_result_is_made_ready() {
    let (mut state, _) = looking(&["end"]);
    assert_eq!(shown(&state), "rendering…");
    let tree = asked(&mut state, "v");
    assert_eq!(
        (state.tools.viewer.format, shown(&state)),
        (ResultFormat::Tree, "rendering…".into())
    );
    assert_eq!(press(&mut state, &["j", "?", "<esc>"]), []);
    answer(&mut state, tree);
    let ResultBody::Tree(tree) = state.tools.viewer.shown() else { panic!() };
    assert!(tree.len() > 10, "{}", tree.len());
}

#[test]
fn what_is_not_looked_at_any_more_is_not_shown() {
    let (mut state, text) = looking(&["end"]);
    let tree = asked(&mut state, "v");
    answer(&mut state, text);
    assert_eq!(shown(&state), "rendering…", "the text is of another format");
    // Whether there is a table is known with the tree.
    answer(&mut state, tree);
    let table = asked(&mut state, "v");
    let raw = asked(&mut state, "v");
    answer(&mut state, table);
    assert!(state.tools.viewer.table().is_none());
    answer(&mut state, raw);
    assert!(shown(&state).starts_with("{\n"), "{}", shown(&state).len());
}

#[test]
fn a_row_of_a_large_table_is_found_in_the_tree_once_that_is_there() {
    let (mut state, text) = looking(&["end"]);
    answer(&mut state, text);
    let tree = asked(&mut state, "v");
    answer(&mut state, tree);
    let table = asked(&mut state, "v");
    answer(&mut state, table);
    press(&mut state, &["j", "j"]);
    let tree = asked(&mut state, "<enter>");
    assert_eq!(shown(&state), "rendering…");
    answer(&mut state, tree);
    assert_eq!(state.tools.viewer.shown().chosen_path().as_deref(), Some(".[2]"));
}

#[test]
fn large_results_are_compared_elsewhere_and_the_comparison_can_be_left() {
    let (mut state, text) = looking(&["old", "new"]);
    answer(&mut state, text);
    let first = asked(&mut state, "d");
    assert_eq!(shown(&state), "rendering…");
    press(&mut state, &["d"]);
    assert!(state.tools.viewer.difference.is_none());
    let second = asked(&mut state, "d");
    answer(&mut state, first);
    assert_eq!(shown(&state), "rendering…", "it was asked for anew");
    answer(&mut state, second);
    assert!(shown(&state).contains("+    \"text\": \"new\""), "{}", shown(&state));
    press(&mut state, &["<esc>"]);
    assert!(state.tools.viewer.difference.is_none());
}

#[test]
fn what_cannot_be_made_is_told() {
    let (mut state, _) = looking(&["end"]);
    let generation = state.tools.viewer.generation;
    state.tools.viewer.presented(generation, None);
    assert_eq!(shown(&state), "This cannot be shown; E saves it.");
}
