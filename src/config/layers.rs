//! Tests of whole loads: layers, trust, and the limits of project files.

use std::path::PathBuf;
use std::time::Duration;

use super::consent::store::TrustStore;
use super::consent::{TrustRequest, TrustRequestLine};
use super::environment::{Environment as _, FixedEnvironment};
use super::fixtures::KINDS;
use super::spec::{Configuration, Layer, PolicyAction};
use super::{LoadRequest, load};

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

    /// Loads, and answers the question with yes.
    fn trust(&self, author: bool) -> Configuration {
        let first = self.load();
        let mut store = TrustStore::open(Some(&self.state())).unwrap();
        store.trust(trust_request(&first), author, Duration::ZERO).unwrap();
        self.load()
    }
}

/// What a person is asked, which has to be something.
fn trust_request(configuration: &Configuration) -> &TrustRequest {
    configuration.trust_request.as_ref().expect("should ask")
}

/// The trust request as a front end prints it, line by line.
fn shown(configuration: &Configuration) -> String {
    let lines = trust_request(configuration).difference_lines();
    lines.iter().map(TrustRequestLine::text).collect::<Vec<_>>().join("\n")
}

fn untrusted(configuration: &Configuration) -> Vec<&str> {
    configuration.untrusted.iter().map(|entry| entry.name.as_str()).collect()
}

fn names(configuration: &Configuration) -> Vec<String> {
    configuration.tools.iter().map(|t| t.definition.name.to_string()).collect()
}

const COMMAND: &str = "tools:\n  - { name: a, command: [echo, project] }\n";
const SERVER: &str =
    "mcp_servers:\n  s: { command: sh, args: [-c, \"x\\ny\"], env: { TOKEN_NAME: \"${V:-1}\" } }\n";

#[test]
fn a_later_layer_fills_what_an_earlier_one_leaves_out() {
    let named = "tools:\n  - { name: a, command: [echo, named] }\n";
    let user =
        "tools:\n  - { name: a, command: [echo, user] }\n  - { name: b, command: [echo, b] }\n";
    let mut room = Room::new().user("named.yaml", named).user("tools.yaml", user);
    let named = room.environment.config_dir().unwrap().join("named.yaml");
    room.environment.vars.insert("TOOLHOST_TOOLS".to_owned(), named.display().to_string());
    let configuration = room.load();
    assert_eq!(names(&configuration), ["a", "b"]);
    assert!(configuration.diagnostics.is_empty(), "{:?}", configuration.diagnostics);
    let layers: Vec<Layer> = configuration.files.iter().map(|f| f.layer).collect();
    assert_eq!(layers, [Layer::Variable, Layer::User]);
}

#[test]
fn a_name_of_the_users_stays_the_users_until_a_stored_answer_showed_the_replacement() {
    let user = "tools:\n  - { name: a, command: [echo, user] }\n\
                components:\n  - { name: kit, type: command, command: [x] }\n";
    let project = "tools:\n  - { name: a, command: [echo, project] }\n\
                   \x20 - { name: kit-read, command: [y] }\n  - { name: mine, command: [z] }\n";
    let room = Room::new().project("tools.yaml", project).user("tools.yaml", user);
    let origin = |configuration: &Configuration, name: &str| {
        let tool = configuration.tools.iter().find(|t| t.definition.name.to_string() == name);
        tool.map(|tool| tool.location.file.ends_with("project/tools.yaml"))
    };
    // Neither before an answer, nor by consent for one run.
    for trust_all in [false, true] {
        let request = LoadRequest { trust_all, ..LoadRequest::default() };
        let configuration = load(&request, &KINDS, &room.environment);
        assert_eq!(origin(&configuration, "a"), Some(false));
        assert_eq!(origin(&configuration, "kit-read"), None);
        let warnings =
            configuration.diagnostics.iter().filter(|p| p.message.contains("your own")).count();
        assert_eq!(warnings, 2, "{:?}", configuration.diagnostics);
    }
    let question = shown(&room.load());
    assert!(question.contains("replaces your own 'a'"), "{question}");
    assert!(question.contains("replaces your own 'kit'"), "{question}");
    let trusted = room.trust(false);
    assert_eq!(origin(&trusted, "a"), Some(true));
    assert_eq!(origin(&trusted, "kit-read"), Some(true));
    // A clash that comes later asks again, and until then the name is the user's.
    let later = format!("{user}tools_config:\n  - {{ name: mine, command: [own] }}\n");
    let room = room.user("tools.yaml", &later);
    let configuration = room.load();
    let question = shown(&configuration);
    assert!(question.starts_with("tools.yaml\n  mine: starts z"), "{question}");
    assert!(question.contains("replaces your own 'mine'"), "{question}");
    assert!(!question.contains("kit"), "only what changed: {question}");
    assert_eq!(origin(&configuration, "mine"), Some(false));
}

