//! Why a reference has no value.

/// Why a text could not be expanded. Never contains a value.
#[derive(Debug, PartialEq, Eq)]
pub struct ExpandError {
    /// The message: names the variable or file, never a value.
    pub message: String,
    pub hint: Option<String>,
}

impl ExpandError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
