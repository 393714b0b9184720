//! `toolhost inspect`: everything about a tool or a server.

use super::prelude::*;
use crate::catalogue::fingerprint;
use crate::catalogue::naming::is_meant;
use crate::catalogue::scan::{self, ToolNameIndex};
use crate::cli::json::server::ServerDetailJson;
use crate::cli::json::stats::UsageJson;
use crate::cli::json::tool::ToolDetailJson;
use crate::cli::usage::UsageReading;
use crate::host::request::LookupScope;
use crate::present::server_entry::ServerEntryView;
use crate::stats::comparison::ExceededSpeed;

/// Show everything about a tool or a server.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::LIST), arg = ad_hoc::command())]
pub struct InspectArgs {
    /// Tool or server; an ad-hoc server is given by its URL
    #[arg(required_unless_present_any = ["server_command", "server_url"],
          add = ArgValueCompleter::new(complete::names))]
    pub name: Option<String>,
    /// Only look for the tool on this server (repeatable)
    #[arg(long, value_name = "NAME", value_parser = ad_hoc::server(), add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
}

pub async fn run(args: &InspectArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::LIST)?;
    let name = args.name.as_deref().unwrap_or_default();
    let starts = StartScope::Named(args.name.as_slice(), &args.server);
    let assembly = context.assemble_attached(starts, "toolhost inspect").await?;
    let host = &assembly.host;
    let output = &context.output;
    if let Some(server) = host.servers().iter().find(|server| is_meant(name, &server.name)) {
        return inspect_server(&server.name, context, &assembly, format).await;
    }
    let usage = UsageReading::begin(context, &assembly);
    let tool = host.find(name, &LookupScope::of_servers(&args.server)).await?;
    let decision = host.decision(&tool);
    let neighbours = host.catalogue(&ListScope::Declared).await.tools;
    let findings =
        scan::scan(&tool, &ToolNameIndex::of(neighbours.iter().map(Arc::as_ref).chain([&tool])));
    let used = usage.of([&tool]).await.pop();
    let slower = used.as_ref().and_then(|used| ExceededSpeed::of(&tool, used));
    let stats = used.as_ref().map(UsageJson::from);
    let value = ToolDetailJson::from((&tool, &decision, (stats, slower), &findings[..]));
    let page = || {
        let fingerprint = fingerprint::fingerprint(&tool);
        let width = output.width();
        let mut page = Page::default();
        for tool in host.masked_definitions(&[Arc::new(tool.clone())]) {
            page.append(present::tool::page(&tool, &fingerprint, Some(&decision), width));
        }
        if let Some(used) = &used {
            page.heading("Statistics");
            page.push(present::stats::summary_line(used).indented(2));
            if let Some(slower) = &slower {
                page.push(present::stats::slower_line(slower).indented(2));
            }
        }
        if !findings.is_empty() {
            page.blank_line();
        }
        page.append(present::findings::page(&findings, width));
        page
    };
    output.listing(format, &value, [tool.name.full()], page)?;
    Ok(())
}

/// Everything about a server: it is pinged and asked for its tools.
async fn inspect_server(
    name: &str,
    context: &CommandContext,
    assembly: &Assembly,
    format: Format,
) -> CommandResult {
    let (host, output) = (&assembly.host, &context.output);
    let names = [name.to_owned()];
    let servers = host.check_servers(&names).await;
    // If the ping succeeded, they were listed with it and are not requested again.
    let catalogue = host.catalogue(&ListScope::Servers(names.to_vec())).await;
    let pins = host.pins();
    let mut report = pins.server(name).map(|_| host.compare(&pins, &catalogue));
    if let Some(report) = &mut report {
        report.tools.retain(|tool| tool.server.as_deref() == Some(name));
    }
    let neighbours = ToolNameIndex::of(&catalogue.tools);
    let own = catalogue.tools.iter().filter(|tool| tool.name.component() == Some(name));
    let flagged =
        own.filter(|tool| present::findings::count_above_note(&scan::scan(tool, &neighbours)) > 0);
    let flagged = flagged.count();
    let spec = assembly.configuration.servers.iter().find(|spec| spec.name == name);
    let spec = spec.map(|spec| {
        let mut spec = spec.clone();
        let lists = spec.include.iter_mut().flatten().chain(&mut spec.exclude);
        let uris = spec.roots.iter_mut().map(|root| &mut root.uri);
        lists.chain(uris).for_each(|text| *text = assembly.masker.text(text));
        spec
    });
    for server in &servers {
        let instructions = server.instructions.as_deref().unwrap_or_default();
        let findings = scan::scan_text("instructions", instructions);
        let entry = spec.as_ref().map(|spec| ServerEntryView {
            spec,
            pins: report.as_ref(),
            flagged,
            instructions: &findings,
        });
        let page = || present::server::page(server, entry.as_ref(), output.width());
        let value =
            ServerDetailJson { server: server.into(), entry: entry.as_ref().map(Into::into) };
        output.listing(format, &value, [&server.name], page)?;
    }
    super::servers::conclude_servers(&servers, output, format)
}