#[test]
fn a_server_of_any_name_is_called_by_a_safe_one() {
    let text = "mcp_servers:\n  My Server: { command: sh }\n  off one: { command: sh, disabled: true }\n  My/Server: { command: sh }\n";
    let configuration = Room::new().user("mcp.yaml", text).load();
    let servers: Vec<_> = configuration.servers.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(servers, ["My-Server"]);
    let disabled: Vec<_> = configuration.disabled.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(disabled, ["off-one", "My-Server"]);
    let line = |one: &crate::model::Diagnostic| {
        let at = one.location.as_ref().unwrap();
        format!("{}:{} {}", at.line, at.column, one.message.split(": first").next().unwrap())
    };
    assert_eq!(
        configuration.diagnostics.iter().map(line).collect::<Vec<_>>(),
        ["2:3 the server 'My Server' is called 'My-Server' here", "4:3 duplicate name 'My-Server'"]
    );
    // Neither the user's server nor a project's is hidden behind the spelling.
    let project = Room::new()
        .project("mcp.yaml", "mcp_servers: { my server: { command: sh } }\n")
        .user("mcp.yaml", "mcp_servers: { my-server: { command: sh } }\n");
    assert!(shown(&project.load()).contains("replaces your own 'my-server'"));
    let trusted = Room::new().project("mcp.yaml", "mcp_servers: { a b: { command: [sh] } }\n");
    let server = trusted.trust(false).servers.pop().unwrap();
    assert!(server.name == "a-b" && server.seal.verify().is_ok());
}

#[test]
fn a_view_of_the_users_stays_the_users() {
    let room = Room::new()
        .project("tools.yaml", "profiles: { p: { include: [\"*\"] }, q: { include: [x] } }\n")
        .user("tools.yaml", "profiles: { p: { include: [safe] } }\n");
    let profiles = room.load().profiles;
    assert_eq!(profiles["p"].include, ["safe"]);
    assert_eq!(profiles["q"].include, ["x"]);
}

#[test]
fn a_broken_entry_is_not_replaced_by_one_of_a_later_layer() {
    let named = "tools: [{ name: a, command: [x], speed: warp }, { name: c, disabled: true }]\n";
    let mut room = Room::new()
        .user("named.yaml", named)
        .user("tools.yaml", "tools: [{ name: a, command: [y] }, { name: c, command: [y] }]\n");
    let named = room.environment.config_dir().unwrap().join("named.yaml");
    room.environment.vars.insert("TOOLHOST_TOOLS".to_owned(), named.display().to_string());
    let configuration = room.load();
    assert!(configuration.tools.is_empty());
    assert_eq!(configuration.disabled.len(), 2);
    assert_eq!(configuration.diagnostics.len(), 1, "switching off is no problem");
}

