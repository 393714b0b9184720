//! Markdown as lines: what marks a text becomes its look, and its lines stay its lines.

use std::mem::take;
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd};

use crate::present::{Line, Page, Role};

/// The longest text that is laid out, in bytes: it is parsed while a person waits.
pub const LONGEST: usize = 64 * 1024;
/// How many levels of lists and quotes are laid out.
const DEEPEST: usize = 8;
/// The longest beginning of a line that may hold marks of lists and quotes: the parser goes through all of
/// it again on each line that continues them.
const LONGEST_MARKS: usize = 200;
/// The widest column of a table: every row is as wide as its columns.
const WIDEST: usize = 100;
/// How many times the room of the text its tables may take.
const MOST_ROOM: usize = 16;

/// The text laid out. `None` if it is too long or too deep, is not declared to be Markdown and does not look
/// like it, or has something that Markdown does not show, such as definitions of links: then it is shown as
/// it came.
pub fn page(text: &str, is_declared: bool) -> Option<Page> {
    let is_mark = |byte: &u8| b" \t>*+-.)".contains(byte) || byte.is_ascii_digit();
    let is_deep = |line: &str| line.bytes().take_while(is_mark).nth(LONGEST_MARKS).is_some();
    if text.len() > LONGEST || !(is_declared || is_likely(text)) || text.lines().any(is_deep) {
        return None;
    }
    let parser = Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS);
    if parser.reference_definitions().iter().next().is_some() {
        return None;
    }
    let mut layout = Layout { text, ..Layout::default() };
    for (event, range) in parser.into_offset_iter() {
        layout.event(event, &range);
        if layout.is_unfit {
            return None;
        }
    }
    layout.end_line();
    Some(layout.page)
}

/// Whether a text has two kinds of marks, one of which no program or configuration has.
fn is_likely(text: &str) -> bool {
    let is_heading =
        |line: &str| line.trim_start_matches('#').starts_with(' ') && line.starts_with('#');
    let is_rule = |line: &str| {
        line.contains("|-") && line.bytes().all(|byte| matches!(byte, b'|' | b'-' | b':' | b' '))
    };
    let has = |is_one: &dyn Fn(&str) -> bool| text.lines().any(is_one);
    let sure = [
        has(&|line| line.starts_with("```")),
        has(&is_rule),
        text.contains("](http"),
        has(&|line| line.matches("**").count() > 1),
    ];
    let weak = [has(&is_heading), has(&|line| line.starts_with("- ") || line.starts_with("1. "))];
    let count = |kinds: &[bool]| kinds.iter().filter(|kind| **kind).count();
    count(&sure) > 0 && count(&sure) + count(&weak) > 1
}

#[derive(Default)]
struct Layout<'t> {
    text: &'t str,
    page: Page,
    line: Line,
    roles: Vec<Role>,
    /// What stands before the lines of each list item and quote: the first one, and the others.
    margins: Vec<(Option<String>, &'static str)>,
    addresses: Vec<String>,
    is_code: bool,
    /// The rows of the table that is read.
    rows: Vec<Vec<Line>>,
    /// Where the last cell ends in the text.
    cell_end: usize,
    /// Whether something would not be shown, or take too much room.
    is_unfit: bool,
}

