//! `toolhost inspect`.

use std::sync::Arc;

use clap::Args;
use clap_complete::ArgValueCompleter;

use crate::assembly::{self, Assembly};
use crate::catalogue::fingerprint;
use crate::catalogue::scan::{self, Neighbours};
use crate::cli::complete;
use crate::cli::context::{Context, Outcome, Starts};
use crate::cli::output::{Format, Line, Page};
use crate::cli::views::{self, entry::Entry};
use crate::host::request::Reach;
use crate::stats::{Patience, Query, Statistics, Usage};
use crate::util::clock::{Clock as _, SystemClock};

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
        return server(args, context, &assembly, format).await;
    }
    let tool = host.find(&args.name, &args.server).await?;
    let decision = host.decision(&tool);
    let known = host.catalogue(&Reach::Declared).await.tools;
    let found = scan::scan(&tool, &Neighbours::of(known.iter().map(Arc::as_ref).chain([&tool])));
    let used = usage(&tool.name.full(), context, &assembly);
    match format {
        Json | Yaml => {
            let mut value = views::tool::json_detail(&tool, &decision);
            value["stats"] = used.as_ref().map(views::stats::json_usage).into();
            value["findings"] = views::findings::json(&found);
            door.value(format, &value)
        }
        Names => door.page(&Page::from(Line::plain(tool.name.full()))),
        _ => {
            let fingerprint = fingerprint::fingerprint(&tool);
            let shown = host.shown(&[Arc::new(tool)]);
            let width = door.width();
            let mut page = Page::default();
            for tool in &shown {
                page.append(views::tool::page(tool, &fingerprint, &decision, width));
            }
            if let Some(used) = &used {
                page.heading("Statistics");
                page.push(views::stats::short(used).indented(2));
            }
            if !found.is_empty() {
                page.gap();
            }
            page.append(views::findings::page(&found, door.width()));
            door.page(&page)
        }
    }
}

/// What was counted of a tool. Whoever inspects it asked for something else: what cannot be had
/// at once is left out.
fn usage(tool: &str, context: &Context, assembly: &Assembly) -> Option<Usage> {
    let spec = &assembly.configuration.stats;
    let state_dir = context.environment.state_dir();
    let place = assembly::statistics(spec, state_dir.as_deref()).filter(|_| spec.enabled)?;
    let mut statistics = Statistics::new(place, spec.retention, Patience::LITTLE);
    let now = SystemClock.unix();
    statistics.refresh(now).ok()?;
    let query = Query { since: None, tools: Some(vec![tool.to_owned()]) };
    let mut found = statistics.summary(&query, now).ok()?.tools;
    for note in statistics.take_notes() {
        context.door.warn(&note);
    }
    found.pop()
}

/// Everything about a server: it is asked for a sign of life and for its tools.
async fn server(
    args: &InspectArgs,
    context: &Context,
    assembly: &Assembly,
    format: Format,
) -> Outcome {
    use Format::{Json, Names, Table, Text, Yaml};
    let (host, door) = (&assembly.host, &context.door);
    let name = std::slice::from_ref(&args.name);
    let servers = host.check_servers(name).await;
    // They were listed for the sign of life, if it came, and are not asked for again.
    let catalogue = host.catalogue(&Reach::Servers(name.to_vec())).await;
    let pins = host.pins();
    let mut report = pins.server(&args.name).map(|_| host.compare(pins, &catalogue));
    if let Some(report) = &mut report {
        report.tools.retain(|tool| tool.server.as_deref() == Some(&args.name));
    }
    let neighbours = Neighbours::of(&catalogue.tools);
    let own = catalogue.tools.iter().filter(|tool| tool.name.component() == Some(&args.name));
    let flagged = own.filter(|tool| views::findings::serious(&scan::scan(tool, &neighbours)) > 0);
    let flagged = flagged.count();
    let spec = assembly.configuration.servers.iter().find(|spec| spec.name == args.name);
    let spec = spec.map(|spec| {
        let mut spec = spec.clone();
        let lists = spec.include.iter_mut().flatten().chain(&mut spec.exclude);
        lists.chain(&mut spec.roots).for_each(|text| *text = assembly.masker.text(text));
        spec
    });
    for server in &servers {
        let words = server.instructions.as_deref().unwrap_or_default();
        let found = scan::scan_text("instructions", words);
        let entry = spec.as_ref().map(|spec| Entry {
            spec,
            pins: report.as_ref(),
            flagged,
            instructions: &found,
        });
        match format {
            Json | Yaml => {
                door.value(format, &views::server::json_detail(server, entry.as_ref()))?;
            }
            Names => door.page(&Page::from(Line::plain(&server.name)))?,
            _ => door.page(&views::server::page(server, entry.as_ref(), door.width()))?,
        }
    }
    match views::server::verdict(&servers) {
        None => Ok(()),
        Some(fault) if door.is_terminal() && matches!(format, Text | Table) => {
            Err(views::server::brief(&fault).into())
        }
        Some(fault) => Err(fault.into()),
    }
}
