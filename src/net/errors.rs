//! Connection failures (DNS, TCP, TLS) as errors with a cause.

use std::io;
use std::iter::successors;
use std::net::IpAddr;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::time::Duration;

use rustls::CertificateError;
use url::Url;

use super::address::{host_and_port, is_link_local};
use crate::model::{Error, ErrorPhase};
use crate::util::units::show_duration;

#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct NoSuchHost {
    pub reason: String,
}

/// A host name leads to addresses that may not be asked and nowhere else.
#[derive(Debug, thiserror::Error)]
#[error("{address} is a {kind} address", address = .0, kind = address_kind(*.0))]
pub struct RefusedAddress(pub IpAddr);

fn address_kind(address: IpAddr) -> &'static str {
    if is_link_local(address) { "link-local" } else { "private" }
}

/// The texts of a chain of causes, outermost first, without the URL that reqwest puts in front.
pub(super) fn causes(error: &(dyn std::error::Error + 'static)) -> Vec<String> {
    let mut texts: Vec<String> = chain(error).skip(1).map(ToString::to_string).collect();
    texts.dedup();
    texts
}

/// Why no response came to a request to `place`.
pub(super) fn no_response(error: &reqwest::Error, place: &Place<'_>, connect: Duration) -> Error {
    let (url, shown) = (place.url, place.to_string());
    if error.is_connect()
        && let (Some(socket), Some(io)) = (place.socket, innermost_io(error))
    {
        return socket_error(io, socket).with_phase(ErrorPhase::Start);
    }
    if let Some(NoSuchHost { reason }) = find(error) {
        return host_not_found(reason, url);
    }
    if let Some(RefusedAddress(address)) = find(error) {
        return refused_address(&shown, *address).with_phase(ErrorPhase::Start);
    }
    if let Some(tls) = find::<rustls::Error>(error) {
        return tls_error(tls, &shown).with_phase(ErrorPhase::Start);
    }
    if error.is_timeout()
        || innermost_io(error).is_some_and(|io| io.kind() == io::ErrorKind::TimedOut)
    {
        return connect_timed_out(url, connect);
    }
    if error.is_connect() {
        return connect_error(error, url).with_phase(ErrorPhase::Start);
    }
    broken_exchange(error, place)
}

/// What is connected to: the host of a URL, or a Unix socket in its place.
pub(super) struct Place<'a> {
    pub(super) url: &'a Url,
    pub(super) socket: Option<&'a Path>,
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.socket {
            Some(socket) => write!(f, "the socket {}", socket.display()),
            None => f.write_str(&host_and_port(self.url)),
        }
    }
}

