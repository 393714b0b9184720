//! `toolhost prompts list`: the prompts of all servers.

use crate::catalogue::query::WordMatcher;
use crate::cli::commands::prelude::*;
use crate::cli::json::offerings::PromptsJson;
use crate::cli::offering_lists::{self, OfferingList};
use crate::host::request::LookupScope;
use crate::model::Prompt;
use crate::present::offerings;

/// List the prompts of all servers.
///
/// If a server fails, the others are still listed and the exit code is 11.
#[derive(Debug, Args)]
#[command(after_help = "\
JSON: {\"prompts\": [...], \"servers\": [...], \"problems\": [...]}")]
#[command(arg = formats::option(formats::LIST))]
pub struct PromptListArgs {
    /// Only prompts whose name, title or description contains these words
    pub query: Vec<String>,
    /// Only ask this server (repeatable)
    #[arg(long, value_name = "NAME", value_parser = server_target::server(), add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
    /// An ad-hoc server, if the command line names one.
    #[command(flatten)]
    pub target: ServerCommandArgs,
}

pub async fn run(args: &PromptListArgs, context: &CommandContext) -> CommandResult {
    let (format, assembly) = offering_lists::assemble_list(context, &args.server).await?;
    let all = assembly.host.prompts(&LookupScope::of_servers(&args.server)).await?;
    let matcher = WordMatcher::new(&args.query);
    let fits = |p: &&Prompt| {
        let full = p.name.full();
        matcher.matches(&[Some(&full), p.title.as_deref(), p.description.as_deref()])
    };
    let items: Vec<&Prompt> = all.items.iter().filter(fits).collect();
    if context.global.rare.profile.is_none() {
        complete::save_prompts(
            &*context.environment,
            &assembly.configuration,
            &assembly.masker,
            &all,
        );
    }
    let shown = OfferingList {
        items_name: "prompts",
        item_name: "prompt",
        table: offerings::prompts(&items, context.output.width()),
        json: PromptsJson {
            prompts: items.iter().map(|item| (*item).into()).collect(),
            sources: (&all).into(),
        },
        names: items.iter().map(|item| item.name.full()).collect(),
        empty_note: "",
    };
    offering_lists::print(context, format, &shown, &all)
}
