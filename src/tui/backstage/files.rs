//! Files that a person asked for.

use std::path::{Path, PathBuf};

use tokio::io::AsyncWriteExt as _;

use crate::tui::event::Event;
use crate::util::private;

/// Writes a file that was not there before and that nobody else reads, and says so.
pub(super) async fn write(path: PathBuf, bytes: &[u8]) -> Event {
    let written = async {
        let mut file = tokio::fs::File::from_std(private::create_new(&path)?);
        file.write_all(bytes).await?;
        file.flush().await
    };
    said(&path, written.await)
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
