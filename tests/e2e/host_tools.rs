//! Definitions of the documents: `HostToolDefinition` objects, and handlers with a schema beside.

use serde_json::{Value, json};

use crate::support::{Finished, Sandbox};

/// A module that declares its tools as the documents do.
const TOOLS: &str = r#"
import asyncio
from typing import Any

from amplifier_app_runtime.host_tools import (
    HostToolRegistry,
    HostToolDefinition,
    ToolContext,
    ToolResult,
    ToolScope,
)

# Define a custom tool
async def my_tool_handler(
    input: dict[str, Any],
    context: ToolContext
) -> ToolResult:
    if input["query"] == "nothing":
        return ToolResult(success=False, error="no rows for that", metadata={"rows": 0})
    return ToolResult(success=True, output=input["query"].upper(), metadata={"rows": 3})

def in_step(input, context):
    assert isinstance(context, ToolContext)
    return {"success": True, "output": context.session_id, "metadata": {"step": 1}}

def helper(text: str) -> str:
    return text

# Register it
registry = HostToolRegistry()
asyncio.run(registry.register(HostToolDefinition(
    name="my_custom_tool",
    description="Does something useful",
    parameters={
        "type": "object",
        "properties": {
            "query": {"type": "string"}
        },
        "required": ["query"]
    },
    handler=my_tool_handler,
    category="data",
    timeout=7.5,
)))

TOOLS = [
    HostToolDefinition("in_step", "Tells its session", {"type": "object"}, in_step,
                       scope=ToolScope.SESSION),
    HostToolDefinition(name="guarded", description="Asks first", parameters={"type": "object"},
                       handler=lambda input, context: "ran", requires_approval=True),
]
"#;

/// The same without the types of the documents, and a handler with its schema beside it.
const DUCKS: &str = r#"
class Definition:
    def __init__(self, **said):
        self.__dict__.update(said)

def handler(input, context):
    return input["n"] + 1

next_number = Definition(name="next_number", description="Counts", handler=handler,
                         parameters={"type": "object", "properties": {"n": {"type": "integer"}}},
                         speed="warp")

def beside(input, context):
    """Says what it got."""
    return input

beside.parameters = {"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}}}
"#;

fn module(room: &Sandbox, words: &[&'static str]) -> Finished {
    room.toolhost(["--tools-module", "myapp.tools"].into_iter().chain(words.iter().copied()))
        .check()
}

fn tool(listing: &Value, name: &str) -> Value {
    let tools = listing["tools"].as_array().unwrap();
    tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{listing}")).clone()
}

#[test]
fn definitions_of_a_module_are_listed_as_they_say() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    room.file("myapp/tools.py", TOOLS);
    let listing = module(&room, &["list", "--json"]).exits(0).json();
    let names: Vec<_> =
        listing["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["my_custom_tool", "in_step", "guarded"], "helpers are no tools");
    let custom = tool(&listing, "my_custom_tool");
    assert_eq!(custom["description"], "Does something useful");
    assert_eq!(custom["input_schema"]["required"], json!(["query"]));
    assert_eq!((&custom["category"], &custom["timeout_ms"]), (&json!("data"), &json!(7500.0)));
    assert_eq!(tool(&listing, "in_step")["scope"], "session");
    assert_eq!(tool(&listing, "guarded")["requires_approval"], true);
}

#[test]
fn a_registry_makes_the_tools_of_a_session() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    room.file(
        "sessions.py",
        r#"
import asyncio
from amplifier_app_runtime.host_tools import (
    HostTool, HostToolDefinition, HostToolRegistry, ToolContext, ToolResult)

async def where(input, context):
    return ToolResult(output=context.session_id + context.cwd)

async def late(input, context):
    await asyncio.sleep(60)

def broken(input, context):
    raise ValueError("no")

async def _run():
    registry = HostToolRegistry()
    for name, handler in [("where", where), ("late", late), ("broken", broken)]:
        schema = {"type": "object"}
        await registry.register(HostToolDefinition(name, "", schema, handler, timeout=0.1))
    context = ToolContext(session_id="test", cwd="/tmp")
    tools = registry.create_session_tools("test", context)
    assert all(isinstance(tool, HostTool) for tool in tools)
    assert tools[0].input_schema == tools[0].parameters == {"type": "object"}
    results = [await tool.execute({}) for tool in tools]
    return [[tool.name, result.success, result.output or result.error]
            for tool, result in zip(tools, results)]

def run() -> list:
    return asyncio.run(_run())
"#,
    );
    let words = ["--tools-module", "sessions", "call", "run", "--json"];
    let finished = room.toolhost(words).check();
    assert_eq!(
        finished.exits(0).json()["output"],
        json!([
            ["where", true, "test/tmp"],
            ["late", false, "Tool execution timed out after 0.1s"],
            ["broken", false, "no"]
        ]),
        "{finished}"
    );
}

#[test]
fn a_result_keeps_its_own_metadata_apart() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    room.file("myapp/tools.py", TOOLS);
    let good = module(&room, &["call", "my_custom_tool", "query=a", "--json"]).exits(0).json();
    assert_eq!((&good["output"], &good["success"]), (&json!("A"), &json!(true)));
    assert_eq!(good["result"]["metadata"], json!({ "rows": 3 }));
    assert!(good["metadata"]["call_id"].is_string() && good["metadata"]["rows"].is_null());
    let bad = module(&room, &["call", "my_custom_tool", "query=nothing", "--json"]);
    let bad = bad.exits(3).json();
    assert_eq!(bad["error"]["message"], "no rows for that");
    assert_eq!(bad["result"]["metadata"], json!({ "rows": 0 }));
    let dict = module(&room, &["call", "in_step", "--session", "blue", "--json"]).exits(0).json();
    assert_eq!(
        (&dict["output"], &dict["result"]),
        (&json!("blue"), &json!({ "metadata": { "step": 1 } }))
    );
    module(&room, &["call", "my_custom_tool"]).exits(2).says(&["query"]);
    module(&room, &["call", "guarded"]).exits(6);
    assert_eq!(module(&room, &["call", "guarded", "--yes"]).exits(0).out(), "ran\n");
}

