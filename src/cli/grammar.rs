//! Parsing a command line, and its help.

use std::borrow::Cow;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory as _, Parser as _};

use super::args::{Cli, commands_in_groups};
use crate::util::spelling::nearest;

/// Parses a command line; the first word is the program.
pub fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let arguments = &*help_as_option(arguments);
    Cli::try_parse_from(arguments).or_else(|error| match error.kind() {
        ErrorKind::DisplayHelp => Err(help(arguments).unwrap_or(error)),
        _ => console_on_server(arguments).ok_or_else(|| without_far_suggestion(error)),
    })
}

/// Parses `toolhost [OPTIONS] -- COMMAND`, which has no subcommand. As an argument of the whole
/// program it would be suggested for every misspelled command.
fn console_on_server(arguments: &[OsString]) -> Option<Cli> {
    let at = arguments.iter().position(|word| word == "--")?;
    let mut cli = Cli::try_parse_from(arguments.get(..at)?).ok()?;
    let server = arguments.get(at + 1..)?.iter().map(|word| word.to_string_lossy().into_owned());
    cli.server_command = server.collect();
    cli.command.is_none().then_some(cli)
}

/// `help COMMAND` as `COMMAND --help`, which prints the same in half as many lines.
fn help_as_option(arguments: &[OsString]) -> Cow<'_, [OsString]> {
    match arguments {
        [program, help, rest @ ..] if help == "help" => {
            let words = std::iter::once(program).chain(rest).cloned();
            words.chain(["--help".into()]).collect()
        }
        other => other.into(),
    }
}

/// The help text for a command line that asks for it: short with `-h`, whole with `--help`.
fn help(arguments: &[OsString]) -> Option<clap::Error> {
    let mut grammar = Cli::command();
    grammar.build();
    let is_whole = arguments.iter().any(|word| word == "--help");
    let mut words = arguments.iter().skip(1).filter_map(|word| word.to_str());
    let names_command = words.any(|word| grammar.find_subcommand(word).is_some());
    let grammar = match (is_whole, names_command) {
        (true, _) => grammar.mut_subcommands(whole_help).mut_args(without_hiding),
        (false, true) => grammar.mut_subcommands(short_help),
        (false, false) => short_help_of_program(grammar),
    };
    grammar.try_get_matches_from(arguments).err()
}

/// Every option, and the examples before them.
pub(super) fn whole_help(command: Command) -> Command {
    command
        .help_template("{about-with-newline}\n{usage-heading} {usage}{after-help}\n\n{all-args}")
        .mut_args(without_hiding)
        .mut_subcommands(whole_help)
}

pub(super) fn without_hiding(argument: clap::Arg) -> clap::Arg {
    argument.hide_short_help(false)
}

fn short_help(command: Command) -> Command {
    command.after_help("--help shows every option, and examples.").mut_subcommands(short_help)
}

/// The global options that the short help of the program leaves to its commands.
const OF_COMMANDS: [&str; 7] =
    ["ask_all", "fresh", "quiet", "trace", "trust", "verbose", "version"];

fn short_help_of_program(grammar: Command) -> Command {
    let hide = |argument: clap::Arg| {
        let is_hidden = OF_COMMANDS.contains(&argument.get_id().as_str());
        let takes_values = argument.get_action().takes_values();
        argument.hide(is_hidden).hide_possible_values(takes_values)
    };
    grammar
        .mut_args(hide)
        .mut_subcommands(|command| command.hide(true))
        .override_usage("toolhost [OPTIONS] [COMMAND]")
        .help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{{all-args}}{{after-help}}",
            commands_in_groups()
        ))
        .after_help("--help shows every command and option, and what exit codes mean.")
}

/// Removes suggestions of the parser that are not similar: `nope` is not `inspect`.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn each_option_may_stand_before_and_behind_each_command() {
        let program = Cli::command();
        for option in program.get_arguments() {
            // Help is that of the command it stands behind.
            let Some(long) = option.get_long().filter(|long| *long != "help") else { continue };
            let value = match option.get_possible_values().first() {
                _ if !option.get_action().takes_values() => String::new(),
                Some(value) => format!("={}", value.get_name()),
                None => "=1".to_owned(),
            };
            let read = |line: String| format!("{:?}", parse(&words(&line)));
            let before = read(format!("toolhost --{long}{value} call x"));
            assert_eq!(read(format!("toolhost call x --{long}{value}")), before, "{long}");
            for command in Cli::command().get_subcommands() {
                read(format!("toolhost {} --{long}{value}", command.get_name()));
            }
        }
    }

    #[test]
    fn what_stands_behind_the_options_alone_is_a_server_for_the_console() {
        let read = parse(&words("toolhost --as mine -- npx -y list")).unwrap();
        assert_eq!(read.server_command, ["npx", "-y", "list"]);
        assert!(read.command.is_none() && read.global.server_name.as_deref() == Some("mine"));
        assert!(parse(&words("toolhost lst -- npx")).is_err());
    }

    #[test]
    fn the_short_option_gives_the_short_help() {
        let help = |line: &str| parse(&words(line)).unwrap_err().to_string();
        let (short, long) = (help("toolhost call -h"), help("toolhost call --help"));
        assert!(short.contains("--query") && long.contains("--query"));
        for rare in ["--reduced-motion", "--idle-timeout"] {
            assert!(!short.contains(rare) && long.contains(rare), "{rare}");
        }
        assert_eq!(help("toolhost help call"), long);
    }

    #[test]
    fn the_short_help_fits_on_a_screen() {
        fn check(command: &clap::Command, line: &str) {
            let help = parse(&words(&format!("{line} -h"))).unwrap_err().to_string();
            assert!(help.lines().count() <= 45, "{line}: {help}");
            let (_, global) = help.split_once("Global options:\n").unwrap();
            let options = global.lines().take_while(|line| !line.is_empty());
            assert!(options.filter(|line| line.contains(" --")).count() <= 12, "{line}: {help}");
            for command in command.get_subcommands().filter(|command| command.get_name() != "help")
            {
                check(command, &format!("{line} {}", command.get_name()));
            }
        }
        let mut program = Cli::command();
        program.build();
        check(&program, "toolhost");
    }
}
