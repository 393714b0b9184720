//! Reading one message of a client.

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequest, CallToolRequestMethod, CallToolRequestParams, ClientRequest, JsonObject,
    JsonRpcMessage, JsonRpcVersion2_0, NumberOrString, RequestId, RequestMetaObject,
};
use rmcp::service::RxJsonRpcMessage;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The longest id that is repeated in a refusal.
const MAX_ID: usize = 1_024;

/// A `tools/call` with what nearly all of them have. Other members, and names that come twice, are
/// errors: such a call is for the SDK.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallMessage {
    #[expect(dead_code, reason = "it must be there")]
    jsonrpc: JsonRpcVersion2_0,
    id: NumberOrString,
    #[expect(dead_code, reason = "it must be this one")]
    method: CallToolRequestMethod,
    params: CallParameters,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallParameters {
    name: String,
    arguments: Option<JsonObject>,
    #[serde(rename = "_meta")]
    meta: Option<JsonObject>,
}

/// A plain `tools/call` of a client.
pub(super) struct ToolCallMessage {
    pub(super) id: RequestId,
    pub(super) params: CallToolRequestParams,
    /// The `_meta` of the request.
    pub(super) meta: Option<RequestMetaObject>,
}

impl ToolCallMessage {
    /// Reads a plain call; `None` for everything else.
    pub(super) fn read(text: &str) -> Option<Self> {
        let CallMessage { id, params, .. } = serde_json::from_str(text).ok()?;
        let CallParameters { name, arguments, meta } = params;
        let mut params = CallToolRequestParams::new(name);
        params.arguments = arguments;
        Some(Self { id, params, meta: meta.map(RequestMetaObject::from) })
    }

    pub(super) fn into_message(self) -> RxJsonRpcMessage<RoleServer> {
        let mut call = CallToolRequest::new(self.params);
        if let Some(meta) = self.meta {
            call.extensions.insert(meta);
        }
        JsonRpcMessage::request(ClientRequest::CallToolRequest(call), self.id)
    }
}

/// The id of a message that is not parsed otherwise.
pub(super) fn id(text: &str) -> serde_json::Value {
    #[derive(Deserialize)]
    struct MessageId<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
    }
    let id = serde_json::from_str::<MessageId<'_>>(text).map(|message| message.id.get());
    let id = id.ok().filter(|id| id.len() <= MAX_ID && !id.starts_with(['[', '{']));
    id.and_then(|id| serde_json::from_str(id).ok()).unwrap_or_default()
}

pub(super) fn read(text: &str) -> serde_json::Result<RxJsonRpcMessage<RoleServer>> {
    match ToolCallMessage::read(text) {
        Some(call) => Ok(call.into_message()),
        None => serde_json::from_str(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls in every shape that a client may give them.
    const CALLS: &[&str] = &[
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#,
        r#"{"params":{"arguments":{"n":1.50,"big":123456789012345678901234567890,"e":1e400,"a":[null,true,{"\u00e9":"\ud83d\ude00"}]},"name":"echo"},"method":"tools\/call","id":"x","jsonrpc":"2.0"}"#,
        r#" {"jsonrpc":"2.0","id":-7,"method":"tools/call","params":{"_meta":{"progressToken":3,"io.modelcontextprotocol/clientInfo":{"name":"a","version":"1"},"n":2.5e-7},"name":"echo","arguments":{"_meta":1}}} "#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1,"a":2}}}"#,
        r#"{"jsonrpc":"2.0","id":1.0,"method":"tools/call","params":{"name":"","arguments":null,"_meta":null}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":{},"arguments":{"a":{"$serde_json::private::Number":"7"},"b":{"$serde_json::private::RawValue":"8"}}}}"#,
    ];

    /// Texts that are not a plain call, or not a message at all.
    const OTHERS: &[&str] = &[
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","inputResponses":{"q":{"action":"decline"}},"requestState":"s"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","task":{"ttl":1}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","name":"other"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":7}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":"\ud800"}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["echo"]}"#,
        r#"["2.0",1,"tools/call",["echo"]]"#,
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
            let call = ToolCallMessage::read(text).unwrap_or_else(|| panic!("{text}"));
            let theirs = whole(serde_json::from_str(text));
            assert!(theirs.is_ok(), "{theirs:?}");
            assert_eq!(whole(Ok(call.into_message())), theirs, "{text}");
        }
    }

    #[test]
    fn everything_else_is_for_the_sdk() {
        for text in OTHERS {
            assert!(ToolCallMessage::read(text).is_none(), "{text}");
            assert_eq!(whole(read(text)), whole(serde_json::from_str(text)), "{text}");
        }
    }
}
