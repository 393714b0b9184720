//! `toolhost config`: checking and showing the configuration.

use std::sync::LazyLock;

use clap::builder::PossibleValue;
use serde_json::Value;

use super::prelude::*;
use crate::assembly::{self, Assembly};
use crate::cli::json::config::{ConfigCheckJson, ConfigPathsJson, ConfigValuesJson};
use crate::cli::json::schema::OutputSchema;
use crate::config::environment::Environment;
use crate::config::{schema, show, suite};
use crate::host::request::ListScope;
use crate::model::Diagnostic;
use crate::present::configuration;
use crate::present::configuration::count_diagnostics;

/// Check and show the configuration.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::REPORT))]
pub struct ConfigArgs {
    /// What to do with the configuration.
    #[command(subcommand)]
    pub action: ConfigAction,
}

/// The settings of the console, which are not part of the tool configuration.
#[derive(Debug, Clone, Copy)]
pub struct ConsoleFile {
    pub check: fn(&dyn Environment) -> Vec<Diagnostic>,
    pub schema: fn() -> Value,
}

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigAction {
    /// List every problem with its location; exit with 9 on errors.
    Check,
    /// Show every value with its location; secrets are masked.
    Show,
    /// Show where configuration is looked for and which files were read.
    Paths,
    /// Print the JSON Schema of a file, or of what a command prints with --json.
    Schema {
        /// tools, mcp or console for the files, or a command
        #[arg(value_name = "NAME", value_enum, default_value_t)]
        of: SchemaSubject,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SchemaSubject {
    #[default]
    Tools,
    Mcp,
    Console,
    Tests,
    Output(OutputSchema),
}

impl ValueEnum for SchemaSubject {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<SchemaSubject>> = LazyLock::new(|| {
            let outputs = OutputSchema::value_variants().iter().copied().map(SchemaSubject::Output);
            let files = [
                SchemaSubject::Tools,
                SchemaSubject::Mcp,
                SchemaSubject::Console,
                SchemaSubject::Tests,
            ];
            files.into_iter().chain(outputs).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Tools => Some(PossibleValue::new("tools").help("tools.yaml")),
            Self::Mcp => Some(PossibleValue::new("mcp").help("mcp.yaml")),
            Self::Console => Some(PossibleValue::new("console").help("console.yaml")),
            Self::Tests => Some(PossibleValue::new("tests").help("files of 'toolhost test'")),
            Self::Output(output) => output.to_possible_value(),
        }
    }
}

pub async fn run(args: &ConfigArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::REPORT)?;
    match args.action {
        ConfigAction::Check => check(context, format).await?,
        ConfigAction::Show => {
            let values = show::show(&context.load_request(), &*context.environment);
            let value = ConfigValuesJson::from(values.as_slice());
            context.output.report(format, &value, || configuration::values(&values))?;
        }
        ConfigAction::Paths => {
            let loaded = context.load();
            let environment = &*context.environment;
            let value = ConfigPathsJson::new(&loaded, environment);
            let page = || configuration::paths(&loaded, environment);
            context.output.report(format, &value, page)?;
        }
        ConfigAction::Schema { of } => {
            let schema = match of {
                SchemaSubject::Tools => schema::tools_file(&assembly::kind_words()),
                SchemaSubject::Mcp => schema::servers_file(),
                SchemaSubject::Console => {
                    context.console_file.map(|console| (console.schema)()).unwrap_or_default()
                }
                SchemaSubject::Tests => suite::schema(),
                SchemaSubject::Output(output) => output.schema(),
            };
            // A schema is JSON in any format.
            let format = if format == Format::Yaml { format } else { Format::Json };
            context.output.value(format, &schema)?;
        }
    }
    Ok(())
}

/// What is wrong with a configuration, as far as that shows without starting anything: in its files,
/// and in the list of the tools that they declare.
pub(super) async fn diagnostics(assembly: &Assembly) -> Vec<Diagnostic> {
    let mut diagnostics = assembly.configuration.diagnostics.clone();
    // Problems found while reading the files are reported once.
    let noticed: Vec<_> =
        diagnostics.iter().map(|diagnostic| diagnostic.location.clone()).collect();
    let schemas = schema::check_schemas(&assembly.configuration).into_iter();
    diagnostics.extend(schemas.filter(|new| !noticed.contains(&new.location)));
    let listed = assembly.host.catalogue(&ListScope::Declared).await.diagnostics.into_iter();
    diagnostics.extend(listed.filter(|new| !noticed.contains(&new.location)));
    diagnostics
}

async fn check(context: &CommandContext, format: Format) -> CommandResult {
    // Providers find further problems when they are built.
    let assembly = context.build()?;
    let diagnostics = diagnostics(&assembly).await;
    let mut loaded = assembly.configuration;
    loaded.diagnostics = diagnostics;
    if let Some(console) = context.console_file {
        loaded.diagnostics.extend((console.check)(&*context.environment));
    }
    // Sorted by location in the files, whichever pass found them.
    loaded.diagnostics.sort_by_cached_key(|diagnostic| {
        diagnostic.location.as_ref().map(|place| (place.file.clone(), place.line, place.column))
    });
    let diagnostics = loaded.diagnostics.as_slice();
    let value = ConfigCheckJson::from(diagnostics);
    context.output.report(format, &value, || configuration::findings(diagnostics))?;
    // Untrusted entries were not resolved, so problems that only show then are unknown.
    if let (Format::Text, Some(first)) = (format, loaded.untrusted.first()) {
        let count = plural(loaded.untrusted.len(), "entry is", "entries are");
        let note = format!("{count} not trusted and not checked; see: {}", first.trust_command);
        context.output.note(note);
    }
    let (errors, warnings) = count_diagnostics(&loaded);
    let tally = configuration::diagnostic_counts(errors, warnings);
    if errors > 0 || (context.global.rare.strict && warnings > 0) {
        return Err(Error::config(format!("{tally} in the configuration")).into());
    }
    let entries = plural(loaded.tools.len() + loaded.servers.len(), "entry", "entries");
    if format == Format::Text {
        context.output.note(format!("{entries}, {tally}"));
    }
    Ok(())
}
