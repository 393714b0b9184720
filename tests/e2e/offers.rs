//! What servers offer beside tools: prompts, resources, completions, subscriptions.

use serde_json::{Value, json};

use crate::support::{Finished, Fixture, Place, Pty, Run, Sandbox, forbidden, log_events};

/// A room with one server called `srv`.
struct House {
    room: Sandbox,
    // Held because a server over HTTP ends with it.
    _fixture: Fixture,
}

impl House {
    fn of(place: Place, fault: &str, era: &str, more: &str) -> Self {
        let room = Sandbox::new();
        let fixture = Fixture::fault(place, fault, era, &room.log("srv"));
        room.server_with("srv", &fixture, more);
        Self { room, _fixture: fixture }
    }

    fn new(fault: &str) -> Self {
        Self::of(Place::Stdio, fault, "both", "")
    }

    fn run<'a>(&'a self, arguments: impl IntoIterator<Item = &'a str>) -> Run<'a> {
        self.room.with_servers(arguments)
    }

    /// The messages with this method that the server got.
    fn got(&self, method: &str) -> Vec<Value> {
        let messages = log_events(&self.room.log("srv"), "message");
        messages.into_iter().filter(|message| message["method"] == method).collect()
    }
}

/// Every place and era once.
fn everywhere(fault: &str) -> impl Iterator<Item = House> {
    [
        (Place::Stdio, "legacy"),
        (Place::Stdio, "modern"),
        (Place::Http, "legacy"),
        (Place::Http, "modern"),
    ]
    .into_iter()
    .map(move |(place, era)| House::of(place, fault, era, ""))
}

/// Fails the test unless a run ended with 0 and stdout holds all of these.
#[track_caller]
fn prints(finished: &Finished, words: &[&str]) {
    finished.exits(0);
    for word in words {
        assert!(finished.out().contains(word), "stdout lacks {word:?}\n{finished}");
    }
}

fn column<'a>(listing: &'a Value, list: &str, key: &str) -> Vec<&'a str> {
    listing[list].as_array().unwrap().iter().map(|item| item[key].as_str().unwrap()).collect()
}

#[test]
fn lists_come_from_every_page_in_every_era() {
    for house in everywhere("offers") {
        let listed = house.run(["prompts", "list", "--json"]).check().exits(0).json();
        assert_eq!(column(&listed, "prompts", "name"), ["srv-greet", "srv-review"]);
        assert_eq!(listed["prompts"][0]["arguments"][0]["required"], true);
        assert_eq!(listed["servers"][0]["status"], "ok");
        let listed = house.run(["resources", "list", "--json"]).check().exits(0).json();
        let uris = ["memo://one", "memo://data", "memo://picture", "memo://parts"];
        assert_eq!(column(&listed, "resources", "uri"), uris);
        let listed =
            house.run(["resources", "list", "--templates", "--json"]).check().exits(0).json();
        assert_eq!(column(&listed, "templates", "template"), ["memo://notes/{name}"]);
    }
    let house = House::of(Place::Stdio, "offers", "modern", "");
    let listed = house.run(["resources", "list", "--json"]).check().exits(0).json();
    assert_eq!(listed["servers"][0]["ttl_ms"], 60_000);
    assert_eq!(listed["servers"][0]["cache_scope"], "public");
    let names = house.run(["resources", "list", "one", "-o", "names"]).check();
    assert_eq!(names.exits(0).out(), "memo://one\n");
    let none = house.run(["prompts", "list", "nowhere"]).check();
    none.exits(0).says(&["0 prompts"]);
}

#[test]
fn a_resource_is_read_as_text_as_bytes_and_in_parts() {
    for house in everywhere("offers") {
        let read = house.run(["resources", "read", "memo://one"]).check();
        assert_eq!(read.exits(0).out(), "first memo\n");
        let read = house.run(["resources", "read", "memo://notes/x y"]).check();
        assert_eq!(read.exits(0).out(), "note x y\n");
        let read = house.run(["resources", "read", "memo://picture"]).check();
        assert_eq!(read.exits(0).out(), "[resource memo://picture: image/png 8 B, use --save]\n");
        let raw = house.run(["resources", "read", "memo://picture", "-o", "raw"]).go();
        assert_eq!(raw.stdout, b"\x89PNG\r\n\x1a\n");
    }
    let house = House::new("offers");
    let parts = house.run(["resources", "read", "memo://parts"]).check();
    prints(&parts, &["[resource memo://parts/1]", "part one", "image/png 4 B"]);
    let query = house.run(["resources", "read", "memo://data", "--query", ".a[1]"]).check();
    assert_eq!(query.exits(0).out(), "2\n");
    house.run(["resources", "read", "memo://parts", "--save", "out.bin"]).check().exits(0);
    let second = std::fs::read(house.room.path("work/out-2.bin")).unwrap();
    assert_eq!(second, b"\x89PNG");
    let value = house.run(["resources", "read", "memo://one", "--json"]).check().exits(0).json();
    assert_eq!(value["contents"][0]["text"], "first memo\n");
    assert_eq!((&value["server"], &value["ttl_ms"]), (&json!("srv"), &json!(1000)));
}

