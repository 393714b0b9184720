//! Property tests: mutated configuration files, loaded and built.
//!
//! Whatever a file says, an answer comes: diagnostics, or tools that can be listed. Nothing panics,
//! and nothing waits for a pipe or reads a device without end; a test that did would never finish.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::contents::{self, ProviderSources};
use super::{AssemblyOptions, FrontEnd, mcp_setup};
use crate::catalogue::pins::Pins;
use crate::config::discover::LoadRequest;
use crate::config::environment::{Environment, FixedEnvironment};
use crate::config::node::SourceText;
use crate::config::parse::parse;
use crate::provider::ProviderDeps;

/// An entry of every kind, beside the files of the examples and fixtures.
const EVERY_KIND: &str = r#"
version: 1
defaults: { base_url: "http://127.0.0.1:9/", timeout: 5s }
scopes: { HERE: ., THERE: ../x }
schemas: { S: { type: object, properties: { a: { type: integer } } } }
profiles: { p: { include: ["*"] } }
policy: [{ match: "*", action: ask }]
audit: { enabled: true, retention: 1d }
tools:
  - { name: sum, module: builtin.calculator, function: calculate }
  - { name: run, command: [echo, "{a}"], parameters_schema: { type: object, properties: { a: { type: string } } }, sandbox: { level: limits, memory: 64MiB, read: [.] }, env: { A: b }, cwd: . }
  - { name: fun, module: mod, function: f, root: ., interpreter: python3 }
  - { name: all, kind: python, module: mod, functions: typed }
  - { name: api, endpoint_url: "/items/{id}", method: POST, headers: { A: "${HOME}" }, query: { q: "{q}" }, body: { a: "{a}" }, auth: { type: bearer, token_env_var: HOME }, retry: { max: 2, on: [429, 5xx] }, response_path: /a, max_response_bytes: 1MiB }
  - { name: doc, openapi: api.json, base_url: "http://127.0.0.1:9/", include: ["*"] }
  - { name: chain, steps: [{ id: one, tool: sum, args: { expression: "{e}" }, each: "{items}", when: "{one.success}", on_error: continue }, { parallel: [{ id: two, tool: run }] }], result: { r: "{one.output}" } }
toolkits:
  - { name: kit, type: FileManagementToolkit, root_dir: ., selected_tools: [read_file] }
components:
  - { name: files, type: files, root_dir: ., access: write, tools: [read, write] }
  - { name: store, type: storage, path: s.db, max_keys: 10, max_value_bytes: 1KiB }
  - { name: box, type: mailbox }
"#;

/// A file of tools, or of servers.
struct Seed {
    servers: bool,
    text: String,
    tree: Value,
}

/// All files that mutations begin with.
fn seeds() -> &'static [Seed] {
    static SEEDS: OnceLock<Vec<Seed>> = OnceLock::new();
    SEEDS.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut texts = vec![(false, EVERY_KIND.to_owned())];
        let mut directories = vec![root.to_path_buf(), root.join("tests/fixtures/config/valid")];
        let examples = std::fs::read_dir(root.join("examples")).unwrap();
        directories.extend(examples.map(|e| e.unwrap().path()).filter(|path| path.is_dir()));
        directories.sort_unstable();
        for directory in directories {
            let mut files: Vec<_> =
                std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
            files.sort_unstable();
            for file in files {
                let name = file.file_name().unwrap().to_string_lossy().into_owned();
                let role = name.starts_with("tools") || name.starts_with("mcp");
                if role && [".yaml", ".json"].iter().any(|end| name.ends_with(end)) {
                    let text = std::fs::read_to_string(&file).unwrap();
                    texts.push((name.starts_with("mcp"), text));
                }
            }
        }
        let seed = |(servers, text): (bool, String)| {
            let tree = parse(&SourceText::new("seed", &text), &text).unwrap().to_json();
            Seed { servers, text, tree }
        };
        texts.into_iter().map(seed).collect()
    })
}

