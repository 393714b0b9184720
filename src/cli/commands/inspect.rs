//! `toolhost inspect`.

use clap::Args;
use clap_complete::ArgValueCompleter;

use crate::cli::complete;
use crate::cli::context::{Context, Outcome, Starts};
use crate::cli::output::{Format, Line, Page};
use crate::cli::views;

/// Show everything about a tool or a server.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// A tool, or a server
    #[arg(add = ArgValueCompleter::new(complete::names))]
    pub name: String,
    /// Look for the tool at this server only; repeatable
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// An unknown or ambiguous name, and what finding out ran into.
pub async fn run(args: &InspectArgs, context: &Context) -> Outcome {
    use Format::{Json, Names, Table, Text, Yaml};
    let format = context.format(&[Text, Table, Json, Yaml, Names])?;
    let assembly = context.assemble(Starts::Named(&args.name, &args.server)).await?;
    let host = &assembly.host;
    let door = &context.door;
    if host.servers().iter().any(|server| server.name == args.name) {
        let servers = host.check_servers(std::slice::from_ref(&args.name)).await;
        for server in &servers {
            match format {
                Json | Yaml => door.value(format, &views::server::json(server))?,
                Names => door.page(&Page::from(Line::plain(&server.name)))?,
                _ => door.page(&views::server::page(server, door.width()))?,
            }
        }
        return match views::server::verdict(&servers) {
            None => Ok(()),
            Some(fault) if door.is_terminal() && matches!(format, Text | Table) => {
                Err(views::server::brief(&fault).into())
            }
            Some(fault) => Err(fault.into()),
        };
    }
    let tool = host.find(&args.name, &args.server).await?;
    let decision = host.decision(&tool);
    match format {
        Json | Yaml => door.value(format, &views::tool::json_detail(&tool, &decision)),
        Names => door.page(&Page::from(Line::plain(tool.name.full()))),
        _ => door.page(&views::tool::page(&tool, &decision, door.width())),
    }
}
