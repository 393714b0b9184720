//! curl commands: printed for a call, and read into a tool.

use crate::support::{Finished, Fixture, Listener, Place, Sandbox, lacks};

const SECRETS: [(&str, &str); 2] = [("ITEM_KEY", "planted-key"), ("ITEM_PASS", "planted-pass")];

/// Runs a printed command as a person would paste it.
fn paste(room: &Sandbox, printed: &Finished) -> Finished {
    let line = printed.exits(0).out();
    let run = SECRETS
        .iter()
        .fold(room.program("sh", ["-c", &line]), |run, (name, value)| run.env(name, value));
    run.go()
}

#[test]
fn a_pasted_command_becomes_a_tool_and_a_call_of_it_a_command() {
    if lacks(&["curl"]) {
        return;
    }
    let (room, api) = (Sandbox::new(), Listener::http());
    let url = format!("http://{}/items?kind=a", api.authority());
    let add = ["add", "make", "--user", "--", "curl", "-s", "-X", "PUT", &url];
    let more = ["-H", "X-Key: ${ITEM_KEY}", "--json", r#"{"name":"{name}","n":1,"t":"${HOME}"}"#];
    room.toolhost([&add[..], &more].concat()).check().exits(0);
    assert!(api.requests().is_empty());
    let called = |words: &[&str]| {
        let run = room.toolhost([&["call", "make"], words].concat());
        SECRETS.iter().fold(run, |run, (name, value)| run.env(name, value)).check()
    };
    let hostile = "name=it's $(touch ran) `touch ran` !x";
    called(&[hostile]).exits(0);
    let printed = called(&[hostile, "--as-curl"]);
    assert!(!printed.out().contains("planted"), "{printed}");
    assert_eq!(api.requests().len(), 1, "it was sent\n{printed}");
    paste(&room, &printed).exits(0);
    let requests = api.requests();
    for request in &requests {
        for part in [
            "PUT /items?kind=a ",
            "x-key: planted-key",
            r#"{"name":"it's $(touch ran) `touch ran` !x","n":1,"t":"${HOME}"}"#,
        ] {
            assert!(request.to_lowercase().contains(&part.to_lowercase()), "{request}");
        }
    }
    assert_eq!(requests.len(), 2);
    // A variable in an argument is text, wherever it stands.
    let printed = called(&["name=${ITEM_PASS}", "--as-curl"]);
    let pasted = paste(&room, &printed);
    pasted.exits(0);
    assert!(!api.requests()[2].contains("planted-pass") && !room.path("work/ran").exists());
    room.toolhost([&add[..], &more].concat()).check().exits(2).says(&["'make' is already in"]);
    // Line ends of the file stay; of another entry everything does.
    let path = room.path("config/toolhost/tools.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    let other = "  # mine\n  - { name: other, module: builtin.echo }\n";
    let text = format!("{text}{other}").replace('\n', "\r\n");
    std::fs::write(&path, text).unwrap();
    room.toolhost(["remove", "make", "--user"]).check().exits(0).says(&["tools.yaml"]);
    let left = std::fs::read_to_string(&path).unwrap();
    assert_eq!(left, format!("tools:\n{other}").replace('\n', "\r\n"));
    room.toolhost(["remove", "make", "--user"]).check().exits(2).says(&["neither", "tools.yaml"]);
    room.toolhost(["remove", "other", "--user"]).check().exits(0);
}

#[test]
fn a_call_of_a_server_is_printed_with_its_headers() {
    if lacks(&["curl"]) {
        return;
    }
    for era in ["legacy", "both"] {
        let room = Sandbox::new();
        let fixture = Fixture::fault(Place::Http, "none", era, &room.log("srv"));
        room.server_with("srv", &fixture, "headers: { X-Key: '${ITEM_KEY}' }\n");
        let call = ["call", "srv-echo", "message=hello", "--as-curl"];
        let printed = room.with_servers(call).env("ITEM_KEY", "planted-key").check();
        let line = printed.exits(0).out();
        assert!(
            line.contains(r#"-H 'X-Key: '"${ITEM_KEY}""#) && !line.contains("planted"),
            "{line}"
        );
        if era == "both" {
            let pasted = paste(&room, &printed);
            assert!(pasted.exits(0).out().contains("hello"), "{pasted}");
        }
    }
    let room = Sandbox::new();
    room.file("tools.yaml", "tools: [{ name: say, command: [echo, hi] }]\n");
    let refused = room.toolhost(["call", "say", "--as-curl", "--tools", "tools.yaml"]).check();
    refused.exits(2).says(&["'say' sends no HTTP request"]);
}

const URL: &str = "https://api.example/x";

#[test]
fn what_a_tool_cannot_do_or_would_store_in_plain_text_is_refused_by_name() {
    let room = Sandbox::new();
    for (words, why) in [
        (&["-k", URL][..], "the option -k is not supported"),
        (&["--output", "f", URL], "the option --output is not supported"),
        (&["-d", "@/etc/passwd", URL], "-d @file is not supported"),
        (&["-H", "Authorization: Bearer abcdefgh12345", URL], "stored in plain text"),
        (&["-u", "me:hunter2", URL], "stored in plain text"),
        (&["https://api.example/x?api_key=hunter2"], "stored in plain text"),
        (&["file:///etc/passwd"], "begins with http"),
        (&["-X"], "-X has no value"),
        (&[URL, URL], "more than one URL"),
        (&[], "there is no URL"),
    ] {
        let line = ["add", "t", "--user", "--", "curl"];
        room.toolhost([&line[..], words].concat()).check().exits(2).says(&[why]);
    }
    assert!(!room.path("config/toolhost/tools.yaml").exists());
    // Behind the tools that are there, with everything as it was.
    room.file(
        "../config/toolhost/tools.yaml",
        "# mine\ntools:\n  - name: one # first\n    command: [echo]\n",
    );
    let form = ["add", "t", "--", "curl", "-G", URL, "-d", "q={q}", "-d", "n=1"];
    room.toolhost(form).check().exits(0);
    let form = ["add", "f", "--", "curl", URL, "-d", "a=b c", "-d", "d={d}"];
    room.toolhost(form).check().exits(0);
    let text = std::fs::read_to_string(room.path("config/toolhost/tools.yaml")).unwrap();
    assert!(
        text.starts_with("# mine\ntools:\n  - name: one # first\n    command: [echo]\n"),
        "{text}"
    );
    let checked = room.toolhost(["config", "check"]).check();
    checked.exits(0);
    let inspected = room.toolhost(["inspect", "t", "--json"]).check().exits(0).json();
    assert!(inspected["input_schema"].to_string().contains("\"q\""), "{inspected}");
    let inspected = room.toolhost(["inspect", "f", "--json"]).check().exits(0).json();
    assert!(inspected["input_schema"].to_string().contains("\"d\""), "{inspected}");
}