/// Values of the wrong type or form, to put in place of a right one.
fn strange(number: usize) -> Value {
    let nested = |depth: usize| (0..depth).fold(json!("{a}"), |inner, _| json!([inner]));
    let texts = [
        "",
        "~",
        "{",
        "}",
        "{}",
        "{{",
        "{a",
        "{a.b.c[0]}",
        "{item}",
        "${",
        "${X",
        "${X}",
        "${X:-",
        "${X:-y}",
        "${file:./fifo}",
        "${file:/dev/zero}",
        "\0",
        "a\nb\r\tc",
        "\u{1b}[2J\u{202e}",
        "/",
        ".",
        "..",
        "../../..",
        "./fifo",
        "/dev/zero",
        "/proc/self/mem",
        "/dev/null",
        "*",
        "**/[",
        "http://",
        "http://[::1",
        "http://@/",
        "http://127.0.0.1:99999/",
        "file:///etc/passwd",
        "redis://",
        "1h",
        "99999999999999999999d",
        "1e400s",
        "-1s",
        "9999999999GiB",
        "none",
        "landlock",
        "python3",
        "(a+)+$(",
        "#/x",
        "S",
        "sum",
        "chain",
        "box",
        "GET",
        "nowhere",
    ];
    let mut values: Vec<Value> = texts.iter().map(|text| json!(text)).collect();
    values.extend([
        Value::Null,
        json!(true),
        json!(false),
        json!(0),
        json!(-1),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1e308),
        json!(0.1),
        json!([]),
        json!({}),
        json!([[]]),
        json!([null, 1, {}]),
        json!({ "": "" }),
        json!({ "$ref": "#" }),
        json!({ "type": "object", "properties": { "a": { "$ref": "#/properties/a" } } }),
        json!({ "type": "string", "pattern": "(a+)+$(" }),
        json!({ "type": ["object", "nothing"], "required": [1] }),
        json!("x".repeat(70_000)),
        json!("{a}".repeat(5_000)),
        Value::Array((0..2_000).map(|n| json!(n)).collect()),
        nested(40),
        nested(200),
    ]);
    values.swap_remove(number % values.len())
}

/// One change of a tree; the numbers choose among what is there.
#[derive(Debug, Clone, Copy)]
enum Mutation {
    /// A value becomes a strange one.
    Replace(usize, usize),
    /// A value becomes one of another file.
    Graft(usize, usize, usize),
    /// A pair or an item goes.
    Remove(usize),
    /// A pair gets the key of another pair anywhere.
    Rename(usize, usize, usize),
    /// A list or mapping gets one more: a copy of one of its own, or something strange.
    Add(usize, usize),
}

fn change() -> impl Strategy<Value = Mutation> {
    let n = || 0..100_000_usize;
    prop_oneof![
        4 => (n(), n()).prop_map(|(at, what)| Mutation::Replace(at, what)),
        2 => (n(), n(), n()).prop_map(|(at, seed, from)| Mutation::Graft(at, seed, from)),
        1 => n().prop_map(Mutation::Remove),
        2 => (n(), n(), n()).prop_map(|(at, seed, key)| Mutation::Rename(at, seed, key)),
        1 => (n(), n()).prop_map(|(at, what)| Mutation::Add(at, what)),
    ]
}

fn pointers(tree: &Value) -> Vec<String> {
    fn walk(value: &Value, at: &str, paths: &mut Vec<String>) {
        let mut step = |key: &str, inner: &Value| {
            let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
            paths.push(at.clone());
            walk(inner, &at, paths);
        };
        match value {
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(n, item)| step(&n.to_string(), item));
            }
            Value::Object(map) => map.iter().for_each(|(key, inner)| step(key, inner)),
            _ => {}
        }
    }
    let mut paths = Vec::new();
    walk(tree, "", &mut paths);
    paths
}

fn chosen(tree: &Value, number: usize) -> Option<String> {
    let all = pointers(tree);
    (!all.is_empty()).then(|| all[number % all.len()].clone())
}

fn apply(tree: &mut Value, change: Mutation) {
    let seed = |number: usize| &seeds()[number % seeds().len()].tree;
    let at = match change {
        Mutation::Replace(at, _)
        | Mutation::Graft(at, ..)
        | Mutation::Remove(at)
        | Mutation::Rename(at, ..)
        | Mutation::Add(at, _) => at,
    };
    let Some(pointer) = chosen(tree, at) else { return };
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/").replace("~0", "~");
    match change {
        Mutation::Replace(_, what) => *tree.pointer_mut(&pointer).unwrap() = strange(what),
        Mutation::Graft(_, from, which) => {
            let graft = chosen(seed(from), which).and_then(|p| seed(from).pointer(&p)).cloned();
            *tree.pointer_mut(&pointer).unwrap() = graft.unwrap_or_default();
        }
        Mutation::Remove(_) => match tree.pointer_mut(parent) {
            Some(Value::Array(items)) => drop(items.remove(key.parse().unwrap())),
            Some(Value::Object(map)) => drop(map.remove(&key)),
            _ => {}
        },
        Mutation::Rename(_, from, which) => {
            let Some(Value::Object(map)) = tree.pointer_mut(parent) else { return };
            let Some(other) = chosen(seed(from), which) else { return };
            let name = other.rsplit('/').next().unwrap_or_default().to_owned();
            let value = map.remove(&key).unwrap();
            map.insert(name, value);
        }
        Mutation::Add(_, what) => match tree.pointer_mut(&pointer) {
            Some(Value::Array(items)) => {
                let copy = items.get(what % items.len().max(1)).cloned();
                items.push(copy.unwrap_or_else(|| strange(what)));
            }
            Some(Value::Object(map)) => drop(map.insert("extra".to_owned(), strange(what))),
            _ => {}
        },
    }
}

