//! Progress and events of a running command, on stderr.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::output::Output;
use crate::model::{CallId, HostEvent, ListOwner, QuestionOutcome, ServerState};
use crate::present::{Line, Role, chart};
use crate::util::clock::Clock;
use crate::util::{text, units};

const REPAINT: Duration = Duration::from_millis(100);
/// Maximum number of log lines of tools shown per second on a terminal.
const LOG_LINES: u32 = 10;
const LOG_TEXT: usize = 4_000;
const MAX_QUESTION_TEXT: usize = 200;
/// Delay before showing what the command is waiting for.
const WAIT_NOTICE_DELAY: Duration = Duration::from_secs(1);

pub struct ProgressDisplay {
    output: Arc<Output>,
    clock: Arc<dyn Clock>,
    limiter: Mutex<RepaintLimiter>,
    waits: Arc<Mutex<PendingWaits>>,
    nested: Mutex<HashMap<CallId, NestedProgress>>,
    logs: Option<&'static str>,
}

struct NestedProgress {
    tool: String,
    depth: usize,
}

/// Pending waits, oldest first: an ID and a line.
type PendingWaits = Vec<(String, String)>;

#[derive(Default)]
struct RepaintLimiter {
    painted: Option<Instant>,
    second: Option<Instant>,
    logged: u32,
    dropped: u64,
}

impl ProgressDisplay {
    pub fn new(output: Arc<Output>, clock: Arc<dyn Clock>) -> Self {
        Self {
            output,
            clock,
            limiter: Mutex::default(),
            waits: Arc::default(),
            nested: Mutex::default(),
            logs: None,
        }
    }

    /// Shows every log line from this level up, because they were requested. A server may ignore
    /// the level it was given.
    #[must_use]
    pub fn with_logs(self, logs: Option<&'static str>) -> Self {
        Self { logs, ..self }
    }

    pub fn show(&self, event: &HostEvent) {
        let verbose = self.output.verbosity() > 0;
        match event {
            HostEvent::Warning { text } => return self.output.warn(text),
            HostEvent::QuestionAnswered { outcome: verdict, .. } if was_unattended(*verdict) => {
                // The log of a script has to show why a server's question was declined.
                if verbose || self.may_log() {
                    self.output.warn(&question_line(event));
                }
                return;
            }
            _ => {}
        }
        self.track_nesting(event);
        if let (Some(least), HostEvent::Log { level, .. }) = (self.logs, event)
            && level.is_below(least)
        {
            return;
        }
        let asked_for = self.logs.is_some() && matches!(event, HostEvent::Log { .. });
        if !(verbose || asked_for || self.output.is_stderr_terminal()) {
            return;
        }
        match event {
            HostEvent::Progress { call_id, progress, total, message } => {
                self.stop_waiting(&call_id.0);
                let line = progress_line(*progress, *total, message.as_deref());
                let line = self.with_tool_name(call_id, line);
                if self.output.is_stderr_terminal() {
                    if self.may_paint() {
                        self.output.status_line(&line);
                    }
                } else {
                    self.output.note(line);
                }
            }
            HostEvent::Log { origin, level, text: line, .. } => {
                if verbose || self.logs.is_some() || self.may_log() {
                    self.output.note(
                        Line::styled(Role::Dim, format!("{origin} {}: ", level.0))
                            .then(Role::Plain, text::shorten(line, LOG_TEXT)),
                    );
                }
            }
            HostEvent::AttemptFailed { attempt, error, delay, .. } => {
                let wait = units::show_duration(*delay);
                self.output.warn(&format!("attempt {attempt} failed: {error}; retrying in {wait}"));
            }
            HostEvent::Notice { origin, text } => {
                if verbose || self.may_log() {
                    self.output.warn(&format!("{origin}: {text}"));
                }
            }
            HostEvent::QuestionAnswered { .. } => {
                if verbose || self.may_log() {
                    self.output.note(Line::styled(Role::Dim, question_line(event)));
                }
            }
            HostEvent::ServerStateChanged { server, state } if verbose => {
                let line = Line::styled(Role::Dim, format!("{server}: {}", state.as_str()));
                self.output.note(line);
            }
            HostEvent::ServerStateChanged { server, state: ServerState::Starting } => {
                self.wait_for(server, format!("starting {server}…"));
            }
            HostEvent::ServerStateChanged { server, .. } => self.stop_waiting(server),
            HostEvent::CallStarted { call_id, tool, .. } => {
                self.wait_for(&call_id.0, format!("waiting for {tool}…"));
            }
            HostEvent::CallFinished { call_id, .. } => self.stop_waiting(&call_id.0),
            HostEvent::ListChanged { owner: ListOwner::Server(server), list } if verbose => {
                let text = format!("{server}: its {} changed", list.as_str());
                self.output.note(Line::styled(Role::Dim, text));
            }
            HostEvent::ListChanged { .. }
            | HostEvent::ResourceUpdated { .. }
            | HostEvent::TaskStarted { .. }
            | HostEvent::Warning { .. } => {}
        }
    }

