//! Stand-in for jq.
use serde_json::Value;

/// Runs a jq expression over a value and returns its results.
///
/// # Errors
/// A message for people.
pub fn query(_filter: &str, input: &Value) -> Result<Vec<Value>, String> {
    Ok(vec![input.clone()])
}
