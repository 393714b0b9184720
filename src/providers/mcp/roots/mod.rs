//! The roots of a server: which locations its resources and arguments may point to.
//!
//! Owns: the refusal. With roots set on the entry, an address that lies in none of them is refused
//! before anything is sent; without roots, everything is allowed. Addresses are compared as
//! text, in a normalised form: a symbolic link inside a root is the server's business. Never does: open
//! anything.
//! Which arguments are addresses is seen from their schema.

use std::collections::HashSet;

use serde_json::Value;

use crate::model::{Error, JsonObject, Root};
use crate::util::schema;
use crate::util::text::{is_invisible, shorten};

const SHOWN: usize = 200;

/// Whether `uri` lies in one of `roots`, or there are none.
pub fn check(uri: &str, roots: &[Root]) -> Result<(), Error> {
    if roots.is_empty() {
        return Ok(());
    }
    refused(uri, inside(uri, roots), roots)
}

/// Whether every argument whose schema says that it is an address lies in one of `roots`.
///
/// Formats `uri`, `iri` and their relative references count, at any depth. A relative reference is
/// read from the root.
pub fn check_arguments(
    schema: &Value,
    arguments: &JsonObject,
    roots: &[Root],
) -> Result<(), Error> {
    if roots.is_empty() {
        return Ok(());
    }
    for (key, value) in arguments {
        for address in addresses(schema, key, value) {
            let UriArgument { path, text, allows_relative: relative, allows_other_text: choice } =
                address;
            let verdict = match inside(text, roots) {
                Err(_) if relative && is_relative(text) => within_any(text, roots),
                Err(_) if choice && !has_scheme(text) => Ok(()),
                verdict => verdict,
            };
            refused(text, verdict, roots)
                .map_err(|error| error.context(&format!("argument {path}")))?;
        }
    }
    Ok(())
}

fn inside(uri: &str, roots: &[Root]) -> Result<(), &'static str> {
    let readings = interpretations(uri)?;
    let holds = |root: &NormalizedUri| readings.iter().all(|place| root.contains(place));
    if roots.iter().filter_map(|root| NormalizedUri::read(&root.uri).ok()).any(|root| holds(&root))
    {
        return Ok(());
    }
    Err("it is outside the server's roots")
}

fn within_any(reference: &str, roots: &[Root]) -> Result<(), &'static str> {
    let joined = |root: &Root| format!("{}/{reference}", root.uri.trim_end_matches('/'));
    let verdicts = roots.iter().map(|root| inside(&joined(root), std::slice::from_ref(root)));
    verdicts.reduce(Result::or).unwrap_or(Err("it is outside the server's roots"))
}

fn refused(uri: &str, verdict: Result<(), &'static str>, roots: &[Root]) -> Result<(), Error> {
    verdict.map_err(|why| {
        Error::denied(format!("'{}' is refused: {why}", shorten(uri, SHOWN)))
            .with_details(roots.iter().take(20).map(|root| format!("root: {}", root.uri)))
            .with_hint("`roots:` in the server's entry lists what its arguments may point to")
    })
}

#[cfg(test)]
mod tests;

/// Schemes whose authority is a host, which has several spellings.
const WITH_HOST: [&str; 5] = ["http", "https", "ws", "wss", "ftp"];

#[derive(Debug, Clone, PartialEq, Eq)]
struct NormalizedUri {
    scheme: String,
    authority: String,
    segments: Vec<Vec<u8>>,
}

impl NormalizedUri {
    /// Reads an absolute address. Query and fragment are ignored.
    fn read(uri: &str) -> Result<Self, &'static str> {
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
    fn contains(&self, other: &Self) -> bool {
        let is_scheme_alone =
            self.authority.is_empty() && self.segments.is_empty() && self.scheme != "file";
        self.scheme == other.scheme
            && (is_scheme_alone
                || self.authority == other.authority && other.segments.starts_with(&self.segments))
    }
}

/// The address as a file system reads it, and as a browser does: empty segments count for one of
/// them when `..` is followed. Only what lies in a root by both lies in it.
fn interpretations(uri: &str) -> Result<Vec<NormalizedUri>, &'static str> {
    let mut all = vec![NormalizedUri::read(uri)?];
    match url::Url::parse(uri) {
        Ok(url) => all.push(NormalizedUri::read(url.as_str())?),
        Err(_) => return Err("it is not an address"),
    }
    Ok(all)
}

fn has_scheme(text: &str) -> bool {
    split_scheme(text).is_some()
}

/// Whether the text is a reference that starts with neither a scheme nor a slash.
fn is_relative(text: &str) -> bool {
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

struct UriArgument<'a> {
    /// Its place among the arguments, such as `files[2].uri`.
    path: String,
    /// The address as the caller gave it.
    text: &'a str,
    allows_relative: bool,
    allows_other_text: bool,
}

/// One step: this schema applies to this value.
struct PendingSchema<'a> {
    schema: &'a Value,
    value: &'a Value,
    path: String,
    choice: bool,
}

