"""The dialects against the SDKs; started by `.ci/dialects` in an environment that has them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Callable

import anthropic
import jsonschema
import openai
from anthropic.types import MessageParam, ToolParam
from google import genai
from google.genai import types as gemini
from mcp import types as mcp
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionToolMessageParam
from openai.types.responses import FunctionToolParam
from openai.types.responses.response_input_item_param import FunctionCallOutput
from pydantic import TypeAdapter

from . import difficult

PREFIX = "d-"


class Model:
    """A scripted model over HTTP: keeps what it is sent, and answers with what it is told."""

    def __init__(self) -> None:
        self.requests: list[dict] = []
        self.response: dict = {}
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # noqa: N802
                body = self.rfile.read(int(self.headers["content-length"]))
                model.requests.append(json.loads(body))
                answer = json.dumps(model.response).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class Toolhost:
    """The program, with a home of its own and the difficult server."""

    def __init__(self, binary: str, scratch: Path) -> None:
        self.binary, self.config = binary, scratch / "mcp.json"
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(scratch), "LANG": "C.UTF-8"}
        command = {"command": sys.executable, "args": [difficult.__file__]}
        self.config.write_text(json.dumps({"mcpServers": {PREFIX[:-1]: command}}))

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.binary, "--mcp", str(self.config), *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=90,
            env=self.environment,
        )

    def export(self, dialect: str) -> list[dict]:
        ran = self.run("export", "--format", dialect)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    def dispatch(self, dialect: str, response: str) -> list[dict]:
        ran = self.run("dispatch", "--format", dialect, stdin=response)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)


def fits(kind: Any, value: Any) -> None:
    """Whether a value is of an SDK's type, and has no field that the type does not know."""
    adapter = TypeAdapter(kind)
    validated = adapter.dump_python(adapter.validate_python(value), mode="json", exclude_unset=True)
    assert validated == value, f"{validated}\nis what {kind} makes of\n{value}"


def schema_is_taken(name: str, schema: dict, property_pattern: str = "") -> None:
    """What providers check of a schema beyond the types of their SDKs."""
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object", schema
    assert not {"oneOf", "anyOf", "allOf", "enum", "not"} & schema.keys(), schema

    def walk(inner: Any, is_properties: bool = False) -> None:
        if isinstance(inner, list):
            for item in inner:
                walk(item)
        if not isinstance(inner, dict):
            return
        for key, value in inner.items():
            if is_properties and property_pattern:
                assert re.fullmatch(property_pattern, key), f"{name}: property {key}"
            if key not in ("enum", "default", "const"):
                walk(value, key == "properties" and not is_properties)
        if is_properties:
            return
        types = inner.get("type", [])
        if "array" in ([types] if isinstance(types, str) else types):
            assert "items" in inner, f"{name}: array without items"
        if isinstance(inner.get("$ref"), str):
            found: Any = schema
            assert inner["$ref"].startswith("#/"), inner
            for step in inner["$ref"][2:].split("/"):
                found = found[step]

    walk(schema)


class Dialect:
    """What is asked of one SDK."""

    name: str
    tool_name = r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}"
    property_name = ""

    def definition(self, tool: dict) -> tuple[str, dict]:
        """Checks a definition against the type of the SDK; gives its name and schema."""
        raise NotImplementedError

    def response(self, calls: list[tuple[str, str, dict]]) -> dict:
        """A response of the model that asks for calls, each an id, a name and arguments."""
        raise NotImplementedError

    def ask(self, url: str, tools: list[dict], answers: list[dict]) -> tuple[str, Any]:
        """Sends tools and answers by the SDK's client; gives its dump of the response, and the
        tools as they were sent."""
        raise NotImplementedError

    def sent(self, request: dict) -> tuple[Any, Any]:
        """The tools and the last messages of a request as it arrived."""
        raise NotImplementedError

    def texts(self, answers: list[dict]) -> dict[str, str]:
        """Checks answers against the type of the SDK; gives their texts by id."""
        raise NotImplementedError


