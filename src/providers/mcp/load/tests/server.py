"""A small server of the 2025-11-25 revision whose answers to calls the test writes."""
import json, os, sys, time

def raw(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()

def say(**message):
    raw(json.dumps({"jsonrpc": "2.0", **message}))

def text(id, text, **more):
    say(id=id, result={"content": [{"type": "text", "text": str(text)}], **more})

exec(sys.argv[1])  # defines call(id, arguments, number), and told(message) for everything else

SCHEMA = {"type": "object", "properties": {"path": {"type": "string", "format": "uri"}}}
tool = {"name": "t", "inputSchema": SCHEMA, **globals().get("TOOL", {})}
number = 0
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        say(id=id, result={"protocolVersion": "2025-11-25", "capabilities": globals().get(
            "CAPABILITIES", {"tools": {}}), "serverInfo": {"name": "x", "version": "1"}})
    elif method == "tools/list":
        say(id=id, result={"tools": [tool]})
    elif method == "tools/call":
        number += 1
        call(id, message["params"]["arguments"], number - 1)
    elif "told" in globals():
        told(message)
