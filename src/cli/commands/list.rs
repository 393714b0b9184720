//! `toolhost list`: the tools of the catalogue.
//!
//! `toolhost list --tokens`: the size of tool definitions.

use std::collections::{BTreeMap, BTreeSet};

use super::export::MODEL_FORMATS;
use super::prelude::*;
use crate::catalogue::Catalogue;
use crate::catalogue::query::{CatalogueQuery, may_show_entry, may_show_untrusted};
use crate::catalogue::scan::{self, FindingsByTool, ToolNameIndex};
use crate::cli::json::tool::{ListJson, ListedServers};
use crate::cli::usage::UsageReading;
use crate::config::spec::{Configuration, FileRole, ProfileSpec, UntrustedEntry};
use crate::formats::{DefinitionCost, ModelFormat, ToolCost, tool_costs};
use crate::model::{Diagnostic, Safety, ToolDefinition, ToolName, ToolSource, ToolStatus};
use crate::serve::catalogue_server::lean;
use crate::util::units::show_count;

/// The value of `--source` for all internal tools.
const INTERNAL: &str = "internal";
/// The value of `--source` for the tools of all servers.
const MCP: &str = "mcp";

/// List the tools of the catalogue.
///
/// If a server fails, the others are still listed and the exit code is 11.
#[derive(Debug, Clone, Args)]
#[command(arg = formats::option(formats::LIST), arg = ad_hoc::command())]
pub struct ListArgs {
    /// Only tools whose name, title or description contains these words
    pub query: Vec<String>,
    /// Only tools from this source: internal, mcp, or a kind or server as in the SOURCE column
    #[arg(long, value_name = "internal|mcp|SOURCE", add = ArgValueCompleter::new(complete::servers))]
    pub source: Option<String>,
    /// Only tools of this server (repeatable); other servers are not contacted
    #[arg(long, value_name = "NAME", value_parser = ad_hoc::server(), add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
    /// Only tools of this kind (repeatable), such as builtin, command or mcp
    #[arg(long)]
    pub kind: Vec<String>,
    /// Only tools of this category (repeatable)
    #[arg(long)]
    pub category: Vec<String>,
    /// Only tools with this safety level (repeatable)
    #[arg(long, value_parser = choice(SAFETY_LEVELS))]
    pub safety: Vec<Safety>,
    /// Contact no server: show only declared tools
    #[arg(long)]
    pub declared: bool,
    /// Only tools with suspicious definitions, with the findings
    #[arg(long)]
    pub flagged: bool,
    /// Show the size of the definitions in bytes and estimated tokens, in each export format; per
    /// server and tool in this format
    #[arg(long, value_name = "FORMAT", value_parser = choice(MODEL_FORMATS), num_args = 0..=1, require_equals = true,
          default_missing_value = "openai", conflicts_with = "flagged")]
    pub tokens: Option<ModelFormat>,
}

const SAFETY_LEVELS: &[Choice<Safety>] = &[
    ("native", "Runs with the user's rights", Safety::Native),
    ("sandboxed", "Runs confined in a sandbox", Safety::Sandboxed),
    ("external", "Runs on the other side of a protocol", Safety::External),
];

