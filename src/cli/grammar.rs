//! Parsing a command line with only the subcommands that it names; help, version and usage errors in the
//! program's own format.

use std::borrow::Cow;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args as _, CommandFactory as _};

use super::args::{Cli, command_grammar, commands_in_groups};
use super::options::{GlobalOptions, RareOptions};
use super::output::{CommandError, Output};
use crate::model::Error;
use crate::present::{Page, Role};
use crate::util::spelling::nearest;

/// Parses a command line; the first word is the program.
pub fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let arguments = &*help_as_option(arguments);
    match parse_named(arguments) {
        Ok(cli) => return Ok(cli),
        // Everything before it was parsed, and the output is the same for every command.
        Err(error) if error.kind() == ErrorKind::DisplayVersion => return Err(error),
        Err(_) => {}
    }
    match console_on_server(arguments) {
        Some(cli) => Ok(cli),
        None => Cli::read(arguments)
            .map_err(|error| brief_help(arguments, error))
            .map_err(without_far_suggestion),
    }
}

/// Parses `toolhost [OPTIONS] -- COMMAND`, which has no subcommand. As an argument of the whole
/// program it would be suggested for every misspelled command.
fn console_on_server(arguments: &[OsString]) -> Option<Cli> {
    let at = arguments.iter().position(|word| word == "--")?;
    let mut cli = Cli::read(arguments.get(..at)?).ok()?;
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

/// The global options that the short help of the program leaves to its commands.
const OF_COMMANDS: [&str; 6] = ["ask_all", "fresh", "quiet", "trace", "trust", "verbose"];

/// Shortens a help text requested with `-h`.
fn brief_help(arguments: &[OsString], error: clap::Error) -> clap::Error {
    let asks_for_all = |word: &OsString| word == "--help";
    if error.kind() != ErrorKind::DisplayHelp || arguments.iter().any(asks_for_all) {
        return error;
    }
    let names_command = named_command(arguments).is_some();
    let rare = RareOptions::augment_args(clap::Command::new("rare"));
    let rare = rare.get_arguments().map(clap::Arg::get_id).collect::<Vec<_>>();
    let hide = |argument: clap::Arg| {
        let id = argument.get_id();
        let is_rare = rare.contains(&id)
            || ["host_tools", "server_url"].contains(&id.as_str())
            || (!names_command && OF_COMMANDS.contains(&id.as_str()));
        let hides_values = !names_command && argument.get_action().takes_values();
        let argument = if id == "help" && !names_command {
            argument.help("Print this; --help prints all commands and options, and exit codes")
        } else {
            argument
        };
        argument.hide(is_rare).hide_possible_values(hides_values)
    };
    let help = Cli::command()
        .mut_args(hide)
        .disable_version_flag(!names_command)
        .override_usage("toolhost [OPTIONS] [COMMAND]")
        .help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{{all-args}}",
            commands_in_groups()
        ))
        .mut_subcommands(|command| {
            let examples = command.get_after_help().map(ToString::to_string);
            let has_examples = examples.is_some_and(|text| text.contains("Examples:"));
            command.hide(!names_command).after_help(if has_examples {
                "--help shows every option, and examples."
            } else {
                "--help shows every option."
            })
        });
    help.try_get_matches_from(arguments).err().unwrap_or(error)
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

fn named_command(arguments: &[OsString]) -> Option<clap::Command> {
    arguments.iter().skip(1).filter_map(|word| word.to_str()).find_map(command_grammar)
}

/// Parses a line with only the command that it appears to name. A wrong guess fails with an unknown
/// word: there are no arguments before the command.
fn parse_named(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let program = clap::Command::new("toolhost")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_flag(true)
        .disable_help_subcommand(true);
    let mut program = GlobalOptions::augment_args(program).subcommands(named_command(arguments));
    Cli::of_matches(&mut program.try_get_matches_from_mut(arguments)?)
}

pub fn print_parse_error(error: &clap::Error, output: &Output) -> Result<(), CommandError> {
    let rendered = error.render().to_string();
    match error.kind() {
        clap::error::ErrorKind::DisplayHelp | clap::error::ErrorKind::DisplayVersion => {
            let mut page = Page::default();
            page.text(Role::Plain, 0, rendered.trim_end());
            output.page(&page)
        }
        clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            if !output.has_json_errors() {
                let mut page = Page::default();
                page.text(Role::Plain, 0, rendered.trim_end());
                page.blank_line();
                output.stderr_page(&page);
            }
            Err(Error::usage("no command was given").into())
        }
        _ => Err(usage_error(&rendered).into()),
    }
}

