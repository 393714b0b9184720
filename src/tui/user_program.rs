//! Programs that a person bound to keys.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use crate::tui::tasks::{Task, TaskContext};
use crate::util::text::safe_line;

const LIMIT: Duration = Duration::from_secs(30);
const MAX_OUTPUT: u64 = 64 << 10;

/// Starts a program with this input, and shows the first line that it prints.
pub fn start(argv: Vec<String>, input: String) -> Task {
    let slot = argv.join(" ");
    let name = ("program", argv.clone(), input.clone());
    Task::message(name, async move |context: TaskContext| {
        let name = argv.first().map(String::as_str).unwrap_or_default();
        let run = run(&argv, &input, &context.deps.cwd);
        let ended = tokio::time::timeout(LIMIT, run).await;
        let ended = ended.unwrap_or_else(|_| Err(format!("stopped after {LIMIT:?}")));
        let shown = |text: String| safe_line(&format!("{name}: {text}")).into_owned();
        ended.map(shown).map_err(shown)
    })
    .in_slot(slot)
}

async fn run(argv: &[String], input: &str, cwd: &std::path::Path) -> Result<String, String> {
    let [program, arguments @ ..] = argv else { return Err("no program".to_owned()) };
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(cwd)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("cannot start: {error}"))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // A program need not read what it is given.
            let _unread = stdin.write_all(input.as_bytes()).await;
        }
    };
    let ((), output, errors) = tokio::join!(write, first_line(stdout), first_line(stderr));
    let status = child.wait().await.map_err(|error| error.to_string())?;
    match (status.success(), output, errors) {
        (true, line, _) => Ok(line.unwrap_or_else(|| "done".to_owned())),
        (false, line, error) => Err(error.or(line).unwrap_or_else(|| status.to_string())),
    }
}

async fn first_line(from: Option<impl AsyncRead + Unpin>) -> Option<String> {
    let mut bytes = Vec::new();
    from?.take(MAX_OUTPUT).read_to_end(&mut bytes).await.ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    text.lines().find(|line| !line.trim().is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_reads_what_it_is_given_and_its_first_line_or_error_is_shown() {
        let run = async |script: &str| {
            let argv = ["sh", "-c", script].map(str::to_owned);
            run(&argv, r#"{"tool":1}"#, std::path::Path::new("/")).await
        };
        assert_eq!(run("echo; cat; echo; echo second").await, Ok(r#"{"tool":1}"#.to_owned()));
        assert_eq!(run("exit 0").await, Ok("done".to_owned()));
        assert_eq!(run("echo out; echo why >&2; exit 3").await, Err("why".to_owned()));
        assert_eq!(run("exit 3").await, Err("exit status: 3".to_owned()));
        assert!(run("yes | head -c 1000000; true").await == Ok("y".to_owned()));
        let missing = super::run(&["/no/such".to_owned()], "", std::path::Path::new("/")).await;
        assert!(missing.unwrap_err().starts_with("cannot start: "));
    }
}
