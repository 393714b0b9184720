//! The port to the process environment: variables and directories.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use super::expanded::ExpandedValues;
use crate::util::keychain::{self, KeychainError};

const UNLOCK_TIMEOUT: Duration = Duration::from_mins(1);

/// Variables and well-known directories of the process.
pub trait Environment: Send + Sync {
    /// The value of a variable; `None` when it is unset or not UTF-8. Only [`Environment::var`] and
    /// [`Environment::expand`] can make the name.
    fn read(&self, name: VariableName<'_>) -> Option<String>;

    /// The value of a variable that the program itself knows by name. A name from a configuration
    /// file cannot be looked up here, because it does not live long enough.
    fn var(&self, name: &'static str) -> Option<String> {
        self.read(VariableName(name))
    }

    /// The value of a variable that a configuration file names. It is recorded in `expanded`, so
    /// that it is masked in all output and records.
    #[doc(hidden)] // for the compiler of files
    fn expand(&self, name: &str, expanded: &ExpandedValues) -> Option<String> {
        let value = self.read(VariableName(name))?;
        expanded.variable(name, &value);
        Some(value)
    }

    /// The secret that the system's keychain stores for an account of a service, if any. It may
    /// take a minute, because the user may have to unlock the keychain.
    ///
    /// # Errors
    /// When there is no keychain in this build or system, or it denies access.
    #[doc(hidden)] // for the compiler of files
    fn keychain(&self, service: &str, account: &str) -> Result<Option<Vec<u8>>, KeychainError> {
        keychain::read_within(service, account, UNLOCK_TIMEOUT)
    }

    /// All variables that are UTF-8.
    fn vars(&self) -> BTreeMap<String, String>;

    /// The working directory; `.` if the system does not report it.
    fn cwd(&self) -> PathBuf;
    /// The running binary, for entries that start it again (`${TOOLHOST}`).
    fn executable(&self) -> Option<PathBuf>;
    /// The user's home directory; `None` if the system does not report it.
    fn home(&self) -> Option<PathBuf>;
    /// The user's configuration directory of toolhost.
    fn config_dir(&self) -> Option<PathBuf>;
    /// The directory for persistent state (audit log, history, statistics, pins, trust).
    fn state_dir(&self) -> Option<PathBuf>;
    /// The directory for caches, which may be lost.
    fn cache_dir(&self) -> Option<PathBuf>;
}

/// The name of a variable to be read.
#[derive(Debug, Clone, Copy)]
pub struct VariableName<'a>(&'a str);

impl<'a> VariableName<'a> {
    /// The name as an implementation of [`Environment`] looks it up.
    pub fn as_str(self) -> &'a str {
        self.0
    }
}

/// The environment of this process.
#[derive(Debug, Default, Clone, Copy)]
pub struct ProcessEnvironment;

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
impl Environment for ProcessEnvironment {
    fn read(&self, name: VariableName<'_>) -> Option<String> {
        std::env::var(name.as_str()).ok()
    }

    fn vars(&self) -> BTreeMap<String, String> {
        std::env::vars_os()
            .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
            .collect()
    }

    fn cwd(&self) -> PathBuf {
        std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."))
    }

    fn executable(&self) -> Option<PathBuf> {
        std::env::current_exe().ok()
    }

    fn home(&self) -> Option<PathBuf> {
        directories::BaseDirs::new().map(|d| d.home_dir().to_path_buf())
    }

    fn config_dir(&self) -> Option<PathBuf> {
        project_dirs().map(|d| d.config_dir().to_path_buf())
    }

    fn state_dir(&self) -> Option<PathBuf> {
        project_dirs().map(|d| d.state_dir().unwrap_or_else(|| d.data_local_dir()).to_path_buf())
    }

    fn cache_dir(&self) -> Option<PathBuf> {
        project_dirs().map(|d| d.cache_dir().to_path_buf())
    }
}

/// Determined once: each look-up asks the system for the user's home.
fn project_dirs() -> Option<&'static directories::ProjectDirs> {
    static FOUND: OnceLock<Option<directories::ProjectDirs>> = OnceLock::new();
    FOUND.get_or_init(|| directories::ProjectDirs::from("", "", "toolhost")).as_ref()
}

/// A fixed environment, for tests and for embedding.
#[derive(Debug, Clone, Default)]
pub struct FixedEnvironment {
    /// The variables, all set and valid UTF-8.
    pub vars: BTreeMap<String, String>,
    /// The working directory that is reported; empty by default.
    pub cwd: PathBuf,
    /// Home, configuration, state and cache directories are below this one.
    pub root: Option<PathBuf>,
}

impl Environment for FixedEnvironment {
    fn read(&self, name: VariableName<'_>) -> Option<String> {
        self.vars.get(name.as_str()).cloned()
    }

    fn keychain(&self, _service: &str, _account: &str) -> Result<Option<Vec<u8>>, KeychainError> {
        Err(KeychainError::NotBuilt)
    }

    fn vars(&self) -> BTreeMap<String, String> {
        self.vars.clone()
    }

    fn cwd(&self) -> PathBuf {
        self.cwd.clone()
    }

    fn executable(&self) -> Option<PathBuf> {
        Some(PathBuf::from("/usr/bin/toolhost"))
    }

    fn home(&self) -> Option<PathBuf> {
        self.root.as_ref().map(|r| r.join("home"))
    }

    fn config_dir(&self) -> Option<PathBuf> {
        self.root.as_ref().map(|r| r.join("config"))
    }

    fn state_dir(&self) -> Option<PathBuf> {
        self.root.as_ref().map(|r| r.join("state"))
    }

    fn cache_dir(&self) -> Option<PathBuf> {
        self.root.as_ref().map(|r| r.join("cache"))
    }
}
