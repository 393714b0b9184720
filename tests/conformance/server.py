"""The server that the official suite expects to find behind `toolhost serve`.

Speaks MCP on standard input and output, in the era that its word says: `legacy` (2025-11-25) or
`modern` (2026-07-28). Its tools, prompts and resources have the names and answers that the suite
documents. What it asks on the way it asks as its era does: by requests of its own, or by ending the
request with `input_required`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import sys
import threading
import time
from typing import Any, Callable, Generator

LEGACY, MODERN = "2025-11-25", "2026-07-28"
ERA = MODERN if sys.argv[1:] == ["modern"] else LEGACY
KEY = secrets.token_bytes(32)
META = "io.modelcontextprotocol/"
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8/5+hHgAHggJ/PchI7wAAAABJRU5ErkJggg=="
)
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA="

# What a handler yields: questions by their keys, a log line, or progress. It gets the answers.
Ask = dict[str, tuple[str, dict]]
Handler = Callable[["Request"], Generator[Any, dict, Any]]


class RpcError(Exception):
    """An error of the protocol."""

    def __init__(self, code: int, message: str, data: Any = None):
        super().__init__(message)
        self.body = {"code": code, "message": message, **({} if data is None else {"data": data})}


# ---- the wire -----------------------------------------------------------------------------------

writing = threading.Lock()
answers: dict[str, tuple[threading.Event, list]] = {}
subscriptions: dict[Any, dict] = {}
watched: set[str] = set()
extra_tools: list[str] = []
extra_prompts: list[str] = []


def send(message: dict) -> None:
    with writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def notify(method: str, params: dict | None = None) -> None:
    send({"method": method, "params": params or {}})


def announce(method: str, wanted: str) -> None:
    """Tells that a list changed: everyone, or those who subscribed to it."""
    if ERA == LEGACY:
        notify(method)
    for subscription, filter in subscriptions.items():
        if filter.get(wanted):
            notify(method, {"_meta": {META + "subscriptionId": subscription}})


class Request:
    """One request, while it is answered."""

    def __init__(self, message: dict):
        self.id, self.params = message["id"], message.get("params") or {}
        self.method = message["method"]
        self.meta = self.params.get("_meta") or {}
        self.arguments = self.params.get("arguments") or {}

    def offers(self, capability: str) -> bool:
        offered = self.meta.get(META + "clientCapabilities") if ERA == MODERN else client
        return capability in (offered or {})

    def run(self, handler: Handler) -> dict:
        """Drives a handler; what it asks is asked as the era has it."""
        known = self.state() if ERA == MODERN else {}
        given = self.params.get("inputResponses")
        known |= {k: v for k, v in (given or {}).items() if isinstance(v, dict)}
        steps = handler(self)
        answer: Any = None
        try:
            while True:
                step = steps.send(answer)
                answer = None
                if step[0] == "log":
                    self.log(step[1])
                elif step[0] == "progress" and "progressToken" in self.meta:
                    token = self.meta["progressToken"]
                    notify("notifications/progress", {"progressToken": token, **step[1]})
                elif step[0] == "ask" and ERA == LEGACY:
                    answer = {key: ask(*question) for key, question in step[1].items()}
                elif step[0] == "ask":
                    if any(key not in known for key in step[1]):
                        return self.require(step[1], known)
                    answer = known
        except StopIteration as ended:
            return ended.value

    def log(self, text: str) -> None:
        if ERA == LEGACY or self.meta.get(META + "logLevel"):
            notify("notifications/message", {"level": "info", "logger": "fixture", "data": text})

    def state(self) -> dict:
        sealed = self.params.get("requestState")
        if sealed is None:
            return {}
        seal, _, text = sealed.partition(".")
        if not hmac.compare_digest(seal, hmac.new(KEY, text.encode(), hashlib.sha256).hexdigest()):
            raise RpcError(-32602, "requestState failed its check of integrity")
        return json.loads(text)

    def require(self, questions: Ask, known: dict) -> dict:
        text = json.dumps(known)
        seal = hmac.new(KEY, text.encode(), hashlib.sha256).hexdigest()
        missing = {key: question for key, question in questions.items() if key not in known}
        return {
            "resultType": "input_required",
            "inputRequests": {k: {"method": m, "params": p} for k, (m, p) in missing.items()},
            "requestState": f"{seal}.{text}",
        }


def ask(method: str, params: dict) -> dict:
    """Asks the client by a request, and waits for its answer."""
    key = f"question-{secrets.token_hex(4)}"
    arrived: tuple[threading.Event, list] = (threading.Event(), [])
    answers[key] = arrived
    send({"id": key, "method": method, "params": params})
    arrived[0].wait()
    answer = arrived[1][0]
    if "error" in answer:
        return {"refused": answer["error"]["message"]}
    return answer["result"]


# ---- what it offers -----------------------------------------------------------------------------


def text(words: str) -> dict:
    return {"type": "text", "text": words}


def image() -> dict:
    return {"type": "image", "data": PNG, "mimeType": "image/png"}


def embedded(uri: str, words: str, kind: str = "text/plain") -> dict:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": words}}


def gives(*blocks: dict, **more: Any) -> Handler:
    def handler(_request: Request) -> Generator:
        yield from ()
        return {"content": list(blocks), **more}

    return handler


def form(message: str, required: bool = True, **properties: dict) -> tuple[str, dict]:
    schema = {"type": "object", "properties": properties}
    schema["required"] = list(properties) if required else []
    return "elicitation/create", {"message": message, "requestedSchema": schema}


def sample(prompt: str) -> tuple[str, dict]:
    message = {"role": "user", "content": text(prompt)}
    return "sampling/createMessage", {"messages": [message], "maxTokens": 100}


STRING, BOOLEAN = {"type": "string"}, {"type": "boolean"}
ROOTS = ("roots/list", {})


def asks(say: str, *rounds: Ask | Callable[[Request], Ask]) -> Handler:
    """Asks in rounds, and tells what was answered."""

    def handler(request: Request) -> Generator:
        heard: dict = {}
        for questions in rounds:
            questions = questions(request) if callable(questions) else questions
            heard |= yield ("ask", questions)
        return {"content": [text(f"{say} {json.dumps(heard)}")]}

    return handler


def logs(request: Request) -> Generator:
    for line in ["Tool execution started", "Tool processing data", "Tool execution completed"]:
        yield ("log", line)
        time.sleep(0.05)
    return {"content": [text("logged")]}


def progresses(request: Request) -> Generator:
    for done in (0, 50, 100):
        yield ("progress", {"progress": done, "total": 100, "message": f"step {done} of 100"})
        time.sleep(0.05)
    return {"content": [text("done")]}


def samples(request: Request) -> Generator:
    heard = yield ("ask", {"sample": sample(request.arguments["prompt"])})
    content = heard["sample"].get("content", {})
    return {"content": [text(f"LLM response: {content.get('text', heard)}")]}


def elicits(request: Request) -> Generator:
    heard = yield ("ask", {"user": form(request.arguments["message"], response=STRING)})
    said = heard["user"]
    content = json.dumps(said.get("content", {}))
    return {"content": [text(f"User response: action={said.get('action')}, content={content}")]}


def needs_sampling(request: Request) -> Generator:
    yield from ()
    if not request.offers("sampling"):
        needed = {"requiredCapabilities": {"sampling": {}}}
        raise RpcError(-32021, "this tool needs the capability sampling", needed)
    return {"content": [text("ok")]}


def capabilities(request: Request) -> Ask:
    asked: Ask = {}
    if request.offers("sampling"):
        asked["sample"] = sample("Say something")
    if request.offers("elicitation"):
        asked["form"] = form("Say something", words=STRING)
    return asked


def adds(kept: list[str], method: str, wanted: str) -> Handler:
    def handler(_request: Request) -> Generator:
        yield from ()
        kept.append(f"test_added_{len(kept)}")
        announce(method, wanted)
        return {"content": [text(kept[-1])]}

    return handler


def choices(key: str, *values: str) -> list[dict]:
    return [{key: value, "title": f"Option {value}"} for value in values]


DEFAULTS = form(
    "Please review the form",
    required=False,
    name={"type": "string", "default": "John Doe"},
    age={"type": "integer", "default": 30},
    score={"type": "number", "default": 95.5},
    status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    verified={"type": "boolean", "default": True},
)
ENUMS = form(
    "Please select",
    required=False,
    untitledSingle={"type": "string", "enum": ["option1", "option2", "option3"]},
    titledSingle={"type": "string", "oneOf": choices("const", "value1", "value2", "value3")},
    legacyEnum={
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    untitledMulti={"type": "array", "items": {"type": "string", "enum": ["option1", "option2"]}},
    titledMulti={"type": "array", "items": {"anyOf": choices("const", "value1", "value2")}},
)
NAME = {"user_name": form("What is your name?", name=STRING)}
CONFIRM = asks("state-ok", {"confirm": form("Please confirm", ok=BOOLEAN)})
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": STRING, "city": STRING},
        }
    },
    "properties": {"name": STRING, "address": {"$ref": "#/$defs/address"}, "phone": STRING},
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["name"]}]}],
    "if": {"required": ["address"]},
    "then": {"required": ["name"]},
    "else": {"required": ["phone"]},
    "additionalProperties": False,
}
MRTR = "test_input_required_result_"
TOOLS: dict[str, Handler] = {
    "test_simple_text": gives(text("This is a simple text response for testing.")),
    "test_image_content": gives(image()),
    "test_audio_content": gives({"type": "audio", "data": WAV, "mimeType": "audio/wav"}),
    "test_embedded_resource": gives(embedded("test://embedded-resource", "Embedded.")),
    "test_multiple_content_types": gives(
        text("Multiple content types test:"),
        image(),
        embedded("test://mixed-content-resource", '{"test":"data"}', "application/json"),
    ),
    "test_error_handling": gives(text("This tool intentionally returns an error"), isError=True),
    "test_tool_with_logging": logs,
    "test_logging_tool": logs,
    "test_tool_with_progress": progresses,
    "test_sampling": samples,
    "test_elicitation": elicits,
    "test_elicitation_sep1034_defaults": asks("Elicitation completed:", {"form": DEFAULTS}),
    "test_elicitation_sep1330_enums": asks("Elicitation completed:", {"form": ENUMS}),
    "test_reconnection": gives(text("Reconnection test completed successfully.")),
    "test_custom_header": gives(text("ok")),
    "json_schema_2020_12_tool": gives(text("ok")),
    "test_missing_capability": needs_sampling,
    "test_streaming_elicitation": asks("ok", NAME),
    "test_trigger_tool_change": adds(
        extra_tools, "notifications/tools/list_changed", "toolsListChanged"
    ),
    "test_trigger_prompt_change": adds(
        extra_prompts, "notifications/prompts/list_changed", "promptsListChanged"
    ),
    MRTR + "elicitation": asks("Hello", NAME),
    MRTR + "sampling": asks("Sampled", {"capital_question": sample("The capital of France?")}),
    MRTR + "list_roots": asks("Roots", {"client_roots": ROOTS}),
    MRTR + "request_state": CONFIRM,
    MRTR + "tampered_state": CONFIRM,
    MRTR + "multiple_inputs": asks(
        "All", {**NAME, "greeting": sample("Generate a greeting"), "client_roots": ROOTS}
    ),
    MRTR + "multi_round": asks(
        "All",
        {"step1": form("Step 1: What is your name?", name=STRING)},
        {"step2": form("Step 2: What is your favorite color?", color=STRING)},
    ),
    MRTR + "capabilities": asks("ok", capabilities),
}
SCHEMAS = {
    "test_sampling": {"type": "object", "properties": {"prompt": STRING}},
    "test_elicitation": {"type": "object", "properties": {"message": STRING}},
    "json_schema_2020_12_tool": SCHEMA,
    "test_custom_header": {
        "type": "object",
        "properties": {"value": {"type": "string", "x-mcp-header": "Value"}},
        "required": ["value"],
    },
}


def says(*contents: dict) -> Callable[[Request], dict]:
    return lambda _: {"messages": [{"role": "user", "content": content} for content in contents]}


def with_arguments(request: Request) -> dict:
    words = ", ".join(f"{key}='{value}'" for key, value in request.arguments.items())
    return says(text(f"Prompt with arguments: {words}"))(request)


def with_resource(request: Request) -> dict:
    uri = request.arguments["resourceUri"]
    return says(embedded(uri, "Embedded."), text("Please process the resource above."))(request)


PROMPTS: dict[str, tuple[list[str], Callable[[Request], dict]]] = {
    "test_simple_prompt": ([], says(text("This is a simple prompt for testing."))),
    "test_prompt_with_arguments": (["arg1", "arg2"], with_arguments),
    "test_prompt_with_embedded_resource": (["resourceUri"], with_resource),
    "test_prompt_with_image": ([], says(image(), text("Please analyze the image above."))),
    MRTR + "prompt": ([], says(text("with context"))),
}
TEXT = {"mimeType": "text/plain", "text": "This is the content of the static text resource."}
RESOURCES = {
    "test://static-text": TEXT,
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Watched."},
}

# ---- requests -----------------------------------------------------------------------------------

client: dict = {}
CAPABILITIES = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "logging": {},
    "completions": {},
}


def get_prompt(request: Request) -> dict:
    name = request.params["name"]
    if name not in PROMPTS:
        raise RpcError(-32602, f"unknown prompt {name}")

    def handler(_request: Request) -> Generator:
        if name == MRTR + "prompt":
            yield ("ask", {"user_context": form("What context?", context=STRING)})
        return PROMPTS[name][1](request)

    return request.run(handler)


def read(request: Request) -> dict:
    uri = request.params["uri"]
    if uri.startswith("test://template/") and uri.endswith("/data"):
        number = uri.split("/")[3]
        words = json.dumps({"id": number, "data": f"Data for ID: {number}"})
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": words}]}
    if uri not in RESOURCES:
        raise RpcError(-32602 if ERA == MODERN else -32002, "resource not found", {"uri": uri})
    return {"contents": [{"uri": uri, **RESOURCES[uri]}]}


def subscribe(request: Request) -> dict:
    watched.add(request.params["uri"])
    return {}


def unsubscribe(request: Request) -> dict:
    watched.discard(request.params["uri"])
    return {}


def listen(request: Request) -> None:
    filter = request.params.get("notifications") or {}
    subscriptions[request.id] = filter
    meta = {"_meta": {META + "subscriptionId": request.id}}
    notify("notifications/subscriptions/acknowledged", {**meta, "notifications": filter})


def call(request: Request) -> dict:
    name = request.params["name"]
    if name in extra_tools:
        return request.run(gives(text("ok")))
    if name not in TOOLS:
        raise RpcError(-32602, f"unknown tool {name}")
    return request.run(TOOLS[name])


def tools(_request: Request) -> dict:
    plain = {"type": "object", "properties": {}}
    names = [*TOOLS, *extra_tools]
    return {
        "tools": [
            {"name": name, "description": name, "inputSchema": SCHEMAS.get(name, plain)}
            for name in names
        ]
    }


def prompts(_request: Request) -> dict:
    def arguments(name: str) -> list[dict]:
        needed = PROMPTS[name][0] if name in PROMPTS else []
        return [{"name": argument, "required": True} for argument in needed]

    names = [*PROMPTS, *extra_prompts]
    return {
        "prompts": [{"name": n, "description": n, "arguments": arguments(n)} for n in names]
    }


INFO = {"name": "fixture", "version": "1"}
METHODS: dict[str, Callable[[Request], dict | None]] = {
    "ping": lambda _: {},
    "logging/setLevel": lambda _: {},
    "tools/list": tools,
    "tools/call": call,
    "prompts/list": prompts,
    "prompts/get": get_prompt,
    "resources/list": lambda _: {
        "resources": [{"uri": uri, "name": uri.partition("//")[2]} for uri in RESOURCES]
    },
    "resources/templates/list": lambda _: {
        "resourceTemplates": [{"uriTemplate": "test://template/{id}/data", "name": "template"}]
    },
    "resources/read": read,
    "resources/subscribe": subscribe,
    "resources/unsubscribe": unsubscribe,
    "completion/complete": lambda _: {"completion": {"values": ["test"], "hasMore": False}},
    "subscriptions/listen": listen,
}


def initialize(request: Request) -> dict:
    client.update(request.params.get("capabilities") or {})
    return {"protocolVersion": LEGACY, "capabilities": CAPABILITIES, "serverInfo": INFO}


def discover(_request: Request) -> dict:
    return {"supportedVersions": [MODERN], "capabilities": CAPABILITIES}


METHODS |= {"initialize": initialize} if ERA == LEGACY else {"server/discover": discover}


def answer(message: dict) -> None:
    request = Request(message)
    try:
        handler = METHODS.get(request.method)
        if handler is None:
            raise RpcError(-32601, f"no method is called {request.method}")
        result = handler(request)
        if result is None:
            return
        if ERA == MODERN:
            meta = {"_meta": {META + "serverInfo": INFO}}
            defaults = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
            result = {**defaults, **meta, **result}
        send({"id": request.id, "result": result})
    except RpcError as error:
        send({"id": request.id, "error": error.body})


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            arrived = answers.pop(message["id"], None)
            if arrived:
                arrived[1].append(message)
                arrived[0].set()
        elif "id" in message:
            threading.Thread(target=answer, args=[message], daemon=True).start()
        elif message["method"] == "notifications/cancelled":
            subscriptions.pop(message["params"].get("requestId"), None)


main()
