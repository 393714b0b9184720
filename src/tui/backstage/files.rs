//! Files that a person asked for.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use tokio::io::AsyncWriteExt as _;

use crate::tui::event::Event;

/// Writes a file that was not there before, and says so.
pub(super) async fn write(path: PathBuf, bytes: &[u8]) -> Event {
    let written = async {
        let mut file = tokio::fs::File::create_new(&path).await?;
        file.write_all(bytes).await?;
        file.flush().await
    };
    said(&path, written.await)
}

/// Makes a file that was not there before and that nobody else reads.
///
/// # Errors
/// When it is there, or cannot be made.
pub(super) fn create(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// Says what became of a file.
pub(super) fn said<E: std::fmt::Display>(path: &Path, written: Result<(), E>) -> Event {
    let shown = path.display();
    match written {
        Ok(()) => Event::Said { text: format!("written to {shown}"), is_bad: false },
        Err(error) => {
            Event::Said { text: format!("{shown} was not written: {error}"), is_bad: true }
        }
    }
}
