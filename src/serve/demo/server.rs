//! The request handler of the demo server.
//!
//! Owns: the shared state and the declared capabilities. Never does: know a tool by name; tools,
//! resources and prompts stand in their own modules.
#![expect(deprecated, reason = "logging is deprecated in the newest revision, and a demo shows it")]

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CompletionInfo,
    ErrorData, GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    Reference, ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::notes::Notes;
use super::tools::{self, DemoCall};
use super::{prompts, resources, uptime};

/// The demo server: answers MCP requests of one client.
#[derive(Debug)]
pub struct DemoServer {
    pub(super) notes: Notes,
    /// Fires when the client has hung up, although calls may still run.
    pub(super) client_gone: CancellationToken,
    /// The least severe level a client of the older era wants to hear.
    min_log_level: AtomicU8,
    /// When the server was started, for the uptime resource.
    pub(super) started: Instant,
    /// Ends the telling that a client of the older era subscribed to.
    legacy_ticker: Mutex<Option<CancellationToken>>,
}

impl Default for DemoServer {
    fn default() -> Self {
        Self {
            notes: Notes::default(),
            client_gone: CancellationToken::new(),
            min_log_level: AtomicU8::new(severity(LoggingLevel::Info)),
            started: Instant::now(),
            legacy_ticker: Mutex::default(),
        }
    }
}

impl DemoServer {
    /// Whether the client of this request wants log messages of `level`.
    ///
    /// On 2026-07-28 a request asks for its own messages; before, one level holds for the session.
    pub(super) fn wants_log(
        &self,
        level: LoggingLevel,
        context: &RequestContext<RoleServer>,
    ) -> bool {
        let minimum = if is_modern(context) {
            match context.meta.log_level() {
                Some(asked) => severity(asked),
                None => return false,
            }
        } else {
            self.min_log_level.load(Ordering::Relaxed)
        };
        severity(level) >= minimum
    }

    /// Replaces the token that stops the legacy ticker; the earlier ticker ends.
    fn replace_legacy_ticker(&self, stop: Option<CancellationToken>) {
        let mut telling = self.legacy_ticker.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(earlier) = std::mem::replace(&mut *telling, stop) {
            earlier.cancel();
        }
    }
}

/// Whether the request belongs to the stateless era, in which a server cannot ask the client.
pub(super) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// The order of syslog: the more severe, the larger.
fn severity(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}

impl ServerHandler for DemoServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(
            ServerCapabilities::builder()
                .enable_tools()
                .enable_resources()
                .enable_resources_subscribe()
                .enable_prompts()
                .enable_completions()
                .enable_logging()
                .build(),
        )
        .with_server_info(
            Implementation::new("toolhost-demo", env!("CARGO_PKG_VERSION"))
                .with_title("Demo tools of toolhost"),
        )
        .with_instructions("Small tools to try a client on. Nothing here leaves the process.")
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::definitions()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::find(name).map(tools::DemoTool::definition)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = tools::find(&request.name) else {
            return Err(ErrorData::invalid_params(format!("unknown tool: {}", request.name), None));
        };
        tool.call(self, DemoCall { request, context }).await
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.min_log_level.store(severity(request.level), Ordering::Relaxed);
        Ok(())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(vec![resources::readme(), uptime::resource()]))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(vec![resources::note_template()]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(self, &request.uri).map(Into::into)
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(uptime::accepted(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        uptime::notify_subscriber(&context, &self.client_gone).await;
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if request.uri != uptime::URI {
            let text = format!("{} never changes", request.uri);
            return Err(ErrorData::invalid_params(text, None));
        }
        let stop = self.client_gone.child_token();
        self.replace_legacy_ticker(Some(stop.clone()));
        tokio::spawn(uptime::notify_legacy_client(context.peer, stop));
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.replace_legacy_ticker(None);
        Ok(())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(vec![prompts::greet()]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&request).map(Into::into)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let known = match &request.r#ref {
            Reference::Prompt(prompt) => prompts::values(&prompt.name, &request.argument.name),
            Reference::Resource(template) => {
                resources::values(self, &template.uri, &request.argument.name)
            }
            _ => None,
        };
        let Some(known) = known else {
            return Err(ErrorData::invalid_params(
                "nothing to complete under this reference",
                None,
            ));
        };
        let typed = request.argument.value.to_lowercase();
        let fitting = known.into_iter().filter(|value| value.to_lowercase().starts_with(&typed));
        CompletionInfo::with_all_values(fitting.map(str::to_owned).collect())
            .map(CompleteResult::new)
            .map_err(|error| ErrorData::internal_error(error, None))
    }
}
