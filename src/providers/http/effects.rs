//! Which hosts an entry would contact, derived from the entry as written.

use url::Url;

use crate::config::consent::{EntryEffect, EntrySite};
use crate::config::node::ConfigNode;

pub(in crate::providers) fn effects(entry: &ConfigNode, site: &EntrySite<'_>) -> Vec<EntryEffect> {
    let address =
        contacted(entry, site).unwrap_or_else(|| "an address not in the entry".to_owned());
    vec![EntryEffect::Contacts(address)]
}

/// Scheme, host and port of the requests; the text of the entry if a reference decides it; `None`
/// if the entry names no address.
pub(in crate::providers) fn contacted(entry: &ConfigNode, site: &EntrySite<'_>) -> Option<String> {
    let text =
        |node: Option<&ConfigNode>| node.and_then(|node| node.as_text().ok()).map(str::to_owned);
    let endpoint = text(entry.get("endpoint_url"));
    // Whether the endpoint is a full URL is decided as for requests: by how it starts.
    let is_whole = |text: &String| Url::parse(text).is_ok_and(|url| url.has_host());
    let is_decided_elsewhere = |text: &String| text.starts_with("${");
    let base = || {
        let shared = site.defaults.and_then(|defaults| defaults.get("base_url"));
        text(entry.get("base_url")).or_else(|| text(shared))
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
