//! Addresses of the form `unix:///path.sock`: a Unix socket, and what to request over it.

use std::path::{Path, PathBuf};

use url::Url;

use crate::config::spec::Transport;
use crate::model::Diagnostic;

/// The longest socket path that works on every system, in bytes.
const MAX_SOCKET_PATH: usize = 103;

#[derive(Debug, PartialEq, Eq)]
pub struct UnixSocketAddress {
    pub socket: PathBuf,
    /// The URL to request; its host is `localhost`, which is never looked up.
    pub url: Url,
}

fn invalid(why: impl Into<String>) -> Diagnostic {
    Diagnostic::error(why)
        .with_hint("write unix:///path.sock, or unix:./path.sock relative to this file")
}

pub fn is_unix_address(text: &str) -> bool {
    text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("unix:"))
}

/// Reads `unix:///path.sock`, `unix:/path.sock`, or `unix:./path.sock` beside the file in `base`.
/// Another colon is followed by the path to request (`unix:///path.sock:/other`); without
/// one it is that of `transport`: `/mcp`, or `/sse` for HTTP+SSE.
pub fn read(
    text: &str,
    base: &Path,
    transport: Transport,
) -> Result<UnixSocketAddress, Diagnostic> {
    let rest = text.get(5..).unwrap_or_default();
    let rest = match rest.strip_prefix("//") {
        Some(absolute) if absolute.starts_with('/') => absolute,
        Some(_) => return Err(invalid("a socket path must follow 'unix://'")),
        None => rest,
    };
    let (path, request_path) = match rest.find(":/") {
        Some(colon) => (rest.get(..colon), rest.get(colon + 1..)),
        None => (Some(rest), None),
    };
    let path = path.filter(|path| !path.is_empty() && !path.ends_with('/'));
    let path = path.ok_or_else(|| invalid("this does not name a socket"))?;
    if path.contains('\0') {
        return Err(invalid("a socket path cannot contain a NUL character"));
    }
    let socket: PathBuf = base.join(path).components().collect();
    let length = socket.as_os_str().len();
    if length > MAX_SOCKET_PATH {
        let message = format!(
            "the socket path is {length} bytes long; at most {MAX_SOCKET_PATH} are allowed"
        );
        return Err(Diagnostic::error(message).with_hint("move the socket to a shorter path"));
    }
    let request_path = request_path.unwrap_or(match transport {
        Transport::Sse => "/sse",
        _ => "/mcp",
    });
    let url = Url::parse(&format!("http://localhost{request_path}"))
        .map_err(|why| invalid(format!("invalid request path: {why}")))?;
    Ok(UnixSocketAddress { socket, url })
}

/// The address as written in a file.
pub fn show(socket: &Path, url: &Url) -> String {
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("unix://{}:{}{query}", socket.display(), url.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_auto(text: &str) -> Result<UnixSocketAddress, Diagnostic> {
        read(text, Path::new("/project"), Transport::Auto)
    }

    #[test]
    fn every_form_is_read() {
        for (text, socket, path) in [
            ("unix:///run/mcp.sock", "/run/mcp.sock", "/mcp"),
            ("unix:/run/mcp.sock", "/run/mcp.sock", "/mcp"),
            ("UNIX:///run/mcp.sock", "/run/mcp.sock", "/mcp"),
            ("unix:./mcp.sock", "/project/mcp.sock", "/mcp"),
            ("unix:run/mcp.sock:/other", "/project/run/mcp.sock", "/other"),
            ("unix:///run/a:b.sock:/x/y?z=1", "/run/a:b.sock", "/x/y?z=1"),
            ("unix:///run/mcp.sock:/", "/run/mcp.sock", "/"),
        ] {
            let address = read_auto(text).unwrap();
            assert_eq!(address.socket, Path::new(socket), "{text}");
            assert_eq!(address.url.as_str(), format!("http://localhost{path}"), "{text}");
        }
        let sse = read("unix:/run/x", Path::new("/"), Transport::Sse).unwrap();
        assert_eq!(sse.url.path(), "/sse");
    }

    #[test]
    fn what_is_shown_is_read_back() {
        for text in ["unix:///run/mcp.sock:/mcp", "unix:///run/a b.sock:/x?y=1"] {
            let address = read_auto(text).unwrap();
            assert_eq!(show(&address.socket, &address.url), text);
        }
    }

    #[test]
    fn what_names_no_socket_is_told() {
        for text in [
            "unix:",
            "unix://",
            "unix:///",
            "unix://mcp.sock",
            "unix::/mcp",
            "unix:./",
            "unix:///a\0b",
        ] {
            assert!(read_auto(text).is_err(), "{text:?}");
        }
        let error = read_auto(&format!("unix:///{}", "x".repeat(200))).unwrap_err();
        assert!(error.message.contains("is 201 bytes long"), "{error:?}");
    }
}
