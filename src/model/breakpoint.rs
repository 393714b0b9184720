//! What a breakpoint did to a call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::JsonObject;

/// Where a breakpoint stops a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HoldPoint {
    /// Before it is sent.
    Call,
    /// With its result, before the caller gets it.
    Result,
}

/// What became of a call at a breakpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "lowercase")]
pub enum HoldOutcome {
    /// It went on unchanged.
    Continued,
    /// It went on with other arguments, or another result.
    Edited,
    /// It was answered and never sent.
    Answered,
    /// It was refused.
    Refused,
    /// It was not stopped, because no console was attached.
    #[strum(serialize = "not stopped")]
    NotStopped,
}

impl HoldOutcome {
    /// The outcome as a decision about the call.
    pub(crate) fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What a breakpoint did to a call, as the audit log keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BreakpointRecord {
    /// The pattern of its rule.
    pub pattern: String,
    /// Where the call was stopped.
    pub on: HoldPoint,
    /// What became of it.
    pub outcome: HoldOutcome,
    /// Who decided: a console, or the limit of the rule; or why nobody did.
    pub by: String,
    /// The arguments before they were edited, secrets masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_before: Option<JsonObject>,
}
