//! Editing a text in the user's own editor (`$VISUAL`, `$EDITOR`).

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use crate::model::Error;
use crate::util::confine::ScratchDir;
use crate::util::units::show_size;

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
