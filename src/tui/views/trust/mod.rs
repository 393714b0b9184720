//! Project trust: its state, the question, and the consequences of an answer.

pub mod tasks;
#[cfg(test)]
pub mod tests;

use ratatui::text::Text;

use crate::config::consent::{ProjectRecord, TrustRequest};
use crate::config::spec::Configuration;
use crate::model::{Diagnostic, ErrorCause, ErrorKind, Layer, SourceLocation};
use crate::tui::keys::KeyPress;
use crate::tui::layout;
use crate::tui::prelude::*;
use crate::tui::tasks::error_message;
use crate::tui::views::inbox::TRUST;
use crate::tui::views::trust::tasks::FilesRead;
use crate::tui::widgets::reading::QuestionText;

/// What is done about trust at the moment. All but the first two read the configuration again, and
/// say why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum TrustTask {
    /// Nothing: a new request can start.
    #[default]
    Idle,
    /// The configuration is loaded, to be compared with what the host was built from.
    Checking,
    /// A person trusted the project here.
    Answered,
    StoreChanged,
    /// A person asked for the background host.
    Attaching,
    FilesChanged,
}

#[derive(Debug, Default)]
pub struct ProjectTrust {
    /// The question, while it is on the screen.
    pub window: Option<TrustWindow>,
    status: TrustStatus,
    pub question: Option<Arc<TrustRequest>>,
    work: TrustTask,
    needs_recheck: bool,
    next: TrustStatus,
    /// The names of the configuration files that are not what they were when they were read.
    pub changed_files: Vec<String>,
}

impl ProjectTrust {
    /// The console opens with a host that was built from this. Asks, unless that was refused.
    pub fn begin(&mut self, status: TrustStatus) {
        self.status = status;
        self.question = self.status.request.clone();
        self.ask_unless_refused();
    }

