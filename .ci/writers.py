"""Rooms in which the program runs, and everything that writes in them, for `.ci/torture`.

The table WRITERS has a row for each writer of the program: where it is in the sources, the command that
makes it write, how its files are read, and what they hold after a run. A test that writers lack is a row.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 70  # seconds after which a run counts as hanging; describing a module may take a minute
MOST_TOOLS = 200  # of a room, for what pins another one each time
CODES = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 129, 130, 143}  # docs/reference/exit-codes.md
STATE = "state/toolhost"
CONFIG = "config/toolhost"
HOUR = 3600
DAY = 24 * HOUR
YEAR = 365 * DAY

problems: list[str] = []
unable: set[str] = set()


def problem(where: str, what: str) -> None:
    problems.append(f"{where}: {what}")


class Broken(Exception):
    """A file holds neither what it held before nor what was to be written."""


@dataclass
class Finished:
    code: int
    out: str = ""
    err: str = ""
    hung: bool = False
    acknowledged: bool = False

    def __str__(self) -> str:
        return f"exit {self.code}, said {self.err.strip()[-300:]!r}"


class Room:
    """A home, a working directory and state of its own."""

    def __init__(self, root: Path, binary: Path) -> None:
        self.root, self.binary = root, binary
        self.number = 0  # of the last run of the writer
        self.may_tear = False  # the last line of an appended file may be incomplete
        for name in ["home", "work", "bin", "tmp", "cache", "data", "run", CONFIG, STATE]:
            (root / name).mkdir(parents=True, mode=0o700)
        tools = "".join(
            f"  - {{ name: t{n}, module: builtin.calculator, function: calculate }}\n" for n in range(MOST_TOOLS)
        )
        self.write(f"{CONFIG}/mcp.yaml", "")
        self.write(f"{CONFIG}/tools.yaml", f"""scopes: {{ WORK: {json.dumps(str(root / "work"))} }}
components:
  - {{ name: s, type: storage, storage_type: disk, path: s.db }}
  - {{ name: box, type: mailbox, path: m.db }}
  - {{ name: files, type: files, scope: WORK, access: write }}