#[test]
fn what_is_not_there_is_said_with_the_nearest() {
    let house = House::new("offers");
    house.run(["resources", "read", "memo://on"]).check().exits(2).says(&["memo://one"]);
    // One named server is asked for anything, and says no itself.
    house.run(["resources", "read", "memo://on", "--server", "srv"]).check().exits(3);
    house.run(["prompts", "get", "gret", "name=x"]).check().exits(2).says(&["srv-greet"]);
    house.run(["prompts", "get", "greet", "nam=x"]).check().exits(2).says(&["required", "'name'"]);
    assert!(house.got("prompts/get").is_empty(), "it was asked with wrong arguments");
    house.run(["prompts", "list", "--server", "nobody"]).check().exits(2).says(&["known: srv"]);
}

#[test]
fn a_prompt_is_filled_in_and_its_arguments_complete() {
    for house in everywhere("offers") {
        let filled = house.run(["prompts", "get", "srv-greet", "name=Ada"]).check();
        prints(&filled, &["user\n  Greet Ada.\n", "assistant\n  [image/png 4 B"]);
        let raw = house.run(["prompts", "get", "review", "-o", "raw"]).go();
        assert!(raw.stdout.starts_with(b"Review this.\n"));
        let tones = house.run(["complete", "greet", "tone", "c"]).check();
        assert_eq!(tones.exits(0).out(), "calm\ncheerful\ncurt\n");
        let done = house.run(["complete", "memo://notes/{name}", "name", "al", "--json"]).check();
        assert_eq!(
            done.exits(0).json(),
            json!({ "values": ["alan"], "total": 2, "has_more": false })
        );
    }
    let house = House::new("offers");
    let words = ["complete", "greet", "tone", "--context", "name=Ada"];
    house.run(words).check().exits(0);
    let asked = house.got("completion/complete");
    assert_eq!(asked[0]["params"]["context"]["arguments"], json!({ "name": "Ada" }));
    house.run(["complete", "greet", "tome"]).check().exits(2).says(&["'tone'"]);
    house.run(["complete", "greet", "tone", "x"]).check().exits(0).says(&["no values match"]);
}

#[test]
fn a_bad_item_costs_itself_and_a_bad_page_what_follows() {
    for (fault, words) in [
        ("offers-bad-items", "not an object"),
        ("offers-cursor-loop", "was repeated"),
        ("offers-second-page-fails", "second page is lost"),
    ] {
        for house in everywhere(fault) {
            for list in [&["prompts", "list"][..], &["resources", "list"]] {
                let listed = house.run(list.iter().copied()).check();
                listed.exits(11).says(&[words]);
                assert!(listed.out().contains("greet") || listed.out().contains("memo://one"));
            }
        }
    }
}

#[test]
fn one_dead_server_costs_its_own_lists() {
    let house = House::new("offers");
    let dead = Fixture::fault(Place::Stdio, "exit-at-once", "both", &house.room.log("dead"));
    house.room.server("dead", &dead);
    let listed = house.run(["prompts", "list"]).check();
    listed.exits(11).says(&["dead"]);
    assert!(listed.out().contains("srv-greet"), "{listed}");
    house.run(["prompts", "list", "--server", "dead"]).check().exits(4);
    house.run(["prompts", "get", "srv-greet", "name=x"]).check().exits(0);
    // A server that does not answer may be the one that has it, which is said.
    house
        .run(["resources", "read", "memo://nothing"])
        .check()
        .exits(2)
        .says(&["server 'dead' did not answer and may offer 'memo://nothing'"]);
    house.run(["resources", "read", "memo://one"]).check().exits(0);
}

