//! Stand-in for the schemas of the files.
/// Schema of `tools.yaml`.
pub fn tools_schema() -> serde_json::Value {
    serde_json::json!({})
}
/// Schema of `mcp.yaml`.
pub fn servers_schema() -> serde_json::Value {
    serde_json::json!({})
}
