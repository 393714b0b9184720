//! Stores: an entry becomes the tools `{component}-read`, `-write`, `-list`, `-delete`, `-clear`.
//!
//! Owns: the table of the tools (`tools`), what they do (`operations`), and handing entries of type `postgresql` to an MCP server (`server_alias`). Never
//! does: keep a value (see `engines`), or look into one.
//!
//! | key | says | default |
//! |---|---|---|
//! | `storage_type` | memory, disk, redis or postgresql | memory; disk with `path` |
//! | `path`, `persist` | the file of a store on disk, relative to the file of the entry | a file in the state directory |
//! | `url` | the address of a Redis server | |
//! | `mcp_server` | whose tools a store of type postgresql has | |
//! | `sync` | when a write to disk is complete: full, normal, off | full |
//! | `ttl` | how long values are kept | for ever |
//! | `access` | read, or write (which includes reading) | write |
//! | `scope` | global, or session: each session has its own values | global |
//! | `max_keys` | keys, of each session | 10000 |
//! | `max_key_bytes` | the longest key | 256 |
//! | `max_value_bytes` | the longest value, as JSON | 1 MiB |
//! | `max_total_bytes` | names, keys and values together | 64 MiB |

mod arguments;
mod operations;
mod server_alias;
#[cfg(test)]
mod tests;
mod tools;

pub use server_alias::{ServerAlias, server_alias};

use serde_json::{Value, json};

use crate::config::node::ConfigNode;
use crate::config::spec::{KindClaim, KindDescriptor, ToolSpec};
use crate::model::{Diagnostic, Error};
use crate::provider::{Preview, ProviderKind};
use crate::providers::engines::config::{self, EngineLimits};
use crate::providers::engines::kind::{EngineKind, join_keys};
use crate::providers::engines::{Quota, provider};
use crate::providers::toolkit;

/// The word for this kind.
const KEY: &str = "storage";

/// The keys that only this kind understands.
const OWN_KEYS: [&str; 2] = ["access", "mcp_server"];

/// All keys of an entry: those for selecting tools, those of engines, and our own.
const KEYS: [&str; toolkit::KEYS.len() + config::KEYS.len() + OWN_KEYS.len()] =
    join_keys(&[&toolkit::KEYS, &config::KEYS, &OWN_KEYS]);

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
    may_write,
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
            keys: &KEYS,
            expand: &config::EXPAND,
            claims: |entry, _| claims(entry),
            effects: config::effects,
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

/// Whether the `access` of an entry allows writing; it does when the key is absent.
fn may_write(spec: &ToolSpec) -> Result<bool, Diagnostic> {
    let Some(node) = spec.entry.get("access").filter(|node| !node.is_null()) else {
        return Ok(true);
    };
    match node.as_text()? {
        "read" => Ok(false),
        "write" | "read_write" => Ok(true),
        _ => Err(node.expected("read or write")),
    }
}
