//! `toolhost trace`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;

use crate::cli::complete;
use crate::cli::context::{Context, Outcome, Starts, plural};
use crate::cli::entries;
use crate::cli::output::{Format, Label, Line, Stop};
use crate::cli::trace::{Place, Viewer};
use crate::cli::views;
use crate::host::ToolHost;
use crate::model::traffic::{Direction, Filter};
use crate::model::{Fault, ServerState, ServerStatus};
use crate::util::units::show_duration;

/// How often a server that is followed is asked for a sign of life.
const PING: Duration = Duration::from_secs(30);
/// How often it is looked whether anybody still reads.
const TICK: Duration = Duration::from_millis(500);

/// Connect to a server and show everything that crosses the wire.
///
/// The handshake, a ping and the listing of its tools are made; messages, the heads of HTTP
/// requests, standard error and noise are shown while they happen. A server that fails shows the
/// wire up to the failure, and then the reason. -v shows messages whole and all headers.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// The server
    #[arg(add = ArgValueCompleter::new(complete::servers))]
    pub server: String,
    /// Stay and show what the server sends, until Ctrl-C
    #[arg(long)]
    pub follow: bool,
    /// Save everything to this file too, for replay; filters do not apply to it
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub save: Option<PathBuf>,
    /// Show only messages of this method, such as 'tools/*'; repeatable
    #[arg(long, value_name = "METHOD")]
    pub filter: Vec<String>,
    /// Show only what goes this way
    #[arg(long, value_name = "WAY", value_enum)]
    pub only: Option<Way>,
}

/// Which way something goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Way {
    /// To the server.
    Sent,
    /// From the server.
    Received,
}

impl From<Way> for Direction {
    fn from(way: Way) -> Self {
        match way {
            Way::Sent => Self::Sent,
            Way::Received => Self::Received,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// Why the server cannot be used, after its wire was shown; and what is said of a file that cannot
/// be written.
pub async fn run(args: &TraceArgs, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json])?;
    let filter = Filter { methods: args.filter.clone(), only: args.only.map(Direction::from) };
    let json = format == Format::Json;
    let viewer = Viewer::new(Arc::clone(&context.door), filter, Place::Stdout, json);
    context.watchers.show(Arc::clone(&viewer));
    let file = context.watchers.file(args.save.as_ref())?;
    let name = slice::from_ref(&args.server);
    let assembly = context.assemble(Starts::Servers(name)).await?;
    let known = assembly.host.servers();
    let names: BTreeSet<&str> = known.iter().map(|server| server.name.as_str()).collect();
    entries::expect_servers(&assembly.configuration, name, &names)?;
    let servers = tokio::select! {
        biased;
        () = context.cancel.cancelled() => return Ok(()),
        servers = assembly.host.check_servers(name) => servers,
    };
    if let Some(stop) = viewer.stopped() {
        return Err(stop);
    }
    if let Some(fault) = views::server::verdict(&servers) {
        return Err(fault.into());
    }
    for server in &servers {
        sum_up(server, context)?;
    }
    if args.follow {
        follow(&assembly.host, name, &viewer, context).await?;
    }
    file.map_or(Ok(()), |file| file.whole().map_err(Stop::from))
}

/// Says in a line what was found, and what was odd.
fn sum_up(server: &ServerStatus, context: &Context) -> Result<(), Fault> {
    let Some(tools) = server.tools else {
        // The connection itself is fine: what became of the list is what failed last.
        return Err(match &server.last_error {
            Some(past) => past.fault.clone(),
            None => Fault::protocol("its tools are not known").server(&server.name),
        });
    };
    for warning in &server.warnings {
        context.door.warn(&format!("{}: {warning}", server.name));
    }
    let mut line = Line::of(Label::Name, &server.name)
        .then(Label::Plain, format!(": {}", plural(tools, "tool", "tools")));
    if let Some(protocol) = &server.protocol {
        line.push(Label::Dim, format!(", protocol {protocol}"));
    }
    if let Some(connect) = server.connect {
        line.push(Label::Dim, format!(", connected in {}", show_duration(connect)));
    }
    context.door.note(&line);
    Ok(())
}

/// Stays with a server until a signal comes, the server is gone or nobody reads any more.
async fn follow(host: &ToolHost, name: &[String], viewer: &Viewer, context: &Context) -> Outcome {
    let mut next_ping = tokio::time::Instant::now() + PING;
    loop {
        if let Some(stop) = viewer.stopped() {
            return Err(stop);
        }
        if context.door.reader_is_gone() {
            return Err(Stop::ReaderGone);
        }
        let gone = host.servers().into_iter().find_map(|server| match server.state {
            ServerState::Failed(fault) | ServerState::Untrusted(fault)
                if name.contains(&server.name) =>
            {
                Some(fault)
            }
            _ => None,
        });
        if let Some(fault) = gone {
            return Err(fault.into());
        }
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Ok(()),
            () = viewer.woken.notified() => {}
            () = tokio::time::sleep(TICK) => {}
            () = tokio::time::sleep_until(next_ping) => {
                next_ping = tokio::time::Instant::now() + PING;
                if let Some(fault) = views::server::verdict(&host.check_servers(name).await) {
                    return Err(fault.into());
                }
            }
        }
    }
}
