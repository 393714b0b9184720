"""The servers: how each is started or reached, its era, and some of its tools."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

MARKER = "TOOLHOST_INTEROP_MARKER"
SAMPLES = Path(__file__).resolve().parent.parent / "samples"


@dataclass
class Server:
    """One row of the configuration under test."""

    name: str
    entry: dict
    era: str
    tools: list[str] = field(default_factory=list)


@dataclass
class Peers:
    """Where the installed servers are, and what they work on."""

    cache: Path
    scratch: Path

    @property
    def node(self) -> str:
        """The installed Node, or the machine's when npm was told not to run install scripts."""
        own = self.cache / "node/node_modules/node/bin/node"
        if own.is_file():
            return str(own)
        found = shutil.which("node")
        if found is None:
            sys.exit("interop: no node: npm did not install its own, and none is on the PATH")
        return found

    @property
    def files(self) -> Path:
        return self.scratch / "files"

    @property
    def repository(self) -> Path:
        return self.scratch / "repository"

    def reference(self, name: str, *words: str) -> list[str]:
        """The command of one of the reference servers on Node."""
        script = self.cache / f"node/node_modules/@modelcontextprotocol/{name}/dist/index.js"
        return [self.node, str(script), *words]

    def typescript(self, *words: str) -> list[str]:
        # Modules are looked for beside the script.
        return [self.node, str(self.scratch / "typescript/sample.mjs"), *words]

    def python(self, name: str, *words: str) -> list[str]:
        return [str(self.cache / "python/bin" / name), *words]

    def fastmcp(self, *words: str) -> list[str]:
        return self.python("python", str(SAMPLES / "fastmcp_sample.py"), *words)

    def rust(self, *words: str) -> list[str]:
        return [str(self.cache / "rust/bin/modelcontextprotocol"), *words]

    def prepare(self) -> None:
        """Makes the files, the repository and the directories that the servers work on."""
        self.files.mkdir()
        (self.files / "note.txt").write_text("hello from a real file\n")
        place = self.scratch / "typescript"
        place.mkdir()
        shutil.copy(SAMPLES / "typescript_sample.mjs", place / "sample.mjs")
        (place / "node_modules").symlink_to(self.cache / "typescript/node_modules")
        self.repository.mkdir()
        (self.repository / "a.txt").write_text("a\n")
        identity = ["-c", "user.name=Interop", "-c", "user.email=interop@example.org"]
        commit = [*identity, "commit", "-q", "-m", "the first commit"]
        for words in (["init", "-q"], ["add", "a.txt"], commit):
            subprocess.run(["git", *words], cwd=self.repository, check=True)

    def rows(self, listeners: dict[str, Listener], toolbox: bool) -> list[Server]:
        """The configuration under test."""

        def stdio(name: str, command: list[str], era: str, *tools: str, **entry: object) -> Server:
            return Server(name, {"command": command[0], "args": command[1:], **entry}, era, [*tools])

        def http(name: str, era: str, *tools: str, **entry: object) -> Server:
            return Server(name, {"url": listeners[name].url, **entry}, era, [*tools])

        memory = {"MEMORY_FILE_PATH": str(self.scratch / "memory.json")}
        database = str(self.scratch / "old.db")
        old = [str(self.cache / "python-old/bin/mcp-server-sqlite"), "--db-path", database]
        rows = [
            stdio(
                "everything",
                self.reference("server-everything", "stdio"),
                "legacy",
                *["echo", "get-sum", "get-structured-content", "trigger-long-running-operation"],
            ),
            # The name of the first server is a prefix of this one: the longest known name wins.
            http("everything-http", "legacy", "echo", "get-sum"),
            stdio(
                "filesystem",
                self.reference("server-filesystem", str(self.files)),
                "legacy",
                *["read_text_file", "write_file", "list_directory"],
            ),
            stdio(
                "memory",
                self.reference("server-memory"),
                "legacy",
                *["create_entities", "read_graph"],
                env=memory,
            ),
            stdio(
                "thinking",
                self.reference("server-sequential-thinking"),
                "legacy",
                "sequentialthinking",
            ),
            stdio(
                "time",
                self.python("mcp-server-time", "--local-timezone", "UTC"),
                "modern",
                *["get_current_time", "convert_time"],
            ),
            stdio(
                "git",
                self.python("mcp-server-git", "--repository", str(self.repository)),
                "modern",
                *["git_log", "git_status"],
            ),
            stdio(
                "fetch",
                self.python("mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips"),
                "modern",
                "fetch",
            ),
            stdio("sqlite-old", old, "legacy", "read_query", "write_query", "create_table"),
            stdio("fastmcp", self.fastmcp(), "modern", "count", "greet", "order"),
            stdio("fastmcp-legacy", self.fastmcp(), "legacy", "count", "order", protocol="legacy"),
            http("fastmcp-http", "modern", "count", "greet"),
            stdio("typescript", self.typescript(), "modern", "add", "deploy", "wait"),
            stdio(
                "typescript-legacy",
                self.typescript(),
                "legacy",
                *["add", "deploy"],
                protocol="legacy",
            ),
            http("typescript-http", "modern", "add", "deploy", "wait"),
            stdio(
                "rust-files",
                self.rust("filesystem", str(self.files)),
                "modern",
                *["read_text_file", "write_file", "list_directory"],
            ),
            stdio(
                "rust-memory",
                self.rust("memory", "--memory-file", str(self.scratch / "rust-memory.jsonl")),
                "modern",
                *["create_entities", "read_graph"],
            ),
        ]
        # Servers of the transport that Streamable HTTP replaced, where it is spoken.
        for name in ("everything-sse", "fastmcp-sse"):
            if name in listeners:
                rows.append(http(name, "legacy", transport="sse"))
        if toolbox:
            # The program itself: its launcher would leave it behind when it is killed.
            program = "node_modules/@toolbox-sdk/server-linux-x64/bin/toolbox"
            command = [str(self.cache / "toolbox" / program), "--prebuilt", "sqlite", "--stdio"]
            database = {"SQLITE_DATABASE": str(self.scratch / "toolbox.db")}
            rows.append(stdio("toolbox", command, "modern", "execute_sql", env=database))
        return rows

    def listen(self, sse: bool) -> dict[str, Listener]:
        """Starts the servers that are reached by an address, all at once."""
        everything = self.reference("server-everything")

        def start(name: str, path: str, command: list[str], *words: str) -> Listener:
            return Listener(name, path, command, [*words], self.scratch)

        listeners = [
            start("everything-http", "/mcp", everything, "streamableHttp"),
            start("fastmcp-http", "/mcp", self.fastmcp(), "{port}"),
            start("typescript-http", "/mcp", self.typescript(), "{port}"),
        ]
        if sse:
            listeners.append(start("everything-sse", "/sse", everything, "sse"))
            listeners.append(start("fastmcp-sse", "/sse", self.fastmcp(), "{port}", "sse"))
        return {listener.name: listener for listener in listeners}


class Listener:
    """A server over HTTP, ended by its process id."""

    def __init__(
        self, name: str, path: str, command: list[str], words: list[str], scratch: Path
    ) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.name = name
        self.url = f"http://127.0.0.1:{self.port}{path}"
        self.log = scratch / f"{name}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, *(word.format(port=self.port) for word in words)],
                env={**os.environ, "PORT": str(self.port)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def wait(self) -> None:
        """Returns once it accepts connections."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and self.process.poll() is None:
            with socket.socket() as probe:
                probe.settimeout(1)
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        sys.exit(f"interop: {self.name} did not start:\n{self.log.read_text()[-2000:]}")

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(5)


def write_config(path: Path, rows: list[Server], marker: str) -> Path:
    """Writes an `mcp.json`; each child process carries the marker in its environment."""
    entries = {}
    for row in rows:
        entry = dict(row.entry)
        if "command" in entry:
            entry["env"] = {**entry.get("env", {}), MARKER: marker}
        entries[row.name] = entry
    path.write_text(json.dumps({"mcp_servers": entries}, indent=2))
    return path
