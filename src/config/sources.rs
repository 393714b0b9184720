//! Reading the discovered files, including those of `discover:` directories.
//!
//! One parsed configuration file, before its entries are resolved.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::consent::{Expander, Grant};
use super::discover::{
    self, ConfigFileCandidate, DiscoveredFiles, EMBEDDED_SERVERS, EMBEDDED_TOOLS, FileRole,
};
use super::entries::file_key;
use super::environment::Environment;
use super::expanded::ExpandedValues;
use super::node::{ConfigNode, SourceText};
use super::parse;
use super::references::{AllowedReferences, is_literal};
use super::{editors, read};
use crate::model::{Diagnostic, Diagnostics, Layer};

/// All files of one load, highest precedence first.
#[derive(Debug, Default)]
pub(super) struct ConfigSources {
    pub files: Vec<SourceFile>,
    pub diagnostics: Diagnostics,
    /// Files that cannot be read or parsed.
    pub unread: Vec<ConfigFileCandidate>,
    /// Why a file that was named cannot be read: the first one.
    pub unreadable: Option<Diagnostic>,
    pub searched: Vec<PathBuf>,
    /// The directories that `discover:` names.
    pub directories: Vec<PathBuf>,
}

impl ConfigSources {
    /// Reads and parses the files that were found, and those that `discover:` adds.
    pub fn read(
        discovered: DiscoveredFiles,
        environment: &dyn Environment,
        expanded: &ExpandedValues,
    ) -> Self {
        let DiscoveredFiles { diagnostics, searched, .. } = discovered;
        let mut sources = Self { searched, ..Self::default() };
        sources.diagnostics.extend(diagnostics);
        let mut taken = BTreeSet::new();
        for candidate in discovered.files {
            let mut file = match open(&candidate) {
                Ok(file) => file,
                Err(diagnostic) => {
                    if candidate.layer.is_named() {
                        sources.unreadable.get_or_insert_with(|| diagnostic.clone());
                    }
                    sources.diagnostics.push(diagnostic);
                    sources.unread.push(candidate);
                    continue;
                }
            };
            if candidate.is_editors() {
                drop_repeated_servers(&mut file, &mut taken);
            }
            let directories = sources.directories(&file, environment, expanded);
            sources.files.push(file);
            for directory in directories {
                sources.discovered(&directory, &candidate);
            }
        }
        sources
    }

    /// The directories that a file's `discover` names.
    fn directories(
        &mut self,
        file: &SourceFile,
        environment: &dyn Environment,
        expanded: &ExpandedValues,
    ) -> Vec<Directory> {
        let node =
            (file.candidate.role == FileRole::Tools).then(|| file.root.get("discover")).flatten();
        let Some(node) = node.filter(|node| !node.is_null()) else { return Vec::new() };
        let mut node = node.clone();
        let base_dir = file.base_dir(&environment.cwd());
        if file.is_project() {
            if !is_literal(&node) {
                let message = "'discover' in a project's file must name literal directories";
                let hint = "variables are expanded only after the project is trusted";
                self.diagnostics.push(node.error(message).with_hint(hint));
                return Vec::new();
            }
        } else {
            let expander = Expander::new(&Grant::own(), environment, &base_dir, expanded);
            let allowed = AllowedReferences::Variables;
            expander.value(&mut node, "discover", allowed, &self.diagnostics);
        }
        let texts = self.diagnostics.ok(node.as_texts()).unwrap_or_default();
        let root = file.is_project().then(|| base_dir.canonicalize().unwrap_or(base_dir.clone()));
        let directory = |text: String| Directory {
            path: base_dir.join(text).components().collect(),
            node: node.clone(),
            root: root.clone(),
        };
        texts.into_iter().map(directory).collect()
    }

