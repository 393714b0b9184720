//! Front ends of this program that use the server as their host.
//!
//! Owns: their calls, which carry a whole request and return a whole outcome, their queries, and
//! the commands they may send to the host. Only a server with a [`HostLifetime`] answers any of it;
//! every other client is served as MCP says.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolResult, CustomNotification, CustomRequest, CustomResult, ErrorCode, ErrorData,
    MetaObject,
};
use rmcp::service::RequestContext;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::request_sender::RequestSender;
use super::{BackgroundHost, CatalogueServer};
use crate::host::link::{HostQuery, ObserveRequest};
use crate::host::offerings::ServerChange;
use crate::host::request::{CallOutcome, CallRequest};
use crate::model::{Error, SubscriptionFilter};
use crate::serve::background::lifetime::{HostLifetime, RunningCallGuard};
use crate::serve::background::observers::ObserverHub;
use crate::serve::background::protocol::{self, SentObservation, SentOutcome};

/// How many changes wait for a slow front end; then servers are listened to more slowly.
const CHANGE_QUEUE: usize = 64;

impl CatalogueServer {
    /// The request of a front end; `None` for any other client.
    ///
    /// # Errors
    /// That the request cannot be read.
    pub(super) fn front_end_request(
        &self,
        sender: &RequestSender,
    ) -> Result<Option<CallRequest>, ErrorData> {
        if self.settings.background.is_none() {
            return Ok(None);
        }
        let Some(text) = sender.said(protocol::CALL) else { return Ok(None) };
        read(text).map(Some)
    }

    /// Keeps a session's own state while it can still be used: with `is_named`, because the user named
    /// it, for the host's idle time, and otherwise while its process lives.
    pub(super) fn hold_session(&self, session: Option<&str>, is_named: bool, process: Option<u32>) {
        let sessions = self.settings.background.as_ref().and_then(|host| host.sessions.as_ref());
        let (Some(sessions), Some(session)) = (sessions, session) else { return };
        match process {
            _ if is_named => sessions.hold_named(session),
            Some(pid) => sessions.hold_for_process(session, pid),
            None => {}
        }
    }

    /// Admits a call to a background host; `None` where the server is none.
    ///
    /// # Errors
    /// That the host is about to end.
    pub(super) fn admit_call(&self) -> Result<Option<RunningCallGuard>, ErrorData> {
        let Some(host) = &self.settings.background else { return Ok(None) };
        host.lifetime.begin_call().map(Some).ok_or_else(not_current)
    }

    /// Answers requests of front ends that are not MCP.
    pub(super) async fn answer_front_end(
        &self,
        request: CustomRequest,
        context: &RequestContext<RoleServer>,
        process: Option<u32>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        if method.starts_with("tasks/") {
            let words = format!(
                "{method}: tasks of revision 2025-11-25 are not served; call the tool, its end is \
                 waited for"
            );
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, words, None));
        }
        let Some(BackgroundHost { lifetime, observers, .. }) = &self.settings.background else {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None));
        };
        match method.as_str() {
            protocol::QUERY => self.answer_query(lifetime, params, process).await,
            protocol::OBSERVE => self.show(lifetime, observers, params, context).await,
            protocol::STATUS => payload(&lifetime.status(&self.host)),
            protocol::RECHECK => payload(&lifetime.recheck()),
            protocol::STOP => {
                lifetime.stop();
                payload(&true)
            }
            _ => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None)),
        }
    }

    async fn answer_query(
        &self,
        lifetime: &Arc<HostLifetime>,
        params: Option<Value>,
        process: Option<u32>,
    ) -> Result<CustomResult, ErrorData> {
        let query: HostQuery = read_parameters(params.as_ref())?;
        self.hold_session(query.session(), false, process);
        let _running = match query.is_passive() {
            true if lifetime.recheck() => None,
            true => return Err(not_current()),
            false => Some(lifetime.begin_call().ok_or_else(not_current)?),
        };
        // The client that goes away ends this future, and with it what it waits for.
        let answer = self.host.answer_query(query, &CancellationToken::new()).await;
        let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(CustomResult(json!({ protocol::PAYLOAD: answer })))
    }

    /// Sends observations to a front end until it stops watching, or until the host ends.
    async fn show(
        &self,
        lifetime: &Arc<HostLifetime>,
        observers: &Arc<ObserverHub>,
        params: Option<Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let wanted: ObserveRequest = read_parameters(params.as_ref())?;
        if !lifetime.recheck() {
            return Err(not_current());
        }
        match wanted {
            ObserveRequest::Activity => {
                let observer = observers.watch();
                let showing = async { while tell(context, &observer.next().await).await {} };
                let _cancelled = context.ct.run_until_cancelled(showing).await;
            }
            ObserveRequest::Changes(changes) => self.show_changes(changes, context).await?,
        }
        payload(&true)
    }

    async fn show_changes(
        &self,
        wanted: Vec<(String, SubscriptionFilter)>,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let (sender, mut changes) = mpsc::channel(CHANGE_QUEUE);
        let watching = async {
            let ended = self.host.watch_servers(wanted, &sender, &context.ct).await;
            drop(sender);
            ended
        };
        let showing = async {
            while let Some(ServerChange { server, change }) = changes.recv().await {
                let line = SentObservation::Change(server, change).line();
                let _client_gone = tell(context, &line).await;
            }
        };
        // A failure was told as the last change of its server.
        let (_ended, ()) = tokio::join!(watching, showing);
        Ok(())
    }
}

