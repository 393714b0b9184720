"""P19 to P22: calls through a background host. Used by `compare`."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from fcntl import ioctl
from pathlib import Path

# Where `.ci/interop --install-only --with mcporter` puts the reference server and the peer.
PACKAGES = Path(tempfile.gettempdir()) / "toolhost-interop"
EVERYTHING = PACKAGES / "node/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
MCPORTER = PACKAGES / "mcporter/node_modules/.bin/mcporter"
HELLO_PARAMS = {"protocolVersion": "2025-11-25", "capabilities": {}}
# How long an idle host is watched.
IDLE_SECONDS = 10
# Clients that call at once.
CLIENTS = 8


class Warm:
    """A project, its background host, and clients of it."""

    def __init__(self, bench, options) -> None:
        self.bench, self.calls, self.alone = bench, options.host_calls, options.in_process
        self.everything = str(options.everything or EVERYTHING)
        runtime = bench.scratch / "runtime"
        runtime.mkdir(exist_ok=True)
        self.env = {**bench.env, "XDG_RUNTIME_DIR": str(runtime)}
        self.sockets = runtime / "toolhost"
        named = {Path(path).name: path for path in options.peer}
        self.mcporter = named.get("mcporter") or (str(MCPORTER) if MCPORTER.exists() else None)

    # ---- hosts and clients

    @contextlib.contextmanager
    def host(self, *files: str) -> Iterator[dict]:
        """A running host of these files; what `up` says of it."""
        said = self.toolhost(*files, "--json", "up")
        try:
            yield json.loads(said)["host"]
        finally:
            self.toolhost("down", "--all")

    def toolhost(self, *words: str) -> str:
        done = subprocess.run([self.bench.binary, *words], env=self.env, cwd=self.bench.scratch,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
        if done.returncode != 0:
            sys.exit(f"compare: {words} exits with {done.returncode}\n{done.stderr[-1500:]}")
        return done.stdout

    def socket(self) -> str:
        """The socket of the only host."""
        [found] = self.sockets.glob("*.sock")
        return str(found)

    def command(self, name: str, *words: str, expect: str):
        command = self.bench.toolhost(name, *words, expect=expect)
        command.env = self.env
        return command

    # ---- figures: what, value, unit, bar, detail

    def call(self):
        """P19: one call of a Node server, beside a call of a built-in function and the cold floor."""
        file, tool = self.node_server()
        sums = self.bench.scratch / "sum.yaml"
        sums.write_text("tools:\n  - { name: sum, module: builtin.calculator, function: calculate }\n")
        files = ["--mcp", file, "--tools", str(sums)]
        with self.host(*files):
            warm = self.command("warm", *files, "call", f"node-{tool}", "message=hi", expect="hi")
            inside = self.command("builtin", *files, "--fresh", "call", "sum", "expression=1+2",
                                  expect="3")
            # Sees to it that the host has the server.
            self.toolhost(*warm.argv[1:])
            timed = [warm, inside, self.bench.floor()]
            times = self.bench.timer.medians(*timed)
            for other, name, bar in zip(times[1:], ("a built-in call", "the cold floor"), (1.3, 1.3)):
                ratio = statistics.median(a / b for a, b in zip(times[0], other))
                detail = (f"warm {statistics.median(times[0]):.2f} ms, "
                          f"{name} {statistics.median(other):.2f} ms, server {Path(file).stem}")
                yield f"warm call / {name}", ratio, "x", ("<=", bar), detail
            if self.mcporter:
                yield self.beside_mcporter(warm, tool)

    def node_server(self) -> tuple[str, str]:
        """A file with the server `node`, and the tool that says what it is told."""
        if Path(self.everything).is_file():
            entry = {"command": "node", "args": [self.everything, "stdio"]}
            name = "everything"
        else:
            entry, name = {"command": self.bench.null, "args": []}, "null-server"
        path = self.bench.scratch / f"{name}.json"
        path.write_text(json.dumps({"mcp_servers": {"node": entry}}))
        return str(path), "echo"

    def beside_mcporter(self, warm, tool: str):
        """The same call by mcporter with its daemon, in turns with ours."""
        entry = json.loads((self.bench.scratch / "everything.json").read_text())
        server = {**entry["mcp_servers"]["node"], "lifecycle": "keep-alive"}
        config = self.bench.scratch / "mcporter.json"
        config.write_text(json.dumps({"mcpServers": {"node": server}}))
        words = ["--config", str(config)]
        theirs = self.bench.other("mcporter", self.mcporter, *words, "call", f"node.{tool}",
                                  "message=hi", expect="hi")
        # The node that was installed beside it, which its first line looks for.
        beside = str(Path(self.mcporter).parent)
        theirs.env = {**theirs.env, "PATH": f"{beside}{os.pathsep}{theirs.env['PATH']}"}
        subprocess.run([self.mcporter, *words, "daemon", "start"], env=theirs.env,
                       cwd=self.bench.scratch, check=True, capture_output=True, timeout=60)
        try:
            subprocess.run(theirs.argv, env=theirs.env, cwd=theirs.cwd, check=True,
                           capture_output=True, timeout=60)
            mine, yours = self.bench.timer.medians(warm, theirs)
        finally:
            subprocess.run([self.mcporter, *words, "daemon", "stop"], env=theirs.env,
                           cwd=self.bench.scratch, check=False, capture_output=True, timeout=60)
        ratio = statistics.median(b / a for a, b in zip(mine, yours))
        detail = f"mcporter with its daemon {statistics.median(yours):.1f} ms"
        return "mcporter / warm call", ratio, "x", (">=", 50), detail

    def idle(self):
        """P20: what a host with five servers costs while nothing is called."""
        names = [f"s{number}" for number in range(5)]
        file = self.bench.servers("five.json", {name: [] for name in names})
        with self.host("--mcp", file) as host:
            for name in names:
                self.toolhost("--mcp", file, "call", f"{name}-echo", "message=hi")
            time.sleep(2)  # what was begun by the last call has ended
            before = switches(host["pid"])
            time.sleep(IDLE_SECONDS)
            rate = (switches(host["pid"]) - before) / IDLE_SECONDS
            yield "idle host, own memory", anonymous(host["pid"]), "MiB", ("<=", 16), "RssAnon"
            yield "idle host, wake-ups", rate, "/s", ("<=", 0.2), f"over {IDLE_SECONDS} s, all threads"

    def throughput(self):
        """P21: eight clients that call through one host at once, beside the host itself."""
        file = self.bench.servers("shared.json", {"null": []})
        calls = self.calls
        ratios, shared_rates, own_rates = [], [], []
        with self.host("--mcp", file):
            self.toolhost("--mcp", file, "call", "null-echo", "message=hi")
            target = f"unix:{self.socket()}"
            env = {**self.env, "RAW_TOOL": "null-echo"}
            for _ in range(self.bench.timer.rounds):
                began = time.monotonic()
                clients = [subprocess.Popen([self.bench.raw, str(calls), "1", target], env=env,
                                            stdout=subprocess.DEVNULL) for _ in range(CLIENTS)]
                if any(client.wait(timeout=600) for client in clients):
                    sys.exit("compare: a client of the host failed")
                shared = CLIENTS * calls / (time.monotonic() - began)
                alone = self.in_process(file, CLIENTS * calls)
                ratios.append(shared / alone)
                shared_rates.append(shared)
                own_rates.append(alone)
        detail = (f"{statistics.median(shared_rates):.0f} calls/s by {CLIENTS} clients, "
                  f"{statistics.median(own_rates):.0f} in process")
        yield "shared host / in process", statistics.median(ratios), "x", (">=", 0.5), detail

    def in_process(self, file: str, calls: int) -> float:
        """Ordinary calls a second, recorded and audited, of one process with eight in flight: what
        `cargo bench --bench calls` says (--in-process), or else of a process that serves one client."""
        if self.alone:
            return self.alone
        argv = [self.bench.raw, str(calls), str(CLIENTS), self.bench.binary, "--mcp", file, "--fresh",
                "serve", "--stdio"]  # fmt: skip
        env = {**self.env, "RAW_TOOL": "null-echo"}
        began = time.monotonic()
        subprocess.run(argv, env=env, cwd=self.bench.scratch, check=True, capture_output=True,
                       timeout=600)
        return calls / (time.monotonic() - began)

    def seen(self):
        """P22: from a call's first byte on the socket until a console shows whose it is."""
        file = self.bench.servers("seen.json", {"null": []})
        times = []
        with self.host("--mcp", file):
            self.toolhost("--mcp", file, "call", "null-echo", "message=hi")
            with self.console("--mcp", file) as (screen, keys):
                wait_for(screen, b"attached to the background host")
                os.write(keys, b"3")
                for number in range(self.bench.timer.runs):
                    name = f"client-{number}-of-compare"
                    # On an empty list a new line is written whole.
                    os.write(keys, b"C")
                    drain(screen)
                    client = connect(self.socket(), name)
                    began = time.monotonic()
                    client.sendall(line(2, "tools/call",
                                        {"name": "null-echo", "arguments": {"message": "hi"}}))
                    wait_for(screen, f"[{name}]".encode())
                    times.append((time.monotonic() - began) * 1000)
                    client.close()
        worst = max(times)
        detail = f"median {statistics.median(times):.1f} ms of {len(times)} calls"
        yield "call / seen in a console", worst, "ms", ("<=", 50), detail

    @contextlib.contextmanager
    def console(self, *words: str) -> Iterator[tuple[int, int]]:
        """The console on a terminal of its own."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.bench.scratch)
            os.execve(self.bench.binary, [self.bench.binary, *words],
                      {**self.env, "TERM": "xterm-256color"})
        ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 45, 160, 0, 0))
        try:
            yield terminal, terminal
        finally:
            with contextlib.suppress(OSError):
                os.write(terminal, b"q")
                while os.read(terminal, 65536):
                    pass
            os.close(terminal)
            os.waitpid(pid, 0)


def line(id: int, method: str, params: dict) -> bytes:
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return (json.dumps(message) + "\n").encode()


def connect(path: str, name: str) -> socket.socket:
    """An MCP client on the socket, after its handshake."""
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    params = {**HELLO_PARAMS, "clientInfo": {"name": name, "version": "1"}}
    client.sendall(line(0, "initialize", params))
    client.recv(65536)
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    client.sendall((json.dumps(ready) + "\n").encode())
    return client


def wait_for(terminal: int, text: bytes) -> None:
    """Reads what a terminal is sent until some text was in it. Spaces do not count: where there was
    one before, none is sent."""
    seen, text = b"", text.replace(b" ", b"")
    end = time.monotonic() + 30
    while text not in seen:
        ready, _, _ = select.select([terminal], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            sys.exit(f"compare: the console never showed {text!r}")
        # Escape sequences within a word are none of it.
        seen += re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]| ", b"", os.read(terminal, 65536))
        seen = seen[-200_000:]


def drain(terminal: int) -> None:
    """Reads what a terminal is sent until it is quiet."""
    while select.select([terminal], [], [], 0.3)[0]:
        os.read(terminal, 65536)


def anonymous(pid: int) -> float:
    """The memory of a process that is its own, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+) kB", status).group(1)) / 1024


def switches(pid: int) -> int:
    """How often the threads of a process waited and were woken."""
    total = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        status = (thread / "status").read_text()
        total += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status, re.M).group(1))
    return total