#[test]
fn a_project_is_asked_about_once_and_again_after_a_change() {
    let room = Room::new().project("mcp.yaml", SERVER);
    let first = room.load();
    assert!(first.servers.is_empty() && untrusted(&first) == ["s"]);
    let question = shown(&first);
    assert!(question.starts_with("mcp.yaml\n  s: starts sh -c 'x␊y' ("), "{question}");
    assert!(question.contains("uses ${V:-1} in env.TOKEN_NAME"), "{question}");
    assert!(question.contains("warning: runs shell code"), "{question}");

    let trusted = room.trust(false);
    assert!(trusted.trust_request.is_none() && trusted.untrusted.is_empty());
    assert_eq!(trusted.servers.len(), 1);
    let root = room.environment.cwd.canonicalize().unwrap();
    assert_eq!(trusted.trusted_root(), Some(root.as_path()));

    for change in [
        SERVER.replace("sh,", "bash,"),
        SERVER.replace("ny", "nz"),
        SERVER.replace("TOKEN_NAME", "OTHER_NAME"),
        SERVER.replace(":-1", ":-2"),
        SERVER.replace("command", "cwd: sub, command"),
        SERVER.replace("  s:", "  renamed:"),
        SERVER.replace("command", "description: new words, command"),
    ] {
        let changed = room.project_again("mcp.yaml", &change);
        assert!(changed.servers.is_empty(), "{change}");
        assert!(trust_request(&changed).previous.is_some(), "{change}");
    }
    // Comments and layout say nothing.
    let same = format!("# why\n{}", SERVER.replace(", env", ",   env"));
    assert_eq!(room.project_again("mcp.yaml", &same).servers.len(), 1);
}

#[test]
fn nothing_of_a_project_is_expanded_before_consent() {
    let mut room = Room::new()
        .project(
            "tools.yaml",
            "defaults: { base_url: \"http://${CANARY}/\" }\nscopes: { D: \"/${CANARY}\" }\n\
             audit: { path: \"${CANARY}\" }\ndiscover: [\"./${CANARY}\"]\n\
             tools: [{ name: t, command: [echo, \"${CANARY}\"], description: \"${CANARY}\" }]\n",
        )
        .project(
            "mcp.yaml",
            "s: { command: \"${CANARY}\", roots: [\"https://x/${CANARY}\"] }\n\
             h: { url: \"http://x/${CANARY}\", auth: { token_env_var: CANARY } }\n",
        );
    room.environment.vars.insert("CANARY".to_owned(), "hunter2-hunter2".to_owned());
    let configuration = room.load();
    let all = format!("{configuration:?}");
    assert!(!all.contains("hunter2"), "{all}");
    assert_eq!(untrusted(&configuration), ["t", "s", "h"]);
    let question = shown(&configuration);
    for expected in [
        "settings: uses ${CANARY} in defaults.base_url",
        "t: starts echo '${CANARY}'",
        "s: starts '${CANARY}' (decided by your ${CANARY})",
        "sends it the roots [\"https://x/${CANARY}\"]",
        "h: contacts http://x/${CANARY}; uses ${CANARY} in url, auth.token_env_var",
    ] {
        assert!(question.contains(expected), "{expected} is missing in\n{question}");
    }
    // `discover` of a project names literal directories, before and after.
    let diagnostics = |configuration: &Configuration| {
        configuration
            .diagnostics
            .iter()
            .filter(|p| p.message.contains("literal directories"))
            .count()
    };
    assert_eq!(diagnostics(&configuration), 1);
    let trusted = room.trust(false);
    assert_eq!(diagnostics(&trusted), 1);
    assert!(trusted.untrusted.is_empty() && trusted.tools.len() == 1);
}

#[test]
fn a_directory_that_moved_is_asked_about_again() {
    let mut room = Room::new().project("tools.yaml", COMMAND);
    assert_eq!(room.trust(false).tools.len(), 1);
    let moved = room.dir.path().join("moved");
    std::fs::rename(room.dir.path().join("project"), &moved).unwrap();
    room.environment.cwd = moved;
    assert_eq!(trust_request(&room.load()).previous, None);
}