fn assert_handled(servers_file: bool, extension: &str, text: &str) {
    let dir = tempfile::tempdir().unwrap();
    let (cwd, root) = (dir.path().join("work"), dir.path().join("root"));
    std::fs::create_dir_all(&cwd).unwrap();
    crate::util::named_pipe::make(&cwd.join("fifo"));
    std::fs::write(cwd.join("mod.py"), "def f(x: int) -> int:\n    return x\n").unwrap();
    let paths: Map<String, Value> = Map::from_iter([("/a".to_owned(), json!({ "get": {} }))]);
    let api = json!({ "openapi": "3.1.0", "info": { "title": "a" }, "paths": paths });
    std::fs::write(cwd.join("api.json"), api.to_string()).unwrap();
    let name = if servers_file { "mcp" } else { "tools" };
    std::fs::write(cwd.join(format!("{name}.{extension}")), text).unwrap();
    let vars = [("PATH", "/usr/bin:/bin"), ("HOME", "/nowhere")];
    let vars = vars.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let environment = FixedEnvironment { vars, cwd, root: Some(root) };
    let environment: Arc<dyn Environment> = Arc::new(environment);
    // As a project's file, about which trust is decided as well, and as one that was named.
    for trust_all in [false, true] {
        let files = LoadRequest { trust_all, ..LoadRequest::default() };
        let (mut configuration, _masker) = super::load(&files, environment.as_ref());
        contents::apply(&mut configuration);
        let deps = ProviderDeps {
            expanded: configuration.expanded.clone(),
            state_dir: environment.state_dir(),
            ..ProviderDeps::bare(Arc::clone(&environment))
        };
        let options = AssemblyOptions { files, ..AssemblyOptions::default() };
        let masker = crate::audit::Masker::default();
        let setup = mcp_setup(&options, &environment, &FrontEnd::headless(), &masker);
        let sources = ProviderSources::new(deps, setup).build(&mut configuration, &[], &masker);
        let contents = sources.contents(&configuration, Pins::default(), None);
        for provider in contents.providers {
            for tool in provider.declared() {
                assert!(!tool.name.full().is_empty());
            }
        }
        for diagnostic in &configuration.diagnostics {
            assert!(!diagnostic.message.is_empty(), "{diagnostic:?}");
        }
    }
}

/// What is put into a text to break its notation.
const PIECES: [&str; 28] = [
    ":",
    ": ",
    "- ",
    "{",
    "}",
    "[",
    "]",
    ",",
    "\"",
    "'",
    "|",
    ">",
    "&a ",
    "*a ",
    "<<: ",
    "!!x ",
    "? ",
    "#",
    "---\n",
    "...\n",
    "%YAML 9\n",
    "\t",
    "\n",
    "  ",
    "\0",
    "\u{feff}",
    "\u{2028}",
    "\u{1f600}",
];

#[test]
fn the_seeds_themselves_are_answered() {
    assert!(seeds().len() > 10, "{} files", seeds().len());
    assert!(seeds().iter().any(|seed| seed.servers));
    for seed in seeds() {
        assert_handled(seed.servers, "yaml", &seed.text);
        assert_handled(seed.servers, "json", &seed.tree.to_string());
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 192, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn a_file_of_mutated_values_gets_an_answer(
        first in any::<bool>(),
        which in 0..1_000_usize,
        changes in prop::collection::vec(change(), 1..6),
    ) {
        // Half of the cases are about the file that has every kind.
        let seed = if first { &seeds()[0] } else { &seeds()[which % seeds().len()] };
        let mut tree = seed.tree.clone();
        for change in changes {
            apply(&mut tree, change);
        }
        assert_handled(seed.servers, "json", &tree.to_string());
    }

    #[test]
    fn a_file_of_mutated_text_gets_an_answer(
        which in 0..1_000_usize,
        changes in prop::collection::vec((0..100_000_usize, 0..40_usize, 0..28_usize), 1..6),
    ) {
        let seed = &seeds()[which % seeds().len()];
        let mut text: Vec<char> = seed.text.chars().collect();
        for (at, removed, piece) in changes {
            let at = at % (text.len() + 1);
            let end = (at + removed.saturating_sub(20)).min(text.len());
            text.splice(at..end, PIECES[piece].chars());
        }
        assert_handled(seed.servers, "yaml", &text.into_iter().collect::<String>());
    }
}
