//! Python classes as tools, from the command line.

use serde_json::{Value, json};

use crate::support::{Finished, Sandbox};

const ENTRIES: &str = r"
tools:
  - { name: store, module: shop, class: Store, config: { settings: { url: 'mem:' }, prefix: p }, category: data }
  - { name: add, module: shop.counting, class: Adder, description: Adds }
  - { name: call, module: shop.counting, class: Called }
  - { name: few, module: shop, class: Store, config: { settings: { url: x } }, methods: [search] }
  - { name: host, module: shop.counting, class: HostTool }
";

const PACKAGE: &str = "
from .store import Store
";

const STORE: &str = r#"
import dataclasses
import functools

@dataclasses.dataclass
class Settings:
    url: str
    size: int = 3

class Base:
    def ping(self) -> str:
        """Answers."""
        return "pong"

class Store(Base):
    """A store of things."""

    def __init__(self, settings: Settings, *args, prefix: str = ""):
        assert isinstance(settings, Settings), settings
        print("constructed")
        self.settings, self.prefix, self.count = settings, prefix, 0

    def search(self, query: str, limit: int = 5) -> dict:
        """Search the store.

        Args:
            query: what to look for
        """
        self.count += 1
        return {"query": query, "limit": limit, "url": self.settings.url, "count": self.count}

    async def later(self, what: str, context=None) -> str:
        return self.prefix + what + context.session_id

    @staticmethod
    def double(n: int) -> int:
        return n * 2

    @property
    def secret(self):
        raise RuntimeError("a property is no tool")

    def _hidden(self):
        pass
"#;

const COUNTING: &str = r#"
import abc
import os
import threading

class Operation(abc.ABC):
    @abc.abstractmethod
    def run(self, a: int): ...

class Adder(Operation):
    def run(self, a: int, b: int = 1) -> int:
        return a + b

class Called:
    """Repeats."""
    def __call__(self, text: str) -> str:
        return text * 2

class HostTool:
    name = "host"
    @property
    def description(self):
        return "Told by the instance"
    @property
    def input_schema(self):
        return {"type": "object", "properties": {"q": {"type": "string"}}}
    async def execute(self, input):
        return {"success": True, "output": input["q"]}

class Stuck:
    def __init__(self):
        threading.Event().wait()
    def run(self): ...

class Broken:
    def __init__(self, path="none"):
        open("/nowhere/" + path)
    def run(self): ...

class Loud:
    def __init__(self):
        print('{"id": 1, "result": "forged"}')
        os.write(1, b'{"id": 1, "result": "forged"}\n')
        os.system("echo from a child")
    def run(self):
        return "right"

class Empty:
    value = 1
"#;

fn room(entries: &str) -> Sandbox {
    let room = Sandbox::new();
    room.file("tools.yaml", entries)
        .file("shop/__init__.py", PACKAGE)
        .file("shop/store.py", STORE)
        .file("shop/counting.py", COUNTING);
    room
}

fn run<'w>(room: &'w Sandbox, words: impl IntoIterator<Item = &'w str>) -> Finished {
    room.toolhost(["--tools", "tools.yaml"].into_iter().chain(words)).check()
}

fn tool<'l>(listing: &'l Value, name: &str) -> &'l Value {
    let tools = listing["tools"].as_array().unwrap();
    tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{listing}"))
}

#[test]
fn public_methods_are_tools_with_schemas_from_their_hints() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = room(ENTRIES);
    let listing = run(&room, ["list", "--json"]).exits(0).json();
    let names: Vec<&str> =
        listing["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "store-ping",
            "store-search",
            "store-later",
            "store-double",
            "add",
            "call",
            "few-search",
            "host"
        ]
    );
    let search = tool(&listing, "store-search");
    assert_eq!(search["description"], "Search the store.");
    assert_eq!(search["category"], "data");
    assert_eq!(
        search["input_schema"]["properties"],
        json!({
            "query": { "type": "string", "description": "what to look for" },
            "limit": { "type": "integer", "default": 5 },
        })
    );
    assert_eq!(tool(&listing, "add")["description"], "Adds");
    assert_eq!(tool(&listing, "call")["description"], "Repeats.");
    let host = tool(&listing, "host");
    assert_eq!(host["description"], "Told by the instance");
    assert_eq!(host["input_schema"]["properties"], json!({ "q": { "type": "string" } }));
}

