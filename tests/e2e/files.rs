//! Directories as tools, from outside: the documents' entries, the example, trust, and writers that
//! die or run out of space.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use crate::support::Sandbox;

/// An entry with every tool that asks nobody, in the directory `data`.
const OPEN: &str = "components: [{ name: d, type: files, root_dir: data, access: write, \
                    requires_approval: false }]\n";

fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_documents_entries_run_as_they_are() {
    let room = Sandbox::new();
    room.file("data/report.md", "milk\n").file(
        "tools.yaml",
        "tools_config:
  - tool_name: find_file
    description: Find files of the agent
    provider_type: 'langchain_toolkit'
    toolkit_class: 'FileManagementToolkit'
    scope: 'AGENT_DATA'
    original_tool_name: 'file_system_search'
toolkits:
  - name: files
    toolkit: FileManagementToolkit
    root_dir: ./data
    scope: PROJECT_ROOT
    selected_tools: [read_file, list_directory, write_file]
    requires_approval: [write_file]
",
    );
    let call = |words: &[&str]| {
        room.toolhost([&["--tools", "tools.yaml", "call"], words].concat()).check()
    };
    let found = call(&["find_file", "pattern=*"]);
    assert_eq!(found.exits(0).out(), "nothing found\n", "{found}");
    let agents = room.path("state/toolhost/agents");
    let project = std::fs::read_dir(agents).unwrap().next().unwrap().unwrap().path();
    let agent = project.join("all");
    assert_eq!(std::fs::metadata(&agent).unwrap().permissions().mode() & 0o777, 0o700);
    std::fs::write(agent.join("plan.md"), "").unwrap();
    assert_eq!(call(&["find_file", "pattern=*.md"]).exits(0).out(), "plan.md\n");
    assert_eq!(call(&["files-read_file", "file_path=report.md"]).exits(0).out(), "milk\n");
    let write = ["files-write_file", "file_path=new.md", "text=bread"];
    call(&write).exits(6).says(&["needs approval", "--yes"]);
    assert_eq!(names(&room.path("work/data")), ["report.md"]);
    call(&[&write[..], &["--yes"]].concat()).exits(0);
    assert_eq!(std::fs::read_to_string(room.path("work/data/new.md")).unwrap(), "bread");
    let listed = call(&["files-list_directory", "--json"]).json();
    let entries = listed["structured"]["entries"].as_array().unwrap();
    assert_eq!(
        entries.iter().map(|entry| &entry["path"]).collect::<Vec<_>>(),
        ["new.md", "report.md"]
    );
    for path in ["../tools.yaml", "/etc/passwd", "a/../../tools.yaml"] {
        call(&["files-read_file", &format!("file_path={path}")]).exits(6).says(&[path]);
    }
    call(&["files-read_file", "file_path=none"]).exits(3).says(&["no such file"]);
}

#[test]
fn the_example_runs() {
    let room = Sandbox::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/files");
    for file in ["tools.yaml", "data/shopping.md"] {
        room.file(file, &std::fs::read_to_string(source.join(file)).unwrap());
    }
    // It writes, and so one answer is needed.
    room.toolhost(["call", "notes-search", "text=milk"]).check().exits(6);
    room.toolhost(["trust", "--yes"]).check().exits(0);
    let call = |words: &[&str]| room.toolhost([&["call"], words].concat()).check();
    room.toolhost(["config", "check", "--strict"]).check().exits(0);
    let found = call(&["notes-search", "text=milk"]);
    assert_eq!(found.exits(0).out(), "shopping.md:3: - milk\n", "{found}");
    call(&["notes-write", "path=today.md", "text=bread"]).exits(6);
    call(&["log-note", "path=today.md", "text=bread"]).exits(0);
    assert_eq!(call(&["find_note", "pattern=to*"]).exits(0).out(), "today.md\n");
    let preview = call(&["notes-delete", "path=today.md", "--dry-run", "--json"]).json();
    assert_eq!(preview["request"]["operation"], "delete");
    assert_eq!(names(&room.path("work/data")), ["shopping.md", "today.md"]);
}

#[test]
fn a_project_hands_out_nothing_but_itself() {
    let room = Sandbox::new();
    std::fs::write(room.path("home/secret"), "key").unwrap();
    std::fs::create_dir(room.path("work/data")).unwrap();
    symlink(room.path("home"), room.path("work/data/home")).unwrap();
    std::fs::create_dir_all(room.path("data/own")).unwrap();
    std::fs::write(room.path("data/own/mine"), "mine").unwrap();
    // The user's own entry, in the user's own directory.
    let own = room.path("data/own").display().to_string();
    std::fs::write(
        room.path("config/toolhost/tools.yaml"),
        format!(
            "scopes: {{ OWN: {own} }}\ncomponents: [{{ name: mine, type: files, scope: OWN }}]\n"
        ),
    )
    .unwrap();
    room.file(
        "tools.yaml",
        "scopes: { OWN: '~', AGENT_DATA_DIR: '~' }
components:
  - { name: a, type: files, root_dir: data }
  - { name: b, type: files, root_dir: data/home }
  - { name: c, type: files, root_dir: '~' }
  - { name: d, type: files, scope: OWN }
",
    );
    let call =
        |tool: &str, path: &str| room.toolhost(["call", tool, &format!("path={path}")]).check();
    call("a-read", "home/secret").exits(6).says(&["is outside"]);
    for tool in ["b-read", "c-read", "d-read"] {
        call(tool, "secret").exits(6).says(&["not trusted yet", "reads ", "toolhost trust"]);
    }
    // What the project says about a name moves no entry of the user.
    assert_eq!(call("mine-read", "mine").exits(0).out(), "mine\n");
    call("mine-read", "secret").exits(3);
    room.toolhost(["trust", "--yes"]).check().exits(0);
    assert_eq!(call("b-read", "secret").exits(0).out(), "key\n");
    // Allowed is the directory that was shown: another one is asked about again.
    std::fs::remove_file(room.path("work/data/home")).unwrap();
    symlink(room.path("data"), room.path("work/data/home")).unwrap();
    call("b-read", "own/mine").exits(6).says(&["not trusted any more"]);
}

