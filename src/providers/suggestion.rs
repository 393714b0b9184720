//! "Did you mean": suggestions for unknown words.

use crate::config::keys::suggestion;
use crate::model::Diagnostic;

/// The hint that names the one of `known` that `text` probably was meant to be.
pub(super) fn meant_hint<'k>(text: &str, known: impl Iterator<Item = &'k str>) -> Option<String> {
    suggestion(text, known).map(|meant| format!("did you mean '{meant}'?"))
}

/// `diagnostic` with that hint, when one of `known` is near.
pub(super) fn suggest<'k>(
    diagnostic: Diagnostic,
    text: &str,
    known: impl Iterator<Item = &'k str>,
) -> Diagnostic {
    match meant_hint(text, known) {
        Some(hint) => diagnostic.with_hint(hint),
        None => diagnostic,
    }
}
