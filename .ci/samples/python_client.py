"""A client of `toolhost serve` on the Python SDK, in the era that it finds.

Usage: python_client.py BINARY CONFIG [URL]; with a URL the token is in TOOLHOST_SERVE_TOKEN. Prints
one JSON object.
"""

import asyncio
import json
import os
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult


async def main() -> None:
    binary, config, *url = sys.argv[1:]
    if url:
        headers = {"Authorization": f"Bearer {os.environ['TOOLHOST_SERVE_TOKEN']}"}
        http = httpx2.AsyncClient(headers=headers, timeout=60)
        server = streamable_http_client(url[0], http_client=http)
    else:
        server = StdioServerParameters(
            command=binary, args=["--mcp", config, "serve"], env=dict(os.environ)
        )
    progress = []

    async def note(done, total, message):
        progress.append(done)

    async def answer(context, params):
        return ElicitResult(action="accept", content={"name": "Ada"})

    async with Client(server, elicitation_callback=answer) as client:
        tools = await client.list_tools()
        summed = await client.call_tool("demo-add", {"a": 2, "b": 3})
        failed = await client.call_tool("demo-fail", {"message": "no"})
        asked = await client.call_tool("demo-ask_name", {})
        await client.call_tool("demo-slow", {"seconds": 0.3}, progress_callback=note)
        prompt = await client.get_prompt("demo-greet", {"name": "Ada"})
        read = await client.read_resource("demo://readme")
        seen = {
            "tools": [tool.name for tool in tools.tools],
            "sum": summed.structured_content,
            "failed": failed.is_error,
            "asked": asked.content[0].text,
            "progress": len(progress),
            "prompt": prompt.messages[0].content.text,
            "read": read.contents[0].text[:17],
        }
        print(json.dumps(seen))


asyncio.run(main())
