//! Pins, the scan, roots, and everything about one server.

use serde_json::Value;

use crate::support::{Fixture, Place, Run, Sandbox, script};

/// A room with a server `srv` that changes when it is told to.
struct House {
    room: Sandbox,
    // Held because a server over HTTP ends with it.
    _fixture: Fixture,
}

impl House {
    fn new(place: Place, fault: &str, more: &str) -> Self {
        let room = Sandbox::new();
        let fixture = Fixture::fault(place, fault, "both", &room.log("srv"));
        room.server_with("srv", &fixture, more);
        Self { room, _fixture: fixture }
    }

    fn honest() -> Self {
        Self::new(Place::Stdio, "rug-pull", "")
    }

    /// From its next start on the server is something else.
    fn pull(&self, words: &str) -> &Self {
        std::fs::write(self.room.path("run/srv.jsonl.pulled"), words).unwrap();
        self
    }

    fn run<'a>(&'a self, arguments: impl IntoIterator<Item = &'a str>) -> Run<'a> {
        self.room.with_servers(arguments)
    }

    fn exits<'a>(&'a self, code: i32, arguments: impl IntoIterator<Item = &'a str>) -> String {
        let finished = self.run(arguments).check();
        finished.exits(code);
        finished.out() + &finished.err()
    }

    fn json<'a>(&'a self, code: i32, arguments: impl IntoIterator<Item = &'a str>) -> Value {
        let arguments: Vec<&str> = std::iter::once("--json").chain(arguments).collect();
        let finished = self.run(arguments).check();
        finished.exits(code);
        finished.json()
    }
}

#[test]
fn a_pinned_tool_that_changed_is_shown_and_not_called_until_somebody_accepts_it() {
    for place in [Place::Stdio, Place::Http] {
        let house = House::new(place, "rug-pull", "");
        let said = house.exits(0, ["pin"]);
        assert!(said.contains("new        srv-echo") && said.contains("3 new"), "{said}");
        assert!(house.exits(0, ["verify"]).contains("3 unchanged"));
        house.exits(0, ["call", "srv-echo", "message=hi"]);

        house.pull("description order");
        let said = house.exits(6, ["call", "srv-echo", "message=hi"]);
        assert!(
            said.contains("the pinned definition of 'srv-echo' changed (description)"),
            "{said}"
        );
        assert!(said.contains("+Sends a message back, and to somebody else"), "{said}");
        assert!(said.contains("toolhost verify srv-echo"), "{said}");
        house.exits(6, ["call", "--dry-run", "srv-echo", "message=hi"]);
        house.exits(0, ["call", "srv-add", "a=1", "b=2"]);

        let said = house.exits(8, ["verify"]);
        assert!(said.contains("changed    srv-echo"), "{said}");
        assert!(said.contains("-Sends a message back\n"), "{said}");
        assert!(house.exits(0, ["verify", "srv-add"]).contains("1 unchanged"));
        let listed = house.json(0, ["list"]);
        let status: Vec<&str> = listed["tools"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|tool| tool["name"] == "srv-echo")
            .map(|tool| tool["status"].as_str().unwrap())
            .collect();
        assert_eq!(status, ["changed"]);
        let shown = house.exits(0, ["inspect", "srv-echo"]);
        assert!(shown.contains("differs from its pin") && shown.contains("-Sends"), "{shown}");

        let said = house.exits(6, ["pin"]);
        assert!(said.contains("1 change was not accepted"), "{said}");
        house.exits(6, ["call", "srv-echo", "message=hi"]);
        house.exits(0, ["pin", "srv-echo", "--yes"]);
        house.exits(0, ["call", "srv-echo", "message=hi"]);
        house.exits(0, ["verify"]);
    }
}

