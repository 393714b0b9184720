"""P17: what `toolhost serve` adds to a call, and how it copes with many clients. Used by `compare`."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import resource
import select
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

TOKEN = "benchmark-token-0123456789abcdef"
SECONDS = "3s"
# Another project's proxy in front of the same server.
FASTMCP = """
import json, sys
from fastmcp.server import create_proxy
create_proxy(json.loads(sys.argv[1])).run(show_banner=False)
"""
HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "compare", "version": "1"},
    },
}
HEADERS = {
    "authorization": f"Bearer {TOKEN}",
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}


class Serving:
    """Servers in front of the null server, and what it costs to call through them."""

    def __init__(self, bench, options) -> None:
        self.bench, self.calls, self.idle = bench, options.serve_calls, options.idle_clients
        # Links stay: an interpreter's says which environment it is of.
        named = (options.rmcp_server, options.fastmcp_python)
        self.rmcp, self.python = (path and os.path.abspath(path) for path in named)
        self.env = {**bench.env, "TOOLHOST_SERVE_TOKEN": TOKEN}
        # What any process between client and server adds, whatever it does.
        self.relay = bench.compile("relay")

    # ---- clients

    def file(self, name: str, entry: dict) -> str:
        path = self.bench.scratch / f"serve-{name}.json"
        path.write_text(json.dumps({"mcp_servers": {"s": entry}}))
        return str(path)

    def measure(self, file: str, tool: str, *words: str) -> dict:
        """The report of a benchmark of `tool`, of which every call was answered."""
        argv = [self.bench.binary, "--mcp", file, "--json", "bench", f"s-{tool}", "message=hi", *words]
        done = subprocess.run(argv, env=self.env, cwd=self.bench.scratch, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=600)  # fmt: skip
        if done.returncode != 0:
            sys.exit(f"compare: {argv} exits with {done.returncode}\n{done.stderr[-1500:]}")
        report = json.loads(done.stdout)
        if report["ok"] != report["requests"]:
            sys.exit(f"compare: of {report['requests']} calls {report['ok']} went well")
        return report

    def added(self, rows: dict[str, tuple[str, str]]) -> dict[str, float]:
        """By name, the median over the rounds of p50 in microseconds; the servers take turns."""
        found: dict[str, list[float]] = {name: [] for name in rows}
        for _ in range(self.bench.timer.rounds):
            for name, (file, tool) in rows.items():
                report = self.measure(file, tool, "-n", str(self.calls), "-c", "1")
                found[name].append(report["latency_ms"]["p50"] * 1000)
        return {name: statistics.median(values) for name, values in found.items()}

    # ---- servers

    @contextlib.contextmanager
    def process(self, argv: list[str], port: int | None = None) -> Iterator[tuple[int, int]]:
        """A server over HTTP; its process and its port, which it prints unless it was told."""
        server = subprocess.Popen(argv, env=self.env, cwd=self.bench.scratch, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # fmt: skip
        try:
            if port is None:
                assert server.stdout is not None
                port = int(server.stdout.readline().split()[1])
            for _ in range(200):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.05)
            yield server.pid, port
        finally:
            server.terminate()
            try:
                server.wait(15)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()

    def served(self, *words: str) -> contextlib.AbstractContextManager[tuple[int, int]]:
        port = free_port()
        argv = [self.bench.binary, *words, "serve", "--http", f"127.0.0.1:{port}"]
        return self.process(argv, port)

    def over(self, name: str, port: int) -> str:
        url = f"http://127.0.0.1:{port}/mcp"
        return self.file(name, {"url": url, "headers": {"Authorization": f"Bearer {TOKEN}"}})

    # ---- figures: (what, value, unit, the most or least that is good, detail)

    def stdio(self) -> list[tuple]:
        behind = self.file("null", {"command": self.bench.null})
        rows = {
            "direct": (behind, "echo"),
            "a relay of bytes": (self.file("relay", {
                "command": self.relay, "args": [self.bench.null],
            }), "echo"),
            "toolhost": (self.file("stdio", {
                "command": self.bench.binary, "args": ["--mcp", behind, "serve", "--bare-names"],
            }), "echo"),
        }  # fmt: skip
        if self.rmcp:
            rows["rmcp's server"] = (self.file("rmcp", {"command": self.rmcp}), "echo")
        if self.python:
            config = json.dumps({"mcpServers": {"null": {"command": self.bench.null}}})
            entry = {"command": self.python, "args": ["-c", FASTMCP, config]}
            # A proxy of one server keeps its names.
            rows["fastmcp's proxy"] = (self.file("fastmcp", entry), "echo")
        return additions("stdio", self.added(rows), 200)

    def http(self) -> list[tuple]:
        with contextlib.ExitStack() as stack:
            _, null = stack.enter_context(self.process([self.bench.null, "--http", "0"]))
            behind = self.over("null-http", null)
            _, relay = stack.enter_context(self.process([self.relay, "--http", str(null)]))
            _, own = stack.enter_context(self.served("--mcp", behind))
            rows = {
                "direct": (behind, "echo"),
                "a relay of bytes": (self.over("relay-http", relay), "echo"),
                "toolhost": (self.over("own-http", own), "s-echo"),
            }
            if self.rmcp:
                _, rmcp = stack.enter_context(self.process([self.rmcp, "--http"]))
                rows["rmcp's server"] = (self.over("rmcp-http", rmcp), "echo")
            return additions("HTTP", self.added(rows), 300)

    def throughput(self) -> list[tuple]:
        """A built-in function at 50 connections beside rmcp's own echo server."""
        if not self.rmcp:
            return []
        tools = self.bench.scratch / "echo.yaml"
        tools.write_text("tools: [{ name: echo, module: builtin.echo }]\n")
        mine, yours = [], []
        with self.served("--tools", str(tools)) as (_, own), \
                self.process([self.rmcp, "--http"]) as (_, rmcp):  # fmt: skip
            files = [(self.over("own-echo", own), mine), (self.over("rmcp-echo", rmcp), yours)]
            for _ in range(self.bench.timer.rounds):
                for file, rates in files:
                    report = self.measure(file, "echo", "-c", "50", "--duration", SECONDS)
                    rates.append(report["throughput"])
        ratio = statistics.median(a / b for a, b in zip(mine, yours))
        detail = f"toolhost {statistics.median(mine):,.0f}/s, rmcp {statistics.median(yours):,.0f}/s"
        return [("a builtin over HTTP, 50 connections / rmcp", ratio, "x", (">=", 0.5), detail)]

    def crowd(self) -> list[tuple]:
        """p99 at 200 connections of wrk, of which no request may fail."""
        if not shutil.which("wrk"):
            return []
        tools = self.bench.scratch / "echo.yaml"
        tools.write_text("tools: [{ name: echo, module: builtin.echo }]\n")
        script = self.bench.scratch / "serve.lua"
        with self.served("--tools", str(tools)) as (_, port):
            session = hello(port)
            headers = {**HEADERS, "mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
            lines = "".join(f'wrk.headers["{n}"] = "{v}"\n' for n, v in headers.items())
            # Each request has an id of its own, as a client's have.
            script.write_text(
                f'wrk.method = "POST"\n{lines}local thread = 0\nlocal id = 0\n'
                "function setup(t) t:set('base', thread * 1000000000) thread = thread + 1 end\n"
                "function request() id = id + 1\n"
                '  return wrk.format(nil, nil, nil, \'{"jsonrpc":"2.0","id":\' .. (base + id) .. '
                '\',"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"}}}\')\n'
                "end\n"
                'function response(status, headers, body) if not body:find(\'"hi"\', 1, true) then\n'
                '  io.stderr:write("LOST " .. status .. " " .. body:sub(1, 200) .. "\\n") end end\n'
            )
            done = subprocess.run(
                ["wrk", "-t2", "-c200", f"-d{SECONDS}", "--latency", "-s", str(script),
                 f"http://127.0.0.1:{port}/mcp"], capture_output=True, text=True, check=True)
        lost = len(re.findall("^LOST", done.stderr, re.M))
        for line in done.stdout.splitlines():
            if "Socket errors" in line or "Non-2xx" in line:
                lost += sum(map(int, re.findall(r"\d+", line.split(":", 1)[1])))
        p99 = next(line.split()[1] for line in done.stdout.splitlines() if line.strip().startswith("99%"))
        rate = next(line for line in done.stdout.splitlines() if line.startswith("Requests/sec"))
        first = next((line for line in done.stderr.splitlines() if line.startswith("LOST")), "")
        return [
            ("wrk -t2 -c200, p99", milliseconds(p99), "ms", None, " ".join(rate.split())),
            ("wrk -t2 -c200, requests without an answer", lost, "", ("<=", 0), first),
        ]

    def memory(self) -> list[tuple]:
        """Clients of either era that are connected, hear of changes, and say nothing."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        tools = self.bench.scratch / "echo.yaml"
        tools.write_text("tools: [{ name: echo, module: builtin.echo }]\n")
        counts = sorted({min(1000, self.idle), min(self.idle, hard - 100)})
        try:
            return [row for era, client in IDLE_CLIENTS.items()
                    for row in self.crowded(str(tools), era, client, counts)]  # fmt: skip
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    def crowded(self, tools: str, era: str, client, counts: list[int]) -> Iterator[tuple]:
        streams: list[socket.socket] = []
        with self.served("--tools", tools) as (pid, port):
            try:
                for count in counts:
                    while len(streams) < count:
                        streams.append(client(port))
                    alive = sum(1 for stream in streams if not is_closed(stream))
                    bar = {1_000: 128}.get(count)
                    name = f"{count:,} idle HTTP clients, {era}"
                    detail = f"{alive:,} are still connected"
                    yield name, memory_of(pid), "MiB", bar and ("<=", bar), detail
            finally:
                for stream in streams:
                    stream.close()


def additions(wire: str, found: dict[str, float], bar: float) -> list[tuple]:
    """What each server adds to the p50 of calls that go to the upstream directly."""
    rows = []
    for name, value in found.items():
        if name == "direct":
            continue
        detail = f"p50 {value:.0f} us, directly {found['direct']:.0f} us"
        least = ("<=", bar) if name == "toolhost" else None
        rows.append((f"{wire}: {name} adds", value - found["direct"], "us", least, detail))
    return rows


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def hello(port: int) -> str:
    """A session of a new client."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("POST", "/mcp", json.dumps(HELLO), HEADERS)
    answer = connection.getresponse()
    session = answer.getheader("mcp-session-id")
    answer.read()
    if answer.status != 200 or not session:
        sys.exit(f"compare: initialize is answered with {answer.status}")
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    connection.request("POST", "/mcp", json.dumps(note), {**HEADERS, "mcp-session-id": session})
    connection.getresponse().read()
    connection.close()
    return session


def listen(port: int) -> socket.socket:
    """The stream of events of a new session, of which the head was read."""
    return begin(port, "GET", "", {"accept": "text/event-stream", "mcp-session-id": hello(port)})


def subscribe(port: int) -> socket.socket:
    """The stream of a subscription to changes of tools."""
    method, prefix = "subscriptions/listen", "io.modelcontextprotocol/"
    meta = {f"{prefix}protocolVersion": "2026-07-28", f"{prefix}clientCapabilities": {},
            f"{prefix}clientInfo": {"name": "compare", "version": "1"}}  # fmt: skip
    body = {"jsonrpc": "2.0", "id": 1, "method": method,
            "params": {"notifications": {"toolsListChanged": True}, "_meta": meta}}  # fmt: skip
    named = {"mcp-protocol-version": "2026-07-28", "mcp-method": method}
    return begin(port, "POST", json.dumps(body), {**HEADERS, **named})


def ask(port: int) -> socket.socket:
    """A session and the connection on which it was opened, which waits for the next request."""
    stream = begin(port, "POST", json.dumps(HELLO), HEADERS)
    while not stream.recv(65536).endswith(b"0\r\n\r\n"):
        pass
    return stream


IDLE_CLIENTS = {
    "a session and its stream": listen,
    "a session and its connection": ask,
    "a subscription (2026-07-28)": subscribe,
}


def begin(port: int, method: str, body: str, headers: dict[str, str]) -> socket.socket:
    """A request on a connection of its own, of whose answer the head was read."""
    stream = socket.create_connection(("127.0.0.1", port))
    head = {"host": f"127.0.0.1:{port}", "authorization": f"Bearer {TOKEN}",
            "content-length": str(len(body)), **headers}  # fmt: skip
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    stream.sendall(f"{method} /mcp HTTP/1.1\r\n{lines}\r\n{body}".encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        # Byte by byte: what follows is for others to read.
        read = stream.recv(1)
        answer += read
        if not read:
            break
    if not answer.startswith(b"HTTP/1.1 200"):
        sys.exit(f"compare: {method} is answered with {answer[:200]!r}")
    return stream


def is_closed(stream: socket.socket) -> bool:
    poll = select.poll()
    poll.register(stream, select.POLLIN)
    while poll.poll(0):
        try:
            if not stream.recv(4096):
                return True
        except OSError:
            return True
    return False


def memory_of(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def milliseconds(text: str) -> float:
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()
    return float(number) * {"us": 0.001, "ms": 1, "s": 1000}[unit]