#[test]
fn a_script_that_changed_is_asked_about_again_but_for_its_author() {
    let text = "tools: [{ name: a, command: [./run] }, { name: b, command: [sh, job, data] }]\n";
    let room = Room::new().project("run", "#!/bin/sh\n").project("tools.yaml", text);
    let run = room.environment.cwd.join("run");
    let mode = |mode| {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&run, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(0o755);
    let room = room.project("job", "one").project("data", "one");
    let question = shown(&room.load());
    assert!(question.contains("part of the project"), "{question}");
    assert!(question.contains("data (not bound by content)"), "{question}");
    let trusted = room.trust(false);
    assert_eq!(trusted.tools.len(), 2);
    let room = room.project("data", "two");
    assert!(room.load().trust_request.is_none(), "data is not bound");

    let room = room.project("job", "two");
    let changed = room.load();
    assert_eq!(shown(&changed), "changed code: job");
    assert!(changed.tools.is_empty());
    // What was loaded before notices it just before it starts.
    assert!(trusted.tools[1].seal.verify().is_err() && trusted.tools[0].seal.verify().is_ok());

    assert_eq!(room.trust(true).tools.len(), 2);
    let room = room.project("job", "three").project("run", "#!/bin/sh\ntrue\n");
    assert!(room.load().trust_request.is_none(), "its author changes it");
    let other = text.replace("./run", "./job");
    assert!(room.project_again("tools.yaml", &other).trust_request.is_some(), "the entry changed");
}

#[test]
fn consent_comes_from_flags_and_the_embedded_text() {
    let room = Room::new().project("tools.yaml", COMMAND).project("mcp.yaml", SERVER);
    let everything = LoadRequest { trust_all: true, ..LoadRequest::default() };
    let acts = |c: &Configuration| c.untrusted.is_empty() && !c.tools.is_empty();
    assert!(!acts(&room.load()));
    assert!(acts(&load(&everything, &KINDS, &room.environment)));
    let named = LoadRequest { tools: vec!["tools.yaml".into()], ..LoadRequest::default() };
    assert!(acts(&load(&named, &KINDS, &room.environment)));
    let copy = Room::new()
        .project("tools.yaml", super::discover::EMBEDDED_TOOLS)
        .project("mcp.yaml", super::discover::EMBEDDED_SERVERS);
    assert!(copy.load().trust_request.is_none());
}

#[test]
fn no_address_is_contacted_before_consent_not_even_a_plain_one() {
    let room = Room::new().project("mcp.yaml", "plain: { url: \"https://e.com/x\" }\n");
    let configuration = room.load();
    assert!(configuration.servers.is_empty());
    assert_eq!(shown(&configuration), "mcp.yaml\n  plain: contacts https://e.com");
}

#[test]
fn entries_that_reach_nothing_act_without_consent() {
    let text = "tools: [{ name: sum, module: builtin.calculator, function: calculate }]\n";
    let room = Room::new().project("tools.yaml", text);
    let configuration = room.load();
    assert!(configuration.trust_request.is_none(), "there is nothing to ask");
    assert_eq!(names(&configuration), ["sum"]);
    // Beside an entry that does reach something they act all the same.
    let both = text.replace("tools: [", "tools: [{ name: a, command: [x] }, ");
    let configuration = room.project_again("tools.yaml", &both);
    assert_eq!((names(&configuration), untrusted(&configuration)), (vec!["sum".into()], vec!["a"]));
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
        .diagnostics
        .iter()
        .filter(|p| p.is_error())
        .map(|p| p.message.as_str())
        .collect();
    assert_eq!(
        errors,
        ["trust", "limits", "state_dir"]
            .map(|k| format!("'{k}' cannot be set by a project's file"))
    );
    let warnings = configuration.diagnostics.iter().filter(|p| !p.is_error()).count();
    assert_eq!(warnings, 5, "{:?}", configuration.diagnostics);
}

#[test]
fn an_entry_is_not_harmless_because_another_of_its_name_is() {
    let sum = "{ name: x, module: builtin.calculator, function: calculate }";
    let runs = "{ name: x, command: [touch, ran] }";
    for entries in [format!("{runs}, {sum}"), format!("{sum}, {runs}")] {
        let room = Room::new().project("tools.yaml", &format!("tools: [{entries}]\n"));
        let configuration = room.load();
        assert!(configuration.tools.is_empty(), "{entries}");
        assert!(configuration.trust_request.is_some(), "{entries}");
    }
}

#[test]
fn a_declared_tool_of_a_project_takes_no_name_of_the_users() {
    let room = Room::new()
        .project("mcp.yaml", "git: { command: x, provides_tools: [{ name: log }] }\n")
        .user("tools.yaml", "tools: [{ name: git-log, command: [git, log] }]\n");
    for trust_all in [false, true] {
        let request = LoadRequest { trust_all, ..LoadRequest::default() };
        let configuration = load(&request, &KINDS, &room.environment);
        assert_eq!(names(&configuration), ["git-log"], "{trust_all}");
        assert!(untrusted(&configuration).is_empty() && configuration.servers.is_empty());
    }
    assert!(shown(&room.load()).contains("replaces your own 'git-log'"));
    assert_eq!(room.trust(false).servers.len(), 1);
}

#[test]
fn discovered_files_belong_to_the_file_that_names_them() {
    let room = Room::new()
        .project("tools.yaml", "discover: [./tools.d]\ntools: [{ name: a, command: [x] }]\n");
    let more = room.dir.path().join("project/tools.d");
    std::fs::create_dir(&more).unwrap();
    let one = more.join("one.yaml");
    std::fs::write(&one, "tools: [{ name: b, command: [./x] }, { name: a, command: [y] }]\n")
        .unwrap();
    let configuration = room.trust(false);
    assert_eq!(names(&configuration), ["a", "b"]);
    assert_eq!(configuration.tools[1].base_dir, more);
    assert_eq!(configuration.diagnostics.len(), 1, "the second 'a'");
    // They are part of what was trusted.
    std::fs::write(&one, "tools: [{ name: b, command: [./z] }]\n").unwrap();
    assert!(room.load().tools.is_empty());
    // Nothing outside of the project is read for it.
    let outside = room.dir.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("two.yaml"), "tools: [{ name: c, command: [x] }]\n").unwrap();
    std::os::unix::fs::symlink(outside.join("two.yaml"), more.join("two.yaml")).unwrap();
    let text = "discover: [./tools.d, ../outside]\n";
    let configuration = room.project_again("tools.yaml", text);
    assert_eq!(untrusted(&configuration), ["b"]);
    let refused = configuration.diagnostics.iter().filter(|p| p.is_error()).count();
    assert_eq!(refused, 2, "{:?}", configuration.diagnostics);
}

