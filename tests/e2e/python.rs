//! Python functions as tools, from the command line.

use serde_json::{Value, json};

use crate::support::{Finished, Sandbox};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/python/tools.yaml");

/// The documents' entry, and what it names.
const QUERY: &str = r#"
tools:
  - name: my_database_query
    description: "Query the application database"
    module: myapp.tools.database
    function: query_handler
    parameters:
      type: object
      properties:
        sql:
          type: string
          description: "SQL query to execute"
      required: [sql]
"#;

const HANDLER: &str = r#"
from dataclasses import dataclass, field
from typing import Any

@dataclass
class ToolResult:
    success: bool = True
    output: Any = None
    error: Any = None
    metadata: dict = field(default_factory=dict)

async def query_handler(input, context):
    print("looking")
    if not input["sql"].startswith("select"):
        return ToolResult(success=False, error="only select is allowed")
    return ToolResult(output={"sql": input["sql"], "session": context.session_id})
"#;

const CALCULATOR: &str = r"
tools:
  - name: calculator
    description: Perform mathematical calculations
    module: src.tools.core.calculator_tool
    function: calculate
    parameters_schema: { type: object, properties: { expression: { type: string } }, required: [expression] }
";

fn of(finished: &Finished) -> Value {
    serde_json::from_str(&finished.out()).unwrap_or_else(|why| panic!("{why}\n{finished}"))
}

#[test]
fn the_entry_of_a_handler_runs_unchanged() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    room.file("tools.yaml", QUERY).file("myapp/tools/database.py", HANDLER);
    let call = |sql| {
        room.toolhost(["--tools", "tools.yaml", "call", "my_database_query", sql, "--json"]).check()
    };
    let good = call("sql=select 1");
    good.exits(0);
    assert_eq!(of(&good)["output"]["sql"], "select 1", "{good}");
    let refused = call("sql=drop table x");
    refused.exits(3);
    assert_eq!(of(&refused)["error"]["message"], "only select is allowed", "{refused}");
    assert!(room.inhabitants().is_empty(), "{:?}", room.inhabitants());
}

#[test]
fn a_module_that_is_there_wins_over_the_builtin_and_inspect_says_which_ran() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    room.file("tools.yaml", CALCULATOR);
    let run = |words: [&'static str; 2]| {
        let words = ["--tools", "tools.yaml"]
            .into_iter()
            .chain(words)
            .chain((words[0] == "call").then_some("expression=6*7"));
        let finished = room.toolhost(words).check();
        finished.exits(0);
        finished.out()
    };
    assert_eq!(run(["call", "calculator"]), "42\n");
    assert!(run(["inspect", "calculator"]).contains("internal builtin"));
    room.file(
        "src/tools/core/calculator_tool.py",
        "def calculate(expression):\n    return 'mine'\n",
    );
    assert_eq!(run(["call", "calculator"]), "mine\n");
    let page = run(["inspect", "calculator"]);
    assert!(page.contains("internal python") && page.contains("calculator_tool.py"), "{page}");
}

#[test]
fn the_typed_functions_of_a_module_are_tools() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    room.file("tools.yaml", "tools: [{ name: other, module: builtin.echo }]").file(
        "texts.py",
        "def shout(text: str, times: int = 1) -> str:\n    '''Shout.'''\n    return text.upper() * times\n\ndef untyped(x):\n    return x\n",
    );
    let listed = room.toolhost(["--tools-module", "texts", "list", "-o", "names"]).check();
    listed.exits(0);
    assert_eq!(listed.out(), "shout\n");
    for option in ["--tools-module", "--host-tools-module"] {
        let called =
            room.toolhost([option, "texts", "call", "shout", "text=ab", "times=2"]).check();
        called.exits(0);
        assert_eq!(called.out(), "ABAB\n");
    }
    let added = room.toolhost(["--host-tools-module", "texts", "list", "-o", "names"]).check();
    assert!(added.exits(0).out().lines().eq(["other", "shout"]), "{added}");
    let wrong = room.toolhost(["--tools-module", "texts", "call", "shout", "txt=ab"]).check();
    wrong.exits(2);
    assert!(wrong.err().contains("did you mean 'text'?"), "{wrong}");
    for command in [&["call", "shout"][..], &["list"], &["list", "--source", "internal"]] {
        let words = ["--tools-module", "nothing.here"].iter().chain(command).copied();
        let missing = room.toolhost(words).check();
        missing.exits(9);
        assert!(missing.err().contains("there is no module 'nothing.here'"), "{missing}");
        assert!(!missing.err().contains("{\"tools\""), "{missing}");
    }
    let words = ["--tools", "tools.yaml", "--tools-module", "nothing.here", "list", "-o", "names"];
    let some = room.toolhost(words).check();
    some.exits(11);
    assert!(some.err().contains("there is no module 'nothing.here'"), "{some}");
    assert!(some.out().contains("other\n"), "{some}");
}

