//! A recording as an MCP server: every request is answered as it was answered once.
//!
//! Owns: the conversation with one client on a pair of streams: finding the recorded exchange of a
//! request, and sending what belonged to it with the client's ids and progress tokens in place of
//! the recorded ones. Never does: invent an answer, start anything, or check what a client says
//! when a recorded question is put to it.
//!
//! A request matches a recorded one with the same method and parameters, `_meta` left out; those of
//! the handshake and `ping` match by their method alone, because every client says something else
//! about itself. Asked again, the recorded answers come one after the other, and the last one is
//! repeated. With `strict`, requests have to come in the order of the recording.

mod client;
mod tape;

use std::collections::HashMap;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::mcp::message;
use crate::model::Fault;
use client::{Client, Gone};
use tape::Exchange;
pub use tape::Tape;

/// JSON-RPC: the method does not exist.
const NO_METHOD: i64 = -32601;
/// JSON-RPC: internal error; nothing recorded fits.
const NOT_RECORDED: i64 = -32603;
/// JSON-RPC: not a request.
const NO_REQUEST: i64 = -32600;
/// How many recorded requests an error names.
const NAMED: usize = 8;
/// Ties what a subscription brings to the request that made it (2026-07-28).
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Hears what a person should know.
pub type Note<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// Serves a recording on this process's own standard streams until the client leaves.
///
/// # Errors
/// When the client breaks the protocol beyond repair.
pub async fn run(tape: Tape, strict: bool, note: Note<'_>) -> Result<(), Fault> {
    let (input, output) = rmcp::transport::stdio_pipes();
    serve(tape, strict, input, output, note).await
}

async fn serve<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    tape: Tape,
    strict: bool,
    input: R,
    output: W,
    note: Note<'_>,
) -> Result<(), Fault> {
    let mut client = Client::new(input, output);
    let mut player = Player::new(tape, strict);
    loop {
        let played = match client.next().await {
            Ok(message) => player.heard(message, &mut client, note).await,
            Err(gone) => Err(gone),
        };
        match played {
            Ok(()) => {}
            Err(Gone::Left) => return Ok(()),
            Err(Gone::Broken(fault)) => return Err(fault),
        }
    }
}

/// What is played next.
struct Player {
    tape: Tape,
    strict: bool,
    /// The next exchange of a strict replay.
    next: usize,
    /// How often each request was asked, by its key.
    asked: HashMap<String, usize>,
}

/// Who asks, and what stood in the recording in its place.
struct Asker<'a> {
    id: &'a Value,
    token: Option<&'a Value>,
    recorded: &'a Exchange,
}

impl Player {
    fn new(tape: Tape, strict: bool) -> Self {
        Self { tape, strict, next: 0, asked: HashMap::new() }
    }

    async fn heard<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
        &mut self,
        message: Value,
        client: &mut Client<R, W>,
        note: Note<'_>,
    ) -> Result<(), Gone> {
        let id = message.get("id").filter(|id| !id.is_null());
        let method = message.get("method").and_then(Value::as_str);
        let (Some(id), Some(method)) = (id, method) else {
            if message.is_object() {
                // A notification, or an answer that comes too late.
                return Ok(());
            }
            return client.refuse(&Value::Null, NO_REQUEST, "not a JSON-RPC message").await;
        };
        let params = message.get("params").unwrap_or(&Value::Null);
        match self.find(method, params) {
            Ok(Found::Exchange(index)) => {
                let Some(recorded) = self.tape.exchanges.get(index) else { return Ok(()) };
                let token = params.get("_meta").and_then(|meta| meta.get("progressToken"));
                play(&Asker { id, token, recorded }, client, note).await
            }
            Ok(Found::Pong) => client.answer(id, json!({})).await,
            Err((code, text)) => {
                note(&format!("{method}: {text}"));
                client.refuse(id, code, &text).await
            }
        }
    }

    fn find(&mut self, method: &str, params: &Value) -> Result<Found, (i64, String)> {
        let key = tape::key(method, params);
        if self.strict { self.find_next(method, &key) } else { self.find_any(method, key) }
    }

    fn find_next(&mut self, method: &str, key: &str) -> Result<Found, (i64, String)> {
        let number = self.next + 1;
        match self.tape.exchanges.get(self.next) {
            Some(expected) if expected.key == key => {
                self.next += 1;
                Ok(Found::Exchange(self.next - 1))
            }
            // A client may look for signs of life whenever it likes.
            _ if method == "ping" => Ok(Found::Pong),
            Some(expected) => Err((
                NOT_RECORDED,
                format!("request {number} of the recording is {}", expected.shown()),
            )),
            None => Err((NOT_RECORDED, format!("the recording ends after {} requests", self.next))),
        }
    }

    fn find_any(&mut self, method: &str, key: String) -> Result<Found, (i64, String)> {
        let known = self.tape.by_key(&key);
        if known.is_empty() {
            return match method {
                "ping" => Ok(Found::Pong),
                // As a server of the other era says it, so that the client goes on to the next.
                "initialize" | "server/discover" => {
                    Err((NO_METHOD, format!("the recording has no {method}")))
                }
                _ => Err((NOT_RECORDED, self.unknown(method))),
            };
        }
        let times = self.asked.entry(key).or_default();
        let index = known.get(*times).or(known.last()).copied().unwrap_or_default();
        *times += 1;
        Ok(Found::Exchange(index))
    }

    fn unknown(&self, method: &str) -> String {
        let mut shown: Vec<String> = Vec::new();
        // Those of the same method say most.
        let same = |exchange: &&Exchange| exchange.method == method;
        let other = |exchange: &&Exchange| exchange.method != method;
        let exchanges = &self.tape.exchanges;
        for exchange in exchanges.iter().filter(same).chain(exchanges.iter().filter(other)) {
            let text = exchange.shown();
            if !shown.contains(&text) {
                shown.push(text);
            }
        }
        let more = shown.len().saturating_sub(NAMED);
        shown.truncate(NAMED);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        format!("no such {method} was recorded; recorded: {}{more}", shown.join(", "))
    }
}

