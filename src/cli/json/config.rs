//! The JSON of `config check`, `config show` and `config paths`.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::error::DiagnosticJson;
use crate::config::environment::Environment;
use crate::config::show::ConfigValue;
use crate::config::spec::Configuration;
use crate::model::Diagnostic;

/// Problems in the configuration: `config check`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConfigCheckJson<'a> {
    /// Every diagnostic, in the order of the files.
    problems: Vec<DiagnosticJson<'a>>,
    /// The number of errors.
    errors: usize,
    /// The number of warnings.
    warnings: usize,
}

impl<'a> From<&'a [Diagnostic]> for ConfigCheckJson<'a> {
    fn from(diagnostics: &'a [Diagnostic]) -> Self {
        let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
        Self {
            problems: diagnostics.iter().map(Into::into).collect(),
            errors,
            warnings: diagnostics.len() - errors,
        }
    }
}

/// Every value of the configuration: `config show`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConfigValuesJson<'a> {
    /// The values, in order of precedence.
    values: Vec<ConfigValueJson<'a>>,
}

/// A value and its location.
#[derive(Debug, Serialize, JsonSchema)]
struct ConfigValueJson<'a> {
    /// Its path, such as `tools.calculator.timeout`.
    path: &'a str,
    /// The value; literal secrets are shown as `***`.
    value: Value,
    /// The file it is in.
    file: String,
    /// The line, from 1.
    line: u32,
    /// The column, from 1.
    column: u32,
    /// How the file was found, such as `project` or `user`.
    layer: &'static str,
    /// Whether it is used: false when a file with higher precedence has an entry of the same name.
    used: bool,
}

impl<'a> From<&'a [ConfigValue]> for ConfigValuesJson<'a> {
    fn from(values: &'a [ConfigValue]) -> Self {
        let value = |value: &'a ConfigValue| ConfigValueJson {
            path: &value.path,
            value: serde_json::from_str(&value.value).unwrap_or_default(),
            file: value.location.file.display().to_string(),
            line: value.location.line,
            column: value.location.column,
            layer: crate::present::configuration::layer_name(value.layer),
            used: !value.is_shadowed,
        };
        Self { values: values.iter().map(value).collect() }
    }
}

/// Where toolhost looked for files, and which it read: `config paths`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConfigPathsJson {
    /// The files that were read, highest precedence first.
    files: Vec<ConfigFileJson>,
    /// The places that were searched.
    searched: Vec<String>,
    /// The directories of this user.
    directories: ConfigDirectoriesJson,
}

impl ConfigPathsJson {
    pub fn new(configuration: &Configuration, environment: &dyn Environment) -> Self {
        let show = |path: Option<std::path::PathBuf>| path.map(|path| path.display().to_string());
        Self {
            files: configuration
                .files
                .iter()
                .map(|file| ConfigFileJson {
                    path: file.path.display().to_string(),
                    role: crate::present::configuration::role_name(file.role),
                    layer: crate::present::configuration::layer_name(file.layer),
                })
                .collect(),
            searched: configuration
                .searched
                .iter()
                .map(|path| path.display().to_string())
                .collect(),
            directories: ConfigDirectoriesJson {
                cache: show(environment.cache_dir()),
                configuration: show(environment.config_dir()),
                state: show(environment.state_dir()),
            },
        }
    }
}

/// A file that was read.
#[derive(Debug, Serialize, JsonSchema)]
struct ConfigFileJson {
    path: String,
    /// `tools` or `servers`.
    role: &'static str,
    /// How it was found.
    layer: &'static str,
}

/// The directories of this user; null where there is no home directory.
#[derive(Debug, Serialize, JsonSchema)]
struct ConfigDirectoriesJson {
    /// Cached names for completion and protocol eras.
    cache: Option<String>,
    /// The user's own files.
    configuration: Option<String>,
    /// Audit log, history, statistics, pins and trust.
    state: Option<String>,
}
