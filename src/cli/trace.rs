//! `--trace` and `--trace-save`: who looks at the wires in one run.
//!
//! Owns: the choice of what is shown and where, and the file that keeps everything. What an item
//! looks like is decided in `views::traffic`, what a line of the file is in `audit::trace`.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::args::Global;
use super::output::door::Stop;
use super::output::{Door, Format};
use super::views::traffic::{Look, page};
use crate::audit::trace::Row;
use crate::audit::trace::write::TraceFile;
use crate::model::traffic::{Filter, Passed};
use crate::model::{Fault, Traffic, TrafficSink};
use crate::util::clock::{Clock as _, SystemClock};

/// Where traffic is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It is the result of the command.
    Stdout,
    /// It is shown beside the result.
    Stderr,
}

/// Shows traffic while it happens.
pub struct Viewer {
    door: Arc<Door>,
    filter: Filter,
    place: Place,
    json: bool,
    /// When the run began, since the Unix epoch.
    begun: Duration,
    stopped: Mutex<Option<Stop>>,
    /// Told when the output cannot be written any more, and when a wire was closed.
    pub woken: Notify,
}

impl Viewer {
    /// A viewer that starts to count the time now.
    pub fn new(door: Arc<Door>, filter: Filter, place: Place, json: bool) -> Arc<Self> {
        let (begun, stopped) = (SystemClock.unix(), Mutex::default());
        Arc::new(Self { door, filter, place, json, begun, stopped, woken: Notify::new() })
    }

    /// Why nothing can be shown any more, once; told by [`Viewer::woken`].
    pub fn stopped(&self) -> Option<Stop> {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn show(&self, traffic: &Traffic) {
        if self.filter.takes(&traffic.what)
            && let Err(stop) = self.print(traffic)
        {
            *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = Some(stop);
            self.woken.notify_one();
        }
        if matches!(traffic.what, Passed::Closed(_)) {
            self.woken.notify_one();
        }
    }

    fn print(&self, traffic: &Traffic) -> Result<(), Stop> {
        let page = |width| {
            let look = Look { verbose: self.door.verbosity() > 0, width };
            page(traffic, traffic.at.saturating_sub(self.begun), look)
        };
        match (self.place, self.json) {
            (Place::Stdout, true) => return self.door.line(&Row::of(traffic)),
            (Place::Stdout, false) => return self.door.page(&page(self.door.width())),
            (Place::Stderr, true) => self.door.tell_value(&Row::of(traffic)),
            (Place::Stderr, false) => self.door.tell(&page(self.door.talk_width())),
        }
        Ok(())
    }
}

/// Everybody who looks at the wires in one run.
#[derive(Default)]
pub struct Watchers {
    viewer: Mutex<Option<Arc<Viewer>>>,
    file: Mutex<Option<Arc<TraceFile>>>,
    save: Option<PathBuf>,
}

impl Watchers {
    /// What the command line asks for.
    pub fn new(global: &Global, door: &Arc<Door>) -> Self {
        let viewer = global.trace.as_ref().map(|methods| {
            let everything = methods.iter().any(|method| method == EVERYTHING);
            let methods = if everything { Vec::new() } else { methods.clone() };
            let filter = Filter { methods, only: None };
            let json = global.format() == Format::Json;
            Viewer::new(Arc::clone(door), filter, Place::Stderr, json)
        });
        let save = global.trace_save.clone();
        Self { viewer: Mutex::new(viewer), file: Mutex::default(), save }
    }

    /// Shows the traffic in this way, and in no other.
    pub fn show(&self, viewer: Arc<Viewer>) {
        *self.viewer.lock().unwrap_or_else(PoisonError::into_inner) = Some(viewer);
    }

    /// The file of `--trace-save` or the one that the command names; opened when it was not yet.
    ///
    /// # Errors
    /// When it cannot be written, or both are named.
    pub fn file(&self, other: Option<&PathBuf>) -> Result<Option<Arc<TraceFile>>, Fault> {
        if let (Some(_), Some(_)) = (&self.save, other) {
            return Err(Fault::usage("--save and --trace-save name the same thing here")
                .hint("give one of them"));
        }
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let (None, Some(path)) = (&*file, self.save.as_ref().or(other)) {
            *file = Some(TraceFile::open(path.clone())?);
        }
        Ok(file.clone())
    }

    /// Where everything that crosses a wire goes; off when nobody looks.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn sink(&self, door: &Arc<Door>) -> Result<TrafficSink, Fault> {
        let saved = self.file(None)?.map(|file| {
            let door = Arc::clone(door);
            file.sink(move |fault| door.warn(&fault.to_string()))
        });
        let viewer = self.viewer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(match (viewer, saved) {
            (None, None) => TrafficSink::off(),
            (None, Some(saved)) => saved,
            (Some(viewer), None) => TrafficSink::new(move |traffic| viewer.show(&traffic)),
            (Some(viewer), Some(saved)) => TrafficSink::new(move |traffic| {
                viewer.show(&traffic);
                saved.emit(traffic);
            }),
        })
    }
}

/// What `--trace` without methods stands for.
pub const EVERYTHING: &str = "*";

#[cfg(test)]
mod tests {
    use super::super::output::door::Wishes;
    use super::super::output::door::tests::captured;
    use super::*;

    fn item(what: Passed) -> Traffic {
        let at = SystemClock.unix();
        Traffic { server: "a".to_owned(), sequence: 1, at, call: None, what }
    }

    #[test]
    fn a_trace_beside_a_result_goes_to_stderr_even_when_quiet() {
        let (door, out, err) = captured(Wishes { quiet: true, ..Wishes::default() }, false);
        let viewer = Viewer::new(Arc::new(door), Filter::default(), Place::Stderr, false);
        viewer.show(&item(Passed::Opened("there".to_owned())));
        assert!(err.text().contains("** opened: there") && out.text().is_empty());
        let (door, out, err) = captured(Wishes::default(), false);
        let viewer = Viewer::new(Arc::new(door), Filter::default(), Place::Stdout, true);
        viewer.show(&item(Passed::Opened("there".to_owned())));
        assert!(out.text().trim_end().ends_with(r#""what":"opened","text":"there"}"#));
        assert!(err.text().is_empty());
    }
}
