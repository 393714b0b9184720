//! `toolhost export`: tool definitions in a model's format.

use std::collections::BTreeSet;

use super::prelude::*;
use crate::formats::{ExportedCatalogue, ModelFormat};
use crate::util::pattern;

/// Print tool definitions for a model.
///
/// Prints a JSON array in the format of the model's provider. Whatever the format cannot express is
/// reported on stderr. Tools that are unavailable, denied by a rule or differ from their pin are
/// left out.
#[derive(Debug, Args)]
#[command(arg = ad_hoc::command())]
pub struct ExportArgs {
    /// Format of the definitions
    #[arg(long, value_parser = choice(MODEL_FORMATS), required_unless_present = "model")]
    pub format: Option<ModelFormat>,
    /// Model that will call the tools, such as gpt-5, claude-sonnet-4 or gemini-2.5-pro
    #[arg(long, value_name = "NAME", conflicts_with = "format")]
    pub model: Option<String>,
    /// Only tools of this server (repeatable); other servers are not contacted
    #[arg(long, value_name = "NAME", value_parser = ad_hoc::server(), add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
    /// Only tools whose full names match a pattern, such as 'github-*'
    pub patterns: Vec<String>,
}

/// The formats of definitions.
pub(super) const MODEL_FORMATS: &[Choice<ModelFormat>] = &[
    (
        "openai",
        "The Chat Completions API of `OpenAI`, which many providers support",
        ModelFormat::Openai,
    ),
    ("openai-responses", "The Responses API of `OpenAI`", ModelFormat::OpenaiResponses),
    ("anthropic", "The Messages API of Anthropic", ModelFormat::Anthropic),
    ("gemini", "The Gemini API of Google", ModelFormat::Gemini),
    ("mcp", "tools/list of the Model Context Protocol", ModelFormat::Mcp),
];

pub(super) fn chosen_format(
    format: Option<ModelFormat>,
    model: Option<&str>,
) -> Result<ModelFormat, Error> {
    match (format, model) {
        (Some(format), _) => Ok(format),
        (None, Some(model)) => ModelFormat::of_model(model).ok_or_else(|| {
            Error::usage(format!("'{model}' belongs to no known model family"))
                .with_hint("set the format: most providers accept --format openai")
        }),
        (None, None) => Err(Error::usage("specify a format or a model")),
    }
}

pub async fn run(args: &ExportArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::REPORT)?;
    let dialect = chosen_format(args.format, args.model.as_deref())?;
    let scope = match args.server.as_slice() {
        [] => ListScope::Everything,
        servers => ListScope::Servers(servers.to_vec()),
    };
    let assembly =
        context.assemble_attached(StartScope::Servers(&args.server), "toolhost export").await?;
    entry_checks::require_configured(&assembly.configuration, &args.server)?;
    let catalogue = assembly.host.catalogue(&scope).await;
    let offered = assembly.host.offerable_tools(&catalogue);
    // Names are assigned over all tools, so that they do not depend on the selection.
    let mut exported = dialect.export(offered.iter().map(|tool| tool.definition.as_ref()));
    let mut unmatched: BTreeSet<&String> = args.patterns.iter().collect();
    let mut selected = offered.iter().map(|tool| {
        let is_of_server = args.server.is_empty()
            || tool.definition.server().is_some_and(|s| args.server.iter().any(|w| w == s));
        let name = tool.definition.name.full();
        let mut is_selected = is_of_server && args.patterns.is_empty();
        for p in args.patterns.iter().filter(|p| is_of_server && pattern::matches(p, &name)) {
            is_selected = true;
            unmatched.remove(p);
        }
        is_selected
    });
    exported.tools.retain(|_| selected.next().unwrap_or(false));
    drop(selected);
    for pattern in unmatched {
        context.output.warn(&format!("no tool matches '{pattern}'"));
    }
    warn_of_size(&exported, dialect, &context.output);
    warn_of_downgrades(&exported, dialect, &context.output);
    context.output.value(format, &exported.definitions())?;
    if context.output.verbosity() > 0 {
        let count = plural(exported.tools.len(), "tool", "tools");
        context.output.note(format!("{count} in the format {}", dialect.as_str()));
    }
    let broken = assembly.configuration.count_broken_servers(|_| true);
    let answered = !exported.tools.is_empty();
    let failures: Vec<&Error> = catalogue.failures.iter().map(|failure| &failure.error).collect();
    let problems = &*assembly.configuration.diagnostics;
    let problems = if args.server.is_empty() { problems } else { &[] };
    let verdict =
        present::catalogue::whole_verdict(&catalogue, &failures, problems, broken, answered);
    conclude(verdict)
}

fn warn_of_size(exported: &ExportedCatalogue, dialect: ModelFormat, output: &Output) {
    let (count, name) = (exported.tools.len(), dialect.as_str());
    if let Some(most) = dialect.most_tools().filter(|most| count > *most) {
        output.warn(&format!(
            "{count} tools, but a request in the format {name} takes at most {most}; select those \
             you need, such as 'github-*'"
        ));
    }
}

/// Reports what the dialect cannot express: each tool with `-v`, otherwise the number of tools.
fn warn_of_downgrades(exported: &ExportedCatalogue, dialect: ModelFormat, output: &Output) {
    let changed: Vec<_> =
        exported.tools.iter().filter(|tool| !tool.downgrades.is_empty()).collect();
    if output.verbosity() > 0 {
        for tool in changed {
            output.warn(&format!("{}: {}", tool.full_name, tool.downgrades.join("; ")));
        }
    } else if !changed.is_empty() {
        let count = plural(changed.len(), "tool loses", "tools lose");
        let dialect = dialect.as_str();
        output.warn(&format!("{count} details in the format {dialect}; -v shows which"));
    }
}