/// Why no response came over a connection to `place` that stood.
fn broken_exchange(error: &(dyn std::error::Error + 'static), place: &Place<'_>) -> Error {
    if let Some(http) = find::<hyper::Error>(error) {
        if http.is_parse_too_large() {
            return head_too_large(place);
        }
        if http.is_parse() {
            return not_http(&http.to_string(), place);
        }
        if http.is_incomplete_message() || http.is_closed() || http.is_canceled() {
            return unanswered(None, place);
        }
    }
    match innermost_io(error) {
        Some(io) => unanswered(Some(io), place),
        None => Error::unreachable(format!("no response from {place}")).with_details(causes(error)),
    }
}

pub fn no_connection_over(error: &io::Error, socket: &Path) -> Error {
    socket_error(error, socket).with_phase(ErrorPhase::Start)
}

fn connect_timed_out(url: &Url, limit: Duration) -> Error {
    let what = if url.scheme() == "https" { "TLS connection" } else { "connection" };
    Error::timeout(format!("no {what} to {} within {}", host_and_port(url), show_duration(limit)))
        .with_phase(ErrorPhase::Start)
}

fn host_not_found(reason: &str, url: &Url) -> Error {
    let place = host_and_port(url);
    Error::unreachable(format!("the host of {place} cannot be found: {reason}"))
        .with_phase(ErrorPhase::Start)
        .with_hint("check the url for typos, and check the network")
}

fn not_http(why: &str, place: &Place<'_>) -> Error {
    Error::protocol(format!("{place} does not speak HTTP: {why}")).with_hint(match place.socket {
        Some(_) => "if its messages are lines, set transport: lines in its entry",
        None => "check the host and port in the url",
    })
}

fn head_too_large(place: &Place<'_>) -> Error {
    Error::protocol(format!("{place} sent too many response headers, or too long ones"))
        .with_detail("limit: 64 KiB, 100 lines")
}

/// A connection that closed or broke before any of the response arrived.
fn unanswered(error: Option<&io::Error>, place: &Place<'_>) -> Error {
    match error {
        None => Error::unreachable(format!("{place} closed the connection without a response")),
        Some(io) => Error::unreachable(format!("{} ({place})", io_text(io))),
    }
}

pub fn socket_detail(socket: &Path) -> String {
    format!("over the socket {}", socket.display())
}

fn socket_error(io: &io::Error, socket: &Path) -> Error {
    let shown = socket.display();
    let is_socket = || std::fs::metadata(socket).is_ok_and(|meta| meta.file_type().is_socket());
    match io.kind() {
        io::ErrorKind::NotFound => Error::unreachable(format!("there is no socket {shown}"))
            .with_hint("is the server running, and is this where it listens?"),
        io::ErrorKind::PermissionDenied => {
            Error::unreachable(format!("permission denied for the socket {shown}"))
                .with_hint("the file and every directory above it must allow it")
        }
        // The system refuses for both reasons in the same way.
        io::ErrorKind::ConnectionRefused if !is_socket() => {
            Error::unreachable(format!("{shown} is not a socket"))
        }
        io::ErrorKind::ConnectionRefused => {
            Error::unreachable(format!("nothing is listening on the socket {shown}"))
                .with_hint("the server that created it has exited: start it again")
        }
        _ => Error::unreachable(format!("cannot connect to the socket {shown}: {}", io_text(io))),
    }
}

/// Why the body of a response could not be read to its end.
pub enum BodyReadError {
    Lost(String),
    /// The body was closed before its announced end.
    Truncated,
    Broken(String),
}

pub fn from_body_error(error: &(dyn std::error::Error + 'static)) -> BodyReadError {
    let io = innermost_io(error);
    let http = find::<hyper::Error>(error);
    match (io.map(io::Error::kind), http) {
        (Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput), _) | (None, None) => {
            BodyReadError::Broken(last_cause(error))
        }
        (Some(io::ErrorKind::UnexpectedEof), _) => BodyReadError::Truncated,
        (_, Some(http)) if http.is_incomplete_message() => BodyReadError::Truncated,
        (Some(_), Some(_)) => BodyReadError::Lost(io.map_or_else(String::new, io_text)),
        (None, Some(_)) => BodyReadError::Lost(last_cause(error)),
        // An error without the HTTP layer in its chain comes from decompression.
        (Some(_), None) => BodyReadError::Broken(last_cause(error)),
    }
}

/// The refusal of an address that serves credentials, or of one inside a network that a server
/// outside of it named.
pub fn refused_address(place: &str, address: IpAddr) -> Error {
    let kind = address_kind(address);
    let why = if is_link_local(address) {
        "such addresses serve the credentials of cloud machines"
    } else {
        "a server named it; addresses named by servers must be public"
    };
    Error::denied(format!("{place} is the {kind} address {address}, which is not contacted"))
        .with_detail(why)
}

fn connect_error(error: &(dyn std::error::Error + 'static), url: &Url) -> Error {
    let place = host_and_port(url);
    match innermost_io(error) {
        Some(io) if io.kind() == io::ErrorKind::ConnectionRefused => {
            Error::unreachable(format!("connection refused by {place}"))
                .with_hint("is the server running, and is this its port?")
        }
        Some(io) if io.kind() == io::ErrorKind::UnexpectedEof && url.scheme() == "https" => {
            Error::unreachable(format!("{place} ended the TLS handshake"))
                .with_hint("is the server's url http instead of https?")
        }
        Some(io) => Error::unreachable(format!("cannot connect to {place}: {}", io_text(io))),
        None => {
            Error::unreachable(format!("cannot connect to {place}")).with_details(causes(error))
        }
    }
}

fn tls_error(error: &rustls::Error, place: &str) -> Error {
    let reason = match error {
        rustls::Error::InvalidCertificate(certificate) => certificate_reason(certificate),
        rustls::Error::InvalidMessage(_) => {
            return Error::unreachable(format!("{place} does not speak TLS"))
                .with_detail(error.to_string())
                .with_hint("is the server's url http instead of https?");
        }
        other => {
            return Error::unreachable(format!("TLS with {place} failed: {other}"));
        }
    };
    Error::unreachable(format!("the certificate of {place} is not accepted: {reason}"))
        .with_hint("--insecure skips this check for one run")
}

fn certificate_reason(error: &CertificateError) -> String {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "certificate has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "certificate is not valid yet".to_owned()
        }
        CertificateError::UnknownIssuer => {
            "self-signed, or signed by an authority this system does not know".to_owned()
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            // Each stands in the name of its kind: DnsName("a.example").
            let names = presented.iter().map(|name| name.split('"').nth(1).unwrap_or(name));
            let names: String = names.collect::<Vec<_>>().join(", ").chars().take(200).collect();
            format!("wrong host, it is for {names}")
        }
        CertificateError::NotValidForName => "wrong host".to_owned(),
        CertificateError::Revoked => "certificate was revoked".to_owned(),
        CertificateError::Other(other)
            if matches!(other.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity)) =>
        {
            "self-signed".to_owned()
        }
        other => other.to_string(),
    }
}

