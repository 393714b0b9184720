//! Questions of servers as protocol messages, and their answers.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ClientCapabilities, CustomRequest, ErrorData, InputRequest, ServerRequest};
use rmcp::service::{Peer, PeerRequestOptions};
use serde_json::{Value, json};

use super::client_registry::{AskedOfClient, ClientQuestion};
use crate::host::attempt;
use crate::model::{QuestionAbilities, QuestionBody, QuestionReply};
use crate::serve::background::protocol;

/// How long a front end may take: it and its call have limits of their own.
const FRONT_END_PATIENCE: Duration = Duration::from_hours(24);

/// Whether a client with these capabilities can put the question to its person.
pub(super) fn is_supported(
    body: &AskedOfClient,
    capabilities: Option<&ClientCapabilities>,
) -> bool {
    let able = abilities(capabilities);
    let is_able = match body {
        AskedOfClient::Question(QuestionBody::Form { .. }) => able.forms,
        AskedOfClient::Question(QuestionBody::Url { .. }) => able.urls,
        AskedOfClient::Question(QuestionBody::Sampling { .. }) => able.sampling,
        AskedOfClient::Roots => able.roots,
    };
    is_able && input_request(body).is_ok()
}

pub(super) fn abilities(capabilities: Option<&ClientCapabilities>) -> QuestionAbilities {
    let Some(declared) = capabilities else { return QuestionAbilities::default() };
    QuestionAbilities {
        forms: can_fill_forms(capabilities),
        urls: declared.elicitation.as_ref().is_some_and(|modes| modes.url.is_some()),
        sampling: declared.sampling.is_some(),
        roots: declared.roots.is_some(),
    }
}

pub(super) fn can_fill_forms(capabilities: Option<&ClientCapabilities>) -> bool {
    let elicitation = capabilities.and_then(|capabilities| capabilities.elicitation.as_ref());
    // An empty object is the form mode's older spelling.
    elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// Asks a client of the older era, or a front end of this program in its own way.
pub(super) async fn ask(peer: Peer<RoleServer>, question: ClientQuestion, is_front_end: bool) {
    let ClientQuestion { body, whole, mut reply, .. } = question;
    let whole = whole.filter(|_| is_front_end);
    let ((method, params), limit) = match &whole {
        Some(whole) => (front_end_request(whole), FRONT_END_PATIENCE),
        None => (request(&body), attempt::MAX_TOTAL),
    };
    let request = ServerRequest::CustomRequest(CustomRequest::new(method, Some(params)));
    let options = PeerRequestOptions::with_timeout(limit);
    let sent = peer.send_cancellable_request(request, options).await;
    let Ok(sent) = sent else {
        let _gone = reply.send(QuestionReply::Unattended);
        return;
    };
    tokio::select! {
        answer = sent.await_response() => {
            let answer = answer.ok().and_then(|answer| serde_json::to_value(answer).ok());
            let read = |answer| match whole {
                Some(_) => read_front_end(answer),
                None => read(&body, answer),
            };
            let _gone = reply.send(answer.map_or(QuestionReply::Cancel, read));
        }
        // The server does not wait any more.
        () = reply.closed() => {}
    }
}

/// A form that carries the question of a front end, which knows what to show.
fn front_end_request(whole: &str) -> (&'static str, Value) {
    let message = "a question of the background host";
    let schema = json!({ "type": "object", "properties": {}, protocol::QUESTION: whole });
    ("elicitation/create", json!({ "message": message, "requestedSchema": schema }))
}

fn read_front_end(mut answer: Value) -> QuestionReply {
    let reply = answer.get_mut("content").and_then(|content| content.get_mut(protocol::REPLY));
    let reply = reply.and_then(|reply| serde_json::from_value(reply.take()).ok());
    reply.unwrap_or(QuestionReply::Unattended)
}

fn input_request(body: &AskedOfClient) -> Result<InputRequest, serde_json::Error> {
    let (method, params) = request(body);
    serde_json::from_value(json!({ "method": method, "params": params }))
}

pub(super) fn input_request_of(body: &AskedOfClient) -> Result<InputRequest, ErrorData> {
    input_request(body).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

pub(super) fn answer_question(question: ClientQuestion, answer: Value) {
    let reply = read(&question.body, answer);
    let _gone = question.reply.send(reply);
}

pub(super) fn read(body: &AskedOfClient, mut answer: Value) -> QuestionReply {
    match body {
        AskedOfClient::Roots => {
            return match answer.get_mut("roots").map(Value::take) {
                Some(roots @ Value::Array(_)) => QuestionReply::Accept(roots),
                _ => QuestionReply::Decline,
            };
        }
        AskedOfClient::Question(QuestionBody::Sampling { .. }) => {
            return match answer.get("content") {
                Some(_) => QuestionReply::Accept(answer),
                None => QuestionReply::Decline,
            };
        }
        AskedOfClient::Question(QuestionBody::Form { .. } | QuestionBody::Url { .. }) => {}
    }
    match answer.get("action").and_then(Value::as_str) {
        Some("accept") => {
            QuestionReply::Accept(answer.get("content").cloned().unwrap_or_else(|| json!({})))
        }
        Some("decline") => QuestionReply::Decline,
        _ => QuestionReply::Cancel,
    }
}

fn request(body: &AskedOfClient) -> (&'static str, Value) {
    let AskedOfClient::Question(body) = body else { return ("roots/list", json!({})) };
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