    fn discovered(&mut self, directory: &Directory, from: &ConfigFileCandidate) {
        self.searched.push(directory.path.clone());
        let Directory { path, node, .. } = directory;
        if !directory.may_be_read(path) {
            let message = "'discover' in a project's file must stay below the project's directory";
            let hint = "pass the files with --tools, or 'discover' them in your own configuration";
            self.diagnostics.push(node.error(message).with_hint(hint));
            return;
        }
        self.directories.push(path.clone());
        let listing = discover::directory(path).map_err(|why| why.with_location(node.location()));
        let Some(listing) = self.diagnostics.ok(listing) else { return };
        let left_out = left_out(&listing.left_out);
        let located = left_out.map(|warning| warning.with_location(node.location()));
        self.diagnostics.extend(located);
        let (inside, outside): (Vec<PathBuf>, Vec<PathBuf>) =
            listing.files.into_iter().partition(|path| directory.may_be_read(path));
        for path in outside {
            let message = "not followed: a symbolic link is outside the project";
            let at = read::file_location(&path);
            self.diagnostics.push(Diagnostic::error(message).with_location(at));
        }
        for path in inside {
            let candidate = ConfigFileCandidate { path, inline_text: None, ..from.clone() };
            let file = self.diagnostics.ok(open(&candidate));
            self.files.extend(file.map(|file| SourceFile { is_discovered: true, ..file }));
        }
    }
}

/// What a `discover:` directory holds beside its tool files.
fn left_out(paths: &[PathBuf]) -> Option<Diagnostic> {
    const SHOWN: usize = 5;
    let is_module = |path: &Path| path.extension().is_some_and(|extension| extension == "py");
    let describe = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let why = match path {
            path if path.is_dir() => "a directory",
            path if is_module(path) => "a Python module",
            _ => "not YAML or JSON",
        };
        format!("{name} ({why})")
    };
    let mut names: Vec<String> = paths.iter().take(SHOWN).map(describe).collect();
    names.extend((paths.len() > SHOWN).then(|| format!("{} more", paths.len() - SHOWN)));
    let warning = Diagnostic::warning(format!("'discover' leaves out {}", names.join(", ")));
    let module = paths.iter().find(|path| is_module(path)).and_then(|path| path.file_stem());
    let hint = module.map(|module| {
        let module = module.to_string_lossy();
        format!(
            "the typed functions of a module become tools with an entry in a file beside it: \
             {{ name: {module}, module: {module}, functions: typed }}"
        )
    });
    (!paths.is_empty()).then_some(Diagnostic { hint, ..warning })
}

/// Removes servers that are also in another editor's file: a project often lists the same ones for
/// each editor used with it.
fn drop_repeated_servers(file: &mut SourceFile, taken: &mut BTreeSet<String>) {
    for (key, value) in file.root.entries_mut().into_iter().flatten() {
        if file_key(FileRole::Servers, &key.text) == Some("mcp_servers")
            && let Some(servers) = value.entries_mut()
        {
            servers.retain(|(name, entry)| {
                !taken.contains(&*name.text) && !editors::is_toolhost(&entry.to_json())
            });
            taken.extend(servers.iter().map(|(name, _)| name.text.to_string()));
        }
    }
}

struct Directory {
    path: PathBuf,
    /// Where it is named.
    node: ConfigNode,
    /// The root that a project's directories must be below, links resolved.
    root: Option<PathBuf>,
}

impl Directory {
    /// Whether nothing outside the project would be read. A path that does not exist reads nothing.
    fn may_be_read(&self, path: &Path) -> bool {
        let Some(root) = &self.root else { return true };
        path.canonicalize().map_or(true, |real| real.starts_with(root))
    }
}

pub(super) fn open(candidate: &ConfigFileCandidate) -> Result<SourceFile, Diagnostic> {
    let (source, text) = if let Some(text) = &candidate.inline_text {
        (SourceText::new(&candidate.path, text), text.to_string())
    } else {
        let named = matches!(candidate.layer, Layer::Flag | Layer::Variable);
        read::read(&candidate.path, named)?
    };
    Ok(SourceFile {
        candidate: candidate.clone(),
        root: parse::parse(&source, &text)?,
        is_embedded: text == EMBEDDED_TOOLS || text == EMBEDDED_SERVERS,
        is_discovered: false,
    })
}

#[derive(Debug)]
pub struct SourceFile {
    pub candidate: ConfigFileCandidate,
    /// The outermost value; in a valid file, a mapping.
    pub root: ConfigNode,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_discover_leaves_out_is_named_with_the_way_to_a_module() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("more")).unwrap();
        let paths = ["greet.py", "more", "notes.txt"].map(|name| dir.path().join(name));
        let diagnostic = left_out(&paths).unwrap();
        assert_eq!(
            diagnostic.message,
            "'discover' leaves out greet.py (a Python module), more (a directory), \
             notes.txt (not YAML or JSON)"
        );
        let hint = diagnostic.hint.unwrap();
        assert!(hint.ends_with("{ name: greet, module: greet, functions: typed }"), "{hint}");
        assert!(left_out(&[]).is_none());
    }
}