#[test]
fn an_address_of_two_servers_needs_one_of_them() {
    let house = House::new("offers");
    let twin = Fixture::fault(Place::Stdio, "offers", "both", &house.room.log("twin"));
    house.room.server("twin", &twin);
    house
        .run(["resources", "read", "memo://one"])
        .check()
        .exits(2)
        .says(&["2 servers", "--server"]);
    house.run(["resources", "read", "memo://one", "--server", "twin"]).check().exits(0);
    house.run(["prompts", "get", "greet", "name=x"]).check().exits(2).says(&["twin-greet"]);
    house.run(["prompts", "get", "twin-greet", "name=x"]).check().exits(0);
}

#[test]
fn what_an_entry_excludes_is_not_listed_and_not_read() {
    let exclude = "exclude: [review, 'memo://p*', data]\n";
    let house = House::of(Place::Stdio, "offers", "both", exclude);
    let prompts = house.run(["prompts", "list", "-o", "names"]).check();
    assert_eq!(prompts.exits(0).out(), "srv-greet\n");
    let resources = house.run(["resources", "list", "-o", "names"]).check();
    assert_eq!(resources.exits(0).out(), "memo://one\n");
    for uri in ["memo://picture", "memo://data"] {
        house
            .run(["resources", "read", uri, "--server", "srv"])
            .check()
            .exits(6)
            .says(&["excluded"]);
    }
    house.run(["resources", "read", "memo://one", "--server", "srv"]).check().exits(0);
}

#[test]
fn answers_that_are_none_break_the_protocol() {
    for house in everywhere("offers-broken-answers") {
        house.run(["resources", "read", "memo://one"]).check().exits(10).says(&["neither text"]);
        house.run(["prompts", "get", "srv-review"]).check().exits(10).says(&["not an array"]);
        house.run(["complete", "greet", "tone"]).check().exits(10).says(&["no values"]);
    }
}

#[test]
fn changes_are_printed_as_they_come() {
    for (place, era) in
        [(Place::Stdio, "legacy"), (Place::Stdio, "modern"), (Place::Http, "modern")]
    {
        let house = House::of(place, "offers", era, "");
        let words = ["resources", "watch", "memo://one", "--count", "1", "--read"];
        let watched = house.run(words).check();
        prints(&watched, &["memo://one changed at srv", "first memo"]);
        let json = house.run(words.into_iter().chain(["--json"])).check();
        let line = json.exits(0).json();
        assert_eq!((&line["event"], &line["uri"]), (&json!("updated"), &json!("memo://one")));
        assert_eq!(line["contents"][0]["text"], "first memo\n");
        match era {
            "legacy" => assert_eq!(house.got("resources/unsubscribe").len(), 2),
            _ if place == Place::Stdio => {
                assert_eq!(house.got("notifications/cancelled").len(), 2);
            }
            // Over HTTP the closed stream says it.
            _ => {}
        }
    }
}

#[test]
fn a_subscription_that_ended_is_begun_again() {
    let house = House::of(Place::Stdio, "offers-subscription-ends", "modern", "");
    let words = ["resources", "watch", "memo://one", "--count", "2"];
    house.run(words).check().exits(0).says(&["ended the subscription; retrying"]);
    assert_eq!(house.got("subscriptions/listen").len(), 2);
    for era in ["legacy", "modern"] {
        let house = House::of(Place::Stdio, "offers-subscription-breaks", era, "");
        house.run(words).check().exits(0).says(&["retrying"]);
        assert_eq!(log_events(&house.room.log("srv"), "start").len(), 2, "{era}");
    }
}

#[test]
fn who_tells_no_changes_is_not_watched() {
    for era in ["legacy", "modern"] {
        let house = House::of(Place::Stdio, "offers-no-subscriptions", era, "");
        let watched = house.run(["resources", "watch", "memo://one"]).check();
        watched.exits(3).says(&["server 'srv'", "hint:"]);
    }
    let house = House::new("offers");
    house.run(["resources", "watch", "memo://data"]).check().exits(3);
    let tools_only = House::new("none");
    tools_only.run(["resources", "watch", "x:1", "--server", "srv"]).check().exits(3);
}