#[test]
fn a_function_that_hangs_is_ended_with_its_worker() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    room.file(
        "tools.yaml",
        "tools: [{ name: hang, module: slow, function: hang, timeout: 300ms, parameters: { type: object } }]",
    )
    .file("slow.py", "import subprocess\ndef hang():\n    subprocess.run(['sleep', '600'])\n");
    // What a person has to wait for is the start of Python, which belongs to the call.
    let finished = room.toolhost(["--tools", "tools.yaml", "call", "hang"]).check();
    finished.exits(7);
    assert!(room.inhabitants().is_empty(), "{:?}", room.inhabitants());
}

#[test]
fn trust_ends_when_the_code_changes() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    room.file("tools.yaml", QUERY).file("myapp/tools/database.py", HANDLER);
    let call = || room.toolhost(["call", "my_database_query", "sql=select 1"]).check();
    let refused = call();
    refused.exits(6);
    for line in ["starts python3", "runs myapp.tools.database.query_handler"] {
        assert!(refused.err().contains(line), "{refused}");
    }
    room.toolhost(["trust", "--yes"]).check().exits(0);
    call().exits(0);
    // Another file of the package is enough.
    room.file("myapp/__init__.py", "print('new')\n");
    call().exits(6);
    room.toolhost(["trust"]).check().exits(6).says(&["myapp/__init__.py"]);
    room.toolhost(["trust", "--yes"]).check().exits(0).says(&["myapp/__init__.py", "trusted"]);
    call().exits(0);
}

#[test]
fn the_examples_run() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    let run = |words: &[&'static str]| {
        let words = ["--tools", EXAMPLES].into_iter().chain(words.iter().copied());
        let finished = room.toolhost(words).check();
        finished.exits(0);
        finished
    };
    let listed = run(&["list", "--json"]);
    let tools = of(&listed)["tools"].as_array().unwrap().clone();
    assert_eq!(tools.len(), 7, "{listed}");
    assert!(tools.iter().all(|tool| tool["status"] == "live"), "{listed}");
    assert_eq!(tools[0]["input_schema"]["required"], json!(["text"]), "{listed}");
    assert_eq!(
        run(&["call", "summarize", "text=one two three", "max_words=2"]).out(),
        "one two…\n"
    );
    let counted = run(&["call", "count-words", "text=a b a", "least=2", "--json"]);
    assert_eq!(of(&counted)["output"], json!([{ "word": "a", "count": 2 }]), "{counted}");
    let sql = "sql=select name from planets where moons > 1 order by name";
    let queried = run(&["call", "my_database_query", sql, "--json"]);
    assert_eq!(of(&queried)["output"], json!([["Jupiter"], ["Mars"]]), "{queried}");
    assert_eq!(run(&["call", "shorten", "text=one two three", "width=9"]).out(), "one [...]\n");
    let found = run(&["call", "shelf-find", "word=mill", "--json"]);
    assert_eq!(of(&found)["output"], json!(["The Mill on the Floss"]), "{found}");
    let lent = run(&["call", "lend", "title=Middlemarch", "days=7", "--yes", "--json"]);
    assert_eq!(of(&lent)["result"]["metadata"], json!({ "days": 7 }), "{lent}");
}

#[test]
fn a_function_that_tells_its_own_schema_contacts_no_server() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    room.file("tools.yaml", "tools: [{ name: shout, module: texts, function: shout }]")
        .file("texts.py", "def shout(text: str):\n    return text.upper()\n")
        .file("mcp.yaml", "mcp_servers: { other: { command: [touch, contacted] } }");
    let files = ["--tools", "tools.yaml", "--mcp", "mcp.yaml"];
    let called = room.toolhost(files.into_iter().chain(["call", "shout", "text=ab"])).check();
    called.exits(0);
    assert_eq!(called.out(), "AB\n");
    assert!(!room.path("work/contacted").exists());
    // A name that no file declares may be the server's.
    room.toolhost(files.into_iter().chain(["call", "whisper"])).check().exits(2).says(&["'other'"]);
    assert!(room.path("work/contacted").exists());
}

