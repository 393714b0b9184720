//! Which ad-hoc server a command line names.

use clap::Arg;
use clap::builder::{StringValueParser, TypedValueParser};

use super::ad_hoc::{AdHocServer, is_url};
use super::args::{Cli, CliCommand};
use super::commands::auth::{AuthAction, AuthArgs};
use crate::model::{Error, safe_name};

/// The words of an ad-hoc server at the end of a command line, which [`Cli`] reads.
pub fn command() -> Arg {
    Arg::new("server_command")
        .last(true)
        .num_args(1..)
        .value_name("COMMAND|URL")
        .help("Use only this server: its command line, or its URL")
}

/// Moves the server from the words of a command, if given, to the options. A command that needs a
/// server name and has none uses this server.
pub fn take_server(cli: &mut Cli) -> Result<(), Error> {
    let Cli { global, command, server_command, .. } = cli;
    let mut words = std::mem::take(server_command);
    if words.is_empty() {
        words.extend(command.as_mut().and_then(take_url));
    }
    if let Some(url) = &global.server_url {
        if !is_url(url) {
            return Err(Error::usage(format!("--server-url: '{url}' is not a URL"))
                .with_hint("such as https://example.com/mcp, or unix:///run/mcp.sock"));
        }
        if !words.is_empty() {
            return Err(Error::usage("two servers are given: --server-url and another"));
        }
        words.push(url.clone());
    }
    if words.is_empty() {
        return match (&global.rare.server_name, global.rare.header.first()) {
            (None, None) => Ok(()),
            // This command writes one to a file, including headers.
            _ if matches!(command, Some(CliCommand::Add(_))) => Ok(()),
            _ => Err(Error::usage("--as and --header are for an ad-hoc server")
                .with_hint("name it: --server-url URL, or -- COMMAND at the end")),
        };
    }
    let mut server =
        AdHocServer::new(&words, global.rare.server_name.as_deref(), &global.rare.header)?;
    if let Some(CliCommand::Serve(args)) = command
        && !args.watch.is_empty()
    {
        server.watch(&args.watch);
    }
    if let Some(command) = command {
        set_default_server(command, &server.name);
    }
    global.ad_hoc = Some(server);
    Ok(())
}

/// Reads the name of a server, which may be the one in its file, with characters that its name here
/// does not have; an address stays as it is.
pub fn server() -> impl TypedValueParser<Value = String> {
    StringValueParser::new().map(|text| if is_url(&text) { text } else { safe_name(&text) })
}

/// Takes the URL that stands in place of a name.
fn take_url(command: &mut CliCommand) -> Option<String> {
    let is_url = |word: &mut String| is_url(word);
    match command {
        CliCommand::List(args) => {
            args.query.first_mut().is_some_and(is_url).then(|| args.query.remove(0))
        }
        CliCommand::Servers(args) => {
            args.names.first_mut().is_some_and(is_url).then(|| args.names.remove(0))
        }
        CliCommand::Inspect(args) => args.name.take_if(is_url),
        CliCommand::Trace(args) => args.server.take_if(is_url),
        CliCommand::Record(args) => args.server.take_if(is_url),
        _ => None,
    }
}

fn set_default_server(command: &mut CliCommand, name: &str) {
    let named = match command {
        CliCommand::Inspect(args) => &mut args.name,
        CliCommand::Trace(args) => &mut args.server,
        CliCommand::Record(args) => &mut args.server,
        CliCommand::Auth(AuthArgs { action: AuthAction::Login { server, .. } }) => server,
        _ => return,
    };
    named.get_or_insert_with(|| name.to_owned());
}
