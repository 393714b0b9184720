//! `toolhost serve`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use futures_util::future::{BoxFuture, FutureExt as _, join_all};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use crate::assembly::{Assembly, FrontEnd};
use crate::cli::ad_hoc::ServerCommandArgs;
use crate::cli::context::{CommandContext, CommandResult};
use crate::cli::output::{Output, StyledLine};
use crate::model::{Error, EventSink};
use crate::serve::catalogue_server::{CatalogueServer, ClientRegistry, ServeSettings};
use crate::serve::listen::access::AccessRules;
use crate::serve::listen::http::HttpListener;
use crate::serve::listen::token::TokenFile;
use crate::serve::listen::unix::UnixSocketListener;
use crate::serve::listen::{address, stdio, web_socket};

/// How long calls may go on after the server was told to end.
const GRACE: Duration = Duration::from_secs(12);
/// The variable that holds the token of network clients.
const TOKEN: &str = "TOOLHOST_SERVE_TOKEN";

/// Serve the catalogue as an MCP server.
///
/// Every tool of tools.yaml and mcp.yaml from one server, with prompts and resources, to any MCP
/// client of either protocol era. Several transports may be served at once. Clients over HTTP and
/// WebSocket have to send a token: the one in the environment, or one that is made for this run.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Serve one client on standard input and output (the default)
    #[arg(long)]
    pub stdio: bool,
    /// Serve Streamable HTTP at this address, such as 127.0.0.1:8080; MCP answers at /mcp
    #[arg(long, value_name = "ADDR")]
    pub http: Option<String>,
    /// Serve WebSocket at this address, one message in each text frame
    #[arg(long, value_name = "ADDR")]
    pub ws: Option<String>,
    /// Serve on a Unix socket that only you can connect to
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    pub unix: Option<PathBuf>,
    /// Run calls that need approval without asking, because the client asks its person itself
    #[arg(short = 'y', long)]
    pub yes: bool,
    /// Offer tools under their own names where no other tool has the same one
    #[arg(long)]
    pub bare_names: bool,
    /// Let other machines connect: allow an --http or --ws address that is not this machine's own
    #[arg(long)]
    pub dangerously_bind: bool,
    /// A name beside localhost under which HTTP and WebSocket clients may ask for the server
    #[arg(long = "allow-host", value_name = "HOST")]
    pub allowed_hosts: Vec<String>,
    /// The origin of a web page that may use the server: its scheme and host
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub allowed_origins: Vec<String>,
    /// A server that is in no file.
    #[command(flatten)]
    pub target: ServerCommandArgs,
}

/// A transport that is open, and what serves it.
type RunningListener<'a> = BoxFuture<'a, Result<(), Error>>;

/// Runs the command.
///
/// # Errors
/// What is wrong with the configuration as a whole, and addresses that cannot be listened on.
pub async fn run(args: &ServeArgs, context: &CommandContext) -> CommandResult {
    let uses_stdio =
        args.stdio || (args.http.is_none() && args.ws.is_none() && args.unix.is_none());
    if uses_stdio {
        context.require_piped_stdout("serve")?;
    }
    context.request_grace_period(GRACE);
    let clients = ClientRegistry::new();
    let assembly = context.assemble_for(front_end(&clients, context)?)?;
    note_untrusted(&assembly, &context.output);
    let stop = context.cancel.clone();
    let settings = ServeSettings { uses_bare_names: args.bare_names, assume_yes: args.yes };
    let server =
        CatalogueServer::new(Arc::clone(&assembly.host), clients, settings, context.abort.clone());
    let is_alone = args.http.is_none() && args.ws.is_none() && args.unix.is_none();
    let (_token_file, listeners) = open_listeners(args, context, &server, &stop).await?;
    let mut open: Vec<RunningListener<'_>> = listeners;
    if uses_stdio {
        let (server, stop) = (&server, stop.clone());
        open.push(
            async move {
                let served = stdio::serve(server, is_alone, &stop).await;
                // The client that started this process is gone.
                stop.cancel();
                served
            }
            .boxed(),
        );
    }
    let serving = join_all(open);
    let watching = async {
        server.watch_servers().await;
        std::future::pending::<()>().await;
    };
    let served = tokio::select! {
        served = serving => served,
        () = watching => Vec::new(),
    };
    served.into_iter().collect::<Result<Vec<()>, Error>>()?;
    Ok(())
}

