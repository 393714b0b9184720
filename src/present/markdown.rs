//! Markdown as lines: what marks a text becomes its look, and its lines stay its lines.

use std::mem::take;

use pulldown_cmark::{CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd};

use crate::present::{Line, Page, Role};

/// The longest text that is laid out, in bytes.
const LONGEST: usize = 256 * 1024;
/// How many levels of lists and quotes are moved right.
const DEEPEST: usize = 8;

/// The text laid out; `None` if it is not declared to be Markdown and does not look like it, or is too long.
pub fn page(text: &str, is_declared: bool) -> Option<Page> {
    if text.len() > LONGEST || !(is_declared || is_likely(text)) {
        return None;
    }
    let mut layout = Layout::default();
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    for event in Parser::new_ext(text, options) {
        layout.event(event);
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
struct Layout {
    page: Page,
    line: Line,
    roles: Vec<Role>,
    /// What stands before the lines of each list item and quote: the first one, and the others.
    margins: Vec<(Option<String>, &'static str)>,
    /// The next number of each list; `None` counts none.
    numbers: Vec<Option<u64>>,
    addresses: Vec<String>,
    is_code: bool,
    /// The rows of the table that is read.
    rows: Vec<Vec<Line>>,
}

impl Layout {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.is_code => self.lines(Role::JsonText, &text),
            Event::Text(text) => self.push(&text),
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.line.push(Role::JsonText, &text);
            }
            Event::Html(text) | Event::InlineHtml(text) => self.lines(Role::Dim, &text),
            Event::FootnoteReference(name) => self.push(&format!("[^{name}]")),
            Event::SoftBreak | Event::HardBreak => self.end_line(),
            Event::Rule => {
                self.line.push(Role::Dim, "─".repeat(20));
                self.end_line();
            }
            Event::TaskListMarker(is_done) => self.push(if is_done { "[x] " } else { "[ ] " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let is_block = matches!(
            tag,
            Tag::Heading { .. }
                | Tag::Paragraph
                | Tag::BlockQuote(_)
                | Tag::CodeBlock(_)
                | Tag::List(_)
                | Tag::Table(_)
        );
        if is_block && self.margins.is_empty() {
            self.page.blank_line();
        }
        match tag {
            Tag::Heading { .. } | Tag::Strong => self.roles.push(Role::Title),
            Tag::BlockQuote(_) => {
                self.end_line();
                self.margins.push((None, "│ "));
            }
            Tag::CodeBlock(kind) => {
                self.end_line();
                if let CodeBlockKind::Fenced(name) = kind
                    && !name.is_empty()
                {
                    self.line.push(Role::Dim, name);
                    self.end_line();
                }
                self.margins.push((None, "│ "));
                self.is_code = true;
            }
            Tag::List(first) => {
                self.end_line();
                self.numbers.push(first);
            }
            Tag::Item => {
                let mark = match self.numbers.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "- ".to_owned(),
                };
                self.margins.push((Some(mark), "  "));
            }
            Tag::Emphasis => self.roles.push(Role::Example),
            Tag::Strikethrough => self.roles.push(Role::Dim),
            Tag::Link { link_type, dest_url, .. } => {
                let shows_address = matches!(link_type, LinkType::Autolink | LinkType::Email);
                self.addresses.push(if shows_address {
                    String::new()
                } else {
                    dest_url.to_string()
                });
                self.roles.push(Role::Hint);
            }
            Tag::Image { dest_url, .. } => {
                self.addresses.push(dest_url.to_string());
                self.line.push(Role::Dim, "image ");
                self.roles.push(Role::Hint);
            }
            Tag::TableHead => {
                self.rows.push(Vec::new());
                self.roles.push(Role::Title);
            }
            Tag::TableRow => self.rows.push(Vec::new()),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.roles.pop();
                self.end_line();
            }
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_line(),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::TableHead => {
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
                self.end_line();
                self.margins.pop();
                self.is_code = false;
            }
            TagEnd::List(_) => {
                self.numbers.pop();
            }
            TagEnd::TableCell => {
                let cell = take(&mut self.line);
                if let Some(row) = self.rows.last_mut() {
                    row.push(cell);
                }
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
        for (first, others) in self.margins.iter_mut().take(DEEPEST) {
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
        let columns = rows.first().map_or(0, Vec::len);
        let widths: Vec<usize> = (0..columns)
            .map(|at| rows.iter().filter_map(|row| row.get(at)).map(Line::width).max().unwrap_or(0))
            .collect();
        for (number, row) in rows.into_iter().enumerate() {
            let mut end = 0;
            for (cell, width) in row.into_iter().zip(&widths) {
                self.line.pad_to(end);
                self.line.append(cell);
                end += width + 2;
            }
            self.flush();
            if number == 0 {
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                self.line.push(Role::Dim, rules.join("  "));
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
    fn what_is_nested_deeply_takes_little_room() {
        let text = format!("{}a\n{}", "> ".repeat(10_000), "b\n".repeat(1_000));
        let width = page(&text, true).unwrap().lines().iter().map(Line::width).max();
        assert!(width < Some(100), "{width:?}");
    }

    proptest! {
        #[test]
        fn no_word_is_lost(words in prop::collection::vec("[a-z]{1,8}", 1..20), marks in "[#>*`_|\\-\\[\\]() \n]{0,40}") {
            let text = format!("{marks}{}{marks}", words.join(" "));
            let all = shown(&text);
            for word in words {
                prop_assert!(all.contains(&word), "{word} of {text:?}: {all:?}");
            }
        }

        #[test]
        fn no_text_is_harmful(text in any::<String>()) {
            for line in page(&text, true).unwrap().lines() {
                for (_, span) in line.spans() {
                    prop_assert!(crate::util::text::safe_line(span) == *span, "{span:?}");
                }
            }
        }
    }
}
