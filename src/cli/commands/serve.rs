//! `toolhost serve`: the catalogue as an MCP server.

use futures_util::future::{BoxFuture, FutureExt as _, join_all};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use super::prelude::*;
use super::serve_token::{self, ServeTokenArgs};
use super::stats;
use crate::assembly::FrontEnd;
use crate::cli::config_watch::ConfigWatch;
use crate::serve::catalogue_server::{CatalogueServer, ClientRegistry, ServeSettings};
use crate::serve::listen::access::AccessRules;
use crate::serve::listen::authentication::{Authenticator, TokenFile};
use crate::serve::listen::http::HttpListener;
use crate::serve::listen::issued_tokens::IssuedTokens;
use crate::serve::listen::oauth::{AcceptedScope, ProtectedResource};
use crate::serve::listen::token_store::TokenStore;
use crate::serve::listen::unix::UnixSocketListener;
use crate::serve::listen::{accept, stream};
use crate::util::regular_file;

/// How long calls may continue after a signal to stop.
const GRACE: Duration = Duration::from_secs(12);
const TOKEN: &str = "TOOLHOST_SERVE_TOKEN";
/// Maximum size of a token file in bytes.
const MAX_TOKEN: u64 = 64 << 10;

/// Serve the catalogue as an MCP server.
///
/// Serves all tools of tools.yaml and mcp.yaml, with prompts and resources, to MCP clients of
/// either protocol era. Several transports can be served at once. HTTP and WebSocket clients must
/// send a token: `TOOLHOST_SERVE_TOKEN` or one generated for this run, which give full access, or one
/// issued to a client with `serve token issue`.
///
/// Changed files are reloaded while clients are connected, and at once on SIGHUP: clients are
/// notified of changed lists, and unchanged entries keep their connections. Files with new errors,
/// and changes that are not trusted yet, are ignored until fixed or trusted.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(arg = ad_hoc::command())]
pub struct ServeArgs {
    /// Serve one client over stdio (the default)
    #[arg(long)]
    pub stdio: bool,
    /// Serve Streamable HTTP at this address, such as 127.0.0.1:8080; the endpoint is /mcp
    #[arg(long, value_name = "ADDR")]
    pub http: Option<String>,
    /// Serve WebSocket at this address, one message per text frame
    #[arg(long, value_name = "ADDR")]
    pub ws: Option<String>,
    /// Serve on a Unix socket that only your user can connect to
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    pub unix: Option<PathBuf>,
    /// Run calls that need approval without asking, because the client asks its user itself
    #[arg(short = 'y', long)]
    pub yes: bool,
    /// Offer tools under their bare names where those are unique
    #[arg(long)]
    pub bare_names: bool,
    /// Serve three tools that find, describe and call all others, instead of every definition
    #[arg(long)]
    pub lean: bool,
    /// With --lean, serve the definitions of these tools too (repeatable); 'used' means the tools
    /// of 95 % of the calls in the last 30 days
    #[arg(long, value_name = "PATTERN|used", requires = "lean")]
    pub whole: Vec<String>,
    /// Restart an ad-hoc server when files change that match this pattern, such as 'src/**/*.py'
    /// (repeatable)
    #[arg(long, value_name = "PATTERN", requires = "server_command")]
    pub watch: Vec<String>,
    /// Allow an --http or --ws address that other machines can connect to
    #[arg(long)]
    pub dangerously_bind: bool,
    /// Additional host name that HTTP and WebSocket clients may use
    #[arg(long = "allow-host", hide_short_help = true, value_name = "HOST")]
    pub allowed_hosts: Vec<String>,
    /// Origin of a web page that may use the server: scheme and host
    #[arg(long = "allow-origin", hide_short_help = true, value_name = "ORIGIN")]
    pub allowed_origins: Vec<String>,
    /// Read the full-access token from this file
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub token_file: Option<PathBuf>,
    /// Accept access tokens of this authorization server (issuer URL) over HTTP
    #[arg(long, hide_short_help = true, value_name = "URL", requires = "http")]
    pub oauth_issuer: Option<String>,
    /// Required audience of these tokens, such as this server's URL (default: its address)
    #[arg(long, hide_short_help = true, value_name = "AUDIENCE", requires = "oauth_issuer")]
    pub oauth_audience: Vec<String>,
    /// Scope that grants access, optionally limited to a profile (default: any token)
    #[arg(long, hide_short_help = true, value_name = "SCOPE[=PROFILE]", requires = "oauth_issuer")]
    pub oauth_scope: Vec<String>,
    /// A subcommand.
    #[command(subcommand)]
    pub action: Option<ServeAction>,
}

