//! JSON Schemas of the `--json` outputs, derived from the types.

use clap::ValueEnum;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use super::audit::AuditedCallJson;
use super::auth::{LoginJson, LoginsJson};
use super::background::{BreakpointsJson, EndedHostsJson, HostsJson, StartedHostJson};
use super::call::{CallJson, DryRunJson};
use super::config::{ConfigCheckJson, ConfigPathsJson, ConfigValuesJson};
use super::doctor::DoctorJson;
use super::error::ErrorLineJson;
use super::history::HistoryDiffJson;
use super::list::ListJson;
use super::offerings::{
    PromptMessagesJson, PromptsJson, ResourceContentsJson, ResourceUpdateJson, ResourcesJson,
    TemplatesJson,
};
use super::pins::PinReportJson;
use super::saved_calls::SavedCallsJson;
use super::serve_token::{NewTokenJson, TokenListJson};
use super::server::{ServerDetailJson, ServersJson};
use super::stats::StatsJson;
use super::token_costs::TokenCostsJson;
use super::tool::ToolDetailJson;
use super::trust::TrustListJson;
use crate::audit::trace::TraceRow;
use crate::bench::json::RunJson;
use crate::cli::commands::test::TestReport;
use crate::history::json::{HistoryCallJson, HistoryDetailJson};
use crate::model::Completion;

/// The commands whose output has a schema, and the shapes that each prints.
macro_rules! outputs {
    ($($(#[$help:meta])* $name:ident, $command:literal: $($shape:ty),+;)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
        pub enum OutputSchema {
            $($(#[$help])* $name,)+
        }

        impl OutputSchema {
            /// The schema (draft 2020-12). Future versions may add fields to the output.
            pub fn schema(self) -> Value {
                match self {
                    $(Self::$name => self.of($command, &[$(shape::<$shape>()),+]),)+
                }
            }
        }
    };
}

outputs! {
    /// list --json, with and without --tokens
    List, "list": ListJson<'_>, TokenCostsJson<'_>;
    /// inspect --json, of a tool or a server
    Inspect, "inspect": ToolDetailJson<'_>, ServerDetailJson<'_>;
    /// call --json, with and without --dry-run; history rerun too
    Call, "call": CallJson<'_>, DryRunJson<'_>;
    /// run --json without a name: the saved calls
    Run, "run": SavedCallsJson<'_>;
    /// doctor --json
    Doctor, "doctor": DoctorJson<'_>;
    /// bench --json and bench --save
    Bench, "bench": RunJson<'_>;
    /// servers --json
    Servers, "servers": ServersJson<'_>;
    /// history --json: the list, show and diff
    History, "history": Vec<HistoryCallJson<'_>>, HistoryDetailJson<'_>, HistoryDiffJson<'_>;
    /// stats --json
    Stats, "stats": StatsJson<'_>;
    /// audit --json
    Audit, "audit": Vec<AuditedCallJson<'_>>, AuditedCallJson<'_>;
    /// test --json
    Test, "test": TestReport;
    /// resources --json: list, read and watch
    Resources, "resources":
        ResourcesJson<'_>, TemplatesJson<'_>, ResourceContentsJson<'_>, ResourceUpdateJson<'_>;
    /// prompts --json: list and get
    Prompts, "prompts": PromptsJson<'_>, PromptMessagesJson<'_>;
    /// complete --json
    Complete, "complete": Completion;
    /// trace --json, a line
    Trace, "trace": TraceRow;
    /// pin --json
    Pin, "pin": PinReportJson<'_>;
    /// verify --json
    Verify, "verify": PinReportJson<'_>;
    /// up, ps and down --json
    Hosts, "ps": HostsJson<'_>, StartedHostJson<'_>, EndedHostsJson;
    /// break --json
    Break, "break": BreakpointsJson<'_>;
    /// trust list --json
    Trust, "trust list": TrustListJson<'_>;
    /// auth --json: list and login
    Auth, "auth": LoginsJson<'_>, LoginJson<'_>;
    /// serve token --json: issue, list and revoke
    ServeToken, "serve token": TokenListJson<'_>, NewTokenJson<'_>;
    /// config --json: check, show and paths
    Config, "config": ConfigCheckJson<'_>, ConfigValuesJson<'_>, ConfigPathsJson;
    /// The line on stderr when a command fails under --json
    Error, "COMMAND": ErrorLineJson<'_>;
}

/// Makes the schema of a shape, as a whole and as a part of another.
type ShapeSchema = (fn(&mut SchemaGenerator) -> Schema, fn(&mut SchemaGenerator) -> Schema);

fn shape<T: JsonSchema>() -> ShapeSchema {
    (SchemaGenerator::root_schema_for::<T>, SchemaGenerator::subschema_for::<T>)
}

impl OutputSchema {
    fn of(self, command: &str, shapes: &[ShapeSchema]) -> Value {
        let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
        let mut schema = if let [(whole, _)] = shapes {
            whole(&mut generator).to_value()
        } else {
            let any: Vec<Schema> = shapes.iter().map(|(_, part)| part(&mut generator)).collect();
            let about = self.to_possible_value();
            let about = about.as_ref().and_then(|about| about.get_help());
            json!({
                "$schema": generator.settings().meta_schema,
                "description": about.map(ToString::to_string),
                "anyOf": any,
                "$defs": generator.take_definitions(true),
            })
        };
        schema["title"] = format!("toolhost {command} --json").into();
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_is_one_and_says_what_each_field_is() {
        for output in OutputSchema::value_variants() {
            let schema = output.schema();
            jsonschema::meta::validate(&schema).unwrap();
            let validator = jsonschema::validator_for(&schema).unwrap();
            assert!(!validator.is_valid(&Value::from(7)), "{output:?} allows anything");
            assert!(schema["description"].is_string(), "{output:?}");
        }
    }
}
