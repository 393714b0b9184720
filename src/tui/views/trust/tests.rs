//! Tests of when trust is asked for, which answers count, and what a change of trust does.

use std::path::PathBuf;

use super::*;
use crate::catalogue::{Catalogue, ServerListing};
use crate::config::consent::{BoundFile, Bundle, EntryRecord};
use crate::host::policy::Approval;
use crate::model::{HostEvent, ServerState, ToolStatus};
use crate::tui::event::{AskId, ConsoleCallId, UserInput};
use crate::tui::painter::Painter;
use crate::tui::tests::drawing::{ASCII, picture};
use crate::tui::tests::{listed, press, prompt, sample, tell, tool};
use crate::tui::theme::Theme;

pub fn bundle(entries: usize, version: &str) -> Bundle {
    let file = BoundFile {
        resolved: "/p/mcp.yaml".into(),
        sha256: Some(version.to_owned()),
        ..BoundFile::default()
    };
    let entry = |number: usize| EntryRecord {
        name: format!("entry-{number}"),
        file: "mcp.yaml".to_owned(),
        digest: if number == 0 { version.to_owned() } else { String::new() },
        lines: vec![format!(
            "starts npx -y server@{} (/usr/bin/npx)",
            if number == 0 { version } else { "1" }
        )],
    };
    Bundle {
        files: [("mcp.yaml".to_owned(), file)].into(),
        entries: (0..entries).map(entry).collect(),
        ..Bundle::default()
    }
}

pub fn record(bundle: Bundle) -> Arc<ProjectRecord> {
    let (root, trusted_at) = ("/p".into(), "2027-01-15T08:00:00Z".to_owned());
    Arc::new(ProjectRecord { root, trusted_at, allows_code_changes: false, bundle })
}

pub fn trusted(bundle: Bundle) -> TrustStatus {
    TrustStatus { record: Some(record(bundle)), ..TrustStatus::default() }
}

/// A project that is not trusted; `previous` was.
pub fn untrusted(bundle: Bundle, previous: Option<Bundle>) -> TrustStatus {
    let untrusted = bundle.entries.len();
    let (root, previous) = ("/p".into(), previous.map(record));
    let request =
        Some(Arc::new(TrustRequest { root, bundle, previous, ..TrustRequest::default() }));
    TrustStatus { request, untrusted, ..TrustStatus::default() }
}

fn refused(mut status: TrustStatus) -> TrustStatus {
    if let Some(request) = &mut status.request {
        Arc::make_mut(request).refused_at = Some(String::new());
    }
    status
}

/// A console that opened on such a project, some time ago.
pub fn opened(status: TrustStatus) -> AppState {
    let mut state = sample();
    state.trust.begin(status);
    settle(&mut state);
    state
}

/// Lets the moment pass in which keys may have been typed for something else.
fn settle(state: &mut AppState) {
    draw(state);
    for second in [100, 101] {
        state.update(AppEvent::Tick(Duration::from_secs(second)));
    }
}

fn draw(state: &AppState) {
    Painter::default().paint(state).unwrap();
}

fn checked(state: &mut AppState, status: TrustStatus) -> Vec<AppEffect> {
    tell(state, |state| state.trust.checked(Ok(status), &mut state.context))
}

fn ready(state: &mut AppState, status: TrustStatus) -> Vec<AppEffect> {
    let files = Ok(FilesRead::HostReady(status));
    tell(state, |state| state.trust.files_read(files, &mut state.context))
}

fn switched(state: &mut AppState) -> Vec<AppEffect> {
    tell(state, AppState::host_switched)
}

fn store_changed(state: &mut AppState) -> Vec<AppEffect> {
    tell(state, |state| state.trust.check(&mut state.context))
}

fn text(state: &AppState) -> &str {
    state.context.message.as_ref().map_or("", |message| message.text.as_str())
}

fn resized(state: &mut AppState, width: u16, height: u16) {
    state.update(AppEvent::Input(UserInput::Resize { width, height }));
    draw(state);
}

/// Whether a yes is stored.
fn is_agreed(effects: &[AppEffect]) -> bool {
    matches!(effects, [AppEffect::Task(task)] if format!("{task:?}").starts_with("(\"trust\""))
}

