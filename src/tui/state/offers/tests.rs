//! Resources and prompts as a person uses them, without a server.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::model::{
    Change, Completion, CompletionQuery, Event as Told, Fault, FaultKind, ListOwner, OfferList,
    Prompt, PromptArgument, PromptMessages, Reference, Resource, ResourceContents,
    ResourceTemplate, ToolName,
};
use crate::tui::event::offers::{Followed, Lists, News, Ticket, Wish};
use crate::tui::event::{Effect, Event};
use crate::tui::state::tests::{press, sample};
use crate::tui::state::{OfferRow, Pane, State};

fn raw() -> Arc<RawValue> {
    Arc::from(RawValue::from_string("{}".to_owned()).unwrap())
}

pub(in crate::tui) fn resource(uri: &str) -> Resource {
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

fn lists() -> Lists {
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
    Lists {
        resources: vec![resource("memo://one"), resource("memo://two")],
        templates: vec![ResourceTemplate {
            server: "memo".to_owned(),
            template: "memo://notes/{name}".to_owned(),
            name: "note".to_owned(),
            title: None,
            description: None,
            mime_type: None,
            warnings: Vec::new(),
            raw: raw(),
        }],
        prompts: vec![
            prompt("greet", vec![argument("name", true), argument("tone", false)]),
            prompt("review", Vec::new()),
        ],
        ..Lists::default()
    }
}

fn told(state: &mut State, news: News) -> Vec<Effect> {
    state.update(Event::Offers(news))
}

pub(in crate::tui) fn listed() -> State {
    let mut state = sample();
    assert_eq!(press(&mut state, &["7"]), [Effect::Offers(Wish::ListAll)]);
    told(&mut state, News::Servers(vec!["memo".to_owned(), "down".to_owned()]));
    told(&mut state, News::Listed("memo".to_owned(), Box::new(lists())));
    let faults = vec![Fault::new(FaultKind::Unreachable, "it cannot be started")];
    let nothing = Lists { faults, ..Lists::default() };
    told(&mut state, News::Listed("down".to_owned(), Box::new(nothing)));
    state
}

fn one() -> Followed {
    Followed { server: "memo".to_owned(), uri: "memo://one".to_owned() }
}

fn wish_to_read(ticket: u64, uri: &str) -> Effect {
    let (server, uri) = ("memo".to_owned(), uri.to_owned());
    Effect::Offers(Wish::Read { ticket: Ticket(ticket), server, uri })
}

pub(in crate::tui) fn contents(ticket: u64, parts: Vec<Value>) -> News {
    let read = ResourceContents {
        server: "memo".to_owned(),
        uri: "memo://one".to_owned(),
        contents: parts,
        freshness: crate::model::Freshness::default(),
        meta: None,
    };
    News::Read(Ticket(ticket), Box::new(Ok(read)))
}

fn text(said: &str) -> Value {
    json!({ "uri": "memo://one", "mimeType": "text/plain", "text": said })
}

fn page(state: &State) -> String {
    state.offers.page.to_text()
}

fn names(state: &State) -> Vec<String> {
    let tree = &state.offers.tree;
    tree.rows().iter().filter_map(|row| tree.item(*row)).map(|item| item.name).collect()
}

const GREET: [&str; 3] = ["/", "greet", "<enter>"];

#[test]
fn a_resource_is_opened_and_only_the_newest_answer_counts() {
    let mut state = listed();
    assert_eq!(press(&mut state, &["jj", "<enter>"]), [wish_to_read(1, "memo://one")]);
    assert_eq!(
        press(&mut state, &["<esc>", "<esc>", "j", "<enter>"])[..1],
        [Effect::Offers(Wish::GiveUp)]
    );
    told(&mut state, contents(1, vec![text("too late")]));
    assert!(page(&state).contains("waiting for the answer"), "{}", page(&state));
    told(&mut state, contents(2, vec![text(r#"{"a":[1]}"#)]));
    assert!(page(&state).contains("\"a\": [\n    1\n"), "{}", page(&state));
}

#[test]
fn binary_parts_are_told_and_written_to_files() {
    let mut state = listed();
    press(&mut state, &["jj", "<enter>"]);
    let parts = vec![text("one"), json!({ "mimeType": "image/png", "blob": "iVBORw0KGgo=" })];
    told(&mut state, contents(1, parts.clone()));
    assert!(page(&state).contains("[image/png 8 B; E writes it to a file]"), "{}", page(&state));
    assert_eq!(press(&mut state, &["E"]), [Effect::Offers(Wish::Save(Arc::new(parts)))]);
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
    told(&mut state, contents(1, vec![text("note")]));
    let line = "toolhost resources read --server memo memo://notes/a%2Fb%20c";
    assert_eq!(press(&mut state, &["Y"]), [Effect::Copy(line.to_owned())]);
    assert_eq!(press(&mut state, &["y"]), [Effect::Copy("note".to_owned())]);
    // What was filled in is there again.
    press(&mut state, &["e"]);
    let asking = state.offers.asking.as_ref().unwrap();
    assert_eq!(asking.address().as_deref(), Some("memo://notes/a%2Fb%20c"));
}

fn query(argument: &str, value: &str) -> CompletionQuery {
    CompletionQuery {
        reference: Reference::Prompt("memo-greet".to_owned()),
        argument: argument.to_owned(),
        value: value.to_owned(),
        context: std::collections::BTreeMap::new(),
    }
}

fn asks(argument: &str, value: &str) -> Vec<Effect> {
    let (server, query) = ("memo".to_owned(), query(argument, value));
    vec![Effect::Offers(Wish::Complete { server, query })]
}

fn completed(state: &mut State, query: CompletionQuery, values: &[&str]) -> Vec<Effect> {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    told(state, News::Completed(query, Ok(Completion { values, total: Some(5), has_more: None })))
}

#[test]
fn suggestions_are_asked_for_one_at_a_time_and_taken_with_a_key() {
    let mut state = listed();
    press(&mut state, &GREET);
    assert_eq!(press(&mut state, &["<enter>"]), asks("name", ""));
    assert_eq!(press(&mut state, &["a", "l"]), [], "one question at a time");
    assert_eq!(completed(&mut state, query("name", ""), &["ada", "alan"]), asks("name", "al"));
    completed(&mut state, query("name", "al"), &["alan", "alma"]);
    let suggestions = &state.offers.asking.as_ref().unwrap().suggestions;
    assert_eq!((suggestions.values.len(), suggestions.more), (2, Some(3)));
    assert_eq!(press(&mut state, &["<right>"]), [], "what was taken is not asked about");
    assert_eq!(state.offers.asking.as_ref().unwrap().texts()["name"], "alan");
    press(&mut state, &["<right>"]);
    let arguments = json!({ "name": "alma" }).as_object().cloned().unwrap();
    let (server, name) = ("memo".to_owned(), "memo-greet".to_owned());
    let get = Wish::Get { ticket: Ticket(1), server, name, arguments };
    assert_eq!(press(&mut state, &["<f5>"]), [Effect::Offers(get)]);
    let messages = vec![
        json!({ "role": "user", "content": { "type": "text", "text": "Greet alma." } }),
        json!({ "role": "assistant", "content": { "type": "resource_link", "uri": "file:///x" } }),
    ];
    let got = PromptMessages {
        name: ToolName::of("memo", "greet"),
        description: Some("A greeting".to_owned()),
        messages,
        meta: None,
    };
    told(&mut state, News::Got(Ticket(1), Box::new(Ok(got))));
    let page = page(&state);
    for said in ["A greeting", "\nuser\nGreet alma.", "\nassistant\nlink        file:///x"] {
        assert!(page.contains(said), "{said:?} is missing in\n{page}");
    }
    let line = "toolhost prompts get memo-greet name=alma";
    assert_eq!(press(&mut state, &["Y"]), [Effect::Copy(line.to_owned())]);
}

#[test]
fn a_server_that_suggests_nothing_is_asked_once() {
    let mut state = listed();
    press(&mut state, &GREET);
    press(&mut state, &["<enter>", "a"]);
    let fault = Err(Fault::protocol("it does not declare completions"));
    assert_eq!(told(&mut state, News::Completed(query("name", ""), fault)), []);
    assert_eq!(press(&mut state, &["b", "<down>", "c"]), []);
}

#[test]
fn what_a_prompt_needs_is_asked_for_and_what_needs_nothing_is_fetched() {
    let mut state = listed();
    press(&mut state, &GREET);
    press(&mut state, &["<enter>", "<down>"]);
    assert_eq!(press(&mut state, &["<f5>"]), []);
    let form = &state.offers.asking.as_ref().unwrap().form;
    assert_eq!((form.at, form.problem.as_deref()), (0, Some("name is required")));
    press(&mut state, &["<esc>", "/"]);
    state.offers.filter.clear();
    press(&mut state, &["review", "<enter>"]);
    let effects = press(&mut state, &["<enter>"]);
    assert!(
        matches!(&effects[..], [Effect::Offers(Wish::Get { name, .. })] if name == "memo-review")
    );
}

#[test]
fn a_watched_resource_is_marked_when_it_changes_and_read_again_when_it_is_open() {
    let mut state = listed();
    press(&mut state, &["jj"]);
    assert_eq!(press(&mut state, &["S"]), [Effect::Offers(Wish::Follow(one()))]);
    told(&mut state, News::Told(one(), Change::Listening { refused: Vec::new() }));
    let updated = || Change::Updated { uri: "memo://one".to_owned(), times: 1 };
    assert_eq!(told(&mut state, News::Told(one(), updated())), []);
    let item = state.offers.tree.item(state.offers.chosen().unwrap()).unwrap();
    assert_eq!(state.offers.marks(&item), ('S', '!'));
    press(&mut state, &["<enter>"]);
    told(&mut state, contents(1, vec![text("first")]));
    assert_eq!(state.offers.marks(&item), ('S', ' '));
    assert_eq!(told(&mut state, News::Told(one(), updated())), [wish_to_read(2, "memo://one")]);
    assert!(page(&state).contains("first"), "it stays until it was read again");
    told(&mut state, contents(2, vec![text("second")]));
    assert!(page(&state).contains("second"));
    // The same change, told on the other way, is no other change.
    let event = Told::ResourceUpdated { server: "memo".to_owned(), uri: "memo://one".to_owned() };
    assert_eq!(state.update(Event::Host(event)), []);
    assert_eq!(press(&mut state, &["S"]), [Effect::Offers(Wish::Unfollow(one()))]);
    assert_eq!(state.offers.marks(&item), (' ', ' '));
    press(&mut state, &["S"]);
    let refused = Change::Listening { refused: vec!["memo://one".to_owned()] };
    told(&mut state, News::Told(one(), refused));
    assert!(state.shell.message.as_ref().unwrap().is_bad);
    assert_eq!(state.offers.marks(&item), (' ', ' '));
}

#[test]
fn a_list_that_changes_is_asked_for_again_once_at_a_time() {
    let mut state = listed();
    let event = || {
        let owner = ListOwner::Server("memo".to_owned());
        Event::Host(Told::ListChanged { owner, list: OfferList::Prompts })
    };
    let ask = [Effect::Offers(Wish::List("memo".to_owned()))];
    assert_eq!(state.update(event()), ask);
    assert_eq!(state.update(event()), []);
    assert_eq!(told(&mut state, News::Listed("memo".to_owned(), Box::new(lists()))), ask);
    assert_eq!(told(&mut state, News::Listed("memo".to_owned(), Box::new(lists()))), []);
    press(&mut state, &["1"]);
    assert_eq!(state.update(event()), []);
    assert_eq!(press(&mut state, &["7"]), ask);
}

#[test]
fn what_is_chosen_stays_chosen_and_what_is_found_is_shown_alone() {
    let mut state = listed();
    press(&mut state, &["jjj"]);
    let mut more = lists();
    more.resources.insert(0, resource("memo://zero"));
    told(&mut state, News::Listed("memo".to_owned(), Box::new(more)));
    let chosen = state.offers.tree.item(state.offers.chosen().unwrap()).unwrap();
    assert_eq!(chosen.name, "memo://two");
    press(&mut state, &["/", "grt"]);
    assert_eq!(names(&state), ["memo-greet"]);
    press(&mut state, &["<esc>", "<esc>"]);
    assert_eq!(names(&state).len(), 6);
    press(&mut state, &["g", "<enter>"]);
    assert_eq!(state.offers.tree.rows(), [OfferRow::Server(0), OfferRow::Server(1)]);
    assert_eq!(state.shell.focus, Pane::Offered);
}

#[test]
fn a_dead_server_costs_its_own_lists_only() {
    let mut state = listed();
    press(&mut state, &["G"]);
    assert!(page(&state).contains("it cannot be started"), "{}", page(&state));
    assert_eq!(names(&state).len(), 5);
    assert_eq!(press(&mut state, &["S", "E", "Y", "e"]), []);
}