/// Subcommands of `serve`.
#[derive(Debug, Subcommand)]
pub enum ServeAction {
    /// Issue, list and revoke access tokens for clients over HTTP and WebSocket.
    Token(ServeTokenArgs),
}

type RunningListener<'a> = BoxFuture<'a, Result<(), Error>>;

pub async fn run(args: &ServeArgs, context: &CommandContext) -> CommandResult {
    if let Some(ServeAction::Token(args)) = &args.action {
        return serve_token::run(args, context);
    }
    context.format(formats::TEXT)?;
    let is_alone = args.http.is_none() && args.ws.is_none() && args.unix.is_none();
    let uses_stdio = args.stdio || is_alone;
    if uses_stdio {
        context.require_piped_stdout("serve")?;
    }
    context.request_grace_period(GRACE);
    let clients = ClientRegistry::new();
    // Clients answer the questions; none reach this terminal.
    let front_end = FrontEnd {
        approver: Arc::clone(&clients) as _,
        inbox: Arc::clone(&clients) as _,
        events: clients.events(),
        traffic: context.trace_outputs.sink(&context.output)?,
    };
    let (assembly, socket) = context.assemble_for(front_end.clone())?;
    context.warn_unserved(&assembly.configuration);
    // From here on, SIGHUP requests a reload instead of ending the run.
    let following = ConfigWatch::begin(context, &assembly, socket, front_end);
    let stop = context.cancel.clone();
    let settings = ServeSettings {
        uses_bare_names: args.bare_names,
        assume_yes: args.yes,
        lean: if args.lean { Some(whole_definitions(&args.whole, context).await?) } else { None },
        background: None,
    };
    let host = &assembly.host;
    let server = CatalogueServer::new(Arc::clone(host), clients, settings, context.abort.clone());
    let (_token_file, mut listeners) = open_listeners(args, context, host, &server, &stop).await?;
    if uses_stdio {
        let serving = async {
            let served = stream::serve_stdio(&server, is_alone, &stop).await;
            // The client that started this process is gone.
            stop.cancel();
            served
        };
        listeners.push(serving.boxed());
    }
    let watching = async { tokio::join!(server.watch_servers(), following.follow()) };
    tokio::select! {
        served = join_all(listeners) => served.into_iter().collect::<Result<(), Error>>()?,
        _ = watching => {}
    }
    Ok(())
}

/// The patterns of the tools that a lean catalogue defines too.
async fn whole_definitions(
    given: &[String],
    context: &CommandContext,
) -> Result<Vec<String>, Error> {
    let mut whole = given.to_vec();
    whole.retain(|pattern| pattern != "used");
    if whole.len() < given.len() {
        whole.extend(stats::mostly_used(context).await?);
    }
    Ok(whole)
}

/// Opens the requested transports, before the first client is served.
async fn open_listeners<'a>(
    args: &ServeArgs,
    context: &CommandContext,
    host: &Arc<ToolHost>,
    server: &'a Arc<CatalogueServer>,
    stop: &'a CancellationToken,
) -> Result<(Option<TokenFile>, Vec<RunningListener<'a>>), Error> {
    let mut listeners: Vec<RunningListener<'a>> = Vec::new();
    let note = |text: String| context.output.note(text);
    if let Some(path) = &args.unix {
        let listener = UnixSocketListener::bind(path)?;
        note(format!("listening on {}", path.display()));
        listeners.push(async move { listener.serve(server, stop).await }.map(Ok).boxed());
    }
    if args.http.is_none() && args.ws.is_none() {
        return Ok((None, listeners));
    }
    let rules =
        Arc::new(AccessRules::new(args.allowed_hosts.clone(), args.allowed_origins.clone()));
    let mut http = None;
    if let Some(text) = &args.http {
        http = Some((accept::listen(text, args.dangerously_bind).await?, text));
    }
    let resource = match (&args.oauth_issuer, &http) {
        (Some(issuer), Some((listener, text))) => {
            let address = format!("http://{}/mcp", shown_address(listener, text));
            Some(protected_resource(args, issuer, &address, host)?)
        }
        _ => None,
    };
    let (authenticator, token_file) = authenticator(args, context, host, resource)?;
    if let Some((listener, text)) = http {
        note(format!("listening on http://{}/mcp", shown_address(&listener, text)));
        let http = HttpListener::new(server, Arc::clone(&rules), Some(Arc::clone(&authenticator)));
        listeners.push(async move { http.serve(listener, stop).await }.map(Ok).boxed());
    }
    if let Some(text) = &args.ws {
        let listener = accept::listen(text, args.dangerously_bind).await?;
        note(format!("listening on ws://{}/mcp", shown_address(&listener, text)));
        let ws = HttpListener::new(server, rules, Some(authenticator)).over_web_socket();
        listeners.push(async move { ws.serve(listener, stop).await }.map(Ok).boxed());
    }
    if let Some(file) = &token_file {
        note(format!("the token is in {}", file.path().display()));
    }
    Ok((token_file, listeners))
}

