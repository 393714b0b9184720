// Adds the token that `toolhost serve` wants to the requests of the suite, which sends none.
// Usage: node with_token.mjs HOST:PORT TOKEN; prints the port that it listens on.
import { createServer, request } from "node:http";

const [address, token] = process.argv.slice(2);
const [host, port] = address.split(":");
const proxy = createServer((asked, answer) => {
  const headers = { ...asked.headers, authorization: `Bearer ${token}` };
  const sent = request({ host, port, path: asked.url, method: asked.method, headers });
  sent.on("response", (got) => {
    answer.writeHead(got.statusCode, got.headers);
    answer.flushHeaders(); // of a stream, the head arrives before its first event
    got.pipe(answer);
  });
  sent.on("error", () => answer.destroy());
  answer.on("close", () => sent.destroy()); // who hangs up has cancelled
  asked.pipe(sent);
});
proxy.listen(0, "127.0.0.1", () => console.log(proxy.address().port));
