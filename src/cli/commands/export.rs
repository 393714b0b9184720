//! `toolhost export`.

use std::collections::BTreeSet;

use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;

use crate::cli::complete;
use crate::cli::context::{CommandContext, CommandResult, StartScope};
use crate::cli::entry_checks;
use crate::cli::output::{Format, Output, plural};
use crate::cli::views;
use crate::formats::{ExportedCatalogue, ModelFormat};
use crate::host::request::ListScope;
use crate::model::Error;
use crate::util::pattern;

/// Print the tools as definitions for a model.
///
/// A JSON array in the format that the provider of the model takes. What the format cannot say of a
/// tool is told on standard error. Tools that are unavailable, refused by a rule or not what was
/// pinned are left out.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The format
    #[arg(long, value_enum, required_unless_present = "model")]
    pub format: Option<FormatArg>,
    /// The model that is to call the tools, such as gpt-5, claude-sonnet-4 or gemini-2.5-pro
    #[arg(long, value_name = "NAME", conflicts_with = "format")]
    pub model: Option<String>,
    /// Only tools of this server, and ask no other one; repeatable
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
    /// Only tools whose full names match one of these patterns, such as 'github-*'
    pub patterns: Vec<String>,
}

/// The formats, as words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// Chat Completions of `OpenAI`, which many providers speak.
    Openai,
    /// Responses of `OpenAI`.
    OpenaiResponses,
    /// Messages of Anthropic.
    Anthropic,
    /// The Gemini API of Google.
    Gemini,
    /// tools/list of the Model Context Protocol.
    Mcp,
}

impl FormatArg {
    /// The format that the word stands for.
    pub fn format(self) -> ModelFormat {
        match self {
            Self::Openai => ModelFormat::Openai,
            Self::OpenaiResponses => ModelFormat::OpenaiResponses,
            Self::Anthropic => ModelFormat::Anthropic,
            Self::Gemini => ModelFormat::Gemini,
            Self::Mcp => ModelFormat::Mcp,
        }
    }
}

/// The format of `--format` or of `--model`.
///
/// # Errors
/// A usage error for a model of no known family.
pub fn chosen_format(format: Option<FormatArg>, model: Option<&str>) -> Result<ModelFormat, Error> {
    match (format, model) {
        (Some(format), _) => Ok(format.format()),
        (None, Some(model)) => ModelFormat::of_model(model).ok_or_else(|| {
            Error::usage(format!("'{model}' is a model of no known family"))
                .with_hint("name the format: --format openai is what most providers take")
        }),
        (None, None) => Err(Error::usage("name a format or a model")),
    }
}

/// Runs the command.
///
/// # Errors
/// Servers that could not be listed, after everything that could has been printed.
pub async fn run(args: &ExportArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(&[Format::Text, Format::Json, Format::Yaml])?;
    let dialect = chosen_format(args.format, args.model.as_deref())?;
    let scope = match args.server.as_slice() {
        [] => ListScope::Everything,
        servers => ListScope::Servers(servers.to_vec()),
    };
    let assembly =
        context.assemble_attached(StartScope::Servers(&args.server), "toolhost export").await?;
    let known: BTreeSet<&str> =
        assembly.configuration.servers.iter().map(|server| server.name.as_str()).collect();
    entry_checks::require_servers(&assembly.configuration, &args.server, &known)?;
    let catalogue = assembly.host.catalogue(&scope).await;
    let offered = assembly.host.offerable_tools(&catalogue);
    let wanted = offered.iter().map(|tool| tool.definition.as_ref()).filter(|tool| {
        let is_of_server = args.server.is_empty()
            || tool.server().is_some_and(|s| args.server.iter().any(|w| w == s));
        let name = tool.name.full();
        is_of_server
            && (args.patterns.is_empty()
                || args.patterns.iter().any(|p| pattern::matches(p, &name)))
    });
    let exported = dialect.export(wanted);
    warn_of_downgrades(&exported, dialect, &context.output);
    let printed = if format == Format::Yaml { Format::Yaml } else { Format::Json };
    context.output.value(printed, &exported.definitions())?;
    if context.output.verbosity() > 0 {
        let count = plural(exported.tools.len(), "tool", "tools");
        context.output.warn(&format!("{count} in the format {}", dialect.as_str()));
    }
    match views::catalogue::verdict(&catalogue, !exported.tools.is_empty()) {
        None => Ok(()),
        Some(error) => Err(error.into()),
    }
}

/// What the dialect cannot say: each tool with `-v`, otherwise how many lose something.
fn warn_of_downgrades(exported: &ExportedCatalogue, dialect: ModelFormat, output: &Output) {
    let changed: Vec<_> =
        exported.tools.iter().filter(|tool| !tool.downgrades.is_empty()).collect();
    if output.verbosity() > 0 {
        for tool in changed {
            output.warn(&format!("{}: {}", tool.full_name, tool.downgrades.join("; ")));
        }
    } else if !changed.is_empty() {
        let count = plural(changed.len(), "tool says", "tools say");
        let dialect = dialect.as_str();
        output.warn(&format!("{count} less in the format {dialect}; -v shows what is left out"));
    }
}
