//! Stores: an entry becomes the tools `{component}-read`, `-write`, `-list`, `-delete`, `-clear`.
//!
//! Owns: the table of the tools (`tools`), what they do (`operations`), and handing entries of type `postgresql` to an MCP server (`server_alias`). Never
//! does: keep a value (see `engines`), or look into one.

mod arguments;
mod operations;
mod server_alias;
#[cfg(test)]
mod tests;
mod tools;

pub use server_alias::{ServerAlias, server_alias};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config::consent::{EntryEffect, EntrySite};
use crate::config::node::ConfigNode;
use crate::config::spec::{KindClaim, KindDescriptor};
use crate::config::typed::{self, Keys, Located};
use crate::model::Error;
use crate::provider::{Preview, ProviderKind};
use crate::providers::engines::config::{self, EngineKeys, EngineLimits, StorageType};
use crate::providers::engines::kind::{EngineKind, StoreAccess};
use crate::providers::engines::{Quota, provider};
use crate::providers::toolkit::ToolkitKeys;

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
    tools: &tools::TOOLS,
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
        build: |specs, context| provider::build(&STORE, specs, context),
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
