//! The one door to stdout and stderr.
//!
//! Owns: both streams, what is known about the terminal behind each, and what a failed write
//! means. Results go to stdout, everything else to stderr. Never does: format (see `page`), or let
//! text through that did not pass a [`Page`], the JSON or YAML writer, or the sanitiser.
//!
//! A stdout that was closed before the start (`>&-`) cannot be told from `/dev/null`: Rust's
//! runtime opens `/dev/null` in its place before `main`, exactly as a parent does that wants no
//! output. To look earlier takes a constructor, which is unsafe code; so such a run ends as one
//! whose output nobody reads. A stdout that is full is noticed.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write};
use std::sync::{Mutex, PoisonError, RwLock};

use serde::Serialize;

use super::page::{Line, Page, Palette};
use super::settings::{self, ColourChoice, Format};
use super::{fault, json, yaml};
use crate::audit::Masker;
use crate::config::environment::Environment;
use crate::model::Fault;
use crate::util::text;

/// Why a command ended early.
#[derive(Debug)]
pub enum Stop {
    /// It failed.
    Fault(Fault),
    /// Whoever read stdout has seen enough; this is no failure.
    ReaderGone,
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// What was said on the command line about output.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wishes {
    /// `--color`.
    pub colour: ColourChoice,
    /// `--ascii`.
    pub ascii: bool,
    /// `--plain`: no colour, no repainting, no cutting to the width of the terminal.
    pub plain: bool,
    /// `-q`.
    pub quiet: bool,
    /// How often `-v` was given.
    pub verbose: u8,
    /// Whether faults are written as JSON.
    pub json: bool,
}

/// Both streams.
pub struct Door {
    out: Stream,
    err: Stream,
    wishes: Wishes,
    /// Whether stderr can repaint a line.
    repaints: bool,
    /// Whether stdout can repaint a page.
    out_repaints: bool,
    /// Takes values that must not be shown out of whatever is written, as soon as they are known.
    masker: RwLock<Masker>,
}

struct Stream {
    state: Mutex<State>,
    terminal: bool,
    width: Option<usize>,
    palette: Palette,
}

struct State {
    sink: Box<dyn Write + Send>,
    /// What stands on the line of the cursor.
    line: OpenLine,
}

/// What has to be done before something else is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum OpenLine {
    /// Nothing stands there.
    #[default]
    Empty,
    /// Lines that will be repainted, so many above the one of the cursor: they are removed.
    Transient { above: usize },
    /// A question whose answer did not come: it is left.
    Question,
}

impl Door {
    /// The door of this process.
    pub fn new(wishes: Wishes, environment: &dyn Environment) -> Self {
        let ascii = wishes.ascii || settings::is_ascii_locale(environment);
        let stream = |sink: Box<dyn Write + Send>, terminal: bool, columns: Option<u16>| {
            let colour =
                !wishes.plain && settings::wants_colour(wishes.colour, terminal, environment);
            Stream {
                state: Mutex::new(State { sink, line: OpenLine::Empty }),
                terminal,
                width: settings::width(terminal && !wishes.plain, columns),
                palette: Palette { colour, ascii },
            }
        };
        let (out, err) = (io::stdout(), io::stderr());
        let columns =
            |size: rustix::io::Result<rustix::termios::Winsize>| size.ok().map(|size| size.ws_col);
        let out_terminal = out.is_terminal();
        let err_terminal = err.is_terminal();
        let out_columns = columns(rustix::termios::tcgetwinsize(&out));
        let err_columns = columns(rustix::termios::tcgetwinsize(&err));
        Self {
            out: stream(Box::new(out), out_terminal, out_columns),
            err: stream(Box::new(err), err_terminal, err_columns),
            wishes,
            out_repaints: out_terminal && !wishes.plain && !settings::is_dumb(environment),
            masker: RwLock::default(),
            repaints: err_terminal && !wishes.plain && !settings::is_dumb(environment),
        }
    }

    /// Takes what `masker` knows out of everything that is written from now on.
    pub fn hide(&self, masker: Masker) {
        *self.masker.write().unwrap_or_else(PoisonError::into_inner) = masker;
    }

