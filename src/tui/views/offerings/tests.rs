//! Tests of the resources view, without a server.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::model::{
    Completion, CompletionQuery, CompletionReference, Error, ErrorKind, HostEvent, JsonObject,
    ListKind, ListOwner, Prompt, PromptArgument, Resource, ResourceTemplate, SubscriptionEvent,
    ToolName,
};
use crate::tui::app::AppState;
use crate::tui::event::{AppEffect, AppEvent};
use crate::tui::layout::Pane;
use crate::tui::tests::{press, sample, tell};
use crate::tui::views::offerings::tree::{OfferingId, OfferingRow, ServerOfferings};
use crate::tui::views::offerings::{OfferingRequest, OfferingResponse, tasks};

fn raw() -> Arc<RawValue> {
    Arc::from(RawValue::from_string("{}".to_owned()).unwrap())
}

pub fn resource(uri: &str) -> Resource {
    Resource {
        server: "memo".to_owned(),
        uri: uri.to_owned(),
        name: uri.to_owned(),
        title: None,
        description: Some("What is remembered".to_owned()),
        mime_type: Some("text/plain".to_owned()),
        size: Some(9),
        warnings: Vec::new(),
        raw: raw(),
    }
}

fn lists() -> ServerOfferings {
    let argument = |name: &str, required| PromptArgument {
        name: name.to_owned(),
        title: None,
        description: Some(format!("The {name}")),
        required,
    };
    let prompt = |name: &str, arguments| Prompt {
        name: ToolName::of("memo", name),
        title: None,
        description: Some(format!("What {name} says")),
        arguments,
        warnings: Vec::new(),
        raw: raw(),
    };
    let template = ResourceTemplate {
        server: "memo".to_owned(),
        template: "memo://notes/{name}".to_owned(),
        name: "note".to_owned(),
        title: None,
        description: None,
        mime_type: None,
        warnings: Vec::new(),
        raw: raw(),
    };
    let greet = prompt("greet", vec![argument("name", true), argument("tone", false)]);
    let items = vec![
        resource("memo://one").into(),
        resource("memo://two").into(),
        template.into(),
        greet.into(),
        prompt("review", Vec::new()).into(),
    ];
    ServerOfferings { items, ..ServerOfferings::default() }
}

pub fn offered(state: &mut AppState, server: &str, lists: ServerOfferings) -> Vec<AppEffect> {
    let server = server.to_owned();
    tell(state, |state| state.offerings.listed(server, lists, &mut state.context))
}

pub fn listed() -> AppState {
    let mut state = sample();
    assert_eq!(press(&mut state, &["7"]), [tasks::list_all().into()]);
    state.offerings.tree.start_listing(vec!["memo".to_owned(), "down".to_owned()]);
    offered(&mut state, "memo", lists());
    let errors = vec![Error::new(ErrorKind::Unreachable, "it cannot be started")];
    let nothing = ServerOfferings { errors, ..ServerOfferings::default() };
    offered(&mut state, "down", nothing);
    state
}

fn one() -> OfferingId {
    OfferingId::resource("memo", "memo://one")
}

fn changed(state: &mut AppState, event: SubscriptionEvent) -> Vec<AppEffect> {
    tell(state, |state| state.offerings.changed(one(), event, &mut state.context))
}

fn wish_to_read(ticket: u64, uri: &str) -> AppEffect {
    tasks::open(ticket, "memo".to_owned(), OfferingRequest::Read(uri.to_owned())).into()
}

pub fn contents(state: &mut AppState, ticket: u64, parts: Vec<Value>) {
    state.offerings.set_response(ticket, OfferingResponse::Contents(Arc::new(parts)));
}

fn text(text: &str) -> Value {
    json!({ "uri": "memo://one", "mimeType": "text/plain", "text": text })
}

fn page(state: &AppState) -> String {
    state.offerings.content.to_text()
}

fn names(state: &AppState) -> Vec<String> {
    let tree = &state.offerings.tree;
    let name = |row: &OfferingRow| match row {
        OfferingRow::Item(item) => Some(item.name.clone()),
        _ => None,
    };
    tree.rows.iter().filter_map(name).collect()
}

const GREET: [&str; 2] = ["/", "greet"];

