//! What servers ask a person: at a terminal, by rules, and where nobody is.

use serde_json::{Value, json};

use crate::support::{Fixture, Place, Pty, Run, Sandbox, log_events};

const ERAS: [&str; 2] = ["legacy", "modern"];
const PLACES: [Place; 2] = [Place::Stdio, Place::Http];

/// A room with one server that asks.
struct House {
    room: Sandbox,
    // Held because a server over HTTP ends with it.
    _fixture: Fixture,
}

impl House {
    fn new(place: Place, era: &str) -> Self {
        Self::with(place, era, "")
    }

    fn with(place: Place, era: &str, more: &str) -> Self {
        let room = Sandbox::new();
        let fixture = Fixture::fault(place, "asks-a-person", era, &room.log("srv"));
        room.server_with("srv", &fixture, more);
        Self { room, _fixture: fixture }
    }

    fn run<'a>(&'a self, arguments: impl IntoIterator<Item = &'a str>) -> Run<'a> {
        self.room.with_servers(arguments)
    }

    fn ask(&self, what: &str) -> Pty {
        let what = format!("what={what}");
        Pty::toolhost(&self.room, &["--mcp", "mcp.yaml", "call", "srv-ask", &what])
    }

    /// The requests with this method that the server got.
    fn got(&self, method: &str) -> Vec<Value> {
        let mut messages = log_events(&self.room.log("srv"), "message");
        messages.retain(|message| message["method"] == method);
        messages
    }
}

/// What the server was told, as its tool says it back.
fn told(stdout: &str) -> Value {
    let said = stdout.lines().map(str::trim).rfind(|line| line.starts_with("{\""));
    let said = said.unwrap_or_else(|| panic!("no answer: {stdout}"));
    serde_json::from_str(said).unwrap_or_else(|why| panic!("{why}: {said}"))
}

#[test]
fn rules_answer_in_both_eras_over_both_transports() {
    for place in PLACES {
        for era in ERAS {
            let house = House::new(place, era);
            house.room.file(
                "answers.yaml",
                "- { server: other, decline: true }\n\
                 - { message: 'Who*', content: { name: Ada, age: 36 } }\n\
                 - { kind: sampling, text: Something }\n",
            );
            let finished = house.run(["call", "srv-ask", "--answers", "answers.yaml"]).check();
            finished.exits(0);
            // What the rule leaves out has its default.
            let content = json!({ "colour": "g", "name": "Ada", "age": 36 });
            let expected = json!({ "action": "accept", "content": content });
            assert_eq!(told(&finished.out()), expected, "{place:?} {era}: {finished}");
            let sample = ["call", "srv-ask", "what=sample", "--answers", "answers.yaml"];
            let finished = house.run(sample).check();
            finished.exits(0);
            assert_eq!(told(&finished.out())["model"], "human", "{place:?} {era}: {finished}");
        }
    }
}

#[test]
fn where_nobody_is_questions_are_declined_at_once_and_that_is_said() {
    for era in ERAS {
        let house = House::new(Place::Stdio, era);
        let finished = house.run(["call", "srv-ask"]).check();
        finished.exits(0).says(&["Who are you?", "no person can be asked", "--answers"]);
        assert_eq!(told(&finished.out()), json!({ "action": "decline" }), "{finished}");
        let audit = std::fs::read_to_string(house.room.path("state/toolhost/audit.jsonl")).unwrap();
        let recorded = r#""questions":[{"kind":"form","verdict":"nobody"}]"#;
        assert!(audit.contains(recorded), "{audit}");
    }
    // A model's words cannot be done without: what the server makes of that depends on the era.
    let legacy = House::new(Place::Stdio, "legacy");
    let finished = legacy.run(["call", "srv-ask", "what=sample"]).check();
    assert_eq!(told(&finished.exits(0).out())["code"], -1, "{finished}");
    let modern = House::new(Place::Stdio, "modern");
    modern
        .run(["call", "srv-ask", "what=sample"])
        .check()
        .exits(6)
        .says(&["no person can be asked"]);
}

