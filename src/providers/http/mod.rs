//! HTTP tools: one request for each call, built from a template.
//!
//! Owns: what an entry may say (`entry`, `auth`, `params`), filling it in (`template`, `url_template`,
//! `body`, `request`), sending (`send`), requests to an address that a call names (`fetch`), what an
//! answer means (`response`) and which failures may be repeated (`retry`). Never does: let an argument
//! choose scheme, host or port, leave the origin, or repeat a request itself.

mod auth;
mod body;
mod effects;
mod entry;
mod fetch;
mod header_names;
mod params;
mod pointer;
mod provider;
mod request;
mod response;
mod retry;
mod send;
mod template;
mod url_template;

#[cfg(test)]
mod tests;

use crate::config::spec::{KindClaim, KindDescriptor};
use crate::config::typed::Keys;
use crate::provider::ProviderKind;

use entry::HttpKeys;
pub(super) use entry::{DEFAULT_RESPONSE_BYTES, MAX_RESPONSE_BYTES, METHODS, RequestKeys};
pub(super) use fetch::{FetchPolicy, FetchRequest, fetch, preview as preview_fetch};

#[cfg(feature = "openapi")]
pub(super) use effects::contacted;
#[cfg(feature = "openapi")]
pub(super) use provider::build;

pub fn kind() -> ProviderKind {
    ProviderKind {
        words: KindDescriptor {
            key: "http",
            aliases: &["api_client", "rest", "api"],
            keys: const { &[Keys::of::<HttpKeys>(), Keys::of::<RequestKeys>()] },
            expand: &["query", "body"],
            claims: |node, _| KindClaim::certain_if(node.get("endpoint_url").is_some()),
            effects: effects::effects,
            code: None,
        },
        build: provider::build,
    }
}