#[test]
fn a_named_file_that_is_missing_is_a_problem() {
    let room = Room::new();
    let request = LoadRequest { servers: vec!["none.yaml".into()], ..LoadRequest::default() };
    let configuration = load(&request, &KINDS, &room.environment);
    assert!(configuration.diagnostics[0].message.ends_with("no such file or directory"));
    assert!(configuration.files.is_empty());
}

#[test]
fn nothing_in_a_dot_env_file_is_read() {
    let room = Room::new()
        .project(".env", "NOT_SET_HERE=1\n")
        .project("mcp.yaml", "a: { command: x, env: { A: \"${NOT_SET_HERE}\" } }\n");
    assert_eq!(room.trust(false).disabled.len(), 1);
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

#[test]
fn of_a_schema_an_entry_keeps_only_the_place() {
    let text = "tools:\n  - name: a\n    command: [x]\n    parameters: { type: object, title: t }\n    \
                outputSchema: { type: string }\n";
    let spec = Room::new().user("tools.yaml", text).load().tools.remove(0);
    let kept = spec.entry.entries().iter().map(|(key, value)| (&*key.text, value.kind()));
    let expected = [
        ("name", "text"),
        ("command", "a list"),
        ("parameters", "a boolean"),
        ("outputSchema", "a boolean"),
    ];
    assert_eq!(kept.collect::<Vec<_>>(), expected);
    assert_eq!(spec.definition.input_schema["title"], "t");
    assert_eq!(spec.definition.output_schema.unwrap()["type"], "string");
}

impl Room {
    fn project_again(&self, name: &str, text: &str) -> Configuration {
        std::fs::write(self.dir.path().join("project").join(name), text).unwrap();
        self.load()
    }
}
