//! Warnings about a URL that a server asks a person to visit.

use url::Url;

use crate::net::address;

/// What an address is, for a person who has to decide whether to open it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UrlReview {
    pub host: Option<String>,
    pub warnings: Vec<String>,
}

impl UrlReview {
    /// Looks at an address, without contacting it.
    pub fn of(url: &str) -> Self {
        let Ok(parsed) = Url::parse(url) else {
            return Self { host: None, warnings: vec!["this is not a URL".to_owned()] };
        };
        let host = parsed.host_str().unwrap_or_default();
        let mut odd = Vec::new();
        if !parsed.username().is_empty() || parsed.password().is_some() {
            odd.push(format!("the part before the @ is a user name; the host is {host}"));
        }
        if parsed.scheme() != "https" {
            odd.push("the connection is not encrypted (http)".to_owned());
        }
        if host.split('.').any(|label| label.starts_with("xn--")) {
            odd.push("the host name has letters that may look like others".to_owned());
        }
        if address::is_local_or_private(&parsed) {
            odd.push("this address is on this machine or in its network".to_owned());
        }
        Self { host: Some(address::host_and_port(&parsed)), warnings: odd }
    }
}
