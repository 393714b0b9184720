"""`toolhost serve`, as clients of other makers see it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Iterator

from .suite import COMMAND_LIMIT, Suite, expect

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
TOKEN = "a token of this run"


def run(suite: Suite) -> None:
    lacking = None if suite.understands("serve", "--http") else "no such command"
    binary = str(suite.binary.resolve())
    config = suite.scratch / "served.json"
    config.write_text(json.dumps({"mcpServers": {"demo": {"command": binary, "args": ["demo-server"]}}}))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(suite.scratch / "served-home"),
        "TOOLHOST_SERVE_TOKEN": TOKEN,
    }

    python = str(suite.peers.cache / "python/bin/python")
    # Modules are looked for beside the script.
    place = suite.scratch / "typescript-client"
    place.mkdir(exist_ok=True)
    shutil.copy(SAMPLES / "typescript_client.mjs", place / "client.mjs")
    if not (place / "node_modules").exists():
        (place / "node_modules").symlink_to(suite.peers.cache / "node/node_modules")
    clients = {
        "fastmcp": [python, str(SAMPLES / "fastmcp_client.py")],
        "the Python SDK": [python, str(SAMPLES / "python_client.py")],
        "the TypeScript SDK": [suite.peers.node, str(place / "client.mjs")],
    }

    def run_client(words: list[str]) -> dict:
        done = subprocess.run(
            words, env=environment, capture_output=True, text=True, timeout=COMMAND_LIMIT, check=False
        )
        expect(done.returncode == 0, done.stderr[-800:])
        return json.loads(done.stdout)

    def ask(client: list[str], *url: str) -> None:
        seen = run_client([*client, binary, str(config), *url])
        expect("demo-add" in seen["tools"], seen)
        expect(seen["sum"] == {"sum": 5}, seen)
        expect(seen["failed"] is True, seen)
        expect(seen["asked"] == "Hello, Ada!", seen)
        expect(seen["progress"] > 0, seen)
        expect("Ada" in seen["prompt"], seen)
        expect(seen["read"] == "# The demo server", seen)

    @contextmanager
    def listening(option: str) -> Iterator[str]:
        words = [binary, "--mcp", str(config), "serve", option, "127.0.0.1:0"]
        served = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
        try:
            line = served.stderr.readline()
            expect(line.startswith("listening on "), line)
            yield line.split()[-1]
        finally:
            served.terminate()
            served.wait(COMMAND_LIMIT)

    def over_http(client: list[str]) -> None:
        with listening("--http") as url:
            ask(client, url)

    def over_web_socket() -> None:
        with listening("--ws") as url:
            seen = run_client([python, str(SAMPLES / "web_socket_client.py"), url])
        expect(seen["server"] == "toolhost" and seen["subprotocol"] == "mcp", seen)
        expect("demo-add" in seen["tools"], seen)
        expect(seen["sum"] == {"sum": 5} and seen["failed"] is True, seen)

    def inspect(*target: str) -> None:
        """MCP Inspector's command line: one process and one connection for each request."""
        programs = suite.peers.cache / "inspector/node_modules/.bin"
        words = [str(programs / "node"), str(programs / "mcp-inspector"), "--cli", *target]

        def ask_for(method: str, *more: str, code: int = 0) -> dict:
            done = subprocess.run(
                [*words, "--method", method, *more],
                env=environment, capture_output=True, text=True, timeout=COMMAND_LIMIT, check=False,
            )  # fmt: skip
            expect(done.returncode == code, f"{method} ends with {done.returncode}: {done.stderr[-800:]}")
            return json.loads(done.stdout)

        tools = [tool["name"] for tool in ask_for("tools/list")["tools"]]
        expect("demo-add" in tools, tools)
        added = ask_for("tools/call", "--tool-name", "demo-add", "--tool-arg", "a=2", "b=3")
        expect(added["structuredContent"] == {"sum": 5}, added)
        # 5 is its code for a tool that says no.
        failed = ask_for("tools/call", "--tool-name", "demo-fail", "--tool-arg", "message=no", code=5)
        expect(failed["isError"] is True, failed)
        resources = [resource["uri"] for resource in ask_for("resources/list")["resources"]]
        expect("demo://readme" in resources, resources)
        read = ask_for("resources/read", "--uri", "demo://readme")
        expect(read["contents"][0]["text"].startswith("# The demo server"), read)
        prompts = [prompt["name"] for prompt in ask_for("prompts/list")["prompts"]]
        expect("demo-greet" in prompts, prompts)
        greeting = ask_for("prompts/get", "--prompt-name", "demo-greet", "--prompt-args", "name=Ada")
        expect("Ada" in json.dumps(greeting["messages"]), greeting)

    def inspect_over_http() -> None:
        header = ("--header", f"Authorization: Bearer {TOKEN}")
        with listening("--http") as url:
            inspect("--transport", "http", "--server-url", url, *header)

    served_words = [binary, "--mcp", str(config), "serve"]
    suite.check("serve: MCP Inspector over stdio", partial(inspect, *served_words), lacking=lacking)
    suite.check("serve: MCP Inspector over HTTP", inspect_over_http, lacking=lacking)
    for name, client in clients.items():
        suite.check(f"serve: {name} over stdio", partial(ask, client), lacking=lacking)
        suite.check(f"serve: {name} over HTTP", partial(over_http, client), lacking=lacking)
    suite.check("serve: websockets", over_web_socket, lacking=lacking)
