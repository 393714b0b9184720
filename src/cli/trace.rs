//! `--trace` and `--trace-save`: the traffic sinks of one run.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::options::{ALL_METHODS, GlobalOptions};
use super::output::streams::CommandError;
use super::output::{Format, Output};
use super::save;
use crate::audit::trace::TraceFile;
use crate::model::traffic::{TrafficFilter, TrafficKind};
use crate::model::{Error, Traffic, TrafficSink};
use crate::present::traffic::{TrafficLayout, page};
use crate::util::clock::{Clock as _, SystemClock};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceStream {
    /// It is the result of the command, a line for each item or a block.
    Stdout { is_one_line: bool },
    /// It is shown beside the result.
    Stderr,
}

pub struct TracePrinter {
    output: Arc<Output>,
    filter: TrafficFilter,
    stream: TraceStream,
    json: bool,
    started: Duration,
    stop_error: Mutex<Option<CommandError>>,
    pub wake: Notify,
}

impl TracePrinter {
    pub fn new(
        output: Arc<Output>,
        filter: TrafficFilter,
        stream: TraceStream,
        json: bool,
    ) -> Arc<Self> {
        let (started, stop_error) = (SystemClock.unix(), Mutex::default());
        Arc::new(Self { output, filter, stream, json, started, stop_error, wake: Notify::new() })
    }

    /// Why nothing can be shown any more, once; signalled by [`TracePrinter::wake`].
    pub fn stopped(&self) -> Option<CommandError> {
        self.stop_error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub fn show(&self, traffic: &Traffic) {
        if self.filter.matches(&traffic.kind)
            && let Err(stop) = self.print(traffic)
        {
            *self.stop_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(stop);
            self.wake.notify_one();
        }
        if matches!(traffic.kind, TrafficKind::Closed(_)) {
            self.wake.notify_one();
        }
    }

    fn print(&self, traffic: &Traffic) -> Result<(), CommandError> {
        let page = |width| {
            let is_one_line = self.stream == TraceStream::Stdout { is_one_line: true };
            let look = TrafficLayout { is_one_line, verbose: self.output.verbosity() > 0, width };
            page(traffic, traffic.at.saturating_sub(self.started), look)
        };
        match (self.stream, self.json) {
            (TraceStream::Stdout { .. }, true) => return self.output.line(traffic),
            (TraceStream::Stdout { .. }, false) => {
                return self.output.page(&page(self.output.width()));
            }
            (TraceStream::Stderr, true) => self.output.stderr_value(traffic),
            (TraceStream::Stderr, false) => {
                self.output.stderr_page(&page(self.output.stderr_width()));
            }
        }
        Ok(())
    }
}

#[derive(Default)]
pub struct TraceOutputs {
    viewer: Mutex<Option<Arc<TracePrinter>>>,
    file: Mutex<Option<Arc<TraceFile>>>,
    save: Option<PathBuf>,
}

impl TraceOutputs {
    pub fn new(global: &GlobalOptions, output: &Arc<Output>) -> Self {
        let viewer = global.trace.as_ref().map(|methods| {
            let everything = methods.iter().any(|method| method == ALL_METHODS);
            let methods = if everything { Vec::new() } else { methods.clone() };
            let filter = TrafficFilter { methods, direction: None };
            let json = global.format() == Format::Json;
            TracePrinter::new(Arc::clone(output), filter, TraceStream::Stderr, json)
        });
        let save = global.rare.trace_save.clone();
        Self { viewer: Mutex::new(viewer), file: Mutex::default(), save }
    }

    /// Shows the traffic in this way only.
    pub fn show(&self, viewer: Arc<TracePrinter>) {
        *self.viewer.lock().unwrap_or_else(PoisonError::into_inner) = Some(viewer);
    }

    /// The file of `--trace-save` or of the command; opened if it is not yet.
    pub fn file(&self, other: Option<&PathBuf>) -> Result<Option<Arc<TraceFile>>, Error> {
        if let (Some(_), Some(_)) = (&self.save, other) {
            return Err(Error::usage("--save and --trace-save mean the same here")
                .with_hint("use only one of them"));
        }
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let (None, Some(path)) = (&*file, self.save.as_ref().or(other)) {
            save::check(path)?;
            *file = Some(TraceFile::open(path.clone())?);
        }
        Ok(file.clone())
    }

    /// The sink for all traffic; disabled without `--trace` and `--trace-save`.
    pub fn sink(&self, output: &Arc<Output>) -> Result<TrafficSink, Error> {
        let saved = self.file(None)?.map(|file| {
            let output = Arc::clone(output);
            file.sink(move |error| output.warn(&error.to_string()))
        });
        let viewer = self.viewer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(match (viewer, saved) {
            (None, None) => TrafficSink::disabled(),
            (None, Some(saved)) => saved,
            (Some(viewer), None) => TrafficSink::new(move |traffic| viewer.show(&traffic)),
            (Some(viewer), Some(saved)) => TrafficSink::new(move |traffic| {
                viewer.show(&traffic);
                saved.emit(traffic);
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::output::streams::OutputOptions;
    use super::super::output::streams::tests::captured;
    use super::*;

    fn item(what: TrafficKind) -> Traffic {
        let at = SystemClock.unix();
        Traffic { server: "a".to_owned(), sequence: 1, at, call: None, kind: what }
    }

    #[test]
    fn a_trace_beside_a_result_goes_to_stderr_even_when_quiet() {
        let (output, out, err) =
            captured(OutputOptions { quiet: true, ..OutputOptions::default() }, false);
        let viewer = TracePrinter::new(
            Arc::new(output),
            TrafficFilter::default(),
            TraceStream::Stderr,
            false,
        );
        viewer.show(&item(TrafficKind::Opened("there".to_owned())));
        assert!(err.text().contains("** opened: there") && out.text().is_empty());
        let (output, out, err) = captured(OutputOptions::default(), false);
        let viewer = TracePrinter::new(
            Arc::new(output),
            TrafficFilter::default(),
            TraceStream::Stdout { is_one_line: false },
            true,
        );
        viewer.show(&item(TrafficKind::Opened("there".to_owned())));
        assert!(out.text().trim_end().ends_with(r#""what":"opened","text":"there"}"#));
        assert!(err.text().is_empty());
    }
}