pub async fn run(args: &ListArgs, context: &CommandContext) -> CommandResult {
    use Format::{Json, Names, Table, Text, Yaml};
    let format = context.format(formats::LIST)?;
    let source = args.source.as_deref();
    let args = &by_source(args.clone());
    let reach = reach(args);
    let starts = match &reach {
        ListScope::Declared => StartScope::Nothing,
        ListScope::Everything => StartScope::Servers(&[]),
        ListScope::Servers(names) if names.is_empty() => StartScope::Nothing,
        ListScope::Servers(names) => StartScope::Servers(names),
    };
    let assembly = context.assemble_attached(starts, "toolhost list").await?;
    let usage = if format == Names || args.tokens.is_some() {
        UsageReading::none()
    } else {
        UsageReading::begin(context, &assembly)
    };
    let mut catalogue = assembly.host.catalogue(&reach).await;
    let shown = assembly.host.masked_definitions(&catalogue.tools);
    // JSON has the fingerprints of what was actually listed; nothing is truncated.
    let listed = std::mem::replace(&mut catalogue.tools, shown);
    let owners = catalogue.tools.iter().filter_map(|tool| tool.name.component());
    let servers = assembly.configuration.servers.iter().map(|server| server.name.as_str());
    let names: BTreeSet<&str> = owners.chain(servers).collect();
    if let Some(word) = source {
        require_source(word, &assembly.configuration, &names)?;
    }
    require_kinds(&args.kind, &catalogue.tools)?;
    entry_checks::require_servers(&assembly.configuration, &args.server, &names)?;
    let flagged = (args.flagged || context.output.verbosity() > 0)
        .then(|| flagged(&catalogue.tools, |_| true, args.flagged));
    let mut places = query(args).select(&catalogue.tools);
    places.retain(|place| !args.flagged || is_flagged(flagged.as_ref(), &catalogue.tools[*place]));
    let tools: Vec<&ToolDefinition> =
        places.iter().map(|place| &*catalogue.tools[*place]).collect();
    // Why requested internal tools could not be listed.
    let failures = catalogue.failures.iter();
    let failures = failures.filter(|failure| includes_internal(args, &failure.kind));
    let failures: Vec<&Error> = failures.map(|failure| &failure.error).collect();
    let answered = has_answer(args, &catalogue.tools, !failures.is_empty());
    let broken =
        assembly.configuration.count_broken_servers(|server| reach.includes_server(server));
    let profile = context.global.rare.profile.as_ref();
    let profile = profile.and_then(|name| assembly.configuration.profiles.get(name));
    let problems = shown_diagnostics(&assembly.configuration, profile);
    let verdict =
        present::catalogue::whole_verdict(&catalogue, &failures, &problems, broken, answered);
    let verdict =
        verdict.or_else(|| untrusted_refusal(args, &assembly.configuration, profile, answered));
    complete::update_names(context, &assembly, |names| names.add_tools(&catalogue));
    if let Some(profile) = &context.global.rare.profile
        && catalogue.tools.is_empty()
        && reach == ListScope::Everything
    {
        context.output.warn(&format!("the profile '{profile}' contains no tools"));
    }
    if let Some(dialect) = args.tokens {
        print(&assembly.host, &catalogue, &tools, dialect, (format, context))?;
        return conclude(verdict);
    }
    match format {
        Json | Yaml => {
            let tools: Vec<&ToolDefinition> = places.iter().map(|place| &*listed[*place]).collect();
            let problems = assembly.configuration.diagnostics.iter().chain(&catalogue.diagnostics);
            let untrusted = &assembly.configuration.untrusted;
            let mut broken = assembly.host.servers_out_of_service();
            let is_off = |name: &str| {
                let mut entries = assembly.configuration.disabled.iter();
                entries.any(|entry| entry.name == name && entry.is_switched_off())
            };
            broken.retain(|s| reach.includes_server(&s.name) && !is_off(&s.name));
            let listed = ListedServers { catalogue: &catalogue, untrusted, broken: &broken };
            let usages = usage.of(tools.iter().copied()).await;
            let value = ListJson::new(&tools, flagged.as_ref(), &usages, &listed, problems);
            context.output.value(format, &value)?;
        }
        Names => context.output.names(tools.iter().map(|tool| tool.name.full()))?,
        Text | Table | Format::Raw | Format::Csv | Format::Markdown => {
            let flagged = flagged.unwrap_or_default();
            let usages = usage.of(tools.iter().copied()).await;
            let width = context.output.width();
            context.output.page(&present::catalogue::page(&tools, &flagged, &usages, width))?;
            remarks(&unreported_diagnostics(&catalogue), &context.output);
            // In a pipe, a count is noise unless it explains an empty list.
            if context.output.is_terminal() || tools.is_empty() {
                context.output.note(summary(&tools, args, &catalogue.tools));
            }
        }
    }
    conclude(verdict)
}

/// Reports requested entries that are not trusted: as an error if nothing else was listed.
fn untrusted_refusal(
    args: &ListArgs,
    configuration: &Configuration,
    profile: Option<&ProfileSpec>,
    answered: bool,
) -> Option<Error> {
    let is_listed = |entry: &&UntrustedEntry| {
        entry.role == FileRole::Tools
            && includes_internal(args, entry.kind)
            && !args.declared
            && profile.is_none_or(|profile| may_show_untrusted(profile, entry))
    };
    let first = configuration.untrusted.iter().find(is_listed)?;
    let count = configuration.untrusted.iter().filter(is_listed).count();
    if count == 1 && !answered {
        return Some(first.refusal());
    }
    let entries = plural(count, "entry is", "entries are");
    let error = if answered { Error::partial } else { Error::denied };
    Some(
        error(format!("{entries} not trusted"))
            .with_hint(format!("review and trust: {}", first.trust_command)),
    )
}

