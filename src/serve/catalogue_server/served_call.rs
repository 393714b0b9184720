//! A self-contained call: in the newer era each is a separate request, with all that it needs.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ErrorCode, ErrorData, RequestId,
    RequestMetaObject, ServerJsonRpcMessage, ServerNotification, ServerResult,
};
use tokio::sync::mpsc;

use super::call::RequestOrigin;
use super::request_sender::RequestSender;
use super::{CatalogueServer, ended};
use crate::serve::shared_room::MessagePlace;

/// How many notifications wait for a client that is slow to read.
const NOTIFICATION_QUEUE: usize = 16;

/// A `tools/call` with all that its client says with it.
pub(in crate::serve) struct StatelessCall {
    /// The client's own name of the request.
    pub(in crate::serve) id: RequestId,
    pub(in crate::serve) params: CallToolRequestParams,
    pub(in crate::serve) meta: RequestMetaObject,
    /// What `meta` says that the client can do.
    pub(in crate::serve) capabilities: ClientCapabilities,
    /// The memory that it takes.
    pub(in crate::serve) place: Option<Arc<MessagePlace>>,
}

/// A call that runs. Dropped, it is cancelled.
pub(in crate::serve) struct ServedCall {
    told: mpsc::Receiver<ServerNotification>,
    stage: CallStage,
}

enum CallStage {
    Running(BoxFuture<'static, ServerJsonRpcMessage>),
    /// The answer waits for what was told before it.
    Answered(Option<Box<ServerJsonRpcMessage>>),
}

impl CatalogueServer {
    /// Begins a call of `session`, as which all calls of its client are recorded.
    pub(in crate::serve) fn serve_call(
        self: &Arc<Self>,
        session: &str,
        call: StatelessCall,
    ) -> ServedCall {
        let StatelessCall { id, params, meta, capabilities, place } = call;
        let (notifier, notifications) = mpsc::channel(NOTIFICATION_QUEUE);
        let sender = RequestSender::of_request(id.clone(), meta, capabilities, notifier);
        let origin = RequestOrigin { session: session.to_owned(), level: None, place };
        let server = Arc::clone(self);
        let answering = async move {
            let answer = pin!(server.answer_call(params, origin, sender));
            let answer = match server.stop.run_until_cancelled(answer).await {
                Some(answer) if answer.is_ok() || !server.stop.is_cancelled() => answer,
                Some(_) | None => Err(ended()),
            };
            message(answer, id)
        };
        ServedCall { told: notifications, stage: CallStage::Running(Box::pin(answering)) }
    }
}

impl ServedCall {
    /// What the client is sent next; the answer is the last.
    pub(in crate::serve) async fn next(&mut self) -> Option<ServerJsonRpcMessage> {
        if let CallStage::Running(answer) = &mut self.stage {
            let answer = tokio::select! {
                // What was sent before the end is passed on before the end.
                biased;
                Some(notification) = self.told.recv() => return Some(ServerJsonRpcMessage::notification(notification)),
                answer = answer => answer,
            };
            self.stage = CallStage::Answered(Some(Box::new(answer)));
        }
        if let Ok(notification) = self.told.try_recv() {
            return Some(ServerJsonRpcMessage::notification(notification));
        }
        match &mut self.stage {
            CallStage::Running(_) => None,
            CallStage::Answered(answer) => answer.take().map(|answer| *answer),
        }
    }
}

fn message(answer: Result<CallToolResponse, ErrorData>, id: RequestId) -> ServerJsonRpcMessage {
    match answer {
        Ok(response) => ServerJsonRpcMessage::response(ServerResult::from(response), id),
        Err(mut error) => {
            // The newer era has no specific code for that.
            if error.code == ErrorCode::RESOURCE_NOT_FOUND {
                error.code = ErrorCode::INVALID_PARAMS;
            }
            ServerJsonRpcMessage::error(error, Some(id))
        }
    }
}
