//! Writes files that the user exports.

use std::path::{Path, PathBuf};

use tokio::io::AsyncWriteExt as _;

use crate::tui::event::AppEvent;
use crate::util::private_file;

/// Writes a new file that only its owner can read, and reports the outcome.
pub(super) async fn write(path: PathBuf, bytes: &[u8]) -> AppEvent {
    let written = async {
        let mut file = tokio::fs::File::from_std(private_file::create_new(&path)?);
        file.write_all(bytes).await?;
        file.flush().await
    };
    write_result_event(&path, written.await)
}

/// Says what became of a file.
pub(super) fn write_result_event<E: std::fmt::Display>(
    path: &Path,
    written: Result<(), E>,
) -> AppEvent {
    let shown = path.display();
    match written {
        Ok(()) => AppEvent::StatusText { text: format!("wrote {shown}"), is_bad: false },
        Err(error) => {
            AppEvent::StatusText { text: format!("cannot write {shown}: {error}"), is_bad: true }
        }
    }
}
