//! No text of a server, a file or a command line steers the terminal or hides from the reader:
//! every view, with every attack in every field.

use std::fmt::Write as _;

use crate::support::{Finished, Fixture, Place, Pty, Sandbox, forbidden};

/// Some of each kind, as a shell or a file can pass it on.
const EVIL: &str = "\x1b]0;owned\x07\x1b[2J\r\x08\u{7f}\u{9b}31m\u{85}\u{202e}\u{2066}\u{61c}\u{200b}\u{fe0f}\u{feff}\u{e0041}\u{3164}\u{2028}";

/// A room with the evil server, over `place`.
fn evil_room(place: Place, era: &str) -> (Sandbox, Fixture) {
    let room = Sandbox::new();
    let fixture = Fixture::fault(place, "evil-everywhere", era, &room.log("srv"));
    room.server("srv", &fixture);
    (room, fixture)
}

/// Fails unless nothing forbidden is on the screen of a `--plain` run.
#[track_caller]
fn clean_screen(what: &str, screen: &str) {
    // The line ends are those of the terminal driver.
    let text = screen.replace("\r\n", "\n");
    assert_eq!(forbidden(text.as_bytes()), None, "{what}:\n{}", text.escape_debug());
}

/// Every view of a server and its tools. `check` holds each run to the characters it may print.
#[test]
fn every_view_of_a_server_is_clean() {
    for (place, era) in [(Place::Stdio, "legacy"), (Place::Http, "modern")] {
        let (room, _fixture) = evil_room(place, era);
        for format in ["text", "table", "json", "yaml", "names"] {
            for verbose in [&[][..], &["-v"]] {
                let words = ["list", "-o", format];
                room.with_servers(words.into_iter().chain(verbose.iter().copied()))
                    .check()
                    .exits(11);
            }
        }
        for format in ["text", "json", "yaml"] {
            for name in ["srv", "srv-echo", "srv-checked", "srv-wild", "srv-risky"] {
                room.with_servers(["inspect", name, "-o", format]).check();
            }
            room.with_servers(["servers", "-v", "-o", format]).check();
            room.with_servers(["list", "hello", "--server", "srv", "-o", format]).check();
        }
        let seen = room.with_servers(["inspect", "srv-echo"]).check();
        let out = seen.exits(0).out();
        for visible in ["␛]0;owned", "⟨U+202E⟩", "⟨U+009B⟩", "⟨U+E0041⟩", "⟨U+200B⟩"]
        {
            assert!(out.contains(visible), "{visible} was stripped, not shown\n{seen}");
        }
    }
}

#[test]
fn every_outcome_of_a_legacy_call_is_clean() {
    every_outcome_is_clean(Place::Stdio, "legacy");
}

#[test]
fn every_outcome_of_a_modern_call_is_clean() {
    every_outcome_is_clean(Place::Stdio, "modern");
}

#[test]
fn every_outcome_of_a_call_over_http_is_clean() {
    every_outcome_is_clean(Place::Http, "legacy");
}

fn every_outcome_is_clean(place: Place, era: &str) {
    let (room, _fixture) = evil_room(place, era);
    for (wish, code) in [
        ("all is well", 0),
        ("unstructured", 0),
        ("refuse", 3),
        ("fail", 3),
        ("strange content", 10),
        ("strange result", 10),
        ("strange id", 10),
        ("strange version", 10),
        ("not json", 10),
        ("die", 4),
    ] {
        let message = format!("message={wish}");
        // A server over HTTP dies for all that come after.
        if wish == "die" && place == Place::Http {
            continue;
        }
        let formats: &[&str] = match wish {
            "all is well" | "unstructured" => &["text", "json", "yaml", "table"],
            _ => &["text", "json"],
        };
        for format in formats {
            let call = ["call", "srv-echo", &message, "-v", "-o", format];
            let finished = room.with_servers(call).check();
            finished.exits(code);
            if code != 0 {
                one_error(&finished);
            }
        }
    }
}

/// A line break in a message must not look like another message.
#[track_caller]
fn one_error(finished: &Finished) {
    let fake = finished.err().lines().any(|line| line.starts_with("error: fake"));
    assert!(!fake, "a server's text stands as a message of ours\n{finished}");
}

