//! `toolhost trace`: the traffic of one server, as it happens.

use tokio::sync::{Notify, mpsc};

use super::prelude::*;
use crate::cli::trace::{TracePrinter, TraceStream};
use crate::host::link::{LinkError, Observation, ObservationSink, ObserveRequest};
use crate::model::traffic::{Direction, TrafficFilter};
use crate::model::{ListKind, ServerStatus, SubscriptionFilter};
use crate::util::units::show_duration;

const PING_INTERVAL: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Connect to a server and print everything sent and received.
///
/// Performs the handshake, a ping and the listing of tools, and prints messages, HTTP request
/// heads, stderr and non-protocol output as they happen. If the server fails, the traffic up to the
/// failure is followed by the reason. -v prints whole messages and all headers.
///
/// With --follow and a running background host, prints the traffic of that host's server: calls
/// from any terminal, script, editor or agent.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::STREAM), arg = ad_hoc::command())]
pub struct TraceArgs {
    /// Name of the server, or the URL of an ad-hoc server
    #[arg(required_unless_present_any = ["server_command", "server_url"],
          value_parser = ad_hoc::server(), add = ArgValueCompleter::new(complete::servers))]
    pub server: Option<String>,
    /// Keep printing what the server sends, until Ctrl-C
    #[arg(long)]
    pub follow: bool,
    /// Print each message on one line, with a short summary
    #[arg(long)]
    pub one_line: bool,
    /// Also save everything, unfiltered, to this file, for 'toolhost replay'
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub save: Option<PathBuf>,
    /// Only messages of this method (repeatable), such as 'tools/*'
    #[arg(long, value_name = "METHOD")]
    pub filter: Vec<String>,
    /// Only one direction
    #[arg(long, value_name = "WAY", value_parser = choice(WAYS))]
    pub only: Option<Direction>,
}

const WAYS: &[Choice<Direction>] = &[
    ("sent", "To the server", Direction::Sent),
    ("received", "From the server", Direction::Received),
];

/// How many changes may wait to be read; the trace shows them by itself.
const CHANGE_QUEUE: usize = 16;

pub async fn run(args: &TraceArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::STREAM)?;
    let filter = TrafficFilter { methods: args.filter.clone(), direction: args.only };
    let stream = TraceStream::Stdout { is_one_line: args.one_line };
    let json = format == Format::Json;
    let viewer = TracePrinter::new(Arc::clone(&context.output), filter, stream, json);
    context.trace_outputs.show(Arc::clone(&viewer));
    let file = context.trace_outputs.file(args.save.as_ref())?;
    let name = args.server.as_slice();
    // A background host truncates large items, but a file must have everything.
    let assembly = if args.follow && args.save.is_none() {
        context.assemble_attached(StartScope::Servers(name), "toolhost trace").await?
    } else {
        context.assemble(StartScope::Servers(name)).await?
    };
    entry_checks::require_hosted(&assembly, name)?;
    if assembly.host.attached_pid().is_some() {
        return follow_attached(&assembly.host, name, &viewer, context).await;
    }
    let connected = tokio::select! {
        biased;
        () = context.cancel.cancelled() => return Ok(()),
        connected = connect(&assembly.host, name, context) => connected,
    };
    if let Some(stop) = viewer.stopped() {
        return Err(stop);
    }
    connected?;
    if args.follow {
        // A server of revision 2026-07-28 tells only subscribers of its changes.
        let (updates, mut changes) = mpsc::channel(CHANGE_QUEUE);
        let everything = SubscriptionFilter { lists: ListKind::ALL.to_vec(), uris: Vec::new() };
        let filters = name.iter().map(|server| (server.clone(), everything.clone())).collect();
        let watching = async {
            // What cannot be watched is followed all the same.
            let _unwatched = assembly.host.watch_servers(filters, &updates, &context.cancel).await;
            std::future::pending::<()>().await;
        };
        let draining = async { while changes.recv().await.is_some() {} };
        tokio::select! {
            followed = follow(&assembly.host, name, &viewer, context) => followed?,
            ((), ()) = async { tokio::join!(watching, draining) } => {}
        }
    }
    file.map_or(Ok(()), |file| file.ensure_complete().map_err(CommandError::from))
}

