"""A client of `toolhost serve --ws` on the package `websockets`, which knows nothing of MCP.

Usage: web_socket_client.py URL; the token is in TOOLHOST_SERVE_TOKEN. Prints one JSON object.
"""

import asyncio
import json
import os
import sys

import websockets


async def main() -> None:
    headers = {"Authorization": f"Bearer {os.environ['TOOLHOST_SERVE_TOKEN']}"}
    async with websockets.connect(
        sys.argv[1], additional_headers=headers, subprotocols=["mcp"]
    ) as socket:
        ids = iter(range(100))

        async def ask(method: str, params: dict) -> dict:
            id = next(ids)
            await socket.send(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            while True:
                message = json.loads(await socket.recv())
                if message.get("id") == id:
                    return message["result"]

        client = {"name": "websockets", "version": "1"}
        begun = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        server = await ask("initialize", begun)
        await socket.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        tools = await ask("tools/list", {})
        summed = await ask("tools/call", {"name": "demo-add", "arguments": {"a": 2, "b": 3}})
        failed = await ask("tools/call", {"name": "demo-fail", "arguments": {"message": "no"}})
        seen = {
            "server": server["serverInfo"]["name"],
            "subprotocol": socket.subprotocol,
            "tools": [tool["name"] for tool in tools["tools"]],
            "sum": summed["structuredContent"],
            "failed": failed["isError"],
        }
        print(json.dumps(seen))


asyncio.run(main())
