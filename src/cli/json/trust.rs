//! The JSON of `trust list`.

use crate::util::shape::shape;
use schemars::JsonSchema;
use serde::Serialize;

use crate::config::consent::{EntryRecord, ProjectRecord};

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

shape! {
    /// A project that is trusted.
    pub TrustedProjectJson<'a> of project: &'a ProjectRecord, with {
        let bundle = &project.bundle;
    } {
        /// Its directory, links resolved.
        root: String = project.root.display().to_string(),
        /// When it was trusted (RFC 3339).
        when: &'a str = &project.trusted_at,
        /// Whether it is trusted as the user's own project: its code may change without asking again.
        author: bool = project.allows_code_changes,
        /// Its configuration files, relative to the directory.
        files: Vec<&'a str> = bundle.files.keys().map(String::as_str).collect(),
        /// What its entries would do.
        entries: Vec<TrustedEntryJson<'a>> = bundle.entries.iter().map(Into::into).collect(),
        /// How many files of code were trusted with it.
        code: usize = bundle.code.len(),
        /// The user's own entries that it replaces.
        replaces: &'a [String] = &bundle.replaced_names,
    }
}

shape! {
    /// An entry of a trusted project.
    pub TrustedEntryJson<'a> of entry: &'a EntryRecord {
        /// Its name.
        name: &'a str = &entry.name,
        /// The file that defines it.
        file: &'a str = &entry.file,
        /// What it would do: one line, then details.
        lines: &'a [String] = &entry.lines,
    }
}