#[test]
fn a_server_that_asks_for_ever_is_left() {
    for place in [Place::Stdio, Place::Http] {
        let house = House::new(place, "modern");
        let left = house.run(["call", "srv-ask", "what=forever"]).check();
        left.exits(10).says(&["asks the same again although no person can be asked"]);
        assert_eq!(house.got("tools/call").len(), 2, "{place:?}");
        // Another question breaks no rule: nobody is there to answer it.
        let unanswered = house.run(["call", "srv-ask", "what=twice"]).check();
        unanswered.exits(6).says(&["asked again although no person can be asked"]);
        assert_eq!(house.got("tools/call").len(), 4, "{place:?}");
    }
    let house = House::new(Place::Stdio, "modern");
    let patient = ["call", "srv-ask", "what=forever", "--answers", "decline"];
    house.run(patient).check().exits(10).says(&["10 times"]);
    assert_eq!(house.got("tools/call").len(), 11);
    house.run(["call", "srv-ask", "what=twice", "--answers", "decline"]).check().exits(0);
}

#[test]
fn a_file_of_answers_is_checked_before_anything_is_started() {
    let house = House::new(Place::Stdio, "modern");
    house.room.file("answers.yaml", "- decline\n- { contnet: {} }\n");
    let finished = house.run(["call", "srv-ask", "--answers", "answers.yaml"]).check();
    finished.exits(2).says(&["unknown key 'contnet'", "answers.yaml:2", "did you mean 'content'?"]);
    house.run(["call", "srv-ask", "--answers", "nowhere.yaml"]).check().exits(9);
    assert!(log_events(&house.room.log("srv"), "start").is_empty());
}

#[test]
fn an_answer_that_does_not_fit_is_told_and_not_sent() {
    let house = House::new(Place::Stdio, "modern");
    house.room.file("answers.yaml", "- { content: { name: A } }\n");
    let finished = house.run(["call", "srv-ask", "--answers", "answers.yaml"]).check();
    finished.exits(0).says(&["answers.yaml:1", "name: must have at least 2"]);
    assert_eq!(told(&finished.out()), json!({ "action": "decline" }), "{finished}");
}

#[test]
fn a_form_is_filled_in_checked_reviewed_and_sent() {
    for era in ERAS {
        let house = House::new(Place::Stdio, era);
        let mut pty = house.ask("form");
        // Colours stand between the words that mean something and those that do not.
        pty.expect(" asks")
            .expect("Who are you?␛[2J")
            .expect("Answer 'srv'?")
            .expect("c to cancel:");
        pty.type_keys("\r").expect("Your name").expect(": text, at least 2 characters");
        pty.type_keys("A\r").expect("must have at least 2 characters").cleared();
        pty.type_keys("Ada\r").expect("Red").expect("(r)").expect("[g]:").cleared();
        pty.type_keys("red\r").expect("age").expect("optional").expect("  :").cleared();
        pty.type_keys("old\r").expect("this is not a whole number").cleared();
        pty.type_keys("36\r").expect("Send this to 'srv'?").expect("\"Ada\"").cleared();
        // Changing one's mind starts from what was typed.
        pty.type_keys("e\r").expect("[Ada]:").cleared().type_keys("\r").expect("[r]:").cleared();
        pty.type_keys("2\r").expect("[36]:").cleared().type_keys("\r").expect("s to send");
        pty.type_keys("s\r");
        let (status, screen) = pty.finish();
        assert_eq!(status, Some(0), "{era}: {screen}");
        assert!(!screen.contains("\u{1b}[2J"), "{screen}");
        let expected = json!({ "action": "accept",
            "content": { "name": "Ada", "colour": "g", "age": 36 } });
        assert_eq!(told(&screen), expected, "{era}: {screen}");
    }
}

