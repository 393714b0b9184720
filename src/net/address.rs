//! Classifying URLs and addresses without a DNS lookup, and looking up those of a host name.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use url::{Host, Url};

pub use crate::util::hosts::is_loopback;
use crate::util::hosts::is_loopback_name;

/// A URL as it may be shown: without user name, password, query and fragment.
pub fn display_url(url: &Url) -> String {
    let mut shown = url.clone();
    // These fail for URLs that cannot have them, which then do not have them.
    shown.set_username("").ok();
    shown.set_password(None).ok();
    shown.set_query(None);
    shown.set_fragment(None);
    shown.to_string()
}

/// Whether a URL names this machine or an address that is not public, as far as that can be told
/// without a lookup.
pub fn is_local_or_private(url: &Url) -> bool {
    is_loopback(url) || literal_ip(url).is_some_and(|ip| !is_public(ip))
}

pub fn host_and_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port_or_known_default().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Whether an address is link-local: `169.254.0.0/16` and `fe80::/10`, where clouds serve
/// credentials to any client, and the one such service outside of them.
pub fn is_link_local(address: IpAddr) -> bool {
    const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
    match address.to_canonical() {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local() || ip == METADATA,
    }
}

/// Whether an address can be reached from the whole internet: no private network, no loopback, no
/// link, no group, and none of the ranges that are set aside.
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => {
            let [first, second, third, ..] = ip.segments();
            let embedded = |high: u16, low: u16| {
                is_public_v4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
            };
            match (first, second) {
                // Translation and tunnels lead to the address inside.
                (0x64, 0xff9b) => {
                    let [.., high, low] = ip.segments();
                    third == 0 && embedded(high, low)
                }
                (0x2002, high) => embedded(high, third),
                // Teredo, and examples.
                (0x2001, 0 | 0xdb8) => false,
                _ => (0x2000..0x4000).contains(&first),
            }
        }
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let set_aside = match ip.octets() {
        [0 | 240..=255, ..] | [192, 0, 0, _] => true,
        // Shared by providers; measurements.
        [100, second, ..] => second & 0xc0 == 64,
        [198, second, ..] => second & 0xfe == 18,
        _ => false,
    };
    !(set_aside
        || ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_multicast()
        || ip.is_documentation())
}

/// The address in a URL that names one instead of a host.
pub fn literal_ip(url: &Url) -> Option<IpAddr> {
    match url.host() {
        Some(Host::Ipv4(ip)) => Some(ip.into()),
        Some(Host::Ipv6(ip)) => Some(ip.into()),
        _ => None,
    }
}

pub async fn addresses(name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if is_loopback_name(name) {
        return Ok(vec![(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()]);
    }
    Ok(tokio::net::lookup_host((name, port)).await?.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_url_holds_no_secrets() {
        let url = "https://me:pass@example.com:8443/mcp?key=abc#f".parse().unwrap();
        assert_eq!(display_url(&url), "https://example.com:8443/mcp");
    }

    #[test]
    fn public_addresses_are_told_from_all_others() {
        for ip in ["8.8.8.8", "100.128.0.1", "2606:4700::1111", "64:ff9b::8.8.8.8"] {
            assert!(is_public(ip.parse().unwrap()), "{ip}");
        }
        for ip in [
            "0.0.0.0",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "192.0.0.1",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "2001::1",
            "2001:db8::1",
            "2002:a00:1::1",
            "fc00::1",
            "fe80::1",
            "ff02::1",
        ] {
            assert!(!is_public(ip.parse().unwrap()), "{ip}");
        }
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

    #[test]
    fn a_url_of_this_machine_or_its_network_is_known() {
        for (host, is_near) in [
            ("localhost", true),
            ("127.0.0.1", true),
            ("[::1]", true),
            ("[::ffff:127.0.0.1]", true),
            ("0.0.0.0", true),
            ("[::]", true),
            ("10.0.0.1", true),
            ("192.168.1.1", true),
            ("100.64.0.1", true),
            ("169.254.169.254", true),
            ("[fd00::1]", true),
            ("[fe80::1]", true),
            ("example.com", false),
            ("8.8.8.8", false),
            ("[2606:4700::1111]", false),
        ] {
            let url = format!("http://{host}:8080/").parse().unwrap();
            assert_eq!(is_local_or_private(&url), is_near, "{host}");
        }
    }

    #[tokio::test]
    async fn names_of_this_machine_are_loopback_without_a_lookup() {
        for name in ["localhost", "a.localhost", "A.LocalHost", "x.y.localhost.", "localhost."] {
            let addresses = addresses(name, 80).await.unwrap();
            assert!(
                addresses.iter().all(|address| address.ip().is_loopback()),
                "{name}: {addresses:?}"
            );
            assert_eq!(addresses.len(), 2, "{name}");
        }
    }
}
