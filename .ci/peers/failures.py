"""The documented failures, provoked with real servers."""

from __future__ import annotations

from .servers import Server, write_config
from .suite import Suite, expect, expect_code, text_of


def run(suite: Suite) -> None:
    def missing_argument() -> None:
        suite.call("everything-echo", code=2)

    def unknown_argument() -> None:
        run = suite.toolhost("call", "everything-echo", "mesage=hi")
        expect_code(run, 2)
        expect("message" in run.err, run.err)

    def wrong_type() -> None:
        suite.call("everything-get-sum", "a=two", "b=3", code=2)

    def unknown_tool() -> None:
        run = suite.toolhost("call", "time-convert_tme", "time=1")
        expect_code(run, 2)
        expect("convert_time" in run.err, run.err)

    def says_no() -> None:
        answer = suite.call("time-get_current_time", "timezone=Nowhere/None", code=3)
        expect(answer["success"] is False and answer["error"]["kind"] == "tool", answer)
        expect("Nowhere/None" in answer["error"]["message"] + text_of(answer), answer)

    def outside(name: str) -> None:
        def body() -> None:
            answer = suite.call(f"{name}-read_text_file", "path=/etc/hostname", code=3)
            words = (answer["error"]["message"] + text_of(answer)).lower()
            expect("denied" in words or "outside" in words, answer)

        suite.check(f"failure: {name} denies access (3)", body)

    def nobody_listens() -> None:
        # Port 9 is for discarding, and nothing here does that.
        answer = suite.call("fetch-fetch", "url=http://127.0.0.1:9/", code=3)
        expect("127.0.0.1" in answer["error"]["message"] + text_of(answer), answer)

    def absent() -> None:
        gone = Server("gone", {"command": "/nonexistent/mcp-server"}, "legacy")
        config = write_config(suite.scratch / "gone.json", [gone], suite.marker)
        expect_code(suite.toolhost("call", "gone-anything", config=config), 4)

    def partial() -> None:
        gone = Server("gone", {"command": "/nonexistent/mcp-server"}, "legacy")
        works = [row for row in suite.rows if row.name == "time"]
        config = write_config(suite.scratch / "partial.json", [*works, gone], suite.marker)
        run = suite.toolhost("list", "--json", config=config)
        expect_code(run, 11)
        names = {tool["name"] for tool in run.json()["tools"]}
        expect("time-convert_time" in names, names)

    def wrong_era() -> None:
        # The server knows only the modern era, and its entry insists on the other.
        [row] = [row for row in suite.rows if row.name == "rust-files"]
        entry = {**row.entry, "protocol": "legacy"}
        config = write_config(
            suite.scratch / "insists.json", [Server("rust", entry, "legacy")], suite.marker
        )
        run = suite.toolhost("call", "rust-list_allowed_directories", config=config)
        expect(run.code != 0, run.out)
        expect("initialize" in run.err, run.err)
        expect("protocol" in run.err, f"no hint: {run.err}")

    suite.check("failure: a required argument is missing (2)", missing_argument)
    suite.check("failure: an unknown argument, with a suggestion (2)", unknown_argument)
    suite.check("failure: a wrong type (2)", wrong_type)
    suite.check("failure: an unknown tool, with a suggestion (2)", unknown_tool)
    suite.check("failure: the tool says no (3)", says_no)
    for name in ("filesystem", "rust-files"):
        outside(name)
    suite.check("failure: a page that nobody serves (3)", nobody_listens)
    suite.check("failure: a server that cannot be started (4)", absent)
    suite.check("failure: one server of two is missing (11)", partial)
    suite.check("failure: an entry that insists on the wrong era", wrong_era)