#[test]
fn declining_and_turning_away_are_different_answers() {
    let house = House::new(Place::Stdio, "modern");
    for (keys, action) in [("d\r", "decline"), ("c\r", "cancel"), ("\u{4}", "cancel")] {
        let mut pty = house.ask("form");
        pty.expect("c to cancel:").type_keys(keys);
        let (status, screen) = pty.finish();
        assert_eq!(status, Some(0), "{screen}");
        assert_eq!(told(&screen), json!({ "action": action }), "{screen}");
    }
}

#[test]
fn ctrl_c_at_a_question_ends_the_call() {
    for (place, era) in
        [(Place::Stdio, "legacy"), (Place::Http, "legacy"), (Place::Stdio, "modern")]
    {
        let house = House::new(place, era);
        let mut pty = house.ask("form");
        pty.expect("c to cancel:").type_keys("\u{3}");
        let (status, screen) = pty.finish();
        assert_eq!(status, Some(130), "{place:?} {era}: {screen}");
    }
}

#[test]
fn a_secret_is_warned_of_and_never_shown() {
    let house = House::new(Place::Stdio, "legacy");
    let mut pty = house.ask("secret");
    pty.expect("seems to ask for a secret").expect("c to cancel:").type_keys("\r");
    pty.expect("password").expect("  :").type_keys("hunter2-secret\r");
    pty.expect("‹secret›").expect("s to send").type_keys("s\r");
    pty.expect("\"action\"");
    let (status, screen) = pty.finish();
    assert_eq!(status, Some(0), "{screen}");
    // The tool itself says it back; until then nobody has seen it.
    let (before, _) = screen.split_once("\"action\"").unwrap();
    assert!(!before.contains("hunter2-secret"), "{screen}");
    let audit = std::fs::read_to_string(house.room.path("state/toolhost/audit.jsonl")).unwrap();
    assert!(!audit.contains("hunter2-secret"), "{audit}");
}

#[test]
fn a_page_is_shown_with_its_tricks_and_never_opened() {
    for era in ERAS {
        let house = House::new(Place::Stdio, era);
        let mut pty = house.ask("url");
        pty.expect("https://user:x@login.example/start?a=b").expect("the host is login.example");
        pty.expect("or c to cancel:").cleared().type_keys("\r").expect("or c to cancel:");
        pty.type_keys("done\r");
        let (status, screen) = pty.finish();
        assert_eq!(status, Some(0), "{screen}");
        assert_eq!(told(&screen), json!({ "action": "accept" }), "{screen}");
        // What no browser shows is not even asked about.
        let (status, screen) = house.ask("evil-url").finish();
        assert_eq!(status, Some(0), "{screen}");
        assert!(screen.contains("only http and https"), "{screen}");
        assert_eq!(told(&screen), json!({ "action": "decline" }), "{screen}");
    }
}

#[test]
fn a_page_that_an_error_asks_for_is_visited_and_the_call_repeated() {
    let house = House::new(Place::Stdio, "legacy");
    house.run(["call", "srv-page"]).check().exits(6).says(&["page"]);
    house.room.file("answers.yaml", "- { kind: url, accept: true }\n");
    let finished = house.run(["call", "srv-page", "--answers", "answers.yaml"]).check();
    assert_eq!(finished.exits(0).out(), "signed in\n", "{finished}");
}

#[test]
fn a_person_writes_in_a_models_place() {
    let house = House::new(Place::Stdio, "legacy");
    let mut pty = house.ask("sample");
    pty.expect("Say something␛[2J").expect("at most 50 tokens").expect("c to cancel:");
    pty.type_keys("\r").expect("up to an empty line").type_keys("one\rtwo\r\r");
    pty.expect("Send it to 'srv'?").expect("d to decline").type_keys("s\r");
    let (status, screen) = pty.finish();
    assert_eq!(status, Some(0), "{screen}");
    assert_eq!(told(&screen)["content"]["text"], "one\ntwo", "{screen}");
}

