"""Calls a tool of an MCP server over HTTP. Written by `toolhost bench --export-locust`.

    pip install locust
    locust -f THIS_FILE --headless                                  # one process
    locust -f THIS_FILE --headless --master --expect-workers 2      # many, anywhere
    locust -f THIS_FILE --worker --master-host HOST

What is called, by how many and for how long stands in PLAN_TEXT; the options -u, -r and -t are not
needed. Headers that may hold credentials are read from the environment, on each worker.

Locust's users wait for an answer before they call again. A rate is therefore kept only while they
are quicker than their share of it; when all are waiting, fewer calls are made, and their times do
not count from the moments that were meant. `toolhost bench --rate` does that on one machine.
"""

import itertools
import json
import os
import random
from urllib.parse import urlsplit

import gevent
from locust import LoadTestShape, constant, constant_throughput, task
from locust.contrib.fasthttp import FastHttpUser

PLAN_TEXT = "{}"
PLAN = json.loads(PLAN_TEXT)
TOOL = PLAN["tool"]
USERS = PLAN["users"]
ENDPOINT = urlsplit(PLAN["endpoint"])
PATH = (ENDPOINT.path or "/") + (f"?{ENDPOINT.query}" if ENDPOINT.query else "")
META = {
    "io.modelcontextprotocol/protocolVersion": PLAN["protocol"],
    "io.modelcontextprotocol/clientInfo": PLAN["client"],
    "io.modelcontextprotocol/clientCapabilities": {},
}


def own_headers():
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    for header in PLAN["headers"]:
        if "text" in header:
            headers[header["name"]] = header["text"]
        elif header["variable"] in os.environ:
            headers[header["name"]] = header["before"] + os.environ[header["variable"]]
        else:
            raise SystemExit(f"{header['name']}: the variable {header['variable']} is not set")
    return headers


def messages(response):
    """The messages of a response: one JSON message, or those of an event stream."""
    text = response.text or ""
    if "text/event-stream" not in (response.headers.get("content-type") or ""):
        return [json.loads(text)]
    found = []
    for event in text.replace("\r\n", "\n").split("\n\n"):
        lines = [line[5:].removeprefix(" ") for line in event.split("\n") if line.startswith("data:")]
        if any(lines):
            found.append(json.loads("\n".join(lines)))
    return found


def verdict(response, number):
    """Why this response does not answer the call with this number; None if it does."""
    if response.status_code != 200:
        return f"HTTP {response.status_code}"
    try:
        answers = [m for m in messages(response) if isinstance(m, dict) and m.get("id") == number]
    except ValueError:
        return "the response is not JSON"
    if not answers:
        return "no response with the id of the call"
    if "error" in answers[0]:
        error = answers[0]["error"]
        return f"JSON-RPC error {error.get('code')}: {str(error.get('message'))[:80]}"
    result = answers[0].get("result")
    if not isinstance(result, dict):
        return "the response has no result"
    if result.get("isError"):
        return "isError"
    if result.get("resultType", "complete") != "complete":
        return f"resultType {result['resultType']}"
    return None


class Caller(FastHttpUser):
    host = f"{ENDPOINT.scheme}://{ENDPOINT.netloc}"
    # Each keeps its share of the rate.
    wait_time = constant_throughput(PLAN["rate"] / USERS) if PLAN["rate"] else constant(0)

    def on_start(self):
        self.own = own_headers()
        self.numbers = itertools.count(1)
        # Each makes its share of the calls, so that nobody has to count over all machines.
        planned = PLAN["requests"]
        self.left = None if planned is None else -(-planned // USERS)
        self.rows = itertools.cycle(PLAN["arguments"])
        # Not all users begin with the same row.
        for _ in range(random.randrange(len(PLAN["arguments"]))):
            next(self.rows)
        if PLAN["modern"]:
            self.own["MCP-Protocol-Version"] = PLAN["protocol"]
        else:
            self.shake_hands()

    def on_stop(self):
        if "Mcp-Session-Id" in self.own:
            # A server need not allow it.
            with self.client.delete(
                PATH, headers=self.own, name="end of session", catch_response=True
            ) as response:
                response.success()

    def shake_hands(self):
        params = {
            "protocolVersion": PLAN["protocol"],
            "capabilities": {},
            "clientInfo": PLAN["client"],
        }
        number = next(self.numbers)
        body = {"jsonrpc": "2.0", "id": number, "method": "initialize", "params": params}
        with self.client.post(
            PATH, json=body, headers=self.own, name="initialize", catch_response=True
        ) as response:
            why = verdict(response, number)
            if why:
                response.failure(why)
                return
            agreed = next(m for m in messages(response) if m.get("id") == number)["result"]
            session = response.headers.get("mcp-session-id")
        self.own["MCP-Protocol-Version"] = agreed.get("protocolVersion", PLAN["protocol"])
        if session:
            self.own["Mcp-Session-Id"] = session
        body = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        self.client.post(PATH, json=body, headers=self.own, name="initialized")

    @task
    def call(self):
        if self.left == 0:
            gevent.sleep(0.2)
            return
        if self.left is not None:
            self.left -= 1
        params = {"name": TOOL, "arguments": next(self.rows)}
        headers = self.own
        if PLAN["modern"]:
            params["_meta"] = META
            headers = {**self.own, "Mcp-Method": "tools/call", "Mcp-Name": header_text(TOOL)}
        number = next(self.numbers)
        body = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        with self.client.post(
            PATH, json=body, headers=headers, name=PLAN["name"], catch_response=True
        ) as response:
            why = verdict(response, number)
            if why:
                response.failure(why)
            else:
                response.success()


def header_text(text):
    """A name as written in a header: encoded unless it is plain."""
    import base64

    plain = text.isascii() and text.isprintable() and text == text.strip(" ")
    if plain and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


class Plan(LoadTestShape):
    """How many users there are, and when the run is over. The master hears of calls every few
    seconds, so that a run with a number of calls ends a few seconds after the last one."""

    def tick(self):
        ran = self.get_run_time()
        if PLAN["duration_s"] is not None and ran >= PLAN["duration_s"]:
            return None
        if PLAN["requests"] is not None and self.calls() >= PLAN["requests"]:
            return None
        return USERS, USERS

    def calls(self):
        entries = self.runner.stats.entries.items()
        return sum(entry.num_requests for (name, _), entry in entries if name == PLAN["name"])
