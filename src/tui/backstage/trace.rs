//! Writes traces.

use std::path::PathBuf;

use crate::audit::trace::write::TraceFile;
use crate::model::Fault;
use crate::tui::event::Event;
use crate::tui::event::trace::Tape;

/// Writes a trace file that was not there before, and says so.
pub(super) async fn write(path: PathBuf, tape: Tape) -> Event {
    let shown = path.display().to_string();
    let (length, cut) = (tape.items.len(), tape.cut);
    // A file is written in the way of the thread that writes it.
    let written = tokio::task::spawn_blocking(move || save(path, &tape)).await;
    let done = written.unwrap_or_else(|error| Err(Fault::internal(error.to_string())));
    match done {
        Ok(()) => {
            let cut = match cut {
                0 => String::new(),
                cut => format!("; {cut} too large to be kept whole are left out"),
            };
            let text = format!("written to {shown}: {length} lines for replay{cut}");
            Event::Said { text, is_bad: false }
        }
        Err(fault) => Event::Said { text: fault.to_string(), is_bad: true },
    }
}

fn save(path: PathBuf, tape: &Tape) -> Result<(), Fault> {
    if path.exists() {
        let shown = path.display();
        return Err(Fault::usage(format!("'{shown}' exists, and is left as it is")));
    }
    let file = TraceFile::open(path)?;
    let sink = file.sink(|_| {});
    tape.items.iter().for_each(|item| sink.emit(item.clone()));
    file.whole()
}
