"""A client of `toolhost serve` on the Python SDK: everything a client asks for, once.

Usage: fastmcp_client.py BINARY CONFIG [URL]; with a URL the token is in TOOLHOST_SERVE_TOKEN. Prints
one JSON object.
"""

import asyncio
import json
import os
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport


async def main() -> None:
    binary, config, *url = sys.argv[1:]
    if url:
        headers = {"Authorization": f"Bearer {os.environ['TOOLHOST_SERVE_TOKEN']}"}
        transport = StreamableHttpTransport(url[0], headers=headers)
    else:
        transport = StdioTransport(binary, ["--mcp", config, "serve"], env=dict(os.environ))
    progress = []

    async def note(done, total, message):
        progress.append(done)

    async def answer(message, response_type, params, context):
        return {"name": "Ada"}

    async with Client(transport, elicitation_handler=answer, progress_handler=note) as client:
        tools = await client.list_tools()
        summed = await client.call_tool("demo-add", {"a": 2, "b": 3})
        failed = await client.call_tool("demo-fail", {"message": "no"}, raise_on_error=False)
        asked = await client.call_tool("demo-ask_name", {})
        await client.call_tool("demo-slow", {"seconds": 0.3})
        prompt = await client.get_prompt("demo-greet", {"name": "Ada"})
        read = await client.read_resource("demo://readme")
        print(
            json.dumps(
                {
                    "tools": [tool.name for tool in tools],
                    "sum": summed.structured_content,
                    "failed": failed.is_error,
                    "asked": asked.content[0].text,
                    "progress": len(progress),
                    "prompt": prompt.messages[0].content.text,
                    "read": read[0].text[:17],
                }
            )
        )


asyncio.run(main())
