//! What can be told of a URL or an address without asking anyone.
//!
//! Owns: how a URL is shown, and which addresses are this machine, near it, or nobody's to ask.
//! Never does: look up a name.

use std::net::{IpAddr, Ipv6Addr};

use url::{Host, Url};

/// A URL as it may be shown: without user name, password, query and fragment.
pub fn show(url: &Url) -> String {
    let mut shown = url.clone();
    // These fail for URLs that cannot have them, which then do not have them.
    shown.set_username("").ok();
    shown.set_password(None).ok();
    shown.set_query(None);
    shown.set_fragment(None);
    shown.to_string()
}

/// Whether a URL names this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => {
            ip.is_loopback() || ip.to_ipv4_mapped().is_some_and(|ip| ip.is_loopback())
        }
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

/// Whether a URL names this machine or a private address, as far as that can be told without
/// asking anyone.
pub fn is_near(url: &Url) -> bool {
    let private = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unique_local() || ip.is_unicast_link_local(),
    };
    is_loopback(url)
        || match url.host() {
            Some(Host::Ipv4(ip)) => private(ip.into()),
            Some(Host::Ipv6(ip)) => private(ip.to_canonical()) || ip == Ipv6Addr::LOCALHOST,
            _ => false,
        }
}

/// Host and port, as in messages about connections.
pub fn address(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port_or_known_default().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Whether an address is one that only this link knows: `169.254.0.0/16` and `fe80::/10`, under
/// which clouds hand credentials to whoever asks, and the one such service outside of them.
pub fn is_link_local(address: IpAddr) -> bool {
    const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
    match address.to_canonical() {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local() || ip == METADATA,
    }
}

/// The address in a URL that names one instead of a host.
pub fn literal(url: &Url) -> Option<IpAddr> {
    match url.host() {
        Some(Host::Ipv4(ip)) => Some(ip.into()),
        Some(Host::Ipv6(ip)) => Some(ip.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_url_holds_no_secrets() {
        let url = "https://me:pass@example.com:8443/mcp?key=abc#f".parse().unwrap();
        assert_eq!(show(&url), "https://example.com:8443/mcp");
    }

    #[test]
    fn link_local_addresses_are_known_in_every_form() {
        for ip in ["169.254.169.254", "fe80::1", "::ffff:169.254.1.1", "fd00:ec2::254"] {
            assert!(is_link_local(ip.parse().unwrap()), "{ip}");
        }
        for ip in ["127.0.0.1", "10.0.0.1", "::1", "fd00::1", "8.8.8.8"] {
            assert!(!is_link_local(ip.parse().unwrap()), "{ip}");
        }
    }
}
