//! What the SDK's session asks us for: who we are, and answers to the server's requests.
//!
//! Owns: how long a request of the server may wait for its answer. Every request arrives as the
//! method and parameters it was sent with (see [`Session`]); what the answer is says the
//! [`Respondent`].

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientConfig, CustomRequest, CustomResult, ErrorCode, ErrorData};
use rmcp::service::RequestContext;
use serde_json::Value;
use tokio::time::timeout;

use super::respondent::{self, Occasion, Refusal, Respondent};
use super::session::Session;

/// How long a question may wait that no request of ours waits for…
const ALONE: Duration = Duration::from_mins(5);
/// …and any other, should the request that waits for it never end.
const LONGEST: Duration = Duration::from_hours(24);

/// The client's side of the conversation.
pub struct Handler {
    /// What we told the server about ourselves.
    pub config: ClientConfig,
    /// Which questions are open, and for whom.
    pub session: Arc<Session>,
    /// Who answers.
    pub respondent: Arc<Respondent>,
}

impl rmcp::ClientHandler for Handler {
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
            return answered(respondent::too_late(&method));
        };
        if let Some(page) = params.get("elicitationId").and_then(Value::as_str) {
            self.session.remember_page(page);
        }
        let occasion = Occasion { call: open.call, round: None };
        let limit = if open.alone { ALONE } else { LONGEST };
        let answer = timeout(limit, self.respondent.answer(&method, &params, &occasion));
        let answer = tokio::select! {
            biased;
            () = open.over.cancelled() => respondent::too_late(&method),
            () = context.ct.cancelled() => respondent::too_late(&method),
            answer = answer => match answer {
                Ok(answer) => answer.map(|answered| answered.result),
                Err(_elapsed) => respondent::too_late(&method),
            },
        };
        answered(answer)
    }
}

fn answered(answer: Result<Value, Refusal>) -> Result<CustomResult, ErrorData> {
    answer.map(CustomResult::new).map_err(|refusal| {
        let (code, message) = refusal.error();
        ErrorData::new(ErrorCode(code), message, None)
    })
}
