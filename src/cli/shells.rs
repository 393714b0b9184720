//! The shells that are completed in: their scripts, and which candidates they may get.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use clap::Command;
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh};

use crate::config::environment::{Environment as _, ProcessEnvironment};

pub const SHELLS: Shells<'static> = Shells(&[
    &HarmlessWords(&Bash),
    &HarmlessWords(&Elvish),
    &HarmlessWords(&Fish),
    &HarmlessWords(&Powershell),
    &HarmlessWords(&Zsh),
]);

/// Bash ends a word at `=` and `:`, which the generator's script does not allow for; this one sends
/// whole words, and cuts off what is on the line already.
const BASH_SCRIPT: &str = include_str!("../../completions/toolhost.bash");

/// A shell that gets only candidates without special meaning in any shell: names come from servers.
struct HarmlessWords(&'static dyn EnvCompleter);

impl EnvCompleter for HarmlessWords {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn is(&self, name: &str) -> bool {
        self.0.is(name)
    }

    fn write_registration(
        &self,
        var: &str,
        name: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        match self.name() {
            "bash" => buf.write_all(BASH_SCRIPT.as_bytes()),
            _ => self.0.write_registration(var, name, bin, completer, buf),
        }
    }

    fn write_complete(
        &self,
        cmd: &mut Command,
        args: Vec<OsString>,
        current_dir: Option<&Path>,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        // The scripts send the line up to the cursor, or the index of the current word.
        let index =
            ProcessEnvironment.var("_CLAP_COMPLETE_INDEX").and_then(|text| text.parse().ok());
        let last = args.len().saturating_sub(1);
        let current = args.get(index.map_or(last, |index: usize| index.min(last))).cloned();
        let mut output = Vec::new();
        self.0.write_complete(cmd, args, current_dir, &mut output)?;
        let output = String::from_utf8_lossy(&output);
        // Fish and PowerShell get one line per candidate, with a tab before its description.
        let has_lines = matches!(self.name(), "fish" | "powershell");
        let separator =
            ProcessEnvironment.var("_CLAP_IFS").filter(|text| !has_lines && !text.is_empty());
        let separator = separator.as_deref().unwrap_or("\n");
        let is_harmless = |candidate: &&str| {
            // What follows is the description.
            let word = match self.name() {
                "zsh" => candidate.replace("\\:", "").split(':').next().map(str::to_owned),
                _ => candidate.split('\t').next().map(str::to_owned),
            };
            let word = word.unwrap_or_default();
            !word.is_empty() && word.chars().all(is_plain)
        };
        // Options are dozens: beside names, they are only offered once one is being typed.
        let offers_flags = current.is_some_and(|word| word.to_string_lossy().starts_with('-'));
        let all: Vec<&str> = output.split(separator).filter(is_harmless).collect();
        let has_names = all.iter().any(|word| !word.starts_with('-'));
        let offered = |word: &&str| offers_flags || !has_names || !word.starts_with('-');
        let candidates: Vec<&str> = all.iter().copied().filter(offered).collect();
        buf.write_all(candidates.join(separator).as_bytes())?;
        if has_lines && !candidates.is_empty() { buf.write_all(b"\n") } else { Ok(()) }
    }
}

/// Characters without special meaning in any shell.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_.:/@%+,=-".contains(c)
}
