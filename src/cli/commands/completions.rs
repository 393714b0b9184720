//! `toolhost completions`: printing shell completion scripts.

use super::prelude::*;
use crate::cli::complete::VARIABLE;
use crate::cli::shells;

/// Print a shell completion script.
///
/// The script asks toolhost for candidates, so names of tools and servers complete too.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Shell to complete in
    #[arg(value_enum)]
    pub shell: CompletionShell,
}

/// The shells that have a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum CompletionShell {
    /// Bash: `source <(toolhost completions bash)`.
    Bash,
    /// Zsh: `source <(toolhost completions zsh)`.
    Zsh,
    /// Fish: `toolhost completions fish | source`.
    Fish,
    /// Elvish: `eval (toolhost completions elvish | slurp)`.
    Elvish,
    /// PowerShell: `toolhost completions powershell | Out-String | Invoke-Expression`.
    Powershell,
}

impl CompletionShell {
    /// The word on the command line, and the extension of the committed file.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

pub async fn run(args: &CompletionsArgs, context: &CommandContext) -> CommandResult {
    context.output.raw(script(args.shell)?.as_bytes())
}

/// The script that registers the completion of `toolhost` with a shell.
pub fn script(shell: CompletionShell) -> Result<String, Error> {
    let completer = shells::SHELLS
        .completer(shell.as_str())
        .ok_or_else(|| Error::internal(format!("no completion for {}", shell.as_str())))?;
    let mut script = Vec::new();
    completer
        .write_registration(VARIABLE, "toolhost", "toolhost", "toolhost", &mut script)
        .map_err(|error| Error::internal(format!("cannot write the completion script: {error}")))?;
    let script = String::from_utf8_lossy(&script);
    Ok(format!("{}\n", script.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn committed(shell: CompletionShell) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("completions")
            .join(format!("toolhost.{}", shell.as_str()))
    }

    /// To write the files anew: `TOOLHOST_BLESS=1 cargo nextest run committed_scripts`.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a switch for whoever maintains the files")]
    fn committed_scripts_are_what_the_command_prints() {
        let bless = std::env::var_os("TOOLHOST_BLESS").is_some();
        for shell in CompletionShell::value_variants() {
            let shell = *shell;
            let script = script(shell).unwrap();
            if bless {
                std::fs::write(committed(shell), &script).unwrap();
            }
            let file = std::fs::read_to_string(committed(shell)).unwrap_or_default();
            assert_eq!(file, script, "completions/toolhost.{} is out of date", shell.as_str());
        }
    }

    #[test]
    fn bash_accepts_its_script() {
        if crate::util::skipped::lacks(&["bash"]) {
            return;
        }
        let script = script(CompletionShell::Bash).unwrap();
        let status = std::process::Command::new("bash").args(["-n", "-c", &script]).status();
        assert!(status.is_ok_and(|status| status.success()));
    }
}