#[test]
fn a_yes_stores_exactly_what_was_shown() {
    for (key, as_author) in [("y", false), ("a", true)] {
        let mut state = opened(untrusted(bundle(2, "1"), None));
        let shown = Arc::clone(&state.trust.window.as_ref().unwrap().request);
        let effects = press(&mut state, &[key]);
        assert_eq!(effects, [tasks::trust(shown, as_author).into()]);
        assert!(state.trust.window.is_none());
    }
}

#[test]
fn a_yes_counts_only_after_the_end_was_drawn() {
    let mut state = sample();
    state.trust.begin(untrusted(bundle(60, "1"), None));
    resized(&mut state, 80, 24);
    settle(&mut state);
    assert_eq!(press(&mut state, &["y", "a"]), []);
    // Scrolled there, and not drawn yet.
    assert_eq!(press(&mut state, &["G", "y"]), []);
    draw(&state);
    press(&mut state, &["g"]);
    draw(&state);
    // It was on the screen, wherever it is scrolled now.
    assert!(is_agreed(&press(&mut state, &["y"])));
}

#[test]
fn a_smaller_screen_takes_back_that_the_end_is_shown_unless_it_was_seen() {
    let mut state = sample();
    state.trust.begin(untrusted(bundle(20, "1"), None));
    resized(&mut state, 40, 10);
    settle(&mut state);
    assert_eq!(press(&mut state, &["y"]), []);
    resized(&mut state, 120, 60);
    assert!(is_agreed(&press(&mut state, &["y"])));
}

#[test]
fn what_is_too_long_to_be_shown_cannot_be_trusted_here() {
    let mut state = opened(untrusted(bundle(6_000, "1"), None));
    press(&mut state, &["G"]);
    settle(&mut state);
    assert_eq!(press(&mut state, &["y"]), []);
    assert!(text(&state).contains("toolhost trust /p"), "{}", text(&state));
}

#[test]
fn keys_that_were_typed_ahead_are_no_answer() {
    let mut state = sample();
    state.update(AppEvent::Tick(Duration::from_secs(50)));
    state.trust.begin(untrusted(bundle(1, "1"), None));
    draw(&state);
    assert_eq!(press(&mut state, &["y", "n", "<esc>"]), []);
    state.update(AppEvent::Tick(Duration::from_secs(51)));
    assert_eq!(press(&mut state, &["y", "n", "<esc>"]), []);
    state.update(AppEvent::Tick(Duration::from_secs(52)));
    assert!(is_agreed(&press(&mut state, &["y"])));
}

#[test]
fn an_approval_lies_over_the_question_and_its_answer_is_not_one_to_the_question() {
    let mut state = opened(untrusted(bundle(1, "1"), None));
    let clock = tool("clock", serde_json::json!({}));
    let asked = prompt(&clock, &serde_json::json!({}), "one");
    state.update(AppEvent::Approval { id: AskId(1), prompt: Box::new(asked) });
    draw(&state);
    settle(&mut state);
    let effects = press(&mut state, &["y", "y"]);
    assert_eq!(effects, [AppEffect::AnswerApproval(AskId(1), Approval::Granted)]);
    assert!(state.trust.window.is_some());
}

#[test]
fn a_no_is_remembered_and_the_question_can_be_opened_again() {
    for key in ["n", "N"] {
        let mut state = opened(untrusted(bundle(2, "1"), None));
        let shown = Arc::clone(&state.trust.window.as_ref().unwrap().request);
        assert_eq!(press(&mut state, &[key]), [tasks::refuse(shown).into()]);
        assert!(state.trust.window.is_none());
        let notice = state.trust.notice(Some(KeyPress::Char('!'))).unwrap();
        assert!(notice.contains("2 entries do nothing yet. Press ! to see"), "{notice}");
        assert_eq!(press(&mut state, &["!"]), []);
        settle(&mut state);
        assert!(is_agreed(&press(&mut state, &["y"])));
    }
}

#[test]
fn esc_leaves_the_question_for_later_and_is_no_answer() {
    let mut state = opened(untrusted(bundle(2, "1"), None));
    assert_eq!(press(&mut state, &["<esc>"]), [], "nothing is stored");
    assert!(state.trust.window.is_none());
    assert_eq!(text(&state), "not trusted yet; ! asks again");
    assert!(state.trust.question.as_ref().unwrap().refused_at.is_none());
}