/// The problems of the files that concern entries shown by the profile.
fn shown_diagnostics(
    configuration: &Configuration,
    profile: Option<&ProfileSpec>,
) -> Vec<Diagnostic> {
    let is_shown = |diagnostic: &&Diagnostic| match (profile, &diagnostic.entry) {
        (Some(profile), Some(entry)) => may_show_entry(profile, entry),
        _ => true,
    };
    configuration.diagnostics.iter().filter(is_shown).cloned().collect()
}

/// The suspicious findings about the tools that are `due`. Notes are included only with `all`.
pub(super) fn flagged(
    tools: &[Arc<ToolDefinition>],
    due: impl Fn(&str) -> bool,
    all: bool,
) -> FindingsByTool {
    let neighbours = ToolNameIndex::of(tools);
    let flagged = tools.iter().map(|tool| (tool.name.full(), tool)).filter(|(name, _)| due(name));
    let flagged = flagged.map(|(name, tool)| {
        let mut findings = scan::scan(tool, &neighbours);
        findings.retain(|finding| all || finding.severity > scan::FindingSeverity::Low);
        (name, findings)
    });
    flagged.filter(|(_, findings)| !findings.is_empty()).collect()
}

fn is_flagged(flagged: Option<&FindingsByTool>, tool: &ToolDefinition) -> bool {
    let findings = flagged.and_then(|all| all.get(&tool.name.full()));
    findings.is_some_and(|findings| present::findings::count_above_note(findings) > 0)
}

/// The findings about single items: omissions always, doubts only if they are few or were requested.
fn remarks(problems: &[&Diagnostic], output: &Output) {
    const FEW: usize = 3;
    const MANY: usize = 20;
    let messages = |errors: bool| -> Vec<&str> {
        let problems = problems.iter().filter(|problem| problem.is_error() == errors);
        problems.map(|problem| problem.message.as_str()).collect()
    };
    warn_some(output, &messages(true), MANY);
    let doubts = messages(false);
    if doubts.len() <= FEW || output.verbosity() > 0 {
        warn_some(output, &doubts, FEW);
    } else {
        let count = plural(doubts.len(), "warning", "warnings");
        output.note(hint(format!("{count}, -v shows all")));
    }
}

/// The number of tools; if there are none, which values would have matched.
fn summary(tools: &[&ToolDefinition], args: &ListArgs, all: &[Arc<ToolDefinition>]) -> String {
    if !tools.is_empty() {
        return present::catalogue::summary(tools);
    }
    let mut kinds: BTreeSet<&str> = all.iter().map(|tool| &*tool.kind).collect();
    kinds.insert("mcp");
    let categories: BTreeSet<&str> =
        all.iter().filter_map(|tool| tool.category.as_deref()).collect();
    for (filters, values, name) in
        [(&args.kind, kinds, "kinds"), (&args.category, categories, "categories")]
    {
        if filters.iter().any(|filter| !values.contains(filter.as_str())) && !values.is_empty() {
            let names: Vec<&str> = values.into_iter().collect();
            return format!("0 tools; {name} here: {}", names.join(", "));
        }
    }
    if args.flagged {
        return "0 tools are suspicious".to_owned();
    }
    if args.query.is_empty() { "0 tools" } else { "0 tools match" }.to_owned()
}

fn by_source(mut args: ListArgs) -> ListArgs {
    if let Some(word) = args.source.take_if(|word| !matches!(word.as_str(), INTERNAL | MCP)) {
        let is_kind = known_kinds().contains(word.as_str());
        if is_kind { args.kind.push(word) } else { args.server.push(word) }
    }
    args
}

fn known_kinds() -> BTreeSet<&'static str> {
    assembly::kind_words().iter().map(|kind| kind.key).chain([MCP]).collect()
}

fn require_source(
    word: &str,
    configuration: &Configuration,
    names: &BTreeSet<&str>,
) -> Result<(), Error> {
    let mut known: BTreeSet<&str> = known_kinds().into_iter().chain([INTERNAL]).collect();
    known.extend(names);
    // An entry that is out of service has an error of its own.
    let is_entry = configuration.disabled.iter().any(|entry| entry.name == word)
        || configuration.untrusted.iter().any(|entry| entry.name == word);
    if is_entry || known.contains(word) {
        return Ok(());
    }
    Err(unknown("source", word, known))
}

fn require_kinds(words: &[String], tools: &[Arc<ToolDefinition>]) -> Result<(), Error> {
    let mut kinds = known_kinds();
    kinds.extend(tools.iter().map(|tool| &*tool.kind));
    let Some(word) = words.iter().find(|word| !kinds.contains(word.as_str())) else {
        return Ok(());
    };
    Err(unknown("kind", word, kinds))
}

