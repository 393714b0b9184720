"""Calls with real arguments, and what comes back."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

from .servers import Listener
from .suite import Suite, expect, expect_code, text_of


def run(suite: Suite, listeners: dict[str, Listener]) -> None:
    reference(suite)
    samples(suite)
    progress(suite)
    cancelling(suite, listeners)


def reference(suite: Suite) -> None:
    """The servers that the project of the protocol publishes, and the one in Rust."""
    note = suite.peers.files / "note.txt"

    def answers(name: str, tool: str, words: list[str], said: str) -> None:
        def body() -> None:
            answer = suite.call(f"{name}-{tool}", *words)
            expect(answer["success"] is True, answer)
            expect(text_of(answer) == said, answer)
            expect(answer["metadata"]["server"] == name, answer["metadata"])

        suite.check(f"call: {name}, {tool}", body, of=(name, "call"))

    def structured() -> None:
        answer = suite.call("everything-get-structured-content", "location=New York")
        expect(set(answer["structured"]) == {"temperature", "conditions", "humidity"}, answer)

    def read_file(name: str) -> None:
        def body() -> None:
            answer = suite.call(f"{name}-read_text_file", f"path={note}")
            expect(note.read_text().strip() in text_of(answer), answer)
            if answer["structured"]:
                expect(answer["structured"] == {"content": note.read_text()}, answer)

        suite.check(f"call: {name}, read", body, of=(name, "call"))

    def written(name: str) -> None:
        path = suite.peers.files / f"{name}.txt"
        words = [f"{name}-write_file", f"path={path}", "content=new"]

        def refused() -> None:
            # The server calls this tool destructive, and there is no terminal to ask on.
            suite.call(*words, code=6)
            expect(not path.exists(), "a refused call wrote a file")

        def approved() -> None:
            suite.call(*words, "--yes")
            expect(path.read_text() == "new", path.read_text())

        suite.check(f"call: {name}, a destructive tool is refused", refused, of=(name, "call"))
        suite.check(f"call: {name}, a destructive tool with --yes", approved, of=(name, "call"))

    def remembers(name: str) -> None:
        def body() -> None:
            entity = {"name": "toolhost", "entityType": "program", "observations": ["it calls"]}
            suite.call(f"{name}-create_entities", f"entities:={json.dumps([entity])}")
            answer = suite.call(f"{name}-read_graph")
            expect(answer["structured"]["entities"] == [entity], answer)

        suite.check(f"call: {name}, kept between two runs", body, of=(name, "call"))

    def think() -> None:
        words = ["thought=first", "thoughtNumber=1", "totalThoughts=2", "nextThoughtNeeded=true"]
        answer = suite.call("thinking-sequentialthinking", *words)
        expect(answer["structured"]["thoughtHistoryLength"] == 1, answer)

    def convert() -> None:
        words = ["source_timezone=UTC", "time=12:00", "target_timezone=Asia/Tokyo"]
        answer = suite.call("time-convert_time", *words)
        expect(answer["structured"]["target"]["datetime"].endswith("T21:00:00+09:00"), answer)
        expect(answer["metadata"]["protocol"] == "2026-07-28", answer["metadata"])

    def query() -> None:
        words = ["source_timezone=UTC", "time=12:00", "target_timezone=Asia/Tokyo"]
        run = suite.toolhost("call", "time-convert_time", *words, "--query", ".time_difference")
        expect_code(run, 0)
        expect(run.out.strip().strip('"') == "+9.0h", run.out)

    def log() -> None:
        answer = suite.call("git-git_log", f"repo_path={suite.peers.repository}")
        expect("the first commit" in text_of(answer), answer)

    def database() -> None:
        suite.call("sqlite-old-create_table", "query=create table t (a integer)")
        suite.call("sqlite-old-write_query", "query=insert into t values (42)")
        answer = suite.call("sqlite-old-read_query", "query=select a from t")
        expect(text_of(answer) == "[{'a': 42}]", answer)
        expect(answer["metadata"]["protocol"] == "2024-11-05", answer["metadata"])

    def fetch() -> None:
        with page() as address:
            answer = suite.call("fetch-fetch", f"url={address}")
        expect("a page of this machine" in text_of(answer), answer)

    for name in ("everything", "everything-http", "everything-sse"):
        if any(row.name == name for row in suite.rows):
            # A text that looks like a number stays one.
            answers(name, "echo", ["message=12"], "Echo: 12")
            answers(name, "get-sum", ["a=2", "b=3"], "The sum of 2 and 3 is 5.")
    suite.check("call: everything, structured result", structured, of=("everything", "call"))
    for name in ("filesystem", "rust-files"):
        read_file(name)
        written(name)
    remembers("memory")
    remembers("rust-memory")
    suite.check("call: thinking, structured result", think, of=("thinking", "call"))
    suite.check("call: time, structured result", convert, of=("time", "call"))
    suite.check("call: time, --query", query, of=("time", "call"))
    suite.check("call: git, log", log, of=("git", "call"))
    suite.check("call: fetch, a page of this machine", fetch, of=("fetch", "call"))
    suite.check("call: sqlite, the oldest revision", database, of=("sqlite-old", "call"))


def samples(suite: Suite) -> None:
    """The samples on FastMCP and on the TypeScript SDK, and what was only asked for."""

    def add(name: str, protocol: str) -> None:
        def body() -> None:
            answer = suite.call(f"{name}-add", "a=2", "b=0.5")
            expect(answer["structured"] == {"sum": 2.5}, answer)
            expect(answer["metadata"]["protocol"] == protocol, answer["metadata"])

        suite.check(f"call: {name}, structured result", body, of=(name, "call"))

    def greet(name: str) -> None:
        def body() -> None:
            answer = suite.call(f"{name}-greet", "name=Ada")
            expect(text_of(answer) == "Hello, Ada!", answer)

        suite.check(f"call: {name}, text", body, of=(name, "call"))

    def database() -> None:
        answer = suite.call("toolbox-execute_sql", "sql=select 6 * 7 as answer", "--yes")
        expect("42" in text_of(answer), answer)
        expect(answer["metadata"]["protocol"] == "2026-07-28", answer["metadata"])

    add("typescript", "2026-07-28")
    add("typescript-http", "2026-07-28")
    add("typescript-legacy", "2025-11-25")
    for name in ("fastmcp", "fastmcp-http", "fastmcp-legacy", "fastmcp-sse"):
        if any(row.name == name for row in suite.rows):
            greet(name)
    if any(row.name == "toolbox" for row in suite.rows):
        suite.check("call: toolbox, a query", database, of=("toolbox", "call"))


def progress(suite: Suite) -> None:
    def holds_off() -> None:
        words = ["duration=2", "steps=4", "--idle-timeout", "1500ms"]
        answer = suite.call("everything-trigger-long-running-operation", *words)
        expect("completed" in text_of(answer).lower(), answer)

    def told(name: str) -> None:
        def body() -> None:
            run = suite.toolhost("call", f"{name}-count", "to=5", "--query", ".counted", "-v")
            expect_code(run, 0)
            expect(run.out.strip() == "5", run.out)
            expect("step 5" in run.err, run.err)
            expect("counting to 5" in run.err, f"no log line: {run.err}")

        suite.check(f"progress: {name}, each step and a log line", body, of=(name, "progress"))

    def research() -> None:
        # A task of the legacy era: made, asked about until it is done, and its result fetched.
        answer = suite.call("everything-simulate-research-query", "topic=cats")
        expect("Research Report: cats" in text_of(answer), answer)

    suite.check(
        "progress: everything, it holds off the timeout", holds_off, of=("everything", "progress")
    )
    suite.check("call: everything, as a task", research, of=("everything", "call"))
    for name in ("fastmcp", "fastmcp-http", "fastmcp-legacy"):
        told(name)


def cancelling(suite: Suite, listeners: dict[str, Listener]) -> None:
    def interrupted() -> str:
        # The server outlives the call, and notes that it was told to stop.
        log = listeners["typescript-http"].log
        run = suite.toolhost("call", "typescript-http-wait", "seconds=30", interrupt=3)
        expect(run.code in (130, -2), f"exit {run.code}: {run.err}")
        deadline = time.monotonic() + 5
        while "wait stopped" not in log.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        expect("wait stopped" in log.read_text(), "the server was not told")
        return f"{run.seconds - 3:.2f} s after the signal"

    def too_late(name: str, tool: str, *words: str) -> None:
        def body() -> None:
            answer = suite.call(f"{name}-{tool}", *words, "--timeout", "4s", code=7)
            expect(answer["error"]["kind"] == "timeout", answer)

        suite.check(f"cancel: {name}, a timeout (7)", body, of=(name, "cancel"))

    suite.check("cancel: typescript-http, Ctrl-C", interrupted, of=("typescript-http", "cancel"))
    too_late("typescript", "wait", "seconds=30")
    # No progress comes before it is over, because there is only one step.
    too_late("everything", "trigger-long-running-operation", "duration=30", "steps=1")
    too_late("everything-http", "trigger-long-running-operation", "duration=30", "steps=1")


class page:
    """A web page on this machine, for as long as it is needed."""

    def __enter__(self) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # noqa: N802, the name is the library's
                body = b"<html><body><article><p>a page of this machine</p></article></body></html>"
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_port}/"

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
