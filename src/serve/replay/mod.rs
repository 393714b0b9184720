//! Replaying a recording as an MCP server: every request is answered as it was recorded.
//!
//! A request matches a recorded one with the same method and parameters, `_meta` left out; those of
//! the handshake and `ping` match by their method alone, because every client describes itself
//! differently. Repeated requests get the recorded responses one after the other, then the last one
//! again. With `strict`, requests must arrive in the order of the recording.

mod client;
mod recording;

use std::collections::HashMap;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::mcp::message::{INTERNAL_ERROR, METHOD_NOT_FOUND, PARSE_ERROR, RpcMessage};
use crate::mcp::{SUBSCRIPTION, json_text};
use crate::model::Error;
use client::{ClientEnd, ReplayClient};
use recording::RecordedExchange;
pub use recording::ServerRecording;

const MAX_NAMED: usize = 8;

pub type WarningSink<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// Serves a recording on this process's own standard streams until the client leaves.
pub async fn run(
    recording: ServerRecording,
    strict: bool,
    note: WarningSink<'_>,
) -> Result<(), Error> {
    let (input, output) = rmcp::transport::stdio_pipes();
    serve(recording, strict, input, output, note).await
}

pub async fn serve<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    recording: ServerRecording,
    strict: bool,
    input: R,
    output: W,
    note: WarningSink<'_>,
) -> Result<(), Error> {
    let mut client = ReplayClient::new(input, output);
    let mut player = ReplayServer::new(recording, strict);
    loop {
        let played = match client.next().await {
            Ok(message) => player.handle_message(message, &mut client, note).await,
            Err(error) => Err(error),
        };
        match played {
            Ok(()) => {}
            Err(ClientEnd::Disconnected) => return Ok(()),
            Err(ClientEnd::ProtocolError(error)) => return Err(error),
        }
    }
}

/// The state of a replay: what is played next.
struct ReplayServer {
    recording: ServerRecording,
    is_strict: bool,
    next: usize,
    times_requested: HashMap<String, usize>,
}

/// Who asks, and what stood in the recording in its place.
struct ReplayRequest<'a> {
    id: &'a Value,
    progress_token: Option<&'a Value>,
    recorded: &'a RecordedExchange,
}

impl ReplayServer {
    fn new(recording: ServerRecording, strict: bool) -> Self {
        Self { recording, is_strict: strict, next: 0, times_requested: HashMap::new() }
    }

    async fn handle_message<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
        &mut self,
        message: RpcMessage,
        client: &mut ReplayClient<R, W>,
        note: WarningSink<'_>,
    ) -> Result<(), ClientEnd> {
        // A notification, or an answer that comes too late, changes nothing.
        let RpcMessage::Request { id, method, params } = message else { return Ok(()) };
        let params = match params.map(|raw| raw.parse()).transpose() {
            Ok(params) => params.unwrap_or_default(),
            Err(error) => return client.refuse(&id, PARSE_ERROR, error.message()).await,
        };
        match self.find(&method, &params) {
            Ok(Some(index)) => {
                let Some(recorded) = self.recording.exchanges.get(index) else { return Ok(()) };
                let token = params.get("_meta").and_then(|meta| meta.get("progressToken"));
                let request = ReplayRequest { id: &id, progress_token: token, recorded };
                send_exchange(&request, client, note).await
            }
            Ok(None) => client.answer(&id, json!({})).await,
            Err((code, text)) => {
                note(&format!("{method}: {text}"));
                client.refuse(&id, code, &text).await
            }
        }
    }

    /// Which exchange is played; `None` for a sign of life that was not recorded.
    fn find(&mut self, method: &str, params: &Value) -> Result<Option<usize>, (i64, String)> {
        let key = recording::key(method, params);
        if self.is_strict { self.find_next(method, &key) } else { self.find_any(method, key) }
    }

    fn find_next(&mut self, method: &str, key: &str) -> Result<Option<usize>, (i64, String)> {
        let number = self.next + 1;
        match self.recording.exchanges.get(self.next) {
            Some(expected) if expected.key == key => {
                self.next += 1;
                Ok(Some(self.next - 1))
            }
            // A client may look for signs of life whenever it likes.
            _ if method == "ping" => Ok(None),
            Some(expected) => Err((
                INTERNAL_ERROR,
                format!("request {number} of the recording is {}", expected.summary()),
            )),
            None => {
                Err((INTERNAL_ERROR, format!("the recording ends after {} requests", self.next)))
            }
        }
    }

    fn find_any(&mut self, method: &str, key: String) -> Result<Option<usize>, (i64, String)> {
        let indexes = self.recording.by_key(&key);
        if indexes.is_empty() {
            return match method {
                "ping" => Ok(None),
                // As a server of the other era says it, so that the client goes on to the next.
                "initialize" | "server/discover" => {
                    Err((METHOD_NOT_FOUND, format!("the recording has no {method}")))
                }
                _ => Err((INTERNAL_ERROR, self.unrecorded_request(method))),
            };
        }
        let times = self.times_requested.entry(key).or_default();
        let index = indexes.get(*times).or(indexes.last()).copied().unwrap_or_default();
        *times += 1;
        Ok(Some(index))
    }

    fn unrecorded_request(&self, method: &str) -> String {
        let mut shown: Vec<String> = Vec::new();
        // Those of the same method say most.
        let same = |exchange: &&RecordedExchange| exchange.method == method;
        let other = |exchange: &&RecordedExchange| exchange.method != method;
        let exchanges = &self.recording.exchanges;
        for exchange in exchanges.iter().filter(same).chain(exchanges.iter().filter(other)) {
            let text = exchange.summary();
            if !shown.contains(&text) {
                shown.push(text);
            }
        }
        let more = shown.len().saturating_sub(MAX_NAMED);
        shown.truncate(MAX_NAMED);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        format!("no such {method} was recorded; recorded: {}{more}", shown.join(", "))
    }
}