fn unknown(what: &str, word: &str, known: BTreeSet<&str>) -> Error {
    let known: Vec<&str> = known.into_iter().collect();
    Error::usage(format!("there is no {what} '{word}'"))
        .with_hint(format!("known: {}", known.join(", ")))
}

fn reach(args: &ListArgs) -> ListScope {
    let only_internal = args.source.as_deref() == Some(INTERNAL)
        || (!args.kind.is_empty() && !args.kind.iter().any(|kind| kind == "mcp"));
    if args.declared {
        ListScope::Declared
    } else if only_internal {
        ListScope::Servers(Vec::new())
    } else if args.server.is_empty() {
        ListScope::Everything
    } else {
        ListScope::Servers(args.server.clone())
    }
}

fn query(args: &ListArgs) -> CatalogueQuery {
    let text = args.query.join(" ");
    let source = args.source.as_deref().map(|word| match word {
        INTERNAL => ToolSource::Internal,
        _ => ToolSource::Mcp,
    });
    CatalogueQuery {
        words: text.split_whitespace().map(str::to_owned).collect(),
        source,
        servers: args.server.clone(),
        kinds: args.kind.clone(),
        categories: args.category.clone(),
        safety: args.safety.iter().map(|word| word.as_str().to_owned()).collect(),
    }
}

fn includes_internal(args: &ListArgs, kind: &str) -> bool {
    args.server.is_empty()
        && args.source.as_deref() != Some(MCP)
        && (args.kind.is_empty() || args.kind.iter().any(|word| word == kind))
}

/// The findings about single items that are not reported as the error of the command.
fn unreported_diagnostics(catalogue: &Catalogue) -> Vec<&Diagnostic> {
    let is_reported = |problem: &Diagnostic| {
        catalogue.failures.iter().any(|failure| failure.error.message() == problem.message)
    };
    catalogue.diagnostics.iter().filter(|problem| !is_reported(problem)).collect()
}

/// Whether any requested source responded; declared tools of a failed server do not count. `failed`
/// says that internal tools could not be listed.
fn has_answer(args: &ListArgs, tools: &[Arc<ToolDefinition>], failed: bool) -> bool {
    tools.iter().any(|tool| match tool.source {
        ToolSource::Internal => {
            tool.status != ToolStatus::Untrusted
                && tool.unavailable_reason.as_ref().is_none_or(|e| e.kind() != ErrorKind::Config)
                && includes_internal(args, &tool.kind)
                && !(failed && tool.unavailable_reason.is_some())
        }
        ToolSource::Mcp => {
            (args.declared || tool.status != ToolStatus::Declared)
                && tool.status != ToolStatus::Unavailable
                && tool.unavailable_reason.is_none()
        }
    })
}

/// Prints the size of the tools in `shown` that may be offered to a model.
pub(super) fn print(
    host: &ToolHost,
    catalogue: &Catalogue,
    shown: &[&ToolDefinition],
    dialect: ModelFormat,
    (format, context): (Format, &CommandContext),
) -> CommandResult {
    let names: BTreeSet<&ToolName> = shown.iter().map(|tool| &tool.name).collect();
    let offered = host.offerable_tools(catalogue);
    let definitions = offered.iter().map(|tool| tool.definition.as_ref());
    let selected: Vec<&ToolDefinition> =
        definitions.filter(|tool| names.contains(&tool.name)).collect();
    let costs = tool_costs(&selected);
    let mut servers: BTreeMap<Option<&str>, Vec<&ToolCost>> = BTreeMap::new();
    for tool in &costs {
        servers.entry(tool.component.as_deref()).or_default().push(tool);
    }
    let servers: Vec<_> = servers.into_iter().collect();
    let output = &context.output;
    let value = TokenCostsJson::from((&costs[..], &servers[..]));
    let names = costs.iter().map(|tool| &tool.name);
    let page = || present::token_costs::page(&costs, &servers, dialect, output.width());
    if output.listing(format, &value, names, page)? {
        output.note(format!(
            "servers and tools in the {} format; tokens are estimated, bytes are exact",
            dialect.as_str()
        ));
        let lean = lean::definitions();
        let lean = tool_costs(&lean.iter().collect::<Vec<_>>());
        let total = |costs: &[ToolCost]| present::token_costs::total(costs, dialect).tokens;
        let (lean, all) = (total(&lean), total(&costs));
        if lean < all {
            let (lean, all) = (show_count(lean), show_count(all));
            output
                .note(format!("'serve --lean' lists 3 tools of ~{lean} tokens instead of ~{all}"));
        }
    }
    Ok(())
}

