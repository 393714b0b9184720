// A server on the TypeScript SDK, version 2, of both eras, over stdio or HTTP:
//
//   node typescript_sample.mjs            stdio
//   node typescript_sample.mjs 3000       http://127.0.0.1:3000/mcp
//
// It has a tool that asks before it acts, a slow one, a prompt whose argument completes, and a
// resource that keeps changing.

import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { toNodeHandler } from "@modelcontextprotocol/node";
import {
  McpServer,
  ResourceTemplate,
  acceptedContent,
  completable,
  createMcpHandler,
  inputRequired,
} from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import * as z from "zod";

const TICKS = "clock://ticks";
const TEAMS = ["blue", "green", "grey"];
const text = (words) => ({ content: [{ type: "text", text: words }] });

let ticks = 0;

function server() {
  const server = new McpServer(
    { name: "typescript-sample", version: "1.0.0" },
    { capabilities: { logging: {}, resources: { subscribe: true, listChanged: true } } },
  );

  server.registerTool(
    "add",
    {
      description: "Adds two numbers",
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      outputSchema: z.object({ sum: z.number() }),
    },
    async ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { sum: a + b } }),
  );

  // Returns the question in the modern era; the SDK puts it to a legacy client as a request.
  server.registerTool(
    "deploy",
    { description: "Deploys, once confirmed", inputSchema: z.object({ to: z.string() }) },
    async ({ to }, context) => {
      const answer = acceptedContent(context.mcpReq.inputResponses, "confirm");
      if (answer?.confirm === true) {
        return text(`deployed to ${to} as ${answer.team} (${context.mcpReq.requestState()})`);
      }
      if (context.mcpReq.inputResponses !== undefined) return text("not deployed");
      const question = inputRequired.elicit({
        message: `Deploy to ${to}?`,
        requestedSchema: {
          type: "object",
          properties: {
            confirm: { type: "boolean", default: true },
            team: { type: "string", enum: TEAMS, default: "blue" },
          },
          required: ["confirm"],
        },
      });
      return inputRequired({ inputRequests: { confirm: question }, requestState: "round one" });
    },
  );

  server.registerTool(
    "wait",
    { description: "Waits, and stops when told to", inputSchema: z.object({ seconds: z.number() }) },
    async ({ seconds }, context) => {
      const stopped = new Promise((done) => {
        context.mcpReq.signal.addEventListener("abort", () => done("stopped"));
      });
      const ended = await Promise.race([sleep(seconds * 1000, "done"), stopped]);
      process.stderr.write(`wait ${ended}\n`);
      return text(ended);
    },
  );

  server.registerPrompt(
    "review",
    {
      description: "Asks for a review",
      argsSchema: z.object({
        code: z.string(),
        team: completable(z.string(), (start) => TEAMS.filter((team) => team.startsWith(start))),
      }),
    },
    ({ code, team }) => ({
      messages: [{ role: "user", content: { type: "text", text: `${team}, review ${code}` } }],
    }),
  );

  // Legacy clients ask for each resource; the SDK answers only the subscriptions of the modern era.
  server.server.setRequestHandler("resources/subscribe", () => ({}));
  server.server.setRequestHandler("resources/unsubscribe", () => ({}));
  server.registerResource("ticks", TICKS, { mimeType: "text/plain" }, async (uri) => ({
    contents: [{ uri: uri.href, mimeType: "text/plain", text: `tick ${ticks}` }],
  }));
  server.registerResource(
    "team",
    new ResourceTemplate("team://{name}", { list: undefined, complete: { name: () => TEAMS } }),
    { mimeType: "application/json" },
    async (uri, { name }) => ({ contents: [{ uri: uri.href, text: JSON.stringify({ name }) }] }),
  );
  return server;
}

/** Changes the resource for as long as the process lives, and tells whom it concerns. */
function tick(tell) {
  setInterval(() => {
    ticks += 1;
    Promise.resolve(tell(TICKS)).catch(() => {}); // nobody may be there yet
  }, 200).unref();
}

const port = process.argv[2];
if (port === undefined) {
  serveStdio(() => {
    const one = server();
    tick((uri) => one.server.sendResourceUpdated({ uri }));
    return one;
  });
} else {
  const handler = createMcpHandler(server);
  tick((uri) => handler.notify.resourceUpdated(uri));
  createServer(toNodeHandler(handler)).listen(Number(port), "127.0.0.1");
}
