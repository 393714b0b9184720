//! Snapshot tests of windows and results, at all supported sizes, with their styles.

use std::fmt::Write as _;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Style;
use serde_json::json;

use crate::model::{HostEvent, LogLevel, ToolResult};
use crate::tui::app::AppState;
use crate::tui::draw::*;
use crate::tui::event::{AppEvent, UserInput};
use crate::tui::tests::craft::{begun, ended, id, told};
use crate::tui::tests::{press, sample};
use crate::tui::theme::{ColourScheme, OwnColours, Theme};

const MONO: Theme = Theme {
    palette: ColourScheme::Mono,
    ascii: true,
    depth: crate::tui::theme::ColourDepth::Sixteen,
    own: OwnColours::NONE,
};

fn styled(state: &AppState, theme: Theme) -> String {
    let (width, height) = state.context.size;
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal
        .draw(|frame| {
            console(frame.buffer_mut(), state, theme);
        })
        .unwrap();
    let buffer = terminal.backend().buffer().clone();
    let mut picture = terminal.backend().to_string();
    for y in 0..height {
        let mut runs: Vec<(u16, u16, Style)> = Vec::new();
        for x in 0..width {
            let style = buffer[(x, y)].style();
            match runs.last_mut() {
                Some((_, end, before)) if *before == style => *end = x + 1,
                _ => runs.push((x, x + 1, style)),
            }
        }
        for (from, to, style) in runs {
            let colour = style.fg.filter(|colour| *colour != ratatui::style::Color::Reset);
            let colour = colour.map(|colour| format!(" {colour}")).unwrap_or_default();
            let weight = format!("{:?}", style.add_modifier);
            if !colour.is_empty() || !style.add_modifier.is_empty() {
                writeln!(picture, "{y}: {from}..{to} {weight}{colour}").unwrap();
            }
        }
    }
    picture
}

/// The picture without its styles.
fn plain(state: &AppState, theme: Theme) -> String {
    styled(state, theme).lines().filter(|line| line.starts_with('"')).collect::<Vec<_>>().join("\n")
}

fn sized(width: u16, height: u16) -> AppState {
    let mut state = sample();
    state.update(AppEvent::Input(UserInput::Resize { width, height }));
    state
}

fn with_running() -> AppState {
    let mut state = sized(120, 40);
    let first = begun(&mut state, "1");
    let second = begun(&mut state, "2");
    told(
        &mut state,
        HostEvent::Progress {
            call_id: id(second),
            progress: 3.0,
            total: Some(8.0),
            message: Some("reading \u{1b}[31mpages".into()),
        },
    );
    let parent = Some(id(second));
    let call_id = crate::model::CallId("inner".into());
    told(
        &mut state,
        HostEvent::CallStarted { call_id, tool: "web-search".into(), parent, client: None },
    );
    let level = LogLevel("info".into());
    told(
        &mut state,
        HostEvent::Log { origin: "calculator".into(), call_id: None, level, text: "page 3".into() },
    );
    told(
        &mut state,
        HostEvent::AttemptFailed {
            call_id: id(first),
            attempt: 1,
            error: crate::model::Error::tool("busy"),
            delay: Duration::from_secs(4),
        },
    );
    state.update(AppEvent::Tick(Duration::from_secs(100)));
    state.update(AppEvent::Tick(Duration::from_secs(102)));
    state
}

fn with_result(width: u16, height: u16) -> AppState {
    let mut state = sized(width, height);
    state.context.appearance.images = false;
    let run = begun(&mut state, "1");
    let result = ToolResult {
        content: vec![
            json!({ "type": "text", "text": "fourteen" }),
            json!({ "type": "image", "mimeType": "image/png", "data": "A".repeat(4096) }),
        ],
        warnings: vec!["rounded".to_owned()],
        ..ToolResult::json(json!({ "value": 14, "steps": [{ "do": "sqrt", "of": 16 }, 3] }))
    };
    ended(&mut state, run, result);
    state.context.focus = crate::tui::layout::Pane::Result;
    state
}

