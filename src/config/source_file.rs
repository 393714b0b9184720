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
        match self.candidate.layer {
            Layer::Embedded => cwd.to_path_buf(),
            _ if self.candidate.inline_text.is_some() => cwd.to_path_buf(),
            _ => {
                let directory = self.candidate.directory();
                directory.map_or_else(|| cwd.to_path_buf(), Path::to_path_buf)
            }
        }
    }
}