/// Whether this machine can confine files and the network.
fn can_confine() -> bool {
    let room = Sandbox::new();
    room.file("tools.yaml", "tools: [{ name: t, command: [\"true\"], sandbox: auto }]\n");
    let tried = room.toolhost(["--tools", "tools.yaml", "call", "t"]).check();
    if tried.code != Some(0) {
        crate::support::left_out(&format!("nothing is confined here: {}", tried.err().trim()));
    }
    tried.code == Some(0)
}

/// What a function tries that its sandbox is to keep it from.
const PRYING: &str = r"
import asyncio, os, socket, subprocess, tempfile

def attempt(work):
    try:
        return work()
    except OSError as error:
        return type(error).__name__

def pry(secret: str, port: int) -> dict:
    def temporary():
        with tempfile.NamedTemporaryFile('w+') as file:
            file.write('kept')
            file.seek(0)
            return file.read()
    return {
        'secret': attempt(lambda: open(secret).read()),
        'network': attempt(lambda: str(socket.create_connection(('127.0.0.1', port), 5))),
        'beside': attempt(lambda: open('made', 'w').close()),
        'temporary': attempt(temporary),
        'program': subprocess.run(['echo', 'ran'], capture_output=True, text=True).stdout,
        'home': os.path.isdir(os.environ['HOME']),
    }

async def wait(text: str) -> str:
    await asyncio.sleep(0)
    return await asyncio.to_thread(text.upper)

def fill() -> int:
    return len(b'x' * (200 << 20))
";

#[test]
fn a_sandboxed_function_reaches_neither_secrets_nor_the_network() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    if !can_confine() {
        return;
    }
    let room = Sandbox::new();
    std::fs::write(room.path("home/secret"), "s3cret").unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    room.file("prying.py", PRYING).file(
        "tools.yaml",
        "tools:
  - { name: pry, module: prying, function: pry, safety: sandboxed }
  - { name: wait, module: prying, function: wait, sandbox: { read: [./other] } }
  - { name: fill, module: prying, function: fill, sandbox: { memory: 128MiB } }
",
    );
    std::fs::create_dir(room.path("work/other")).unwrap();
    let run = |words: &[&str]| {
        room.toolhost(["--tools", "tools.yaml"].iter().chain(words).copied()).check()
    };
    let secret = format!("secret={}", room.path("home/secret").display());
    let pried = run(&["call", "pry", &secret, &format!("port={port}"), "--json"]);
    pried.exits(0);
    let output = &of(&pried)["output"];
    for attempt in ["secret", "network", "beside"] {
        assert!(output[attempt].as_str().is_some_and(|text| text.ends_with("Error")), "{pried}");
    }
    let rest = [&output["temporary"], &output["program"], &output["home"]];
    assert_eq!(json!(rest), json!(["kept", "ran\n", true]), "{pried}");
    // What it cannot work without is there, whatever else the entry names.
    let waited = run(&["call", "wait", "text=ab"]);
    waited.exits(0);
    assert_eq!(waited.out(), "AB\n");
    let filled = run(&["call", "fill"]);
    filled.exits(3);
    assert!(filled.err().contains("MemoryError (memory limit of 128 MiB)"), "{filled}");
    let page = run(&["inspect", "pry"]).out();
    assert!(page.contains("sandboxed") && page.contains("no network"), "{page}");
    assert!(!page.contains("with your own permissions"), "{page}");
    assert!(room.inhabitants().is_empty(), "{:?}", room.inhabitants());
}

#[test]
fn a_sandboxed_function_runs_in_a_virtual_environment() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    if !can_confine() {
        return;
    }
    let room = Sandbox::new();
    let made = std::process::Command::new("python3")
        .args(["-m", "venv", "--without-pip", "--symlinks"])
        .arg(room.path("work/.venv"))
        .status();
    assert!(made.unwrap().success());
    room.file("where.py", "import sys, json, ssl\ndef prefix() -> str:\n    return sys.prefix\n")
        .file(
            "tools.yaml",
            "tools: [{ name: prefix, module: where, function: prefix, safety: sandboxed }]\n",
        );
    let called = room.toolhost(["--tools", "tools.yaml", "call", "prefix"]).check();
    called.exits(0);
    assert!(called.out().trim().ends_with("work/.venv"), "{called}");
}

#[test]
fn a_root_that_holds_the_home_is_not_given_away() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    if !can_confine() {
        return;
    }
    let room = Sandbox::new();
    room.file("m.py", "def f() -> int:\n    return 1\n").file(
        "tools.yaml",
        "tools: [{ name: f, module: m, function: f, root: .., safety: sandboxed }]\n",
    );
    let refused = room.toolhost(["--tools", "tools.yaml", "call", "f"]).check();
    refused.exits(6);
    assert!(refused.err().contains("contains your home"), "{refused}");
}
