//! Asking until there is an answer, on one terminal.
//!
//! Owns: what counts as an answer, and that a yes counts only for what was on the screen. What is
//! too long for one screen is cut, says so, and has to be looked at before it can be allowed:
//! nobody can push the telling part out of sight.

use std::fs::File;
use std::io::{self, Read as _};

use rustix::termios::{QueueSelector, tcflush, tcgetwinsize};

use super::Question;
use crate::cli::context::plural;
use crate::cli::output::{Door, Label, Line, Page};

/// The longest answer that is read.
const MAX_ANSWER: usize = 256;
/// How often somebody may answer without deciding anything.
const PATIENCE: usize = 20;
/// The fewest rows that are used of any screen.
const FEWEST_ROWS: usize = 6;

/// How a question ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply {
    /// Yes, to what was shown.
    Yes,
    /// The further answer that a question offers beside yes.
    Author,
    /// No, or nothing that is a yes.
    No,
}

/// What was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Yes,
    Author,
    View,
    No,
}

/// Puts the question and waits for the answer.
///
/// # Errors
/// When the terminal cannot be written: then nobody has seen the question.
pub(super) fn hold(door: &Door, mut terminal: File, question: Question) -> io::Result<Reply> {
    let screen = Screen::of(&terminal);
    let Question { page, whole, words, offers_author } = question;
    let page = screen.broken(page);
    let fits = page.lines().len() + 1 < screen.rows;
    let whole = match whole {
        Some(whole) => Some(screen.broken(whole)),
        None if fits => None,
        None => Some(page.clone()),
    };
    let mut seen = fits;
    let mut shown = if fits { page } else { head(&page, screen.rows.saturating_sub(3)) };
    for _ in 0..PATIENCE {
        shown.push(choices(words, seen, whole.is_some(), offers_author));
        match read(door, &mut terminal, &std::mem::take(&mut shown))? {
            Answer::Yes if seen => return Ok(Reply::Yes),
            Answer::Author if seen && offers_author => return Ok(Reply::Author),
            Answer::Author if !offers_author => return Ok(Reply::No),
            Answer::Yes | Answer::Author => {
                let words = "Not everything was shown yet: v shows it, and then yes counts.";
                shown = Page::from(Line::of(Label::Warning, words));
            }
            Answer::View => {
                if let Some(whole) = &whole {
                    match leaf_through(door, &mut terminal, whole, screen.rows)? {
                        Leafed::ToTheEnd => seen = true,
                        Leafed::PartOfIt => {}
                        Leafed::Gone => return Ok(Reply::No),
                    }
                }
            }
            Answer::No => return Ok(Reply::No),
        }
    }
    Ok(Reply::No)
}

fn choices(words: &str, seen: bool, more: bool, author: bool) -> Line {
    let more = match (seen, more) {
        (false, _) => Some("v: the rest, before y counts"),
        (true, true) => Some("v: everything"),
        (true, false) => None,
    };
    let author = author.then_some("a: yes, as its author");
    let further: Vec<&str> = author.into_iter().chain(more).collect();
    let line = Line::of(Label::Heading, format!("{words} [y/N] "));
    if further.is_empty() {
        return line;
    }
    line.then(Label::Plain, format!("({}) ", further.join(", ")))
}

/// How far somebody looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leafed {
    /// The last line was shown.
    ToTheEnd,
    /// It was left before its end.
    PartOfIt,
    /// The terminal came to its end.
    Gone,
}

/// The first rows of a page that is too long, and how much is missing.
fn head(page: &Page, rows: usize) -> Page {
    let mut head = Page::default();
    for line in page.lines().iter().take(rows) {
        head.push(line.clone());
    }
    let missing = plural(page.lines().len().saturating_sub(rows), "more line", "more lines");
    head.push(Line::of(Label::Warning, format!("… {missing}")));
    head
}

