//! Windows over the views: what is wrong with the files, and a tool beside its pin.

use crate::support::{Pty, Sandbox};

const WRONG: &str = "tools:
  - name: one
    command: [echo, hi]
    desciption: a word misspelt
  - name: two
    comand: [echo]
  - { name: three, command: [echo, \"a\\u001b[31mb\"], speeed: fast }
";

#[test]
fn the_problems_of_the_files_are_counted_listed_and_copied() {
    let room = Sandbox::new();
    room.file("tools.yaml", WRONG);
    for (rows, columns) in [(45, 160), (24, 80)] {
        let mut pty = Pty::console(&room, &["--tools", "tools.yaml"], rows, columns);
        pty.expect_shown("1 error and 2 warnings (W)").type_keys("W");
        pty.expect_shown("Configuration  1 error and 2 warnings").expect_shown("tools.yaml:4:5");
        pty.expect_shown("hint: did you mean 'description'?");
        pty.type_keys("G").expect_shown("tools.yaml:7:").type_keys("y");
        pty.expect_shown("copied problems")
            .type_keys("\u{1b}")
            .expect_gone("Configuration  1 error");
        let copied = pty.copied().concat();
        assert_eq!(copied.matches("tools.yaml:").count(), 3, "{copied}");
        assert!(copied.contains("tools.yaml:4:5: warning: "), "{copied}");
        assert!(copied.contains("did you mean 'description'?"), "{copied}");
        pty.type_keys("?G").expect_shown("Help");
        pty.type_keys("\u{1b}").expect_gone("Help").type_keys("q");
        assert_eq!(pty.finish().0, Some(0));
    }
}

#[test]
fn files_without_a_problem_say_so() {
    let room = Sandbox::new();
    room.file("tools.yaml", "tools: [{ name: one, command: [echo, hi] }]\n");
    let mut pty = Pty::console(&room, &["--tools", "tools.yaml"], 30, 100);
    pty.expect_shown("one").type_keys("W").expect_shown("no problems in the configuration");
    pty.type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
}

fn described(room: &Sandbox, words: &str) {
    let entry = format!("  - {{ name: say, description: {words}, command: [echo, hi] }}\n");
    room.file("tools.yaml", &format!("tools:\n{entry}  - {{ name: other, command: [echo, x] }}\n"));
}

const TOOLS: [&str; 2] = ["--tools", "tools.yaml"];

/// The exit code of a run, beside a console that may be open.
fn run(room: &Sandbox, words: &[&str]) -> i32 {
    room.toolhost([&TOOLS[..], words].concat()).go().code.unwrap()
}

#[test]
fn a_changed_pin_is_shown_and_accepted_only_by_a_yes() {
    let room = Sandbox::new();
    described(&room, "says it");
    assert_eq!(run(&room, &["pin"]), 0);
    described(&room, "says it otherwise");
    assert_eq!((run(&room, &["verify"]), run(&room, &["call", "say"])), (8, 6));

    let mut pty = Pty::console(&room, &TOOLS, 40, 120);
    pty.expect_shown("say").type_keys("/say").expect_shown("Tools 1/2").type_keys("\u{1b}");
    pty.expect_shown("differs from its pin").type_keys("p");
    pty.expect_shown("Pin  say").expect_shown("-says it").expect_shown("+says it otherwise");
    pty.expect_shown("Accept all of these changes? [y/N]").type_keys("n");
    pty.expect_gone("Pin  say");
    assert_eq!(run(&room, &["verify"]), 8, "a no changes nothing");

    pty.type_keys("p").expect_shown("Accept all of these changes? [y/N]").type_keys("y");
    pty.expect_shown("pinned say as it is now").expect_gone("differs from its pin");
    // The console calls it at once, over the host it has.
    pty.type_keys("\r").expect_shown("Arguments  say").type_keys("\u{1b}[15~");
    pty.expect_shown(" OK ").type_keys("\u{3}y");
    assert_eq!(pty.finish().0, Some(0));
    assert_eq!((run(&room, &["verify"]), run(&room, &["call", "say"])), (0, 0));
}

#[test]
fn a_tool_without_a_pin_is_pinned_and_one_as_it_was_is_left() {
    let room = Sandbox::new();
    described(&room, "says it");
    let mut pty = Pty::console(&room, &TOOLS, 24, 80);
    pty.expect_shown("say").type_keys("/say").expect_shown("Tools 1/2").type_keys("\u{1b}");
    pty.type_keys("p").expect_shown("Not pinned yet.");
    pty.expect_shown("Pin this definition? [y/N]").type_keys("y");
    pty.expect_shown("pinned say as it is now").type_keys("p");
    pty.expect_shown("It matches its pin.").expect_shown("Esc closes").type_keys("y");
    pty.type_keys("\u{1b}").expect_gone("It matches its pin.").type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
    // Only that tool has a pin.
    described(&room, "another");
    assert_eq!(run(&room, &["call", "other"]), 0);
    assert_eq!(run(&room, &["call", "say"]), 6);
}

#[test]
fn what_is_not_trusted_cannot_be_pinned() {
    let room = Sandbox::new();
    described(&room, "says it");
    let mut pty = Pty::console(&room, &[], 40, 120);
    pty.expect_shown("Trust this project?").expect_shown("[y/N]").type_keys("n");
    pty.expect_shown("not trusted").type_keys("/say").expect_shown("Tools 1/2").type_keys("\u{1b}");
    pty.type_keys("p").expect_shown("not trusted yet").type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
    assert!(!room.path("state/toolhost/pins.json").exists());
}

#[test]
fn pins_that_cannot_be_written_are_an_error_and_nothing_is_accepted() {
    let room = Sandbox::new();
    described(&room, "says it");
    std::fs::create_dir_all(room.path("state/toolhost")).unwrap();
    let mut pty = Pty::console(&room, &TOOLS, 40, 120);
    pty.expect_shown("say").type_keys("/say").expect_shown("Tools 1/2").type_keys("\u{1b}");
    pty.type_keys("p").expect_shown("Pin this definition? [y/N]");
    std::fs::create_dir(room.path("state/toolhost/pins.json")).unwrap();
    pty.type_keys("y").expect_shown("the pins in").type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
}
