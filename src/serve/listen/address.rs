//! Where a network transport may listen.

use std::net::SocketAddr;

use tokio::net::{TcpListener, lookup_host};

use crate::model::Error;

/// The option that allows other addresses than this machine's own.
const OPTION: &str = "--dangerously-bind";

/// Listens on `HOST:PORT`, `:PORT` or `PORT`; without a host, on 127.0.0.1.
pub async fn listen(text: &str, is_dangerous: bool) -> Result<TcpListener, Error> {
    let address_text = match text.strip_prefix(':').unwrap_or(text).parse::<u16>() {
        Ok(port) => format!("127.0.0.1:{port}"),
        Err(_) => text.to_owned(),
    };
    let resolved: Vec<SocketAddr> = lookup_host(&address_text)
        .await
        .map_err(|error| {
            Error::usage(format!("'{text}' is not an address to listen on: {error}"))
                .with_hint("such as 127.0.0.1:8080, [::1]:8080 or 8080")
        })?
        .collect();
    let is_reachable = |address: &SocketAddr| !address.ip().to_canonical().is_loopback();
    if !is_dangerous && let Some(address) = resolved.iter().find(|address| is_reachable(address)) {
        let message = format!("{} can be reached from other machines", address.ip());
        let hint = format!("listen on 127.0.0.1 or [::1], or pass {OPTION}");
        return Err(Error::usage(message).with_hint(hint));
    }
    TcpListener::bind(resolved.as_slice())
        .await
        .map_err(|error| Error::config(format!("cannot listen on {address_text}: {error}")))
}