/// The addresses in the argument `key` of a tool with this input schema.
fn addresses<'a>(root: &'a Value, key: &str, value: &'a Value) -> Vec<UriArgument<'a>> {
    let mut collected = Vec::new();
    let mut visited: HashSet<(*const Value, *const Value)> = HashSet::new();
    let mut left: Vec<PendingSchema<'a>> = Vec::new();
    // The argument is a property of an object that is not at hand as a value.
    let mut tops = vec![root];
    let mut visited_schemas: HashSet<*const Value> = HashSet::new();
    while let Some(schema) = tops.pop() {
        if !visited_schemas.insert(std::ptr::from_ref(schema)) {
            continue;
        }
        tops.extend(applicable_schemas(root, schema).map(|(schema, _)| schema));
        for schema in of_property(schema, key) {
            left.push(PendingSchema { schema, value, path: key.to_owned(), choice: false });
        }
    }
    while let Some(step) = left.pop() {
        if !visited.insert((std::ptr::from_ref(step.schema), std::ptr::from_ref(step.value))) {
            continue;
        }
        let PendingSchema { schema, value, path, choice } = step;
        let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
        if let (Some(text), "uri" | "iri" | "uri-reference" | "iri-reference") =
            (value.as_str(), format)
        {
            let relative = format.ends_with("-reference");
            collected.push(UriArgument {
                path: path.clone(),
                text,
                allows_relative: relative,
                allows_other_text: choice,
            });
        }
        for (schema, branches) in applicable_schemas(root, schema) {
            let choice = choice || branches.is_some_and(|all| accepts_plain_text(all, value));
            left.push(PendingSchema { schema, value, path: path.clone(), choice });
        }
        match value {
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    for schema in of_item(schema, at) {
                        left.push(PendingSchema {
                            schema,
                            value: item,
                            path: format!("{path}[{at}]"),
                            choice,
                        });
                    }
                }
            }
            Value::Object(members) => {
                for (key, member) in members {
                    for schema in of_property(schema, key) {
                        left.push(PendingSchema {
                            schema,
                            value: member,
                            path: format!("{path}.{key}"),
                            choice,
                        });
                    }
                }
            }
            _ => {}
        }
    }
    collected
}

fn applicable_schemas<'a>(
    root: &'a Value,
    schema: &'a Value,
) -> impl Iterator<Item = (&'a Value, Option<&'a [Value]>)> {
    let reference = ["$ref", "$dynamicRef", "$recursiveRef"]
        .into_iter()
        .filter_map(|key| schema.get(key)?.as_str())
        .filter_map(|reference| schema::target(root, reference));
    let single = ["if", "then", "else"].into_iter().filter_map(|key| schema.get(key));
    let dependent = schema.get("dependentSchemas").and_then(Value::as_object);
    let dependent = dependent.into_iter().flat_map(|all| all.values());
    let all = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
    let branches = ["anyOf", "oneOf"].into_iter().filter_map(|key| schema.get(key)?.as_array());
    let branches = branches.flat_map(|all| all.iter().map(move |one| (one, Some(all.as_slice()))));
    reference.chain(single).chain(dependent).chain(all).map(|one| (one, None)).chain(branches)
}

fn of_property<'a>(schema: &'a Value, key: &str) -> Vec<&'a Value> {
    let mut collected: Vec<&Value> = Vec::new();
    collected.extend(schema.get("properties").and_then(|all| all.get(key)));
    if let Some(patterns) = schema.get("patternProperties").and_then(Value::as_object) {
        // A pattern that cannot be read is taken to fit.
        let fits = |pattern: &str| {
            let built = regex::RegexBuilder::new(pattern).size_limit(1 << 20).build();
            built.is_ok_and(|regex| regex.is_match(key)) || regex::Regex::new(pattern).is_err()
        };
        collected.extend(patterns.iter().filter(|(pattern, _)| fits(pattern)).map(|(_, one)| one));
    }
    if collected.is_empty() {
        collected.extend(schema.get("additionalProperties"));
    }
    collected.extend(schema.get("unevaluatedProperties"));
    collected
}

fn of_item(schema: &Value, at: usize) -> Vec<&Value> {
    let mut collected = Vec::new();
    let listed =
        schema.get("prefixItems").or_else(|| schema.get("items")).and_then(Value::as_array);
    match listed.map(|all| all.get(at)) {
        Some(Some(one)) => collected.push(one),
        Some(None) => collected.extend(schema.get("additionalItems")),
        None => {}
    }
    collected.extend(schema.get("items").filter(|items| !items.is_array()));
    collected.extend(schema.get("contains"));
    collected.extend(schema.get("unevaluatedItems"));
    collected
}

/// Whether one of the branches accepts the value as text that is not an address.
fn accepts_plain_text(branches: &[Value], value: &Value) -> bool {
    branches.iter().any(|branch| {
        let listed = branch.get("enum").and_then(Value::as_array);
        let literal =
            branch.get("const") == Some(value) || listed.is_some_and(|all| all.contains(value));
        let plain = branch.get("type").and_then(Value::as_str) == Some("string")
            && ["format", "enum", "const", "pattern"].iter().all(|key| branch.get(key).is_none());
        literal || plain
    })
}
