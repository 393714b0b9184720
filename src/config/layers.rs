//! Tests of what only whole loads show: layers, trust, what a project may not do.

use std::path::PathBuf;
use std::time::Duration;

use super::environment::{Environment as _, FixedEnvironment};
use super::fixtures::KINDS;
use super::spec::{Configuration, Layer, PolicyAction, Trust, TrustRequest};
use super::trust_store::{TrustStore, pending};
use super::{LoadRequest, load};

/// A project directory and a user's home.
struct Room {
    dir: tempfile::TempDir,
    environment: FixedEnvironment,
}

impl Room {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (cwd, root) = (dir.path().join("project"), dir.path().join("root"));
        std::fs::create_dir_all(&cwd).unwrap();
        std::fs::create_dir_all(root.join("config")).unwrap();
        let mut environment =
            FixedEnvironment { cwd, root: Some(root), ..FixedEnvironment::default() };
        environment.vars.insert("PATH".to_owned(), "/usr/bin:/bin".to_owned());
        Self { dir, environment }
    }

    fn project(self, name: &str, text: &str) -> Self {
        std::fs::write(self.dir.path().join("project").join(name), text).unwrap();
        self
    }

    fn user(self, name: &str, text: &str) -> Self {
        std::fs::write(self.dir.path().join("root/config").join(name), text).unwrap();
        self
    }

    fn load(&self) -> Configuration {
        load(&LoadRequest::default(), &KINDS, &self.environment)
    }

    fn state(&self) -> PathBuf {
        self.environment.state_dir().unwrap()
    }
}

fn asked(trust: &Trust) -> &TrustRequest {
    match trust {
        Trust::Ask(request) => request,
        Trust::Trusted => panic!("should ask"),
    }
}

fn names(configuration: &Configuration) -> Vec<String> {
    configuration.tools.iter().map(|t| t.definition.name.to_string()).collect()
}

const COMMAND: &str = "tools:\n  - { name: a, command: [echo, project] }\n";
const SERVER: &str =
    "mcp_servers:\n  s: { command: sh, args: [-c, \"x\\ny\"], env: { TOKEN_NAME: \"${V:-1}\" } }\n";

#[test]
fn a_later_layer_fills_what_an_earlier_one_leaves_out() {
    let user =
        "tools:\n  - { name: a, command: [echo, user] }\n  - { name: b, command: [echo, b] }\n";
    let room = Room::new().project("tools.yaml", COMMAND).user("tools.yaml", user);
    let configuration = room.load();
    assert_eq!(names(&configuration), ["a", "b"]);
    assert!(configuration.problems.is_empty(), "{:?}", configuration.problems);
    let layers: Vec<Layer> = configuration.files.iter().map(|f| f.layer).collect();
    assert_eq!(layers, [Layer::Project, Layer::User]);
    asked(&configuration.tools[0].trust);
    assert_eq!(configuration.tools[1].trust, Trust::Trusted);
}

#[test]
fn a_broken_entry_is_not_replaced_by_one_of_a_later_layer() {
    let room = Room::new()
        .project(
            "tools.yaml",
            "tools: [{ name: a, command: [x], speed: warp }, { name: c, disabled: true }]\n",
        )
        .user("tools.yaml", "tools: [{ name: a, command: [y] }, { name: c, command: [y] }]\n");
    let configuration = room.load();
    assert!(configuration.tools.is_empty());
    assert_eq!(configuration.disabled.len(), 2);
    assert_eq!(configuration.problems.len(), 1, "switching off is no problem");
}

