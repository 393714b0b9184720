//! `toolhost resources list`: resources and URI templates of all servers.

use crate::catalogue::query::WordMatcher;
use crate::cli::commands::prelude::*;
use crate::cli::json::offerings::{ResourcesJson, TemplatesJson};
use crate::cli::offering_lists::{self, OfferingList};
use crate::host::request::LookupScope;
use crate::model::{Resource, ResourceTemplate};
use crate::present::offerings;

/// List the resources of all servers.
///
/// If a server fails, the others are still listed and the exit code is 11.
#[derive(Debug, Args)]
#[command(after_help = "\
JSON: {\"resources\": [...], \"servers\": [...], \"problems\": [...]}; \"templates\" with --templates")]
#[command(arg = formats::option(formats::LIST))]
pub struct ResourceListArgs {
    /// Only resources whose URI, name, title or description contains these words
    pub query: Vec<String>,
    /// Only ask this server (repeatable)
    #[arg(long, value_name = "NAME", value_parser = server_target::server(), add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
    /// List resource templates instead
    #[arg(long)]
    pub templates: bool,
    /// An ad-hoc server, if the command line names one.
    #[command(flatten)]
    pub target: ServerCommandArgs,
}

pub async fn run(args: &ResourceListArgs, context: &CommandContext) -> CommandResult {
    let (format, assembly) = offering_lists::assemble_list(context, &args.server).await?;
    let matcher = WordMatcher::new(&args.query);
    if args.templates {
        let all = assembly.host.templates(&LookupScope::of_servers(&args.server)).await?;
        let fits = |t: &&ResourceTemplate| {
            let texts = [Some(t.template.as_str()), Some(&t.name), t.title.as_deref()];
            matcher.matches(&[texts[0], texts[1], texts[2], t.description.as_deref()])
        };
        let items: Vec<&ResourceTemplate> = all.items.iter().filter(fits).collect();
        let shown = OfferingList {
            items_name: "templates",
            item_name: "template",
            table: offerings::templates(&items, context.output.width()),
            json: TemplatesJson {
                templates: items.iter().map(|item| (*item).into()).collect(),
                sources: (&all).into(),
            },
            names: items.iter().map(|item| item.template.clone()).collect(),
            empty_note: "",
        };
        return offering_lists::print(context, format, &shown, &all);
    }
    let all = assembly.host.resources(&LookupScope::of_servers(&args.server)).await?;
    if context.global.rare.profile.is_none() {
        complete::save_resources(
            &*context.environment,
            &assembly.configuration,
            &assembly.masker,
            &all,
        );
    }
    let fits = |r: &&Resource| {
        let (title, description) = (r.title.as_deref(), r.description.as_deref());
        matcher.matches(&[Some(&r.uri), Some(&r.name), title, description])
    };
    let items: Vec<&Resource> = all.items.iter().filter(fits).collect();
    let shown = OfferingList {
        items_name: "resources",
        item_name: "resource",
        table: offerings::resources(&items, context.output.width()),
        json: ResourcesJson {
            resources: items.iter().map(|item| (*item).into()).collect(),
            sources: (&all).into(),
        },
        names: items.iter().map(|item| item.uri.clone()).collect(),
        empty_note: "; --templates lists URI templates",
    };
    offering_lists::print(context, format, &shown, &all)
}
