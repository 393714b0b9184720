"""Listing all servers at once, and finding out which era each speaks."""

from __future__ import annotations

import json

from .servers import write_config
from .suite import Suite, expect, expect_code


def run(suite: Suite) -> None:
    rows = suite.rows

    def everything() -> str:
        run = suite.toolhost("list", "--json")
        expect_code(run, 0)
        told = run.json()
        names = {tool["name"] for tool in told["tools"]}
        missing = [f"{r.name}-{t}" for r in rows for t in r.tools if f"{r.name}-{t}" not in names]
        expect(not missing, f"not listed: {missing}")
        broken = [s for s in told["servers"] if s.get("error")]
        expect(not broken, broken)
        expect({s["name"] for s in told["servers"]} == {r.name for r in rows}, told["servers"])
        expect(all(t["source"] == "mcp" for t in told["tools"] if t["server"]), "a source is wrong")
        for row in rows:
            suite.mark((row.name, "list"), "ok")
        return f"{len(names)} tools, {run.seconds:.2f} s"

    def eras() -> str:
        run = suite.toolhost("servers", "--json")
        expect_code(run, 0)
        told = run.json()
        status = {row["name"]: row for row in (told["servers"] if isinstance(told, dict) else told)}
        wrong = {r.name: status[r.name].get("era") for r in rows if status[r.name].get("era") != r.era}
        expect(not wrong, f"eras: {wrong}")
        legacy = sum(row.era == "legacy" for row in rows)
        return f"{legacy} legacy, {len(rows) - legacy} modern"

    def at_once() -> str:
        alone = {}
        # One of each program is enough.
        for row in (row for row in rows if "command" in row.entry and "protocol" not in row.entry):
            run = suite.toolhost("list", "-q", config=suite.only_with(row.name))
            expect_code(run, 0)
            alone[row.name] = run.seconds
        run = suite.toolhost("list", "-q", config=suite.only_with(*alone))
        expect_code(run, 0)
        slowest = max(alone, key=alone.__getitem__)
        total = sum(alone.values())
        return (
            f"all {run.seconds:.2f} s; slowest alone {slowest} {alone[slowest]:.2f} s; "
            f"one after the other {total:.2f} s; ratio to the slowest "
            f"{run.seconds / alone[slowest]:.2f}"
        )

    def one_by_name() -> str:
        run = suite.toolhost("list", "--server", "time", "-o", "names")
        expect_code(run, 0)
        expect("time-convert_time" in run.out.split(), run.out)
        expect("git-git_log" not in run.out.split(), "the filter let another server through")
        return f"{run.seconds:.2f} s"

    def round_trips() -> str:
        # What a legacy server hears, copied on its way to it.
        heard = suite.scratch / "heard.jsonl"
        copied = ["sh", "-c", 'tee -a "$0" | "$@"', str(heard)]
        [row] = [row for row in rows if row.name == "everything"]
        command = [*copied, row.entry["command"], *row.entry["args"]]
        entry = {"command": command[0], "args": command[1:]}
        copy = type(row)("copied", entry, row.era)
        config = write_config(suite.scratch / "copied.json", [copy], suite.marker)
        asked = []
        for _ in range(2):
            heard.write_text("")
            expect_code(suite.toolhost("list", "-q", config=config), 0)
            messages = [json.loads(line) for line in heard.read_text().splitlines()]
            asked.append([message["method"] for message in messages if "id" in message])
        first, second = asked
        rest = ["initialize", "tools/list"]
        expect([m for m in first if m in rest] == rest, first)
        expect(first[:1] == ["server/discover"] and len(first) == 3, first)
        expect(second == rest, f"asked again although it was known: {second}")
        return f"{len(first) - len(second)} request more the first time, none later"

    suite.check("list: every server at once", everything)
    suite.check("servers: eras", eras)
    suite.check("servers: what finding out an era costs", round_trips)
    suite.check("list: time against the slowest server", at_once)
    suite.check("list: one server", one_by_name)
