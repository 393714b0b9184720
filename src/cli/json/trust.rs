//! The JSON of `trust list`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::config::consent::ProjectRecord;

/// The projects that are trusted.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TrustListJson<'a> {
    projects: Vec<TrustedProjectJson<'a>>,
}

impl<'a> TrustListJson<'a> {
    pub fn new(projects: impl IntoIterator<Item = &'a ProjectRecord>) -> Self {
        Self { projects: projects.into_iter().map(Into::into).collect() }
    }
}

/// A project that is trusted.
#[derive(Debug, Serialize, JsonSchema)]
struct TrustedProjectJson<'a> {
    /// Its directory, links resolved.
    root: String,
    /// When it was trusted (RFC 3339).
    when: &'a str,
    /// Whether it is trusted as the user's own project: its code may change without asking again.
    author: bool,
    /// Its configuration files, relative to the directory.
    files: Vec<&'a str>,
    /// What its entries would do.
    entries: Vec<TrustedEntryJson<'a>>,
    /// How many files of code were trusted with it.
    code: usize,
    /// The user's own entries that it replaces.
    replaces: &'a [String],
}

/// An entry of a trusted project.
#[derive(Debug, Serialize, JsonSchema)]
struct TrustedEntryJson<'a> {
    /// Its name.
    name: &'a str,
    /// The file that defines it.
    file: &'a str,
    /// What it would do: one line, then details.
    lines: &'a [String],
}

impl<'a> From<&'a ProjectRecord> for TrustedProjectJson<'a> {
    fn from(project: &'a ProjectRecord) -> Self {
        let bundle = &project.bundle;
        let entries = bundle.entries.iter();
        Self {
            root: project.root.display().to_string(),
            when: &project.trusted_at,
            author: project.allows_code_changes,
            files: bundle.files.keys().map(String::as_str).collect(),
            entries: entries
                .map(|entry| TrustedEntryJson {
                    name: &entry.name,
                    file: &entry.file,
                    lines: &entry.lines,
                })
                .collect(),
            code: bundle.code.len(),
            replaces: &bundle.replaced_names,
        }
    }
}