#[test]
fn any_object_of_that_shape_and_a_schema_beside_a_handler_are_enough() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    room.file("ducks.py", DUCKS).file(
        "tools.yaml",
        "tools:\n  - { name: ducks, module: ducks }\n  - { name: colour, module: ducks, function: beside }\n  - { name: counting, module: ducks, function: next_number, timeout: 3s }\n",
    );
    let run = |words: &[&'static str]| {
        room.toolhost(["--tools", "tools.yaml"].into_iter().chain(words.iter().copied())).check()
    };
    let listing = run(&["list", "--json"]).exits(0).json();
    for name in ["beside", "next_number", "colour", "counting"] {
        tool(&listing, name);
    }
    let page = run(&["inspect", "next_number"]).exits(0).out();
    assert!(page.contains("'speed: \"warp\"', which is not one of"), "{page}");
    assert_eq!(tool(&listing, "counting")["description"], "Counts");
    assert_eq!(run(&["call", "counting", "n=1"]).exits(0).out(), "2\n");
    assert_eq!(run(&["call", "next_number", "n=4"]).exits(0).out(), "5\n");
    run(&["call", "beside", "colour=green"]).exits(2).says(&["red"]);
    let told = run(&["call", "colour", "colour=red", "--json"]).exits(0).json();
    assert_eq!(told["output"], json!({ "colour": "red" }));
}

#[test]
fn what_is_wrong_with_a_definition_is_said_and_the_others_work() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    room.file(
        "myapp/tools.py",
        "from toolhost import HostToolDefinition as D\n\
         good = D('good', 'Works', {'type': 'object'}, lambda input, context: 1)\n\
         bad = D('bad', 'Has no schema', ['query'], lambda input, context: 1)\n\
         worse = D('worse', 'Has no handler', {'type': 'object'}, 'myapp.handler')\n\
         again = D('good', 'Is there twice', {'type': 'object'}, lambda input, context: 2)\n",
    );
    let listed = module(&room, &["list"]);
    assert!(listed.exits(0).out().contains("good"), "{listed}");
    listed.says(&["bad: 'parameters' must be a dict that is a JSON Schema, found list"]);
    listed.says(&["worse: 'handler' must be a function of (input, context), found str"]);
    listed.says(&["good: the module defines it twice"]);
}
