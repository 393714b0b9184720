"""A server on FastMCP, of both eras, over stdio or HTTP.

    python fastmcp_sample.py            stdio
    python fastmcp_sample.py 3000       http://127.0.0.1:3000/mcp
    python fastmcp_sample.py 3000 sse   http://127.0.0.1:3000/sse, the transport of 2024
"""

import asyncio
import sys

from fastmcp import Context, FastMCP

mcp = FastMCP("fastmcp-sample", instructions="A sample with one of each.")


@mcp.tool
async def count(to: int, context: Context) -> dict[str, int]:
    """Counts, and tells how far it is."""
    await context.info(f"counting to {to}")
    for step in range(to):
        await context.report_progress(step + 1, to, f"step {step + 1}")
        await asyncio.sleep(0.05)
    return {"counted": to}


@mcp.tool(annotations={"readOnlyHint": True})
def greet(name: str = "world") -> str:
    """Greets."""
    return f"Hello, {name}!"


@mcp.tool
async def order(what: str, context: Context) -> str:
    """Orders, after asking how many."""
    answer = await context.elicit(f"How many of {what}?", response_type=int)
    return f"{answer.data} {what}" if answer.action == "accept" else f"no {what}: {answer.action}"


@mcp.resource("memo://today", mime_type="text/plain")
def today() -> str:
    """What is to be done today."""
    return "write the tests"


@mcp.resource("memo://{day}/items", mime_type="application/json")
def items(day: str) -> dict[str, str]:
    """What is to be done on a day."""
    return {"day": day}


@mcp.prompt
def summarise(text: str, sentences: int = 2) -> str:
    """Asks for a summary."""
    return f"Summarise in {sentences} sentences: {text}"


if __name__ == "__main__":
    if len(sys.argv) == 1:
        mcp.run(show_banner=False)
    else:
        transport = sys.argv[2] if len(sys.argv) > 2 else "http"
        mcp.run(transport, show_banner=False, host="127.0.0.1", port=int(sys.argv[1]))
