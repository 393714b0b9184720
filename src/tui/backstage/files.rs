//! Files that a person asked for.

use std::path::PathBuf;

use tokio::io::AsyncWriteExt as _;

use crate::tui::event::Event;

/// Writes a file that was not there before, and says so.
pub(super) async fn write(path: PathBuf, bytes: &[u8]) -> Event {
    let shown = path.display().to_string();
    let written = async {
        let mut file = tokio::fs::File::create_new(&path).await?;
        file.write_all(bytes).await?;
        file.flush().await
    };
    match written.await {
        Ok(()) => Event::Said { text: format!("written to {shown}"), is_bad: false },
        Err(error) => {
            Event::Said { text: format!("{shown} was not written: {error}"), is_bad: true }
        }
    }
}
