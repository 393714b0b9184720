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
    #[arg(value_parser = choice(SHELLS))]
    pub shell: &'static str,
}

/// The shells that have a script. The word is also the extension of the committed file.
const SHELLS: &[Choice<&str>] = &[
    ("bash", "Bash: `source <(toolhost completions bash)`", "bash"),
    ("zsh", "Zsh: `source <(toolhost completions zsh)`", "zsh"),
    ("fish", "Fish: `toolhost completions fish | source`", "fish"),
    ("elvish", "Elvish: `eval (toolhost completions elvish | slurp)`", "elvish"),
    (
        "powershell",
        "PowerShell: `toolhost completions powershell | Out-String | Invoke-Expression`",
        "powershell",
    ),
];

pub async fn run(args: &CompletionsArgs, context: &CommandContext) -> CommandResult {
    context.format(formats::TEXT)?;
    context.output.raw(script(args.shell)?.as_bytes())
}

/// The script that registers the completion of `toolhost` with a shell.
fn script(shell: &str) -> Result<String, Error> {
    let completer = shells::SHELLS
        .completer(shell)
        .ok_or_else(|| Error::internal(format!("no completion for {shell}")))?;
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

    fn committed(shell: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("completions")
            .join(format!("toolhost.{shell}"))
    }

    /// To write the files anew: `TOOLHOST_BLESS=1 cargo nextest run committed_scripts`.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a switch for whoever maintains the files")]
    fn committed_scripts_are_what_the_command_prints() {
        let bless = std::env::var_os("TOOLHOST_BLESS").is_some();
        for (shell, ..) in SHELLS {
            let script = script(shell).unwrap();
            if bless {
                std::fs::write(committed(shell), &script).unwrap();
            }
            let file = std::fs::read_to_string(committed(shell)).unwrap_or_default();
            assert_eq!(file, script, "completions/toolhost.{shell} is out of date");
        }
    }

    #[test]
    fn bash_accepts_its_script() {
        if crate::util::skipped::lacks(&["bash"]) {
            return;
        }
        let script = script("bash").unwrap();
        let status = std::process::Command::new("bash").args(["-n", "-c", &script]).status();
        assert!(status.is_ok_and(|status| status.success()));
    }
}
