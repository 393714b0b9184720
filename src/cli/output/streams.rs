//! The one writer to stdout and stderr.
//!
//! A stdout that was closed before the start (`>&-`) cannot be told from `/dev/null`: Rust's
//! runtime opens `/dev/null` in its place before `main`, exactly like a parent that wants no
//! output. Looking earlier takes a constructor, which is unsafe code; so such a run ends like one
//! whose output is not read. A full disk behind stdout is noticed.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError, RwLock};

use serde::Serialize;

use super::settings::{self, ColourChoice, Format};
use super::yaml;
use crate::audit::Masker;
use crate::cli::json::error::ErrorLineJson;
use crate::config::environment::Environment;
use crate::model::{Error, Routing};
use crate::present::page::LineRenderer;
use crate::present::{Line, Page, messages, outcome};
use crate::util::{json, text};

#[derive(Debug)]
pub enum CommandError {
    Failed(Error),
    /// The reader of stdout closed it; this is not a failure.
    OutputClosed,
}

/// Ends a command that printed its answer: with an error, if something is wrong with it.
pub fn conclude(verdict: Option<Error>) -> Result<(), CommandError> {
    verdict.map_or(Ok(()), |error| Err(error.into()))
}

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub struct OutputOptions {
    /// `--color`.
    pub colour: ColourChoice,
    pub ascii: bool,
    /// `--plain`: no colour, no repainting, no cutting to the width of the terminal.
    pub plain: bool,
    /// `-q`.
    pub quiet: bool,
    /// How often `-v` was given.
    pub verbose: u8,
    pub json: bool,
}

pub struct Output {
    out: OutputStream,
    err: OutputStream,
    options: OutputOptions,
    masker: RwLock<Masker>,
}

struct OutputStream {
    state: Mutex<StreamState>,
    terminal: bool,
    /// Whether lines on it can be replaced by later ones.
    repaints: bool,
    width: Option<usize>,
    palette: LineRenderer,
}

struct StreamState {
    sink: Box<dyn Write + Send>,
    line: OpenLine,
}

/// What must be done before anything else is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum OpenLine {
    #[default]
    Empty,
    /// Lines that will be repainted, this many above the cursor line: they are removed.
    Transient { above: usize },
    /// A question that was not answered: it stays on the screen.
    Question,
}

impl Output {
    pub fn new(options: OutputOptions, environment: &dyn Environment) -> Self {
        Self {
            out: OutputStream::new(io::stdout(), options, environment),
            err: OutputStream::new(io::stderr(), options, environment),
            options,
            masker: RwLock::default(),
        }
    }

    /// Masks what `masker` knows in everything that is written from now on.
    pub fn set_masker(&self, masker: Masker) {
        *self.masker.write().unwrap_or_else(PoisonError::into_inner) = masker;
    }

