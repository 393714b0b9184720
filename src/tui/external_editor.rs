//! Editing a text in the user's own editor (`$VISUAL`, `$EDITOR`).

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

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
    pub async fn write(self, draft: EditorDraft) -> Result<String, EditorError> {
        let command = self.command.ok_or(EditorError::NotConfigured)?;
        let scratch = ScratchDir::make(&self.temporary).map_err(EditorError::CreateFile)?;
        let path = scratch.path().join(draft.name);
        tokio::fs::write(&path, draft.text).await.map_err(EditorError::CreateFile)?;
        let status = Command::new("/bin/sh")
            .args(["-c", &format!("{command} \"$@\""), "editor"])
            .arg(&path)
            .stdin(Stdio::inherit())
            .kill_on_drop(true)
            .status()
            .await
            .map_err(EditorError::Spawn)?;
        if !status.success() {
            return Err(EditorError::Exited { command, status });
        }
        read(&path).await
    }
}

#[derive(Debug, thiserror::Error)]
pub enum EditorError {
    /// Neither `$VISUAL` nor `$EDITOR` is set.
    #[error("no editor configured: set VISUAL or EDITOR")]
    NotConfigured,
    /// The temporary file for the text could not be made.
    #[error("cannot create a file for the editor: {0}")]
    CreateFile(std::io::Error),
    /// The shell that starts the editor could not be started.
    #[error("cannot start the editor: {0}")]
    Spawn(std::io::Error),
    #[error("{command} ended with {status}; nothing was changed")]
    Exited { command: String, status: std::process::ExitStatus },
    #[error("the editor left no file: {0}")]
    NoFile(std::io::Error),
    /// The text is too long to be taken back.
    #[error("the edited text is larger than {}", show_size(MAX_TEXT_BYTES))]
    TooLarge,
    /// The file is there and cannot be read, for example because it is not UTF-8.
    #[error("cannot read the edited text: {0}")]
    Read(std::io::Error),
}

async fn read(path: &Path) -> Result<String, EditorError> {
    let file = tokio::fs::metadata(path).await.map_err(EditorError::NoFile)?;
    if file.len() > MAX_TEXT_BYTES {
        return Err(EditorError::TooLarge);
    }
    tokio::fs::read_to_string(path).await.map_err(EditorError::Read)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn written(command: Option<&str>) -> (Result<String, EditorError>, usize) {
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
