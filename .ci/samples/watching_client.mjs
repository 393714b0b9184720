// A client of `toolhost serve` that hears of the new tools when the code of a server changes.
//
//   node watching_client.mjs URL FILE OLD NEW
//
// The token is in TOOLHOST_SERVE_TOKEN. Writes NEW in place of OLD in FILE once it has listed the tools, and
// prints both lists as one JSON object.

import { readFileSync, writeFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";

const [url, file, before, after] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${process.env.TOOLHOST_SERVE_TOKEN}` };
const client = new Client({ name: "watching", version: "1" });
const changed = new Promise((resolve) =>
  client.setNotificationHandler(ToolListChangedNotificationSchema, resolve),
);
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
const names = async () => (await client.listTools()).tools.map((tool) => tool.name);
const seen = { before: await names() };
writeFileSync(file, readFileSync(file, "utf8").replace(before, after));
await changed;
console.log(JSON.stringify({ ...seen, after: await names() }));
await client.close();
