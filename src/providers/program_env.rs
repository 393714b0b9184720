//! The environment of a program that an entry starts: built from an explicit list of names.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::environment::Environment;
use crate::config::expanded::ExpandedValues;
use crate::config::node::ConfigNode;
use crate::config::references::PASSED_TO_PROGRAMS;
use crate::config::sandbox::SandboxValue;
use crate::config::typed::{self, Located, Scalar, Texts};
use crate::model::{Diagnostics, Error, ErrorPhase};
use crate::util::process::ResolveError;

pub(super) fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

/// The keys of an entry that starts a program.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
pub(super) struct ProgramKeys {
    /// Environment variables for the program.
    env: Option<BTreeMap<String, Located<Scalar>>>,
    /// Names of environment variables to pass through to the program.
    pub(super) env_keys: Option<Texts>,
    /// What the program may access: a level, or a mapping with details.
    #[expect(dead_code, reason = "its confinement is read with the safety of the entry")]
    #[schemars(with = "Option<SandboxValue>")]
    sandbox: Option<ConfigNode>,
}

impl ProgramKeys {
    pub(super) fn env(&self, diagnostics: &Diagnostics) -> BTreeMap<String, String> {
        for (name, value) in self.env.iter().flatten() {
            if !is_variable(name) || value.0.contains('\0') {
                let message = format!("'{name}' cannot be an environment variable");
                diagnostics.push(value.error(message));
            }
        }
        self.env_as_written().into_iter().collect()
    }

    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        Some(self.env.as_ref()?.get(name)?.0.as_str())
    }

    pub(super) fn env_as_written(&self) -> Vec<(String, String)> {
        let pairs = self.env.iter().flatten();
        pairs.map(|(name, value)| (name.clone(), value.0.clone())).collect()
    }
}

/// The environment of every run: the allow-list, `env_keys`, the entry's `env`.
pub(super) fn build_env(
    env: &BTreeMap<String, String>,
    env_keys: &[String],
    environment: &dyn Environment,
    expanded: &ExpandedValues,
) -> BTreeMap<String, String> {
    let own = PASSED_TO_PROGRAMS.into_iter().map(|key| (key, environment.var(key)));
    let named = env_keys.iter().map(|key| (key.as_str(), environment.expand(key, expanded)));
    let all = own.chain(named).filter_map(|(key, value)| Some((key.to_owned(), value?)));
    let mut all: BTreeMap<String, String> = all.collect();
    all.extend(env.iter().map(|(key, value)| (key.clone(), value.clone())));
    all
}

/// Why a program cannot be started; `start` says where its relative path starts.
pub(super) fn not_found(cause: &ResolveError, start: &str) -> Error {
    let error = Error::unreachable(cause.to_string()).with_phase(ErrorPhase::Start);
    match cause {
        ResolveError::NotInPath { searched, .. } => {
            let searched: Vec<_> = searched.iter().map(|d| d.display().to_string()).collect();
            error
                .with_detail(format!("searched: {}", searched.join(":")))
                .with_hint("install it, or write its full path")
        }
        ResolveError::NotExecutable(file) => {
            error.with_hint(format!("chmod +x {}", file.display()))
        }
        ResolveError::Missing(_) | ResolveError::Directory(_) => error.with_hint(start),
    }
}
