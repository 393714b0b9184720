//! What an entry would do, derived from the entry as written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::local_value;
use crate::config::environment::Environment;
use crate::config::node::ConfigNode;

/// One thing an entry would do once it acts. An entry without effects is harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryEffect {
    Runs(ProgramEffect),
    /// Runs code that a program finds by itself: a label for it, and the files that would be run,
    /// listed by the entry's kind when the user is asked.
    Loads(String),
    Contacts(String),
    Reads(String),
    Writes(String),
    /// Takes its definition from a document, as written; relative to the entry's file.
    #[cfg_attr(
        not(feature = "openapi"),
        expect(dead_code, reason = "only that kind has documents")
    )]
    Document(String),
    /// Passes the variables in this file to a program, as written; it is bound by its content.
    EnvFile(String),
    Calls {
        tool: String,
        arguments: Option<String>,
    },
    /// Lists the tools of this server under its own name.
    Renames(String),
    /// Anything else, as text that continues after "it".
    Other(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProgramEffect {
    pub argv: Vec<String>,
    /// Its working directory, as written; `None` means the default of the kind.
    pub cwd: Option<String>,
    /// Variables the entry sets, as written.
    pub env: Vec<(String, String)>,
    /// What a program named by a path is relative to, if that is not the directory it is
    /// started in.
    pub found_from: Option<PathBuf>,
    /// Its working directory if the entry does not set one.
    pub usual_cwd: PathBuf,
}

/// The context of an entry, for describing what it would do. It gives no access to the environment.
#[derive(Clone, Copy)]
pub struct EntrySite<'a> {
    /// The directory of its file; relative paths are relative to it.
    pub base_dir: &'a Path,
    pub root: &'a Path,
    /// Named directories, as the files of the project write them.
    pub scopes: &'a BTreeMap<String, String>,
    /// The defaults of its file, as written.
    pub defaults: Option<&'a ConfigNode>,
    environment: &'a dyn Environment,
}

impl<'a> EntrySite<'a> {
    /// A context in the project rooted at `root`.
    pub fn new(
        base_dir: &'a Path,
        root: &'a Path,
        scopes: &'a BTreeMap<String, String>,
        defaults: Option<&'a ConfigNode>,
        environment: &'a dyn Environment,
    ) -> Self {
        Self { base_dir, root, scopes, defaults, environment }
    }

    /// A path as the entry means it, if it depends only on known directories.
    pub fn path(&self, text: &str) -> Option<PathBuf> {
        local_value::path(text, self.base_dir, self.environment)
    }

    /// A path with links resolved, as far as it exists.
    pub fn real(&self, text: &str) -> Option<PathBuf> {
        let path = self.path(text)?;
        Some(path.canonicalize().unwrap_or(path))
    }

    /// Whether a path is below the root of the project, links resolved.
    pub fn is_inside(&self, path: &Path) -> bool {
        is_inside(path, self.root)
    }

    pub fn cwd(&self) -> PathBuf {
        self.environment.cwd()
    }

    /// The directories searched for programs: those of the `PATH` that an entry sets, as
    /// written, or the user's own. `None` if they depend on another variable.
    pub fn search_path(&self, written: Option<&str>) -> Option<String> {
        match written {
            Some(written) => local_value::resolve(written, self.base_dir, self.environment).ok(),
            None => self.environment.var("PATH"),
        }
    }
}

/// Whether a file is there, and below `root` also after all links.
pub(super) fn is_inside(path: &Path, root: &Path) -> bool {
    path.canonicalize().is_ok_and(|real| real.starts_with(root))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::config::environment::FixedEnvironment;

    #[test]
    fn a_link_that_leads_out_of_the_project_is_not_inside() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("project");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        symlink("..", root.join("out")).unwrap();
        symlink("sub", root.join("in")).unwrap();
        let (scopes, environment) = (BTreeMap::new(), FixedEnvironment::default());
        let site = EntrySite::new(&root, &root, &scopes, None, &environment);
        for (name, is_inside) in [("sub", true), ("in", true), ("out", false), ("none", false)] {
            assert_eq!(site.is_inside(&root.join(name)), is_inside, "{name}");
        }
    }

    #[test]
    fn programs_are_searched_where_the_entry_says_or_the_user() {
        let mut environment = FixedEnvironment::default();
        environment.vars.insert("PATH".to_owned(), "/bin".to_owned());
        let (base, scopes) = (Path::new("/p"), BTreeMap::new());
        let site = EntrySite::new(base, base, &scopes, None, &environment);
        for (written, searched) in [
            (None, Some("/bin")),
            (Some("x:${PATH}"), Some("x:/bin")),
            (Some("${OTHER}:/bin"), None),
        ] {
            assert_eq!(site.search_path(written).as_deref(), searched, "{written:?}");
        }
    }
}
