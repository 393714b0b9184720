"""Resources, prompts and the completion of their arguments."""

from __future__ import annotations

from .suite import Suite, expect, expect_code, expect_in


def run(suite: Suite) -> None:
    resources(suite)
    prompts(suite)


def lacking(suite: Suite, *words: str) -> str | None:
    return None if suite.understands(*words) else "no such command"


def resources(suite: Suite) -> None:
    missing = lacking(suite, "resources")

    def lists(name: str, *uris: str) -> None:
        def body() -> None:
            run = suite.toolhost("resources", "list", "--server", name, "--json")
            for uri in uris:
                expect_in(uri, run)

        suite.check(f"resources: {name}, list", body, of=(name, "resource"), lacking=missing)

    def reads(name: str, uri: str, said: str) -> None:
        def body() -> None:
            expect_in(said, suite.toolhost("resources", "read", uri, "--server", name))

        title = f"resources: {name}, read {uri}"
        suite.check(title, body, of=(name, "resource"), lacking=missing)

    def watches(name: str, uri: str) -> None:
        def body() -> str:
            words = ["resources", "watch", uri, "--server", name, "--json"]
            run = suite.toolhost(*words, interrupt=4)
            expect(run.code in (0, 130, -2), f"exit {run.code}: {run.err}")
            seen = run.out.count(uri)
            expect(seen >= 2, f"{seen} changes: {run.out!r} {run.err!r}")
            return f"{seen} changes"

        suite.check(f"resources: {name}, watch", body, of=(name, "watch"), lacking=missing)

    static = "demo://resource/static/document/architecture.md"
    for name in ("everything", "everything-http", "everything-sse"):
        if any(row.name == name for row in suite.rows):
            lists(name, static)
            reads(name, static, "#")
    for name in ("fastmcp", "fastmcp-http", "fastmcp-legacy"):
        lists(name, "memo://today")
        reads(name, "memo://today", "write the tests")
        reads(name, "memo://friday/items", "friday")
    for name in ("typescript", "typescript-http", "typescript-legacy"):
        lists(name, "clock://ticks")
        reads(name, "clock://ticks", "tick ")
        reads(name, "team://blue", "blue")
        watches(name, "clock://ticks")


def prompts(suite: Suite) -> None:
    missing = lacking(suite, "prompts")

    def lists(name: str, prompt: str) -> None:
        def body() -> None:
            expect_in(prompt, suite.toolhost("prompts", "list", "--server", name, "--json"))

        suite.check(f"prompts: {name}, list", body, of=(name, "prompt"), lacking=missing)

    def gets(name: str, prompt: str, words: list[str], said: str) -> None:
        def body() -> None:
            expect_in(said, suite.toolhost("prompts", "get", prompt, *words, "--server", name))

        suite.check(f"prompts: {name}, get {prompt}", body, of=(name, "prompt"), lacking=missing)

    absent = lacking(suite, "complete")

    def completes(name: str, what: str, argument: str, start: str, *values: str) -> None:
        def body() -> None:
            run = suite.toolhost("complete", what, argument, start, "--server", name)
            expect_code(run, 0)
            expect(run.out.split() == [*values], run.out)

        suite.check(f"complete: {name}, {what}", body, of=(name, "complete"), lacking=absent)

    for name in ("everything", "everything-http"):
        lists(name, "args-prompt")
        gets(name, "args-prompt", ["city=Paris", "state=France"], "Paris")
    lists("fetch", "fetch")
    lists("sqlite-old", "mcp-demo")
    gets("sqlite-old", "mcp-demo", ["topic=retail"], "retail")
    for name in ("fastmcp", "fastmcp-http", "fastmcp-legacy"):
        lists(name, "summarise")
        gets(name, "summarise", ["text=a long story", "sentences=3"], "Summarise in 3 sentences")
    for name in ("typescript", "typescript-http", "typescript-legacy"):
        lists(name, "review")
        gets(name, "review", ["code=main.c", "team=blue"], "blue, review main.c")
        completes(name, "review", "team", "g", "green", "grey")
        completes(name, "team://{name}", "name", "b", "blue", "green", "grey")
