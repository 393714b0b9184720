//! What the commands for prompts and resources share.

use super::prelude::*;
use crate::catalogue::query::WordMatcher;
use crate::host::offerings::Offerings;
use crate::model::Diagnostic;

const MAX_DIAGNOSTICS: usize = 20;

/// How a list shows its items.
pub(super) struct ItemList<T> {
    /// One of the items, and several.
    pub nouns: (&'static str, &'static str),
    pub name: fn(&T) -> String,
    /// What a search looks at beside the name.
    pub texts: for<'t> fn(&'t T) -> [Option<&'t str>; 3],
    pub table: fn(&[&T], Option<usize>) -> Page,
    /// What follows the count when there are none.
    pub empty_note: &'static str,
}

pub(super) async fn assemble(
    context: &CommandContext,
    command: &str,
    servers: &[String],
) -> Result<Assembly, Error> {
    let assembly = context.assemble_attached(StartScope::Servers(servers), command).await?;
    entry_checks::require_hosted(&assembly, servers)?;
    if assembly.host.servers().is_empty() && assembly.host.servers_out_of_service().is_empty() {
        entry_checks::require_files(&assembly.configuration)?;
    }
    Ok(assembly)
}

impl<T> ItemList<T> {
    /// Prints the items that match all words of `query`, and fails with what could not be listed.
    pub(super) fn print<'a, J: Serialize>(
        &self,
        all: &'a Offerings<T>,
        query: &[String],
        json: impl FnOnce(&[&'a T]) -> J,
        (format, context): (Format, &CommandContext),
    ) -> CommandResult {
        let matcher = WordMatcher::new(query);
        let matches = |item: &&T| {
            let [first, second, third] = (self.texts)(item);
            matcher.matches(&[Some(&(self.name)(item)), first, second, third])
        };
        let items: Vec<&T> = all.items.iter().filter(matches).collect();
        let output = &context.output;
        let names = items.iter().map(|item| (self.name)(item));
        if output.listing(format, &json(&items), names, || (self.table)(&items, output.width()))? {
            let warning = |problem: &Diagnostic| {
                format!("{}: {}", problem.entry.as_deref().unwrap_or_default(), problem.message)
            };
            let warnings: Vec<String> = all.diagnostics.iter().map(warning).collect();
            warn_some(output, &warnings, MAX_DIAGNOSTICS);
            let count = plural(items.len(), self.nouns.0, self.nouns.1);
            if items.is_empty() {
                let more = if all.servers.iter().any(|server| server.error.is_none()) {
                    self.empty_note
                } else if !all.servers.is_empty() {
                    "" // the error that follows says why
                } else if context.global.rare.profile.is_some() {
                    "; the profile contains no servers"
                } else {
                    ": no servers configured; add one under mcp_servers in mcp.yaml"
                };
                output.note(format!("{count}{more}"));
            } else if output.is_terminal() {
                output.note(count);
            }
        }
        conclude(present::offerings::verdict(all))
    }
}
