//! The client side of the SDK's session: client info, and answers to the server's requests.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientConfig, CustomRequest, CustomResult, ErrorCode, ErrorData};
use rmcp::service::RequestContext;
use serde_json::Value;
use tokio::time::timeout;

use super::responder::{self, QuestionContext, QuestionRefusal, QuestionResponder};
use super::session::McpSession;

/// How long a question may wait that no request of ours waits for…
const UNRELATED_QUESTION_TIMEOUT: Duration = Duration::from_mins(5);
/// …and any other, should the request that waits for it never end.
const QUESTION_TIMEOUT: Duration = Duration::from_hours(24);

/// The client's side of the conversation.
pub struct SdkHandler {
    pub config: ClientConfig,
    /// Which questions are open, and for whom.
    pub session: Arc<McpSession>,
    /// Answers what the server asks.
    pub respondent: Arc<QuestionResponder>,
}

impl rmcp::ClientHandler for SdkHandler {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        let params = params.unwrap_or(Value::Null);
        let Some(open) = self.session.question(&context.id) else {
            return custom_result(responder::withdrawn_answer(&method));
        };
        if let Some(page) = params.get("elicitationId").and_then(Value::as_str) {
            self.session.remember_page(page);
        }
        let limit = if open.is_unrelated { UNRELATED_QUESTION_TIMEOUT } else { QUESTION_TIMEOUT };
        let needs_call = self.respondent.inbox.asks_callers() && responder::needs_person(&method);
        let answer = timeout(limit, async {
            let call = match open.call {
                None if needs_call => self.session.call_of_question(&context.id).await,
                call => call,
            };
            let occasion = QuestionContext { call, ..QuestionContext::default() };
            self.respondent.answer(&method, &params, &occasion).await
        });
        let answer = tokio::select! {
            biased;
            () = open.cancelled.cancelled() => responder::withdrawn_answer(&method),
            () = context.ct.cancelled() => responder::withdrawn_answer(&method),
            answer = answer => match answer {
                Ok(answer) => answer.map(|answered| answered.result),
                Err(_elapsed) => responder::withdrawn_answer(&method),
            },
        };
        custom_result(answer)
    }
}

fn custom_result(answer: Result<Value, QuestionRefusal>) -> Result<CustomResult, ErrorData> {
    answer.map(CustomResult::new).map_err(|refusal| {
        let (code, message) = refusal.error();
        ErrorData::new(ErrorCode(code), message, None)
    })
}
