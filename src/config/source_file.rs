//! One parsed configuration file, before its entries are resolved.

use std::path::{Path, PathBuf};

use super::discover::ConfigFileCandidate;
use super::parse::ParsedFile;
use crate::model::Layer;

#[derive(Debug)]
pub struct SourceFile {
    pub candidate: ConfigFileCandidate,
    pub parsed: ParsedFile,
    /// Whether it is the embedded default, which is always trusted.
    pub is_embedded: bool,
    /// Whether it was found in a `discover:` directory.
    pub is_discovered: bool,
}

impl SourceFile {
    /// Whether it belongs to a project that the user must agree to.
    pub fn is_project(&self) -> bool {
        self.candidate.layer == Layer::Project && !self.is_embedded
    }

    pub fn base_dir(&self, cwd: &Path) -> PathBuf {
        let directory = self.candidate.directory();
        directory.filter(|_| self.candidate.inline_text.is_none()).unwrap_or(cwd).to_path_buf()
    }
}
