//! Questions of servers in the words of the protocol, and the answers back.

use rmcp::RoleServer;
use rmcp::model::{ClientCapabilities, CustomRequest, InputRequest, ServerRequest};
use rmcp::service::{Peer, PeerRequestOptions};
use serde_json::{Value, json};

use super::client_registry::ClientQuestion;
use crate::host::limits;
use crate::model::{QuestionBody, QuestionReply};
use crate::serve::background::protocol;

/// Whether a client with these capabilities can put the question to its person.
pub(super) fn is_supported(body: &QuestionBody, capabilities: Option<&ClientCapabilities>) -> bool {
    let Some(capabilities) = capabilities.filter(|_| input_request(body).is_ok()) else {
        return false;
    };
    match body {
        QuestionBody::Form { .. } => can_fill_forms(Some(capabilities)),
        QuestionBody::Url { .. } => {
            capabilities.elicitation.as_ref().is_some_and(|e| e.url.is_some())
        }
        QuestionBody::Sampling { .. } => capabilities.sampling.is_some(),
    }
}

/// Whether a client with these capabilities can let its person fill in a form.
pub(super) fn can_fill_forms(capabilities: Option<&ClientCapabilities>) -> bool {
    let elicitation = capabilities.and_then(|capabilities| capabilities.elicitation.as_ref());
    // An empty object is the form mode's older spelling.
    elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// Asks a client of the older era, and hands the answer on.
pub(super) async fn ask(peer: Peer<RoleServer>, question: ClientQuestion, is_of_front_end: bool) {
    let ClientQuestion { body, whole, mut reply, .. } = question;
    let (method, mut params) = request(&body);
    if is_of_front_end
        && let (Some(params), Ok(whole)) = (params.as_object_mut(), serde_json::to_string(&whole))
    {
        params.insert("_meta".to_owned(), json!({ protocol::QUESTION: whole }));
    }
    let request = ServerRequest::CustomRequest(CustomRequest::new(method, Some(params)));
    let options = PeerRequestOptions::with_timeout(limits::MAX_TOTAL);
    let sent = peer.send_cancellable_request(request, options).await;
    let Ok(sent) = sent else {
        let _gone = reply.send(QuestionReply::Unattended);
        return;
    };
    tokio::select! {
        answer = sent.await_response() => {
            let answer = answer.ok().and_then(|answer| serde_json::to_value(answer).ok());
            let _gone = reply.send(answer.map_or(QuestionReply::Cancel, |answer| read(&body, answer)));
        }
        // The server does not wait any more.
        () = reply.closed() => {}
    }
}

/// The question as an input that a call of the newer era requires.
///
/// # Errors
/// When it does not have the shape that the SDK can send.
pub(super) fn input_request(body: &QuestionBody) -> Result<InputRequest, serde_json::Error> {
    let (method, params) = request(body);
    serde_json::from_value(json!({ "method": method, "params": params }))
}

/// The answer of a client.
pub(super) fn read(body: &QuestionBody, answer: Value) -> QuestionReply {
    if answer.pointer("/_meta").is_some_and(|meta| meta.get(protocol::UNATTENDED).is_some()) {
        return QuestionReply::Unattended;
    }
    if let QuestionBody::Sampling { .. } = body {
        return if answer.get("content").is_some() {
            QuestionReply::Accept(answer)
        } else {
            QuestionReply::Decline
        };
    }
    match answer.get("action").and_then(Value::as_str) {
        Some("accept") => {
            QuestionReply::Accept(answer.get("content").cloned().unwrap_or_else(|| json!({})))
        }
        Some("decline") => QuestionReply::Decline,
        _ => QuestionReply::Cancel,
    }
}

fn request(body: &QuestionBody) -> (&'static str, Value) {
    match body {
        QuestionBody::Form { message, schema } => {
            let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
            ("elicitation/create", params)
        }
        QuestionBody::Url { message, url } => {
            // The identity only matters to servers that tell when the visit has ended.
            let id = uuid::Uuid::new_v4().to_string();
            let params =
                json!({ "mode": "url", "message": message, "url": url, "elicitationId": id });
            ("elicitation/create", params)
        }
        QuestionBody::Sampling { params } => ("sampling/createMessage", params.clone()),
    }
}
