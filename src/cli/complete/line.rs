//! The command line that is being completed.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};

use crate::cli::args::Cli;
use crate::cli::options::GlobalOptions;

/// A line as far as it can be parsed.
pub(super) struct CompletedLine {
    pub(super) global: GlobalOptions,
    /// The innermost command.
    pub(super) command: String,
    matches: ArgMatches,
}

impl CompletedLine {
    /// The line of this process; completers only receive the current word.
    pub(super) fn of_process() -> Option<Self> {
        Self::read(std::env::args_os())
    }

    /// The line follows `--`, and starts with the program.
    fn read(words: impl Iterator<Item = OsString>) -> Option<Self> {
        let line = words.skip_while(|word| word != "--").skip(1);
        let mut matches = Cli::command().ignore_errors(true).try_get_matches_from(line).ok()?;
        let global = GlobalOptions::from_arg_matches(&matches).ok()?;
        let mut command = String::new();
        while let Some((name, inner)) = matches.remove_subcommand() {
            (command, matches) = (name, inner);
        }
        Some(Self { global, command, matches })
    }

    /// The name whose arguments are completed.
    pub(super) fn name(&self) -> Option<&str> {
        self.matches.try_get_one::<String>("name").ok()?.map(String::as_str)
    }

    /// The keys already given after the name, as `key=value` or `key:=json`.
    pub(super) fn given_keys(&self) -> Vec<&str> {
        let words = self.matches.try_get_many::<String>("words").ok().flatten();
        let keys = words.into_iter().flatten().filter_map(|word| word.split_once('='));
        keys.map(|(key, _)| key.trim_end_matches(':')).collect()
    }
}

/// The entry of a tool, however its name is written.
pub(super) fn find_by_name<'a, T>(all: &'a BTreeMap<String, T>, name: &str) -> Option<&'a T> {
    let plain = name.replace("__", "-").replace(['.', '/', ':'], "-");
    let mut bare = all.iter().filter(|(full, _)| {
        full.strip_suffix(name).is_some_and(|component| component.ends_with('-'))
    });
    all.get(name).or_else(|| all.get(&plain)).or_else(|| match (bare.next(), bare.next()) {
        (Some((_, only)), None) => Some(only),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn line(text: &str) -> CompletedLine {
        let words = format!("toolhost -- toolhost {text}");
        CompletedLine::read(words.split(' ').map(OsString::from)).unwrap()
    }

    #[test]
    fn the_names_of_a_line_are_found_among_its_options() {
        for (text, command, name, given) in [
            ("--mcp x -v call --timeout 5s demo-add a=1 --yes b:=2", "call", "demo-add", "a b"),
            ("bench -n 5 demo-add a=1 -c 2", "bench", "demo-add", "a"),
            ("prompts get --server demo greet name=x=y", "get", "greet", "name"),
            ("invoke call a=1 c", "call", "call", "a"),
            ("run --json again", "run", "again", ""),
        ] {
            let line = line(text);
            assert_eq!((&*line.command, line.name()), (command, Some(name)), "{text}");
            assert_eq!(line.given_keys().join(" "), given, "{text}");
        }
        assert_eq!(line("call").name(), None);
    }

    #[test]
    fn a_tool_is_found_however_its_name_is_written() {
        let all = BTreeMap::from([("demo-add".to_owned(), 1), ("now".to_owned(), 2)]);
        for name in ["demo-add", "demo.add", "demo/add", "demo:add", "demo__add", "add"] {
            assert_eq!(find_by_name(&all, name), Some(&1), "{name}");
        }
        assert_eq!(find_by_name(&all, "dd"), None);
    }

    #[test]
    fn files_named_on_the_line_are_used() {
        for text in ["--tools a --mcp=b call x", "call --mcp b x --tools a", "--tools a --mcp b x"]
        {
            let global = line(text).global;
            assert_eq!((global.tools, global.mcp), (vec![PathBuf::from("a")], vec!["b".into()]));
        }
    }
}
