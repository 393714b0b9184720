//! What an entry would do, derived from the entry as written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::local_value;
use crate::config::environment::Environment;
use crate::config::node::ConfigNode;

/// One thing an entry would do once it acts. An entry without effects reaches nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryEffect {
    /// Starts a program on this machine.
    Runs(ProgramEffect),
    /// Runs code that a program finds by itself: what to call it, and the files that would be run,
    /// listed by the entry's kind when a person is asked.
    Loads(String),
    /// Contacts an address, as written.
    Contacts(String),
    /// Reads below a directory or file, as it will be called.
    Reads(String),
    /// Writes below a directory or file, as it will be called.
    Writes(String),
    /// Takes its definition from a document, as written; relative to the entry's file.
    Document(String),
    /// Gives a program the variables of this file, as written; it is bound by its content.
    EnvFile(String),
    /// Calls another tool of the catalogue.
    Calls {
        /// The tool's name as the entry writes it.
        tool: String,
        /// What it is given, as the entry writes it.
        arguments: Option<String>,
    },
    /// Takes the tools of this server under its own name.
    Renames(String),
    /// Anything else, in words that go on after "it".
    Other(String),
}

/// A program that would be started, as the entry says it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProgramEffect {
    /// The program and its arguments, as written.
    pub argv: Vec<String>,
    /// The directory it is started in, as written; `None` is the kind's usual one.
    pub cwd: Option<String>,
    /// Variables the entry sets, as written.
    pub env: Vec<(String, String)>,
    /// What a program that is named by a path is relative to, when that is not the directory it is
    /// started in.
    pub found_from: Option<PathBuf>,
    /// Where it is started when the entry does not say.
    pub usual_cwd: PathBuf,
}

/// Where an entry stands, for telling what it would do. It gives no way to the environment.
#[derive(Clone, Copy)]
pub struct EntrySite<'a> {
    /// The directory of its file; relative paths are relative to it.
    pub base_dir: &'a Path,
    /// The root of the project, with links resolved.
    pub root: &'a Path,
    /// Named directories, as the files of the project write them.
    pub scopes: &'a BTreeMap<String, String>,
    /// The defaults of its file, as they are written.
    pub defaults: Option<&'a ConfigNode>,
    environment: &'a dyn Environment,
}

impl<'a> EntrySite<'a> {
    /// A place in the project that is rooted in `root`.
    pub fn new(
        base_dir: &'a Path,
        root: &'a Path,
        scopes: &'a BTreeMap<String, String>,
        defaults: Option<&'a ConfigNode>,
        environment: &'a dyn Environment,
    ) -> Self {
        Self { base_dir, root, scopes, defaults, environment }
    }

    /// A path as the entry means it, when nothing but places decides it.
    pub fn path(&self, text: &str) -> Option<PathBuf> {
        local_value::path(text, self.base_dir, self.environment)
    }

    /// A path with links resolved, as far as it is there.
    pub fn real(&self, text: &str) -> Option<PathBuf> {
        let path = self.path(text)?;
        Some(path.canonicalize().unwrap_or(path))
    }

    /// Whether a path is below the root of the project, links resolved.
    pub fn is_inside(&self, path: &Path) -> bool {
        path.canonicalize().is_ok_and(|real| real.starts_with(self.root))
    }

    /// The working directory of this run.
    pub fn cwd(&self) -> PathBuf {
        self.environment.cwd()
    }

    /// The directories that programs are looked for in: those of the `PATH` that an entry sets, as
    /// it writes them, or the user's own. `None` when another variable decides them.
    pub fn search_path(&self, written: Option<&str>) -> Option<String> {
        match written {
            Some(written) => {
                local_value::resolve(written, self.base_dir, self.environment).resolved()
            }
            None => self.environment.var("PATH"),
        }
    }
}
