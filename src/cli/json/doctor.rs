//! The JSON of `doctor`.

use schemars::JsonSchema;
use serde::Serialize;

/// What was looked at, and what was found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DoctorJson<'a> {
    /// The version of toolhost.
    pub version: &'a str,
    /// The checks, in the order in which they were made.
    pub checks: Vec<DoctorCheckJson<'a>>,
}

/// One thing that was looked at.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DoctorCheckJson<'a> {
    /// What was looked at, such as `terminal` or `server github`.
    pub name: &'a str,
    /// `ok`, `warning` or `error`.
    pub status: &'static str,
    /// What was found.
    pub message: &'a str,
    /// What to do about it.
    pub hint: Option<&'a str>,
}
