//! Stores: an entry becomes the tools `{component}-read`, `-write`, `-list`, `-delete`, `-clear`.
//!
//! Owns: the table of the tools, what they do (`operations`), and handing entries of type `postgresql`
//! to an MCP server, whose tools are listed under their name. Never does: keep a value (see `engines`),
//! or look into one.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::engines::Quota;
use super::engines::config::{self, EngineKeys, EngineLimits, StorageType};
use super::engines::kind::{self, EngineKind, EngineTool, StoreAccess, StoreEffect};
use super::toolkit::{ToolkitKeys, ToolkitTool, component};
use crate::config::consent::{EntryEffect, EntrySite};
use crate::config::node::ConfigNode;
use crate::config::spec::{KindClaim, KindDescriptor, ToolSpec};
use crate::config::typed::{self, Keys, Located};
use crate::model::{Diagnostic, Error, check_name};
use crate::provider::{Preview, ProviderKind};
use operations::{DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE};

mod operations;
#[cfg(test)]
mod tests;

const KEY: &str = "storage";

/// The keys that only this kind has.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
struct StoreKeys {
    /// What calls may do with the store; default: write, which includes reading.
    access: Option<Located<StoreAccess>>,
    /// The MCP server whose tools a store of type postgresql has.
    mcp_server: Option<Located<String>>,
}

const OTHER_KINDS_KEYS: [&str; 7] =
    ["command", "module", "endpoint_url", "toolkit", "toolkit_class", "openapi", "steps"];

static STORE: EngineKind = EngineKind {
    noun: "store",
    space: "store",
    defaults: EngineLimits {
        quota: Quota { keys: 10_000, bytes: 64 << 20 },
        max_key_bytes: 256,
        max_value_bytes: 1 << 20,
    },
    tools: &TOOLS,
    access: |spec, diagnostics| typed::read_part::<StoreKeys>(&spec.entry, diagnostics)?.access,
    memory_notice: "keeps values in memory: they are lost when toolhost exits; 'storage_type: disk' \
                    keeps them",
    session_note: "each session has its own keys",
    has_aliases: true,
    is_instant_in_memory: true,
    cancelled: Some(|| {
        Error::timeout("stopped waiting for the store")
            .with_hint("the operation may still be performed")
    }),
    preview: |summary, place, arguments| Preview {
        summary: format!("{summary} of the store {place}"),
        request: json!({
            "operation": summary.split(' ').next(),
            "store": place,
            "arguments": Value::Object(arguments.clone()),
        }),
    },
};

pub fn kind() -> ProviderKind {
    ProviderKind {
        words: KindDescriptor {
            key: KEY,
            aliases: &["store"],
            keys: const {
                &[Keys::of::<ToolkitKeys>(), Keys::of::<EngineKeys>(), Keys::of::<StoreKeys>()]
            },
            expand: &config::EXPAND,
            claims: |entry, _| claims(entry),
            effects,
            code: None,
        },
        build: |specs, context| kind::build(&STORE, specs, context),
    }
}

fn claims(entry: &ConfigNode) -> KindClaim {
    let has = |key: &&str| entry.get(key).is_some();
    KindClaim::certain_if(
        has(&"storage_type") || (has(&"component") && !OTHER_KINDS_KEYS.iter().any(has)),
    )
}

/// The effects of an entry: those of its engine, or of the server that it stands for.
fn effects(entry: &ConfigNode, site: &EntrySite<'_>) -> Vec<EntryEffect> {
    match typed::peek::<EngineKeys>(entry).map(|keys| keys.storage_type()) {
        Some(StorageType::Postgresql) => {
            let server = typed::peek::<StoreKeys>(entry).and_then(|keys| keys.mcp_server);
            vec![EntryEffect::Renames(server.map_or_else(|| "?".to_owned(), |name| name.value))]
        }
        _ => config::effects(entry, site),
    }
}

