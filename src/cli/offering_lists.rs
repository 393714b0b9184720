//! Shared code of the commands for prompts, resources and templates.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::assembly::Assembly;
use crate::cli::context::{CommandContext, CommandResult, StartScope};
use crate::cli::entry_checks;
use crate::cli::formats;
use crate::cli::output::Format;
use crate::host::offerings::Offerings;
use crate::model::{Diagnostic, Error};
use crate::present::{Line, Page, offerings, plural};

const MAX_DIAGNOSTICS: usize = 20;

pub struct OfferingList<J> {
    pub items_name: &'static str,
    pub item_name: &'static str,
    pub table: Page,
    pub json: J,
    pub names: Vec<String>,
    pub empty_note: &'static str,
}

pub async fn assemble(context: &CommandContext, servers: &[String]) -> Result<Assembly, Error> {
    let assembly =
        context.assemble_attached(StartScope::Servers(servers), "toolhost resources").await?;
    let statuses = assembly.host.servers();
    let names: BTreeSet<&str> = statuses.iter().map(|server| server.name.as_str()).collect();
    entry_checks::require_servers(&assembly.configuration, servers, &names)?;
    Ok(assembly)
}

pub async fn assemble_list(
    context: &CommandContext,
    servers: &[String],
) -> Result<(Format, Assembly), Error> {
    let format = context.format(formats::LIST)?;
    Ok((format, assemble(context, servers).await?))
}

/// Prints a list, and fails with what could not be listed.
pub fn print<T, J: Serialize>(
    context: &CommandContext,
    format: Format,
    shown: &OfferingList<J>,
    all: &Offerings<T>,
) -> CommandResult {
    let output = &context.output;
    match format {
        Format::Json | Format::Yaml => {
            output.value(format, &shown.json)?;
        }
        Format::Names => output.names(shown.names.iter())?,
        _ => {
            output.page(&shown.table)?;
            remarks(context, &all.diagnostics);
            let count = plural(shown.names.len(), shown.item_name, shown.items_name);
            if shown.names.is_empty() {
                let more = if all.servers.iter().any(|server| server.error.is_none()) {
                    shown.empty_note
                } else if !all.servers.is_empty() {
                    "" // the error that follows says why
                } else if context.global.rare.profile.is_some() {
                    "; the profile contains no servers"
                } else {
                    ": no servers configured; add one under mcp_servers in mcp.yaml"
                };
                output.note(&Line::plain(format!("{count}{more}")));
            } else if output.is_terminal() {
                output.note(&Line::plain(count));
            }
        }
    }
    offerings::verdict(all).map_or(Ok(()), |error| Err(error.into()))
}

fn remarks(context: &CommandContext, problems: &[Diagnostic]) {
    let most = if context.output.verbosity() > 0 { usize::MAX } else { MAX_DIAGNOSTICS };
    for problem in problems.iter().take(most) {
        let owner = problem.entry.as_deref().unwrap_or_default();
        context.output.warn(&format!("{owner}: {}", problem.message));
    }
    if let Some(hidden @ 1..) = problems.len().checked_sub(most) {
        let count = plural(hidden, "more warning", "more warnings");
        context.output.note(&Line::plain(format!("{count}, -v shows all")));
    }
}
