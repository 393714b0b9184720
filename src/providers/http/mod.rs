//! HTTP tools: one request for each call, built from a template.
//!
//! Owns: what an entry may say (`entry`, `auth`), filling it in (`template`, `url_template`,
//! `body`, `request`), sending and which failures may be repeated (`send`), requests to an address that a call names (`fetch`), and what
//! an answer means (`response`). Never does: let an argument
//! choose scheme, host or port, leave the origin, or repeat a request itself.

use url::Url;

use crate::config::consent::{EntryEffect, EntrySite};
use crate::config::node::ConfigNode;
use crate::config::spec::{DefaultsKeys, KindClaim, KindDescriptor};
use crate::config::typed::{self, Keys, Located};
use crate::provider::ProviderKind;
use entry::HttpKeys;
pub(super) use entry::{DEFAULT_RESPONSE_BYTES, MAX_RESPONSE_BYTES, METHODS, RequestKeys};
pub(super) use fetch::{FetchPolicy, FetchRequest, fetch, preview as preview_fetch};
#[cfg(feature = "openapi")]
pub(super) use provider::build;

mod auth;
mod body;
mod entry;
mod fetch;
mod pointer;
mod provider;
mod request;
mod response;
mod send;
mod template;
mod url_template;

#[cfg(test)]
mod tests;

pub fn kind() -> ProviderKind {
    ProviderKind {
        words: KindDescriptor {
            key: "http",
            aliases: &["api_client", "rest", "api"],
            keys: const { &[Keys::of::<HttpKeys>(), Keys::of::<RequestKeys>()] },
            expand: &["query", "body"],
            claims: |node, _| KindClaim::certain_if(node.get("endpoint_url").is_some()),
            effects,
            code: None,
        },
        build: provider::build,
    }
}

pub(in crate::providers) fn effects(entry: &ConfigNode, site: &EntrySite<'_>) -> Vec<EntryEffect> {
    let address =
        contacted(entry, site).unwrap_or_else(|| "an address not in the entry".to_owned());
    vec![EntryEffect::Contacts(address)]
}

/// Scheme, host and port of the requests; the text of the entry if a reference decides it; `None`
/// if the entry names no address.
pub(in crate::providers) fn contacted(entry: &ConfigNode, site: &EntrySite<'_>) -> Option<String> {
    let text = |value: Option<Located<String>>| value.map(|text| text.value);
    let endpoint = text(typed::peek::<HttpKeys>(entry).and_then(|keys| keys.endpoint_url));
    // Whether the endpoint is a full URL is decided as for requests: by how it starts.
    let is_whole = |text: &String| Url::parse(text).is_ok_and(|url| url.has_host());
    let is_decided_elsewhere = |text: &String| text.starts_with("${");
    let base = || {
        let own = text(typed::peek::<RequestKeys>(entry).and_then(|keys| keys.base_url));
        own.or_else(|| typed::peek::<DefaultsKeys>(site.defaults?)?.base_url)
    };
    let whole = match endpoint {
        Some(endpoint) if is_whole(&endpoint) || is_decided_elsewhere(&endpoint) => endpoint,
        Some(endpoint) => match base() {
            Some(base) => base,
            None => endpoint,
        },
        None => base()?,
    };
    Some(match Url::parse(&whole) {
        Ok(url) if url.has_host() && !whole.contains("${") => url.origin().ascii_serialization(),
        _ => whole,
    })
}
