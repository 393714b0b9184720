//! Qualified tool names: `{component}-{tool}`.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The full name of a tool.
///
/// A tool declared in `tools.yaml` has no component and keeps its name; a tool of a component or
/// an MCP server is written `{component}-{tool}`. The two parts are kept apart because a component
/// or a tool may contain `-` itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ToolName {
    component: Option<String>,
    tool: String,
}

impl ToolName {
    /// A tool that belongs to no component: its name is used unchanged.
    pub fn plain(tool: impl Into<String>) -> Self {
        Self { component: None, tool: tool.into() }
    }

    /// The tool `tool` of the component or server `component`.
    pub fn of(component: impl Into<String>, tool: impl Into<String>) -> Self {
        Self { component: Some(component.into()), tool: tool.into() }
    }

    /// The component or server, if the tool belongs to one.
    pub fn component(&self) -> Option<&str> {
        self.component.as_deref()
    }

    /// The tool's own name, as its owner knows it.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The name that is printed and recorded: `{component}-{tool}`, or the tool's own.
    pub fn full(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.component {
            Some(component) => write!(f, "{component}-{}", self.tool),
            None => f.write_str(&self.tool),
        }
    }
}

/// Text that cannot be the name of a tool, component or server.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid name '{0}': use 1 to 128 letters, digits, '_', '.' or '-'")]
pub struct InvalidNameError(String);

/// Checks a name that a person gives to a tool, component or server.
///
/// # Errors
/// When it is empty, too long or contains an invalid character.
pub fn check_name(text: &str) -> Result<(), InvalidNameError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if text.is_empty() || text.len() > 128 || !text.chars().all(fits) {
        return Err(InvalidNameError(text.to_owned()));
    }
    Ok(())
}

/// The name here of a server that a file calls so: with '-' for each ASCII character that names do
/// not have. Letters that may only look like others are no name.
pub fn safe_name(text: &str) -> String {
    let fits = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "_.-".contains(c);
    text.chars().map(|c| if fits(c) { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::ToolName;

    #[test]
    fn a_plain_tool_keeps_its_name() {
        assert_eq!(ToolName::plain("calculator").full(), "calculator");
    }

    #[test]
    fn a_component_tool_is_joined_with_a_dash() {
        let name = ToolName::of("my-notes", "read");
        assert_eq!(name.full(), "my-notes-read");
        assert_eq!(name.component(), Some("my-notes"));
    }
}
