//! Lists that are long and schemas that are odd: shown and checked in bounds.

use std::time::Duration;

use serde_json::Value;

use crate::support::{Fixture, Place, Sandbox, log_events};

/// What a list of twenty thousand tools may take, in KiB.
const MOST_MEMORY: u64 = 256 * 1024;

fn room(place: Place, fault: &str) -> (Sandbox, Fixture) {
    let room = Sandbox::new();
    let fixture = Fixture::fault(place, fault, "legacy", &room.log("srv"));
    // What is long may take its time, on a machine with other work too.
    room.server_with("srv", &fixture, "timeout: 60s\nstart_timeout: 60s");
    (room, fixture)
}

#[test]
fn twenty_thousand_tools_are_listed_in_bounded_memory() {
    let (room, _fixture) = room(Place::Stdio, "very-many-tools");
    for words in [&["list"][..], &["list", "-o", "names"], &["list", "--json"], &["servers"]] {
        let run = room.with_servers(words.iter().copied()).limit(Duration::from_secs(90));
        let finished = run.go();
        finished.exits(0);
        assert!(finished.peak_rss < MOST_MEMORY, "{} KiB for {words:?}", finished.peak_rss);
    }
    let finished = room.with_servers(["inspect", "srv-tool_19999"]).check();
    assert!(finished.exits(0).out().contains("query"), "{finished}");
}

#[test]
fn a_message_of_many_tiny_values_costs_little_memory() {
    let (room, _fixture) = room(Place::Stdio, "many-values");
    let finished = room.with_servers(["call", "srv-echo", "message=hi"]).check();
    finished.exits(10).says(&["limit"]);
    assert!(finished.peak_rss < MOST_MEMORY / 2, "{} KiB", finished.peak_rss);
}

#[test]
fn odd_schemas_are_shown() {
    let (room, _fixture) = room(Place::Stdio, "odd-schemas");
    for name in odd_names(&room) {
        let shown = room.with_servers(["inspect", &name]).check();
        shown.exits(0);
        assert!(shown.out().len() < 200_000, "{} bytes of {name}", shown.out().len());
    }
}

#[test]
fn odd_schemas_are_checked_or_said_to_be_unchecked() {
    let (room, _fixture) = room(Place::Stdio, "odd-schemas");
    let text = format!("x={}!", "a".repeat(40));
    let called = |name: &String| room.with_servers(["call", name, &text]).check();
    // What cannot be checked is sent with a warning, what does not fit is refused.
    let (refused, sent): (Vec<_>, Vec<_>) =
        odd_names(&room).into_iter().partition(|name| called(name).code == Some(2));
    assert_eq!(refused, ["srv-ref_to_itself", "srv-many_required", "srv-slow_pattern"]);
    for name in sent {
        called(&name).exits(0);
    }
    let unchecked = ["call", "srv-ref_to_itself", "x=1", "--no-validate"];
    room.with_servers(unchecked).check().exits(0);
}

fn odd_names(room: &Sandbox) -> Vec<String> {
    let listed = room.with_servers(["list", "-o", "names"]).check();
    let names: Vec<String> = listed.exits(0).out().lines().map(str::to_owned).collect();
    assert!(names.len() > 15, "{names:?}");
    names
}

#[test]
fn a_schema_that_points_elsewhere_is_never_followed() {
    for place in [Place::Stdio, Place::Http] {
        let (room, _fixture) = room(place, "odd-schemas");
        for name in ["srv-ref_to_the_network", "srv-id_on_the_network", "srv-dynamic_ref"] {
            for words in [&["inspect", name][..], &["call", name, "x=1"], &["call", name]] {
                room.with_servers(words.iter().copied()).check().exits_one_of(&[0, 2]);
            }
        }
        room.with_servers(["list"]).check().exits(0);
        assert_eq!(log_events(&room.log("srv"), "canary"), [] as [Value; 0]);
    }
}
