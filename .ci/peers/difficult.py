"""Tools with names and schemas that providers of models have refused, and an MCP server of them.

Each tool has the arguments of a call that its schema allows. Run as a program, the module is that
server, over stdio; each tool answers with the arguments it got.
"""

from __future__ import annotations

import json
import sys

TREE = {
    "type": "object",
    "properties": {
        "value": {"type": "string"},
        "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
    },
    "required": ["value"],
}
SHAPES = [
    {"type": "object", "properties": {"circle": {"type": "number"}}, "required": ["circle"]},
    {"type": "object", "properties": {"square": {"type": "number"}}, "required": ["square"]},
]
NESTED = {"type": "array", "items": {"type": "array", "items": {"type": "array"}}}

TOOLS: dict[str, tuple[dict, dict]] = {
    "empty": ({}, {}),
    "no_arguments": ({"type": "object", "additionalProperties": False}, {}),
    "recursive": (
        {"type": "object", "properties": {"tree": {"$ref": "#/$defs/Tree"}}, "$defs": {"Tree": TREE}},
        {"tree": {"value": "a", "children": [{"value": "b"}]}},
    ),
    "reference_at_top": (
        {
            "$ref": "#/definitions/Arguments",
            "definitions": {
                "Arguments": {
                    "type": "object",
                    "properties": {"name": {"$ref": "#/definitions/Name", "description": "who"}},
                    "required": ["name"],
                },
                "Name": {"type": "string", "minLength": 1},
            },
        },
        {"name": "Ada"},
    ),
    "one_of_at_top": ({"type": "object", "oneOf": SHAPES}, {"circle": 1}),
    "any_of_at_top": ({"anyOf": SHAPES}, {"square": 2}),
    "all_of_at_top": ({"type": "object", "allOf": SHAPES}, {"circle": 1, "square": 2}),
    "union": (
        {
            "type": "object",
            "properties": {"shape": {"anyOf": [*SHAPES, {"type": "null"}]}, "kind": {"const": "x"}},
        },
        {"shape": {"circle": 1}, "kind": "x"},
    ),
    "unicode": (
        {
            "type": "object",
            "description": "größer 🦀",
            "properties": {
                "größe": {"type": "integer", "description": "高さ"},
                "filter[id]": {"type": "object", "properties": {"$top": {"type": "integer"}}},
            },
            "required": ["filter[id]"],
        },
        {"größe": 1, "filter[id]": {"$top": 2}},
    ),
    "long_property": (
        {"type": "object", "properties": {"p" * 80: {"type": "string"}}},
        {"p" * 80: "v"},
    ),
    "huge_enum": (
        {"type": "object", "properties": {"e": {"enum": [f"value {n}" for n in range(2000)]}}},
        {"e": "value 7"},
    ),
    "mixed_enum": ({"type": "object", "properties": {"e": {"enum": [1, "a", None, 2.5]}}}, {"e": 1}),
    "nested_arrays": ({"type": "object", "properties": {"a": NESTED}}, {"a": [[[1]]]}),
    "bare_array": (
        {"type": "object", "properties": {"a": {"type": "array"}, "b": {"type": ["array", "null"]}}},
        {"a": [1], "b": None},
    ),
    "tuple_of_draft_7": (
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "t": {"type": "array", "items": [{"type": "string"}], "additionalItems": False},
                "n": {"type": "number", "minimum": 0},
            },
        },
        {"t": ["a"], "n": 1},
    ),
    "exclusive_of_draft_4": (
        {"type": "object", "properties": {"n": {"minimum": 0, "exclusiveMinimum": True}}},
        {"n": 1},
    ),
    "boolean_schemas": ({"type": "object", "properties": {"a": True, "b": False}}, {"a": 1}),
    "formats": (
        {
            "type": "object",
            "properties": {
                f.replace("-", "_"): {"type": "string", "format": f}
                for f in ["date-time", "uri", "email", "uuid", "ipv6", "byte", "no-such-format"]
            },
        },
        {"email": "a@example.com"},
    ),
    "not_a_schema": ({"type": "object", "properties": {"a": {"type": "any"}}}, {}),
    "property_named_ref": (
        {"type": "object", "properties": {"$ref": {"type": "string"}, "type": {"type": "string"}}},
        {"type": "x"},
    ),
    "conditional": (
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "if": {"properties": {"a": {"const": 1}}},
            "then": {"required": ["a"]},
            "patternProperties": {"^x-": {"type": "string"}},
            "dependentRequired": {"a": ["b"]},
        },
        {"a": 1, "b": 2},
    ),
    "n" * 120: ({"type": "object"}, {}),
    "n" * 119 + "m": ({"type": "object"}, {}),
    "名前": ({"type": "object"}, {}),
    "dotted.name": ({"type": "object"}, {}),
    "9lives": ({"type": "object"}, {}),
}


def serve() -> None:
    """Answers what a legacy client asks, until its input ends."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        match message["method"]:
            case "initialize":
                answer["result"] = {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "difficult", "version": "1"},
                }
            case "tools/list":
                tools = TOOLS.items()
                answer["result"] = {
                    "tools": [{"name": n, "inputSchema": s} for n, (s, _) in tools]
                }
            case "tools/call":
                arguments = message["params"].get("arguments", {})
                text = json.dumps([message["params"]["name"], arguments], ensure_ascii=False)
                answer["result"] = {"content": [{"type": "text", "text": text}]}
            case _:
                answer["error"] = {"code": -32601, "message": "unknown"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