#[test]
fn what_was_refused_before_is_not_asked_by_itself() {
    let mut state = opened(refused(untrusted(bundle(1, "1"), None)));
    assert!(state.trust.window.is_none());
    let notice = state.trust.notice(None).unwrap();
    assert!(notice.contains("1 entry does nothing yet. Run 'toolhost trust' to"), "{notice}");
    press(&mut state, &["!"]);
    assert!(state.trust.window.is_some());
}

#[test]
fn the_whole_is_a_key_away_when_only_the_difference_is_shown() {
    let mut state = opened(untrusted(bundle(40, "2"), Some(bundle(40, "1"))));
    let text = |state: &AppState| state.trust.window.as_ref().unwrap().text.text.to_text();
    assert!(text(&state).contains("server@2") && text(&state).contains("before: starts"));
    assert!(!text(&state).contains("entry-7"), "{}", text(&state));
    press(&mut state, &["v"]);
    assert!(text(&state).contains("entry-7") && !text(&state).contains("before"));
    press(&mut state, &["v"]);
    assert!(!text(&state).contains("entry-7"));
    // Its end was drawn before the whole was looked at.
    assert!(is_agreed(&press(&mut state, &["v", "y"])));
}

#[test]
fn the_question_has_all_keys_and_leaving_answers_nothing() {
    let mut state = opened(untrusted(bundle(1, "1"), None));
    assert_eq!(press(&mut state, &["/", "2", "<enter>", ":", "?", "E"]), []);
    assert_eq!(
        (state.context.view, &state.context.overlay),
        (crate::tui::layout::ViewId::Tools, &None)
    );
    assert_eq!(press(&mut state, &["q"]), [AppEffect::Quit(None)]);
    // With a call under way that is asked first, where it can be seen.
    let mut state = opened(untrusted(bundle(1, "1"), None));
    state.context.calls.begin("clock".into(), serde_json::Map::new());
    assert_eq!(press(&mut state, &["q"]), []);
    assert_eq!(state.context.overlay, Some(Overlay::ConfirmQuit));
    assert!(state.trust.window.is_none());
}

#[test]
fn after_a_yes_the_console_goes_on_with_another_host() {
    let mut state = opened(untrusted(bundle(1, "1"), None));
    assert!(is_agreed(&press(&mut state, &["y"])));
    let effects = ready(&mut state, trusted(bundle(1, "1")));
    assert_eq!(effects, [AppEffect::SwitchHost]);
    let effects = switched(&mut state);
    assert!(
        effects.starts_with(&[AppEffect::ListDeclared, AppEffect::RefreshServers]),
        "{effects:?}"
    );
    assert_eq!((text(&state), state.trust.notice(None)), ("this project is trusted now", None));
    // The answer changed the store, which is looked at and leads nowhere.
    assert_eq!(store_changed(&mut state), [AppEffect::from(tasks::check())]);
    assert_eq!(checked(&mut state, trusted(bundle(1, "1"))), []);
}

#[test]
fn what_changed_while_the_question_stood_is_asked_anew() {
    let mut state = opened(untrusted(bundle(1, "1"), None));
    assert!(is_agreed(&press(&mut state, &["y"])));
    let status = untrusted(bundle(1, "2"), Some(bundle(1, "1")));
    ready(&mut state, status.clone());
    switched(&mut state);
    assert!(text(&state).contains("changed while the question was open"), "{}", text(&state));
    assert_eq!(Some(&state.trust.window.as_ref().unwrap().request), status.request.as_ref());
}

#[test]
fn trust_that_is_given_or_taken_elsewhere_builds_another_host() {
    let (before, after) = (untrusted(bundle(1, "1"), None), trusted(bundle(1, "1")));
    let mut state = opened(before.clone());
    assert_eq!(store_changed(&mut state), [AppEffect::from(tasks::check())]);
    let effects = checked(&mut state, after.clone());
    assert_eq!(effects, [AppEffect::from(tasks::reload(true))]);
    // Until it is there nothing is answered.
    assert_eq!(press(&mut state, &["y"]), []);
    ready(&mut state, after);
    switched(&mut state);
    assert_eq!(text(&state), "this project was trusted in another terminal");
    assert!(state.trust.window.is_none());
    store_changed(&mut state);
    let effects = checked(&mut state, before.clone());
    assert_eq!(effects, [AppEffect::from(tasks::reload(true))]);
    ready(&mut state, before);
    switched(&mut state);
    assert_eq!(text(&state), "trust in this project was revoked in another terminal");
    assert!(state.trust.window.is_none() && state.trust.notice(None).is_some());
}

