//! The requests that the demo server answers.
#![expect(deprecated, reason = "logging is deprecated in the newest revision, and a demo shows it")]

use std::sync::LazyLock;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CompletionInfo,
    ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, Prompt, PromptMessage, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, Reference, Resource, ResourceContents, ResourceTemplate,
    ResourceUpdatedNotificationParam, Role, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde::Deserialize;

use super::{DemoServer, tools};
use crate::util::lock::lock;

const README_URI: &str = "demo://readme";
const README: &str = "# The demo server\n\n\
    Tools to try a client on: `echo` and `add` answer at once, `slow` reports progress and can be\n\
    cancelled, `fail` says no, `weather_report` returns structured output, `ask_name` asks back,\n\
    `log_lines` talks while it works and `delete_note` destroys something that does not matter.\n";
/// The resource that changes by itself, for trying subscriptions.
const UPTIME_URI: &str = "demo://uptime";
const TICK_INTERVAL: Duration = Duration::from_secs(1);
const NOTE_PREFIX: &str = "demo://notes/";
const NOTE_TEMPLATE: &str = "demo://notes/{name}";
const PROMPT: &str = "greet";
const LANGUAGES: [&str; 6] = ["English", "Finnish", "French", "German", "Spanish", "Swahili"];

/// What is listed, as it is sent.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Definitions {
    tools: Vec<Tool>,
    resources: Vec<Resource>,
    resource_templates: Vec<ResourceTemplate>,
    prompts: Vec<Prompt>,
}

static DEFINITIONS: LazyLock<Definitions> = LazyLock::new(|| {
    // The tests list what is in it.
    serde_json::from_str(include_str!("definitions.json")).unwrap_or_default()
});

/// Tells of the resource that changes until that fails.
async fn tick<E, F: Future<Output = Result<(), E>>>(tell: impl Fn() -> F) {
    loop {
        tokio::time::sleep(TICK_INTERVAL).await;
        if tell().await.is_err() {
            return;
        }
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
        Ok(ListToolsResult::with_all_items(DEFINITIONS.tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        DEFINITIONS.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tools::call(self, request, context).await
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *lock(&self.min_log_level) = request.level;
        Ok(())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(DEFINITIONS.resources.clone()))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(DEFINITIONS.resource_templates.clone()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = &*request.uri;
        let (text, mime) = if uri == README_URI {
            (README.to_owned(), "text/markdown")
        } else if uri == UPTIME_URI {
            (format!("up for {} s\n", self.started.elapsed().as_secs()), "text/plain")
        } else if let Some(name) = uri.strip_prefix(NOTE_PREFIX)
            && let Some(note) = lock(&self.notes).get(name)
        {
            ((*note).to_owned(), "text/plain")
        } else {
            let data = serde_json::json!({ "uri": uri });
            return Err(ErrorData::resource_not_found(format!("no resource {uri}"), Some(data)));
        };
        let content = ResourceContents::text(text, uri).with_mime_type(mime);
        Ok(ReadResourceResult::new(vec![content]).into())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut uris = requested.resource_subscriptions.iter().flatten();
        let mut accepted = SubscriptionFilter::new();
        accepted.resource_subscriptions =
            uris.any(|uri| uri == UPTIME_URI).then(|| vec![UPTIME_URI.to_owned()]);
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        tokio::select! {
            () = context.cancelled() => {}
            () = self.client_gone.cancelled() => {}
            () = tick(|| context.sink().notify_resource_updated(UPTIME_URI)) => {}
        }
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if request.uri != UPTIME_URI {
            let text = format!("{} never changes", request.uri);
            return Err(ErrorData::invalid_params(text, None));
        }
        let stop = self.client_gone.child_token();
        *lock(&self.legacy_ticker) = Some(stop.clone().drop_guard());
        tokio::spawn(stop.run_until_cancelled_owned(async move {
            let update = || ResourceUpdatedNotificationParam::new(UPTIME_URI);
            tick(|| context.peer.notify_resource_updated(update())).await;
        }));
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *lock(&self.legacy_ticker) = None;
        Ok(())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(DEFINITIONS.prompts.clone()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name != PROMPT {
            let message = format!("unknown prompt: {}", request.name);
            return Err(ErrorData::invalid_params(message, None));
        }
        let argument = |key| request.arguments.as_ref()?.get(key)?.as_str();
        let Some(name) = argument("name") else {
            return Err(ErrorData::invalid_params("greet needs the argument 'name'", None));
        };
        let language = argument("language").unwrap_or("English");
        let text = format!("Greet {name} in {language}, in one short sentence.");
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let values = match (&request.r#ref, &*request.argument.name) {
            (Reference::Prompt(prompt), "language") if prompt.name == PROMPT => {
                Some(LANGUAGES.to_vec())
            }
            (Reference::Resource(template), "name") if template.uri == NOTE_TEMPLATE => {
                Some(lock(&self.notes).keys().copied().collect())
            }
            _ => None,
        };
        let Some(values) = values else {
            return Err(ErrorData::invalid_params(
                "nothing to complete under this reference",
                None,
            ));
        };
        let typed = request.argument.value.to_lowercase();
        let fitting = values.into_iter().filter(|value| value.to_lowercase().starts_with(&typed));
        CompletionInfo::with_all_values(fitting.map(str::to_owned).collect())
            .map(CompleteResult::new)
            .map_err(|error| ErrorData::internal_error(error, None))
    }
}
