//! Quoting completion candidates for a shell.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use clap::Command;
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh};

use crate::config::environment::{Environment as _, ProcessEnvironment};
use crate::util::text;

/// Every shell that has a completion script, in the order of the generator.
pub const SHELLS: Shells<'static> = Shells(&[
    &QuotingShell { shell: &Bash, quoting: Quoting::Backslash },
    &QuotingShell { shell: &Elvish, quoting: Quoting::Omitted },
    // These two quote a candidate themselves when they put it on the line.
    &QuotingShell { shell: &Fish, quoting: Quoting::QuotedByShell },
    &QuotingShell { shell: &Powershell, quoting: Quoting::Apostrophes },
    &QuotingShell { shell: &Zsh, quoting: Quoting::QuotedByShell },
]);

/// How a candidate is quoted that a shell could interpret as more than a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quoting {
    /// A backslash before each special character, which also works inside open quotes.
    Backslash,
    Apostrophes,
    QuotedByShell,
    /// The candidate is not offered.
    Omitted,
}

/// A shell adapter that makes all candidates literal words.
struct QuotingShell {
    shell: &'static dyn EnvCompleter,
    quoting: Quoting,
}

impl EnvCompleter for QuotingShell {
    fn name(&self) -> &'static str {
        self.shell.name()
    }

    fn is(&self, name: &str) -> bool {
        self.shell.is(name)
    }

    fn write_registration(
        &self,
        var: &str,
        name: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        let mut script = Vec::new();
        self.shell.write_registration(var, name, bin, completer, &mut script)?;
        let mut script = String::from_utf8_lossy(&script).into_owned();
        if self.quoting == Quoting::Backslash {
            script = without_globbing(&script)
                .and_then(|script| with_whole_words(&script))
                .ok_or_else(|| io::Error::other("the script of bash is not the expected one"))?;
        }
        buf.write_all(script.as_bytes())
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
        let mut found = Vec::new();
        self.shell.write_complete(cmd, args, current_dir, &mut found)?;
        let found = String::from_utf8_lossy(&found);
        let offers_flags = current.is_some_and(|word| word.to_string_lossy().starts_with('-'));
        // Fish and PowerShell get one line per candidate, with a tab before its description.
        let lines = matches!(self.name(), "fish" | "powershell");
        let separator =
            ProcessEnvironment.var("_CLAP_IFS").filter(|text| !lines && !text.is_empty());
        let separator = separator.as_deref().unwrap_or("\n");
        let literal = |candidate: &str| {
            let end = candidate.find('\t').filter(|_| lines).unwrap_or(candidate.len());
            let (word, about) = candidate.split_at(end);
            Some(self.quoting.word(word)? + about)
        };
        // Options are dozens: beside names, they are only offered once one is being typed.
        let all = || found.split(separator).filter(|word| !word.is_empty());
        let has_names = all().any(|word| !word.starts_with('-'));
        let wanted = all().filter(|word| offers_flags || !has_names || !word.starts_with('-'));
        let words: Vec<String> = wanted.filter_map(literal).collect();
        buf.write_all(words.join(separator).as_bytes())?;
        if lines && !words.is_empty() { buf.write_all(b"\n") } else { Ok(()) }
    }
}

impl Quoting {
    /// The quoted form of a word on a command line; `None` if there is none.
    fn word(self, word: &str) -> Option<String> {
        if word.is_empty() || word.chars().any(|c| c.is_control() || text::is_invisible(c)) {
            return None;
        }
        match self {
            _ if word.chars().all(is_plain) => Some(word.to_owned()),
            Self::QuotedByShell => Some(word.to_owned()),
            Self::Backslash => Some(backslashed(word)),
            Self::Apostrophes if word.is_ascii() => Some(format!("'{}'", word.replace('\'', "''"))),
            Self::Apostrophes | Self::Omitted => None,
        }
    }
}

/// Characters without special meaning in any shell.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_.:/@%+,=-".contains(c)
}