#[test]
fn what_was_trusted_elsewhere_and_changed_since_is_not_called_revoked() {
    let mut state = opened(trusted(bundle(1, "1")));
    store_changed(&mut state);
    let now = untrusted(bundle(1, "3"), Some(bundle(1, "2")));
    let effects = checked(&mut state, now.clone());
    assert_eq!(effects, [AppEffect::from(tasks::reload(true))]);
    ready(&mut state, now);
    switched(&mut state);
    assert_eq!(text(&state), "this project changed since it was read");
    let notice = state.trust.notice(None).unwrap();
    assert!(notice.starts_with("This project is not trusted: 1 entry"), "{notice}");
}

#[test]
fn trust_in_other_projects_changes_nothing() {
    for status in [untrusted(bundle(1, "1"), None), trusted(bundle(1, "1")), TrustStatus::default()]
    {
        let mut state = opened(status.clone());
        store_changed(&mut state);
        assert_eq!(checked(&mut state, status), []);
    }
}

#[test]
fn a_refusal_elsewhere_closes_the_question() {
    let status = untrusted(bundle(1, "1"), None);
    let mut state = opened(status.clone());
    store_changed(&mut state);
    assert_eq!(checked(&mut state, refused(status)), []);
    assert!(state.trust.window.is_none());
    assert_eq!(text(&state), "this project was refused in another terminal");
}

#[test]
fn a_change_during_another_look_is_looked_at_afterwards() {
    let status = trusted(bundle(1, "1"));
    let mut state = opened(status.clone());
    assert_eq!(store_changed(&mut state), [AppEffect::from(tasks::check())]);
    assert_eq!(store_changed(&mut state), []);
    let effects = checked(&mut state, status);
    assert_eq!(effects, [AppEffect::from(tasks::check())]);
}

#[test]
fn a_call_of_something_that_changed_brings_the_difference() {
    let mut state = opened(trusted(bundle(1, "1")));
    let ended = |error: Error| AppEvent::CallFinished {
        run: ConsoleCallId(0),
        outcome: Box::new(Err(error)),
    };
    let effects = state.update(ended(Error::denied("by a rule")));
    assert!(!effects.contains(&AppEffect::from(tasks::check())), "{effects:?}");
    let effects =
        state.update(ended(Error::denied("changed").with_cause(ErrorCause::TrustOutdated)));
    assert!(effects.contains(&AppEffect::from(tasks::check())), "{effects:?}");
    let status = untrusted(bundle(1, "2"), Some(bundle(1, "1")));
    assert_eq!(checked(&mut state, status), []);
    let notice = state.trust.notice(Some(KeyPress::Char('!'))).unwrap();
    assert_eq!(notice, "This project changed since it was trusted. Press ! to see what changed.");
    settle(&mut state);
    let shown = Arc::clone(&state.trust.window.as_ref().unwrap().request);
    assert_eq!(shown.bundle, bundle(1, "2"));
    assert_eq!(press(&mut state, &["y"]), [tasks::trust(shown, false).into()]);
    // What becomes again what it was needs no answer.
    let mut state = opened(trusted(bundle(1, "1")));
    state.update(ended(Error::denied("changed").with_cause(ErrorCause::TrustOutdated)));
    checked(&mut state, untrusted(bundle(1, "2"), Some(bundle(1, "1"))));
    store_changed(&mut state);
    assert_eq!(checked(&mut state, trusted(bundle(1, "1"))), []);
    assert!(state.trust.window.is_none() && state.trust.notice(None).is_none());
}

#[test]
fn a_server_that_is_not_what_was_trusted_brings_the_difference() {
    let error = || {
        Error::denied("changed")
            .with_cause(ErrorCause::TrustOutdated)
            .with_server("web")
            .context("cannot start")
    };
    let state_of_server =
        HostEvent::ServerStateChanged { server: "web".into(), state: ServerState::Failed(error()) };
    let listing = ServerListing { name: "web".into(), error: Some(error()), is_partial: false };
    let catalogue = Box::new(Catalogue { servers: vec![listing], ..Catalogue::default() });
    let servers = vec!["web".to_owned()];
    for event in [AppEvent::Host(state_of_server), AppEvent::ToolsListed { servers, catalogue }] {
        let mut state = opened(trusted(bundle(1, "1")));
        let effects = state.update(event);
        assert!(effects.contains(&AppEffect::from(tasks::check())), "{effects:?}");
    }
}

