//! Servers that are named on the command line and are in no file.

use crate::support::{Fixture, Place, Pty, Sandbox, log_events};

const TOOLHOST: &str = env!("CARGO_BIN_EXE_toolhost");

/// The words of a command about the demo server.
fn about<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [words, &["--", TOOLHOST, "demo-server"]].concat()
}

#[test]
fn every_command_about_servers_takes_one_that_is_in_no_file() {
    let room = Sandbox::new();
    // What the files of the place say is not looked at.
    room.file("mcp.yaml", "mcp_servers:\n  other: { command: \"false\" }\n");
    let run = |words: &[&str]| room.toolhost(about(words)).check();
    let listed = run(&["list", "-o", "names"]);
    let names = listed.exits(0).out();
    assert!(names.lines().all(|name| name.starts_with("toolhost-")), "{names}");
    assert!(names.contains("toolhost-echo\n"), "{names}");
    // Its tools answer to both names.
    for name in ["toolhost-echo", "echo"] {
        let called = run(&["call", name, "message=hi"]);
        assert_eq!(called.exits(0).out(), "hi\n");
    }
    assert!(
        run(&["call", "echo", "--as", "mine", "--json", "message=a"]).exits(0).json()["tool"]
            == "mine-echo"
    );
    assert!(run(&["inspect"]).exits(0).out().contains("demo"), "the server itself");
    assert!(run(&["inspect", "add"]).exits(0).out().contains("Adds two numbers"));
    assert!(run(&["servers"]).exits(0).out().contains("toolhost  ready"));
    assert!(run(&["trace"]).exits(0).out().contains("tools/list"));
    assert!(run(&["resources", "list"]).exits(0).out().contains("demo://readme"));
    run(&["resources", "read", "demo://readme"]).exits(0);
    let unfilled = run(&["resources", "read", "demo://notes/{name}"]);
    unfilled.exits(2).says(&["demo://notes/{name} is a template", "'name'"]);
    assert!(run(&["prompts", "list"]).exits(0).out().contains("greet"));
    run(&["prompts", "get", "greet", "name=Ada"]).exits(0);
    run(&["complete", "greet", "language", "e"]).exits(0);
    assert!(run(&["export", "--format", "openai"]).exits(0).out().contains("toolhost-echo"));
    run(&["bench", "echo", "message=hi", "-n", "5"]).exits(0);
}

#[test]
fn what_is_shown_of_it_can_be_pasted_and_its_calls_are_made_again_when_it_is_named() {
    let room = Sandbox::new();
    let end = format!("-- {TOOLHOST} demo-server");
    // As a shell reads a line that was copied.
    let paste = |line: &str| {
        let line = line.replacen("toolhost", TOOLHOST, 1);
        room.program("sh", ["-c", &line]).check()
    };
    let shown = room.toolhost(about(&["inspect", "add", "--json"])).check();
    let example = shown.exits(0).json()["example"].as_str().unwrap().to_owned();
    assert_eq!(example, format!("toolhost call toolhost-add a=1 b=1 {end}"));
    assert_eq!(paste(&example).exits(0).json()["sum"], 2);
    room.toolhost(about(&["call", "add", "a=two"])).check().exits(2).says(&[&example]);
    for (words, hint) in [
        (&["call", "zzz"][..], "toolhost list"),
        (&["prompts", "get", "zzz"], "toolhost prompts list"),
        (&["prompts", "get", "greet"], "toolhost prompts get toolhost-greet name=… [language=…]"),
        (&["resources", "read", "zzz://1"], "toolhost resources list"),
        (&["complete", "zzz://{a}", "a", "x"], "toolhost resources list --templates"),
    ] {
        let refused = room.toolhost(about(words)).check();
        refused.exits(2).says(&[&format!("{hint} {end}")]);
    }
    // What the history has of it is no consent: the command is typed again, or pasted.
    let refused = room.toolhost(["history", "rerun", "last", "--json"]).check();
    let error: serde_json::Value = serde_json::from_str(refused.exits(2).err().trim()).unwrap();
    let hint = error["error"]["hint"].as_str().unwrap();
    assert!(hint.starts_with("toolhost history rerun ") && hint.ends_with(&end), "{hint}");
    assert_eq!(paste(hint).exits(0).json()["sum"], 2);
    let kept = room.toolhost(["history", "show", "last", "--json"]).check();
    assert_eq!(kept.exits(0).json()["command_end"], *end);
    // Of a server in a file there is nothing to name.
    room.toolhost(["call", "calculator", "expression=6*7"]).check().exits(0);
    room.toolhost(["history", "rerun", "last"]).check().exits(0);
    // The console shows the same line.
    let mut pty = Pty::console(&room, &["--", TOOLHOST, "demo-server"], 40, 160);
    pty.expect_shown("add").type_keys("/toolhost-add").expect_shown("Tools 1/");
    pty.type_keys("\r").expect_shown("Arguments").type_keys("2").expect_shown("a=2 b=1 -- /");
    pty.terminate();
    pty.finish();
}

#[test]
fn a_url_names_a_server_in_the_place_of_a_name_and_as_an_option() {
    let room = Sandbox::new();
    let fixture = Fixture::fault(Place::Http, "none", "legacy", &room.log("server"));
    let url = fixture.url().unwrap();
    for words in [
        &["list", url][..],
        &["list", "--server-url", url],
        &["list", "--", url],
        &["servers", url],
        &["inspect", url],
        &["trace", url],
        &["prompts", "list", "--server-url", url],
    ] {
        room.toolhost(words.iter().copied()).check().exits(0);
    }
    let secret = "ticket-of-this-run";
    let header = ["--header", "X-Ticket: ${TICKET}"];
    let words = [&["list", url][..], &header].concat();
    room.toolhost(words).env("TICKET", secret).check().exits(0);
    assert!(!log_events(&room.log("server"), "message").is_empty());
}

#[test]
fn what_cannot_be_meant_is_a_usage_error_and_what_fails_names_the_program() {
    let room = Sandbox::new();
    for words in [
        &["list", "--as", "mine"][..],
        &["list", "--header", "A: b"],
        &["list", "--server-url", "not-a-url"],
        &["list", "--server-url", "http://127.0.0.1:1", "--", "x"],
        &["list", "--header", "A: b", "--", "x"],
        &["list", "--as", "no good", "--", "x"],
        &["trace"],
        &["inspect"],
        &["config", "check", "--", "x"],
    ] {
        room.toolhost(words.iter().copied()).check().exits(2);
    }
    let missing = room.toolhost(["list", "--", "no-such-program", "${HOME}"]).check();
    missing.exits(4).says(&["no-such-program"]);
}

#[test]
fn the_console_opens_on_a_server_that_is_in_no_file() {
    let room = Sandbox::new();
    let mut console = Pty::console(&room, &["--", TOOLHOST, "demo-server"], 30, 100);
    console.expect_shown("toolhost-echo");
    console.type_keys("q");
    let (code, _) = console.finish();
    assert_eq!(code, Some(0));
}

#[test]
fn a_secret_in_the_url_of_a_server_is_masked() {
    let room = Sandbox::new();
    let fixture = Fixture::fault(Place::Http, "none", "legacy", &room.log("srv"));
    let url = format!("{}?token=hunter2-hunter2&page=ordinary-page", fixture.url().unwrap());
    let message = "message=hunter2-hunter2 ordinary-page";
    let run = room.toolhost(["call", "echo", message, "--", &url]).check();
    assert_eq!(run.exits(0).out(), "‹secret:token› ordinary-page\n");
}
