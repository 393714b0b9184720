//! Writes trace files.

use std::path::PathBuf;

use crate::audit::trace::write::TraceFile;
use crate::model::Error;
use crate::tui::event::AppEvent;
use crate::tui::event::trace::TraceExport;

/// Writes a trace file that was not there before, and says so.
pub(super) async fn write(path: PathBuf, trace_export: TraceExport) -> AppEvent {
    let shown = path.display().to_string();
    let (length, cut) = (trace_export.items.len(), trace_export.cut);
    // A file is written in the way of the thread that writes it.
    let written = tokio::task::spawn_blocking(move || save(path, &trace_export)).await;
    let done = written.unwrap_or_else(|cause| Err(Error::internal(cause.to_string())));
    match done {
        Ok(()) => {
            let cut = match cut {
                0 => String::new(),
                cut => format!("; skipped {cut} too large to keep"),
            };
            let text = format!("wrote {shown}: {length} lines for replay{cut}");
            AppEvent::StatusText { text, is_bad: false }
        }
        Err(error) => AppEvent::StatusText { text: error.to_string(), is_bad: true },
    }
}

fn save(path: PathBuf, trace_export: &TraceExport) -> Result<(), Error> {
    if path.exists() {
        let shown = path.display();
        return Err(Error::usage(format!("'{shown}' already exists")));
    }
    let file = TraceFile::open(path)?;
    let sink = file.sink(|_| {});
    trace_export.items.iter().for_each(|item| sink.emit(item.clone()));
    file.ensure_complete()
}
