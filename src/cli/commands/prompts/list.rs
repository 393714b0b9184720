//! `toolhost prompts list`.

use clap::Args;
use clap_complete::ArgValueCompleter;

use crate::catalogue::filter::Words;
use crate::cli::complete;
use crate::cli::context::{Context, Outcome};
use crate::cli::offered::{self, Shown};
use crate::cli::views::offers as views;
use crate::model::Prompt;

/// List the prompts of all servers.
///
/// A server that cannot be listed costs its own prompts only; the exit code is then 11.
#[derive(Debug, Args)]
#[command(after_help = "\
JSON: {\"prompts\": [...], \"servers\": [...], \"problems\": [...]}")]
pub struct ListArgs {
    /// Only prompts in whose name, title or description these words occur
    pub query: Vec<String>,
    /// Ask this server only; repeatable
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// What could not be listed, after everything that could has been printed.
pub async fn run(args: &ListArgs, context: &Context) -> Outcome {
    let (format, assembly) = offered::begin(context, &args.server).await?;
    let all = assembly.host.prompts(&args.server).await;
    let words = Words::new(&args.query);
    let fits = |p: &&Prompt| {
        let full = p.name.full();
        words.fit(&[Some(&full), p.title.as_deref(), p.description.as_deref()])
    };
    let items: Vec<&Prompt> = all.items.iter().filter(fits).collect();
    if context.global.profile.is_none() {
        complete::remember_prompts(&*context.environment, &assembly.configuration, &all);
    }
    let shown = Shown {
        field: "prompts",
        one: "prompt",
        table: views::prompts(&items, context.door.width()),
        json: items.iter().map(|item| views::prompt(item)).collect(),
        names: items.iter().map(|item| item.name.full()).collect(),
        more: "",
    };
    offered::print(context, format, &shown, &all)
}