#[test]
fn what_no_form_can_ask_is_asked_as_json() {
    let house = House::new(Place::Stdio, "modern");
    let mut pty = house.ask("nested");
    pty.expect("c to cancel:").type_keys("\r").expect(": JSON").expect("  :").cleared();
    pty.type_keys("{\"x\": \"no\"}\r").expect("must be integer").cleared();
    pty.type_keys("{\"x\": 3}\r").expect("s to send").type_keys("s\r");
    let (status, screen) = pty.finish();
    assert_eq!(status, Some(0), "{screen}");
    assert_eq!(told(&screen)["content"], json!({ "at": { "x": 3 } }), "{screen}");
}

#[test]
fn roots_are_told_when_the_entry_has_some() {
    for (place, era) in [(Place::Stdio, "legacy"), (Place::Http, "legacy"), (Place::Http, "modern")]
    {
        let house = House::with(place, era, "roots: [\"file:///srv/project\"]");
        let finished = house.run(["call", "srv-ask", "what=roots"]).check();
        assert_eq!(
            told(&finished.exits(0).out()),
            json!({ "roots": [{ "uri": "file:///srv/project" }] }),
            "{place:?} {era}: {finished}"
        );
    }
    let named = "roots: [{ uri: \"weather://\", name: Weather }]";
    let finished =
        House::with(Place::Stdio, "legacy", named).run(["call", "srv-ask", "what=roots"]).check();
    let roots = json!({ "roots": [{ "uri": "weather://", "name": "Weather" }] });
    assert_eq!(told(&finished.exits(0).out()), roots, "{finished}");
}

#[test]
fn a_task_is_waited_for_in_both_eras_over_both_transports() {
    for place in PLACES {
        for era in ERAS {
            let house = House::new(place, era);
            house.room.file("answers.yaml", "- { content: { name: Ada } }\n");
            let call = ["-v", "call", "srv-task", "what=t-1", "--answers", "answers.yaml"];
            let finished = house.run(call).check();
            finished.exits(0).says(&["task working: at work"]);
            let expected = if era == "legacy" { "the task is done" } else { "Ada" };
            assert!(finished.out().contains(expected), "{place:?} {era}: {finished}");
        }
    }
}

#[test]
fn a_failed_task_says_why_and_is_not_cancelled() {
    for (place, era) in [(Place::Stdio, "legacy"), (Place::Http, "modern")] {
        let house = House::new(place, era);
        let failed = house.run(["call", "srv-task", "what=fails"]).check();
        failed.exits(3).says(&["no paper left", "no result stored"]);
        assert_eq!(house.got("tasks/cancel").len(), 0, "{place:?} {era}");
    }
}

#[test]
fn the_progress_of_a_task_is_shown_until_it_ends() {
    let house = House::new(Place::Stdio, "legacy");
    let called = house.run(["-v", "call", "srv-task", "what=counted"]).check();
    called.exits(0).says(&["counting", "task completed"]);
}

#[test]
fn a_task_that_takes_too_long_is_cancelled() {
    for (place, era) in [(Place::Stdio, "legacy"), (Place::Http, "modern")] {
        let house = House::with(place, era, "max_total: 2s");
        house.run(["call", "srv-task", "what=forever"]).check().exits(7);
        let cancelled = house.got("tasks/cancel");
        assert_eq!(cancelled.len(), 1, "{place:?} {era}");
        assert_eq!(cancelled[0]["params"]["taskId"], "forever");
    }
}

#[test]
fn pictures_and_sounds_are_saved_under_the_users_name() {
    let house = House::new(Place::Stdio, "modern");
    let shown = house.run(["-v", "call", "srv-media"]).check();
    let words =
        ["[image/png 8 B, use --save]", "(for user, priority 0.5)", "[audio/wav", "[link] link"];
    for word in words {
        assert!(shown.exits(0).out().contains(word), "{word}: {shown}");
    }
    house.run(["call", "srv-media", "--save", "out"]).check().exits(0);
    for (name, start) in
        [("out-1.png", "\u{fffd}PNG"), ("out-2.wav", "RIFF"), ("out-3.pdf", "%PDF")]
    {
        let bytes = std::fs::read(house.room.path("work").join(name)).unwrap();
        assert!(String::from_utf8_lossy(&bytes).starts_with(start), "{name}");
    }
}
