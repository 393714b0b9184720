//! Looking up the addresses of a host name.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::util::hosts::is_loopback_name;

pub async fn addresses(name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if is_loopback_name(name) {
        return Ok(vec![(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()]);
    }
    Ok(tokio::net::lookup_host((name, port)).await?.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

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