    /// `bytes` without secrets. What is truncated or wrapped was masked before; this catches the
    /// rest: a path in a library's message, a file named by a variable.
    fn masked<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let masker = self.masker.read().unwrap_or_else(PoisonError::into_inner);
        masker.replaced(bytes).map_or(Cow::Borrowed(bytes), Cow::Owned)
    }

    fn write_message(&self, bytes: &[u8]) {
        self.err.write_message(&self.masked(bytes));
    }

    /// A line of the log without known secrets.
    pub fn masked_log_line<'l>(&self, line: &'l str) -> Cow<'l, str> {
        match self.masked(line.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(line),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Writes a log line to stderr regardless of `-q`; it was sanitised before.
    pub fn log_line(&self, line: &str) {
        self.write_message(format!("{line}\n").as_bytes());
    }

    /// Whether stderr is a terminal, regardless of `-q`.
    pub fn has_stderr_terminal(&self) -> bool {
        self.err.terminal
    }

    /// The layout width of a page for stdout; `None` means no limit.
    pub fn width(&self) -> Option<usize> {
        self.out.width
    }

    pub fn is_terminal(&self) -> bool {
        self.out.terminal
    }

    pub fn is_stderr_terminal(&self) -> bool {
        self.err.terminal && !self.options.quiet
    }

    pub fn verbosity(&self) -> u8 {
        self.options.verbose
    }

    /// Whether failures are written as JSON, so that nothing else should be printed about them.
    pub fn has_json_errors(&self) -> bool {
        self.options.json
    }

    pub fn page(&self, page: &Page) -> Result<(), CommandError> {
        self.write(self.out.palette.page(page).as_bytes())
    }

    pub fn names(
        &self,
        names: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<(), CommandError> {
        self.page(&names.into_iter().map(Line::plain).collect())
    }

    /// Writes a page to stdout over the previous one, of which `above` lines are on the screen;
    /// returns how many are there now. What does not fit on the screen is omitted. A stdout that
    /// cannot repaint gets the pages one after another.
    pub fn repaint(&self, page: &Page, above: usize) -> Result<usize, CommandError> {
        if !self.out.repaints {
            return self.page(page).map(|()| 0);
        }
        let rows = rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |size| size.ws_row);
        let room = usize::from(rows).checked_sub(1).filter(|room| *room > 0).unwrap_or(usize::MAX);
        let text = self.out.palette.page(page);
        let lines: Vec<&str> = text.lines().take(room).collect();
        let mut painted = match above {
            0 => String::new(),
            above => format!("\x1b[{above}A\r"),
        };
        for line in &lines {
            // Each line is overwritten and only the remainder is cleared, to avoid flicker.
            painted.push_str(line);
            painted.push_str("\x1b[K\n");
        }
        painted.push_str("\x1b[J");
        self.write(painted.as_bytes()).map(|()| lines.len())
    }

    /// Writes a value to stdout as JSON or YAML.
    pub fn value(&self, format: Format, value: &impl Serialize) -> Result<(), CommandError> {
        let text = match format {
            Format::Yaml => yaml::document(&serde_json::to_value(value).unwrap_or_default()),
            _ if self.out.terminal => json::pretty(value) + "\n",
            _ => json::compact(value) + "\n",
        };
        self.write(text.as_bytes())
    }

    /// Writes a value as JSON or YAML, and in every other format its page; returns whether that was
    /// the page, which notes may follow.
    pub fn report(
        &self,
        format: Format,
        value: &impl Serialize,
        page: impl FnOnce() -> Page,
    ) -> Result<bool, CommandError> {
        if matches!(format, Format::Json | Format::Yaml) {
            return self.value(format, value).map(|()| false);
        }
        self.page(&page()).map(|()| true)
    }

    pub fn listing(
        &self,
        format: Format,
        value: &impl Serialize,
        names: impl IntoIterator<Item = impl AsRef<str>>,
        page: impl FnOnce() -> Page,
    ) -> Result<bool, CommandError> {
        if format == Format::Names {
            return self.names(names).map(|()| false);
        }
        self.report(format, value, page)
    }

    /// Writes a value to stdout as one line of JSON, terminal or not.
    pub fn line(&self, value: &impl Serialize) -> Result<(), CommandError> {
        self.write((json::compact(value) + "\n").as_bytes())
    }

    /// Whether stdout is a pipe or socket whose reader has gone, without writing to it.
    pub fn is_stdout_closed(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        if self.out.terminal {
            return false;
        }
        let out = io::stdout();
        // No events are requested: errors are always reported.
        let mut watched = [PollFd::new(&out, PollFlags::empty())];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let seen = poll(&mut watched, Some(&at_once));
        seen.is_ok() && watched.iter().any(|fd| fd.revents().contains(PollFlags::ERR))
    }

    /// Writes the raw bytes of a result to stdout: unchanged, unless stdout is a terminal.
    pub fn raw(&self, bytes: &[u8]) -> Result<(), CommandError> {
        if !self.out.terminal {
            return self.write(bytes);
        }
        let mut text = text::safe(&String::from_utf8_lossy(bytes)).into_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        self.write(text.as_bytes())
    }

    /// Writes a message to stderr, unless `-q` was given.
    pub fn note(&self, line: impl Into<Line>) {
        if !self.options.quiet {
            self.stderr_page(&Page::from(line.into()));
        }
    }

    /// Says with `-v` why a server was chosen.
    pub fn note_routing(&self, routing: Option<&Routing>) {
        if self.options.verbose > 0 {
            for line in routing.into_iter().flat_map(outcome::routing) {
                self.note(line);
            }
        }
    }

    /// Writes a warning to stderr, unless `-q` was given.
    pub fn warn(&self, text: &str) {
        self.note(messages::warning(text));
    }

    /// Writes an error to stderr, as text or as one line of JSON.
    pub fn error(&self, error: &Error) {
        if self.options.json {
            let line = json::compact(&ErrorLineJson::from(error)) + "\n";
            self.write_message(line.as_bytes());
        } else {
            self.stderr_page(&messages::page(error));
        }
    }

    /// Writes a page to stderr, regardless of `-q`.
    pub fn stderr_page(&self, page: &Page) {
        self.write_message(self.err.palette.page(page).as_bytes());
    }

    /// The layout width of a page for stderr; `None` means no limit.
    pub fn stderr_width(&self) -> Option<usize> {
        self.err.width
    }

    /// Writes a value to stderr as one line of JSON, regardless of `-q`.
    pub fn stderr_value(&self, value: &impl Serialize) {
        self.write_message((json::compact(value) + "\n").as_bytes());
    }

    /// Shows a line on stderr that the next one replaces; does nothing if stderr cannot repaint.
    pub fn status_line(&self, line: &Line) {
        self.status_page(&Page::from(line.clone()));
    }

    /// Shows a page on stderr that the next one replaces, and that is gone before anything else is
    /// written; does nothing if stderr cannot repaint. Lines are cut to the width of the screen,
    /// and there are fewer than its height. The terminal state is unchanged: no mode is set that
    /// would need to be restored.
    pub fn status_page(&self, page: &Page) {
        if !self.can_repaint() {
            return;
        }
        let size = rustix::termios::tcgetwinsize(io::stderr()).ok();
        // A terminal may be resized at any time.
        let columns = size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
        let columns = columns.or(self.err.width).unwrap_or(80).saturating_sub(1).max(1);
        let rows = size.map(|size| usize::from(size.ws_row)).filter(|rows| *rows > 0);
        let rows = rows.unwrap_or(24).saturating_sub(1).max(1);
        let shown = page.lines().iter().take(rows);
        let lines: Vec<String> =
            shown.map(|line| self.err.palette.line(&line.clone().truncate(columns))).collect();
        let mut state = self.err.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut painted = match state.line {
            OpenLine::Question => return,
            OpenLine::Transient { above: above @ 1.. } => format!("\x1b[{above}A"),
            OpenLine::Transient { above: 0 } | OpenLine::Empty => String::new(),
        };
        for (index, line) in lines.iter().enumerate() {
            // Each line is overwritten and only the remainder is cleared, to avoid flicker.
            painted.push_str(if index == 0 { "\r\x1b[K" } else { "\n\x1b[K" });
            painted.push_str(line);
        }
        painted.push_str("\x1b[J");
        state.line = OpenLine::Transient { above: lines.len().saturating_sub(1) };
        // A broken stderr cannot be reported anywhere.
        let painted = self.masked(painted.as_bytes());
        let _unheard = state.sink.write_all(&painted).and_then(|()| state.sink.flush());
    }

    /// Whether lines on stderr can be replaced by later ones.
    pub fn can_repaint(&self) -> bool {
        self.err.repaints && !self.options.quiet
    }

    /// Shows a question on `terminal`, which may be a different one from stderr.
    pub fn ask(&self, question: &Page, terminal: &mut dyn Write) -> io::Result<()> {
        self.clear_status();
        // The user types the answer after it.
        let text = self.err.palette.page(question);
        let text = format!("{} ", text.trim_end_matches('\n'));
        terminal.write_all(&self.masked(text.as_bytes()))?;
        terminal.flush()?;
        self.err.open(OpenLine::Question);
        Ok(())
    }

    /// Shows a page on `terminal`, which may be a different one from stderr.
    pub fn show(&self, page: &Page, terminal: &mut dyn Write) -> io::Result<()> {
        self.clear_status();
        terminal.write_all(&self.masked(self.err.palette.page(page).as_bytes()))?;
        terminal.flush()
    }

    pub fn question_answered(&self) {
        self.err.open(OpenLine::Empty);
    }

    /// Removes what [`Output::status_line`] and [`Output::status_page`] showed.
    pub fn clear_status(&self) {
        self.err.write_message(b"");
    }

    fn write(&self, bytes: &[u8]) -> Result<(), CommandError> {
        self.clear_status();
        let bytes = &*self.masked(bytes);
        let mut state = self.out.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.sink.write_all(bytes).and_then(|()| state.sink.flush()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                Err(CommandError::OutputClosed)
            }
            Err(error) => Err(Error::internal(format!("cannot write to standard output: {error}"))
                .with_hint("the result is incomplete; is the disk full?")
                .into()),
        }
    }
}