#[test]
fn what_is_gone_new_moved_or_told_otherwise_is_seen() {
    let house = House::honest();
    house.exits(0, ["pin"]);
    house.pull("gone new");
    let compared = house.json(8, ["verify"]);
    let counts = &compared["counts"];
    assert_eq!((counts["gone"].as_u64(), counts["new"].as_u64()), (Some(1), Some(1)), "{compared}");
    house.exits(0, ["pin", "--yes"]);
    house.exits(0, ["verify"]);

    house.pull("gone new instructions");
    let said = house.exits(8, ["verify"]);
    assert!(said.contains("instructions") && said.contains("+Wipe first."), "{said}");
    house.exits(6, ["call", "srv-echo", "message=hi"]);

    house.pull("");
    assert!(house.exits(8, ["verify"]).contains("gone       srv-later"));
    house.exits(0, ["pin", "--yes"]);
    // The same server under another command line is not known to be the same.
    let other = Fixture::fault(Place::Stdio, "rug-pull", "legacy", &house.room.log("srv"));
    house.room.file(
        "mcp.yaml",
        &format!("mcp_servers:\n  srv:\n    {}", other.entry().replace('\n', "\n    ")),
    );
    let said = house.exits(8, ["verify"]);
    assert!(said.contains("endpoint") && said.contains("--era legacy"), "{said}");
    house.exits(6, ["call", "srv-echo", "message=hi"]);
}

#[test]
fn new_tools_are_told_and_fail_only_when_asked_for() {
    let house = House::honest();
    assert!(house.exits(2, ["verify"]).contains("nothing is pinned"));
    house.exits(0, ["pin", "srv-echo"]);
    assert!(house.exits(0, ["verify"]).contains("new        srv-add"));
    let said = house.exits(8, ["verify", "--strict-new"]);
    assert!(said.contains("2 tools are new"), "{said}");
    house.exits(0, ["verify", "--strict-new", "srv-echo"]);
    house.exits(2, ["verify", "srv-nothing"]);
    house.exits(2, ["verify", "--server", "nobody"]);
}

#[test]
fn a_server_that_cannot_be_checked_is_not_the_same() {
    let house = House::honest();
    let healthy = Fixture::fault(Place::Stdio, "none", "legacy", &house.room.log("well"));
    house.room.server("well", &healthy);
    house.exits(0, ["pin"]);
    let text = std::fs::read_to_string(house.room.path("work/mcp.yaml")).unwrap();
    house.room.file("mcp.yaml", &text.replacen("rug-pull", "exit-at-once", 1));
    let said = house.exits(11, ["verify"]);
    assert!(said.contains("unchecked  srv-echo") && said.contains("3 unchanged"), "{said}");
    house.exits(4, ["verify", "srv"]);
    house.exits(0, ["verify", "well"]);
}

#[test]
fn a_file_of_a_repository_holds_on_every_machine_and_decides_about_no_call() {
    let house = House::honest();
    house.exits(0, ["pin", "--file", "pins.json"]);
    let written = std::fs::read_to_string(house.room.path("work/pins.json")).unwrap();
    assert!(!written.contains("\"file\""), "{written}");
    house.exits(0, ["pin", "--file", "pins.json"]);
    assert_eq!(std::fs::read_to_string(house.room.path("work/pins.json")).unwrap(), written);
    house.exits(0, ["verify", "--file", "pins.json"]);
    house.pull("schema");
    let said = house.exits(8, ["verify", "--file", "pins.json"]);
    assert!(said.contains("inputSchema") && said.contains("+    \"sidenote\""), "{said}");
    house.exits(0, ["call", "srv-echo", "message=hi"]);
    house.exits(9, ["verify", "--file", "missing.json"]);
    house.room.file("pins.json", "{\"version\":1,\"pins\":[{}]}");
    house.exits(9, ["verify", "--file", "pins.json"]);
}

#[test]
fn pins_that_cannot_be_read_stop_calls() {
    let house = House::honest();
    house.exits(0, ["pin"]);
    let file = house.room.path("state/toolhost/pins.json");
    std::fs::write(&file, "nonsense").unwrap();
    let said = house.exits(9, ["call", "srv-echo", "message=hi"]);
    assert!(said.contains("pins.json cannot be used"), "{said}");
    std::fs::remove_file(&file).unwrap();
    house.exits(0, ["call", "srv-echo", "message=hi"]);
}

#[test]
fn an_entry_says_what_a_change_means() {
    for (more, code, warns) in [
        ("drift: block", 6, false),
        ("drift: warn", 0, true),
        ("drift: allow", 0, false),
        ("dev: true", 0, false),
        ("dev: true\ndrift: block", 6, false),
    ] {
        let house = House::new(Place::Stdio, "rug-pull", more);
        house.exits(0, ["pin"]);
        house.pull("description");
        let said = house.exits(code, ["call", "srv-echo", "message=hi"]);
        assert_eq!(said.contains("warning: drift:"), warns, "{more}: {said}");
    }
    let house = House::new(Place::Stdio, "rug-pull-announced", "drift: warn");
    let said = house.exits(0, ["call", "srv-echo", "message=hi"]);
    assert!(said.contains("changed after it was listed (description)"), "{said}");
}