    /// What was wrong with the files that the host in use was built from.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.status.diagnostics
    }

    /// Offers what the configuration files say now; `may_end_calls` where that needs another host.
    pub fn reload(&mut self, may_end_calls: bool, context: &mut AppContext) {
        if self.work != TrustTask::Idle {
            return context.show_status("the configuration is already being read");
        }
        self.work = TrustTask::FilesChanged;
        context.show_status("reading the configuration files…");
        context.emit(tasks::reload(may_end_calls));
    }

    /// The notice below the tool list; `key` is the one that opens the question.
    pub fn notice(&self, key: Option<KeyPress>) -> Option<String> {
        self.question.as_ref()?;
        let (text, what) = match (&self.status.record, self.status.untrusted) {
            (Some(_), _) => ("changed since it was trusted".to_owned(), "changed"),
            (None, 0) => ("is not trusted".to_owned(), "it would do"),
            (None, 1) => ("is not trusted: 1 entry does nothing yet".to_owned(), "it would do"),
            (None, count) => {
                (format!("is not trusted: {count} entries do nothing yet"), "they would do")
            }
        };
        let way = key.map_or("Run 'toolhost trust'".to_owned(), |key| format!("Press {key}"));
        Some(format!("This project {text}. {way} to see what {what}."))
    }

    pub fn open(&mut self, context: &mut AppContext) {
        match &self.question {
            Some(request) => self.window = Some(TrustWindow::new(Arc::clone(request))),
            None if self.status.record.is_some() => context.show_status("this project is trusted"),
            None => context
                .show_status("there is nothing to trust: no entry reaches beyond its project"),
        }
    }

    /// Reads the configuration again and builds another host, which uses the background host if one
    /// runs for that.
    pub fn attach(&mut self, context: &mut AppContext) {
        if let Some(pid) = context.attached_host {
            context.show_status(format!("already attached to the background host (pid {pid})"));
        } else if context.calls.is_running() {
            context.show_status("calls are running here; attach when they have ended");
        } else if self.work == TrustTask::Idle {
            self.work = TrustTask::Attaching;
            context.emit(tasks::reload(true));
        }
    }

    pub fn decide(&mut self, action: Action, context: &mut AppContext) -> bool {
        let Some(window) = &mut self.window else { return false };
        match action {
            Action::ChangeFormat if window.request.previous.is_some() => window.toggle_whole(),
            Action::ChangeFormat => context.show_status("this is the whole project"),
            // Keys that were typed ahead are no answer.
            Action::No | Action::Back if !window.text.is_settled(context.now) => {}
            Action::No => self.refuse(context),
            Action::Back => {
                self.window = None;
                context.show_status(format!("not trusted yet{}", way_back(context)));
            }
            Action::Yes => self.accept(false, context),
            Action::YesAsAuthor => self.accept(true, context),
            _ => return false,
        }
        true
    }

    /// A call or a server failed; when that is because the project is not what was trusted, the
    /// difference is looked for.
    pub fn failed(&mut self, error: &Error, context: &mut AppContext) {
        if error.cause() == ErrorCause::TrustOutdated && self.window.is_none() {
            self.check(context);
        }
    }

    /// How far the project is trusted by now, as was asked.
    pub fn checked(&mut self, status: Result<TrustStatus, Error>, context: &mut AppContext) {
        let status = match status {
            _ if self.work != TrustTask::Checking => return,
            Ok(status) => status,
            Err(error) => return self.on_failed(&error, context),
        };
        self.work = TrustTask::Idle;
        self.compare(status, context);
        if self.work == TrustTask::Idle {
            self.recheck(context);
        }
    }

    /// The configuration was read, and another host is ready, or none may be.
    pub fn files_read(&mut self, files: Result<FilesRead, Error>, context: &mut AppContext) {
        match files {
            Ok(FilesRead::HostReady(status)) => {
                self.next = status;
                context.emit(AppEffect::SwitchHost);
            }
            Ok(FilesRead::HostKept(status)) => self.on_host_kept(status, context),
            Err(error) => self.on_failed(&error, context),
        }
    }

    /// The answer was not stored, or no host could be built.
    pub fn on_failed(&mut self, error: &Error, context: &mut AppContext) {
        self.work = TrustTask::Idle;
        context.show_error(error_message(error));
        self.recheck(context);
    }

    fn accept(&mut self, as_author: bool, context: &mut AppContext) {
        let Some(window) = &self.window else { return };
        match self.work {
            TrustTask::StoreChanged => {
                context.show_status("trust changed in another terminal; reading it first");
            }
            TrustTask::FilesChanged => {
                context.show_status("the configuration files are being read first");
            }
            _ if window.text.accepts(&window.request.command(), context) => {
                let request = Arc::clone(&window.request);
                self.window = None;
                self.work = TrustTask::Answered;
                context.show_status("trusted; restarting with it");
                context.emit(tasks::trust(request, as_author));
            }
            _ => {}
        }
    }

    fn refuse(&mut self, context: &mut AppContext) {
        let Some(window) = self.window.take() else { return };
        if let Some(question) = &mut self.question
            && question.bundle == window.request.bundle
        {
            Arc::make_mut(question).refused_at.get_or_insert_default();
        }
        context.show_status(format!("not trusted{}", way_back(context)));
        context.emit(tasks::refuse(window.request));
    }

    /// Looks whether trust is still what it was.
    pub fn check(&mut self, context: &mut AppContext) {
        if self.work == TrustTask::Idle {
            self.work = TrustTask::Checking;
            context.emit(tasks::check());
        } else {
            self.needs_recheck = true;
        }
    }

    fn recheck(&mut self, context: &mut AppContext) {
        if std::mem::take(&mut self.needs_recheck) {
            self.check(context);
        }
    }

    fn compare(&mut self, now: TrustStatus, context: &mut AppContext) {
        if now.record == self.status.record && now.request == self.question {
            return;
        }
        if now.record == self.status.record && now.record.is_some() {
            // What had changed is as it was trusted again.
            (self.question, self.window) = (None, None);
            return;
        }
        // The answer still stands, and the project is another one: its unchanged entries go on.
        let is_outdated = self.status.record.is_some()
            && now.record.is_none()
            && now.request.as_ref().is_some_and(|request| request.previous == self.status.record);
        if is_outdated {
            self.question = now.request;
            if self.window.is_none() && self.ask_unless_refused() {
                context.show_status("this project changed since it was trusted");
            }
            return;
        }
        if now.record == self.status.record
            && let (Some(request), Some(before)) = (&now.request, &self.question)
            && request.bundle == before.bundle
            && request.root == before.root
        {
            // Only whether it was refused is another.
            let is_refused = request.refused_at.is_some();
            self.question = now.request;
            if is_refused && self.window.take().is_some() {
                context.show_status("this project was refused in another terminal");
            }
            return;
        }
        self.work = TrustTask::StoreChanged;
        context.emit(tasks::reload(true));
    }

    /// The answer does not cover the project as it is now: what was trusted goes on, and a person is
    /// asked about the change.
    fn on_host_kept(&mut self, now: TrustStatus, context: &mut AppContext) {
        self.question = now.request;
        if std::mem::take(&mut self.work) == TrustTask::Answered {
            context
                .show_error("the project changed while the question was open: it is not trusted");
        } else {
            context.show_status("this project changed since it was trusted");
        }
        self.ask_unless_refused();
        self.recheck(context);
    }

    pub fn on_host_switched(&mut self, context: &mut AppContext) {
        let before = std::mem::replace(&mut self.status, std::mem::take(&mut self.next));
        let cause = std::mem::take(&mut self.work);
        self.question.clone_from(&self.status.request);
        let was_open = self.window.take().is_some();
        let is_trusted = self.status.record.is_some();
        match (cause, &self.question) {
            (TrustTask::Attaching, _) => {
                if context.attached_host.is_none() {
                    context.show_error(
                        "no background host is running for this configuration; 'toolhost up' starts one",
                    );
                }
            }
            (TrustTask::FilesChanged, _) => {
                context.show_status("configuration reloaded");
                self.ask_unless_refused();
            }
            (TrustTask::Answered, Some(_)) => {
                context.show_error(
                    "the project changed while the question was open: it is not trusted",
                );
                self.ask_unless_refused();
            }
            (TrustTask::Answered, None) => {
                context.show_status("this project is trusted now");
            }
            (_, None) if is_trusted => {
                context.show_status("this project was trusted in another terminal");
            }
            (_, Some(request)) if before.record.is_some() && request.previous.is_none() => {
                context.show_error("trust in this project was revoked in another terminal");
            }
            (_, Some(_)) => {
                context.show_status("this project changed since it was read");
                if was_open {
                    self.ask_unless_refused();
                }
            }
            (_, None) => context.show_status("nothing left to trust in this project"),
        }
        self.recheck(context);
    }

    fn ask_unless_refused(&mut self) -> bool {
        let asks = self.question.as_ref().filter(|request| request.refused_at.is_none());
        if let Some(request) = asks {
            self.window = Some(TrustWindow::new(Arc::clone(request)));
        }
        self.window.is_some()
    }
}