/// The tools of a store. Deleting needs approval, unless the entry says that nothing is lost by it;
/// writing does not ask, or a store would be of no use in a script.
static TOOLS: [EngineTool; 5] = [
    EngineTool {
        tool: ToolkitTool { name: "read", aliases: &["get"] },
        is_default: true,
        effect: StoreEffect::Reads,
        is_idempotent: true,
        timeout: None,
        description: |component, sort| {
            format!("Reads the value of a key in {}.", store(component, sort))
        },
        input: |limits| (json!({ "key": key(limits) }), &["key"]),
        output: || json!({ "key": text_schema(), "value": {}, "version": version_schema() }),
        summary: |_| "reads a key",
        run: |call| Box::pin(operations::read(call)),
    },
    EngineTool {
        tool: ToolkitTool { name: "write", aliases: &["put", "set"] },
        is_default: true,
        effect: StoreEffect::Keeps,
        is_idempotent: true,
        timeout: None,
        description: |component, sort| {
            format!(
                "Writes a JSON value to a key of {}. if_version requires the key to have that version, \
                 if_absent requires it to have no value.",
                store(component, sort)
            )
        },
        input: |limits| {
            let properties = json!({
                "key": key(limits),
                "value": { "maxLength": limits.max_value_bytes, "description": "any JSON value" },
                "if_version": expected_version(),
                "if_absent": { "type": "boolean", "description": "only if the key has no value" },
            });
            (properties, &["key", "value"])
        },
        output: || json!({ "key": text_schema(), "version": version_schema() }),
        summary: |_| "writes a key",
        run: |call| Box::pin(operations::write(call)),
    },
    EngineTool {
        tool: ToolkitTool { name: "list", aliases: &["keys"] },
        is_default: true,
        effect: StoreEffect::Reads,
        is_idempotent: true,
        timeout: None,
        description: |component, sort| {
            format!("Lists the keys of {}, sorted, page by page.", store(component, sort))
        },
        input: |limits| {
            let properties = json!({
                "prefix": key_text("only keys that start with this", limits),
                "limit": { "type": "integer", "minimum": 1, "maximum": MAX_PAGE_SIZE, "default": DEFAULT_PAGE_SIZE, "description": "maximum number of keys to return" },
                "cursor": key_text("the cursor of the previous page", limits),
            });
            (properties, &[])
        },
        output: || {
            json!({
                "keys": { "type": "array", "items": {
                    "type": "object",
                    "properties": { "key": text_schema(), "version": version_schema(), "bytes": { "type": "integer" } },
                    "required": ["key", "version", "bytes"],
                } },
                "cursor": { "type": ["string", "null"], "description": "for the next page; null at the end" },
            })
        },
        summary: |_| "lists the keys",
        run: |call| Box::pin(operations::list(call)),
    },
    EngineTool {
        tool: ToolkitTool { name: "delete", aliases: &["remove"] },
        is_default: true,
        effect: StoreEffect::Deletes,
        is_idempotent: true,
        timeout: None,
        description: |component, sort| format!("Deletes a key of {}.", store(component, sort)),
        input: |limits| (json!({ "key": key(limits), "if_version": expected_version() }), &["key"]),
        output: || json!({ "key": text_schema(), "existed": { "type": "boolean" } }),
        summary: |_| "deletes a key",
        run: |call| Box::pin(operations::delete(call)),
    },
    EngineTool {
        tool: ToolkitTool { name: "clear", aliases: &[] },
        is_default: false,
        effect: StoreEffect::Deletes,
        is_idempotent: true,
        timeout: None,
        description: |component, sort| format!("Deletes all keys of {}.", store(component, sort)),
        input: |_| (json!({}), &[]),
        output: || json!({ "deleted": { "type": "integer" } }),
        summary: |_| "deletes all keys",
        run: |call| Box::pin(operations::clear(call)),
    },
];

fn store(component: &str, sort: &str) -> String {
    format!("the store '{component}' ({sort})")
}

fn key_text(about: &str, limits: &EngineLimits) -> Value {
    json!({ "type": "string", "maxLength": limits.max_key_bytes, "pattern": "^[^\\u0000]*$", "description": about })
}

fn key(limits: &EngineLimits) -> Value {
    let mut key = key_text("the key", limits);
    key["minLength"] = 1.into();
    key
}

fn expected_version() -> Value {
    json!({ "type": "integer", "minimum": 1, "description": "the version the key must have" })
}

fn version_schema() -> Value {
    json!({ "type": "integer", "description": "changes with every write" })
}

fn text_schema() -> Value {
    json!({ "type": "string" })
}

/// An entry without its own tools: those of a server appear under its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAlias {
    /// The name the tools are to have in common.
    pub component: String,
    pub server: String,
}

/// The server an entry stands for; `None` if it is a store itself.
pub fn server_alias(spec: &ToolSpec) -> Option<Result<ServerAlias, Diagnostic>> {
    if spec.kind != KEY {
        return None;
    }
    let engine: EngineKeys = typed::peek(&spec.entry)?;
    let server = typed::peek::<StoreKeys>(&spec.entry)?.mcp_server;
    let toolkit: ToolkitKeys = typed::peek(&spec.entry)?;
    match (engine.storage_type() == StorageType::Postgresql, server) {
        (false, None) => None,
        (false, Some(server)) => Some(Err(server
            .error("'mcp_server' is for stores of type postgresql")
            .with_hint("add 'storage_type: postgresql', or leave it out"))),
        (true, None) => Some(Err(Diagnostic::error(
            "a store of type postgresql needs the MCP server for the database",
        )
        .with_hint("name a server of mcp.yaml: 'mcp_server: …'; its tools get this entry's name")
        .with_location(spec.location.clone()))),
        (true, Some(server)) => Some((|| {
            check_name(&server).map_err(|error| server.error(error.to_string()))?;
            Ok(ServerAlias { component: component(spec, &toolkit)?, server: server.value })
        })()),
    }
}
