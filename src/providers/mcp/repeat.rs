//! Many calls of one tool of a server, each way with its own mechanics.
//!
//! Owns: by which way, and what has to be right before the first call of it is sent: the tool is
//! still the one that was listed, and it is not one that runs as a task. Never does: carry calls
//! (the `mcp` room does).

mod http;
mod judge;

use async_trait::async_trait;

use super::McpProvider;
use crate::config::spec::Endpoint;
use crate::model::Fault;
use crate::provider::repeat::{Order, Repeat, Repeater};

#[async_trait]
impl Repeat for McpProvider {
    async fn repeater(&self, order: &Order) -> Result<Option<Box<dyn Repeater>>, Fault> {
        match &self.spec.endpoint {
            // Its calls go through the session until there is something better.
            Endpoint::Stdio { .. } => Ok(None),
            Endpoint::Http { .. } => {
                let over = self.over_http(order).await?;
                Ok(over.map(|over| Box::new(over) as Box<dyn Repeater>))
            }
        }
    }
}