type CostsOfServer<'a> = (Option<&'a str>, Vec<&'a ToolCost>);

shape! {
    /// The cost of tool definitions in tokens.
    pub TokenCostsJson<'a> of (all, by_server): (&'a [ToolCost], &[CostsOfServer<'a>]) {
        /// All tools together, by format of `export`.
        total: CostsJson = costs(&all.iter()),
        /// By component or server.
        servers: Vec<ServerCostJson<'a>> = by_server.iter().map(Into::into).collect(),
        /// Tool by tool, in the order of the catalogue.
        tools: Vec<ToolCostJson<'a>> = all.iter().map(Into::into).collect(),
    }
}

shape! {
    /// The total cost of the tools of a component or server.
    pub ServerCostJson<'a> of (server, all): &CostsOfServer<'a> {
        /// The component or server; null for tools that belong to neither.
        name: Option<&'a str> = *server,
        /// The number of its tools.
        tools: usize = all.len(),
        /// By format.
        costs: CostsJson = costs(&all.iter().copied()),
    }
}

shape! {
    /// The cost of one tool.
    pub ToolCostJson<'a> of tool: &'a ToolCost {
        /// The tool's full name.
        name: &'a str = &tool.name,
        /// The component or server that it belongs to.
        server: Option<&'a str> = tool.component.as_deref(),
        /// By format.
        costs: CostsJson = costs(&std::iter::once(tool)),
    }
}

type CostsJson = BTreeMap<&'static str, CostJson>;

shape! {
    /// The size of definitions in one format.
    pub CostJson of cost: DefinitionCost {
        /// The bytes of compact JSON, exactly.
        bytes: u64 = cost.bytes,
        /// The approximate number of tokens; an estimate, since models differ.
        tokens_estimate: u64 = cost.tokens,
    }
}

fn costs<'t>(tools: &(impl Iterator<Item = &'t ToolCost> + Clone)) -> CostsJson {
    let sum = |at: usize| -> DefinitionCost {
        tools.clone().filter_map(|tool| tool.costs.get(at).copied()).sum()
    };
    let formats = ModelFormat::ALL.iter().enumerate();
    formats.map(|(at, format)| (format.as_str(), sum(at).into())).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::args::{Cli, CliCommand};

    fn args(words: &[&str]) -> ListArgs {
        let all = ["toolhost", "list"].iter().chain(words);
        match Cli::try_parse_from(all).unwrap().command {
            Some(CliCommand::List(args)) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn no_more_servers_are_asked_than_needed() {
        assert_eq!(reach(&args(&[])), ListScope::Everything);
        assert_eq!(reach(&args(&["--declared"])), ListScope::Declared);
        assert_eq!(reach(&args(&["--server", "a"])), ListScope::Servers(vec!["a".to_owned()]));
        assert_eq!(reach(&args(&["--source", "internal"])), ListScope::Servers(Vec::new()));
        assert_eq!(reach(&args(&["--kind", "builtin"])), ListScope::Servers(Vec::new()));
        // What the SOURCE column says is a kind or a server.
        let by = |word: &str| reach(&by_source(args(&["--source", word])));
        assert_eq!(by("builtin"), ListScope::Servers(Vec::new()));
        assert_eq!(by("demo"), ListScope::Servers(vec!["demo".to_owned()]));
        assert_eq!(by("mcp"), ListScope::Everything);
        assert_eq!(reach(&args(&["--kind", "mcp"])), ListScope::Everything);
    }

    #[test]
    fn a_query_that_matches_nothing_says_so() {
        assert_eq!(summary(&[], &args(&["zzz"]), &[]), "0 tools match");
        assert_eq!(summary(&[], &args(&[]), &[]), "0 tools");
        assert_eq!(summary(&[], &args(&["--kind", "comand"]), &[]), "0 tools; kinds here: mcp");
    }

    #[test]
    fn many_doubts_are_counted_and_what_was_left_out_is_named() {
        use crate::cli::output::{streams::OutputOptions, streams::tests::captured};
        let mut problems = vec![Diagnostic::error("a tool without a name was left out")];
        problems.extend((0..9).map(|n| Diagnostic::warning(format!("doubt {n}"))));
        let said = |verbose| {
            let (output, _, err) =
                captured(OutputOptions { verbose, ..OutputOptions::default() }, false);
            remarks(&problems.iter().collect::<Vec<_>>(), &output);
            err.text()
        };
        assert_eq!(
            said(0),
            "warning: a tool without a name was left out\n9 warnings, -v shows all\n"
        );
        assert_eq!(said(1).lines().count(), 10);
    }
}
