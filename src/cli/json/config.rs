//! The JSON of `config check`, `config show` and `config paths`.

use crate::util::shape::shape;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::error::DiagnosticJson;
use crate::config::environment::Environment;
use crate::config::show::ConfigValue;
use crate::config::spec::{Configuration, LoadedFile};
use crate::model::Diagnostic;
use crate::present::configuration;

shape! {
    /// Problems in the configuration: `config check`.
    pub ConfigCheckJson<'a> of diagnostics: &'a [Diagnostic], with {
        let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
    } {
        /// Every diagnostic, in the order of the files.
        problems: Vec<DiagnosticJson<'a>> = diagnostics.iter().map(Into::into).collect(),
        /// The number of errors.
        errors: usize = errors,
        /// The number of warnings.
        warnings: usize = diagnostics.len() - errors,
    }
}

/// Every value of the configuration: `config show`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConfigValuesJson<'a> {
    /// The values, in order of precedence.
    values: Vec<ConfigValueJson<'a>>,
}

shape! {
    /// A value and its location.
    pub ConfigValueJson<'a> of value: &'a ConfigValue {
        /// Its path, such as `tools.calculator.timeout`.
        path: &'a str = &value.path,
        /// The value; literal secrets are shown as `***`.
        value: Value = serde_json::from_str(&value.value).unwrap_or_default(),
        /// The file it is in.
        file: String = value.location.file.display().to_string(),
        /// The line, from 1.
        line: u32 = value.location.line,
        /// The column, from 1.
        column: u32 = value.location.column,
        /// How the file was found, such as `project` or `user`.
        layer: &'static str = configuration::layer_name(value.layer),
        /// Whether it is used: false when a file with higher precedence has an entry of the same name.
        used: bool = !value.is_shadowed,
    }
}

impl<'a> From<&'a [ConfigValue]> for ConfigValuesJson<'a> {
    fn from(values: &'a [ConfigValue]) -> Self {
        Self { values: values.iter().map(Into::into).collect() }
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
            files: configuration.files.iter().map(Into::into).collect(),
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

shape! {
    /// A file that was read.
    pub ConfigFileJson of file: &LoadedFile {
        path: String = file.path.display().to_string(),
        /// `tools` or `servers`.
        role: &'static str = configuration::role_name(file.role),
        /// How it was found.
        layer: &'static str = configuration::layer_name(file.layer),
    }
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
