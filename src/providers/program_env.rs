//! The environment of a program that an entry starts: built from an explicit list of names.

use std::collections::BTreeMap;

use crate::config::environment::Environment;
use crate::config::expanded::ExpandedValues;
use crate::config::node::{ConfigKey, ConfigNode};
use crate::model::Diagnostic;

/// The variables of our own environment that every program of an entry gets, if set.
const INHERITED_VARIABLES: [&str; 10] =
    ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL", "TERM"];

pub(super) fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

/// The variables an entry sets under `env`.
pub(super) fn read_env(entry: &ConfigNode) -> Result<BTreeMap<String, String>, Diagnostic> {
    let Some(node) = entry.get("env") else { return Ok(BTreeMap::new()) };
    let mut env = BTreeMap::new();
    for (key, value) in node.as_map()? {
        let text = value.as_scalar_text()?;
        if !is_variable(&key.text) || text.contains('\0') {
            return Err(Diagnostic::error(format!(
                "'{}' cannot be an environment variable",
                key.text
            ))
            .with_location(node.location_of(key)));
        }
        env.insert(key.text.clone(), text);
    }
    Ok(env)
}

/// The environment of every run: the allow-list, `env_keys`, the entry's `env`.
pub(super) fn build_env(
    env: &BTreeMap<String, String>,
    env_keys: &[String],
    environment: &dyn Environment,
    expanded: &ExpandedValues,
) -> BTreeMap<String, String> {
    let own = INHERITED_VARIABLES.into_iter().map(|key| (key, environment.var(key)));
    let named = env_keys.iter().map(|key| (key.as_str(), environment.expand(key, expanded)));
    let all = own.chain(named).filter_map(|(key, value)| Some((key.to_owned(), value?)));
    let mut all: BTreeMap<String, String> = all.collect();
    all.extend(env.iter().map(|(key, value)| (key.clone(), value.clone())));
    all
}

pub(super) fn env_as_written(entry: &ConfigNode) -> Vec<(String, String)> {
    let pairs = entry.get("env").map(ConfigNode::entries).unwrap_or_default();
    let pair = |(key, value): &(ConfigKey, ConfigNode)| {
        Some((key.text.clone(), value.as_scalar_text().ok()?))
    };
    pairs.iter().filter_map(pair).collect()
}