pub fn message(error: &clap::Error) -> String {
    usage_error(&error.render().to_string()).message().to_owned()
}

/// Converts the parser's text to an error: its first paragraph is the message, its tips are the
/// hint, its usage is a detail.
pub(super) fn usage_error(rendered: &str) -> Error {
    let text = rendered.strip_prefix("error: ").unwrap_or(rendered);
    let lines = |paragraph: &str| -> Vec<String> {
        let lines = paragraph.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect()
    };
    let mut paragraphs = text.split("\n\n").map(lines);
    let message = paragraphs.next().unwrap_or_default().join(" ");
    let mut hints = Vec::new();
    let mut error = Error::usage(message.trim_end_matches('.'));
    for lines in paragraphs {
        let paragraph = lines.join(" ");
        if paragraph.starts_with("Usage: ") {
            let usages = lines.iter().map(|line| line.strip_prefix("Usage: ").unwrap_or(line));
            error = error.with_details(usages.map(|usage| format!("usage: {usage}")));
        } else if let Some(tip) = paragraph.strip_prefix("tip: ") {
            // The words after `--` are a server, not a value.
            let tips = tip.split(" tip: ").filter(|tip| !tip.starts_with("to pass '"));
            hints.extend(tips.map(str::to_owned));
        } else if let Some(values) = paragraph.strip_prefix('[') {
            error = error.with_detail(format!("[{values}"));
        }
    }
    if hints.is_empty() {
        hints.push("try --help".to_owned());
    }
    error.with_hint(hints.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

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
                    .unwrap_or_else(|| panic!("'{name}' needs a row in `commands`"));
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
            "toolhost trust revoke list -q",
            "toolhost history diff a b",
            "toolhost -o json config check",
            "toolhost list -- python3 list",
            "toolhost call echo a=1 --yes -- npx -y call",
            "toolhost call echo a=1 -vv",
            "toolhost list --host-tools=a.yaml -ojson",
            "toolhost --mcp a.json list --mcp b.json",
        ] {
            let words = words(line);
            let whole = Cli::read(&words).unwrap();
            let read = parse_named(&words);
            let read = read.unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!(format!("{read:?}"), format!("{whole:?}"), "{line}");
        }
    }

    /// The parser panics in a build for development where an option names one that is not there.
    #[test]
    fn each_option_may_stand_behind_each_command() {
        let program = GlobalOptions::augment_args(clap::Command::new("toolhost"));
        for option in program.get_arguments() {
            let Some(long) = option.get_long() else { continue };
            let value = if option.get_action().takes_values() { " 1" } else { "" };
            for command in Cli::command().get_subcommands() {
                let line = format!("toolhost {} --{long}{value}", command.get_name());
                match (parse(&words(&line)), Cli::read(&words(&line))) {
                    (Ok(read), Ok(whole)) => assert_eq!(format!("{read:?}"), format!("{whole:?}")),
                    (read, whole) => assert_eq!(read.is_ok(), whole.is_ok(), "{line}"),
                }
            }
        }
    }

    #[test]
    fn what_stands_behind_the_options_alone_is_a_server_for_the_console() {
        let read = parse(&words("toolhost --as mine -- npx -y list")).unwrap();
        assert_eq!(read.server_command, ["npx", "-y", "list"]);
        assert!(read.command.is_none() && read.global.rare.server_name.as_deref() == Some("mine"));
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
            for command in command.get_subcommands() {
                check(command, &format!("{line} {}", command.get_name()));
            }
        }
        check(&Cli::command(), "toolhost");
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
            "toolhost call -- npx",
            "toolhost inspect",
            "toolhost trace -- npx",
            "toolhost call --help",
            "toolhost --help list",
            "toolhost --version",
            "toolhost --json --version list",
            "toolhost list --version",
            "toolhost nothing --version",
            "toolhost --profile --version",
            "toolhost -q -v list",
            "toolhost -q list -v",
            "toolhost call x --yes --ask-all",
            "toolhost --ask-all call x --yes",
        ] {
            let words = words(line);
            match (parse(&words), Cli::read(&words)) {
                (Ok(read), Ok(whole)) => assert_eq!(format!("{read:?}"), format!("{whole:?}")),
                (Err(read), Err(whole)) => assert_eq!(read.to_string(), whole.to_string()),
                (read, whole) => panic!("{line}: {read:?}, but the whole says {whole:?}"),
            }
        }
    }
}