/// O05: a writer that is killed leaves the old content or the new one, and the next writer leaves
/// nothing else.
#[test]
fn kill_9_tears_no_file() {
    let room = Sandbox::new();
    room.file("tools.yaml", OPEN).file("data/f", &"a".repeat(8 << 20));
    for letter in ["a", "b"] {
        room.file(letter, &letter.repeat(8 << 20));
    }
    let file = room.path("work/data/f");
    let temporary = room.path("work/data/.toolhost-write.tmp");
    let mut torn = 0;
    for round in 0..12 {
        let text = if round % 2 == 0 { "text=@b" } else { "text=@a" };
        let words = ["--tools", "tools.yaml", "call", "d-write", "path=f", text];
        let mut running = room.toolhost(words).start();
        // Killed early, in the middle, and when it is about to end, as far as that can be seen.
        let seen = |at_least: u64| {
            std::fs::metadata(&temporary).is_ok_and(|found| found.len() >= at_least)
        };
        let wanted = [0, 1, 4 << 20, 8 << 20][round % 4];
        while running.child.try_wait().unwrap().is_none() && !seen(wanted) {
            std::thread::yield_now();
        }
        running.child.kill().unwrap();
        running.finish();
        torn += usize::from(temporary.exists());
        let content = std::fs::read(&file).unwrap();
        assert_eq!(content.len(), 8 << 20, "round {round}");
        assert!(content.iter().all(|byte| *byte == content[0]), "round {round} mixed");
    }
    assert!(torn > 0, "no writer was killed while it wrote");
    let words = ["--tools", "tools.yaml", "call", "d-write", "path=f", "text=new"];
    room.toolhost(words).check().exits(0);
    assert_eq!(names(&room.path("work/data")), ["f"]);
    assert_eq!(std::fs::read_to_string(file).unwrap(), "new");
}

/// O05: a full disk keeps the old content. A limit on file sizes fails in the same place.
#[test]
fn a_full_disk_keeps_the_old_content() {
    let room = Sandbox::new();
    room.file("tools.yaml", OPEN).file("data/f", "old").file("big", &"x".repeat(1 << 20));
    let call = |tool: &str, path: &str| {
        let script = "ulimit -f 256; exec \"$0\" \"$@\"";
        let path = format!("path={path}");
        let binary = env!("CARGO_BIN_EXE_toolhost");
        let words =
            ["-c", script, binary, "--tools", "tools.yaml", "call", tool, &path, "text=@big"];
        room.program("/bin/sh", words).check()
    };
    for tool in ["d-write", "d-append"] {
        call(tool, "f").exits(3).says(&["limit on file sizes", "the old content is kept"]);
        call(tool, "fresh").exits(3).says(&["limit on file sizes"]);
    }
    assert_eq!(names(&room.path("work/data")), ["f"]);
    assert_eq!(std::fs::read_to_string(room.path("work/data/f")).unwrap(), "old");
}

const DATA: &str = "components: [{ name: data, type: files, scope: AGENT_DATA, access: write }]\n";

/// Agents' data of one project or user is nothing that another one sees.
#[test]
fn agents_data_is_one_directory_for_each_project_and_user() {
    let room = Sandbox::new();
    // What an earlier version kept for all goes to the project that asks first.
    let old = room.path("state/toolhost/agent");
    std::fs::create_dir_all(&old).unwrap();
    std::fs::write(old.join("old.txt"), "from before").unwrap();
    let call = |directory: &str, words: &[&str]| {
        room.file(&format!("{directory}/tools.yaml"), DATA);
        let line = "cd \"$1\" && shift && exec \"$0\" --trust call \"$@\" --yes";
        let start = ["-c", line, env!("CARGO_BIN_EXE_toolhost"), directory];
        room.program("sh", start.into_iter().chain(words.iter().copied())).check()
    };
    let bob = ["--context", "user_id=bob"];
    let read = ["data-read", "path=old.txt"];
    assert_eq!(call("one", &read).exits(0).out(), "from before\n");
    assert!(!old.exists(), "it was moved");
    call("two", &read).exits(3);
    call("one", &[&read[..], &bob].concat()).exits(3);
    call("one", &[&["data-write", "path=mine.txt", "text=bob's"][..], &bob].concat()).exits(0);
    let mine = ["data-read", "path=mine.txt"];
    assert_eq!(call("one", &[&mine[..], &bob].concat()).exits(0).out(), "bob's\n");
    call("one", &mine).exits(3);
    call("one", &[&mine[..], &["--context", "user_id=../bob"]].concat()).exits(3);
    call("two", &[&mine[..], &bob].concat()).exits(3);
    assert_eq!(call("one", &read).exits(0).out(), "from before\n");
}
