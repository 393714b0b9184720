//! URIs in a normalised form that can be compared.

use crate::util::text::is_invisible;

/// Schemes whose authority is a host, which has several spellings.
const WITH_HOST: [&str; 5] = ["http", "https", "ws", "wss", "ftp"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NormalizedUri {
    scheme: String,
    authority: String,
    segments: Vec<Vec<u8>>,
}

impl NormalizedUri {
    /// Reads an absolute address. Query and fragment are ignored.
    pub(super) fn read(uri: &str) -> Result<Self, &'static str> {
        if uri.chars().any(|c| c <= ' ' || c == '\\' || c.is_control() || is_invisible(c)) {
            return Err("it contains a character not allowed in an address");
        }
        let Some((scheme, rest)) = split_scheme(uri) else {
            return Err("it is not an absolute address");
        };
        let scheme = scheme.to_ascii_lowercase();
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None => ("", rest),
        };
        let authority = match scheme.as_str() {
            "file" if !path.starts_with('/') && !rest.is_empty() && !path.is_empty() => {
                return Err("it is not an absolute address");
            }
            // Both mean this machine.
            "file" if authority.eq_ignore_ascii_case("localhost") => String::new(),
            scheme if WITH_HOST.contains(&scheme) => host(uri, authority)?,
            _ => authority.to_ascii_lowercase(),
        };
        Ok(Self { scheme, authority, segments: segments(path)? })
    }

    /// Whether `other` is this place or lies below it. A scheme alone, such as `weather://`, holds
    /// all its addresses: unlike a file, what follows the slashes there is often no host.
    pub(super) fn contains(&self, other: &Self) -> bool {
        let is_scheme_alone =
            self.authority.is_empty() && self.segments.is_empty() && self.scheme != "file";
        self.scheme == other.scheme
            && (is_scheme_alone
                || self.authority == other.authority && other.segments.starts_with(&self.segments))
    }
}

/// The address as a file system reads it, and as a browser does: empty segments count for one of
/// them when `..` is followed. Only what lies in a root by both lies in it.
pub(super) fn interpretations(uri: &str) -> Result<Vec<NormalizedUri>, &'static str> {
    let mut all = vec![NormalizedUri::read(uri)?];
    match url::Url::parse(uri) {
        Ok(url) => all.push(NormalizedUri::read(url.as_str())?),
        Err(_) => return Err("it is not an address"),
    }
    Ok(all)
}

pub(super) fn has_scheme(text: &str) -> bool {
    split_scheme(text).is_some()
}

/// Whether the text is a reference that starts with neither a scheme nor a slash.
pub(super) fn is_relative(text: &str) -> bool {
    !has_scheme(text) && !text.starts_with(['/', '\\'])
}

fn split_scheme(uri: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = uri.split_once(':')?;
    let mut letters = scheme.chars();
    let first = letters.next()?.is_ascii_alphabetic();
    let others = letters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '-'));
    (first && others).then_some((scheme, rest))
}

/// Host and port in one spelling. A user named before an `@` belongs to it, so that such an address
/// is in a root only when the root names the same.
fn host(uri: &str, authority: &str) -> Result<String, &'static str> {
    if authority.is_empty() {
        return Err("it has no host");
    }
    let url = url::Url::parse(uri).map_err(|_| "it is not an address")?;
    let user = authority.rsplit_once('@').map(|(user, _)| user).unwrap_or_default();
    let host = url.host_str().ok_or("it has no host")?;
    let host = host.strip_suffix('.').unwrap_or(host);
    Ok(format!("{user}@{host}:{}", url.port_or_known_default().unwrap_or_default()))
}

/// The decoded segments of a path: no empty ones, `.` and `..` followed.
fn segments(path: &str) -> Result<Vec<Vec<u8>>, &'static str> {
    let mut all: Vec<Vec<u8>> = Vec::new();
    for segment in path.split('/') {
        let segment = decoded(segment.as_bytes()).ok_or("one of its % escapes is broken")?;
        match segment.as_slice() {
            b"" | b"." => {}
            b".." => drop(all.pop()),
            plain => {
                if hides_a_path(plain) {
                    return Err("a % escape hides a part of its path");
                }
                all.push(segment);
            }
        }
    }
    Ok(all)
}

fn hides_a_path(segment: &[u8]) -> bool {
    const ROUNDS: usize = 8;
    let mut text = segment.to_vec();
    for _ in 0..ROUNDS {
        if text.iter().any(|b| matches!(b, b'/' | b'\\' | 0)) || text == b".." || text == b"." {
            return true;
        }
        match decoded(&text) {
            Some(next) if next != text => text = next,
            _ => return false,
        }
    }
    true
}

/// The bytes that `%` escapes stand for; `None` when one is broken.
fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            out.push(*first);
            continue;
        }
        let [high, low, tail @ ..] = tail else { return None };
        out.push(u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()?);
        rest = tail;
    }
    Some(out)
}
