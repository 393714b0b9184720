//! `toolhost config`.

use clap::{Args, Subcommand, ValueEnum};

use crate::assembly;
use crate::cli::context::{Context, Outcome, count};
use crate::cli::output::{Format, Line};
use crate::cli::views::configuration;
use crate::config::schema;
use crate::model::Fault;

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
    /// Show every entry with its place; secrets are masked.
    Show,
    /// Show where files were looked for and which were read.
    Paths,
    /// Print the JSON Schema of a file.
    Schema {
        /// The file
        #[arg(value_enum, default_value_t)]
        file: SchemaOf,
    },
}

/// The files that have a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum SchemaOf {
    /// tools.yaml
    #[default]
    Tools,
    /// mcp.yaml
    Mcp,
}

/// Runs the command.
///
/// # Errors
/// What is wrong with the configuration.
pub fn run(args: &ConfigArgs, context: &Context) -> Outcome {
    let door = &context.door;
    let format = context.format(&[Format::Text, Format::Json, Format::Yaml])?;
    if let ConfigAction::Schema { file } = args.action {
        let schema = match file {
            SchemaOf::Tools => schema::tools_file(&assembly::kind_words()),
            SchemaOf::Mcp => schema::servers_file(),
        };
        return door.value(format, &schema);
    }
    let assembly = context.build()?;
    let loaded = &assembly.configuration;
    let text = format == Format::Text;
    match args.action {
        ConfigAction::Show if text => door.page(&configuration::page(loaded)),
        ConfigAction::Show => door.value(format, &configuration::json(loaded)),
        ConfigAction::Paths if text => {
            door.page(&configuration::paths(loaded, &*context.environment))
        }
        ConfigAction::Paths => {
            door.value(format, &configuration::paths_json(loaded, &*context.environment))
        }
        ConfigAction::Check | ConfigAction::Schema { .. } => {
            if text {
                door.page(&configuration::findings(&loaded.problems))?;
            } else {
                door.value(format, &configuration::findings_json(&loaded.problems))?;
            }
            let (errors, warnings) = count(loaded);
            let tally = configuration::tally(errors, warnings);
            if errors > 0 || (context.global.strict && warnings > 0) {
                return Err(Fault::config(format!("{tally} in the configuration")).into());
            }
            let entries = loaded.tools.len() + loaded.servers.len();
            door.note(&Line::plain(format!("{entries} entries, {tally}")));
            Ok(())
        }
    }
}
