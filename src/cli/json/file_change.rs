//! The JSON of `add`, `remove`, `import`, `connect` and `disconnect`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::mcp_file::McpFile;

/// A change of the entries of a configuration file.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct FileChangeJson<'a> {
    /// The file.
    pub file: String,
    /// Whether it was written: false with `--dry-run`, and when there was nothing to change.
    pub written: bool,
    /// The entries that are added or replaced.
    pub added: Vec<&'a str>,
    /// The entries that are removed.
    pub removed: Vec<&'a str>,
    /// The lines around the change, each with `-`, `+` or a space in front.
    pub diff: Vec<String>,
    /// Variables that imported entries need.
    pub variables: Vec<&'a str>,
    /// The file as it was, if a copy was kept.
    pub backup: Option<String>,
    /// The command that trusts the project, where that is still needed.
    pub trust_command: Option<String>,
}

impl FileChangeJson<'_> {
    pub fn of(file: &McpFile) -> Self {
        let hunks = file.hunks();
        let lines = hunks.iter().flat_map(|hunk| &hunk.lines);
        Self {
            file: file.path.display().to_string(),
            diff: lines.map(|line| format!("{}{}", line.mark.sign(), line.text)).collect(),
            ..Self::default()
        }
    }
}
