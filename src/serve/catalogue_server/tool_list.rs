//! The tools that clients are offered, kept until the catalogue changes.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use indexmap::IndexMap;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::Value;

use super::CatalogueServer;
use crate::catalogue::Catalogue;
use crate::host::ToolHost;
use crate::host::directory::OfferableTool;
use crate::host::request::ListScope;
use crate::model::ToolDefinition;
use crate::util::lock::lock;
use crate::util::text;

/// By the names they are offered under, in the order of the catalogue.
pub(super) type ServedTools = IndexMap<String, ServedTool>;

pub(super) struct ServedTool {
    pub(super) wire: Tool,
    pub(super) definition: Arc<ToolDefinition>,
    pub(super) full_name: String,
    pub(super) needs_approval: bool,
}

impl CatalogueServer {
    /// The list as it was made last, without asking a server.
    pub(super) fn latest_tools(&self) -> Arc<ServedTools> {
        Arc::clone(&lock(&self.tools))
    }

    pub(super) async fn offered_tools(&self) -> Arc<ServedTools> {
        let catalogue = self.host.catalogue(&ListScope::Everything).await;
        let list = Arc::new(offered(&self.host, &catalogue, self.settings.uses_bare_names));
        *lock(&self.tools) = Arc::clone(&list);
        list
    }
}

fn offered(host: &ToolHost, catalogue: &Catalogue, uses_bare_names: bool) -> ServedTools {
    let offerable = host.offerable_tools(catalogue);
    let mut bare_names: HashMap<&str, usize> = HashMap::new();
    for tool in &offerable {
        *bare_names.entry(tool.definition.name.tool()).or_default() += 1;
    }
    let full_names: HashSet<String> =
        offerable.iter().map(|tool| tool.definition.name.full()).collect();
    let mut list = ServedTools::default();
    for OfferableTool { definition, needs_approval } in &offerable {
        let (bare, full_name) = (definition.name.tool(), definition.name.full());
        let is_free = bare_names.get(bare) == Some(&1) && !full_names.contains(bare);
        let name = if uses_bare_names && is_free { bare.to_owned() } else { full_name.clone() };
        let (wire, needs_approval) = (wire_tool(definition, name.clone()), *needs_approval);
        let definition = Arc::clone(definition);
        list.insert(name, ServedTool { wire, definition, full_name, needs_approval });
    }
    list
}

/// The definition as sent: as its server sent it if there is one, else built from its file.
pub(super) fn wire_tool(tool: &ToolDefinition, name: String) -> Tool {
    let sent = tool.raw_value().and_then(|raw| serde_json::from_value::<Tool>(raw).ok());
    let mut wire = sent.unwrap_or_else(|| declared_tool(tool));
    wire.name = Cow::Owned(name);
    // The texts of the definition are masked, those of the raw one are not.
    wire.title.clone_from(&tool.title);
    wire.description = tool.description.as_deref().map(|text| Cow::Owned(visible(text)));
    wire
}

fn visible(description: &str) -> String {
    if description.chars().any(text::is_invisible) {
        text::safe(description).into_owned()
    } else {
        description.to_owned()
    }
}

fn declared_tool(tool: &ToolDefinition) -> Tool {
    let mut wire = Tool::new(String::new(), String::new(), object(&tool.input_schema));
    wire.output_schema =
        tool.output_schema.as_deref().and_then(Value::as_object).cloned().map(Arc::new);
    let hints = &tool.annotations;
    let mut annotations = ToolAnnotations::default();
    annotations.read_only_hint = hints.read_only;
    annotations.destructive_hint = hints.destructive;
    annotations.idempotent_hint = hints.idempotent;
    annotations.open_world_hint = hints.open_world;
    wire.annotations = Some(annotations).filter(|some| *some != ToolAnnotations::default());
    wire
}

fn object(schema: &Value) -> Arc<JsonObject> {
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}
