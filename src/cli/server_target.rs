//! Which ad-hoc server a command line names.

use clap::builder::{StringValueParser, TypedValueParser};

use super::ad_hoc::{AdHocServer, is_url};
use super::args::{Cli, CliCommand};
use super::commands::history::HistoryAction;
use super::commands::prompts::PromptsAction;
use super::commands::resources::ResourcesAction;
use crate::model::{Error, safe_name};

/// Moves the server from the words of a command, if given, to the options. A command that needs a
/// server name and has none uses this server.
pub fn take_server(cli: &mut Cli) -> Result<(), Error> {
    let Cli { global, command, server_command, .. } = cli;
    let mut words = match command {
        Some(command) => server_words(command),
        None => std::mem::take(server_command),
    };
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

/// Takes the words that name an ad-hoc server: those after `--`, or a URL in place of a name.
fn server_words(command: &mut CliCommand) -> Vec<String> {
    let is_url = |word: &mut String| is_url(word);
    if let CliCommand::Record(args) = command {
        return args.server.take_if(is_url).into_iter().collect();
    }
    let target = match command {
        CliCommand::List(args) => &mut args.target,
        CliCommand::Servers(args) => &mut args.target,
        CliCommand::Inspect(args) => &mut args.target,
        CliCommand::Trace(args) => &mut args.target,
        CliCommand::Call(args) => &mut args.target,
        CliCommand::Bench(args) => &mut args.target,
        CliCommand::Complete(args) => &mut args.target,
        CliCommand::Export(args) => &mut args.target,
        CliCommand::Serve(args) => &mut args.target,
        CliCommand::History(args) => match &mut args.action {
            Some(HistoryAction::Rerun(args)) => &mut args.target,
            _ => return Vec::new(),
        },
        CliCommand::Resources(args) => match &mut args.action {
            ResourcesAction::List(args) => &mut args.target,
            ResourcesAction::Read(args) => &mut args.target,
            ResourcesAction::Watch(args) => &mut args.target,
        },
        CliCommand::Prompts(args) => match &mut args.action {
            PromptsAction::List(args) => &mut args.target,
            PromptsAction::Get(args) => &mut args.target,
        },
        _ => return Vec::new(),
    };
    let words = std::mem::take(&mut target.server_command);
    if !words.is_empty() {
        return words;
    }
    let url = match command {
        CliCommand::List(args) => {
            args.query.first_mut().is_some_and(is_url).then(|| args.query.remove(0))
        }
        CliCommand::Servers(args) => {
            args.names.first_mut().is_some_and(is_url).then(|| args.names.remove(0))
        }
        CliCommand::Inspect(args) => args.name.take_if(is_url),
        CliCommand::Trace(args) => args.server.take_if(is_url),
        _ => None,
    };
    url.into_iter().collect()
}

fn set_default_server(command: &mut CliCommand, name: &str) {
    let named = match command {
        CliCommand::Inspect(args) => &mut args.name,
        CliCommand::Trace(args) => &mut args.server,
        CliCommand::Record(args) => &mut args.server,
        _ => return,
    };
    named.get_or_insert_with(|| name.to_owned());
}
