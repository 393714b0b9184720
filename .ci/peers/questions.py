"""What servers ask before they answer, in both eras."""

from __future__ import annotations

import json

from .suite import Suite, expect, expect_code, text_of


def run(suite: Suite) -> None:
    answers = None if suite.understands("call", "--answers") else "no such option"

    def declined(name: str, tool: str, words: list[str], said: str) -> None:
        def body() -> None:
            # Nobody is there to be asked, and the server hears that at once.
            answer = suite.call(f"{name}-{tool}", *words)
            expect(said in text_of(answer), answer)

        suite.check(f"question: {name}, nobody is there", body, of=(name, "question"))

    def answered(name: str, tool: str, words: list[str], said: str) -> None:
        def body() -> None:
            answer = suite.call(f"{name}-{tool}", *words, "--answers", "defaults")
            expect(said in text_of(answer), answer)

        title = f"question: {name}, answered with its defaults"
        suite.check(title, body, of=(name, "question"), lacking=answers)

    def given(name: str) -> None:
        def body() -> None:
            file = suite.scratch / "answers.json"
            file.write_text(json.dumps([{"value": 12}]))
            run = suite.toolhost("call", f"{name}-order", "what=eggs", "--answers", str(file))
            expect_code(run, 0)
            expect("12 eggs" in run.out, run.out)

        title = f"question: {name}, answered from a file"
        suite.check(title, body, of=(name, "question"), lacking=answers)

    # One tool: rounds of questions in the modern era, a request of the server in the legacy one.
    for name in ("typescript", "typescript-http", "typescript-legacy"):
        declined(name, "deploy", ["to=production"], "not deployed")
        said = "deployed to production as blue (round one)"
        answered(name, "deploy", ["to=production"], said)
    for name in ("fastmcp", "fastmcp-legacy"):
        declined(name, "order", ["what=eggs"], "no eggs: decline")
        given(name)
    for name in ("everything", "everything-http"):
        answered(name, "trigger-elicitation-request", [], "provided the requested information")