enum Found {
    Exchange(usize),
    /// A sign of life that was not recorded.
    Pong,
}

/// Sends what belonged to an exchange, in order.
async fn play<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    asker: &Asker<'_>,
    client: &mut Client<R, W>,
    note: Note<'_>,
) -> Result<(), Gone> {
    for step in &asker.recorded.before {
        let Some(mut said) = parsed(&step.bytes, note) else { continue };
        if step.asks {
            client.ask(said, note).await?;
        } else if retarget(&mut said, asker) {
            client.say(&said).await?;
        }
    }
    let Some(answer) = &asker.recorded.answer else {
        if asker.recorded.method == "subscriptions/listen" {
            return Ok(());
        }
        let text = "the recording ends before the answer to this request";
        return client.refuse(asker.id, NOT_RECORDED, text).await;
    };
    let Some(mut answer) = parsed(answer, note) else {
        let text = "the recorded answer is no valid JSON";
        return client.refuse(asker.id, NOT_RECORDED, text).await;
    };
    if let Some(slot) = answer.get_mut("id") {
        *slot = asker.id.clone();
    }
    if let Some(result) = answer.get_mut("result") {
        resubscribe(result, asker);
    }
    client.say(&answer).await?;
    for said in &asker.recorded.after {
        if let Some(mut said) = parsed(said, note)
            && retarget(&mut said, asker)
        {
            client.say(&said).await?;
        }
    }
    Ok(())
}

fn parsed(bytes: &[u8], note: Note<'_>) -> Option<Value> {
    let text = String::from_utf8_lossy(bytes);
    let parsed = message::parse(text.trim_start_matches('\u{feff}'));
    parsed.map_err(|fault| note(&format!("a recorded message is left out: {fault}"))).ok()
}

/// Puts the client's id and token in the place of the recorded ones; false when a message means
/// nothing to this client.
fn retarget(said: &mut Value, asker: &Asker<'_>) -> bool {
    let method = said.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(params) = said.get_mut("params") else { return true };
    match method.as_str() {
        // It takes back a question, which was put to this client under another id.
        "notifications/cancelled" => return false,
        "notifications/progress" => {
            let recorded = params.get("progressToken");
            if recorded.is_none() || recorded != asker.recorded.token.as_ref() {
                return false;
            }
            let Some(token) = asker.token else { return false };
            if let Some(slot) = params.get_mut("progressToken") {
                *slot = token.clone();
            }
        }
        _ => resubscribe(params, asker),
    }
    true
}

fn resubscribe(within: &mut Value, asker: &Asker<'_>) {
    if let Some(slot) = within.get_mut("_meta").and_then(|meta| meta.get_mut(SUBSCRIPTION)) {
        *slot = asker.id.clone();
    }
}

#[cfg(test)]
mod tests;