#[test]
fn a_project_is_asked_about_once_and_again_after_a_change() {
    let room = Room::new().project("mcp.yaml", SERVER);
    let first = room.load();
    let request = asked(&first.servers[0].trust);
    let shown = request.lines.join("\n");
    assert!(shown.starts_with("command: sh -c 'x␊y'\ndirectory: "), "{shown}");
    assert!(shown.contains("environment: TOKEN_NAME=***"), "{shown}");
    assert!(shown.contains("found at: /") && shown.contains("warning: a shell runs"), "{shown}");
    assert_eq!(request.previous, None);

    let mut store = TrustStore::open(Some(&room.state())).unwrap();
    store.allow(std::slice::from_ref(request), Duration::ZERO).unwrap();
    assert_eq!(room.load().servers[0].trust, Trust::Trusted);
    assert_eq!((pending(&first).len(), pending(&room.load()).len()), (1, 0));

    for change in [
        SERVER.replace("sh,", "bash,"),
        SERVER.replace("ny", "nz"),
        SERVER.replace("TOKEN_NAME", "OTHER_NAME"),
        SERVER.replace(":-1", ":-2"),
        SERVER.replace("command", "cwd: sub, command"),
    ] {
        let changed = room.project_again("mcp.yaml", &change);
        let again = asked(&changed.servers[0].trust);
        assert_eq!(again.previous.as_ref(), Some(&request.lines), "{change}");
    }
    // Its description starts nothing.
    let same = SERVER.replace("command", "description: new words, command");
    assert_eq!(room.project_again("mcp.yaml", &same).servers[0].trust, Trust::Trusted);
}

#[test]
fn a_directory_that_moved_is_asked_about_again() {
    let mut room = Room::new().project("tools.yaml", COMMAND);
    let request = asked(&room.load().tools[0].trust).clone();
    TrustStore::open(Some(&room.state())).unwrap().allow(&[request], Duration::ZERO).unwrap();
    assert_eq!(room.load().tools[0].trust, Trust::Trusted);
    let moved = room.dir.path().join("moved");
    std::fs::rename(room.dir.path().join("project"), &moved).unwrap();
    room.environment.cwd = moved;
    asked(&room.load().tools[0].trust);
}

#[test]
fn a_program_inside_the_project_is_pointed_out() {
    let room = Room::new()
        .project("run", "")
        .project("tools.yaml", "tools: [{ name: a, command: [./run] }]\n");
    let lines = asked(&room.load().tools[0].trust).lines.join("\n");
    assert!(lines.contains("warning: the program is part of the project"), "{lines}");
}

#[test]
fn consent_comes_from_flags_and_the_embedded_text() {
    let room = Room::new().project("tools.yaml", COMMAND).project("mcp.yaml", SERVER);
    let everything = LoadRequest { trust_all: true, ..LoadRequest::default() };
    let trusted = |c: &Configuration| {
        c.tools.iter().all(|t| t.trust == Trust::Trusted)
            && c.servers.iter().all(|s| s.trust == Trust::Trusted)
    };
    assert!(!trusted(&room.load()));
    assert!(trusted(&load(&everything, &KINDS, &room.environment)));
    let named = LoadRequest { tools: vec!["tools.yaml".into()], ..LoadRequest::default() };
    assert!(trusted(&load(&named, &KINDS, &room.environment)));
    let copy = Room::new()
        .project("tools.yaml", super::discover::EMBEDDED_TOOLS)
        .project("mcp.yaml", super::discover::EMBEDDED_SERVERS);
    assert!(trusted(&copy.load()));
}

#[test]
fn an_address_is_asked_about_only_when_it_would_receive_something() {
    let text = "plain: { url: \"https://e.com/\" }\nheaders: { url: \"https://e.com/\", headers: { A: b } }\naddress: { url: \"https://e.com/${HOME_OF_ME:-x}\" }\n";
    let configuration = Room::new().project("mcp.yaml", text).load();
    assert_eq!(configuration.servers[0].trust, Trust::Trusted);
    assert!(asked(&configuration.servers[1].trust).lines.contains(&"sends headers: A".to_owned()));
    let lines = &asked(&configuration.servers[2].trust).lines;
    assert_eq!(lines[0], "address: https://e.com/${HOME_OF_ME:-x}");
}