class OpenAiChat(Dialect):
    name = "openai"

    def definition(self, tool: dict) -> tuple[str, dict]:
        fits(ChatCompletionFunctionToolParam, tool)
        return tool["function"]["name"], tool["function"]["parameters"]

    def response(self, calls: list[tuple[str, str, dict]]) -> dict:
        made = [
            {"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
            for i, n, a in calls
        ]
        message = {"role": "assistant", "content": None, "refusal": None, "tool_calls": made}
        choice = {"index": 0, "finish_reason": "tool_calls", "logprobs": None, "message": message}
        return {"id": "r", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}

    def ask(self, url: str, tools: list[dict], answers: list[dict]) -> str:
        client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
        messages = [{"role": "user", "content": "go"}, *answers]
        response = client.chat.completions.create(model="m", messages=messages, tools=tools)
        assert response.choices[0].message.tool_calls
        return response.model_dump_json()

    def sent(self, request: dict) -> tuple[Any, Any]:
        return request["tools"], request["messages"][1:]

    def texts(self, answers: list[dict]) -> dict[str, str]:
        for answer in answers:
            fits(ChatCompletionToolMessageParam, answer)
        return {answer["tool_call_id"]: answer["content"] for answer in answers}


class OpenAiResponses(Dialect):
    name = "openai-responses"

    def definition(self, tool: dict) -> tuple[str, dict]:
        fits(FunctionToolParam, tool)
        return tool["name"], tool["parameters"]

    def response(self, calls: list[tuple[str, str, dict]]) -> dict:
        reasoning = {"type": "reasoning", "id": "rs", "summary": []}
        made = [
            {"type": "function_call", "id": f"fc_{i}", "call_id": i, "name": n, "status": "completed",
             "arguments": json.dumps(a)}
            for i, n, a in calls
        ]  # fmt: skip
        return {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed",
                "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
                "output": [reasoning, *made]}  # fmt: skip

    def ask(self, url: str, tools: list[dict], answers: list[dict]) -> str:
        client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
        messages = [{"role": "user", "content": "go"}, *answers]
        return client.responses.create(model="m", input=messages, tools=tools).model_dump_json()

    def sent(self, request: dict) -> tuple[Any, Any]:
        return request["tools"], request["input"][1:]

    def texts(self, answers: list[dict]) -> dict[str, str]:
        for answer in answers:
            fits(FunctionCallOutput, answer)
        return {answer["call_id"]: answer["output"] for answer in answers}


class Anthropic(Dialect):
    name = "anthropic"
    tool_name = r"[a-zA-Z0-9_-]{1,128}"
    property_name = r"[a-zA-Z0-9_.-]{1,64}"

    def definition(self, tool: dict) -> tuple[str, dict]:
        fits(ToolParam, tool)
        return tool["name"], tool["input_schema"]

    def response(self, calls: list[tuple[str, str, dict]]) -> dict:
        text = {"type": "text", "text": "I'll look.", "citations": None}
        made = [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a in calls]
        return {"id": "r", "type": "message", "role": "assistant", "model": "m",
                "stop_reason": "tool_use", "stop_sequence": None, "content": [text, *made],
                "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip

    def ask(self, url: str, tools: list[dict], answers: list[dict]) -> str:
        client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
        messages = [{"role": "user", "content": "go"}, *answers]
        response = client.messages.create(model="m", max_tokens=9, messages=messages, tools=tools)
        assert response.stop_reason == "tool_use"
        return response.model_dump_json()

    def sent(self, request: dict) -> tuple[Any, Any]:
        return request["tools"], request["messages"][1:]

    def texts(self, answers: list[dict]) -> dict[str, str]:
        for answer in answers:
            fits(MessageParam, answer)
        assert len(answers) == 1, "one message holds all results"
        return {b["tool_use_id"]: b["content"][0]["text"] for b in answers[0]["content"]}


class Gemini(Dialect):
    name = "gemini"
    tool_name = r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"

    def definition(self, tool: dict) -> tuple[str, dict]:
        gemini.FunctionDeclaration.model_validate(tool)
        schema = tool["parametersJsonSchema"]
        return tool["name"], schema

    def response(self, calls: list[tuple[str, str, dict]]) -> dict:
        made = [{"functionCall": {"id": i, "name": n, "args": a}} for i, n, a in calls]
        content = {"role": "model", "parts": [{"text": "hm"}, *made]}
        return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}

    def ask(self, url: str, tools: list[dict], answers: list[dict]) -> str:
        client = genai.Client(api_key="none", http_options={"base_url": url})
        contents: list[Any] = [gemini.Content(role="user", parts=[gemini.Part(text="go")])]
        contents += [gemini.Content.model_validate(answer) for answer in answers]
        config = gemini.GenerateContentConfig(tools=[gemini.Tool(function_declarations=tools)])
        response = client.models.generate_content(model="m", contents=contents, config=config)
        assert response.function_calls
        return response.model_dump_json()

    def sent(self, request: dict) -> tuple[Any, Any]:
        # The API takes both cases; the SDK keeps that of its own fields.
        text = json.dumps(request["tools"][0]["functionDeclarations"])
        text = text.replace('"parameters_json_schema":', '"parametersJsonSchema":')
        return json.loads(text), request["contents"][1:]

    def texts(self, answers: list[dict]) -> dict[str, str]:
        parts = [gemini.Content.model_validate(answer) for answer in answers][0].parts or []
        responses = [part.function_response for part in parts]
        return {r.id: r.response.get("output", r.response.get("error")) for r in responses}


MALFORMED = [
    # Arguments that do not parse, of another type, cut short, with a number that no integer holds.
    *['{"city": Oslo', "[1]", '"text"', '{"a": {"b": [', "null", "", '{"n": 1e400}', '{"a":1,"a":2}'],
    "[" * 5000,
    "{" * 5000,
    '{"text": "' + "\ud83e".encode("utf-16", "surrogatepass").decode("utf-16", "replace") + '"}',
]


def check_dialect(dialect: Dialect, toolhost: Toolhost, model: Model) -> None:
    tools = toolhost.export(dialect.name)
    assert len(tools) == len(difficult.TOOLS), [tool.get("name") for tool in tools]
    names: dict[str, str] = {}
    for tool, own in zip(tools, difficult.TOOLS):
        name, schema = dialect.definition(tool)
        assert re.fullmatch(dialect.tool_name, name), name
        assert name not in names, f"two tools are named {name}"
        schema_is_taken(name, schema, dialect.property_name)
        names[name] = own
    # The model writes the names it was given; what those are in a schema is found by place.
    calls = []
    for (name, own), tool in zip(names.items(), tools):
        schema = dialect.definition(tool)[1]
        calls.append((f"id {name}", name, renamed(difficult.TOOLS[own], schema)))
    model.response = dialect.response(calls)
    dump = dialect.ask(model.url, tools, [])
    arrived, _ = dialect.sent(model.requests[-1])
    assert arrived == tools, "the SDK changed the tools on their way"
    answers = toolhost.dispatch(dialect.name, dump)
    texts = dialect.texts(answers)
    for name, own in names.items():
        expected = [own, difficult.TOOLS[own][1]]
        assert json.loads(texts[f"id {name}"]) == expected, f"{name}: {texts[f'id {name}']}"
    dialect.ask(model.url, tools, answers)
    _, arrived = dialect.sent(model.requests[-1])
    assert arrived == answers, f"the SDK changed the answers on their way: {arrived}\n{answers}"


def renamed(tool: tuple[dict, dict], schema: dict) -> dict:
    """A call's arguments with the names that a schema has in the place of the tool's own."""
    own, arguments = tool

    def names(value: Any, own: dict, given: dict) -> Any:
        if not isinstance(value, dict):
            return value
        pairs = dict(zip(own.get("properties", {}), given.get("properties", {})))
        return {
            pairs.get(key, key): names(
                inner,
                own.get("properties", {}).get(key, {}),
                given.get("properties", {}).get(pairs.get(key, key), {}),
            )
            for key, inner in value.items()
        }

    return names(arguments, own, schema)


def check_malformed(dialect: Dialect, toolhost: Toolhost, _: Model) -> None:
    # Each call has its answer, whatever the model wrote as its arguments.
    response = dialect.response([(f"id {n}", "d-formats", {}) for n in range(len(MALFORMED))])
    text = json.dumps(response)
    if dialect.name.startswith("openai"):
        for written in MALFORMED:
            text = text.replace('"arguments": "{}"', f'"arguments": {json.dumps(written)}', 1)
        assert '"arguments": "{}"' not in text
    else:
        for written in MALFORMED:
            key = "input" if dialect.name == "anthropic" else "args"
            text = text.replace(f'"{key}": {{}}', f'"{key}": {json.dumps(written)}', 1)
    answers = dialect.texts(toolhost.dispatch(dialect.name, text))
    assert len(answers) == len(MALFORMED), answers
    assert "not a JSON object" in answers["id 1"], answers["id 1"]
    # A response that is none is refused with what is missing, as misuse.
    for other in ["", "{", "null", "[]x", '{"error": {"message": "overloaded"}}', '"text"', "7"]:
        ran = toolhost.run("dispatch", "--format", dialect.name, stdin=other)
        assert ran.returncode == 2 and not ran.stdout, f"{other!r}: {ran}"


def check_mcp(toolhost: Toolhost) -> None:
    tools = toolhost.export("mcp")
    for tool, own in zip(tools, difficult.TOOLS):
        listed = mcp.Tool.model_validate(tool)
        assert listed.name == f"{PREFIX}{own}", listed.name
        assert listed.input_schema["type"] == "object"
        again = listed.model_dump(mode="json", by_alias=True, exclude_unset=True)
        assert again == tool, again


def main() -> int:
    passed, failed = 0, 0

    def check(name: str, run: Callable[[], None]) -> None:
        nonlocal passed, failed
        try:
            run()
            passed += 1
            print(f"ok      {name}")
        except Exception as error:  # noqa: BLE001
            failed += 1
            print(f"FAILED  {name}: {type(error).__name__}: {str(error)[:2000]}")

    with tempfile.TemporaryDirectory(prefix="toolhost-dialects-") as scratch:
        toolhost, model = Toolhost(sys.argv[1], Path(scratch)), Model()
        for dialect in [OpenAiChat(), OpenAiResponses(), Anthropic(), Gemini()]:
            check(f"{dialect.name}: tools, calls, answers",
                  lambda: check_dialect(dialect, toolhost, model))  # fmt: skip
            check(f"{dialect.name}: malformed responses",
                  lambda: check_malformed(dialect, toolhost, model))  # fmt: skip
        check("mcp: tools", lambda: check_mcp(toolhost))
    print(f"dialects: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