#[test]
fn every_other_way_of_a_call_is_clean() {
    let (room, _fixture) = evil_room(Place::Stdio, "legacy");
    let run = |words: &[&str]| room.with_servers(words.iter().copied()).check();
    let call =
        |more: &[&str]| run(&[&["call", "srv-echo", "message=unstructured"][..], more].concat());
    for format in ["text", "json", "yaml"] {
        call(&["--dry-run", "-o", format]).exits(0);
        call(&["--query", ".", "-o", format]).exits(0);
    }
    call(&["--query", ".nothing.here"]);
    let unfiltered = call(&["--query", "error(.)"]);
    one_error(unfiltered.exits(11));
    assert!(!unfiltered.out().is_empty(), "the result is lost\n{unfiltered}");
    call(&["--save", "saved.json"]).exits(0);
    // Definitions that are wrong, checked and unknown.
    run(&["call", "srv-checked", "message=unstructured"]).exits(10);
    run(&["call", "srv-wild", "message=x"]);
    run(&["call", "srv-bad_schema", "message=x"]).exits(2);
    run(&["call", "srv-risky", "message=x"]).exits(6);
    run(&["call", "srv-echo"]).exits(2);
    run(&["call", "srv-echo", "message=x", "massage=y"]).exits(2);
    run(&["call", "srv-ekko", "message=x"]).exits(2);
}

#[test]
fn what_the_user_types_is_given_back_clean() {
    let (room, _fixture) = evil_room(Place::Stdio, "legacy");
    let evil = |text: &str| text.replace('E', EVIL);
    let lines: &[&[&str]] = &[
        &["E"],
        &["--E"],
        &["list", "--E"],
        &["list", "E"],
        &["list", "-o", "E"],
        &["list", "--server", "E"],
        &["list", "--profile", "E"],
        &["list", "--category", "E"],
        &["inspect", "E"],
        &["inspect", "srv-E"],
        &["call", "E"],
        &["call", "srv-E"],
        &["call", "srv-echo", "E"],
        &["call", "srv-echo", "E=1", "message=x"],
        &["call", "srv-echo", "message=E"],
        &["call", "srv-echo", "message:=E"],
        &["call", "srv-echo", "message=@E"],
        &["call", "srv-echo", "--args", "{\"E\": 1}"],
        &["call", "srv-echo", "--args", "@E"],
        &["call", "srv-echo", "message=x", "--query", "E"],
        &["call", "srv-echo", "message=x", "--save", "no/such/E"],
        &["call", "srv-echo", "message=x", "--server", "E"],
        &["call", "srv-echo", "message=x", "--timeout", "E"],
        &["call", "srv-echo", "message=x", "--context", "E"],
        &["call", "srv-echo", "message=x", "--session", "E"],
        &["call", "calculator", "expression=E"],
        &["--mcp", "E", "list"],
        &["--tools", "E", "list"],
        &["trust", "E"],
        &["trust", "revoke", "E"],
        &["config", "E"],
        &["servers", "E"],
        &["completions", "E"],
    ];
    for words in lines {
        for json in [&[][..], &["--json"]] {
            let words: Vec<String> = words.iter().chain(json).map(|word| evil(word)).collect();
            let finished = room.with_servers(words.iter().map(String::as_str)).check();
            assert_ne!(finished.code, Some(1), "{finished}");
        }
    }
}

/// A `tools.yaml` and an `mcp.yaml` with the text in keys, values and names, as escapes of YAML.
fn evil_files(room: &Sandbox) {
    let quoted = serde_json::Value::from(EVIL).to_string();
    let escaped: String = EVIL.chars().fold("\"".to_owned(), |mut text, c| {
        write!(text, "\\U{:08x}", c as u32).unwrap();
        text
    }) + "\"";
    let mut tools = "version: 1\ntools:\n".to_owned();
    for (n, key) in
        ["name", "description", "category", "speed", "module", "function", "version", "timeout"]
            .iter()
            .enumerate()
    {
        let entry = ["name: tN", "module: builtin.echo", "function: echo"].join(", ");
        let entry = entry.replace("tN", &format!("t{n}"));
        // The key given twice is an error with both places; given once it is a value.
        writeln!(tools, "  - {{ {entry}, {key}: {escaped} }}").unwrap();
        let without: Vec<&str> = entry.split(", ").filter(|pair| !pair.starts_with(key)).collect();
        writeln!(
            tools,
            "  - {{ {}, {key}: {escaped} }}",
            without.join(", ").replace(&format!("t{n}"), &format!("u{n}"))
        )
        .unwrap();
    }
    writeln!(tools, "  - {{ name: command, command: [{escaped}, {escaped}] }}").unwrap();
    writeln!(tools, "  - {{ name: odd, module: builtin.echo, {escaped}: {escaped} }}").unwrap();
    writeln!(tools, "  - {{ name: schema, module: builtin.echo, function: echo, parameters_schema: {{ type: {escaped}, properties: {{ {escaped}: {{ description: {escaped} }} }} }} }}").unwrap();
    writeln!(tools, "  - {escaped}").unwrap();
    writeln!(tools, "{escaped}: {escaped}\nprofiles: {{ {escaped}: {{ include: [{escaped}] }} }}")
        .unwrap();
    writeln!(tools, "policy:\n  - {{ match: {escaped}, action: {escaped} }}").unwrap();
    room.file("tools.yaml", &tools);
    let mut servers = "mcp_servers:\n".to_owned();
    writeln!(servers, "  {escaped}:\n    command: {escaped}").unwrap();
    writeln!(servers, "  s1: {{ command: {escaped}, args: [{escaped}], env: {{ {escaped}: {escaped} }}, cwd: {escaped} }}").unwrap();
    writeln!(servers, "  s2: {{ url: {escaped} }}\n  s3: {{ url: \"http://localhost:1/\", headers: {{ {escaped}: {escaped} }} }}").unwrap();
    writeln!(
        servers,
        "  s4: {{ url: \"http://localhost:1/\", protocol: {escaped}, timeout: {escaped} }}"
    )
    .unwrap();
    writeln!(servers, "  s5: {{ command: \"${{NO_SUCH}}\" }}\n  s6: {quoted}").unwrap();
    room.file("mcp.yaml", &servers);
}

