//! What the commands about prompts, resources and templates have in common.
//!
//! Owns: how such a list is printed in each format. Never does: ask a server.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::assembly::Assembly;
use crate::cli::context::{Context, Outcome, Starts, plural};
use crate::cli::entries;
use crate::cli::output::{Format, Line, Page};
use crate::cli::views::offers as views;
use crate::host::offers::Offerings;
use crate::model::{Fault, Problem};

/// How many findings are told.
const TOLD: usize = 20;

/// One list in each of its forms.
pub struct Shown {
    /// What it is called in JSON, and in words when there are several.
    pub field: &'static str,
    /// One item, in words.
    pub one: &'static str,
    /// As a table.
    pub table: Page,
    /// Each item in JSON.
    pub json: Vec<Value>,
    /// What each item is asked for by.
    pub names: Vec<String>,
    /// What is said when nothing is listed.
    pub more: &'static str,
}

/// Builds the host for a command that asks the named servers, or all.
///
/// # Errors
/// As [`Context::assemble`]; and a server that is not there.
pub async fn assemble(context: &Context, servers: &[String]) -> Result<Assembly, Fault> {
    let assembly = context.assemble(Starts::Servers(servers)).await?;
    let known = assembly.host.servers();
    let known: BTreeSet<&str> = known.iter().map(|server| server.name.as_str()).collect();
    entries::expect_servers(&assembly.configuration, servers, &known)?;
    Ok(assembly)
}

/// The same for a list, with the format it is printed in.
///
/// # Errors
/// As [`assemble`]; and a format that lists do not have.
pub async fn begin(context: &Context, servers: &[String]) -> Result<(Format, Assembly), Fault> {
    use Format::{Json, Names, Table, Text, Yaml};
    let format = context.format(&[Text, Table, Json, Yaml, Names])?;
    Ok((format, assemble(context, servers).await?))
}

/// Prints a list, and ends with what could not be listed.
///
/// # Errors
/// What could not be listed, after everything has been printed.
pub fn print<T>(context: &Context, format: Format, shown: &Shown, all: &Offerings<T>) -> Outcome {
    let door = &context.door;
    match format {
        Format::Json | Format::Yaml => {
            door.value(format, &views::listing(shown.field, &shown.json, all))?;
        }
        Format::Names => {
            let mut page = Page::default();
            for name in &shown.names {
                page.push(Line::plain(name));
            }
            door.page(&page)?;
        }
        _ => {
            door.page(&shown.table)?;
            remarks(context, &all.problems);
            let count = plural(shown.names.len(), shown.one, shown.field);
            if shown.names.is_empty() {
                let more = if all.servers.is_empty() {
                    "; no server is configured, they are declared in mcp.yaml"
                } else {
                    shown.more
                };
                door.note(&Line::plain(format!("{count}{more}")));
            } else if door.is_terminal() {
                door.note(&Line::plain(count));
            }
        }
    }
    views::verdict(all).map_or(Ok(()), |fault| Err(fault.into()))
}

/// What was left out of the lists.
fn remarks(context: &Context, problems: &[Problem]) {
    let most = if context.door.verbosity() > 0 { usize::MAX } else { TOLD };
    for problem in problems.iter().take(most) {
        let owner = problem.entry.as_deref().unwrap_or_default();
        context.door.warn(&format!("{owner}: {}", problem.message));
    }
    if let Some(hidden @ 1..) = problems.len().checked_sub(most) {
        let count = plural(hidden, "more warning", "more warnings");
        context.door.note(&Line::plain(format!("{count}, -v shows all")));
    }
}
