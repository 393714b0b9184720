//! Serialising an outgoing request into the line that is sent.

use serde::Serialize;
use serde_json::json;

use super::handshake::{capabilities, client_info};
use super::lifecycle::Agreement;
use super::wire::{FrameKind, OutgoingFrame};
use crate::model::{CallId, Era, JsonObject, QuestionAbilities};

/// One request before it gets its id.
#[derive(Debug, Clone, Copy)]
pub struct OutgoingRequest<'a> {
    pub method: &'a str,
    pub params: &'a JsonObject,
    /// The tool to call and its arguments, written as `name` and `arguments`.
    pub tool: Option<(&'a str, &'a JsonObject)>,
    /// Extra headers (`Mcp-Param-*`), for transports that have headers.
    pub headers: &'a [(String, String)],
    pub log_level: Option<&'static str>,
    /// What may be asked of the client behind it, where that is not what all requests say.
    pub questions: Option<QuestionAbilities>,
    /// Further members of `_meta`.
    pub meta: Option<&'a JsonObject>,
    pub call: Option<&'a CallId>,
}

/// What the requests of a connection say about us, as members of `_meta`.
#[derive(Debug, Default)]
pub struct ClientMeta {
    /// What all of them say; nothing after an introduction in a handshake.
    same: Vec<u8>,
    /// What a server may ask, where each request says it.
    questions: Option<QuestionAbilities>,
}

impl ClientMeta {
    /// For a server that agreed to this. Who was introduced in a handshake says no more.
    pub fn for_agreement(agreement: &Agreement, questions: QuestionAbilities) -> Self {
        let mut about = Self::default();
        if agreement.era == Era::Modern {
            about.questions = Some(questions);
            let version = ("io.modelcontextprotocol/protocolVersion", json!(agreement.version));
            for (key, value) in [version, ("io.modelcontextprotocol/clientInfo", client_info())] {
                member(&mut about.same, key, &value);
            }
        }
        about
    }

    fn write(&self, line: &mut Vec<u8>, questions: Option<QuestionAbilities>) {
        line.extend_from_slice(&self.same);
        if let Some(usual) = self.questions {
            let declared = capabilities(Era::Modern, questions.unwrap_or(usual));
            member(line, "io.modelcontextprotocol/clientCapabilities", &declared);
        }
    }
}

impl<'a> OutgoingRequest<'a> {
    pub fn new(method: &'a str, params: &'a JsonObject) -> Self {
        Self {
            method,
            params,
            tool: None,
            headers: &[],
            log_level: None,
            questions: None,
            meta: None,
            call: None,
        }
    }

    pub fn frame(&self, id: i64, about: &ClientMeta) -> OutgoingFrame {
        let mut line = Vec::with_capacity(512);
        line.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        value(&mut line, &id);
        line.extend_from_slice(b",\"method\":");
        value(&mut line, &self.method);
        line.extend_from_slice(b",\"params\":{\"_meta\":{");
        about.write(&mut line, self.questions);
        if let Some(level) = self.log_level {
            member(&mut line, "io.modelcontextprotocol/logLevel", &level);
        }
        for (key, content) in self.meta.into_iter().flatten() {
            member(&mut line, key, content);
        }
        member(&mut line, "progressToken", &id);
        line.push(b'}');
        if let Some((name, arguments)) = self.tool {
            member(&mut line, "name", name);
            member(&mut line, "arguments", arguments);
        }
        for (key, content) in self.params {
            member(&mut line, key, content);
        }
        line.extend_from_slice(b"}}");
        let kind = FrameKind::Request {
            id: json!(id),
            method: self.method.to_owned(),
            name: match self.tool {
                Some((name, _)) => Some(name.to_owned()),
                None => subject(self.method, self.params),
            },
            headers: self.headers.to_vec(),
        };
        OutgoingFrame { bytes: line.into(), kind, call: self.call.cloned() }
    }
}

/// The thing that a request is about (`Mcp-Name`).
pub fn subject(method: &str, params: &JsonObject) -> Option<String> {
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    params.get(key)?.as_str().map(str::to_owned)
}

/// One member of an object, after those that are there.
fn member(line: &mut Vec<u8>, key: &str, content: &(impl Serialize + ?Sized)) {
    if line.last().is_some_and(|last| *last != b'{') {
        line.push(b',');
    }
    value(line, key);
    line.push(b':');
    value(line, content);
}

fn value(line: &mut Vec<u8>, content: &(impl Serialize + ?Sized)) {
    // Texts, numbers and trees of JSON can always be written, and memory takes what is written.
    let _cannot_fail = serde_json::to_writer(line, content);
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn sent(tool: Option<&str>, about: &ClientMeta) -> Value {
        let meta = JsonObject::from_iter([("dev.toolhost/callId".to_owned(), json!("c"))]);
        let arguments = JsonObject::from_iter([("x".to_owned(), json!("é\n"))]);
        let headers = [("Mcp-Param-A".to_owned(), "b".to_owned())];
        let outgoing = OutgoingRequest {
            method: "tools/call",
            params: &JsonObject::new(),
            tool: tool.map(|name| (name, &arguments)),
            headers: &headers,
            log_level: Some("debug"),
            questions: None,
            meta: tool.map(|_| &meta),
            call: None,
        };
        let frame = outgoing.frame(7, about);
        let FrameKind::Request { id, method, name, headers } = &frame.kind else { panic!() };
        assert_eq!((id, method.as_str()), (&json!(7), "tools/call"));
        assert_eq!(name.as_deref(), tool);
        assert_eq!(headers.len(), 1);
        serde_json::from_slice(&frame.bytes).unwrap()
    }

    #[test]
    fn a_request_says_who_asks_and_what() {
        let questions = QuestionAbilities { sampling: true, ..QuestionAbilities::default() };
        let mut about = ClientMeta { questions: Some(questions), ..ClientMeta::default() };
        member(&mut about.same, "a", &json!({ "b": 1 }));
        member(&mut about.same, "c", "\"");
        assert_eq!(
            sent(Some("t"), &about),
            json!({
                "jsonrpc": "2.0", "id": 7, "method": "tools/call",
                "params": {
                    "_meta": {
                        "a": { "b": 1 }, "c": "\"",
                        "io.modelcontextprotocol/clientCapabilities": {
                            "sampling": {},
                            "extensions": { "io.modelcontextprotocol/tasks": {} },
                        },
                        "io.modelcontextprotocol/logLevel": "debug",
                        "dev.toolhost/callId": "c", "progressToken": 7,
                    },
                    "name": "t", "arguments": { "x": "é\n" },
                },
            })
        );
    }

    #[test]
    fn a_request_without_parameters_has_its_token_alone() {
        let request = sent(None, &ClientMeta::default());
        assert_eq!(request["params"]["_meta"]["progressToken"], 7);
        assert_eq!(request["params"].as_object().unwrap().len(), 1);
    }
}
