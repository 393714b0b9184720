//! Prompts, resources and completion, for clients.
//!
//! A resource keeps its URI, so that links in a tool's result can be read; if two servers have the
//! same URI, the first is listed. A prompt has its full name, `{server}-{prompt}`.

use std::collections::{BTreeMap, HashSet};

use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, ErrorData, GetPromptResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult,
    Reference,
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::running_request::RequestKey;
use super::{CatalogueServer, call};
use crate::host::request::{ItemRequest, LookupScope};
use crate::model::{CompletionQuery, CompletionReference, Error, ErrorCause, ErrorKind};

impl CatalogueServer {
    pub(super) async fn list_prompts(&self) -> ListPromptsResult {
        let listed = self.host.prompts(&LookupScope::default()).await.unwrap_or_default();
        let prompts = listed.items.iter().filter_map(|prompt| {
            let mut wire: rmcp::model::Prompt = parse(&prompt.raw)?;
            wire.name = prompt.name.full();
            wire.title.clone_from(&prompt.title);
            wire.description.clone_from(&prompt.description);
            Some(wire)
        });
        ListPromptsResult::with_all_items(prompts.collect())
    }

    pub(super) async fn get_prompt(
        &self,
        key: &RequestKey,
        request: &ItemRequest,
    ) -> Result<GetPromptResult, ErrorData> {
        let filled = self
            .host
            .prompt(&key.name, &key.arguments, request)
            .await
            .map_err(|error| protocol_error(&error))?;
        let messages = filled.messages.into_iter().map(typed).collect::<Result<_, _>>()?;
        let mut sent = GetPromptResult::new(messages);
        sent.description = filled.description;
        sent.meta = filled.meta.and_then(call::meta);
        Ok(sent)
    }

    pub(super) async fn list_resources(&self) -> ListResourcesResult {
        let listed = self.host.resources(&LookupScope::default()).await.unwrap_or_default();
        let mut unique = HashSet::new();
        let resources = listed.items.iter().filter_map(|resource| {
            let mut wire: rmcp::model::Resource = parse(&resource.raw)?;
            wire.title.clone_from(&resource.title);
            wire.description.clone_from(&resource.description);
            unique.insert(&resource.uri).then_some(wire)
        });
        ListResourcesResult::with_all_items(resources.collect())
    }

    pub(super) async fn list_resource_templates(&self) -> ListResourceTemplatesResult {
        let listed = self.host.templates(&LookupScope::default()).await.unwrap_or_default();
        let mut unique = HashSet::new();
        let templates = listed.items.iter().filter_map(|template| {
            let mut wire: rmcp::model::ResourceTemplate = parse(&template.raw)?;
            wire.title.clone_from(&template.title);
            wire.description.clone_from(&template.description);
            unique.insert(&template.template).then_some(wire)
        });
        ListResourceTemplatesResult::with_all_items(templates.collect())
    }

    pub(super) async fn read_resource(
        &self,
        uri: &str,
        request: &ItemRequest,
    ) -> Result<ReadResourceResult, ErrorData> {
        let read = self.host.read(uri, request).await.map_err(|error| match error.kind() {
            ErrorKind::Usage => {
                let data = json!({ "uri": uri });
                ErrorData::resource_not_found(call::error_text(&error), Some(data))
            }
            _ => protocol_error(&error),
        })?;
        let contents = read.contents.into_iter().map(typed).collect::<Result<_, _>>()?;
        let mut sent = ReadResourceResult::new(contents);
        sent.meta = read.meta.and_then(call::meta);
        Ok(sent)
    }

    pub(super) async fn complete(
        &self,
        request: CompleteRequestParams,
        item: &ItemRequest,
    ) -> Result<CompleteResult, ErrorData> {
        let reference = match request.r#ref {
            Reference::Prompt(prompt) => CompletionReference::Prompt(prompt.name),
            Reference::Resource(template) => CompletionReference::Template(template.uri),
            _ => return Err(ErrorData::invalid_params("unknown kind of reference", None)),
        };
        let filled = request.context.and_then(|context| context.arguments).unwrap_or_default();
        let query = CompletionQuery {
            reference,
            argument: request.argument.name,
            value: request.argument.value,
            context: filled.into_iter().collect::<BTreeMap<_, _>>(),
        };
        let completion = self.host.complete(query, item).await;
        let completion = completion.map_err(|error| protocol_error(&error))?;
        let total = completion.total.and_then(|total| u32::try_from(total).ok());
        let values = CompletionInfo::with_pagination(
            completion.values,
            total,
            completion.has_more == Some(true),
        )
        .map_err(|error| ErrorData::internal_error(error, None))?;
        Ok(CompleteResult::new(values))
    }
}

/// An item that the SDK cannot read is left out.
fn parse<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| {
        ErrorData::internal_error(format!("the server's response is invalid: {error}"), None)
    })
}

pub(super) fn protocol_error(error: &Error) -> ErrorData {
    let message = call::error_text(error);
    match (error.cause(), error.kind()) {
        (ErrorCause::Rpc { code }, _) => match i32::try_from(code) {
            Ok(code) => {
                ErrorData::new(rmcp::model::ErrorCode(code), message, error.rpc_data().cloned())
            }
            Err(_) => ErrorData::internal_error(message, None),
        },
        (_, ErrorKind::Usage) => ErrorData::invalid_params(message, None),
        _ => ErrorData::internal_error(message, None),
    }
}