#[test]
fn a_resource_is_opened_and_only_the_newest_answer_counts() {
    let mut state = listed();
    assert_eq!(press(&mut state, &["jj", "<enter>"]), [wish_to_read(1, "memo://one")]);
    assert_eq!(
        press(&mut state, &["<esc>", "<esc>", "j", "<enter>"])[..1],
        [AppEffect::Stop(tasks::REQUEST.to_owned())]
    );
    contents(&mut state, 1, vec![text("too late")]);
    assert!(page(&state).contains("waiting for a response"), "{}", page(&state));
    contents(&mut state, 2, vec![text(r#"{"a":[1]}"#)]);
    assert!(page(&state).contains("\"a\": [\n    1\n"), "{}", page(&state));
}

#[test]
fn binary_parts_are_told_and_written_to_files() {
    let mut state = listed();
    press(&mut state, &["jj", "<enter>"]);
    let parts = vec![text("one"), json!({ "mimeType": "image/png", "blob": "iVBORw0KGgo=" })];
    contents(&mut state, 1, parts.clone());
    assert!(page(&state).contains("image/png 8 B, E saves it]"), "{}", page(&state));
    assert_eq!(press(&mut state, &["E"]), [tasks::save(Arc::new(parts)).into()]);
    press(&mut state, &["t"]);
    assert!(page(&state).contains("\"blob\": \"iVBORw0KGgo=\""));
}

#[test]
fn a_template_becomes_an_address() {
    let mut state = listed();
    press(&mut state, &["/", "notes", "<enter>", "<enter>"]);
    assert_eq!(press(&mut state, &["<f5>"]), [], "the name is needed");
    press(&mut state, &["a/b c"]);
    assert_eq!(press(&mut state, &["<f5>"]), [wish_to_read(1, "memo://notes/a%2Fb%20c")]);
    contents(&mut state, 1, vec![text("note")]);
    let line = "toolhost resources read --server memo memo://notes/a%2Fb%20c";
    assert_eq!(press(&mut state, &["Y"]), [AppEffect::Copy(line.to_owned())]);
    assert_eq!(press(&mut state, &["y"]), [AppEffect::Copy("note".to_owned())]);
    // What was filled in is there again.
    press(&mut state, &["e"]);
    let asking = state.offerings.asking.as_ref().unwrap();
    assert_eq!(asking.address().as_deref(), Some("memo://notes/a%2Fb%20c"));
}

fn query(argument: &str, value: &str) -> CompletionQuery {
    CompletionQuery {
        reference: CompletionReference::Prompt("memo-greet".to_owned()),
        argument: argument.to_owned(),
        value: value.to_owned(),
        context: std::collections::BTreeMap::new(),
    }
}

fn asks(argument: &str, value: &str) -> Vec<AppEffect> {
    vec![tasks::complete("memo".to_owned(), query(argument, value)).into()]
}

fn suggested(
    state: &mut AppState,
    query: CompletionQuery,
    done: Result<Completion, Error>,
) -> Vec<AppEffect> {
    tell(state, |state| {
        let asking = state.offerings.asking.as_mut().unwrap();
        asking.completed(query, done, &mut state.context);
    })
}

fn completed(state: &mut AppState, query: CompletionQuery, values: &[&str]) -> Vec<AppEffect> {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    let completion = Completion { values, total: Some(5), has_more: None };
    suggested(state, query, Ok(completion))
}

#[test]
fn suggestions_are_asked_for_one_at_a_time_and_taken_with_a_key() {
    let mut state = listed();
    press(&mut state, &GREET);
    assert_eq!(press(&mut state, &["<enter>"]), asks("name", ""));
    assert_eq!(press(&mut state, &["a", "l"]), [], "one question at a time");
    assert_eq!(completed(&mut state, query("name", ""), &["ada", "alan"]), asks("name", "al"));
    completed(&mut state, query("name", "al"), &["alan", "alma"]);
    let suggestions = &state.offerings.asking.as_ref().unwrap().suggestions;
    assert_eq!((suggestions.values.len(), suggestions.more), (2, Some(3)));
    assert_eq!(press(&mut state, &["<right>"]), [], "what was taken is not asked about");
    assert_eq!(state.offerings.asking.as_ref().unwrap().text_arguments()["name"], "alan");
    press(&mut state, &["<right>"]);
    let arguments = json!({ "name": "alma" }).as_object().cloned().unwrap();
    let get = OfferingRequest::Get("memo-greet".to_owned(), arguments);
    assert_eq!(press(&mut state, &["<f5>"]), [tasks::open(1, "memo".to_owned(), get).into()]);
    let messages = vec![
        json!({ "role": "user", "content": { "type": "text", "text": "Greet alma." } }),
        json!({ "role": "assistant", "content": { "type": "resource_link", "uri": "file:///x" } }),
    ];
    let response = OfferingResponse::Messages(Some("A greeting".to_owned()), messages);
    state.offerings.set_response(1, response);
    let page = page(&state);
    for text in ["A greeting", "\nuser\nGreet alma.", "\nassistant\n[link] file:///x"] {
        assert!(page.contains(text), "{text:?} is missing in\n{page}");
    }
    let line = "toolhost prompts get memo-greet name=alma";
    assert_eq!(press(&mut state, &["Y"]), [AppEffect::Copy(line.to_owned())]);
    // A server that only the command line names is named again.
    state.context.command_end = " -- python3 memo.py".to_owned();
    let line = format!("{line} -- python3 memo.py");
    assert_eq!(press(&mut state, &["Y"]), [AppEffect::Copy(line)]);
}

#[test]
fn a_server_that_suggests_nothing_is_asked_once() {
    let mut state = listed();
    press(&mut state, &GREET);
    press(&mut state, &["<enter>", "a"]);
    let error = Err(Error::protocol("it does not declare completions"));
    assert_eq!(suggested(&mut state, query("name", ""), error), []);
    assert_eq!(press(&mut state, &["b", "<down>", "c"]), []);
}

#[test]
fn what_a_prompt_needs_is_asked_for_and_what_needs_nothing_is_fetched() {
    let mut state = listed();
    press(&mut state, &GREET);
    press(&mut state, &["<enter>", "<down>"]);
    assert_eq!(press(&mut state, &["<f5>"]), []);
    let form = &state.offerings.asking.as_ref().unwrap().form;
    assert_eq!((form.at, form.problem.as_deref()), (0, Some("name is required")));
    press(&mut state, &["<esc>", "/"]);
    state.offerings.filter.line.clear_line();
    press(&mut state, &["review", "<enter>"]);
    let effects = press(&mut state, &["<enter>"]);
    let get = OfferingRequest::Get("memo-review".to_owned(), JsonObject::new());
    assert_eq!(effects, [tasks::open(2, "memo".to_owned(), get).into()]);
}

#[test]
fn a_watched_resource_is_marked_when_it_changes_and_read_again_when_it_is_open() {
    let mut state = listed();
    press(&mut state, &["jj"]);
    assert_eq!(press(&mut state, &["S"]), [tasks::watch(one()).into()]);
    changed(&mut state, SubscriptionEvent::Subscribed { refused: Vec::new() });
    let updated = || SubscriptionEvent::ResourceUpdated { uri: "memo://one".to_owned(), times: 1 };
    assert_eq!(changed(&mut state, updated()), []);
    let item = state.offerings.chosen_item().unwrap();
    assert_eq!(state.offerings.marks(&item), ('S', '!'));
    press(&mut state, &["<enter>"]);
    contents(&mut state, 1, vec![text("first")]);
    assert_eq!(state.offerings.marks(&item), ('S', ' '));
    assert_eq!(changed(&mut state, updated()), [wish_to_read(2, "memo://one")]);
    assert!(page(&state).contains("first"), "it stays until it was read again");
    contents(&mut state, 2, vec![text("second")]);
    assert!(page(&state).contains("second"));
    // The same change, told on the other way, is no other change.
    let event =
        HostEvent::ResourceUpdated { server: "memo".to_owned(), uri: "memo://one".to_owned() };
    assert_eq!(state.update(AppEvent::Host(event)), []);
    assert_eq!(press(&mut state, &["S"]), [AppEffect::Stop(tasks::watch_slot(&one()))]);
    assert_eq!(state.offerings.marks(&item), (' ', ' '));
    press(&mut state, &["S"]);
    let refused = SubscriptionEvent::Subscribed { refused: vec!["memo://one".to_owned()] };
    changed(&mut state, refused);
    assert!(state.context.message.as_ref().unwrap().is_error);
    assert_eq!(state.offerings.marks(&item), (' ', ' '));
}

#[test]
fn a_list_that_changes_is_asked_for_again_once_at_a_time() {
    let mut state = listed();
    let event = || {
        let owner = ListOwner::Server("memo".to_owned());
        AppEvent::Host(HostEvent::ListChanged { owner, list: ListKind::Prompts })
    };
    let ask = [AppEffect::from(tasks::list("memo".to_owned()))];
    assert_eq!(state.update(event()), ask);
    assert_eq!(state.update(event()), []);
    assert_eq!(offered(&mut state, "memo", lists()), ask);
    assert_eq!(offered(&mut state, "memo", lists()), []);
    press(&mut state, &["1"]);
    assert_eq!(state.update(event()), []);
    assert_eq!(press(&mut state, &["7"]), ask);
}

#[test]
fn what_is_chosen_stays_chosen_and_what_is_found_is_shown_alone() {
    let mut state = listed();
    press(&mut state, &["jjj"]);
    let mut more = lists();
    more.items.insert(0, resource("memo://zero").into());
    offered(&mut state, "memo", more);
    let chosen = state.offerings.chosen_item().unwrap();
    assert_eq!(chosen.name, "memo://two");
    press(&mut state, &["/", "grt"]);
    assert_eq!(names(&state), ["memo-greet"]);
    press(&mut state, &["<esc>", "/", "!greet"]);
    assert_eq!(names(&state).len(), 5);
    press(&mut state, &["<esc>", "<esc>"]);
    assert_eq!(names(&state).len(), 6);
    press(&mut state, &["g", "<enter>"]);
    let servers = ["memo", "down"].map(|name| OfferingRow::Server(name.to_owned()));
    assert_eq!(state.offerings.tree.rows, servers);
    assert_eq!(state.context.focus, Pane::OfferingList);
}

#[test]
fn a_dead_server_costs_its_own_lists_only() {
    let mut state = listed();
    press(&mut state, &["G"]);
    assert!(page(&state).contains("it cannot be started"), "{}", page(&state));
    assert_eq!(names(&state).len(), 5);
    assert_eq!(press(&mut state, &["S", "E", "Y", "e"]), []);
}