/// How far the project is trusted, as one look at its configuration found it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustStatus {
    /// The stored answer under which the project acts; `None` when no answer covers it as it is.
    pub record: Option<Arc<ProjectRecord>>,
    /// The request the user would be asked to trust; `None` when there is nothing to trust.
    pub request: Option<Arc<TrustRequest>>,
    /// How many entries do nothing until that is answered.
    pub untrusted: usize,
    /// What that look found wrong with the files.
    pub diagnostics: Vec<Diagnostic>,
}

impl TrustStatus {
    pub fn of(configuration: &Configuration) -> Self {
        Self {
            record: configuration.trust_record.clone(),
            request: configuration.trust_request.clone().map(Arc::new),
            untrusted: configuration.untrusted.len(),
            diagnostics: configuration.diagnostics.clone(),
        }
    }

    /// What a person may be asked about. The error of a file of a trusted project that cannot be read:
    /// nobody agrees to what it lacks.
    pub fn of_readable(configuration: &Configuration) -> Result<Self, Error> {
        let status = Self::of(configuration);
        let is_change = status.request.as_ref().is_some_and(|request| request.previous.is_some());
        let mut unread = configuration.unread.iter().filter(|(_, layer)| *layer == Layer::Project);
        let problem = unread.find_map(|(path, _)| {
            let is_in_file = |at: &SourceLocation| at.file.as_path() == path;
            let mut problems = status.diagnostics.iter();
            problems.find(|problem| problem.location.as_ref().is_some_and(is_in_file))
        });
        match problem.filter(|_| is_change) {
            Some(problem) => Err(Error::of_diagnostic(ErrorKind::Config, problem.clone())),
            None => Ok(status),
        }
    }
}

