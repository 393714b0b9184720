//! Asking a yes/no question on a terminal until it is answered.

use std::io;

use rustix::termios::tcgetwinsize;

use super::{TerminalSession, YesNoQuestion};
use crate::present::{Line, Page, Role, plural};

const MAX_ATTEMPTS: usize = 20;
const FEWEST_ROWS: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DialogueReply {
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

pub(super) async fn ask(
    session: &TerminalSession,
    question: YesNoQuestion,
) -> io::Result<DialogueReply> {
    let (rows, columns) = size(session);
    let YesNoQuestion { page, details: whole, words, offers_author } = question;
    let page = page.wrap(columns);
    let fits = page.lines().len() + 1 < rows;
    let whole = match whole {
        Some(whole) => Some(whole.wrap(columns)),
        None if fits => None,
        None => Some(page.clone()),
    };
    let mut seen = fits;
    let mut shown = if fits { page } else { first_rows(&page, rows.saturating_sub(3)) };
    for _ in 0..MAX_ATTEMPTS {
        shown.push(choices(words, seen, whole.is_some(), offers_author));
        let Some(typed) = session.ask(std::mem::take(&mut shown)).await? else {
            return Ok(DialogueReply::No);
        };
        match parse_input(&typed) {
            DialogueInput::Yes if seen => return Ok(DialogueReply::Yes),
            DialogueInput::Author if seen && offers_author => return Ok(DialogueReply::Author),
            DialogueInput::Unclear => shown = warning("Answer y or n."),
            DialogueInput::Author if !offers_author => shown = warning("Answer y or n."),
            DialogueInput::Yes | DialogueInput::Author => {
                shown = warning("Not everything was shown yet: enter v to see it, then y.");
            }
            DialogueInput::View => {
                if let Some(whole) = &whole {
                    match page_through(session, whole, rows).await? {
                        Some(is_complete) => seen |= is_complete,
                        None => return Ok(DialogueReply::No),
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

fn first_rows(page: &Page, rows: usize) -> Page {
    let mut head: Page = page.lines().iter().take(rows).cloned().collect();
    let missing = plural(page.lines().len().saturating_sub(rows), "more line", "more lines");
    head.push(Line::styled(Role::Warning, format!("… {missing}")));
    head
}

/// Shows a page screen by screen; returns whether its last line was shown, or `None` at the end of
/// input.
async fn page_through(
    session: &TerminalSession,
    page: &Page,
    rows: usize,
) -> io::Result<Option<bool>> {
    let mut left = page.lines().len();
    let mut wants_end = false;
    for lines in page.lines().chunks(rows.saturating_sub(1).max(1)) {
        left = left.saturating_sub(lines.len());
        if wants_end && left > 0 {
            continue;
        }
        let mut screen: Page = lines.iter().cloned().collect();
        if left == 0 {
            return session.show(&screen).map(|()| Some(true));
        }
        let rest = plural(left, "more line", "more lines");
        let prompt = format!("-- {rest}: Enter for the next, e for the end, q to stop --");
        screen.push(Line::styled(Role::Hint, prompt));
        let Some(typed) = session.ask(screen).await? else { return Ok(None) };
        match typed.trim().to_lowercase().as_str() {
            "q" => return Ok(Some(false)),
            typed => wants_end = typed == "e",
        }
    }
    Ok(Some(true))
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

/// The rows and columns of the terminal. One that does not report its size is large enough.
fn size(session: &TerminalSession) -> (usize, usize) {
    let size = tcgetwinsize(session.terminal()).ok();
    let rows = size.map(|size| usize::from(size.ws_row)).filter(|rows| *rows > 0);
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    (rows.map_or(usize::MAX, |rows| rows.max(FEWEST_ROWS)), columns)
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
