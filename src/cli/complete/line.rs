//! The command line that is being completed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::Command;

use crate::assembly::AssemblyOptions;

/// The words of a line that are not options, from the command on.
pub(super) fn plain_words<'a>(command: &Command, words: &'a [String]) -> Vec<&'a str> {
    let mut current = command;
    let mut plain = Vec::new();
    // The line follows `--`, and starts with the program.
    let mut line = words.iter().map(String::as_str).skip_while(|word| *word != "--").skip(2);
    while let Some(word) = line.next() {
        if word.starts_with('-') {
            if takes_value(command, word) || takes_value(current, word) {
                line.next();
            }
            continue;
        }
        let inner = current.get_subcommands().find(|inner| {
            inner.get_name() == word || inner.get_all_aliases().any(|alias| alias == word)
        });
        plain.push(word);
        current = inner.unwrap_or(current);
    }
    plain
}

fn takes_value(command: &Command, flag: &str) -> bool {
    command.get_arguments().any(|argument| {
        let long = argument.get_long().is_some_and(|long| flag == format!("--{long}"));
        let short = argument.get_short().is_some_and(|short| flag == format!("-{short}"));
        (long || short) && argument.get_action().takes_values()
    })
}

/// The keys already given among the words after a name, as `key=value` or `key:=json`.
pub(super) fn given_keys<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let key = |word: &&'a str| Some(word.split_once('=')?.0.trim_end_matches(':'));
    words.iter().filter_map(key).collect()
}

/// The files named on the line that is being completed.
pub(super) fn options(words: impl Iterator<Item = OsString>) -> AssemblyOptions {
    let mut options = AssemblyOptions::default();
    let mut words = words.map(|word| word.to_string_lossy().into_owned());
    while let Some(word) = words.next() {
        let (flag, value) = match word.split_once('=') {
            Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
            None => (word, None),
        };
        let list = match flag.as_str() {
            "--tools" => &mut options.files.tools,
            "--host-tools" => &mut options.files.added_tools,
            "--mcp" => &mut options.files.servers,
            "--profile" => {
                options.profile = value.or_else(|| words.next());
                continue;
            }
            _ => continue,
        };
        list.extend(value.or_else(|| words.next()).map(PathBuf::from));
    }
    options
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
    use super::*;

    #[test]
    fn the_names_of_a_line_are_found_among_its_options() {
        let mut grammar = <crate::cli::args::Cli as clap::CommandFactory>::command();
        grammar.build();
        let line = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        for (text, plain) in [
            ("--mcp x -v call --timeout 5s demo-add a=1 --yes b", "call demo-add a=1 b"),
            ("bench -n 5 demo-add a=1 -c 2", "bench demo-add a=1"),
            ("prompts get --server demo greet name=x", "prompts get greet name=x"),
            ("invoke call a=1", "invoke call a=1"),
            ("call", "call"),
        ] {
            let words = line(&format!("toolhost -- toolhost {text}"));
            assert_eq!(plain_words(&grammar, &words).join(" "), plain, "{text}");
        }
        assert_eq!(given_keys(&["a=1", "b:=2", "c", "d=x=y"]), ["a", "b", "d"]);
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
        let words = ["toolhost", "--", "toolhost", "--tools", "a", "--mcp=b", "call", "x"];
        let options = options(words.iter().map(OsString::from));
        assert_eq!(options.files.tools, [PathBuf::from("a")]);
        assert_eq!(options.files.servers, [PathBuf::from("b")]);
    }
}
