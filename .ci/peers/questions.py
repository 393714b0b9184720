"""What servers ask before they answer, in both eras."""

from __future__ import annotations

import json

from .suite import Suite, expect, text_of


def run(suite: Suite) -> None:
    answers = None if suite.understands("call", "--answers") else "no such option"

    def declined(name: str, tool: str, words: list[str], said: str) -> None:
        def body() -> None:
            # Nobody is there to be asked, and the server hears that at once.
            answer = suite.call(f"{name}-{tool}", *words)
            expect(said in text_of(answer), answer)

        suite.check(f"question: {name}, nobody is there", body, of=(name, "question"))

    def answered(name: str, tool: str, words: list[str], rule: dict | None, said: str) -> None:
        def body() -> None:
            how = "defaults"
            if rule is not None:
                file = suite.scratch / "answers.json"
                file.write_text(json.dumps([rule]))
                how = str(file)
            answer = suite.call(f"{name}-{tool}", *words, "--answers", how)
            expect(said in text_of(answer), answer)

        title = f"question: {name}, {tool} {'from a file' if rule else 'with its defaults'}"
        suite.check(title, body, of=(name, "question"), lacking=answers)

    def unavailable() -> None:
        answer = suite.call("fastmcp-order", "what=eggs", code=3)
        expect("unavailable" in answer["error"]["message"] + text_of(answer), answer)

    # One tool: rounds of questions in the modern era, a request of the server in the legacy one.
    for name in ("typescript", "typescript-http", "typescript-legacy"):
        declined(name, "deploy", ["to=production"], "not deployed")
        said = "deployed to production as blue (round one)"
        answered(name, "deploy", ["to=production"], None, said)
        chosen = {"content": {"confirm": True, "team": "grey"}}
        answered(name, "deploy", ["to=production"], chosen, "as grey")
    # This SDK asks legacy clients only, and tells the others so.
    declined("fastmcp-legacy", "order", ["what=eggs"], "no eggs: decline")
    answered("fastmcp-legacy", "order", ["what=eggs"], {"content": {"value": 12}}, "12 eggs")
    suite.check("question: fastmcp, unavailable (3)", unavailable, of=("fastmcp", "question"))
    for name in ("everything", "everything-http"):
        person = {"kind": "form", "content": {"name": "Ada"}}
        answered(name, "trigger-elicitation-request", [], person, "Ada")
        model = {"kind": "sampling", "text": "a sampled answer"}
        answered(name, "trigger-sampling-request", ["prompt=hello"], model, "a sampled answer")