#[test]
fn ctrl_c_ends_the_watching_and_the_server_is_told() {
    let house = House::of(Place::Stdio, "offers", "legacy", "");
    let mut pty =
        Pty::toolhost(&house.room, &["--mcp", "mcp.yaml", "resources", "watch", "memo://one"]);
    pty.expect("changed at srv").type_keys("\u{3}");
    let (status, screen) = pty.finish();
    assert_eq!(status, Some(130), "{screen}");
    assert_eq!(house.got("resources/unsubscribe").len(), 1);
    assert!(house.room.inhabitants().is_empty());
}

#[test]
fn a_verbose_run_asks_a_legacy_server_for_its_log_lines() {
    let house = House::of(Place::Stdio, "none", "legacy", "");
    house.run(["call", "srv-echo", "message=x"]).check().exits(0);
    assert!(house.got("logging/setLevel").is_empty());
    house.run(["call", "srv-echo", "message=x", "-v"]).check().exits(0);
    house.run(["call", "srv-echo", "message=x", "-vv"]).check().exits(0);
    let levels = house.got("logging/setLevel");
    let levels: Vec<&str> = levels.iter().filter_map(|m| m["params"]["level"].as_str()).collect();
    assert_eq!(levels, ["info", "debug"]);
}

#[test]
fn servers_are_counted_by_what_they_offer() {
    let house = House::new("offers");
    let shown = house.run(["servers", "--json"]).check().exits(0).json();
    let server = &shown["servers"][0];
    assert_eq!((&server["resources"], &server["prompts"]), (&json!(4), &json!(2)));
    prints(&house.run(["inspect", "srv"]).check(), &["4 resources, 2 prompts"]);
}

#[test]
fn every_attack_in_what_is_offered_is_visible_and_harmless() {
    for (place, era) in [(Place::Stdio, "legacy"), (Place::Http, "modern")] {
        let house = House::of(place, "offers-evil", era, "");
        let lists = [
            &["prompts", "list"][..],
            &["resources", "list"],
            &["resources", "list", "--templates"],
        ];
        for list in lists {
            for format in ["text", "table", "json", "yaml", "names"] {
                let words = list.iter().copied().chain(["-o", format, "-v"]);
                house.run(words).check().exits(11);
            }
        }
        for format in ["text", "json", "yaml"] {
            for words in [
                &["prompts", "get", "review"][..],
                &["resources", "read", "memo://one"],
                &["complete", "greet", "x"],
            ] {
                let words = words.iter().copied().chain(["-o", format]);
                house.run(words).check().exits(0);
            }
        }
        house.run(["servers", "-v"]).check();
        house.run(["inspect", "srv"]).check();
    }
}

#[test]
fn lists_fit_a_narrow_terminal() {
    let house = House::new("offers-evil");
    for list in [&["prompts", "list"][..], &["resources", "list"]] {
        let words = [&["--mcp", "mcp.yaml", "-q", "--color", "never"][..], list].concat();
        let binary = env!("CARGO_BIN_EXE_toolhost");
        let (status, screen) = Pty::sized(&house.room, binary, &words, 24, 60).finish();
        assert_eq!(status, Some(11), "{screen}");
        // The table comes first; what failed is told below it.
        let table = screen.split("error:").next().unwrap_or_default().replace("\r\n", "\n");
        assert_eq!(forbidden(table.as_bytes()), None, "{}", table.escape_debug());
        for line in table.lines() {
            assert!(line.chars().count() <= 60, "{line:?} is too wide\n{screen}");
        }
    }
}

#[test]
fn an_entry_that_cannot_be_used_is_missing_from_the_lists_with_its_reason() {
    let lists = [["resources", "list"], ["prompts", "list"]];
    let untrusted = Sandbox::new();
    untrusted.file("mcp.yaml", "mcp_servers:\n  srv: { command: ./server }\n");
    for words in lists {
        let finished = untrusted.toolhost(words).check();
        finished.exits(6).says(&["server 'srv': not trusted yet", "toolhost trust"]);
        assert!(!finished.err().contains("no servers configured"), "{finished}");
    }
    let broken = House::new("none");
    let good = std::fs::read_to_string(broken.room.path("work/mcp.yaml")).unwrap();
    broken.room.file("mcp.yaml", &format!("{good}  half: {{ url: 'http://${{NOT_SET}}/' }}\n"));
    for words in lists {
        broken.run(words).check().exits(11).says(&["'half'", "NOT_SET", "mcp.yaml:"]);
    }
}