#[test]
fn a_project_may_only_tighten() {
    let project = "trust: all\nlimits: { message: 1GiB }\nstate_dir: /tmp\naudit: { enabled: false, path: ./here, sync: true, retention: 1d }\nstats: { enabled: false }\npolicy:\n  - { match: \"*\", action: allow }\n  - { match: \"a-*\", action: deny }\n  - { match: \"b-*\", action: ask }\n";
    let user = "policy: [{ match: \"a-*\", action: allow }]\nstats: { retention: 7d }\n";
    let configuration = Room::new().project("tools.yaml", project).user("tools.yaml", user).load();
    let audit = &configuration.audit;
    assert!(audit.enabled && audit.sync && audit.path.is_none());
    assert_eq!(audit.retention, Duration::from_hours(90 * 24));
    assert!(configuration.stats.enabled);
    assert_eq!(configuration.stats.retention, Duration::from_hours(7 * 24));
    let rules: Vec<_> =
        configuration.policy.iter().map(|r| (r.pattern.as_str(), r.action)).collect();
    assert_eq!(
        rules,
        [("a-*", PolicyAction::Deny), ("a-*", PolicyAction::Allow), ("b-*", PolicyAction::Ask)]
    );
    let errors: Vec<&str> = configuration
        .problems
        .iter()
        .filter(|p| p.is_error())
        .map(|p| p.message.as_str())
        .collect();
    assert_eq!(
        errors,
        ["trust", "limits", "state_dir"]
            .map(|k| format!("'{k}' cannot be set by a project's file"))
    );
    let warnings = configuration.problems.iter().filter(|p| !p.is_error()).count();
    assert_eq!(warnings, 5, "{:?}", configuration.problems);
}

#[test]
fn discovered_files_belong_to_the_file_that_names_them() {
    let room = Room::new()
        .project("tools.yaml", "discover: [./tools.d]\ntools: [{ name: a, command: [x] }]\n");
    let more = room.dir.path().join("project/tools.d");
    std::fs::create_dir(&more).unwrap();
    std::fs::write(
        more.join("one.yaml"),
        "tools: [{ name: b, command: [./x] }, { name: a, command: [y] }]\n",
    )
    .unwrap();
    let configuration = room.load();
    assert_eq!(names(&configuration), ["a", "b"]);
    assert_eq!(configuration.tools[1].base_dir, more);
    asked(&configuration.tools[1].trust);
    assert_eq!(configuration.problems.len(), 1, "the second 'a'");
}

#[test]
fn a_named_file_that_is_missing_is_a_problem() {
    let room = Room::new();
    let request = LoadRequest { servers: vec!["none.yaml".into()], ..LoadRequest::default() };
    let configuration = load(&request, &KINDS, &room.environment);
    assert!(configuration.problems[0].message.ends_with("no such file or directory"));
    assert!(configuration.files.is_empty());
}

#[test]
fn nothing_in_a_dot_env_file_is_read() {
    let room = Room::new()
        .project(".env", "NOT_SET_HERE=1\n")
        .project("mcp.yaml", "a: { command: x, env: { A: \"${NOT_SET_HERE}\" } }\n");
    assert_eq!(room.load().disabled.len(), 1);
}

#[test]
#[ignore = "a measurement: run it with --run-ignored all --no-capture, in release"]
fn loading_ten_thousand_tools() {
    use std::fmt::Write as _;

    use crate::util::clock::{Clock as _, SystemClock};
    let room = Room::new();
    let time = |what: &str, request: &LoadRequest| {
        let start = SystemClock.now();
        let configuration = load(request, &KINDS, &room.environment);
        println!("{what}: {} tools in {:?}", configuration.tools.len(), start.elapsed());
        configuration
    };
    time("default files", &LoadRequest::default());
    time("default files, again", &LoadRequest::default());
    let mut request = LoadRequest::default();
    for file in 0..10 {
        let mut text = String::from("tools:\n");
        for tool in 0..1_000 {
            write!(
                text,
                "  - name: tool_{file}_{tool}\n    description: a tool for measuring\n    module: builtin.echo\n    function: echo\n    parameters_schema:\n      type: object\n      properties:\n        message: {{ type: string, description: What to say }}\n      required: [message]\n    category: testing\n    speed: fast\n"
            )
            .unwrap();
        }
        let path = room.dir.path().join(format!("{file}.yaml"));
        std::fs::write(&path, text).unwrap();
        request.tools.push(path);
    }
    let start = SystemClock.now();
    for path in &request.tools {
        let (source, text) = super::read::read(path, true).unwrap();
        super::parse::parse(&source, &text).unwrap();
    }
    println!("of this one after the other, reading and parsing: {:?}", start.elapsed());
    let configuration = time("10,000 tools in 10 files", &request);
    assert_eq!(configuration.tools.len(), 10_000);
}

impl Room {
    fn project_again(&self, name: &str, text: &str) -> Configuration {
        std::fs::write(self.dir.path().join("project").join(name), text).unwrap();
        self.load()
    }
}