    /// What may be written of `bytes`. What is cut or wrapped was masked before; this is for what
    /// nobody thought of: a path in the words of a library, a file named by a variable.
    fn masked<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let masker = self.masker.read().unwrap_or_else(PoisonError::into_inner);
        masker.replaced(bytes).map_or(Cow::Borrowed(bytes), Cow::Owned)
    }

    fn say(&self, bytes: &[u8]) {
        self.err.say(&self.masked(bytes));
    }

    /// The width to lay a page for stdout out for; `None` means no limit.
    pub fn width(&self) -> Option<usize> {
        self.out.width
    }

    /// Whether stdout is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.out.terminal
    }

    /// Whether stderr is a terminal somebody may be looking at.
    pub fn is_watched(&self) -> bool {
        self.err.terminal && !self.wishes.quiet
    }

    /// How often `-v` was given.
    pub fn verbosity(&self) -> u8 {
        self.wishes.verbose
    }

    /// Whether failures are written as JSON, so that nothing else should be said about them.
    pub fn speaks_json(&self) -> bool {
        self.wishes.json
    }

    /// Writes a page to stdout.
    ///
    /// # Errors
    /// When stdout cannot be written.
    pub fn page(&self, page: &Page) -> Result<(), Stop> {
        self.write(self.out.palette.page(page).as_bytes())
    }

    /// Writes a page to stdout over the one before, of which `above` lines stand on the screen;
    /// returns how many stand there now. What does not fit on the screen is left out. A stdout that
    /// cannot repaint gets the pages one below the other.
    ///
    /// # Errors
    /// When stdout cannot be written.
    pub fn repaint(&self, page: &Page, above: usize) -> Result<usize, Stop> {
        if !self.out_repaints {
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
            // Each line is overwritten and only its rest removed: nothing flickers.
            painted.push_str(line);
            painted.push_str("\x1b[K\n");
        }
        painted.push_str("\x1b[J");
        self.write(painted.as_bytes()).map(|()| lines.len())
    }

    /// Writes a value to stdout as JSON or YAML.
    ///
    /// # Errors
    /// When stdout cannot be written.
    pub fn value(&self, format: Format, value: &impl Serialize) -> Result<(), Stop> {
        let text = match format {
            Format::Yaml => yaml::document(&serde_json::to_value(value).unwrap_or_default()),
            _ if self.out.terminal => json::pretty(value) + "\n",
            _ => json::compact(value) + "\n",
        };
        self.write(text.as_bytes())
    }

    /// Writes a value to stdout as one line of JSON, terminal or not.
    ///
    /// # Errors
    /// When stdout cannot be written.
    pub fn line(&self, value: &impl Serialize) -> Result<(), Stop> {
        self.write((json::compact(value) + "\n").as_bytes())
    }

    /// Whether stdout is a pipe or socket whose reader has gone, without writing to it.
    pub fn reader_is_gone(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        if self.out.terminal {
            return false;
        }
        let out = io::stdout();
        // Nothing is asked for: errors are always told.
        let mut watched = [PollFd::new(&out, PollFlags::empty())];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let seen = poll(&mut watched, Some(&at_once));
        seen.is_ok() && watched.iter().any(|fd| fd.revents().contains(PollFlags::ERR))
    }

    /// Writes a result's own bytes to stdout: exactly, unless a terminal would see them.
    ///
    /// # Errors
    /// When stdout cannot be written.
    pub fn raw(&self, bytes: &[u8]) -> Result<(), Stop> {
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
    pub fn note(&self, line: &Line) {
        if !self.wishes.quiet {
            self.tell(&Page::from(line.clone()));
        }
    }

    /// Writes a warning to stderr, unless `-q` was given.
    pub fn warn(&self, text: &str) {
        self.note(&fault::warning(text));
    }

    /// Writes a fault to stderr, as text or as one line of JSON.
    pub fn fault(&self, fault: &Fault) {
        if self.wishes.json {
            let line = json::compact(&fault::line(fault)) + "\n";
            self.say(line.as_bytes());
        } else {
            self.tell(&fault::page(fault));
        }
    }

    /// Writes a page to stderr, whatever `-q` says.
    pub fn tell(&self, page: &Page) {
        self.say(self.err.palette.page(page).as_bytes());
    }

    /// The width to lay a page for stderr out for; `None` means no limit.
    pub fn talk_width(&self) -> Option<usize> {
        self.err.width
    }

    /// Writes a value to stderr as one line of JSON, whatever `-q` says.
    pub fn tell_value(&self, value: &impl Serialize) {
        self.say((json::compact(value) + "\n").as_bytes());
    }

    /// Shows a line on stderr that the next one replaces; nothing when stderr cannot repaint.
    pub fn transient(&self, line: &Line) {
        self.transient_page(&Page::from(line.clone()));
    }

    /// Shows a page on stderr that the next one replaces, and that is gone before anything else is
    /// written; nothing when stderr cannot repaint. No line is longer than the screen is wide, and
    /// there are fewer than it is high. The terminal is left as it was found: nothing is hidden or
    /// switched that somebody would have to switch back.
    pub fn transient_page(&self, page: &Page) {
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
            shown.map(|line| self.err.palette.line(&line.clone().cut(columns))).collect();
        let mut state = self.err.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut painted = match state.line {
            OpenLine::Question => return,
            OpenLine::Transient { above: above @ 1.. } => format!("\x1b[{above}A"),
            OpenLine::Transient { above: 0 } | OpenLine::Empty => String::new(),
        };
        for (index, line) in lines.iter().enumerate() {
            // Each line is overwritten and only its rest removed: nothing flickers.
            painted.push_str(if index == 0 { "\r\x1b[K" } else { "\n\x1b[K" });
            painted.push_str(line);
        }
        painted.push_str("\x1b[J");
        state.line = OpenLine::Transient { above: lines.len().saturating_sub(1) };
        // Nobody can be told that stderr is broken.
        let painted = self.masked(painted.as_bytes());
        let _unheard = state.sink.write_all(&painted).and_then(|()| state.sink.flush());
    }

    /// Whether lines on stderr can be shown that others replace.
    pub fn can_repaint(&self) -> bool {
        self.repaints && !self.wishes.quiet
    }

    /// Puts a question to `terminal`, which may be another one than stderr.
    ///
    /// # Errors
    /// When the terminal cannot be written; then nobody has seen the question.
    pub fn ask(&self, question: &Page, terminal: &mut dyn Write) -> io::Result<()> {
        self.clear_transient();
        // The answer is typed behind it.
        let text = self.err.palette.page(question);
        let text = format!("{} ", text.trim_end_matches('\n'));
        terminal.write_all(&self.masked(text.as_bytes()))?;
        terminal.flush()?;
        self.err.open(OpenLine::Question);
        Ok(())
    }

    /// Shows a page on `terminal`, which may be another one than stderr.
    ///
    /// # Errors
    /// When the terminal cannot be written.
    pub fn show(&self, page: &Page, terminal: &mut dyn Write) -> io::Result<()> {
        self.clear_transient();
        terminal.write_all(&self.masked(self.err.palette.page(page).as_bytes()))?;
        terminal.flush()
    }

    /// Says that the question was answered with a whole line.
    pub fn answered(&self) {
        self.err.open(OpenLine::Empty);
    }

    /// Removes what [`Door::transient`] and [`Door::transient_page`] showed.
    pub fn clear_transient(&self) {
        self.err.say(b"");
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Stop> {
        self.clear_transient();
        let bytes = &*self.masked(bytes);
        let mut state = self.out.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.sink.write_all(bytes).and_then(|()| state.sink.flush()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Stop::ReaderGone),
            Err(error) => Err(Fault::internal(format!("cannot write to standard output: {error}"))
                .hint("the result is incomplete; is the disk full?")
                .into()),
        }
    }
}

