//! Errors about a text of an entry, with a suggested correction.

use std::fmt::Display;

use crate::model::{Diagnostic, SourceLocation};

/// An error about one text of an entry: its `Display` is the message.
pub(super) trait HintedError: Display {
    /// What to write instead; `None` if the message is enough.
    fn hint(&self) -> Option<String>;

    fn diagnostic(&self, place: &SourceLocation) -> Diagnostic {
        let diagnostic = Diagnostic::error(self.to_string()).with_location(place.clone());
        match self.hint() {
            Some(hint) => diagnostic.with_hint(hint),
            None => diagnostic,
        }
    }
}