/// Sends observations, one a line; whether the front end is still there.
async fn tell(context: &RequestContext<RoleServer>, lines: &str) -> bool {
    let params = json!({ protocol::PAYLOAD: lines });
    let notification = CustomNotification::new(protocol::OBSERVED, Some(params));
    context.peer.send_notification(notification.into()).await.is_ok()
}

/// The result of a front end's call.
///
/// # Errors
/// That it cannot be written.
pub(super) fn outcome(ended: Result<CallOutcome, Error>) -> Result<CallToolResult, ErrorData> {
    let is_error = ended.as_ref().map_or(true, |outcome| outcome.error().is_some());
    let mut sent = CallToolResult::success(Vec::new());
    sent.is_error = Some(is_error);
    let mut meta = serde_json::Map::new();
    meta.insert(protocol::OUTCOME.to_owned(), Value::String(write(&ended.map(SentOutcome::from))?));
    sent.meta = Some(MetaObject(meta));
    Ok(sent)
}

fn not_current() -> ErrorData {
    ErrorData::new(ErrorCode(protocol::NOT_CURRENT), "this host is shutting down", None)
}

fn read<T: serde::de::DeserializeOwned>(text: &Value) -> Result<T, ErrorData> {
    let text = text.as_str().unwrap_or_default();
    serde_json::from_str(text).map_err(|error| {
        ErrorData::invalid_params(format!("this is not a request of a front end: {error}"), None)
    })
}

fn read_parameters<T: serde::de::DeserializeOwned>(params: Option<&Value>) -> Result<T, ErrorData> {
    let sent = params.and_then(|params| params.get(protocol::PAYLOAD));
    read(sent.unwrap_or(&Value::Null))
}

fn write(value: &impl Serialize) -> Result<String, ErrorData> {
    serde_json::to_string(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn payload(value: &impl Serialize) -> Result<CustomResult, ErrorData> {
    Ok(CustomResult(json!({ protocol::PAYLOAD: write(value)? })))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::value::RawValue;

    use super::*;
    use crate::model::{CallId, CallMetadata, Origin, ToolDefinition, ToolName, ToolSource};

    #[test]
    fn an_outcome_arrives_with_what_of_its_definition_is_about_it() {
        let origin = Origin::Server("s".into());
        let name = ToolName::of("s", "echo");
        let mut definition = ToolDefinition::new(name, ToolSource::Mcp, "mcp", origin);
        definition.output_schema = Some(Arc::new(json!({ "type": "object" })));
        let raw = RawValue::from_string(r#"{"name":"echo","x":1}"#.into()).unwrap();
        definition.raw = Some(Arc::from(raw));
        definition.description = Some("Says it.".into());
        let metadata = CallMetadata {
            call_id: CallId("c".into()),
            duration: Duration::from_micros(7),
            person_wait: Duration::ZERO,
            connect: None,
            attempts: 1,
            protocol: None,
            routing: None,
            host_pid: None,
        };
        let result = Ok(crate::model::ToolResult::text("\"hi\""));
        let definition = Arc::new(definition);
        let ended = CallOutcome { definition: Arc::clone(&definition), result, metadata };
        let sent = outcome(Ok(ended.clone())).unwrap();
        let text = sent.meta.unwrap().0[protocol::OUTCOME].as_str().unwrap().to_owned();
        let arrived: Result<SentOutcome, Error> = serde_json::from_str(&text).unwrap();
        let arrived = CallOutcome::from(arrived.unwrap());
        let mut expected = ended;
        let told = Arc::make_mut(&mut expected.definition);
        (told.raw, told.description) = (None, None);
        assert_eq!(json!(arrived), json!(expected));
        assert!(definition.raw.is_some(), "the definition itself keeps it");
    }
}