fn way_back(context: &AppContext) -> String {
    let key = context.keys.key_of(Action::Trust, &[&ANYWHERE]);
    key.map(|key| format!("; {key} asks again")).unwrap_or_default()
}

/// How far the rest of a broken line is indented: more than any line begins with.
const CONTINUED: usize = 8;

/// The question about the project, while it is on the screen.
#[derive(Debug)]
pub struct TrustWindow {
    /// Exactly what a yes would store.
    pub request: Arc<TrustRequest>,
    pub text: QuestionText,
    /// Whether all of it is shown although only a part has changed.
    pub shows_whole: bool,
}

impl TrustWindow {
    /// The question: the difference where the project was trusted before, else the whole.
    pub fn new(request: Arc<TrustRequest>) -> Self {
        let text = QuestionText::new(question_text(&present::trust::question(&request)));
        Self { request, text, shows_whole: false }
    }

    pub fn toggle_whole(&mut self) {
        self.shows_whole = !self.shows_whole && self.request.previous.is_some();
        let question =
            if self.shows_whole { present::trust::whole } else { present::trust::question };
        self.text.text = question_text(&question(&self.request));
    }
}

fn question_text(page: &Page) -> ScrollText {
    let mut text = ScrollText::with_indent(CONTINUED);
    text.page(page);
    text
}

/// The rows of a window that has room for what the keys do; below that the footer has to do.
const KEY_HINTS_MIN_HEIGHT: u16 = 16;

pub fn draw(pen: &mut Pen<'_>, state: &AppState, window: &TrustWindow, area: Rect) {
    let title = match (&window.request.previous, window.shows_whole) {
        (None, _) => "Trust this project?",
        (Some(_), false) => "The project changed",
        (Some(_), true) => "The whole project",
    };
    let (width, most) = layout::page_size(area);
    let keys = if most < KEY_HINTS_MIN_HEIGHT { Vec::new() } else { answers(pen.styler, state) };
    // With the question, a line before it, and the frame.
    let rows = pen.rows_of(&window.text.text, width.min(area.width).saturating_sub(4));
    let height = cells(rows + keys.len() + 4).min(most);
    let inner = pen.ask_over(area, (width, height), title, Role::Warning);
    let [above, below] = bottom(inner, keys.len());
    let command = window.request.command();
    window.text.draw(pen, above, state.context.now, |readiness| {
        readiness.line("Trust this project? [y/N]", &command)
    });
    pen.paragraph(below, &keys);
}

fn answers(styler: Styler, state: &AppState) -> Vec<Line<'static>> {
    let shown = state.context.keys.bindings(&TRUST).iter();
    shown
        .filter(|binding| binding.label.is_some() && !state.is_unavailable(binding))
        .map(|binding| styler.answer(binding.key, 3, binding.about))
        .collect()
}

/// Says below the tools what is not trusted; returns the area left above.
pub fn notice(pen: &mut Pen<'_>, state: &AppState, area: Rect) -> Rect {
    let key = state.context.keys.key_of(Action::Trust, &state.view_key_contexts());
    let line = state.trust.notice(key).map(|text| pen.line(Role::Warning, text));
    let lines = line.map(|line| wrap(&line, usize::from(area.width))).unwrap_or_default();
    // The tools keep a line.
    let most = usize::from(area.height).saturating_sub(1);
    let [above, below] = bottom(area, lines.len().min(most));
    pen.put(Text::from(lines), below);
    above
}