#[test]
fn methods_are_called_on_an_instance_that_got_its_configuration() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = room(ENTRIES);
    let found = run(&room, ["call", "store-search", "query=milk", "limit=2", "--json"]);
    let found = found.exits(0).json();
    assert_eq!(found["output"], json!({ "query": "milk", "limit": 2, "url": "mem:", "count": 1 }));
    let later = run(&room, ["call", "store-later", "what=x", "--session", "s"]);
    assert_eq!(later.exits(0).out(), "pxs\n");
    assert_eq!(run(&room, ["call", "store-double", "n=4"]).exits(0).out(), "8\n");
    assert_eq!(run(&room, ["call", "add", "a=4"]).exits(0).out(), "5\n");
    assert_eq!(run(&room, ["call", "call", "text=ab"]).exits(0).out(), "abab\n");
    assert_eq!(run(&room, ["call", "host", "q=x"]).exits(0).out(), "x\n");
    run(&room, ["call", "store-search"]).exits(2).says(&["query"]);
    assert!(room.inhabitants().is_empty(), "{:?}", room.inhabitants());
}

#[test]
fn an_instance_lives_as_long_as_its_worker() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = room(
        "tools:\n  - { name: store, module: shop, class: Store, config: { settings: { url: x } } }\n  - { name: twice, steps: [{ id: a, tool: store-search, args: { query: a } }, { id: b, tool: store-search, args: { query: b } }], result: '{b.output}' }\n",
    );
    let second = run(&room, ["call", "twice", "--json"]).exits(0).json();
    assert_eq!(second["output"]["count"], 2, "{second}");
}

#[test]
fn what_a_constructor_prints_is_a_log_and_no_answer() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = room("tools: [{ name: loud, module: shop.counting, class: Loud }]");
    let called = run(&room, ["call", "loud", "-v"]);
    assert_eq!(called.exits(0).out(), "right\n");
    called.says(&["forged"]);
}

/// The whole of stderr for a call of the one tool of such an entry.
fn failure(entry: &str, code: i32) -> String {
    let room = room(&format!("tools:\n  - {{ name: t, {entry} }}\n"));
    run(&room, ["call", "t"]).exits(code).err()
}

#[test]
fn a_constructor_that_fails_is_shown_with_its_line_and_its_words() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let broken = failure("module: shop.counting, class: Broken", 4);
    for words in [
        "shop/counting.py:37: the constructor of 'shop.counting.Broken' failed: FileNotFoundError",
        "No such file or directory: '/nowhere/none'",
        "its arguments come from 'config' in the entry",
    ] {
        assert!(broken.contains(words), "{broken}");
    }
}

#[test]
fn a_constructor_that_does_not_return_is_given_up() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let stuck = failure("module: shop.counting, class: Stuck, start_timeout: 300ms", 7);
    for words in [
        "the constructor of 'shop.counting.Stuck' did not return within 0.3 s",
        "it is at",
        "shop/counting.py:32",
        "'start_timeout'",
    ] {
        assert!(stuck.contains(words), "{stuck}");
    }
}

#[test]
fn a_class_that_cannot_be_meant_is_refused_with_its_place() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    for (entry, words) in [
        ("module: shop.counting, class: Operation", "is abstract: it leaves run"),
        ("module: shop.counting, class: Operation", "such as Adder of shop.counting"),
        ("module: shop.counting, class: Added", "did you mean 'Adder'?"),
        ("module: shop.counting, class: threading", "is not a class but a module"),
        ("module: shop.counting, class: Empty", "has neither 'run' nor a public method"),
        ("module: shop, class: Store", "missing a required argument: 'settings'"),
        ("module: shop, class: Store, config: { setings: 1 }", "settings (required), prefix=''"),
        (
            "module: shop, class: Store, config: { settings: { url: x } }, methods: [serch]",
            "did you mean 'search'?",
        ),
        ("module: shop.counting, class: Adder, config: { x: 1 }", "leave 'config' out"),
    ] {
        let refused = failure(entry, 9);
        assert!(refused.contains(words), "{entry}: {words}\n{refused}");
        assert!(refused.contains("tools.yaml:2:"), "{entry}\n{refused}");
    }
}

#[test]
fn a_project_names_its_classes_before_they_are_loaded() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = room(ENTRIES);
    let refused = room.toolhost(["call", "store-double", "n=1"]).check();
    refused.exits(6).says(&["the class shop.Store"]);
    let trusted = room.toolhost(["--trust", "call", "store-double", "n=1"]).check();
    assert_eq!(trusted.exits(0).out(), "2\n");
}