#[test]
fn a_tool_that_is_not_trusted_leads_to_the_question() {
    let mut state = opened(untrusted(bundle(1, "1"), None));
    settle(&mut state);
    press(&mut state, &["n"]);
    let mut tool = tool("plain", serde_json::json!({ "type": "object" }));
    tool.status = ToolStatus::Untrusted;
    state.update(listed(vec![tool]));
    assert_eq!(press(&mut state, &["<enter>"]), []);
    assert!(state.trust.window.is_some() && state.tools.form.is_none());
}

#[test]
fn an_answer_that_cannot_be_stored_is_said_and_the_question_stays() {
    let mut state = opened(untrusted(bundle(1, "1"), None));
    assert!(is_agreed(&press(&mut state, &["y"])));
    let error = Error::config("cannot write trust.json").with_hint("set HOME");
    tell(&mut state, |state| state.trust.files_read(Err(error), &mut state.context));
    assert_eq!(text(&state), "cannot write trust.json (set HOME)");
    press(&mut state, &["!"]);
    settle(&mut state);
    assert!(is_agreed(&press(&mut state, &["y"])));
}

#[test]
fn changed_files_are_told_until_a_person_has_them_read() {
    let mut state = opened(trusted(bundle(1, "1")));
    tell(&mut state, |state| state.trust.changed_files = vec!["tools.yaml".into()]);
    let seen = picture(&state, Theme::default());
    assert!(seen.contains("tools.yaml changed (U reloads)"), "{seen}");
    assert_eq!(press(&mut state, &["U"]), [AppEffect::from(tasks::reload(true))]);
    // One reload at a time.
    assert_eq!(press(&mut state, &["U"]), []);
    let asks = untrusted(bundle(2, "2"), Some(bundle(1, "1")));
    ready(&mut state, asks);
    tell(&mut state, |state| state.trust.changed_files.clear());
    switched(&mut state);
    assert!(state.trust.changed_files.is_empty());
    assert!(state.trust.window.is_some(), "trust is asked as at the start");
}

#[test]
fn a_reload_does_not_end_what_runs() {
    let mut state = opened(trusted(bundle(1, "1")));
    press(&mut state, &["<enter>", "1", "<f5>", "<esc>"]);
    assert_eq!(press(&mut state, &["U"]), [tasks::reload(false).into()]);
}

#[test]
fn a_project_that_changed_goes_on_as_it_was_trusted_until_it_is_trusted_again() {
    let mut state = opened(trusted(bundle(1, "1")));
    press(&mut state, &["U"]);
    let asks = untrusted(bundle(2, "2"), Some(bundle(1, "1")));
    let kept = Ok(FilesRead::HostKept(asks));
    let effects = tell(&mut state, |state| state.trust.files_read(kept, &mut state.context));
    assert_eq!(effects, []);
    assert!(state.trust.window.is_some(), "trust is asked as at the start");
    settle(&mut state);
    assert!(is_agreed(&press(&mut state, &["y"])));
}

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
    let mut state = crate::tui::tests::sample();
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

#[test]
fn nobody_is_asked_about_what_a_file_lacks_that_cannot_be_read() {
    let file = PathBuf::from("/p/tools.yaml");
    let (path, text) = (Arc::new(file.clone()), Arc::from(""));
    let at = SourceLocation { file: path, line: 1, column: 9, text };
    let configuration = |previous| Configuration {
        unread: vec![(file.clone(), Layer::Project)],
        diagnostics: vec![Diagnostic::error("not valid YAML").with_location(at.clone())],
        trust_request: untrusted(bundle(1, "2"), previous).request.as_deref().cloned(),
        ..Configuration::default()
    };
    let error = TrustStatus::of_readable(&configuration(Some(bundle(2, "1")))).unwrap_err();
    assert_eq!(error.location(), Some(&at), "{error}");
    assert!(TrustStatus::of_readable(&configuration(None)).is_ok());
}
