//! The example calls that `inspect` prints, run as they are printed; and the example files.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::{Sandbox, example};

#[test]
fn every_example_of_the_default_catalogue_runs_as_printed() {
    let room = Sandbox::new();
    room.file("notes.md", "milk\n").file("README.md", "read me\n");
    let listed = room.toolhost(["list", "-o", "names"]).check();
    listed.exits(0);
    let names = listed.out();
    assert!(names.lines().count() > 15, "{listed}");
    let directory = Path::new(env!("CARGO_BIN_EXE_toolhost")).parent().unwrap();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", directory.display());
    for name in names.lines() {
        let page = room.toolhost(["inspect", name]).check();
        let out = page.out();
        let example = out.split("\nExample\n").nth(1).unwrap_or_default();
        // What it was used for stands behind it, once it was.
        let example = example.split("\n\n").next().unwrap_or_default().trim();
        assert!(example.starts_with("toolhost call "), "{page}");
        let run = room.program("sh", ["-c", example]).env("PATH", &path).check();
        // A tool may say no, and one that destroys something is refused; none is misused.
        run.exits_one_of(&[0, 3, 6]);
        let asks = name.contains("delete");
        assert_eq!(run.code == Some(6), asks, "{example}\n{run}");
        // A store has nothing to read yet.
        let says_no = name.ends_with("fail") || name == "notes-read";
        assert_eq!(run.code == Some(3), says_no, "{example}\n{run}");
    }
}

#[test]
fn every_example_file_is_right_and_together_they_show_every_kind() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut files = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tools.yaml")];
    let directories = std::fs::read_dir(examples).unwrap();
    files.extend(directories.map(|entry| entry.unwrap().path().join("tools.yaml")));
    let mut kinds = BTreeSet::new();
    for file in files.iter().filter(|file| file.is_file()) {
        let room = Sandbox::new();
        let file = file.to_str().unwrap();
        room.toolhost(["--tools", file, "config", "check"]).check().exits(0);
        let listed = room.toolhost(["--tools", file, "list", "--declared", "--json"]).check();
        let listed = listed.exits(0).json();
        let tools = listed["tools"].as_array().unwrap();
        assert!(!tools.is_empty(), "{file} has no tools");
        kinds.extend(tools.iter().map(|tool| tool["kind"].as_str().unwrap().to_owned()));
    }
    let every = ["builtin", "command", "python", "http", "files", "storage", "mailbox", "pipeline"];
    for kind in every {
        assert!(kinds.contains(kind), "no file shows {kind}: {kinds:?}");
    }
}

#[test]
fn a_program_that_embeds_a_host_gets_what_it_asks_for() {
    let room = Sandbox::new();
    let run = room.program(example("embed").to_str().unwrap(), []).check();
    let expected = "\
greeter-hello: Says hello
\"hello Ada\"
2 problems with the arguments of 'greeter-hello': name: is required, \
nome: is not known; did you mean 'name'?
\"hello Ada, hello Ada\"
the name 'welcome' is taken by the tool registered by this program
\"ada's call 1\"
\"ada's call 2\"
1 registered tool left
";
    assert_eq!(run.exits(0).out(), expected, "{run}");
}

#[test]
fn a_program_registers_and_removes_everything_while_its_host_runs() {
    let room = Sandbox::new();
    let binary = env!("CARGO_BIN_EXE_toolhost");
    let program = example("register");
    let run = room.program(program.to_str().unwrap(), [binary, "demo-server"]).check();
    let out = run.exits(0).out();
    let lines: Vec<&str> = out.lines().collect();
    for kind in ["types: ", " files ", " greeter ", " http ", " storage"] {
        assert!(lines[0].contains(kind), "{run}");
    }
    assert_eq!(
        lines[1..],
        [
            "registered: desk notes worker demo",
            "refused: the name 'notes' is taken by the storage component 'notes'",
            "refused: unknown component type 'greter'",
            "writer sees: desk-hello notes-read notes-write notes-list notes-delete",
            "caller sees: work demo-echo",
            "2",
            "\"good day\"",
            "\"over MCP\"",
            "refused: 'notes-read' is not part of the profile 'caller'",
            "refused: 'work' was removed",
            "\"the work is done\"",
            "cancelled calls: 0",
            "left: desk",
        ],
        "{run}"
    );
}

#[test]
fn a_provider_of_a_programs_own_lists_what_comes_later_and_reports_progress() {
    let room = Sandbox::new();
    let run = room.program(example("provider").to_str().unwrap(), []).check();
    let expected = "\
progress: counting by 1
{\"value\":1}
progress: counting by 2
{\"value\":3}
counter-errors counter-visits
progress: counting by 1
{\"value\":1}
";
    assert_eq!(run.exits(0).out(), expected, "{run}");
}

#[test]
fn a_program_serves_its_host_over_streams_of_its_own() {
    let room = Sandbox::new();
    let run = room.program(example("serve_in_process").to_str().unwrap(), []).check();
    let expected = "\
server: \"toolhost\"
tool: \"greet\"
\"hello Ada, in session client 1\"
";
    assert_eq!(run.exits(0).out(), expected, "{run}");
}

#[test]
fn a_models_calls_run_in_a_loop_of_a_programs_own() {
    let room = Sandbox::new();
    let run = room.program(example("agent_loop").to_str().unwrap(), []).check();
    let expected = "\
tools: \"weather\"
\"a\": \"snow, -4 °C\"
\"b\": \"no station in Atlantis\"
\"c\": \"2 problems with the arguments of 'weather'\\ncity: is required\\ntown: is not known\"
\"It snows in Oslo.\"
3 calls, failures: tool 1, usage 1
";
    assert_eq!(run.exits(0).out(), expected, "{run}");
}