#[test]
fn every_view_of_the_files_is_clean() {
    let room = Sandbox::new();
    evil_files(&room);
    let views: &[&[&str]] = &[
        &["config", "check"],
        &["config", "show"],
        &["config", "paths"],
        &["list"],
        &["list", "--declared"],
        &["servers"],
        &["inspect", "command"],
        &["inspect", "s1"],
        &["call", "command"],
        &["call", "s1-x"],
        &["call", "odd"],
        &["trust"],
        &["trust", "list"],
    ];
    for words in views {
        for more in [&[][..], &["--json"], &["-v"], &["--trust"], &["--strict"]] {
            if matches!(words, &["servers" | "list"]) && more == ["--trust"] {
                continue; // Nothing of these may be started, and nothing of them exists.
            }
            let finished = room.toolhost(words.iter().chain(more).copied()).check();
            assert_ne!(finished.code, Some(1), "{finished}");
        }
    }
    let check = room.toolhost(["config", "check"]).check();
    check.exits(9);
    assert!(check.out().contains("tools.yaml:"), "{check}");
}

#[test]
fn raw_bytes_in_files_and_names_of_files_are_shown_clean() {
    let room = Sandbox::new();
    // Not escapes of YAML but the characters themselves, at the spot that is shown with a caret.
    let inside: String = EVIL.chars().filter(|c| !"\r\u{85}\u{2028}".contains(*c)).collect();
    room.file("tools.yaml", &format!("tools:\n  - name: {inside}\n    nonsense: [{inside}\n"));
    room.toolhost(["config", "check"]).check().exits(9);
    room.toolhost(["list"]).check();

    let room = Sandbox::new();
    let name: String = EVIL.chars().filter(|c| *c != '/').collect();
    room.file(&format!("{name}.yaml"), "tools: [7, { name: x, comand: [a] }]\n");
    let file = format!("{name}.yaml");
    for command in [&["config", "check"][..], &["config", "paths"], &["config", "show"], &["list"]]
    {
        let words = [&["--tools", &file][..], command].concat();
        room.toolhost(words).check();
    }
}

#[test]
fn a_terminal_sees_the_same() {
    let (room, _fixture) = evil_room(Place::Stdio, "legacy");
    let views: &[&[&str]] = &[
        &["list"],
        &["list", "--json"],
        &["inspect", "srv"],
        &["inspect", "srv-echo"],
        &["servers"],
        &["call", "srv-echo", "message=all is well"],
        &["call", "srv-echo", "message=unstructured", "-o", "raw"],
        &["call", "srv-echo", "message=unstructured", "-o", "table"],
        &["call", "srv-echo", "message=refuse"],
        &["call", "srv-echo", "message=fail"],
    ];
    for words in views {
        let words = [&["--plain", "--mcp", "mcp.yaml"][..], words].concat();
        let (_, screen) = Pty::toolhost(&room, &words).finish();
        clean_screen(&words.join(" "), &screen);
    }
    let words = ["--plain", "--mcp", "mcp.yaml", "call", "srv-risky", "message=x"];
    let mut pty = Pty::toolhost(&room, &words);
    pty.expect("[y/N] ").type_keys("n\r");
    clean_screen("the question of a call", &pty.finish().1);
}

#[test]
fn the_question_of_trust_shows_all_and_only_what_is_safe() {
    let room = Sandbox::new();
    evil_files(&room);
    let mut pty = Pty::toolhost(&room, &["--plain", "trust"]);
    // An answer counts only when it was typed after its question.
    pty.expect("starts ").expect("[y/N] ").type_keys("n\r");
    clean_screen("trust", &pty.finish().1);
}
