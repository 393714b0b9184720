"""Runs toolhost, counts checks, and draws the matrix of servers and features."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

from .servers import MARKER, Peers, Server, write_config

COMMAND_LIMIT = 90  # seconds; far above anything seen, so that a hang fails instead of hanging CI
FEATURES = [
    "list",
    "call",
    "progress",
    "cancel",
    "question",
    "resource",
    "watch",
    "prompt",
    "complete",
]


@dataclass
class Run:
    """One finished run of toolhost."""

    words: list[str]
    code: int
    out: str
    err: str
    seconds: float

    def json(self) -> dict:
        return json.loads(self.out)


@dataclass
class Suite:
    """Runs checks, counts them, and prints one line for each."""

    binary: Path
    peers: Peers
    marker: str
    only: str | None = None
    rows: list[Server] = field(default_factory=list)
    passed: int = 0
    failures: list[str] = field(default_factory=list)
    skipped: int = 0
    matrix: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def scratch(self) -> Path:
        return self.peers.scratch

    @property
    def config(self) -> Path:
        return self.scratch / "mcp.json"

    # ------------------------------------------------------------------------------- running

    def start(self, *words: str, config: Path | None = None) -> subprocess.Popen:
        """Starts toolhost with a home of its own and no terminal."""
        home = self.scratch / "home"
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_CACHE_HOME": str(home / "cache"),
            "XDG_DATA_HOME": str(home / "data"),
            "LANG": "C.UTF-8",
        }
        return subprocess.Popen(
            [str(self.binary), "--mcp", str(config or self.config), *words],
            env=environment,
            cwd=self.scratch,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def toolhost(
        self, *words: str, config: Path | None = None, interrupt: float | None = None
    ) -> Run:
        """Runs toolhost to its end; `interrupt` is when it gets the signal of Ctrl-C."""
        started = time.monotonic()
        process = self.start(*words, config=config)
        try:
            if interrupt is not None:
                try:
                    out, err = process.communicate(timeout=interrupt)
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=COMMAND_LIMIT)
        except subprocess.TimeoutExpired as late:
            process.kill()
            process.communicate()
            raise AssertionError(f"no end after {late.timeout} s: {' '.join(words)}") from late
        seconds = time.monotonic() - started
        told = out.decode(), err.decode(errors="replace")
        return Run(list(words), process.returncode, *told, seconds)

    def call(self, tool: str, *words: str, code: int = 0, config: Path | None = None) -> dict:
        """`call --json`, with the expected exit code; gives the printed object."""
        run = self.toolhost("call", tool, *words, "--json", config=config)
        expect_code(run, code)
        return run.json() if run.out.strip() else {}

    def only_with(self, *names: str) -> Path:
        """The configuration with these servers alone."""
        rows = [row for row in self.rows if row.name in names]
        return write_config(self.scratch / f"only-{'-'.join(names)}.json", rows, self.marker)

    def understands(self, *words: str) -> bool:
        """Whether toolhost has this command, and below it this command or option."""
        *command, last = words
        page = self.toolhost(*command, "--help")
        return page.code == 0 and re.search(rf"(?m)^\s+(-\w, )?{last}\b", page.out) is not None

    def left_behind(self) -> list[str]:
        """Command lines of processes that carry the marker."""
        needle = f"{MARKER}={self.marker}".encode()
        found = []
        for directory in Path("/proc").glob("[0-9]*"):
            try:
                if needle in (directory / "environ").read_bytes().split(b"\0"):
                    line = (directory / "cmdline").read_bytes().replace(b"\0", b" ")
                    found.append(f"{directory.name}: {line.decode(errors='replace').strip()}")
            except OSError:
                continue  # it ended, or it is another user's
        return found

    # ------------------------------------------------------------------------------ counting

    def check(
        self,
        name: str,
        body: Callable[[], str | None],
        of: tuple[str, str] | None = None,
        lacking: str | None = None,
    ) -> None:
        """Runs one check; a process left behind fails it whatever else happened.

        `of` is the server and the feature it stands for in the matrix, `lacking` what toolhost
        does not have yet, so that the check is skipped.
        """
        if self.only and self.only not in name:
            return
        if lacking:
            self.skipped += 1
            self.mark(of, "skipped")
            print(f"skip  {name}  (skipped: {lacking})", flush=True)
            return
        try:
            note = body()
            if left := self.left_behind():
                raise AssertionError("left behind: " + "; ".join(left))
        except (AssertionError, KeyError, IndexError, TypeError, ValueError) as problem:
            self.failures.append(name)
            self.mark(of, "FAIL")
            print(f"FAIL  {name}\n      {type(problem).__name__}: {problem}", flush=True)
        else:
            self.passed += 1
            self.mark(of, "ok")
            print(f"ok    {name}" + (f"  ({note})" if note else ""), flush=True)

    def mark(self, of: tuple[str, str] | None, verdict: str) -> None:
        """Enters a verdict; the worst of several stays."""
        order = ["ok", "skipped", "FAIL"]
        if of and order.index(verdict) >= order.index(self.matrix.get(of, "ok")):
            self.matrix[of] = verdict

    def draw(self) -> None:
        """Prints which feature was seen to work with which server."""
        width = max(len(row.name) for row in self.rows)
        print("\n" + " " * width + "".join(f"  {name:8}" for name in ["era", *FEATURES]).rstrip())
        for row in self.rows:
            if not any(name == row.name for name, _ in self.matrix):
                continue
            cells = [row.era, *(self.matrix.get((row.name, name), "-") for name in FEATURES)]
            print(f"{row.name:{width}}" + "".join(f"  {cell:8}" for cell in cells).rstrip())


def expect_code(run: Run, code: int) -> None:
    tail = (run.err or run.out).strip()[-800:]
    assert run.code == code, f"exit {run.code}, expected {code}: {' '.join(run.words)}\n      {tail}"


def expect(condition: bool, what: object) -> None:
    assert condition, str(what)


def expect_in(part: str, run: Run) -> None:
    expect_code(run, 0)
    assert part in run.out, f"{part!r} is not in the output of {' '.join(run.words)}: {run.out!r}"


def text_of(answer: dict) -> str:
    """All text blocks of a result."""
    blocks = [b["text"] for b in answer["content"] if b["type"] == "text"]
    return "\n".join(blocks)
