//! The JSON of `doctor`.

use schemars::JsonSchema;
use serde::Serialize;

/// The checks that were made, and their results.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DoctorJson<'a> {
    /// The version of toolhost.
    pub version: &'a str,
    /// The checks, in the order they were made.
    pub checks: Vec<DoctorCheckJson<'a>>,
}

/// A check and its result.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DoctorCheckJson<'a> {
    /// What was checked, such as `terminal` or `server github`.
    pub name: &'a str,
    /// `ok`, `warning` or `error`.
    pub status: &'static str,
    /// What was found.
    pub message: &'a str,
    /// How to fix the problem, if any.
    pub hint: Option<&'a str>,
    /// What a failed server wrote, and other evidence.
    pub details: &'a [String],
}