impl Layout<'_> {
    fn event(&mut self, event: Event<'_>, range: &Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(tag, range),
            Event::Text(text) if self.is_code => self.lines(Role::JsonText, &text),
            Event::Text(text) => self.push(&text),
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.line.push(Role::JsonText, &text);
            }
            Event::Html(text) | Event::InlineHtml(text) => self.lines(Role::Dim, &text),
            Event::FootnoteReference(name) => self.push(&format!("[^{name}]")),
            Event::SoftBreak | Event::HardBreak => self.end_line(),
            Event::Rule => {
                self.end_line();
                self.line.push(Role::Dim, "─".repeat(20));
                self.end_line();
            }
            Event::TaskListMarker(is_done) => self.push(if is_done { "[x] " } else { "[ ] " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>, range: &Range<usize>) {
        let is_block = matches!(
            tag,
            Tag::Heading { .. }
                | Tag::Paragraph
                | Tag::BlockQuote(_)
                | Tag::CodeBlock(_)
                | Tag::HtmlBlock
                | Tag::List(_)
                | Tag::Table(_)
        );
        if is_block {
            self.end_line();
            if self.margins.is_empty() {
                self.page.blank_line();
            }
        }
        match tag {
            Tag::Heading { .. } | Tag::Strong => self.roles.push(Role::Title),
            Tag::Emphasis => self.roles.push(Role::Example),
            Tag::BlockQuote(_) => self.margins.push((None, "│ ")),
            Tag::CodeBlock(kind) => {
                if let CodeBlockKind::Fenced(name) = kind {
                    self.line.push(Role::Dim, name);
                    self.end_line();
                }
                self.margins.push((None, "│ "));
                self.is_code = true;
            }
            Tag::Item => {
                let item = self.text.get(range.clone()).unwrap_or_default();
                // After a tab it begins with the end of what is before it.
                let item = item.trim_start_matches(|c: char| c == '>' || c.is_whitespace());
                let mark = item.split_whitespace().next().unwrap_or_default();
                self.margins.push((Some(format!("{mark} ")), "  "));
            }
            Tag::Link { link_type, dest_url, title, .. } => {
                let is_shown = matches!(link_type, LinkType::Autolink | LinkType::Email);
                self.link(if is_shown { "" } else { &dest_url }, &title);
            }
            Tag::Image { dest_url, title, .. } => {
                self.line.push(Role::Dim, "!");
                self.link(&dest_url, &title);
            }
            Tag::TableHead => {
                self.rows.push(Vec::new());
                self.roles.push(Role::Title);
            }
            Tag::TableRow => self.rows.push(Vec::new()),
            _ => {}
        }
        self.is_unfit |= self.margins.len() > DEEPEST;
    }

    fn link(&mut self, address: &str, title: &str) {
        self.is_unfit |= !title.is_empty();
        self.addresses.push(address.to_owned());
        self.roles.push(Role::Hint);
    }

    fn end(&mut self, tag: TagEnd, range: &Range<usize>) {
        match tag {
            TagEnd::Heading(_) => {
                self.roles.pop();
                self.end_line();
            }
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_line(),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::TableHead => {
                self.roles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.roles.pop();
                let address = self.addresses.pop().unwrap_or_default();
                if !address.is_empty() {
                    self.line.push(Role::Dim, format!(" ({address})"));
                }
            }
            TagEnd::BlockQuote(_) | TagEnd::CodeBlock | TagEnd::Item => {
                let is_unmarked = matches!(self.margins.last(), Some((Some(_), _)));
                if is_unmarked {
                    // An empty item has its mark.
                    self.flush();
                }
                self.end_line();
                self.margins.pop();
                self.is_code = false;
            }
            TagEnd::TableCell => {
                if let Some(row) = self.rows.last_mut() {
                    row.push(take(&mut self.line));
                }
                self.cell_end = range.end;
            }
            TagEnd::TableRow => {
                // Cells beyond those of the head are left out.
                let rest = self.text.get(self.cell_end..range.end).unwrap_or_default();
                self.is_unfit |= rest.contains(|c: char| c != '|' && !c.is_whitespace());
            }
            TagEnd::Table => self.table(),
            _ => {}
        }
    }

    fn push(&mut self, text: &str) {
        self.line.push(self.roles.last().copied().unwrap_or_default(), text);
    }

    /// Several lines of one role; the last one ends when a break comes.
    fn lines(&mut self, role: Role, text: &str) {
        for line in text.split_inclusive('\n') {
            let shown = line.trim_end_matches('\n');
            self.line.push(role, shown);
            if shown.len() < line.len() {
                // An empty line of code stays.
                self.flush();
            }
        }
    }

    fn end_line(&mut self) {
        if !self.line.is_empty() {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let mut line = Line::default();
        for (first, others) in &mut self.margins {
            match first.take() {
                Some(mark) => line.push(Role::Dim, mark),
                None => line.push(Role::Dim, *others),
            }
        }
        line.append(take(&mut self.line));
        self.page.push(line);
    }

    fn table(&mut self) {
        let rows = take(&mut self.rows);
        let mut widths = vec![0; rows.first().map_or(0, Vec::len)];
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.width().min(WIDEST).max(*width);
            }
        }
        let filled =
            |row: &[Line]| row.iter().rposition(|cell| !cell.is_empty()).map_or(0, |at| at + 1);
        let room = |row: &Vec<Line>| widths.iter().take(filled(row)).sum::<usize>();
        if rows.iter().map(room).sum::<usize>() > MOST_ROOM * self.text.len() {
            self.is_unfit = true;
            return;
        }
        let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
        for (number, row) in rows.into_iter().enumerate() {
            let (filled, mut gap) = (filled(&row), 0);
            for (cell, width) in row.into_iter().zip(&widths).take(filled) {
                self.line.push(Role::Plain, " ".repeat(gap));
                gap = width.saturating_sub(cell.width()) + 2;
                self.line.append(cell);
            }
            self.flush();
            if number == 0 {
                self.line.push(Role::Dim, rule.join("  "));
                self.flush();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::present::page::LineRenderer;
    use insta::assert_snapshot;
    use proptest::prelude::*;

    fn shown(text: &str) -> String {
        LineRenderer::default().page(&page(text, true).unwrap())
    }

    #[test]
    fn marks_become_a_look_and_lines_stay_lines() {
        let text = "# Weather\nToday **is** `sunny`, see [the map](https://a.example/m).\nTomorrow *is not*.\n\n\
            - one\n- two\n  goes on\n  1. first\n  2. second\n- [x] done\n\n> quoted\n> twice\n\n\
            ```sh\nls -l\n\n  # not a heading\n```\n\n\
            | day | degrees |\n|---|---:|\n| Monday | 21 |\n| Tuesday and more | **3** |\n\n---\n<!-- seen -->\n";
        assert_snapshot!(shown(text), @"
        Weather

        Today is sunny, see the map (https://a.example/m).
        Tomorrow is not.

        - one
        - two
          goes on
          1. first
          2. second
        - [x] done

        │ quoted
        │ twice

        sh
        │ ls -l
        │
        │   # not a heading

        day               degrees
        ────────────────  ───────
        Monday            21
        Tuesday and more  3
        ────────────────────

        <!-- seen -->
        ");
    }

    #[test]
    fn nothing_is_taken_for_markdown_that_may_be_something_else() {
        for text in [
            "plain words",
            "# comment\n- item\n- item\nkey: value",
            "#!/bin/sh\n# all files\nls **/x",
            "a | b\n1 | 2",
            "fn main() { **p = 1; **q = 2; }",
        ] {
            assert!(page(text, false).is_none(), "{text}");
        }
        for text in
            ["# Title\nSome **bold** words", "- [a](https://a.example)", "**x**\n```\ny\n```"]
        {
            assert!(page(text, false).is_some(), "{text}");
        }
        assert!(page(&"# a\n".repeat(LONGEST), true).is_none());
    }

    #[test]
    fn what_markdown_does_not_show_is_shown_as_it_came() {
        for text in [
            "# A\n\n[a]: https://a.example 'ignore all that was said'\n",
            "[a]: http://evil.example/longlong (hidden)\n[a] [a] [a]",
            "| a |\n|---|\n| b | left out |\n",
            "| a |\n|---|\n| b | $1000 |\n&#97;&#97;",
            "[a](https://a.example 'a title') &#97;&#97;&#97;",
            "![a](https://a.example 'a title')",
        ] {
            assert!(page(text, true).is_none(), "{text}");
        }
        assert_eq!(shown("![a cat](cat.png) &amp; ~~dog~~"), "!a cat (cat.png) & ~~dog~~\n");
    }

    #[test]
    fn items_have_the_marks_that_they_were_given() {
        assert_eq!(shown("2020. a\n2023. b\n"), "2020. a\n2023. b\n");
        assert_eq!(shown("Answer:\n\n42.\n"), "Answer:\n\n42.\n");
        assert_eq!(shown("* text\n  # head\n  <b>\n"), "* text\n  head\n  <b>\n");
    }

    #[test]
    fn a_table_takes_little_more_room_than_its_text() {
        let wide =
            format!("| {} | b |\n|---|---|\n", "w".repeat(20_000)) + &"| a | b |\n".repeat(3_000);
        let columns = 8_000;
        let (head, rule) = ("ww|".repeat(columns), "-|".repeat(columns));
        let many = format!("|{head}\n|{rule}\n{}", "|a|\n".repeat(4_000));
        let head = format!("|{}", "w".repeat(100)).repeat(20);
        let far = format!("{head}\n{}\n", "|-".repeat(20))
            + &format!("{}x\n", "|".repeat(20)).repeat(2_000);
        assert!(page(&far, true).is_none());
        for text in [wide, many] {
            let page = page(&text, true).unwrap();
            let cells: usize = page.lines().iter().map(Line::width).sum();
            assert!(cells < 20 * text.len(), "{cells}");
        }
    }

    #[test]
    fn what_is_nested_deeply_is_shown_as_it_came() {
        for mark in ["> ", ">", "- ", "1. "] {
            let text = |levels| format!("{}a\n", mark.repeat(levels));
            assert!(page(&text(DEEPEST), true).is_some(), "{mark}");
            assert!(page(&text(DEEPEST + 1), true).is_none(), "{mark}");
            assert!(page(&text(LONGEST / 4), true).is_none(), "{mark}");
        }
    }

    proptest! {
        #[test]
        fn no_word_is_lost(words in prop::collection::vec("[a-z0-9]{1,8}", 1..20), marks in "[#>*`_|:\"'<!~&;.0-9\\-\\[\\]() \t\n]{0,40}") {
            let text = format!("{marks}{}{marks}", words.join(" "));
            let Some(page) = page(&text, true) else { return Ok(()) };
            let all = LineRenderer::default().page(&page);
            for word in words {
                prop_assert!(all.contains(&word), "{word} of {text:?}: {all:?}");
            }
        }

        #[test]
        fn no_text_is_harmful(text in any::<String>()) {
            for line in page(&text, true).iter().flat_map(Page::lines) {
                for (_, span) in line.spans() {
                    prop_assert!(crate::util::text::safe_line(span) == *span, "{span:?}");
                }
            }
        }
    }
}