/// Opens the transports that were asked for, before the first client is served.
async fn open_listeners<'a>(
    args: &ServeArgs,
    context: &CommandContext,
    server: &'a Arc<CatalogueServer>,
    stop: &'a CancellationToken,
) -> Result<(Option<TokenFile>, Vec<RunningListener<'a>>), Error> {
    let mut listeners: Vec<RunningListener<'a>> = Vec::new();
    let note = |words: String| context.output.note(&StyledLine::plain(words));
    if let Some(path) = &args.unix {
        let listener = UnixSocketListener::bind(path)?;
        note(format!("listening on {}", path.display()));
        listeners.push(async move { listener.serve(server, stop).await }.map(Ok).boxed());
    }
    if args.http.is_none() && args.ws.is_none() {
        return Ok((None, listeners));
    }
    let (rules, token_file) = access_rules(args, context)?;
    if let Some(text) = &args.http {
        let listener = address::listen(text, args.dangerously_bind).await?;
        note(format!("listening on http://{}/mcp", shown_address(&listener, text)));
        let http = HttpListener::new(server, Arc::clone(&rules));
        listeners.push(async move { http.serve(listener, stop).await }.map(Ok).boxed());
    }
    if let Some(text) = &args.ws {
        let listener = address::listen(text, args.dangerously_bind).await?;
        note(format!("listening on ws://{}/mcp", shown_address(&listener, text)));
        listeners.push(
            async move { web_socket::serve(server, &rules, listener, stop).await }.map(Ok).boxed(),
        );
    }
    if let Some(file) = &token_file {
        note(format!("the token is in {}", file.path().display()));
    }
    Ok((token_file, listeners))
}

/// The address as the system gave it; a port of 0 was chosen there.
fn shown_address(listener: &tokio::net::TcpListener, asked: &str) -> String {
    listener.local_addr().map_or_else(|_| asked.to_owned(), |address| address.to_string())
}

fn access_rules(
    args: &ServeArgs,
    context: &CommandContext,
) -> Result<(Arc<AccessRules>, Option<TokenFile>), Error> {
    let (hosts, origins) = (args.allowed_hosts.clone(), args.allowed_origins.clone());
    if let Some(token) = context.environment.var(TOKEN) {
        if token.trim().is_empty() {
            return Err(Error::usage(format!("{TOKEN} is empty")));
        }
        let token = SecretString::from(token.trim().to_owned());
        return Ok((Arc::new(AccessRules::new(&token, hosts, origins)), None));
    }
    let Some(state) = context.environment.state_dir() else {
        let hint = format!("set {TOKEN}");
        return Err(Error::config("there is no directory to keep a token in").with_hint(hint));
    };
    let file = TokenFile::create(&state.join("serve"))?;
    Ok((Arc::new(AccessRules::new(file.token(), hosts, origins)), Some(file)))
}

/// The clients answer what is asked; nothing of it reaches this terminal.
fn front_end(clients: &Arc<ClientRegistry>, context: &CommandContext) -> Result<FrontEnd, Error> {
    let events = Arc::clone(clients);
    Ok(FrontEnd {
        approver: Arc::clone(clients) as _,
        inbox: Arc::clone(clients) as _,
        events: EventSink::new(move |event| events.deliver(event)),
        traffic: context.trace_outputs.sink(&context.output)?,
    })
}

fn note_untrusted(assembly: &Assembly, output: &Output) {
    if assembly.configuration.trust_request.is_some() {
        output.warn(
            "this project is not trusted, so what it would start is not served; \
             see what it is with 'toolhost trust'",
        );
    }
}