    fn track_nesting(&self, event: &HostEvent) {
        let mut nested = self.nested.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            HostEvent::CallStarted { call_id, tool, parent: Some(parent), .. } => {
                let depth = nested.get(parent).map_or(0, |outer| outer.depth) + 1;
                nested.insert(call_id.clone(), NestedProgress { tool: tool.clone(), depth });
            }
            HostEvent::CallFinished { call_id, .. } => drop(nested.remove(call_id)),
            _ => {}
        }
    }

    fn with_tool_name(&self, call_id: &CallId, line: Line) -> Line {
        let nested = self.nested.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(NestedProgress { tool, depth }) = nested.get(call_id) else { return line };
        let indent = if self.output.is_stderr_terminal() { 0 } else { 2 * depth };
        line.then(Role::Dim, format!("  {tool}")).indented(indent)
    }

    /// Shows `line` if there is no event for `what` for a while.
    fn wait_for(&self, what: &str, line: String) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        lock(&self.waits).push((what.to_owned(), line));
        let (output, waits, what) =
            (Arc::clone(&self.output), Arc::clone(&self.waits), what.to_owned());
        runtime.spawn(async move {
            tokio::time::sleep(WAIT_NOTICE_DELAY).await;
            // The newest of several is enough.
            if let Some((_, line)) = lock(&waits).iter().rfind(|(waiting, _)| *waiting == what) {
                output.status_line(&Line::styled(Role::Dim, line));
            }
        });
    }

    fn stop_waiting(&self, what: &str) {
        lock(&self.waits).retain(|(waiting, _)| waiting != what);
    }

    fn may_paint(&self) -> bool {
        let now = self.clock.now();
        let mut pace = self.limiter.lock().unwrap_or_else(PoisonError::into_inner);
        let due = pace.painted.is_none_or(|last| now.duration_since(last) >= REPAINT);
        if due {
            pace.painted = Some(now);
        }
        due
    }

    fn may_log(&self) -> bool {
        let now = self.clock.now();
        let mut pace = self.limiter.lock().unwrap_or_else(PoisonError::into_inner);
        if pace.second.is_none_or(|start| now.duration_since(start) >= Duration::from_secs(1)) {
            let dropped = std::mem::take(&mut pace.dropped);
            if dropped > 0 {
                let line = format!("({dropped} log lines omitted, -v shows all)");
                self.output.note(Line::styled(Role::Dim, line));
            }
            pace.second = Some(now);
            pace.logged = 0;
        }
        pace.logged += 1;
        let shown = pace.logged <= LOG_LINES;
        pace.dropped += u64::from(!shown);
        shown
    }
}

/// Whether a question was declined because no person could be asked.
fn was_unattended(verdict: QuestionOutcome) -> bool {
    matches!(verdict, QuestionOutcome::Unattended | QuestionOutcome::Refused)
}