#[test]
fn the_palette() {
    let mut state = sized(120, 40);
    press(&mut state, &[":", "view"]);
    insta::assert_snapshot!("palette_120_mono", styled(&state, MONO));
    insta::assert_snapshot!("palette_120", styled(&state, Theme::default()));
    for (width, height) in [(80, 24), (60, 16), (40, 10)] {
        state.update(AppEvent::Input(UserInput::Resize { width, height }));
        insta::assert_snapshot!(format!("palette_{width}"), plain(&state, MONO));
    }
}

#[test]
fn what_runs() {
    let mut state = with_running();
    insta::assert_snapshot!("running_result_120", plain(&state, Theme::default()));
    state.context.appearance.has_reduced_motion = true;
    press(&mut state, &["^x"]);
    insta::assert_snapshot!("running_120_mono", styled(&state, MONO));
    for (width, height) in [(80, 24), (60, 16), (40, 10)] {
        state.update(AppEvent::Input(UserInput::Resize { width, height }));
        insta::assert_snapshot!(format!("running_{width}"), plain(&state, MONO));
    }
}

#[test]
fn a_result_in_three_ways() {
    let mut state = with_result(120, 40);
    insta::assert_snapshot!("result_text_120", plain(&state, MONO));
    press(&mut state, &["v", "j", "j"]);
    insta::assert_snapshot!("result_tree_120_mono", styled(&state, MONO));
    insta::assert_snapshot!("result_tree_120", styled(&state, Theme::default()));
    for palette in [ColourScheme::Light, ColourScheme::HighContrast] {
        let theme = Theme { palette, ..Theme::default() };
        insta::assert_snapshot!(
            format!("result_tree_120_{}", palette.name()),
            styled(&state, theme)
        );
    }
    press(&mut state, &["v"]);
    insta::assert_snapshot!("result_raw_120", plain(&state, MONO));
    for (width, height) in [(80, 24), (40, 10)] {
        let mut state = with_result(width, height);
        insta::assert_snapshot!(format!("result_text_{width}"), plain(&state, MONO));
        press(&mut state, &["v"]);
        insta::assert_snapshot!(format!("result_tree_{width}"), plain(&state, MONO));
    }
}

#[test]
fn a_list_of_objects_is_a_table() {
    let rows: Vec<_> = (0..30_u32)
        .map(|number| {
            json!({ "name": format!("item {number}"), "size": (number * 7) % 30, "open": number % 2 == 0,
                    "note": "a long \u{1b}[31mnote that says much more than a column of a table shows",
                    "tags": ["a", "b"], "last": null })
        })
        .collect();
    let mut state = sized(120, 40);
    let run = begun(&mut state, "1");
    ended(&mut state, run, ToolResult::json(json!({ "items": rows, "total": 30 })));
    state.context.focus = crate::tui::layout::Pane::Result;
    press(&mut state, &["v", "v", "<right>", "s", "s", "j", "z"]);
    insta::assert_snapshot!("result_table_120", styled(&state, MONO));
    // The chosen column is seen on a narrow screen too.
    state.update(AppEvent::Input(UserInput::Resize { width: 40, height: 10 }));
    press(&mut state, &["<right>", "<right>", "<right>"]);
    insta::assert_snapshot!("result_table_40", plain(&state, MONO));
    // A row opens in the tree, where it stands in the result.
    press(&mut state, &["<enter>"]);
    assert_eq!(state.tools.viewer.shown().chosen_path().as_deref(), Some(".items[4]"));
}

#[test]
fn a_tool_from_its_sides() {
    let mut state = sized(120, 40);
    press(&mut state, &["d"]);
    insta::assert_snapshot!("schema_120", plain(&state, MONO));
    press(&mut state, &["d"]);
    insta::assert_snapshot!("raw_120", plain(&state, MONO));
}