impl OutputStream {
    fn new<S: Write + IsTerminal + AsFd + Send + 'static>(
        sink: S,
        options: OutputOptions,
        environment: &dyn Environment,
    ) -> Self {
        let terminal = sink.is_terminal();
        let columns = rustix::termios::tcgetwinsize(&sink).ok().map(|size| size.ws_col);
        let wants_colour = settings::wants_colour(options.colour, terminal, environment);
        Self {
            terminal,
            repaints: terminal && !options.plain && !settings::is_dumb(environment),
            width: settings::width(terminal && !options.plain, columns),
            palette: LineRenderer {
                colour: wants_colour && !options.plain,
                ascii: options.ascii || settings::is_ascii_locale(environment),
            },
            state: Mutex::new(StreamState { sink: Box::new(sink), line: OpenLine::Empty }),
        }
    }

    fn open(&self, line: OpenLine) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.line = if self.terminal { line } else { OpenLine::Empty };
    }

    fn write_message(&self, bytes: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::with_capacity(bytes.len() + 4);
        match std::mem::take(&mut state.line) {
            OpenLine::Empty => {}
            OpenLine::Transient { above: 0 } => all.extend_from_slice(b"\r\x1b[K"),
            OpenLine::Transient { above } => {
                all.extend_from_slice(format!("\x1b[{above}A\r\x1b[J").as_bytes());
            }
            OpenLine::Question => all.push(b'\n'),
        }
        all.extend_from_slice(bytes);
        if !all.is_empty() {
            // A broken stderr cannot be reported anywhere.
            let _unheard = state.sink.write_all(&all).and_then(|()| state.sink.flush());
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::present::Role;

    #[derive(Clone, Default)]
    pub(crate) struct CapturedStream(Arc<Mutex<Vec<u8>>>);

    impl CapturedStream {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for CapturedStream {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct FailingStream(io::ErrorKind);

    impl Write for FailingStream {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// An output whose streams are kept in memory.
    pub(crate) fn captured(
        options: OutputOptions,
        terminal: bool,
    ) -> (Output, CapturedStream, CapturedStream) {
        let (out, err) = (CapturedStream::default(), CapturedStream::default());
        let output = output_of(Box::new(out.clone()), Box::new(err.clone()), options, terminal);
        (output, out, err)
    }

    fn output_of(
        out: Box<dyn Write + Send>,
        err: Box<dyn Write + Send>,
        options: OutputOptions,
        terminal: bool,
    ) -> Output {
        let stream = |sink| OutputStream {
            state: Mutex::new(StreamState { sink, line: OpenLine::Empty }),
            terminal,
            repaints: terminal,
            width: terminal.then_some(80),
            palette: LineRenderer::default(),
        };
        Output { out: stream(out), err: stream(err), options, masker: RwLock::default() }
    }

    #[test]
    fn raw_bytes_are_exact_for_a_pipe_and_safe_for_a_terminal() {
        let (pipe, out, _) = captured(OutputOptions::default(), false);
        pipe.raw(b"\x1b[2Jx").unwrap();
        assert_eq!(out.text(), "\x1b[2Jx");
        let (terminal, out, _) = captured(OutputOptions::default(), true);
        terminal.raw(b"\x1b[2Jx\xff").unwrap();
        assert_eq!(out.text(), "␛[2Jx\u{fffd}\n");
    }

    #[test]
    fn json_is_one_line_for_a_pipe() {
        let (pipe, out, _) = captured(OutputOptions::default(), false);
        pipe.value(Format::Json, &json!({ "a": 1 })).unwrap();
        assert_eq!(out.text(), "{\"a\":1}\n");
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure_and_a_full_disk_is() {
        let page = Page::from(Line::plain("x"));
        let gone = Box::new(FailingStream(io::ErrorKind::BrokenPipe));
        let full = Box::new(FailingStream(io::ErrorKind::StorageFull));
        let to = |sink| {
            output_of(sink, Box::new(io::sink()), OutputOptions::default(), false).page(&page)
        };
        assert!(matches!(to(gone), Err(CommandError::OutputClosed)));
        assert!(matches!(to(full), Err(CommandError::Failed(f)) if f.kind().exit_code() == 1));
    }

    #[test]
    fn quiet_silences_talk_but_not_failures() {
        let (output, _, err) =
            captured(OutputOptions { quiet: true, ..OutputOptions::default() }, false);
        output.warn("odd");
        output.note("23 tools");
        assert_eq!(err.text(), "");
        output.error(&Error::usage("no such tool"));
        assert_eq!(err.text(), "error: no such tool\n");
    }

    #[test]
    fn a_error_under_json_is_one_line() {
        let (output, _, err) =
            captured(OutputOptions { json: true, ..OutputOptions::default() }, false);
        output.error(&Error::usage("no\nsuch tool").with_detail("a"));
        assert_eq!(err.text().lines().count(), 1);
    }

    #[test]
    fn a_question_that_was_not_answered_keeps_its_line() {
        let (output, _, err) = captured(OutputOptions::default(), true);
        let mut terminal = Vec::new();
        output.ask(&Page::from(Line::plain("Call it?")), &mut terminal).unwrap();
        output.error(&Error::usage("interrupted"));
        assert_eq!(terminal, b"Call it? ");
        assert_eq!(err.text(), "\nerror: interrupted\n");
        let (output, _, err) = captured(OutputOptions::default(), true);
        output.ask(&Page::default(), &mut terminal).unwrap();
        output.status_line(&Line::plain("waiting"));
        assert_eq!(err.text(), "", "painted over a question");
        let (output, _, err) = captured(OutputOptions::default(), true);
        output.ask(&Page::default(), &mut terminal).unwrap();
        output.question_answered();
        output.error(&Error::usage("refused"));
        assert_eq!(err.text(), "error: refused\n");
    }

    #[test]
    fn a_transient_line_is_gone_before_anything_else_is_written() {
        let (output, out, err) = captured(OutputOptions::default(), true);
        output.status_line(&Line::styled(Role::Dim, "50 %"));
        output.page(&Page::from(Line::plain("result"))).unwrap();
        assert_eq!(out.text(), "result\n");
        assert_eq!(err.text(), "\r\x1b[K50 %\x1b[J\r\x1b[K");
    }

    #[test]
    fn a_transient_page_is_painted_over_and_gone_before_anything_else_is_written() {
        let (output, out, err) = captured(OutputOptions::default(), true);
        let mut page = Page::from(Line::plain("one"));
        page.push(Line::plain("two"));
        output.status_page(&page);
        output.status_page(&Page::from(Line::plain("three")));
        output.status_page(&page);
        output.page(&Page::from(Line::plain("result"))).unwrap();
        assert_eq!(out.text(), "result\n");
        let frames = [
            "\r\x1b[Kone\n\x1b[Ktwo\x1b[J",
            "\x1b[1A\r\x1b[Kthree\x1b[J",
            "\r\x1b[Kone\n\x1b[Ktwo\x1b[J",
            "\x1b[1A\r\x1b[J",
        ];
        assert_eq!(err.text(), frames.concat());
    }
}
