// A client of `toolhost serve` on the TypeScript SDK, version 1.
//
//   node typescript_client.mjs BINARY CONFIG [URL]
//
// With a URL the token is in TOOLHOST_SERVE_TOKEN. Prints one JSON object.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [binary, config, url] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${process.env.TOOLHOST_SERVE_TOKEN}` };
const transport = url
  ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
  : new StdioClientTransport({
      command: binary,
      args: ["--mcp", config, "serve"],
      env: { ...process.env },
    });
const client = new Client({ name: "typescript", version: "1" }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content: { name: "Ada" } }));
await client.connect(transport);
let progress = 0;
const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);
const { tools } = await client.listTools();
const summed = await call("demo-add", { a: 2, b: 3 });
const failed = await call("demo-fail", { message: "no" });
const asked = await call("demo-ask_name", {});
await call("demo-slow", { seconds: 0.3 }, { onprogress: () => (progress += 1) });
const prompt = await client.getPrompt({ name: "demo-greet", arguments: { name: "Ada" } });
const read = await client.readResource({ uri: "demo://readme" });
console.log(
  JSON.stringify({
    tools: tools.map((tool) => tool.name),
    sum: summed.structuredContent,
    failed: failed.isError,
    asked: asked.content[0].text,
    progress,
    prompt: prompt.messages[0].content.text,
    read: read.contents[0].text.slice(0, 17),
  }),
);
await client.close();