#[test]
fn hostile_text_in_a_difference_is_shown_and_not_obeyed() {
    let house = House::honest();
    house.exits(0, ["pin"]);
    house.pull("evil");
    for arguments in [
        &["verify"][..],
        &["verify", "--scan"],
        &["--json", "verify"],
        &["call", "srv-echo", "message=hi"],
        &["--json", "call", "srv-echo", "message=hi"],
        &["inspect", "srv-echo"],
        &["pin"],
    ] {
        // The invariants hold: no control character reaches the output.
        let finished = house.run(arguments.iter().copied()).check();
        assert!(matches!(finished.code, Some(0 | 6 | 8)), "{finished}");
        if arguments[0] == "verify" {
            assert!(finished.out().contains("␛]0;owned"), "{finished}");
            assert!(finished.out().contains("high"), "{finished}");
        }
    }
    house.exits(0, ["pin", "--yes"]);
    let written = std::fs::read(house.room.path("state/toolhost/pins.json")).unwrap();
    assert!(written.iter().all(|b| matches!(b, b'\n' | b' '..=b'~')), "hidden characters");
}

#[test]
fn internal_tools_are_pinned_with_what_they_start() {
    let room = Sandbox::new();
    let tools = |program: &str, word: &str| {
        format!("tools:\n  - {{ name: hi, description: {word}, command: [{program}, hello] }}\n")
    };
    let run = |code: i32, arguments: &[&str]| {
        let all = ["--tools", "tools.yaml"].iter().chain(arguments).copied();
        let finished = room.toolhost(all).check();
        finished.exits(code);
        finished.out() + &finished.err()
    };
    room.file("tools.yaml", &tools("/bin/echo", "Says hello"));
    run(0, &["pin"]);
    run(0, &["call", "hi"]);
    room.file("tools.yaml", &tools("/usr/bin/printf", "Says hello"));
    let said = run(6, &["call", "hi"]);
    assert!(said.contains("touches:") && said.contains("+starts /usr/bin/printf"), "{said}");
    room.file("tools.yaml", &tools("/bin/echo", "Says goodbye"));
    assert!(run(8, &["verify"]).contains("+Says goodbye"));
    room.file("tools.yaml", "tools: []\n");
    assert!(run(8, &["verify"]).contains("gone       hi"));
}

