//! The JSON of `doctor`.

use schemars::JsonSchema;
use serde::Serialize;

/// The checks that were made, and their results.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DoctorJson<'a> {
    /// The version of toolhost.
    pub version: &'a str,
    /// The checks, in the order they were made.
    pub checks: &'a [DoctorCheck],
}

/// A check and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DoctorCheck {
    /// What was checked, such as `terminal` or `server github`.
    pub name: String,
    /// `ok`, `warning` or `error`.
    #[serde(rename = "status")]
    #[schemars(with = "String")]
    pub severity: Severity,
    /// What was found.
    pub message: String,
    /// How to fix the problem, if any.
    pub hint: Option<String>,
    /// What a failed server wrote, and other evidence.
    pub details: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Severity {
    Ok,
    Warning,
    Error,
}

impl DoctorCheck {
    pub fn new(name: impl Into<String>, severity: Severity, message: impl Into<String>) -> Self {
        let (name, message) = (name.into(), message.into());
        Self { name, severity, message, hint: None, details: Vec::new() }
    }

    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}
