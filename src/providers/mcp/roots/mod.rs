//! The roots of a server: which locations its resources and arguments may point to.
//!
//! Owns: the refusal. With roots set on the entry, an address that lies in none of them is refused
//! before anything is sent; without roots, everything is allowed. Addresses are compared as
//! text ([`normalized_uri`]): a symbolic link inside a root is the server's business. Never does: open
//! anything.

mod normalized_uri;
mod uri_arguments;

use serde_json::Value;

use crate::model::{Error, JsonObject, Root};
use crate::util::text::shorten;
use normalized_uri::NormalizedUri;
use uri_arguments::UriArgument;

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
        for address in uri_arguments::addresses(schema, key, value) {
            let UriArgument { path, text, allows_relative: relative, allows_other_text: choice } =
                address;
            let verdict = match inside(text, roots) {
                Err(_) if relative && normalized_uri::is_relative(text) => within_any(text, roots),
                Err(_) if choice && !normalized_uri::has_scheme(text) => Ok(()),
                verdict => verdict,
            };
            refused(text, verdict, roots)
                .map_err(|error| error.context(&format!("argument {path}")))?;
        }
    }
    Ok(())
}

fn inside(uri: &str, roots: &[Root]) -> Result<(), &'static str> {
    let readings = normalized_uri::interpretations(uri)?;
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