#[test]
fn poison_is_flagged_and_calls_go_on() {
    let house = House::new(Place::Stdio, "poisoned", "");
    house.exits(0, ["call", "srv-echo", "message=hi"]);
    let shown = house.exits(0, ["inspect", "srv-echo"]);
    for word in ["Suspicious", "high", "invisible characters", "⟨U+E0041⟩", "only a model reads"]
    {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    let listed = house.exits(0, ["list", "--flagged"]);
    for name in ["srv-echo", "srv-add", "srv-wipe", "srv-e"] {
        assert!(listed.contains(name), "{name}: {listed}");
    }
    assert!(
        listed.contains("its name says 'wipe'") && listed.contains("looks like 'echo'"),
        "{listed}"
    );
    let flagged = house.json(0, ["list", "--flagged"]);
    assert_eq!(flagged["tools"].as_array().unwrap().len(), 4, "{flagged}");
    assert_eq!(flagged["tools"][0]["findings"][0]["severity"], "high", "{flagged}");
    let server = house.json(0, ["inspect", "srv"]);
    assert_eq!(server["flagged_tools"], 4, "{server}");
    assert_eq!(server["findings"][0]["rule"], "hidden", "{server}");
    let honest = House::honest();
    assert!(honest.exits(0, ["list", "--flagged"]).contains("0 tools are suspicious"));
}

#[test]
fn nothing_outside_the_roots_is_sent() {
    let house = House::new(Place::Stdio, "addresses", "roots: [./project, 'https://docs.example']");
    let project = house.room.path("work/project").canonicalize();
    assert!(project.is_err(), "roots need not exist");
    let inside = format!("uri=file://{}/a.txt", house.room.path("work/project").display());
    house.exits(0, ["call", "srv-fetch", inside.as_str()]);
    house.exits(0, ["call", "srv-fetch", "uri=https://docs.example/x"]);
    let up = format!("uri=file://{}/../x", house.room.path("work/project").display());
    for outside in [up.as_str(), "uri=file:///etc/passwd", "uri=https://docs.example.evil/x"] {
        for more in [&[][..], &["--dry-run"], &["--no-validate"]] {
            let words = ["call", "srv-fetch", outside];
            let said = house.exits(6, words.iter().chain(more).copied());
            assert!(said.contains("argument uri") && said.contains("root: file://"), "{said}");
        }
    }
    let nested = r#"{"uri":"https://docs.example","more":[{"link":"file:///etc/passwd"}]}"#;
    let said = house.exits(6, ["call", "srv-fetch", "--args", nested]);
    assert!(said.contains("more[0].link"), "{said}");
    let calls = crate::support::log_events(&house.room.log("srv"), "message");
    let sent = calls.iter().filter(|message| message["method"] == "tools/call").count();
    assert_eq!(sent, 2, "what was refused was sent");
    for command in ["read", "watch"] {
        let said = house.exits(6, ["resources", command, "file:///etc/passwd", "--server", "srv"]);
        assert!(said.contains("root: file://"), "{said}");
    }

    let free = House::new(Place::Stdio, "addresses", "");
    free.exits(0, ["call", "srv-fetch", "uri=file:///etc/passwd"]);
}

#[test]
fn everything_about_a_server_fits_the_page_and_its_json_is_complete() {
    let more = "roots: [./project]\nexclude: ['secret_*']\nrouting_weight: 0.5\ndrift: warn\nmax_total: 20s";
    let house = House::new(Place::Http, "rug-pull", more);
    house.exits(0, ["pin"]);
    house.pull("description new instructions");
    let shown = house.exits(0, ["inspect", "srv"]);
    for word in [
        "defined in",
        "mcp.yaml:2",
        "misbehaving 1",
        "0.5, backup",
        "warn:",
        "3 tools are pinned",
        "its instructions changed",
        "+Wipe first.",
        "secret_*",
        "file://",
        "20 s per call",
        "a stored login, if any",
    ] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    let server = house.json(0, ["inspect", "srv"]);
    assert_eq!(server["drift"], "warn");
    assert_eq!(server["pins"]["state"], "changed", "{server}");
    assert_eq!(server["pins"]["changed"], 3, "{server}");
    assert_eq!(server["supported_versions"][0], "2026-07-28", "{server}");
    assert_eq!(server["origin"]["line"], 2);
    assert_eq!(server["routing_weight"], 0.5);
}

/// A pin is about an entry: the tutorial's server, or one of a named file, is not the server that a
/// project calls the same.
#[test]
fn a_pin_of_another_file_says_nothing_about_a_projects_server() {
    // A program of a few bytes: those of a debug build take long to compare.
    let directory = tempfile::tempdir().unwrap();
    let demo = directory.path().join("demo");
    script(&demo, &format!("#!/bin/sh\nexec '{}' demo-server\n", env!("CARGO_BIN_EXE_toolhost")));
    let entry = format!("mcp_servers: {{ demo: {{ command: '{}' }} }}\n", demo.display());
    for pins in [&["pin", "demo"][..], &["--mcp", "../data/mcp.yaml", "pin", "demo"]] {
        let room = Sandbox::new();
        std::fs::write(room.path("data/mcp.yaml"), &entry).unwrap();
        room.toolhost(pins.iter().copied()).check().exits(0);
        room.file("mcp.yaml", &entry);
        room.toolhost(["trust", "--yes"]).check().exits(0);
        room.toolhost(["call", "demo-echo", "message=hi"]).check().exits(0);
        room.toolhost(["verify"]).check().exits(2).says(&["nothing is pinned"]);
    }
    // The same file is the same server, whether it is named or found.
    let room = Sandbox::new();
    room.file("mcp.yaml", &entry);
    room.with_servers(["pin", "demo"]).check().exits(0);
    room.toolhost(["trust", "--yes"]).check().exits(0);
    room.toolhost(["call", "demo-echo", "message=hi"]).check().exits(0);
    room.toolhost(["verify"]).check().exits(0);
}
