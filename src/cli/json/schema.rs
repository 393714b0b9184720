//! JSON Schemas of the `--json` outputs, derived from the types.

use clap::ValueEnum;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use super::audit::AuditedCallJson;
use super::auth::{LoginJson, LoginsJson};
use super::background::{EndedHostsJson, HostsJson, StartedHostJson};
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
use crate::history::json::{HistoryCallJson, HistoryDetailJson};
use crate::model::Completion;

/// The commands whose output has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputSchema {
    /// list --json, with and without --tokens
    List,
    /// inspect --json, of a tool or a server
    Inspect,
    /// call --json, with and without --dry-run; history rerun too
    Call,
    /// run --json without a name: the saved calls
    Run,
    /// doctor --json
    Doctor,
    /// bench --json and bench --save
    Bench,
    /// servers --json
    Servers,
    /// history --json: the list, show and diff
    History,
    /// stats --json
    Stats,
    /// audit --json
    Audit,
    /// resources --json: list, read and watch
    Resources,
    /// prompts --json: list and get
    Prompts,
    /// complete --json
    Complete,
    /// trace --json, a line
    Trace,
    /// pin --json
    Pin,
    /// verify --json
    Verify,
    /// up, ps and down --json
    Hosts,
    /// trust list --json
    Trust,
    /// auth --json: list and login
    Auth,
    /// serve token --json: issue, list and revoke
    ServeToken,
    /// config --json: check, show and paths
    Config,
    /// The line on stderr when a command fails under --json
    Error,
}

impl OutputSchema {
    /// The schema (draft 2020-12). Future versions may add fields to the output.
    pub fn schema(self) -> Value {
        match self {
            Self::List => of::<ListOrCostsJson<'_>>("list"),
            Self::Inspect => of::<InspectJson<'_>>("inspect"),
            Self::Call => of::<CallOrDryRunJson<'_>>("call"),
            Self::Run => of::<SavedCallsJson<'_>>("run"),
            Self::Doctor => of::<DoctorJson<'_>>("doctor"),
            Self::Bench => of::<RunJson<'_>>("bench"),
            Self::Servers => of::<ServersJson<'_>>("servers"),
            Self::History => of::<HistoryJson<'_>>("history"),
            Self::Stats => of::<StatsJson<'_>>("stats"),
            Self::Audit => of::<AuditJson<'_>>("audit"),
            Self::Resources => of::<ResourcesOutputJson<'_>>("resources"),
            Self::Prompts => of::<PromptsOutputJson<'_>>("prompts"),
            Self::Complete => of::<Completion>("complete"),
            Self::Trace => of::<TraceRow>("trace"),
            Self::Pin => of::<PinReportJson<'_>>("pin"),
            Self::Verify => of::<PinReportJson<'_>>("verify"),
            Self::Hosts => of::<BackgroundJson<'_>>("ps"),
            Self::Trust => of::<TrustListJson<'_>>("trust list"),
            Self::Auth => of::<AuthJson<'_>>("auth"),
            Self::ServeToken => of::<ServeTokenJson<'_>>("serve token"),
            Self::Config => of::<ConfigJson<'_>>("config"),
            Self::Error => of::<ErrorLineJson<'_>>("COMMAND"),
        }
    }
}

fn of<T: JsonSchema>(command: &str) -> Value {
    let mut schema: Schema =
        SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title(command).into());
    schema.to_value()
}

/// What a schema is called.
fn title(command: &str) -> String {
    if command.contains("--") {
        format!("toolhost {command}")
    } else {
        format!("toolhost {command} --json")
    }
}

/// The shapes of commands that print more than one.
macro_rules! either {
    ($($(#[$doc:meta])* $name:ident: $($variant:ident($shape:ty)),+;)+) => {$(
        $(#[$doc])*
        #[derive(JsonSchema)]
        #[serde(untagged)]
        #[expect(dead_code, reason = "only their schema is asked for")]
        enum $name<'a> {
            $($variant(Box<$shape>)),+
        }
    )+};
}

either! {
    /// The catalogue, or with --tokens its cost in tokens.
    ListOrCostsJson: List(ListJson<'a>), Costs(TokenCostsJson<'a>);
    /// A tool or a server.
    InspectJson: Tool(ToolDetailJson<'a>), Server(ServerDetailJson<'a>);
    /// A call, or with --dry-run what it would send. With --query the output is whatever the
    /// expression gives.
    CallOrDryRunJson: Call(CallJson<'a>), DryRun(DryRunJson<'a>);
    /// Calls, newest first; for `show` one call; for `diff` a comparison.
    HistoryJson: List(Vec<HistoryCallJson<'a>>), Show(HistoryDetailJson<'a>),
        Diff(HistoryDiffJson<'a>);
    /// Calls, newest first; with --follow one on each line.
    AuditJson: List(Vec<AuditedCallJson<'a>>), Line(AuditedCallJson<'a>);
    /// Resources, templates, the contents of a resource, or a line of `watch`.
    ResourcesOutputJson: Resources(ResourcesJson<'a>), Templates(TemplatesJson<'a>),
        Read(ResourceContentsJson<'a>), Update(ResourceUpdateJson<'a>);
    /// Prompts, or the messages of one.
    PromptsOutputJson: List(PromptsJson<'a>), Get(PromptMessagesJson<'a>);
    /// The background hosts; for `up` the running one; for `down` those that were stopped.
    BackgroundJson: List(HostsJson<'a>), Up(StartedHostJson<'a>), Down(EndedHostsJson);
    /// All logins, or the new one.
    AuthJson: List(LoginsJson<'a>), Login(LoginJson<'a>);
    /// All tokens, or the new one.
    ServeTokenJson: List(TokenListJson<'a>), Issued(NewTokenJson<'a>);
    /// What `check`, `show` and `paths` print.
    ConfigJson: Check(ConfigCheckJson<'a>), Show(ConfigValuesJson<'a>), Paths(ConfigPathsJson);
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
