//! A source excerpt: the line of a file, with a caret under the column.

use unicode_width::UnicodeWidthChar as _;

use crate::model::SourceLocation;
use crate::present::{Line, Role};
use crate::util::text;

const TAB: usize = 4;
const MAX_CELLS: usize = 100;

/// `file:line:column`, without the parts that are unknown.
pub fn location(place: &SourceLocation) -> String {
    let file = place.file.display();
    match (place.line, place.column) {
        (0, _) => file.to_string(),
        (line, 0) => format!("{file}:{line}"),
        (line, column) => format!("{file}:{line}:{column}"),
    }
}

/// The line and the caret below it; empty if the text is unknown.
pub fn excerpt(place: &SourceLocation) -> Vec<Line> {
    if place.line == 0 || place.text.trim().is_empty() {
        return Vec::new();
    }
    let before = place.column.saturating_sub(1) as usize;
    let (head, tail) = split_at_char(&place.text, before);
    let (mut head, tail) = (show(head), show(tail));
    // Far to the right: omit the start of the line rather than the position.
    let excess = (text::width(&head) + 20).saturating_sub(MAX_CELLS);
    if excess > 0 {
        head = format!("…{}", drop_cells(&head, excess + 1));
    }
    let number = place.line.to_string();
    let margin = " ".repeat(number.len());
    let caret = " ".repeat(text::width(&head));
    let mut lines = vec![
        Line::styled(Role::Dim, format!("{number} │ "))
            .then(Role::Plain, format!("{head}{tail}"))
            .truncate(MAX_CELLS),
    ];
    if place.column > 0 {
        lines.push(
            Line::styled(Role::Dim, format!("{margin} │ "))
                .then(Role::Plain, caret)
                .then(Role::Error, "^"),
        );
    }
    lines
}

fn split_at_char(text: &str, chars: usize) -> (&str, &str) {
    let at = text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    text.split_at(at)
}

/// The text as it will appear on the screen: tabs become blanks, everything else is sanitised.
fn show(text: &str) -> String {
    text::safe_line(&text.replace('\t', &" ".repeat(TAB))).into_owned()
}

fn drop_cells(text: &str, cells: usize) -> String {
    let mut dropped = 0;
    text.chars()
        .skip_while(|c| {
            let drop = dropped < cells;
            dropped += c.width().unwrap_or(0);
            drop
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use insta::assert_snapshot;

    use super::*;
    use crate::present::{Page, page::LineRenderer};

    fn shown(text: &str, column: u32) -> String {
        let place = SourceLocation {
            file: Arc::new(PathBuf::from("tools.yaml")),
            line: 12,
            column,
            text: Arc::from(text),
        };
        let mut page = Page::default();
        page.push(Line::plain(location(&place)));
        for line in excerpt(&place) {
            page.push(line);
        }
        LineRenderer::default().page(&page)
    }

    #[test]
    fn the_caret_stands_under_the_column() {
        assert_snapshot!(shown("  - nam: calculator", 5), @r"
        tools.yaml:12:5
        12 │   - nam: calculator
           │     ^
        ");
    }

    #[test]
    fn tabs_and_wide_characters_keep_the_caret_in_place() {
        assert_snapshot!(shown("\t日本: x", 5), @r"
        tools.yaml:12:5
        12 │     日本: x
           │          ^
        ");
    }

    #[test]
    fn controls_are_shown_and_counted() {
        assert_snapshot!(shown("a\u{1b}b: x", 3), @r"
        tools.yaml:12:3
        12 │ a␛b: x
           │   ^
        ");
    }

    #[test]
    fn a_spot_far_to_the_right_stays_visible() {
        let text = format!("{}: bad", "k".repeat(300));
        let shown = shown(&text, 303);
        let caret = shown.lines().last().unwrap();
        let spot = text::width(caret) - 1;
        let line = shown.lines().nth(1).unwrap();
        assert_eq!(line.chars().nth(spot), Some('b'), "{shown}");
    }

    #[test]
    fn an_unknown_line_shows_nothing() {
        let place =
            SourceLocation { file: Arc::default(), line: 0, column: 0, text: Arc::from("") };
        assert!(excerpt(&place).is_empty());
    }
}