pub fn io_text(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionReset => "connection reset".to_owned(),
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::NotConnected => "connection broken".to_owned(),
        io::ErrorKind::HostUnreachable => "no route to the host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "the network is unreachable".to_owned(),
        io::ErrorKind::UnexpectedEof => "connection closed".to_owned(),
        _ => error.to_string(),
    }
}

/// The innermost cause; the client's own error says nothing but where it happened.
fn last_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = chain(error).filter(|cause| !cause.is::<reqwest::Error>());
    causes.last().map_or_else(|| "unknown reason".to_owned(), ToString::to_string)
}

/// An error and its causes. An I/O error's wrapped error counts as its cause, which `source`
/// skips.
fn chain<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    successors(Some(error), |&error| match error.downcast_ref::<io::Error>() {
        Some(io) => io.get_ref().map(|inner| inner as &(dyn std::error::Error + 'static)),
        None => error.source(),
    })
}

fn find<'a, T: std::error::Error + 'static>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a T> {
    chain(error).find_map(|cause| cause.downcast_ref())
}

fn innermost_io<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a io::Error> {
    chain(error).filter_map(|cause| cause.downcast_ref()).last()
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::ServerName;

    use super::*;

    #[test]
    fn a_certificate_for_another_host_names_its_hosts() {
        let cause = CertificateError::NotValidForNameContext {
            expected: ServerName::try_from("a.example").unwrap(),
            presented: vec!["DnsName(\"b.example\")".to_owned(), "c.example".to_owned()],
        };
        let error = tls_error(&rustls::Error::InvalidCertificate(cause), "a.example:443");
        assert_eq!(
            error.message(),
            "the certificate of a.example:443 is not accepted: wrong host, it is for b.example, \
             c.example"
        );
    }

    #[test]
    fn the_error_inside_an_io_error_is_found() {
        let inner = NoSuchHost { reason: "no".to_owned() };
        let outer = io::Error::other(io::Error::other(inner));
        assert!(find::<NoSuchHost>(&outer).is_some());
    }
}
