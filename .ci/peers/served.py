"""`toolhost serve`, as clients of other makers see it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Iterator

from lab import Console, Room

from .suite import COMMAND_LIMIT, Suite, expect, expect_code

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
    shutil.copy(SAMPLES / "watching_client.mjs", place)
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
    def listening(option: str, *more: str, config: Path = config) -> Iterator[str]:
        words = [binary, "--mcp", str(config), "serve", option, "127.0.0.1:0", *more]
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

    def inspector(target: list[str], method: str, *more: str, code: int = 0) -> dict:
        """What MCP Inspector's command line prints: one process and one connection for each request."""
        programs = suite.peers.cache / "inspector/node_modules/.bin"
        words = [str(programs / "node"), str(programs / "mcp-inspector"), "--cli", *target]
        path = f"{suite.binary.resolve().parent}:{environment['PATH']}"
        done = subprocess.run(
            [*words, "--method", method, *more], env={**environment, "PATH": path},
            capture_output=True, text=True, timeout=COMMAND_LIMIT, check=False,
        )  # fmt: skip
        expect(done.returncode == code, f"{method} ends with {done.returncode}: {done.stderr[-800:]}")
        return json.loads(done.stdout)

    def inspect(*target: str) -> None:
        ask_for = partial(inspector, list(target))
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

    header = ("--header", f"Authorization: Bearer {TOKEN}")

    def inspect_over_http() -> None:
        with listening("--http") as url:
            inspect("--transport", "http", "--server-url", url, *header)

    served_words = [binary, "--mcp", str(config), "serve"]
    add = ("tools/call", "--tool-name", "demo-add", "--tool-arg", "a=2", "b=3")

    def lean(*target: str) -> None:
        ask_for = partial(inspector, list(target))
        tools = [tool["name"] for tool in ask_for("tools/list")["tools"]]
        expect(tools == ["find_tools", "describe_tool", "call_tool"], tools)
        call = ("tools/call", "--tool-name")
        found = ask_for(*call, "find_tools", "--tool-arg", "query=add")
        expect("demo-add" in found["content"][0]["text"], found)
        described = ask_for(*call, "describe_tool", "--tool-arg", "name=demo-add")
        expect('"a"' in described["content"][0]["text"], described)
        added = ask_for(*call, "call_tool", "--tool-arg", "name=demo-add", 'arguments={"a":2,"b":3}')
        expect(added["structuredContent"] == {"sum": 5}, added)

    def lean_over_http() -> None:
        with listening("--http", "--lean") as url:
            lean("--transport", "http", "--server-url", url, *header)

    def watched() -> None:
        """The code of a server changes while a client is connected."""
        project = suite.scratch / "watched"
        project.mkdir(exist_ok=True)
        code = Path(shutil.copy(SAMPLES / "fastmcp_sample.py", project))
        entry = {"command": python, "args": [str(code)], "cwd": str(project), "watch": ["*.py"]}
        watching = project / "mcp.json"
        watching.write_text(json.dumps({"mcpServers": {"mine": entry}}))
        with listening("--http", config=watching) as url:
            client = [suite.peers.node, str(place / "watching_client.mjs")]
            seen = run_client([*client, url, str(code), "def greet", "def welcome"])
        expect("mine-greet" in seen["before"] and "mine-welcome" not in seen["before"], seen)
        expect("mine-welcome" in seen["after"] and "mine-greet" not in seen["after"], seen)

    def tested() -> None:
        """A suite of tests for servers of others."""
        tests = suite.scratch / "suite.json"
        good = [
            {"tool": "fastmcp-greet", "args": {"name": "Ada"}, "expect": {"contains": "Hello, Ada!"}},
            {"tool": "everything-get-sum", "args": {"a": 2, "b": 3}, "expect": {"contains": "5"}},
            {"tool": "everything-get-sum", "args": {"a": "two"}, "expect": {"error": "usage"}},
        ]
        wrong = {"name": "wrong", "tool": "fastmcp-greet", "args": {"name": "Ada"}, "expect": {"contains": "Bob"}}
        tests.write_text(json.dumps({"tests": good}))
        expect_code(suite.toolhost("test", str(tests)), 0)
        tests.write_text(json.dumps({"tests": [*good, wrong]}))
        failed = suite.toolhost("test", str(tests), "--json")
        expect_code(failed, 8)
        expect("Hello, Ada!" in failed.out, failed.out)

    def connected() -> None:
        """The client starts what `connect` wrote."""
        project = suite.scratch / "connected"
        project.mkdir(exist_ok=True)
        words = [binary, "connect", "cursor", "--project", "--yes", "--", "--mcp", str(config)]
        subprocess.run(words, cwd=project, env=environment, capture_output=True, timeout=COMMAND_LIMIT, check=True)
        file = str(project / ".cursor/mcp.json")
        added = inspector(["--config", file, "--server", "toolhost"], *add)
        expect(added["structuredContent"] == {"sum": 5}, added)

    def stopped() -> None:
        """A call stops at a breakpoint, and a person at the console edits its arguments."""
        with tempfile.TemporaryDirectory(prefix="toolhost-break-") as directory:
            room = Room(Path(directory))
            words = [binary, "--mcp", str(config)]
            # A client gives a server hardly anything of its environment.
            variables = [f"{name}={value}" for name, value in room.environment.items()]
            served = ["env", "-C", str(room.path), *variables, *words, "serve"]

            def toolhost(*arguments: str) -> None:
                subprocess.run(
                    [*words, *arguments], cwd=room.path, env=room.environment,
                    capture_output=True, timeout=COMMAND_LIMIT, check=True,
                )  # fmt: skip

            toolhost("up")
            console = Console(words, room)
            try:
                expect(console.wait("weather_report", COMMAND_LIMIT), console.screen.frame)
                toolhost("break", "demo-add")
                with ThreadPoolExecutor(1) as pool:
                    call = pool.submit(inspector, served, *add)
                    expect(console.wait("y go on", COMMAND_LIMIT), console.screen.frame)
                    # What is typed while a window opens is not meant for it.
                    while not call.done() and not console.wait("demo-add goes on", 1):
                        console.type("y")
                    added = call.result()
                expect(added["structuredContent"] == {"sum": 5}, added)
            finally:
                console.close()
                toolhost("down")

    suite.check("serve: MCP Inspector over stdio", partial(inspect, *served_words), lacking=lacking)
    suite.check("serve: MCP Inspector over HTTP", inspect_over_http, lacking=lacking)
    suite.check("serve --lean: MCP Inspector over stdio", partial(lean, *served_words, "--lean"), lacking=lacking)
    suite.check("serve --lean: MCP Inspector over HTTP", lean_over_http, lacking=lacking)
    suite.check("watch: the TypeScript SDK over HTTP hears of the new tools", watched, lacking=lacking)
    suite.check("test: a suite over fastmcp and the reference server", tested, lacking=lacking)
    suite.check("connect: MCP Inspector starts what was written", connected, lacking=lacking)
    suite.check("break: a call of MCP Inspector stops in the console", stopped, lacking=lacking)
    for name, client in clients.items():
        suite.check(f"serve: {name} over stdio", partial(ask, client), lacking=lacking)
        suite.check(f"serve: {name} over HTTP", partial(over_http, client), lacking=lacking)
    suite.check("serve: websockets", over_web_socket, lacking=lacking)
