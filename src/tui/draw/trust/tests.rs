//! Snapshot tests of the trust question, and of an untrusted project.

use crate::config::consent::{Bundle, EntryRecord};
use crate::tui::draw::tests::{ASCII, picture};
use crate::tui::event::trust::TrustStatus;
use crate::tui::event::{AppEvent, UserInput};
use crate::tui::state::AppState;
use crate::tui::state::tests::press;
use crate::tui::state::trust_tests::{bundle, opened, untrusted};
use crate::tui::theme::Theme;

/// Two servers; the first one in a version.
fn project(version: &str) -> Bundle {
    let mut bundle = bundle(2, version);
    let github = &mut bundle.entries[0];
    github.name = "github".to_owned();
    github.lines = vec![
        format!(
            "starts npx -y server-github@{version} (/usr/bin/npx), uses ${{GITHUB_TOKEN}} in env.TOKEN"
        ),
        "PATH=./bin:/usr/bin".to_owned(),
        "warning: the version can change: no checksum".to_owned(),
    ];
    bundle.entries[1] = EntryRecord {
        name: "docs".to_owned(),
        lines: vec!["contacts https://docs.example".to_owned()],
        ..bundle.entries[1].clone()
    };
    bundle
}

fn shown(status: TrustStatus, width: u16, height: u16) -> AppState {
    let mut state = opened(status);
    state.update(AppEvent::Input(UserInput::Resize { width, height }));
    state
}

#[test]
fn the_question_in_120_by_40() {
    let state = shown(untrusted(project("1"), None), 120, 40);
    insta::assert_snapshot!(picture(&state, Theme::default()));
}

#[test]
fn the_question_in_80_by_24() {
    let state = shown(untrusted(project("1"), None), 80, 24);
    insta::assert_snapshot!(picture(&state, ASCII));
}

#[test]
fn the_question_in_40_by_10_is_read_to_its_end() {
    let mut state = crate::tui::state::tests::sample();
    state.update(AppEvent::Input(UserInput::Resize { width: 40, height: 10 }));
    state.trust.begin(untrusted(project("1"), None));
    picture(&state, ASCII);
    for second in [100, 101] {
        state.update(AppEvent::Tick(std::time::Duration::from_secs(second)));
    }
    insta::assert_snapshot!("question_40_above", picture(&state, ASCII));
    press(&mut state, &["G"]);
    insta::assert_snapshot!("question_40_below", picture(&state, ASCII));
}

#[test]
fn a_change_in_80_by_24() {
    let state = shown(untrusted(project("2"), Some(project("1"))), 80, 24);
    insta::assert_snapshot!(picture(&state, Theme::default()));
}

#[test]
fn what_is_not_trusted_is_said_beside_the_tools() {
    let mut state = shown(untrusted(project("1"), None), 120, 40);
    press(&mut state, &["n"]);
    insta::assert_snapshot!("notice_120", picture(&state, Theme::default()));
    state.update(AppEvent::Input(UserInput::Resize { width: 80, height: 24 }));
    insta::assert_snapshot!("notice_80", picture(&state, ASCII));
    state.update(AppEvent::Input(UserInput::Resize { width: 40, height: 10 }));
    insta::assert_snapshot!("notice_40", picture(&state, ASCII));
    // Where there is hardly a line, the tools keep one.
    state.update(AppEvent::Input(UserInput::Resize { width: 30, height: 7 }));
    assert!(picture(&state, ASCII).contains("calculator"), "{}", picture(&state, ASCII));
}

#[test]
fn a_project_without_any_tool_says_why() {
    let mut state = AppState::new((40, 10));
    state.trust.begin(untrusted(project("1"), None));
    for second in [100, 101] {
        state.update(AppEvent::Tick(std::time::Duration::from_secs(second)));
    }
    press(&mut state, &["n"]);
    let seen = picture(&state, ASCII).replace("\"\n\"", " ");
    let words: Vec<&str> = seen.split_whitespace().collect();
    let text = "This project is not trusted: 2 entries do nothing yet. Press ! to see";
    assert!(words.join(" ").contains(text), "{seen}");
}
