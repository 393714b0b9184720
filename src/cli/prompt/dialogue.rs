//! Asking a yes/no question on a terminal until it is answered.

use std::fs::File;
use std::io;

use rustix::termios::{QueueSelector, tcflush, tcgetwinsize};
use tokio_util::sync::CancellationToken;

use super::YesNoQuestion;
use super::terminal_session::read_line;
use crate::cli::output::Output;
use crate::present::{Line, Page, Role, plural};

const MAX_ATTEMPTS: usize = 20;
const FEWEST_ROWS: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DialogueReply {
    Yes,
    /// The additional answer that a question offers beside yes.
    Author,
    /// No, or the end of input.
    No,
    /// Nothing that was typed was an answer.
    Unanswered,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DialogueInput {
    Yes,
    Author,
    View,
    No,
    Unclear,
}

pub(super) fn ask(
    output: &Output,
    mut terminal: File,
    question: YesNoQuestion,
) -> io::Result<DialogueReply> {
    let screen = TerminalSize::of(&terminal);
    let YesNoQuestion { page, details: whole, words, offers_author } = question;
    let page = screen.wrap(page);
    let fits = page.lines().len() + 1 < screen.rows;
    let whole = match whole {
        Some(whole) => Some(screen.wrap(whole)),
        None if fits => None,
        None => Some(page.clone()),
    };
    let mut seen = fits;
    let mut shown = if fits { page } else { first_rows(&page, screen.rows.saturating_sub(3)) };
    for _ in 0..MAX_ATTEMPTS {
        shown.push(choices(words, seen, whole.is_some(), offers_author));
        match read_input(output, &mut terminal, &std::mem::take(&mut shown))? {
            DialogueInput::Yes if seen => return Ok(DialogueReply::Yes),
            DialogueInput::Author if seen && offers_author => return Ok(DialogueReply::Author),
            DialogueInput::Unclear => shown = warning("Answer y or n."),
            DialogueInput::Author if !offers_author => shown = warning("Answer y or n."),
            DialogueInput::Yes | DialogueInput::Author => {
                shown = warning("Not everything was shown yet: enter v to see it, then y.");
            }
            DialogueInput::View => {
                if let Some(whole) = &whole {
                    match page_through(output, &mut terminal, whole, screen.rows)? {
                        PagingEnd::Complete => seen = true,
                        PagingEnd::Partial => {}
                        PagingEnd::EndOfInput => return Ok(DialogueReply::No),
                    }
                }
            }
            DialogueInput::No => return Ok(DialogueReply::No),
        }
    }
    Ok(DialogueReply::Unanswered)
}

fn warning(message: &str) -> Page {
    Page::from(Line::styled(Role::Warning, message))
}

fn choices(words: &str, seen: bool, more: bool, author: bool) -> Line {
    let more = match (seen, more) {
        (false, _) => Some("v: the rest, before y"),
        (true, true) => Some("v: everything"),
        (true, false) => None,
    };
    let author = author.then_some("a: yes, as its author");
    let further: Vec<&str> = author.into_iter().chain(more).collect();
    let line = Line::styled(Role::Title, format!("{words} [y/N] "));
    if further.is_empty() {
        return line;
    }
    line.then(Role::Plain, format!("({}) ", further.join(", ")))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PagingEnd {
    /// The last line was shown.
    Complete,
    /// The person stopped before the end.
    Partial,
    EndOfInput,
}

fn first_rows(page: &Page, rows: usize) -> Page {
    let mut head: Page = page.lines().iter().take(rows).cloned().collect();
    let missing = plural(page.lines().len().saturating_sub(rows), "more line", "more lines");
    head.push(Line::styled(Role::Warning, format!("… {missing}")));
    head
}

fn page_through(
    output: &Output,
    terminal: &mut File,
    page: &Page,
    rows: usize,
) -> io::Result<PagingEnd> {
    let each = rows.saturating_sub(1);
    let mut left = page.lines().len();
    let mut wants_end = false;
    for lines in page.lines().chunks(each.max(1)) {
        left = left.saturating_sub(lines.len());
        if wants_end && left > 0 {
            continue;
        }
        let mut screen: Page = lines.iter().cloned().collect();
        if left == 0 {
            output.show(&screen, terminal)?;
            return Ok(PagingEnd::Complete);
        }
        let rest = plural(left, "more line", "more lines");
        let prompt = format!("-- {rest}: Enter for the next, e for the end, q to stop --");
        screen.push(Line::styled(Role::Hint, prompt));
        match line(output, terminal, &screen)? {
            None => return Ok(PagingEnd::EndOfInput),
            Some(typed) if typed.trim().eq_ignore_ascii_case("q") => return Ok(PagingEnd::Partial),
            Some(typed) => wants_end = typed.trim().eq_ignore_ascii_case("e"),
        }
    }
    Ok(PagingEnd::Complete)
}

fn read_input(output: &Output, terminal: &mut File, page: &Page) -> io::Result<DialogueInput> {
    Ok(line(output, terminal, page)?.map_or(DialogueInput::No, |typed| parse_input(&typed)))
}

/// Only a whole, explicit yes counts. What is neither yes nor no decides nothing.
fn parse_input(typed: &str) -> DialogueInput {
    match typed.trim().to_lowercase().as_str() {
        "y" | "yes" => DialogueInput::Yes,
        "a" | "author" => DialogueInput::Author,
        "v" | "view" => DialogueInput::View,
        "" | "n" | "no" => DialogueInput::No,
        _ => DialogueInput::Unclear,
    }
}

/// Shows a page and reads the line typed after it; `None` at the end of input.
fn line(output: &Output, terminal: &mut File, page: &Page) -> io::Result<Option<String>> {
    // Input typed before the question was shown is not an answer to it.
    let _typed_ahead = tcflush(&*terminal, QueueSelector::IFlush);
    output.ask(page, terminal)?;
    // Without its line break, a line was truncated.
    let typed = read_line(terminal, &CancellationToken::new()).unwrap_or_default();
    if typed.is_some() {
        output.question_answered();
    }
    Ok(typed)
}

#[derive(Debug, Clone, Copy)]
struct TerminalSize {
    rows: usize,
    columns: usize,
}

impl TerminalSize {
    /// A terminal that does not report its size is treated as large enough.
    fn of(terminal: &File) -> Self {
        let size = tcgetwinsize(terminal).ok();
        let nonzero = |cells: u16| (cells > 0).then_some(usize::from(cells));
        Self {
            rows: size
                .and_then(|size| nonzero(size.ws_row))
                .map_or(usize::MAX, |r| r.max(FEWEST_ROWS)),
            columns: size.and_then(|size| nonzero(size.ws_col)).unwrap_or(0),
        }
    }

    fn wrap(self, page: Page) -> Page {
        page.wrap(self.columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_explicit_yes_counts() {
        for yes in ["y", "Yes", " YES "] {
            assert_eq!(parse_input(yes), DialogueInput::Yes, "{yes:?}");
        }
        for no in ["", "n", " NO "] {
            assert_eq!(parse_input(no), DialogueInput::No, "{no:?}");
        }
        for unclear in ["maybe", "yes please", "yy", "ja", "yes\u{1b}[D"] {
            assert_eq!(parse_input(unclear), DialogueInput::Unclear, "{unclear:?}");
        }
        assert_eq!(parse_input("V"), DialogueInput::View);
    }

    #[test]
    fn a_long_page_says_how_much_is_missing() {
        let mut page = Page::default();
        for n in 0..10 {
            page.push(Line::plain(n.to_string()));
        }
        let head = first_rows(&page, 3);
        assert_eq!(head.lines().len(), 4);
        assert_eq!(head.lines()[3], Line::styled(Role::Warning, "… 7 more lines"));
    }
}
