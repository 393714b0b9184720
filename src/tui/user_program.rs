//! Programs of the user: those bound to keys, and the editor for a text (`$VISUAL`, `$EDITOR`).

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use super::tasks::{Task, TaskContext};
use crate::model::Error;
use crate::util::confine::ScratchDir;
use crate::util::text::safe_line;
use crate::util::units::show_size;

const LIMIT: Duration = Duration::from_secs(30);
const MAX_OUTPUT: u64 = 64 << 10;

/// Starts a program with this input, and shows the first line that it prints.
pub fn start(argv: Vec<String>, input: String) -> Task {
    let slot = format!("program {}", argv.join(" "));
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
    let mut from = from?;
    let mut bytes = Vec::new();
    (&mut from).take(MAX_OUTPUT).read_to_end(&mut bytes).await.ok()?;
    // A program whose output nobody reads would be ended by it, and seem to have failed.
    let _discarded = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    text.lines().find(|line| !line.trim().is_empty()).map(str::to_owned)
}

/// The longest text that is taken back, in bytes.
const MAX_TEXT_BYTES: u64 = 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditorDraft {
    /// The file's name; editors choose the syntax by its ending.
    pub name: &'static str,
    pub text: String,
}

#[derive(Debug, Clone)]
pub struct ExternalEditor {
    /// `$VISUAL` or `$EDITOR`: a program with arguments, as a shell takes it.
    pub command: Option<String>,
    /// The directory for the temporary file, usually `$TMPDIR`.
    pub temporary: PathBuf,
}

impl ExternalEditor {
    /// Opens the editor on the text, waits until it is closed, and gives what the text became.
    /// Dropping the future ends the editor.
    pub async fn write(self, draft: EditorDraft) -> Result<String, Error> {
        let none = || Error::usage("no editor configured: set VISUAL or EDITOR");
        let command = self.command.ok_or_else(none)?;
        let no_file = failed("cannot create a file for the editor");
        let scratch = ScratchDir::make(&self.temporary).map_err(no_file)?;
        let path = scratch.path().join(draft.name);
        tokio::fs::write(&path, draft.text).await.map_err(no_file)?;
        let status = Command::new("/bin/sh")
            .args(["-c", &format!("{command} \"$@\""), "editor"])
            .arg(&path)
            .stdin(Stdio::inherit())
            .kill_on_drop(true)
            .status()
            .await
            .map_err(failed("cannot start the editor"))?;
        if !status.success() {
            let text = format!("{command} ended with {status}; nothing was changed");
            return Err(Error::internal(text));
        }
        read(&path).await
    }
}

async fn read(path: &Path) -> Result<String, Error> {
    let file = tokio::fs::metadata(path).await.map_err(failed("the editor left no file"))?;
    if file.len() > MAX_TEXT_BYTES {
        let most = show_size(MAX_TEXT_BYTES);
        return Err(Error::usage(format!("the edited text is larger than {most}")));
    }
    tokio::fs::read_to_string(path).await.map_err(failed("cannot read the edited text"))
}

fn failed(what: &str) -> impl Fn(io::Error) -> Error + Copy {
    move |error| Error::internal(format!("{what}: {error}"))
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

    #[tokio::test]
    async fn a_program_that_prints_more_than_is_kept_has_not_failed() {
        let argv = ["sh", "-c", "yes | head -c 1000000"].map(str::to_owned);
        let shown = run(&argv, "", Path::new("/")).await;
        assert_eq!(shown, Ok("y".to_owned()));
    }

    async fn written(command: Option<&str>) -> (Result<String, Error>, usize) {
        let directory = tempfile::tempdir().unwrap();
        let editor = ExternalEditor {
            command: command.map(str::to_owned),
            temporary: directory.path().to_path_buf(),
        };
        let text = editor.write(EditorDraft { name: "a.json", text: "{}".to_owned() }).await;
        (text, std::fs::read_dir(directory.path()).unwrap().count())
    }

    #[tokio::test]
    async fn what_was_written_comes_back_and_nothing_is_left() {
        let script = "sh -c 'stat -c %a $(dirname $1) >>$1' x";
        let (text, left) = written(Some(script)).await;
        assert_eq!((text.unwrap().trim(), left), ("{}700", 0));
    }

    #[tokio::test]
    async fn what_goes_wrong_is_said() {
        for (command, words) in [
            (None, "set VISUAL or EDITOR"),
            (Some("false"), "nothing was changed"),
            (Some("/no/such/editor"), "nothing was changed"),
            (Some("rm"), "left no file"),
        ] {
            let (text, left) = written(command).await;
            let why = text.unwrap_err().to_string();
            assert!(why.contains(words), "{why}");
            assert_eq!(left, 0);
        }
    }
}
