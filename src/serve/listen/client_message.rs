//! Reading one message of a client.
//!
//! Owns: that `tools/call`, which is nearly all that clients send, is read as what it is. The SDK finds
//! out what a message is by trying one kind after another, which costs as much as the rest of a call.
//! Never does: judge a message otherwise than the SDK.

use std::borrow::Cow;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequest, ClientRequest, JsonRpcMessage, JsonRpcVersion2_0, NumberOrString,
};
use rmcp::service::RxJsonRpcMessage;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// What tells a request from other messages. Members that no request has are errors, as names that
/// come twice are.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestHead<'a> {
    #[expect(dead_code, reason = "it has to be there")]
    jsonrpc: JsonRpcVersion2_0,
    id: NumberOrString,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[expect(dead_code, reason = "it is read with the method")]
    params: IgnoredAny,
}

/// Reads a message.
///
/// # Errors
/// When the text is no message that a client may send.
pub(super) fn read(text: &str) -> serde_json::Result<RxJsonRpcMessage<RoleServer>> {
    match read_call(text) {
        Some(call) => Ok(call),
        None => serde_json::from_str(text),
    }
}

/// A plain `tools/call`; `None` for everything else.
fn read_call(text: &str) -> Option<RxJsonRpcMessage<RoleServer>> {
    let head: RequestHead<'_> = serde_json::from_str(text).ok()?;
    if head.method != "tools/call" {
        return None;
    }
    let call: CallToolRequest = serde_json::from_str(text).ok()?;
    Some(JsonRpcMessage::request(ClientRequest::CallToolRequest(call), head.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls in every shape that a client may give them.
    const CALLS: &[&str] = &[
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#,
        r#"{"params":{"arguments":{"n":1.50,"big":123456789012345678901234567890,"e":1e400,"a":[null,true,{"\u00e9":"\ud83d\ude00"}]},"name":"echo"},"method":"tools\/call","id":"x","jsonrpc":"2.0"}"#,
        r#" {"jsonrpc":"2.0","id":-7,"method":"tools/call","params":{"_meta":{"progressToken":3,"io.modelcontextprotocol/clientInfo":{"name":"a","version":"1"},"n":2.5e-7},"name":"echo","arguments":{"_meta":1},"inputResponses":{"q":{"action":"decline"}},"requestState":"s","task":{"ttl":1}}} "#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1,"a":2},"unknown":[1]}}"#,
    ];

    /// What is no call, or no message at all.
    const OTHERS: &[&str] = &[
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"echo"}}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":[]}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"},"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"echo"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"},"other":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
        r#"{"jsonrpc":"2.0","id":1"#,
        "7",
    ];

    /// A message in all that it holds: as it is shown, and as it is written, where `_meta` shows too.
    fn whole(read: serde_json::Result<RxJsonRpcMessage<RoleServer>>) -> Result<String, String> {
        let message = read.map_err(|error| error.to_string())?;
        Ok(format!("{message:?} {}", serde_json::to_string(&message).unwrap()))
    }

    #[test]
    fn a_call_is_read_as_the_sdk_reads_it() {
        for text in CALLS {
            let call = read_call(text).unwrap_or_else(|| panic!("{text}"));
            let theirs = whole(serde_json::from_str(text));
            assert!(theirs.is_ok(), "{theirs:?}");
            assert_eq!(whole(Ok(call)), theirs, "{text}");
        }
    }

    #[test]
    fn everything_else_is_for_the_sdk() {
        for text in OTHERS {
            assert!(read_call(text).is_none(), "{text}");
            assert_eq!(whole(read(text)), whole(serde_json::from_str(text)), "{text}");
        }
    }
}