fn question_line(event: &HostEvent) -> String {
    let HostEvent::QuestionAnswered {
        server, round, kind, message: words, outcome: verdict, ..
    } = event
    else {
        return String::new();
    };
    let round = round.map(|round| format!("round {round}: ")).unwrap_or_default();
    let summary = text::shorten(words, MAX_QUESTION_TEXT);
    let what = match &**kind {
        "form" => format!("asked \"{summary}\""),
        "url" => format!("asked to open a page: {summary}"),
        "sampling" => format!("asked for a model reply: \"{summary}\""),
        _ => "asked for its roots".to_owned(),
    };
    let verdict = match verdict {
        QuestionOutcome::Accepted => "answered",
        QuestionOutcome::Declined => "declined",
        QuestionOutcome::Cancelled => "cancelled",
        QuestionOutcome::Unattended => {
            "declined, because no person can be asked; use --answers FILE"
        }
        QuestionOutcome::Refused => "declined: only http and https addresses are ever shown",
    };
    format!("{server}: {round}{what}; {verdict}")
}

fn lock(waits: &Mutex<PendingWaits>) -> std::sync::MutexGuard<'_, PendingWaits> {
    waits.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `[####......]  40 %  copying`, or what is known of it.
fn progress_line(progress: f64, total: Option<f64>, message: Option<&str>) -> Line {
    let share = total.filter(|t| *t > 0.0 && t.is_finite()).map(|t| (progress / t).clamp(0.0, 1.0));
    let mut line = match share.filter(|share| share.is_finite()) {
        Some(share) => chart::progress(share, 20),
        None => Line::styled(Role::Dim, format!("progress {progress}")),
    };
    if let Some(message) = message.filter(|message| !message.is_empty()) {
        line.push(Role::Plain, format!("  {message}"));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::super::output::streams::OutputOptions;
    use super::super::output::streams::tests::captured;
    use super::*;
    use crate::model::LogLevel;
    use crate::present::page::LineRenderer;

    struct Stopped(Instant);

    impl Clock for Stopped {
        fn now(&self) -> Instant {
            self.0
        }

        fn unix(&self) -> Duration {
            Duration::ZERO
        }
    }

    #[expect(clippy::disallowed_methods, reason = "an Instant cannot be made up")]
    fn stopped() -> Arc<dyn Clock> {
        Arc::new(Stopped(Instant::now()))
    }

    fn progress(value: f64) -> HostEvent {
        let call_id = CallId("1".into());
        HostEvent::Progress { call_id, progress: value, total: Some(4.0), message: None }
    }

    #[test]
    fn log_lines_that_were_asked_for_are_shown_without_a_terminal() {
        for (asked_for, shown) in
            [(None, ""), (Some("info"), "s info: hi\n"), (Some("warning"), "")]
        {
            let (output, _, err) = captured(OutputOptions::default(), false);
            ProgressDisplay::new(Arc::new(output), stopped()).with_logs(asked_for).show(&log());
            assert_eq!(err.text(), shown);
        }
    }

    fn log() -> HostEvent {
        let level = LogLevel("info".to_owned());
        HostEvent::Log { origin: "s".to_owned(), call_id: None, level, text: "hi".to_owned() }
    }

    #[test]
    fn a_terminal_is_repainted_at_a_bounded_pace() {
        let (output, _, err) = captured(OutputOptions::default(), true);
        let view = ProgressDisplay::new(Arc::new(output), stopped());
        for step in 0..50 {
            view.show(&progress(f64::from(step)));
        }
        assert_eq!(err.text().matches('\r').count(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_start_is_explained_and_a_fast_one_passes_unseen() {
        let server = |state| HostEvent::ServerStateChanged { server: "slow".to_owned(), state };
        for (ready, expected) in [(false, "\r\x1b[Kstarting slow…\x1b[J"), (true, "")] {
            let (output, _, err) = captured(OutputOptions::default(), true);
            let view = ProgressDisplay::new(Arc::new(output), stopped());
            view.show(&server(ServerState::Starting));
            if ready {
                view.show(&server(ServerState::Ready));
            }
            tokio::time::sleep(WAIT_NOTICE_DELAY * 2).await;
            assert_eq!(err.text(), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_call_is_explained_until_it_is_heard_of() {
        let call_id = || CallId("1".into());
        let started = HostEvent::CallStarted {
            call_id: call_id(),
            tool: "wait".to_owned(),
            parent: None,
            client: None,
        };
        let (output, _, err) = captured(OutputOptions::default(), true);
        let view = ProgressDisplay::new(Arc::new(output), stopped());
        view.show(&started);
        view.show(&progress(1.0));
        tokio::time::sleep(WAIT_NOTICE_DELAY * 2).await;
        assert!(!err.text().contains("waiting"), "{:?}", err.text());
        view.show(&started);
        tokio::time::sleep(WAIT_NOTICE_DELAY * 2).await;
        assert!(err.text().ends_with("waiting for wait…\x1b[J"), "{:?}", err.text());
    }

    #[test]
    fn a_pipe_sees_nothing_unless_asked() {
        let (output, _, err) = captured(OutputOptions::default(), false);
        ProgressDisplay::new(Arc::new(output), stopped()).show(&progress(1.0));
        assert_eq!(err.text(), "");
        let (output, _, err) =
            captured(OutputOptions { verbose: 1, ..OutputOptions::default() }, false);
        let view = ProgressDisplay::new(Arc::new(output), stopped());
        view.show(&progress(1.0));
        view.show(&log());
        assert_eq!(err.text(), "[#####...............]  25 %\ns info: hi\n");
    }

    #[test]
    fn the_progress_of_a_step_is_set_in_and_says_whose_it_is() {
        let (output, _, err) =
            captured(OutputOptions { verbose: 1, ..OutputOptions::default() }, false);
        let view = ProgressDisplay::new(Arc::new(output), stopped());
        let call_id = || CallId("1".into());
        let parent = Some(CallId("0".into()));
        view.show(&HostEvent::CallStarted {
            call_id: call_id(),
            tool: "slow".to_owned(),
            parent,
            client: None,
        });
        view.show(&progress(1.0));
        let (tool, duration) = ("slow".to_owned(), Duration::ZERO);
        view.show(&HostEvent::CallFinished {
            call_id: call_id(),
            tool,
            success: true,
            is_cancelled: false,
            duration,
        });
        view.show(&progress(1.0));
        assert_eq!(
            err.text(),
            "  [#####...............]  25 %  slow\n[#####...............]  25 %\n"
        );
    }

    #[test]
    fn a_flood_of_log_lines_or_questions_is_thinned_out() {
        let asked = HostEvent::Notice { origin: "s".to_owned(), text: "asked".to_owned() };
        for event in [log(), asked] {
            let (output, _, err) = captured(OutputOptions::default(), true);
            let view = ProgressDisplay::new(Arc::new(output), stopped());
            for _ in 0..100 {
                view.show(&event);
            }
            assert_eq!(err.text().lines().count(), 10);
        }
    }

    #[test]
    fn a_warning_of_our_own_is_seen_in_a_pipe_too() {
        let (output, _, err) = captured(OutputOptions::default(), false);
        let text = "was set to 0600\u{1b}".to_owned();
        ProgressDisplay::new(Arc::new(output), stopped()).show(&HostEvent::Warning { text });
        assert_eq!(err.text(), "warning: was set to 0600␛\n");
    }

    #[test]
    fn odd_numbers_are_no_trouble() {
        for (progress, total) in [(1.0, Some(0.0)), (f64::NAN, Some(1.0)), (-5.0, Some(2.0))] {
            let _line = LineRenderer::default().line(&progress_line(progress, total, Some("m")));
        }
    }
}
