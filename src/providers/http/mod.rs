//! API tools: one HTTP request for each call, built from a template.
//!
//! Owns: what an entry may say (`entry`, `auth`, `places`), filling it in (`template`, `target`,
//! `body`, `request`), sending (`send`), what an answer means (`answer`) and which failures may be
//! repeated (`again`). Never does: let an argument choose scheme, host or port, leave the origin,
//! or repeat a request itself.

mod again;
mod answer;
mod auth;
mod body;
mod effects;
mod encode;
mod entry;
mod places;
mod pointer;
mod provider;
mod request;
mod send;
mod target;
mod template;

#[cfg(test)]
mod tests;

use crate::config::spec::{Claim, KindWords};
use crate::provider::Kind;

#[cfg(feature = "openapi")]
pub(super) use effects::contacted;
#[cfg(feature = "openapi")]
pub(super) use provider::build;

/// The row of the registry of kinds.
pub fn kind() -> Kind {
    Kind {
        words: KindWords {
            key: "http",
            aliases: &["api_client", "rest", "api"],
            keys: entry::KEYS,
            expand: &["query", "body"],
            claims: |node, _| Claim::certain_if(node.get("endpoint_url").is_some()),
            effects: effects::effects,
            code: None,
        },
        build: provider::build,
    }
}