tools:
  - {{ name: calculator, module: builtin.calculator, function: calculate }}
{tools}""")
        self.environment = {
            "HOME": str(root / "home"), "TMPDIR": str(root / "tmp"), "XDG_RUNTIME_DIR": str(root / "run"),
            "PATH": f"{root / 'bin'}:/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC",
            **{f"XDG_{name.upper()}_HOME": str(root / name) for name in ["config", "state", "cache", "data"]},
        }

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text)

    def start(self, words: list[str], wrap: list[str] | None = None, **more: object) -> subprocess.Popen:
        environment = {**self.environment, **more.pop("environment", {})}
        return subprocess.Popen(
            [*(wrap or []), str(self.binary), *words], cwd=self.root / "work",
            env={name: value for name, value in environment.items() if value is not None},
            **{stream: subprocess.PIPE for stream in ["stdin", "stdout", "stderr"]} | more,
        )

    def run(self, *words: str, stdin: str = "", kill_after: float | None = None,
            is_hopeless: Callable[[], bool] = lambda: False, **how: object) -> Finished:
        """Ends it after `kill_after` or when it hangs, which for one that is hopeless is soon."""
        process = self.start(list(words), **how)
        try:
            try:
                out, err = process.communicate(stdin.encode(), timeout=kill_after or 3)
            except subprocess.TimeoutExpired:
                if kill_after or is_hopeless():
                    raise
                out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            if kill_after is None:  # a tracer leaves what it traced
                self.end_inhabitants()
            try:
                out, err = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                return Finished(process.returncode, hung=True)
            text = (out.decode(errors="replace"), err.decode(errors="replace"))
            return Finished(process.returncode, *text, hung=kill_after is None)
        return Finished(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))

    def must(self, *words: str, **how: object) -> Finished:
        finished = self.run(*words, **how)
        if finished.code != 0:
            raise Broken(f"{' '.join(words)}: {finished}")
        return finished

    def inhabitants(self) -> list[int]:
        found, mark = [], f"HOME={self.root / 'home'}\0".encode()
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes() + b"\0":
                    found.append(int(entry.name))
        return found

    def await_empty(self, where: str, seconds: float = 8) -> None:
        end = time.monotonic() + seconds
        while left := self.inhabitants():
            if time.monotonic() > end:
                problem(where, f"left behind: {[command_line(pid) for pid in left]}")
                return self.end_inhabitants()
            time.sleep(0.02)

    def end_inhabitants(self) -> None:
        for pid in self.inhabitants():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def names(self) -> dict[str, list[Path]]:
        """All files; numbers in their names are alike, and what SQLite keeps beside a file is part of it."""
        found: dict[str, list[Path]] = {}
        for directory, _, files in os.walk(self.root):
            for file in files:
                path = Path(directory, file)
                name = re.sub(r"-(wal|shm|journal)$", "", str(path.relative_to(self.root)))
                name = re.sub(r"\d{8}T\d+Z(-\d+)?|[0-9a-f]{8}[0-9a-f-]*|\d+", "#", name)
                found.setdefault(name, []).append(path)
        return found


def command_line(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return "?"


# ---- readers: what stands in a file -------------------------------------------------------------

Reader = Callable[[Room, Path], object]


def text(_: Room, path: Path) -> object:
    return path.read_text() if path.exists() else None


def loaded(path: Path) -> object:
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise Broken(f"{path.name} is torn: {error}") from error


def whole_json(_: Room, path: Path) -> object:
    return "whole" if path.exists() and loaded(path) is not None else None


def whole_text(ending: str) -> Reader:
    def read(_: Room, path: Path) -> object:
        if not path.exists():
            return None
        if not path.read_text().endswith(ending):
            raise Broken(f"{path.name} is torn: it does not end with {ending!r}")
        return "whole"
    return read


def names_of(select: Callable[[object], list]) -> Reader:
    def read(_: Room, path: Path) -> object:
        return frozenset(map(str, select(loaded(path)))) if path.exists() else frozenset()
    return read


def entries(shape: str) -> Reader:
    """The names of entries in YAML; every line of the file has to be one of this shape."""
    def read(_: Room, path: Path) -> object:
        found = path.read_text() if path.exists() else ""
        if not re.fullmatch(shape.replace("(NAME)", r"\w+"), found):
            raise Broken(f"{path.name} is torn: {found[-200:]!r}")
        return frozenset(re.findall(r"^ +(?:- name: )?\"?(\w*\d+)\"?:?$", found, re.M))
    return read


def lines(path: Path, may_tear: bool) -> list[dict]:
    found = path.read_text(errors="replace") if path.exists() else ""
    if found and not found.endswith("\n") and not may_tear:
        raise Broken(f"the last line of {path.name} is torn")
    rows = []
    for line in filter(None, found.split("\n")):
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            if not may_tear:
                raise Broken(f"{path.name} has a torn line {line[:80]!r}: {error}") from error
    return rows


def row_count(word: str = "") -> Reader:
    """The rows of a file and those that were set aside; of some kind, when their event is given."""
    def read(room: Room, path: Path) -> object:
        paths = sorted(path.parent.glob(f"{path.stem}-*{path.suffix}")) + [path]
        rows = [row for each in paths for row in lines(each, room.may_tear)]
        return sum(row.get("event", "") == word for row in rows)
    return read


def whole_lines(room: Room, path: Path) -> object:
    return "whole" if lines(path, room.may_tear) else None


def whole_trace(room: Room, path: Path) -> object:
    rows = lines(path, room.may_tear)
    if rows and "toolhost_trace" not in rows[0]:
        raise Broken("a recording without its header")
    return "whole" if rows else None


@contextlib.contextmanager
def database(path: Path) -> Iterator[sqlite3.Connection]:
    """A copy of a database with its log, so that the program recovers the real one."""
    with tempfile.TemporaryDirectory(prefix="toolhost-torture-") as directory:
        copy = Path(directory, "copy")
        for ending in ["", "-wal", "-journal"]:
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{ending}", f"{copy}{ending}")
        with contextlib.closing(sqlite3.connect(copy)) as db:
            try:
                verdict = db.execute("PRAGMA integrity_check").fetchone()[0]
                if verdict != "ok":
                    raise Broken(f"{path.name}: {verdict}")
                yield db
            except sqlite3.DatabaseError as error:
                raise Broken(f"{path.name}: {error}") from error


def stored(column: str) -> Reader:
    def read(_: Room, path: Path) -> object:
        if not path.exists():
            return frozenset()
        with database(path) as db:
            return frozenset(row[0] for row in db.execute(f"SELECT {column} FROM entry"))
    return read


def logged_in(room: Room, _: Path) -> object:
    return len(json.loads(room.must("auth", "list", "--json").out)["logins"])


# ---- changes: what stands there after a run ------------------------------------------------------

View = dict[str, object]
Change = Callable[[View, int], View]


def adds(path: str, name: str) -> Change:
    return lambda old, n: {**old, path: old[path] | {name.format(n=n)}}


def drops(path: str, name: str) -> Change:
    return lambda old, n: {**old, path: old[path] - {name.format(n=n)}}


def becomes(path: str, value: Callable[[int], object]) -> Change:
    return lambda old, n: {**old, path: value(n)}


def one_more(old: View, _: int) -> View:
    return {path: count + 1 for path, count in old.items()}


def all_whole(old: View, _: int) -> View:
    return {path: "whole" for path in old}


# ---- the writers ---------------------------------------------------------------------------------

@dataclass
class Writer:
    name: str
    sources: str  # where the program writes; relative to src
    command: Callable[[int], list[str]]
    files: dict[str, Reader]
    change: Change
    configure: Callable[[Room], None] = lambda room: None
    prepare: Callable[[Room, int], None] = lambda room, n: None
    stdin: str = ""
    answer: Callable[[int], str] | None = None  # what is printed, whatever becomes of the records
    is_cache: bool = False  # may be lost without a word
    most: int = 12  # calls of each kind that are made to fail
    only_removes: bool = False

    def view(self, room: Room) -> View:
        found: View = {}
        for path, reader in self.files.items():
            try:
                found[path] = reader(room, room.root / path.split("#")[0])
            except sqlite3.DatabaseError as error:
                raise Broken(f"{path}: {error}") from error
        return found


def words(line: str) -> Callable[[int], list[str]]:
    return lambda n: line.format(n=n).split()


def spool_row(n: int, at: int, padding: int) -> str:
    row = {"t": int(time.time() * 1000), "id": f"{n}-{at}", "tool": "calculator", "k": "ok",
           "us": 5, "n": 1, "b": 1, "padding": "x" * padding}
    return json.dumps(row) + "\n"


def full_spool(room: Room, n: int) -> None:
    """The next line sets it aside."""
    for path in (room.root / STATE).glob("stats*.spool"):
        path.unlink()
    room.write(f"{STATE}/stats.spool", "".join(spool_row(n, at, 60_000) for at in range(70)))


def no_file(*names: str) -> Callable[[Room, int], None]:
    def prepare(room: Room, _: int) -> None:
        for name in names:
            for ending in ["", "-wal", "-shm"]:
                (room.root / f"{name}{ending}").unlink(missing_ok=True)
    return prepare


def project(room: Room, n: int) -> None:
    (room.root / f"work/p{n}").mkdir(exist_ok=True)
    room.write(f"work/p{n}/tools.yaml", "tools: [{ name: x, command: [/bin/true] }]\n")


def trusted(room: Room, n: int) -> None:
    project(room, n)
    room.must("trust", f"p{n}", "--yes")


def suite(room: Room, n: int) -> None:
    test = f'name: one, tool: calculator, args: {{ expression: "{n}" }}, expect: {{ snapshot: true }}'
    room.write("work/suite.yaml", f"tests:\n  - {{ {test} }}\n")


def called(room: Room, n: int) -> None:
    room.must("call", "calculator", f"expression={n}")


def no_caches(room: Room, _: int) -> None:
    shutil.rmtree(room.root / "cache")
    (room.root / "cache").mkdir(mode=0o700)


def demo_server(room: Room, more: str = "") -> None:
    command = json.dumps(str(room.binary))
    room.write(f"{CONFIG}/mcp.yaml", f"demo: {{ command: {command}, args: [demo-server], {more} }}\n")


def python_tool(room: Room) -> None:
    room.write("work/mod.py", 'def double(x: int) -> int:\n    """Doubles a number."""\n    return 2 * x\n')
    room.write(f"{CONFIG}/tools.yaml", "tools: [{ name: double, module: mod, function: double, root: "
               + json.dumps(str(room.root / "work")) + " }]\n")


class LoginServer(http.server.BaseHTTPRequestHandler):
    """An MCP server that wants a token, and its authorization server, which asks nobody."""

    def log_message(self, *_: object) -> None:
        pass

    def answer(self, code: int, content: dict | None = None, **headers: str) -> None:
        body = b"" if content is None else json.dumps(content).encode()
        self.send_response(code)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        with contextlib.suppress(OSError):  # a client that was killed
            self.end_headers()
            self.wfile.write(body)

    def do_GET(self) -> None:
        base = f"http://{self.headers['Host']}"
        url = urllib.parse.urlsplit(self.path)
        if url.path == "/.well-known/oauth-protected-resource/mcp":
            self.answer(200, {"resource": f"{base}/mcp", "authorization_servers": [base]})
        elif url.path == "/.well-known/oauth-authorization-server":
            self.answer(200, {
                "issuer": base, "authorization_endpoint": f"{base}/authorize", "token_endpoint": f"{base}/token",
                "registration_endpoint": f"{base}/register", "code_challenge_methods_supported": ["S256"],
            })
        elif url.path == "/authorize":
            asked = dict(urllib.parse.parse_qsl(url.query))
            end = urllib.parse.urlencode({"code": "c", "state": asked["state"]})
            self.answer(302, Location=f"{asked['redirect_uri']}?{end}")
        else:
            self.answer(404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        if self.path == "/register":
            self.answer(200, {"client_id": "me", "redirect_uris": json.loads(body)["redirect_uris"]})
        elif self.path == "/token":
            self.answer(200, {"access_token": "a", "refresh_token": "r", "token_type": "Bearer", "expires_in": 3600})
        else:
            self.answer(401, WWW_Authenticate="Bearer")


def login_server(room: Room) -> None:
    room.write(f"{CONFIG}/mcp.yaml", f"tasks: {{ url: 'http://127.0.0.1:{login_port()}/mcp' }}\n")
    room.environment["DISPLAY"] = ":0"
    opener = room.root / "bin/xdg-open"
    opener.write_text(f"#!{os.path.realpath(sys.executable)} -IS\nimport sys, urllib.request\n"
                      "urllib.request.urlopen(sys.argv[1], timeout=20).read()\n")
    opener.chmod(0o755)


_login: list[http.server.ThreadingHTTPServer] = []
_login_lock = threading.Lock()


def login_port() -> int:
    with _login_lock:
        if not _login:
            _login.append(http.server.ThreadingHTTPServer(("127.0.0.1", 0), LoginServer))
            threading.Thread(target=_login[0].serve_forever, daemon=True).start()
    return _login[0].server_port


def client_lines(calls: int = 2) -> str:
    messages = [
        {"id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "torture", "version": "1"}}},
        {"method": "notifications/initialized"},
        *({"id": n + 1, "method": "tools/call", "params": {"name": "add", "arguments": {"a": n, "b": 1}}}
          for n in range(calls)),
    ]
    return "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)


def big(n: int) -> str:
    return f"{n:09}\n" * 64_000  # more than two of the pieces that the files tool writes


RECORDS = {f"{STATE}/audit.jsonl#intent": row_count("intent"), f"{STATE}/audit.jsonl#outcome": row_count("outcome"),
           f"{STATE}/stats.spool": row_count(), f"{STATE}/history.jsonl": row_count()}
SERVERS = r"(mcp_servers:\n(  (NAME):\n    command: \"?[\w/]+\"?\n)*)?"
TOOLS = r"tools:\n(  - name: (NAME)\n    endpoint_url: http://x.example/\w+\n    method: GET\n)*"
SUITE = r'(tests:\n(  - name: "[\w ]+"\n    tool: "\w+"\n    args: \{[^\n]*\}\n    expect: \{[^\n]*\}\n)*)?'

# Not here: what only a person in the console writes (exports into new files, a draft for an editor), other
# operations of one writer (edits and copies of files, prompts), and PostgreSQL and Redis, which are others'.
WRITERS = [
    Writer("records", "audit/log.rs stats/spool.rs history/log.rs host/recorder.rs util/append",
           words("call calculator expression={n}"), RECORDS, one_more, answer=lambda n: f"{n}\n"),
    Writer("rotation", "util/segments (for all records and logs)", words("call calculator expression={n}"),
           {f"{STATE}/stats.spool": row_count()}, one_more, prepare=full_spool, answer=lambda n: f"{n}\n"),
    Writer("storage", "providers/engines/disk providers/storage", words("call s-write key=k{n} value=v"),
           {f"{CONFIG}/s.db": stored("key")}, adds(f"{CONFIG}/s.db", "k{n}")),
    Writer("new storage", "providers/engines/disk/open.rs", words("call s-write key=k{n} value=v"),
           {f"{CONFIG}/s.db": stored("key")}, becomes(f"{CONFIG}/s.db", lambda n: frozenset({f"k{n}"})),
           prepare=no_file(f"{CONFIG}/s.db"), most=6),
    Writer("mailbox", "providers/engines/disk providers/mailbox", words("call box-send to=a message:={n}"),
           {f"{CONFIG}/m.db": stored("json_extract(value, '$.message')")},
           lambda old, n: {f"{CONFIG}/m.db": old[f"{CONFIG}/m.db"] | {n}}),
    Writer("file", "providers/files/replace.rs write.rs", words("call files-write path=f.txt text=@big --yes"),
           {"work/f.txt": text}, becomes("work/f.txt", big),
           prepare=lambda room, n: room.write("work/big", big(n)), most=5),
    Writer("file, appended", "providers/files/replace.rs transfer.rs",
           words("call files-append path=f.txt text={n} --yes"), {"work/f.txt": text},
           lambda old, n: {"work/f.txt": (old["work/f.txt"] or "") + str(n)}),
    Writer("add", "cli/mcp_file.rs util/atomic_file.rs", words("add e{n} --user -- /bin/false"),
           {f"{CONFIG}/mcp.yaml": entries(SERVERS)}, adds(f"{CONFIG}/mcp.yaml", "e{n}")),
    Writer("remove", "cli/mcp_file.rs", words("remove e{n} --user"), {f"{CONFIG}/mcp.yaml": entries(SERVERS)},
           drops(f"{CONFIG}/mcp.yaml", "e{n}"), prepare=lambda room, n: room.write(
               f"{CONFIG}/mcp.yaml", f"mcp_servers:\n  e0:\n    command: x\n  e{n}:\n    command: x\n")),
    Writer("add a tool", "cli/mcp_file.rs (tools.yaml)", words("add t{n} --user -- curl http://x.example/t{n}"),
           {f"{CONFIG}/tools.yaml": entries(TOOLS)}, adds(f"{CONFIG}/tools.yaml", "t{n}"),
           configure=lambda room: room.write(f"{CONFIG}/tools.yaml", "tools:\n")),
    Writer("import", "cli/commands/import.rs", words("import ed.json --yes --user"),
           {f"{CONFIG}/mcp.yaml": entries(SERVERS)}, adds(f"{CONFIG}/mcp.yaml", "i{n}"),
           prepare=lambda room, n: room.write("work/ed.json", json.dumps({"mcpServers": {f"i{n}": {"command": "x"}}}))),
    Writer("connect", "cli/commands/connect.rs", words("connect cursor --name c{n} --yes"),
           {"home/.cursor/mcp.json": names_of(lambda file: list(file.get("mcpServers", {}))),
            "home/.cursor/mcp.json.toolhost.bak": names_of(lambda file: list(file.get("mcpServers", {})))},
           lambda old, n: {"home/.cursor/mcp.json": old["home/.cursor/mcp.json"] | {f"c{n}"},
                           "home/.cursor/mcp.json.toolhost.bak": old["home/.cursor/mcp.json"]},
           configure=lambda room: ((room.root / "home/.cursor").mkdir(), room.write("home/.cursor/mcp.json", "{}"))),
    Writer("init", "cli/commands/init.rs", words("init --user"),
           {f"{CONFIG}/{name}.yaml": text for name in ["tools", "mcp"]},
           lambda old, n: {f"{CONFIG}/{name}.yaml": (ROOT / f"src/cli/commands/init_{name}.yaml").read_text()
                           for name in ["tools", "mcp"]},
           prepare=no_file(f"{CONFIG}/tools.yaml", f"{CONFIG}/mcp.yaml")),
    Writer("trust", "config/consent/store.rs", words("trust p{n} --yes"),
           {f"{STATE}/trust.json": names_of(lambda file: [Path(p["root"]).name for p in file["projects"]])},
           adds(f"{STATE}/trust.json", "p{n}"), prepare=project),
    Writer("revoke", "config/consent/store.rs", words("trust revoke p{n}"),
           {f"{STATE}/trust.json": names_of(lambda file: [Path(p["root"]).name for p in file["projects"]])},
           drops(f"{STATE}/trust.json", "p{n}"), prepare=trusted),
    Writer("pins", "assembly/pins.rs", lambda n: ["pin", f"t{n % MOST_TOOLS}", "--yes"],
           {f"{STATE}/pins.json": names_of(lambda file: re.findall(r'"(t\d+)"', json.dumps(file)))},
           lambda old, n: adds(f"{STATE}/pins.json", "t{n}")(old, n % MOST_TOOLS)),
    Writer("tokens", "serve/listen/token_store.rs", words("serve token issue c{n}"),
           {f"{STATE}/serve/tokens.json": names_of(lambda file: [token["client"] for token in file["tokens"]])},
           adds(f"{STATE}/serve/tokens.json", "c{n}")),
    Writer("saved call", "config/saved_calls.rs", words("call calculator expression={n} --save-as n{n}"),
           {f"{CONFIG}/saved-calls.json": names_of(list)}, adds(f"{CONFIG}/saved-calls.json", "n{n}")),
    Writer("snapshots", "config/suite/snapshots.rs cli/commands/test (JUnit)",
           words("test suite.yaml --update --junit j.xml"),
           {"work/suite.snapshots.json": names_of(lambda file: list(file.values())),
            "work/j.xml": whole_text("</testsuites>\n")},
           lambda old, n: {"work/suite.snapshots.json": frozenset({str(n)}), "work/j.xml": "whole"}, prepare=suite),
    Writer("suite", "config/suite/mod.rs", words("history save --as-test made.yaml last"),
           {"work/made.yaml": lambda room, path: len(re.findall("name:", path.read_text() if path.exists() else ""))
            if entries(SUITE)(room, path) is not None else 0,
            "work/made.snapshots.json": names_of(list)},
           lambda old, n: {"work/made.yaml": old["work/made.yaml"] + 1,
                           "work/made.snapshots.json": old["work/made.snapshots.json"] | {
                               f"calculator {old['work/made.yaml'] + 1}" if old["work/made.yaml"] else "calculator"}},
           prepare=called),
    Writer("saved result", "cli/save.rs", words("call calculator expression={n} --save out.txt"),
           {"work/out.txt": text}, becomes("work/out.txt", str)),
    Writer("report", "cli/save.rs cli/commands/bench/mod.rs",
           words("bench calculator expression=1 -n 5 --warmup 0 -q --save b.json --export b.csv --html b.html"),
           {"work/b.json": whole_json, "work/b.csv": whole_text("\n"), "work/b.html": whole_text("</html>\n")},
           all_whole),
    Writer("recording", "audit/trace/mod.rs model/trace_row.rs cli/commands/record.rs (also --trace-save)",
           words("record --save rec.jsonl demo"), {"work/rec.jsonl": whole_trace}, all_whole,
           configure=demo_server, stdin=client_lines()),
    Writer("log", "cli/log/mod.rs", words("call calculator expression={n} --log-file l.log --log-filter debug"
                                             " --log-format json"), {"work/l.log": whole_lines}, all_whole),
    Writer("login", "mcp/auth/file.rs", words("auth login tasks"), {f"{STATE}/auth/logins": logged_in},
           becomes(f"{STATE}/auth/logins", lambda n: 1), configure=login_server,
           prepare=lambda room, n: room.run("auth", "logout", "--all")),
    Writer("logout", "mcp/auth/file.rs", words("auth logout tasks"), {f"{STATE}/auth/logins": logged_in},
           becomes(f"{STATE}/auth/logins", lambda n: 0), configure=login_server,
           prepare=lambda room, n: room.must("auth", "login", "tasks")),
    Writer("caches", "mcp/era_cache.rs cli/complete/known_names.rs", words("list -q"),
           {"cache/toolhost/eras.json": whole_json}, all_whole,
           configure=demo_server, prepare=no_caches, is_cache=True),
    Writer("descriptions", "providers/python/description_cache.rs", words("list -q"),
           {"cache/toolhost/python-describe.json": whole_json}, all_whole,
           configure=python_tool, prepare=no_caches, is_cache=True),
    Writer("history, removed", "cli/commands/history", words("history clear --yes"),
           {f"{STATE}/history.jsonl": row_count()}, becomes(f"{STATE}/history.jsonl", lambda n: 0), prepare=called,
           only_removes=True),
]
