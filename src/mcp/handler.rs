//! What we answer when a server asks.
//!
//! Owns: the answers to requests of the server. Nothing here waits for a person yet: questions
//! are declined at once and told to whoever watches, so that no server ever waits silently.

#![expect(deprecated, reason = "roots are deprecated, but legacy servers still ask for them")]

use rmcp::RoleClient;
use rmcp::model::{
    ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData, ListRootsResult,
    Root,
};
use rmcp::service::RequestContext;

use std::sync::Arc;

use crate::model::{Ask, Event, EventSink, Inbox, Question, Reply};

/// The client's side of the conversation.
pub struct Handler {
    /// The server's name, for events.
    pub server: String,
    /// What we told the server about ourselves.
    pub config: ClientConfig,
    /// The roots it may know.
    pub roots: Vec<String>,
    /// Where questions are told.
    pub events: EventSink,
    /// Who answers questions.
    pub inbox: Arc<dyn Inbox>,
}

impl Handler {
    fn notice(&self, text: String) {
        self.events.emit(Event::Notice { origin: self.server.clone(), text });
    }
}

impl rmcp::ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let (told, ask) = match request {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => (
                format!("asked \"{message}\"; declined"),
                Ask::Form {
                    message,
                    schema: serde_json::to_value(requested_schema).unwrap_or_default(),
                },
            ),
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => (
                format!("asked to open {url}; declined, nothing was opened"),
                Ask::Open { message, url },
            ),
            _ => {
                self.notice("asked a question of an unknown kind; declined".to_owned());
                return Ok(ElicitResult::new(ElicitationAction::Decline));
            }
        };
        let question = Question { server: self.server.clone(), call: None, ask };
        Ok(match self.inbox.ask(question).await {
            Reply::Accept(content) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(content)
            }
            Reply::Cancel => ElicitResult::new(ElicitationAction::Cancel),
            Reply::Decline | Reply::Nobody => {
                self.notice(told);
                ElicitResult::new(ElicitationAction::Decline)
            }
        })
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        if self.roots.is_empty() {
            return Err(ErrorData::new(
                rmcp::model::ErrorCode::METHOD_NOT_FOUND,
                "no roots are offered",
                None,
            ));
        }
        Ok(ListRootsResult::new(self.roots.iter().map(Root::new).collect()))
    }
}