/// Shows a page screen by screen.
fn leaf_through(door: &Door, terminal: &mut File, page: &Page, rows: usize) -> io::Result<Leafed> {
    let each = rows.saturating_sub(1);
    let mut left = page.lines().len();
    let mut wants_end = false;
    for lines in page.lines().chunks(each.max(1)) {
        left = left.saturating_sub(lines.len());
        if wants_end && left > 0 {
            continue;
        }
        let mut screen = Page::default();
        for line in lines {
            screen.push(line.clone());
        }
        if left == 0 {
            door.show(&screen, terminal)?;
            return Ok(Leafed::ToTheEnd);
        }
        let rest = plural(left, "more line", "more lines");
        let words = format!("-- {rest}: Enter for the next, e for the end, q to stop --");
        screen.push(Line::of(Label::Hint, words));
        match line(door, terminal, &screen)? {
            None => return Ok(Leafed::Gone),
            Some(typed) if typed.trim().eq_ignore_ascii_case("q") => return Ok(Leafed::PartOfIt),
            Some(typed) => wants_end = typed.trim().eq_ignore_ascii_case("e"),
        }
    }
    Ok(Leafed::ToTheEnd)
}

fn read(door: &Door, terminal: &mut File, page: &Page) -> io::Result<Answer> {
    Ok(line(door, terminal, page)?.map_or(Answer::No, |typed| understand(&typed)))
}

/// Only a whole, explicit yes counts.
fn understand(typed: &str) -> Answer {
    match typed.trim().to_lowercase().as_str() {
        "y" | "yes" => Answer::Yes,
        "a" | "author" => Answer::Author,
        "v" | "view" => Answer::View,
        _ => Answer::No,
    }
}

/// Shows a page and reads the line typed behind it; `None` at the end of input.
fn line(door: &Door, terminal: &mut File, page: &Page) -> io::Result<Option<String>> {
    // What was typed before the question was shown is no answer to it.
    let _typed_ahead = tcflush(&*terminal, QueueSelector::IFlush);
    door.ask(page, terminal)?;
    let mut typed = Vec::new();
    let mut byte = [0];
    loop {
        // A terminal gives at most one line at a time; what stands behind it stays for the next.
        match terminal.read(&mut byte) {
            Ok(0) => return Ok(None),
            Ok(_) if byte == *b"\n" => break,
            Ok(_) if typed.len() < MAX_ANSWER => typed.push(byte[0]),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Without its line break the line was cut short.
            Err(_) => return Ok(None),
        }
    }
    door.answered();
    Ok(Some(String::from_utf8_lossy(&typed).into_owned()))
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy)]
struct Screen {
    rows: usize,
    columns: usize,
}

impl Screen {
    /// A terminal that does not tell its size is as large as it needs to be.
    fn of(terminal: &File) -> Self {
        let size = tcgetwinsize(terminal).ok();
        let known = |cells: u16| (cells > 0).then_some(usize::from(cells));
        Self {
            rows: size
                .and_then(|size| known(size.ws_row))
                .map_or(usize::MAX, |r| r.max(FEWEST_ROWS)),
            columns: size.and_then(|size| known(size.ws_col)).unwrap_or(0),
        }
    }

    fn broken(self, page: Page) -> Page {
        page.broken(self.columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_explicit_yes_counts() {
        for yes in ["y", "Yes", " YES "] {
            assert_eq!(understand(yes), Answer::Yes, "{yes:?}");
        }
        for no in ["", "n", "yes please", "yy", "ja", "yes\u{1b}[D"] {
            assert_eq!(understand(no), Answer::No, "{no:?}");
        }
        assert_eq!(understand("V"), Answer::View);
    }

    #[test]
    fn a_long_page_says_how_much_is_missing() {
        let mut page = Page::default();
        for n in 0..10 {
            page.push(Line::plain(n.to_string()));
        }
        let head = head(&page, 3);
        assert_eq!(head.lines().len(), 4);
        assert_eq!(head.lines()[3], Line::of(Label::Warning, "… 7 more lines"));
    }
}