async fn send_exchange<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    asker: &ReplayRequest<'_>,
    client: &mut ReplayClient<R, W>,
    note: WarningSink<'_>,
) -> Result<(), ClientEnd> {
    for step in &asker.recorded.before {
        let Some(mut message) = parsed(&step.bytes, note) else { continue };
        if step.expects_answer {
            client.ask(message, &step.method, note).await?;
        } else if retarget(&mut message, &step.method, asker) {
            client.send(&message).await?;
        }
    }
    let Some(answer) = &asker.recorded.answer else {
        if asker.recorded.method == "subscriptions/listen" {
            return Ok(());
        }
        let text = "the recording ends before the response to this request";
        return client.refuse(asker.id, INTERNAL_ERROR, text).await;
    };
    let Some(mut answer) = parsed(answer, note) else {
        let text = "the recorded response is not valid JSON";
        return client.refuse(asker.id, INTERNAL_ERROR, text).await;
    };
    if let Some(slot) = answer.get_mut("id") {
        *slot = asker.id.clone();
    }
    if let Some(result) = answer.get_mut("result") {
        resubscribe(result, asker);
    }
    client.send(&answer).await?;
    for step in &asker.recorded.after {
        if let Some(mut message) = parsed(&step.bytes, note)
            && retarget(&mut message, &step.method, asker)
        {
            client.send(&message).await?;
        }
    }
    Ok(())
}

fn parsed(bytes: &[u8], note: WarningSink<'_>) -> Option<Value> {
    let text = String::from_utf8_lossy(bytes);
    let parsed = json_text::parse(text.trim_start_matches('\u{feff}'));
    parsed.map_err(|error| note(&format!("skipped a recorded message: {error}"))).ok()
}

/// Puts the client's id and token in the place of the recorded ones; false when a message means
/// nothing to this client.
fn retarget(message: &mut Value, method: &str, asker: &ReplayRequest<'_>) -> bool {
    let Some(params) = message.get_mut("params") else { return true };
    match method {
        // It takes back a question, which was put to this client under another id.
        "notifications/cancelled" => return false,
        "notifications/progress" => {
            let recorded = params.get("progressToken");
            if recorded.is_none() || recorded != asker.recorded.progress_token.as_ref() {
                return false;
            }
            let Some(token) = asker.progress_token else { return false };
            if let Some(slot) = params.get_mut("progressToken") {
                *slot = token.clone();
            }
        }
        _ => resubscribe(params, asker),
    }
    true
}

fn resubscribe(within: &mut Value, asker: &ReplayRequest<'_>) {
    if let Some(slot) = within.get_mut("_meta").and_then(|meta| meta.get_mut(SUBSCRIPTION)) {
        *slot = asker.id.clone();
    }
}

#[cfg(test)]
mod tests;
