//! Parsing a command line with only the subcommands that it names.
//!
//! Owns: which part of the grammar that is. Building the whole one, each command with all global
//! options, takes longer than everything else a short run does; a line that is right needs the one
//! command it names. Never does: word an error; any line that the part cannot read is read again by
//! the whole.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args as _, FromArgMatches as _, Parser as _};

use super::args::Cli;
use super::commands::{
    audit, auth, bench, call, complete, completions, config, dispatch, down, export, history,
    inspect, list, pin, prompts, ps, record, replay, resources, serve, servers, stats, trace,
    trust, up, verify,
};
use super::options::GlobalOptions;
use crate::util::spelling::nearest;

/// Reads a command line; the first word is the program.
///
/// # Errors
/// What the whole grammar says about a line that is wrong, or asks for help or the version.
pub fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let named = arguments.iter().skip(1).filter_map(|word| word.to_str()).find_map(command_grammar);
    match parse_partial(arguments, named) {
        Ok(cli) => Ok(cli),
        // All that stood before it was read, and the answer is the same for every command.
        Err(error) if error.kind() == clap::error::ErrorKind::DisplayVersion => Err(error),
        Err(_) => Cli::try_parse_from(arguments).map_err(without_far_suggestion),
    }
}

/// Takes out a value that the parser proposes although it is not near: `nope` is no `inspect`.
fn without_far_suggestion(mut error: clap::Error) -> clap::Error {
    if error.kind() == ErrorKind::InvalidValue
        && let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidValue)
        && let Some(ContextValue::String(proposed)) = error.get(ContextKind::SuggestedValue)
        && nearest(typed, [proposed.as_str()]).is_none()
    {
        error.remove(ContextKind::SuggestedValue);
    }
    error
}

/// Reads a line by the global options and the command that it seems to name. A wrong guess ends in
/// an unknown word: there are no arguments before the command.
fn parse_partial(arguments: &[OsString], named: Option<clap::Command>) -> Result<Cli, clap::Error> {
    let program = clap::Command::new("toolhost")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_flag(true)
        .disable_help_subcommand(true);
    let program = GlobalOptions::augment_args(program).subcommands(named);
    Cli::from_arg_matches_mut(&mut program.try_get_matches_from(arguments)?)
}

/// The grammar of one command, without its words for people. A name that is not here is no mistake:
/// the whole grammar knows it.
fn command_grammar(name: &str) -> Option<clap::Command> {
    let named = clap::Command::new;
    Some(match name {
        "list" => list::ListArgs::augment_args(named("list")),
        "inspect" | "show" => inspect::InspectArgs::augment_args(named("inspect").alias("show")),
        "call" | "invoke" => call::CallArgs::augment_args(named("call").alias("invoke")),
        "export" => export::ExportArgs::augment_args(named("export")),
        "dispatch" => dispatch::DispatchArgs::augment_args(named("dispatch")),
        "serve" => serve::ServeArgs::augment_args(named("serve")),
        "up" => up::UpArgs::augment_args(named("up")),
        "ps" => ps::PsArgs::augment_args(named("ps")),
        "down" => down::DownArgs::augment_args(named("down")),
        "servers" => servers::ServersArgs::augment_args(named("servers")),
        "resources" => resources::ResourcesArgs::augment_args(named("resources")),
        "prompts" => prompts::PromptsArgs::augment_args(named("prompts")),
        "bench" => bench::BenchArgs::augment_args(named("bench")),
        "stats" => stats::StatsArgs::augment_args(named("stats")),
        "complete" => complete::CompleteArgs::augment_args(named("complete")),
        "trace" => trace::TraceArgs::augment_args(named("trace")),
        "record" => record::RecordArgs::augment_args(named("record")),
        "replay" => replay::ReplayArgs::augment_args(named("replay")),
        "audit" => audit::AuditArgs::augment_args(named("audit")),
        "history" => history::HistoryArgs::augment_args(named("history")),
        "pin" => pin::PinArgs::augment_args(named("pin")),
        "verify" => verify::VerifyArgs::augment_args(named("verify")),
        "trust" => trust::TrustArgs::augment_args(named("trust")),
        "auth" => auth::AuthArgs::augment_args(named("auth")),
        "config" => config::ConfigArgs::augment_args(named("config")),
        "completions" => completions::CompletionsArgs::augment_args(named("completions")),
        "demo-server" => named("demo-server"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    /// What a command takes, nested commands included.
    fn takes(command: &clap::Command) -> Vec<String> {
        let mut all: Vec<String> =
            command.get_arguments().map(|argument| format!("{argument:?}")).collect();
        for nested in command.get_subcommands() {
            all.push(nested.get_name().to_owned());
            all.extend(takes(nested));
        }
        all
    }

    #[test]
    fn each_command_alone_is_what_it_is_in_the_whole_grammar() {
        for command in Cli::command().get_subcommands() {
            for name in std::iter::once(command.get_name()).chain(command.get_all_aliases()) {
                let alone = command_grammar(name)
                    .unwrap_or_else(|| panic!("'{name}' needs a line in `alone`"));
                assert_eq!(alone.get_name(), command.get_name());
                let aliases = |command: &clap::Command| {
                    command.get_all_aliases().map(str::to_owned).collect::<Vec<_>>()
                };
                assert_eq!(aliases(&alone), aliases(command));
                assert_eq!(takes(&alone), takes(command), "{name}");
            }
        }
    }

    #[test]
    fn a_line_that_is_right_needs_one_command_and_means_the_same() {
        for line in [
            "toolhost list",
            "toolhost --json list --server a word",
            "toolhost --mcp list.yaml call null-echo message=hi -v",
            "toolhost call list a=1 --timeout 3s",
            "toolhost show call",
            "toolhost trust revoke list --plain",
            "toolhost history diff a b",
            "toolhost -o json config check",
        ] {
            let words = words(line);
            let named =
                words.iter().skip(1).filter_map(|word| word.to_str()).find_map(command_grammar);
            let read =
                parse_partial(&words, named).unwrap_or_else(|error| panic!("{line}: {error}"));
            let whole = Cli::try_parse_from(&words).unwrap();
            assert_eq!(format!("{read:?}"), format!("{whole:?}"), "{line}");
        }
    }

    #[test]
    fn whatever_a_line_is_the_whole_grammar_has_the_last_word() {
        for line in [
            "toolhost",
            "toolhost --profile list call x",
            "toolhost --profile call list",
            "toolhost lst",
            "toolhost list call --jsn",
            "toolhost call",
            "toolhost call --help",
            "toolhost --help list",
            "toolhost --version",
            "toolhost --json --version list",
            "toolhost list --version",
            "toolhost nothing --version",
            "toolhost --profile --version",
            "toolhost -q -v list",
        ] {
            let words = words(line);
            match (parse(&words), Cli::try_parse_from(&words)) {
                (Ok(read), Ok(whole)) => assert_eq!(format!("{read:?}"), format!("{whole:?}")),
                (Err(read), Err(whole)) => assert_eq!(read.to_string(), whole.to_string()),
                (read, whole) => panic!("{line}: {read:?}, but the whole says {whole:?}"),
            }
        }
    }
}
