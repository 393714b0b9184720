//! A person's own editor, for a text that is easier to write there.
//!
//! Owns: the file the text is in while it is written, which nobody else can read and which is gone
//! afterwards, and what went wrong. Never does: touch the terminal; whoever asks has given it back.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use super::event::EditorDraft;
use crate::util::confine::ScratchDir;

/// The longest text that is taken back, in bytes.
const LONGEST: u64 = 1024 * 1024;

/// How a person writes longer texts.
#[derive(Debug, Clone)]
pub struct ExternalEditor {
    /// `$VISUAL` or `$EDITOR`: a program with arguments, as a shell takes it.
    pub command: Option<String>,
    /// Where temporary files are.
    pub temporary: PathBuf,
}

impl ExternalEditor {
    /// Lets the person write, and gives what the text became. When it is dropped the editor ends.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub async fn write(self, draft: EditorDraft) -> Result<String, String> {
        let Some(command) = self.command else {
            return Err("no editor is known: set VISUAL or EDITOR".to_owned());
        };
        let failed = |what: &str, why: std::io::Error| format!("{what}: {why}");
        let scratch = ScratchDir::make(&self.temporary)
            .map_err(|why| failed("no file for the editor", why))?;
        let path = scratch.path().join(draft.name);
        let written = tokio::fs::write(&path, draft.text).await;
        written.map_err(|why| failed("no file for the editor", why))?;
        let status = Command::new("/bin/sh")
            .args(["-c", &format!("{command} \"$@\""), "editor"])
            .arg(&path)
            .stdin(Stdio::inherit())
            .kill_on_drop(true)
            .status()
            .await
            .map_err(|why| failed("the editor cannot be started", why))?;
        if !status.success() {
            return Err(format!("{command} ended with {status}; nothing was changed"));
        }
        read(&path).await
    }
}

async fn read(path: &Path) -> Result<String, String> {
    let size = tokio::fs::metadata(path).await.map(|file| file.len());
    match size {
        Ok(size) if size > LONGEST => {
            Err(format!("what the editor wrote is longer than {LONGEST} bytes"))
        }
        Ok(_) => tokio::fs::read_to_string(path)
            .await
            .map_err(|why| format!("what the editor wrote cannot be read: {why}")),
        Err(why) => Err(format!("the editor left no file: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn written(command: Option<&str>) -> (Result<String, String>, usize) {
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
            let why = text.unwrap_err();
            assert!(why.contains(words), "{why}");
            assert_eq!(left, 0);
        }
    }
}
