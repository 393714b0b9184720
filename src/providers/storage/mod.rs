//! Stores: an entry becomes the tools `{component}-read`, `-write`, `-list`, `-delete`, `-clear`.
//!
//! Owns: which tools an entry gives and what is said about them (`offers`), their meaning
//! (`operations`), and handing entries of type `postgresql` to an MCP server (`stand_in`). Never
//! does: keep a value (see `engines`), or look into one.
//!
//! | key | says | default |
//! |---|---|---|
//! | `storage_type` | memory, disk, redis or postgresql | memory; disk with `path` |
//! | `path`, `persist` | the file of a store on disk, relative to the file of the entry | a file in the state directory |
//! | `url` | the address of a Redis server | |
//! | `mcp_server` | whose tools a store of type postgresql has | |
//! | `sync` | when a write to disk counts: full, normal, off | full |
//! | `ttl` | how long values are kept | for ever |
//! | `access` | read, or write (which includes reading) | write |
//! | `scope` | global, or session: each session has values of its own | global |
//! | `max_keys` | keys, of each session | 10000 |
//! | `max_key_bytes` | the longest key | 256 |
//! | `max_value_bytes` | the longest value, as JSON | 1 MiB |
//! | `max_total_bytes` | names, keys and values together | 64 MiB |

mod arguments;
mod offers;
mod operations;
mod provider;
mod stand_in;
#[cfg(test)]
mod tests;

pub use stand_in::{StandIn, stand_in};

use crate::config::node::Node;
use crate::config::spec::{Claim, KindWords};
use crate::provider::Kind;
use crate::providers::engines::choice;
use crate::providers::toolkit;

/// The word for this kind.
const KEY: &str = "storage";

/// The keys that only this kind understands.
const OWN: [&str; 2] = ["access", "mcp_server"];

/// All keys of an entry: those of selecting tools, of engines, and our own.
const KEYS: [&str; toolkit::KEYS.len() + choice::KEYS.len() + OWN.len()] = {
    let mut keys = [""; toolkit::KEYS.len() + choice::KEYS.len() + OWN.len()];
    let (selecting, engines) = (toolkit::KEYS.len(), choice::KEYS.len());
    let mut at = 0;
    while at < keys.len() {
        keys[at] = if at < selecting {
            toolkit::KEYS[at]
        } else if at < selecting + engines {
            choice::KEYS[at - selecting]
        } else {
            OWN[at - selecting - engines]
        };
        at += 1;
    }
    keys
};

/// Keys that make an entry one of another kind, although it names a component.
const OTHERS: [&str; 7] =
    ["command", "module", "endpoint_url", "toolkit", "toolkit_class", "openapi", "steps"];

/// The row of the registry of kinds.
pub fn kind() -> Kind {
    Kind {
        words: KindWords {
            key: KEY,
            aliases: &["store"],
            keys: &KEYS,
            expand: &choice::EXPAND,
            claims: |entry, _| claims(entry),
            effects: choice::effects,
            code: None,
        },
        build: provider::build,
    }
}

fn claims(entry: &Node) -> Claim {
    let has = |key: &&str| entry.get(key).is_some();
    Claim::certain_if(has(&"storage_type") || (has(&"component") && !OTHERS.iter().any(has)))
}
