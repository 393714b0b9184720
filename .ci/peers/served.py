"""`toolhost serve`, as a client of another maker sees it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from .suite import COMMAND_LIMIT, Suite, expect

CLIENT = Path(__file__).resolve().parent.parent / "samples" / "fastmcp_client.py"
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

    def ask(*url: str) -> None:
        python = suite.peers.cache / "python/bin/python"
        words = [str(python), str(CLIENT), binary, str(config), *url]
        done = subprocess.run(
            words, env=environment, capture_output=True, text=True, timeout=COMMAND_LIMIT, check=False
        )
        expect(done.returncode == 0, done.stderr[-800:])
        seen = json.loads(done.stdout)
        expect("demo-add" in seen["tools"], seen)
        expect(seen["sum"] == {"sum": 5}, seen)
        expect(seen["failed"] is True, seen)
        expect(seen["asked"] == "Hello, Ada!", seen)
        expect(seen["progress"] > 0, seen)
        expect("Ada" in seen["prompt"], seen)
        expect(seen["read"] == "# The demo server", seen)

    def over_http() -> None:
        words = [binary, "--mcp", str(config), "serve", "--http", "127.0.0.1:0"]
        served = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
        try:
            line = served.stderr.readline()
            expect(line.startswith("listening on "), line)
            ask(line.split()[-1])
        finally:
            served.terminate()
            served.wait(COMMAND_LIMIT)

    suite.check("serve: fastmcp over stdio", ask, lacking=lacking)
    suite.check("serve: fastmcp over HTTP", over_http, lacking=lacking)
