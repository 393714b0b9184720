//! A problem in a configuration file, with its position.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::util::spelling::did_you_mean;

/// A position in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceLocation {
    /// The file, as named or found; `None` inside is the embedded default.
    pub file: Arc<PathBuf>,
    /// The line, counted from 1; 0 when unknown.
    pub line: u32,
    /// Column in characters, counted from 1.
    pub column: u32,
    /// The text of that line, for the caret; empty when it is not known.
    pub text: Arc<str>,
}

/// Whether a diagnostic takes its entry out of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Severity {
    /// The entry works; `--strict` makes this an error.
    Warning,
    /// The entry is out of service; the rest works.
    Error,
}

/// One finding about configuration or a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[must_use]
pub struct Diagnostic {
    /// Whether the entry is out of service or only questionable.
    pub severity: Severity,
    /// What is wrong, as a lower-case fragment.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The position in a file, when the finding has one.
    pub location: Option<SourceLocation>,
    /// The entry (tool, component or server) it concerns.
    pub entry: Option<String>,
}

impl Diagnostic {
    /// A finding that takes its entry out of service.
    pub fn error(message: impl Into<String>) -> Self {
        Self::new(Severity::Error, message)
    }

    /// A finding that leaves the entry in service.
    pub fn warning(message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, message)
    }

    fn new(severity: Severity, message: impl Into<String>) -> Self {
        Self { severity, message: message.into(), hint: None, location: None, entry: None }
    }

    /// Sets the hint on what to do about it.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Suggests the name in `candidates` that `word` was probably meant to be, if one is similar.
    pub fn with_suggestion<'k>(
        self,
        word: &str,
        candidates: impl IntoIterator<Item = &'k str>,
    ) -> Self {
        match did_you_mean(word, candidates) {
            Some(hint) => self.with_hint(hint),
            None => self,
        }
    }

    /// Adds the position in a file that messages point to.
    pub fn with_location(mut self, location: SourceLocation) -> Self {
        self.location = Some(location);
        self
    }

    /// Sets the entry it concerns.
    pub fn with_entry(mut self, entry: impl Into<String>) -> Self {
        self.entry = Some(entry.into());
        self
    }

    /// Whether the entry is out of service.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// What is wrong with what is being read, as it is found.
#[derive(Debug, Default)]
pub struct Diagnostics {
    found: RefCell<Vec<Diagnostic>>,
    /// How many of them are errors: it is asked for each of many parts of a file.
    errors: Cell<usize>,
}

impl Diagnostics {
    pub fn push(&self, diagnostic: Diagnostic) {
        self.errors.set(self.errors.get() + usize::from(diagnostic.is_error()));
        self.found.borrow_mut().push(diagnostic);
    }

    pub fn extend(&self, more: impl IntoIterator<Item = Diagnostic>) {
        more.into_iter().for_each(|diagnostic| self.push(diagnostic));
    }

    /// The value, or `None` and a diagnostic.
    pub fn ok<T>(&self, result: Result<T, Diagnostic>) -> Option<T> {
        result.map_err(|diagnostic| self.push(diagnostic)).ok()
    }

    /// What `read` returns, and what it found wrong, which is not added.
    pub fn apart<T>(&self, read: impl FnOnce() -> T) -> (T, Vec<Diagnostic>) {
        let (before, errors) = (self.found.take(), self.errors.replace(0));
        let value = read();
        self.errors.set(errors);
        (value, self.found.replace(before))
    }

    pub fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// How many of them take their entry out of service.
    pub fn errors(&self) -> usize {
        self.errors.get()
    }

    pub fn take(&self) -> Vec<Diagnostic> {
        self.errors.set(0);
        self.found.take()
    }
}
