//! `toolhost config`.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::Value;

use crate::assembly;
use crate::bench;
use crate::cli::context::{CommandContext, CommandResult, count_diagnostics, plural};
use crate::cli::output::{Format, StyledLine, StyledPage};
use crate::cli::views::configuration as view;
use crate::config::{schema, show};
use crate::model::Error;

/// Check and show the configuration.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// What to do with it.
    #[command(subcommand)]
    pub action: ConfigAction,
}

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigAction {
    /// List every problem with its place; exit with 9 when there is an error.
    Check,
    /// Show every value with its place; secrets are masked.
    Show,
    /// Show where files were looked for and which were read.
    Paths,
    /// Print the JSON Schema of a file.
    Schema {
        /// The file
        #[arg(value_enum, default_value_t)]
        file: SchemaKind,
    },
}

/// The files that have a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum SchemaKind {
    /// tools.yaml
    #[default]
    Tools,
    /// mcp.yaml
    Mcp,
    /// What `bench --json` prints and `bench --save` writes
    Bench,
}

/// Runs the command.
///
/// # Errors
/// What is wrong with the configuration.
pub fn run(args: &ConfigArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(&[Format::Text, Format::Json, Format::Yaml])?;
    match args.action {
        ConfigAction::Check => check(context, format),
        ConfigAction::Show => {
            let values = show::show(&context.load_request(), &*context.environment);
            print(context, format, || view::values(&values), || view::values_json(&values))
        }
        ConfigAction::Paths => {
            let loaded = context.load();
            let environment = &*context.environment;
            let page = || view::paths(&loaded, environment);
            print(context, format, page, || view::paths_json(&loaded, environment))
        }
        ConfigAction::Schema { file } => {
            let schema = match file {
                SchemaKind::Tools => schema::tools_file(&assembly::kind_words()),
                SchemaKind::Mcp => schema::servers_file(),
                SchemaKind::Bench => bench::json::schema(),
            };
            // A schema is JSON whatever it is asked for as.
            let format = if format == Format::Yaml { format } else { Format::Json };
            context.output.value(format, &schema)
        }
    }
}

fn check(context: &CommandContext, format: Format) -> CommandResult {
    // The kinds find problems of their own when they are built.
    let mut loaded = context.build()?.configuration;
    loaded.diagnostics.extend(schema::check_schemas(&loaded));
    // In the order of the files, whoever found them.
    loaded.diagnostics.sort_by_cached_key(|problem| {
        problem.location.as_ref().map(|place| (place.file.clone(), place.line, place.column))
    });
    let problems = &loaded.diagnostics;
    print(context, format, || view::findings(problems), || view::findings_json(problems))?;
    // What only their resolution would show is not known of them.
    if let (Format::Text, Some(first)) = (format, loaded.untrusted.first()) {
        let count = plural(loaded.untrusted.len(), "entry is", "entries are");
        let note = format!("{count} not trusted and not checked; see: {}", first.trust_command);
        context.output.note(&StyledLine::plain(note));
    }
    let (errors, warnings) = count_diagnostics(&loaded);
    let tally = view::diagnostic_counts(errors, warnings);
    if errors > 0 || (context.global.strict && warnings > 0) {
        return Err(Error::config(format!("{tally} in the configuration")).into());
    }
    let entries = plural(loaded.tools.len() + loaded.servers.len(), "entry", "entries");
    if format == Format::Text {
        context.output.note(&StyledLine::plain(format!("{entries}, {tally}")));
    }
    Ok(())
}

fn print(
    context: &CommandContext,
    format: Format,
    page: impl FnOnce() -> StyledPage,
    value: impl FnOnce() -> Value,
) -> CommandResult {
    match format {
        Format::Text => context.output.page(&page()),
        _ => context.output.value(format, &value()),
    }
}