/// Connects to the servers and says what each is.
async fn connect(host: &ToolHost, name: &[String], context: &CommandContext) -> CommandResult {
    let servers = host.check_servers(name).await;
    conclude(present::server::failure(&servers))?;
    for server in &servers {
        print_summary(server, context)?;
    }
    Ok(())
}

/// Why nothing more can be printed.
fn stopped(viewer: &TracePrinter, context: &CommandContext) -> Option<CommandError> {
    let is_closed = || context.output.is_stdout_closed().then_some(CommandError::OutputClosed);
    viewer.stopped().or_else(is_closed)
}

fn print_summary(server: &ServerStatus, context: &CommandContext) -> Result<(), Error> {
    let Some(tools) = server.tools else {
        // The connection itself is fine: the last error is that of the list.
        return Err(match &server.last_error {
            Some(past) => past.error.clone(),
            None => Error::protocol("its tools are unknown").with_server(&server.name),
        });
    };
    for warning in &server.warnings {
        context.output.warn(&format!("{}: {warning}", server.name));
    }
    let mut line = Line::styled(Role::Name, &server.name)
        .then(Role::Plain, format!(": {}", plural(tools, "tool", "tools")));
    if let Some(protocol) = &server.protocol {
        line.push(Role::Dim, format!(", protocol {protocol}"));
    }
    if let Some(connect) = server.connect {
        line.push(Role::Dim, format!(", connected in {}", show_duration(connect)));
    }
    context.output.note(line);
    Ok(())
}

/// Shows the traffic of a server of the attached host until a signal arrives, the host exits or
/// stdout is closed. Connects to the server if necessary.
async fn follow_attached(
    host: &ToolHost,
    name: &[String],
    viewer: &Arc<TracePrinter>,
    context: &CommandContext,
) -> CommandResult {
    let (shown, names) = (Arc::clone(viewer), name.to_vec());
    let began = Arc::new(Notify::new());
    let is_watching = Arc::clone(&began);
    let sink: ObservationSink = Arc::new(move |seen| match seen {
        Observation::Started => is_watching.notify_one(),
        Observation::Traffic(captured) if names.contains(&captured.traffic.server) => {
            shown.show(&captured.traffic);
        }
        _ => {}
    });
    let connecting = async {
        began.notified().await;
        connect(host, name, context).await?;
        std::future::pending().await
    };
    let writing = async {
        loop {
            if let Some(stop) = stopped(viewer, context) {
                return stop;
            }
            let _next_look = tokio::time::timeout(POLL_INTERVAL, viewer.wake.notified()).await;
        }
    };
    tokio::select! {
        ended = host.observe_link(ObserveRequest::Activity, &sink, &context.cancel) => match ended {
            Ok(()) => Ok(()),
            Err(LinkError::Lost(error)) => Err(error.into()),
            Err(LinkError::Unsent) => {
                Err(Error::unreachable("the background host is shutting down").into())
            }
        },
        failed = connecting => failed,
        stop = writing => Err(stop),
    }
}

/// Stays connected until a signal arrives, the server is gone or stdout is closed.
async fn follow(
    host: &ToolHost,
    name: &[String],
    viewer: &TracePrinter,
    context: &CommandContext,
) -> CommandResult {
    let mut next_ping = tokio::time::Instant::now() + PING_INTERVAL;
    loop {
        if let Some(stop) = stopped(viewer, context) {
            return Err(stop);
        }
        let mut servers = host.servers().into_iter().filter(|server| name.contains(&server.name));
        conclude(servers.find_map(|server| server.state.error().cloned()))?;
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Ok(()),
            () = viewer.wake.notified() => {}
            () = tokio::time::sleep(POLL_INTERVAL) => {}
            () = tokio::time::sleep_until(next_ping) => {
                next_ping = tokio::time::Instant::now() + PING_INTERVAL;
                conclude(present::server::failure(&host.check_servers(name).await))?;
            }
        }
    }
}
