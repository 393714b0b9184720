//! JSON Schemas of the `--json` outputs, derived from the types.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

use super::call::{CallJson, DryRunJson};
use super::error::{ErrorLineJson, FileChangeJson};
use super::offerings::{
    PromptMessagesJson, PromptsJson, ResourceContentsJson, ResourceUpdateJson, ResourcesJson,
    TemplatesJson,
};
use super::server::{ServerDetailJson, ServersJson};
use super::stats::StatsJson;
use super::tool::{ListJson, ToolDetailJson};
use crate::bench::json::RunJson;
use crate::cli::commands::audit::AuditedCallJson;
use crate::cli::commands::auth::{LoginJson, LoginsJson};
use crate::cli::commands::breakpoint::BreakpointsJson;
use crate::cli::commands::config::{ConfigCheckJson, ConfigPathsJson, ConfigValuesJson};
use crate::cli::commands::connect::ClientsJson;
use crate::cli::commands::doctor::DoctorJson;
use crate::cli::commands::history::diff::HistoryDiffJson;
use crate::cli::commands::hosts::{EndedHostsJson, HostsJson, StartedHostJson};
use crate::cli::commands::import::EditorFilesJson;
use crate::cli::commands::list::TokenCostsJson;
use crate::cli::commands::pin::PinReportJson;
use crate::cli::commands::run::SavedCallsJson;
use crate::cli::commands::serve_token::{NewTokenJson, TokenListJson};
use crate::cli::commands::test::TestReport;
use crate::cli::commands::trust::TrustListJson;
use crate::history::json::{HistoryCallJson, HistoryDetailJson};
use crate::model::{Completion, TraceRow};

/// The commands whose output has a schema, and the shapes that each prints.
macro_rules! outputs {
    ($(#[doc = $help:literal] $name:literal, $command:literal: $($shape:ty),+;)+) => {
        pub const OUTPUTS: &[OutputSchema] = &[$(OutputSchema {
            name: $name,
            help: $help,
            command: $command,
            shapes: &[$((
                SchemaGenerator::root_schema_for::<$shape>,
                SchemaGenerator::subschema_for::<$shape>,
            )),+],
        },)+];
    };
}

outputs! {
    /// list --json, with and without --tokens
    "list", "list": ListJson<'_>, TokenCostsJson<'_>;
    /// inspect --json, of a tool or a server
    "inspect", "inspect": ToolDetailJson<'_>, ServerDetailJson<'_>;
    /// call --json, with and without --dry-run; history rerun too
    "call", "call": CallJson<'_>, DryRunJson<'_>;
    /// run --json without a name: the saved calls
    "run", "run": SavedCallsJson<'_>;
    /// doctor --json
    "doctor", "doctor": DoctorJson<'_>;
    /// bench --json and bench --save
    "bench", "bench": RunJson<'_>;
    /// servers --json
    "servers", "servers": ServersJson<'_>;
    /// history --json: the list, show and diff
    "history", "history": Vec<HistoryCallJson<'_>>, HistoryDetailJson<'_>, HistoryDiffJson<'_>;
    /// stats --json
    "stats", "stats": StatsJson<'_>;
    /// audit --json
    "audit", "audit": Vec<AuditedCallJson<'_>>, AuditedCallJson<'_>;
    /// test --json
    "test", "test": TestReport;
    /// resources --json: list, read and watch
    "resources", "resources":
        ResourcesJson<'_>, TemplatesJson<'_>, ResourceContentsJson<'_>, ResourceUpdateJson<'_>;
    /// prompts --json: list and get
    "prompts", "prompts": PromptsJson<'_>, PromptMessagesJson<'_>;
    /// complete --json
    "complete", "complete": Completion;
    /// trace --json, a line
    "trace", "trace": TraceRow;
    /// pin --json
    "pin", "pin": PinReportJson<'_>;
    /// verify --json
    "verify", "verify": PinReportJson<'_>;
    /// up, ps and down --json
    "hosts", "ps": HostsJson<'_>, StartedHostJson<'_>, EndedHostsJson;
    /// break --json
    "break", "break": BreakpointsJson<'_>;
    /// trust --json, of the projects that it is about: trust, list and revoke
    "trust", "trust": TrustListJson<'_>;
    /// add, remove and disconnect --json
    "change", "add": FileChangeJson<'_>;
    /// connect --json, with and without --list
    "connect", "connect": ClientsJson<'_>, FileChangeJson<'_>;
    /// import --json, with and without an editor
    "import", "import": FileChangeJson<'_>, EditorFilesJson<'_>;
    /// auth --json: list and login
    "auth", "auth": LoginsJson<'_>, LoginJson<'_>;
    /// serve token --json: issue, list and revoke
    "serve-token", "serve token": TokenListJson<'_>, NewTokenJson<'_>;
    /// config --json: check, show and paths
    "config", "config": ConfigCheckJson<'_>, ConfigValuesJson<'_>, ConfigPathsJson;
    /// The line on stderr when a command fails under --json
    "error", "COMMAND": ErrorLineJson<'_>;
}

type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

#[derive(Debug)]
pub struct OutputSchema {
    pub name: &'static str,
    pub help: &'static str,
    command: &'static str,
    /// What makes the schema of each shape: as a whole, and as a part of another.
    shapes: &'static [(MakeSchema, MakeSchema)],
}

impl OutputSchema {
    /// The schema (draft 2020-12). Future versions may add fields to the output.
    pub fn schema(&self) -> Value {
        let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
        let mut schema = if let [(whole, _)] = self.shapes {
            whole(&mut generator).to_value()
        } else {
            let any: Vec<Schema> =
                self.shapes.iter().map(|(_, part)| part(&mut generator)).collect();
            json!({
                "$schema": generator.settings().meta_schema,
                "description": self.help.trim(),
                "anyOf": any,
                "$defs": generator.take_definitions(true),
            })
        };
        schema["title"] = format!("toolhost {} --json", self.command).into();
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_is_one_and_says_what_each_field_is() {
        for output in OUTPUTS {
            let schema = output.schema();
            jsonschema::meta::validate(&schema).unwrap();
            let validator = jsonschema::validator_for(&schema).unwrap();
            assert!(!validator.is_valid(&Value::from(7)), "{} allows anything", output.name);
            assert!(schema["description"].is_string(), "{}", output.name);
        }
    }
}