fn backslashed(word: &str) -> String {
    let mut quoted = String::with_capacity(word.len() * 2);
    for c in word.chars() {
        // Non-ASCII bytes have no special meaning in bash, and a backslash before one splits no
        // character.
        if c.is_ascii() && !is_plain(c) {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted
}

/// Joins what bash splits: it ends a word at `=` and `:`, and replaces only the last piece. The
/// words up to the cursor are sent whole; the part of a candidate that is already on the line is
/// removed.
const WHOLE_WORDS: &str = r#"    local words=() rest="${COMP_LINE:0:COMP_POINT}" piece blanks
    local pieces=("${COMP_WORDS[@]:0:COMP_CWORD+1}")
    [[ -n "$2" ]] && pieces[COMP_CWORD]="$2"
    for piece in "${pieces[@]}"; do
        blanks="${rest%%[![:space:]]*}"
        rest="${rest#"$blanks"}"
        if [[ ${#words[@]} -gt 0 && -z "$blanks" ]]; then
            words[${#words[@]}-1]+="$piece"
        else
            words+=("$piece")
        fi
        rest="${rest#"$piece"}"
    done
    local _CLAP_COMPLETE_INDEX=$((${#words[@]} - 1))
    local on_line="${words[_CLAP_COMPLETE_INDEX]}"
    on_line="${on_line%"$2"}"
"#;
/// Removes what is already on the line.
const CUT_PIECES: &str = r#"    if [[ -n "$on_line" ]]; then
        local whole=("${COMPREPLY[@]}") candidate
        COMPREPLY=()
        for candidate in "${whole[@]}"; do
            if [[ "$candidate" == "$on_line"* ]]; then
                COMPREPLY+=("${candidate#"$on_line"}")
            fi
        done
    fi
"#;

fn with_whole_words(script: &str) -> Option<String> {
    const FROM: &str = "    local words=(";
    const TO: &str = "    COMPREPLY=()\n";
    const END: &str = "    if [[ ${#COMPREPLY[@]} == 0 ]]; then\n";
    let (before, rest) = script.split_once(FROM)?;
    let (_split, after) = rest.split_once(TO)?;
    let (inside, end) = after.split_once(END)?;
    Some(format!("{before}{WHOLE_WORDS}{TO}{inside}{CUT_PIECES}{END}{end}"))
}

/// The script of bash, in which candidates are not treated as file name patterns: a matching file
/// name would be put on the line unquoted.
fn without_globbing(script: &str) -> Option<String> {
    const FROM: &str = "    COMPREPLY=( $( \\\n";
    const TO: &str = "    ) )\n    if [[ $? != 0 ]]; then\n";
    let (before, rest) = script.split_once(FROM)?;
    let (inside, after) = rest.split_once(TO)?;
    Some(format!(
        "{before}    COMPREPLY=()\n    read -r -d '' -a COMPREPLY < <( \\\n{inside}    )\n    \
         if [[ ${{#COMPREPLY[@]}} == 0 ]]; then\n{after}"
    ))
}

/// The typed part of a word, without the shell's quoting.
pub fn unquoted(typed: &str) -> String {
    let mut plain = String::with_capacity(typed.len());
    let mut chars = typed.trim_start_matches(['"', '\'']).chars();
    while let Some(c) = chars.next() {
        plain.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_words_stay_as_they_are_for_every_shell() {
        let word = "srv-add_2.x:/@%+,=";
        for quoting in
            [Quoting::Backslash, Quoting::Apostrophes, Quoting::QuotedByShell, Quoting::Omitted]
        {
            assert_eq!(quoting.word(word).as_deref(), Some(word));
            for never in ["", "a\nb", "a\u{1b}[2J", "a\u{b}b", "a\u{202e}b"] {
                assert_eq!(quoting.word(never), None, "{never:?}");
            }
        }
    }

    #[test]
    fn whatever_a_shell_could_act_on_is_quoted_or_left_out() {
        let word = "t$(touch x)a=";
        assert_eq!(Quoting::Backslash.word(word).unwrap(), r"t\$\(touch\ x\)a=");
        assert_eq!(Quoting::Apostrophes.word("it's `x`").unwrap(), "'it''s `x`'");
        // PowerShell takes typographic quotation marks for apostrophes.
        assert_eq!(Quoting::Apostrophes.word("it\u{2019}s"), None);
        assert_eq!(Quoting::Omitted.word(word), None);
        assert_eq!(unquoted(r"t\$\(touch\ x\)a="), word);
    }

    #[test]
    fn bash_reads_a_quoted_word_as_the_word_in_every_kind_of_quotes() {
        if crate::util::skipped::lacks(&["bash"]) {
            return;
        }
        proptest!(ProptestConfig::with_cases(64), |(word in "[ -~]{1,20}")| {
            let quoted = Quoting::Backslash.word(&word).unwrap();
            let said = |line: &str| {
                let script = format!("printf %s {line}");
                let output = std::process::Command::new("bash").args(["-c", &script]).output();
                String::from_utf8(output.unwrap().stdout).unwrap()
            };
            prop_assert_eq!(said(&quoted), word);
        });
    }
}
