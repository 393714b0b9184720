"""What the checks of the whole program share: a room to run it in, an MCP client of `toolhost serve`,
a console in a pseudo-terminal with a reader of its screen, and what the system knows of processes.

Not a command: `.ci/soak` and `.ci/faults` import it.
"""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
import unicodedata
from pathlib import Path

PATIENCE = 30.0  # seconds for anything to start, answer or end


class Room:
    """A working directory with a home of its own, whose path marks every process that starts in it."""

    def __init__(self, directory: Path) -> None:
        self.path = directory
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "TERM": "xterm-256color"}
        self.environment["LANG"] = "C.UTF-8"
        for name in ["config", "state", "cache", "data", "run"]:
            (directory / name).mkdir(mode=0o700)
            kind = "RUNTIME_DIR" if name == "run" else f"{name.upper()}_HOME"
            self.environment[f"XDG_{kind}"] = str(directory / name)

    def inhabitants(self) -> dict[int, str]:
        """The processes that still run here, by their environment or working directory."""
        marker, found = os.fsencode(self.path), {}
        for entry in Path("/proc").iterdir():
            # A zombie has neither, and a process of somebody else cannot be read.
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and (
                    marker in (entry / "environ").read_bytes()
                    or (entry / "cwd").readlink().is_relative_to(self.path)
                ):
                    found[int(entry.name)] = (entry / "comm").read_text().strip()
        return found

    def left(self, seconds: float) -> dict[int, str]:
        """Who is still here after so long; they are killed."""
        end = time.monotonic() + seconds
        while (found := self.inhabitants()) and time.monotonic() < end:
            time.sleep(0.05)
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return found


class Agent:
    """An MCP client of `toolhost serve`, over its stdin and stdout."""

    def __init__(
        self, command: list[str], room: Room, patience: float = PATIENCE, errors: int = subprocess.DEVNULL
    ) -> None:
        self.patience = patience
        self.process = subprocess.Popen(
            command, cwd=room.path, env=room.environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
        )
        self.buffer = b""
        self.next = 0
        self.request("initialize", {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "lab", "version": "1"},
        })
        self.send({"method": "notifications/initialized"})

    def send(self, message: dict) -> None:
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method: str, parameters: dict) -> dict:
        self.next += 1
        self.send({"id": self.next, "method": method, "params": parameters})
        end = time.monotonic() + self.patience
        while time.monotonic() < end:
            while b"\n" in self.buffer:
                line, self.buffer = self.buffer.split(b"\n", 1)
                message = json.loads(line)
                if message.get("id") == self.next and "method" not in message:
                    return message
            if select.select([self.process.stdout], [], [], 1)[0]:
                part = os.read(self.process.stdout.fileno(), 1 << 16)
                if not part:
                    break
                self.buffer += part
        raise RuntimeError(f"no answer to {method} {parameters}")

    def call(self, tool: str, arguments: dict) -> dict:
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def close(self) -> int | None:
        """Closes its input, and gives its exit code: none when it had to be killed."""
        self.process.stdin.close()
        try:
            return self.process.wait(self.patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None
        finally:
            self.process.stdout.close()


def is_ok(answer: dict) -> bool:
    return "result" in answer and not answer["result"].get("isError", False)


class Screen:
    """What a terminal shows of the output of a program that draws frames (synchronized output), and
    what of that output no console has a reason to send."""

    SEQUENCE = re.compile(r"\x1b\[([<-?]?)([0-9;:]*)([ -/]?)([@-~])")
    BEGUN = re.compile(r"\x1b(\[[0-?]*[ -/]*)?\Z")

    def __init__(self, rows: int, columns: int) -> None:
        self.size = (rows, columns)
        self.cells = [[" "] * columns for _ in range(rows)]
        self.row = self.column = 0
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.rest = ""
        self.frame = ""
        self.modes: dict[str, bool] = {}
        self.foreign: set[str] = set()

    def feed(self, part: bytes) -> None:
        try:
            text = self.rest + self.decoder.decode(part)
        except UnicodeDecodeError as error:
            self.foreign.add(f"bytes that are not UTF-8: {error.object!r:.60}")
            self.decoder.reset()
            return
        at, self.rest = 0, ""
        while at < len(text):
            sign = text[at]
            if sign != "\x1b":
                self.put(sign)
                at += 1
            elif sequence := self.SEQUENCE.match(text, at):
                self.obey(*sequence.groups())
                at = sequence.end()
            elif self.BEGUN.match(text, at):
                self.rest = text[at:]
                return
            else:
                self.foreign.add(repr(text[at:at + 8]))
                at += 1

    def put(self, sign: str) -> None:
        rows, columns = self.size
        if sign == "\r":
            self.column = 0
        elif sign == "\n":
            self.row = min(self.row + 1, rows - 1)
        elif is_forbidden(sign):
            self.foreign.add(f"U+{ord(sign):04X}")
        elif unicodedata.combining(sign):
            self.cells[self.row][max(self.column - 1, 0)] += sign
        else:
            wide = unicodedata.east_asian_width(sign) in "WF"
            if self.column < columns:
                self.cells[self.row][self.column] = sign
            if wide and self.column + 1 < columns:
                self.cells[self.row][self.column + 1] = ""
            self.column += 2 if wide else 1

    def obey(self, mark: str, parameters: str, _between: str, what: str) -> None:
        rows, columns = self.size
        numbers = [int(word) if word.isdigit() else 0 for word in parameters.split(";")]
        if mark == "?" and what in "hl":
            self.modes.update({number: what == "h" for number in parameters.split(";")})
            if (parameters, what) == ("2026", "l"):
                self.frame = "\n".join("".join(line) for line in self.cells)
        elif mark or what not in "HJKm":
            # The keyboard protocol and the shape of the cursor change nothing that is shown.
            if what not in "uq":
                self.foreign.add(f"CSI {mark}{parameters}{what}")
        elif what == "H":
            line, column = (numbers + [0])[:2]
            self.row, self.column = min(max(line, 1), rows) - 1, min(max(column, 1), columns) - 1
        elif what == "J" and numbers[0] == 2:
            self.cells = [[" "] * columns for _ in range(rows)]
        elif what in "JK":
            self.cells[self.row][self.column:] = [" "] * (columns - self.column)
            for line in range(self.row + 1, rows if what == "J" else 0):
                self.cells[line] = [" "] * columns


FORBIDDEN = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufffe\uffff\U000e0000-\U0010ffff]"
)