/// The actual address; for port 0, the system chose one.
fn shown_address(listener: &tokio::net::TcpListener, requested: &str) -> String {
    listener.local_addr().map_or_else(|_| requested.to_owned(), |address| address.to_string())
}

/// The authenticator with the owner's token (given or generated now) and the issued ones.
fn authenticator(
    args: &ServeArgs,
    context: &CommandContext,
    host: &Arc<ToolHost>,
    resource: Option<ProtectedResource>,
) -> Result<(Arc<Authenticator>, Option<TokenFile>), Error> {
    let state = context.environment.state_dir();
    let host = Arc::clone(host);
    let has_profile = Box::new(move |name: &str| host.require_profile(name).is_ok());
    let issued =
        state.as_deref().map(|state| IssuedTokens::new(TokenStore::in_state(state), has_profile));
    let token = owner_token(args, context)?;
    // Clients of an authorization server need no generated token.
    if token.is_some() || (resource.is_some() && args.ws.is_none()) {
        return Ok((Arc::new(Authenticator::new(token.as_ref(), issued, resource)), None));
    }
    let Some(state) = state else {
        let hint = format!("set {TOKEN}");
        return Err(Error::config("there is no directory for a token").with_hint(hint));
    };
    let file = TokenFile::create(&state.join("serve"))?;
    Ok((Arc::new(Authenticator::new(Some(file.token()), issued, resource)), Some(file)))
}

/// The server at `address` as a resource of its authorization server.
fn protected_resource(
    args: &ServeArgs,
    issuer: &str,
    address: &str,
    host: &ToolHost,
) -> Result<ProtectedResource, Error> {
    let url = address.parse().map_err(|error| Error::usage(format!("{address}: {error}")))?;
    let scopes = args.oauth_scope.iter().map(|text| {
        let parts = text.split_once('=').map(|(name, profile)| (name, Some(profile)));
        let (name, profile) = parts.unwrap_or((text, None));
        let is_in_header = |c: char| c.is_ascii_graphic() && c != '"' && c != '\\';
        if name.is_empty() || !name.chars().all(is_in_header) {
            return Err(Error::usage(format!("'{name}' is not a valid scope")));
        }
        profile.map_or(Ok(()), |profile| host.require_profile(profile))?;
        Ok(AcceptedScope { name: name.to_owned(), profile: profile.map(str::to_owned) })
    });
    let scopes = scopes.collect::<Result<_, Error>>()?;
    ProtectedResource::new(issuer, url, args.oauth_audience.clone(), scopes)
}

/// The given token: from a file or the environment.
fn owner_token(args: &ServeArgs, context: &CommandContext) -> Result<Option<SecretString>, Error> {
    let (token, place) = if let Some(path) = &args.token_file {
        let place = path.display().to_string();
        let bytes = regular_file::bytes(&context.environment.cwd().join(path), MAX_TOKEN)
            .map_err(|error| Error::config(format!("cannot read the token in {place}: {error}")))?;
        let text = String::from_utf8(bytes);
        (text.map_err(|_| Error::config(format!("{place} is not UTF-8 text")))?, place)
    } else if let Some(token) = context.environment.var(TOKEN) {
        (token, TOKEN.to_owned())
    } else {
        return Ok(None);
    };
    match token.trim() {
        "" => Err(Error::usage(format!("{place} is empty"))),
        token => Ok(Some(SecretString::from(token.to_owned()))),
    }
}