impl Stream {
    fn open(&self, line: OpenLine) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.line = if self.terminal { line } else { OpenLine::Empty };
    }

    fn say(&self, bytes: &[u8]) {
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
            // Nobody can be told that stderr is broken.
            let _unheard = state.sink.write_all(&all).and_then(|()| state.sink.flush());
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::super::page::Label;
    use super::*;

    /// A stream that keeps what was written.
    #[derive(Clone, Default)]
    pub(crate) struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Captured {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A door whose streams are kept in memory.
    pub(crate) fn captured(wishes: Wishes, terminal: bool) -> (Door, Captured, Captured) {
        let (out, err) = (Captured::default(), Captured::default());
        let door = door(Box::new(out.clone()), Box::new(err.clone()), wishes, terminal);
        (door, out, err)
    }

    fn door(
        out: Box<dyn Write + Send>,
        err: Box<dyn Write + Send>,
        wishes: Wishes,
        terminal: bool,
    ) -> Door {
        let stream = |sink| Stream {
            state: Mutex::new(State { sink, line: OpenLine::Empty }),
            terminal,
            width: terminal.then_some(80),
            palette: Palette::default(),
        };
        Door {
            out: stream(out),
            err: stream(err),
            wishes,
            repaints: terminal,
            out_repaints: terminal,
            masker: RwLock::default(),
        }
    }

    #[test]
    fn raw_bytes_are_exact_for_a_pipe_and_safe_for_a_terminal() {
        let (pipe, out, _) = captured(Wishes::default(), false);
        pipe.raw(b"\x1b[2Jx").unwrap();
        assert_eq!(out.text(), "\x1b[2Jx");
        let (terminal, out, _) = captured(Wishes::default(), true);
        terminal.raw(b"\x1b[2Jx\xff").unwrap();
        assert_eq!(out.text(), "␛[2Jx\u{fffd}\n");
    }

    #[test]
    fn json_is_one_line_for_a_pipe() {
        let (pipe, out, _) = captured(Wishes::default(), false);
        pipe.value(Format::Json, &json!({ "a": 1 })).unwrap();
        assert_eq!(out.text(), "{\"a\":1}\n");
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure_and_a_full_disk_is() {
        let page = Page::from(Line::plain("x"));
        let gone = Box::new(Failing(io::ErrorKind::BrokenPipe));
        let full = Box::new(Failing(io::ErrorKind::StorageFull));
        let to = |sink| door(sink, Box::new(io::sink()), Wishes::default(), false).page(&page);
        assert!(matches!(to(gone), Err(Stop::ReaderGone)));
        assert!(matches!(to(full), Err(Stop::Fault(f)) if f.kind().exit_code() == 1));
    }

    #[test]
    fn quiet_silences_talk_but_not_failures() {
        let (door, _, err) = captured(Wishes { quiet: true, ..Wishes::default() }, false);
        door.warn("odd");
        door.note(&Line::plain("23 tools"));
        assert_eq!(err.text(), "");
        door.fault(&Fault::usage("no such tool"));
        assert_eq!(err.text(), "error: no such tool\n");
    }

    #[test]
    fn a_fault_under_json_is_one_line() {
        let (door, _, err) = captured(Wishes { json: true, ..Wishes::default() }, false);
        door.fault(&Fault::usage("no\nsuch tool").detail("a"));
        assert_eq!(err.text().lines().count(), 1);
    }

    #[test]
    fn a_question_that_was_not_answered_keeps_its_line() {
        let (door, _, err) = captured(Wishes::default(), true);
        let mut terminal = Vec::new();
        door.ask(&Page::from(Line::plain("Call it?")), &mut terminal).unwrap();
        door.fault(&Fault::usage("interrupted"));
        assert_eq!(terminal, b"Call it? ");
        assert_eq!(err.text(), "\nerror: interrupted\n");
        let (door, _, err) = captured(Wishes::default(), true);
        door.ask(&Page::default(), &mut terminal).unwrap();
        door.transient(&Line::plain("waiting"));
        assert_eq!(err.text(), "", "painted over a question");
        let (door, _, err) = captured(Wishes::default(), true);
        door.ask(&Page::default(), &mut terminal).unwrap();
        door.answered();
        door.fault(&Fault::usage("refused"));
        assert_eq!(err.text(), "error: refused\n");
    }

    #[test]
    fn a_transient_line_is_gone_before_anything_else_is_written() {
        let (door, out, err) = captured(Wishes::default(), true);
        door.transient(&Line::of(Label::Dim, "50 %"));
        door.page(&Page::from(Line::plain("result"))).unwrap();
        assert_eq!(out.text(), "result\n");
        assert_eq!(err.text(), "\r\x1b[K50 %\x1b[J\r\x1b[K");
    }

    #[test]
    fn a_transient_page_is_painted_over_and_gone_before_anything_else_is_written() {
        let (door, out, err) = captured(Wishes::default(), true);
        let mut page = Page::from(Line::plain("one"));
        page.push(Line::plain("two"));
        door.transient_page(&page);
        door.transient_page(&Page::from(Line::plain("three")));
        door.transient_page(&page);
        door.page(&Page::from(Line::plain("result"))).unwrap();
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
