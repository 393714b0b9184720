//! What finding out an era costs: one request the first time, none after it.

use crate::support::{Fixture, Place, Sandbox, log_events};

/// The requests that a server of `era` heard in two runs of `list`, one after the other.
fn two_runs(place: Place, era: &str, more: &str) -> [Vec<String>; 2] {
    let room = Sandbox::new();
    let log = room.log("server");
    let fixture = Fixture::fault(place, "none", era, &log);
    room.server_with("server", &fixture, more);
    let requests = || -> Vec<String> {
        let messages = log_events(&log, "message");
        let requests = messages.iter().filter(|message| message.get("id").is_some());
        requests.map(|request| request["method"].as_str().unwrap().to_owned()).collect()
    };
    room.with_servers(["list"]).check();
    let first = requests();
    room.with_servers(["list"]).check();
    let second = requests().split_off(first.len());
    [first, second]
}

#[test]
fn a_legacy_server_is_asked_once_too_often_and_then_never_again() {
    for place in [Place::Stdio, Place::Http] {
        let [first, second] = two_runs(place, "legacy", "");
        assert_eq!(first, ["server/discover", "initialize", "tools/list"], "{place:?}");
        assert_eq!(second, ["initialize", "tools/list"], "{place:?}");
    }
}

#[test]
fn a_modern_server_is_never_asked_too_often() {
    for place in [Place::Stdio, Place::Http] {
        for run in two_runs(place, "modern", "") {
            assert_eq!(run, ["server/discover", "tools/list"], "{place:?}");
        }
    }
}

#[test]
fn what_an_entry_insists_on_is_not_remembered_for_others() {
    let room = Sandbox::new();
    let log = room.log("server");
    let fixture = Fixture::fault(Place::Stdio, "none", "both", &log);
    room.server_with("insists", &fixture, "protocol: legacy\n").server("open", &fixture);
    room.with_servers(["list"]).check();
    let told = room.with_servers(["servers", "--json"]).check().json();
    let era = |name: &str| {
        let rows = told["servers"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap()["era"].clone()
    };
    assert_eq!((era("insists"), era("open")), ("legacy".into(), "modern".into()));
}

#[test]
fn only_an_era_that_was_found_out_is_written_down() {
    let cases = [("protocol: legacy\n", false), ("protocol: 2026-07-28\n", false), ("", true)];
    for place in [Place::Stdio, Place::Http] {
        for (more, written) in cases {
            let room = Sandbox::new();
            let fixture = Fixture::fault(place, "none", "both", &room.log("srv"));
            room.server_with("srv", &fixture, more);
            room.with_servers(["list"]).check().exits(0);
            let file = room.path("cache/toolhost/eras.json");
            assert_eq!(file.exists(), written, "{place:?} {more:?}");
        }
    }
}