def is_forbidden(text: str) -> bool:
    """Whether a terminal might obey something in a text, or a reader not see it."""
    return FORBIDDEN.search(text) is not None


class Console:
    """The console in a terminal."""

    def __init__(self, command: list[str], room: Room, rows: int = 45, columns: int = 160) -> None:
        self.screen = Screen(rows, columns)
        self.changed = threading.Condition()
        self.is_given_back = False
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            # Not yet drawn to, so that the program finds it in this size.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.chdir(room.path)
            os.execve(command[0], command, room.environment)
        self.reader = threading.Thread(target=self.drain, daemon=True)
        self.reader.start()

    def drain(self) -> None:
        with contextlib.suppress(OSError):
            while part := os.read(self.terminal, 1 << 16):
                with self.changed:
                    self.screen.feed(part)
                    self.changed.notify_all()

    def type(self, keys: str) -> None:
        with contextlib.suppress(OSError):
            os.write(self.terminal, keys.encode())

    def wait(self, pattern: str, seconds: float) -> re.Match[str] | None:
        """Waits until a whole frame shows this."""
        found: list[re.Match[str]] = []

        def is_shown() -> bool:
            found[:] = filter(None, [re.search(pattern, self.screen.frame)])
            return bool(found)

        with self.changed:
            self.changed.wait_for(is_shown, seconds)
        return found[0] if found else None

    def close(self, keys: str = "q", patience: float = PATIENCE) -> int | None:
        """Types what ends it, and gives its exit code: none when it had to be killed."""
        self.type(keys)
        end, code = time.monotonic() + patience, None
        while not (ended := os.waitpid(self.pid, os.WNOHANG))[0] and time.monotonic() < end:
            time.sleep(0.02)
        if ended[0]:
            code = os.waitstatus_to_exitcode(ended[1])
        else:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self.reader.join(1)  # what it wrote last
        self.is_given_back = self.is_as_before()
        os.close(self.terminal)
        return code

    def is_as_before(self) -> bool:
        """Whether the settings of the terminal are those of a new one, and no mode is left on."""
        fresh = os.openpty()
        settings = [termios.tcgetattr(end) for end in (self.terminal, fresh[0])]
        for end in fresh:
            os.close(end)
        # The cursor is shown, and lines wrap, in a new one.
        left = [mode for mode, is_on in self.screen.modes.items() if is_on != (mode in ("25", "7"))]
        return settings[0] == settings[1] and not left


def memory(pid: int, field: str = "RssAnon") -> float:
    """A figure of /proc/PID/status in MiB: by default anonymous memory; 0 for a process that is gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) / 1024
    return 0.0


def descendants(pid: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                if fields[0] != "Z":
                    parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, left = [], [pid]
    while left:
        children = parents.get(left.pop(), [])
        found += children
        left += children
    return found
