//! Which hosts an entry would contact, derived from the entry as written.

use url::Url;

use super::entry::{HttpKeys, RequestKeys};
use crate::config::consent::{EntryEffect, EntrySite};
use crate::config::node::ConfigNode;
use crate::config::spec::DefaultsKeys;
use crate::config::typed::{self, Located};

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
