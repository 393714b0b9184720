//! Writing to the screen: text made safe and styled by its role, panes with their titles, lists, input
//! rows.

use std::ops::Deref;

use ratatui::buffer::Buffer;
use ratatui::layout::Position;
use ratatui::style::{Color, Modifier, Style, Stylize as _};
use ratatui::widgets::{Block, Clear, Padding, Widget};

use crate::present::TableLayout;
use crate::tui::keys::KeyPress;
use crate::tui::layout;
use crate::tui::prelude::*;
use crate::tui::theme::{ColourScheme, Theme};
use crate::tui::views::form::draw::input_spans;
use crate::tui::widgets::filter::FilteredList;

/// What a list says that a filter leaves nothing of.
pub const NO_MATCHES: &str = "No matches. Esc clears the filter.";

/// The rows of a list on the screen, of which the mouse chooses one.
#[derive(Debug, Clone, Copy)]
pub struct ListRows {
    area: Rect,
    first: usize,
    chosen: usize,
    length: usize,
}

impl ListRows {
    /// How many lines below the chosen one the line at this place is, above it when negative; `None`
    /// where there is none.
    pub fn steps_to(self, place: Position) -> Option<isize> {
        let row = self.area.contains(place).then(|| usize::from(place.y - self.area.y))?;
        let at = Some(self.first + row).filter(|at| *at < self.length)?;
        at.checked_signed_diff(self.chosen)
    }
}

pub struct Pen<'a> {
    pub styler: Styler,
    pub buffer: &'a mut Buffer,
    /// Whether what is drawn now has the keys.
    pub focused: bool,
    /// Whether the focused pane fills the screen, which its title says.
    pub zoomed: bool,
    /// Where the cursor blinks, if it does.
    pub cursor: Option<Position>,
    /// The lists that were drawn.
    pub lists: Vec<ListRows>,
}

impl Deref for Pen<'_> {
    type Target = Styler;

    fn deref(&self) -> &Styler {
        &self.styler
    }
}

impl<'a> Pen<'a> {
    pub fn new(buffer: &'a mut Buffer, theme: Theme) -> Self {
        let styler = Styler::new(theme);
        Self { styler, buffer, focused: true, zoomed: false, cursor: None, lists: Vec::new() }
    }

    pub fn put(&mut self, widget: impl Widget, area: Rect) {
        widget.render(area, self.buffer);
    }

    /// Puts the cursor so many cells into a row.
    pub fn set_cursor(&mut self, row: Rect, column: usize) {
        let x = cells(column).min(row.width.saturating_sub(1));
        self.cursor = Some(Position::new(row.x + x, row.y));
    }

    pub fn open(&mut self, area: Rect, title: &str) -> Rect {
        self.open_with(area, title, None)
    }

    /// The frame of what can be shown in several ways: their names stand behind the title, or the one of
    /// the way that is shown where there is no room for all.
    pub fn open_tabs(&mut self, area: Rect, title: &str, tabs: &[(&str, bool)]) -> Rect {
        let inner = self.open(area, title);
        let title = self.whole_title(title);
        let span = |(name, is_shown): &(&str, bool)| match is_shown {
            true => Span::styled(format!("[{name}]"), self.theme.chip(Role::Name)),
            false => self.dim(format!(" {name} ")),
        };
        let taken = text::width(&title) + if self.frames { 4 } else { 1 };
        let room = usize::from(area.width).saturating_sub(taken + 2);
        let all: Line<'_> = tabs.iter().map(span).collect();
        let one: Line<'_> = tabs.iter().filter(|(_, is_shown)| *is_shown).map(span).collect();
        if let Some(line) = [all, one].into_iter().find(|line| line.width() <= room) {
            let x = area.x.saturating_add(cells(taken));
            let width = cells(line.width());
            self.put(line, Rect { x, width, height: 1, ..area });
        }
        inner
    }

    /// A window of this size in the middle, over what is there.
    pub fn open_over(&mut self, area: Rect, (width, height): (u16, u16), title: &str) -> Rect {
        let place = layout::window(area, width, height);
        self.put(Clear, place);
        self.open(place, title)
    }

    /// A window of this size in the middle that asks something, over what is there.
    pub fn ask_over(
        &mut self,
        area: Rect,
        (width, height): (u16, u16),
        title: &str,
        role: Role,
    ) -> Rect {
        let place = layout::window(area, width, height);
        self.put(Clear, place);
        self.window(place, title, role)
    }

    /// The frame of a window that asks something, in the colour of what it asks.
    pub fn window(&mut self, area: Rect, title: &str, role: Role) -> Rect {
        let focused = std::mem::replace(&mut self.focused, true);
        let inner = self.open_with(area, "", Some(&(role, title.to_owned())));
        self.focused = focused;
        if self.theme.palette != ColourScheme::Mono {
            let style = self.theme.style(role);
            for at in area.positions().filter(|at| !inner.contains(*at)) {
                let cell = &mut self.buffer[at];
                // The badge keeps its own.
                if cell.bg == Color::Reset {
                    cell.set_style(style);
                }
            }
        }
        inner
    }

    fn whole_title(&self, title: &str) -> String {
        let zoom = if self.zoomed && self.focused { "  zoomed" } else { "" };
        format!("{title}{zoom}")
    }

    /// The same, with a badge behind the first word of the title.
    pub fn open_with(&mut self, area: Rect, title: &str, chip: Option<&(Role, String)>) -> Rect {
        let title_role = if self.focused { Role::Name } else { Role::Title };
        let title = self.whole_title(title);
        let (first, rest) = match chip {
            Some(_) => title.split_at(title.find(' ').unwrap_or(title.len())),
            None => (&*title, ""),
        };
        let mut title = vec![self.span(title_role, first)];
        if let Some((role, word)) = chip {
            title.extend([self.plain(" "), self.chip(*role, word)]);
        }
        title.push(self.span(Role::Title, rest));
        let meaning = if self.focused { Role::FocusedFrame } else { Role::Frame };
        if !self.frames {
            let [head, inner] = top(area, 1);
            self.put(Line::from(title), head);
            return inner;
        }
        title.insert(0, self.plain(" "));
        title.push(self.plain(" "));
        let block = Block::bordered()
            .border_set(self.theme.border(self.focused))
            .border_style(self.theme.style(meaning))
            .padding(Padding::horizontal(1))
            .title(Line::from(title));
        let inner = block.inner(area);
        self.put(block, area);
        inner
    }

    /// Takes the colours from what is behind a window.
    pub fn dim_all(&mut self) {
        if self.theme.palette == ColourScheme::Mono {
            return;
        }
        let style = self.theme.style(Role::Dim);
        let area = self.buffer.area;
        // The footer has the keys of the window.
        for at in area.positions().filter(|at| at.y + 1 < area.bottom()) {
            let cell = &mut self.buffer[at];
            cell.set_style(Style::reset());
            cell.set_style(style);
        }
    }

    /// How the row of a list is marked: the chosen one says whether the list has the focus.
    pub fn mark(&self, is_chosen: bool) -> Option<Role> {
        let role = if self.focused { Role::Selected } else { Role::SelectedUnfocused };
        is_chosen.then_some(role)
    }

    /// Lets the mouse choose the lines of a list that stand here; says which is the first.
    pub fn selectable(&mut self, area: Rect, list: ListCursor, length: usize) -> usize {
        let first = list.first(usize::from(area.height), length);
        self.lists.push(ListRows { area, first, chosen: list.chosen(), length });
        first
    }

    /// The rows of a list that are seen around the chosen one, which is pointed at and filled to its end.
    pub fn list(
        &mut self,
        area: Rect,
        list: ListCursor,
        length: usize,
        mut row: impl FnMut(usize) -> Line<'static>,
    ) {
        let first = self.selectable(area, list, length);
        for (at, place) in (first..length).zip(area.rows()) {
            let mark = self.mark(at == list.chosen());
            self.put(pointed(self.styler, row(at), mark, place.width), place);
        }
    }

    /// The rows of what a filter shows, each made of the number of its item.
    pub fn filtered(
        &mut self,
        area: Rect,
        list: &FilteredList,
        mut row: impl FnMut(usize) -> Line<'static>,
    ) {
        let found = list.found();
        if found.is_empty() {
            return self.put(self.line(Role::Dim, NO_MATCHES), area);
        }
        self.list(area, list.cursor, found.len(), |at| row(found[at]));
    }

    pub fn input(&mut self, area: Rect, label: &str, input: &TextInput, problem: Option<&str>) {
        let label = self.span(Role::Key, label);
        let before = label.width();
        let room = usize::from(area.width).saturating_sub(before);
        let (written, cursor) = input_spans(self.styler, input, room);
        let mut spans = vec![label];
        spans.extend(written);
        spans.extend(problem.map(|problem| self.span(Role::Error, format!("  {problem}"))));
        self.put(Line::from(spans), area);
        self.set_cursor(area, before + cursor);
    }

    /// The filter of a list, on its first row while there is one; gives the rows below.
    pub fn filter(&mut self, area: Rect, filter: &ListFilter, problem: Option<&str>) -> Rect {
        if !filter.is_shown() || area.is_empty() {
            return area;
        }
        let [row, rows] = top(area, 1);
        if filter.is_typed {
            self.input(row, "/ ", &filter.line, problem);
        } else {
            let mut line = self.line(Role::Dim, format!("/ {}", filter.text()));
            line.spans.extend(problem.map(|why| self.span(Role::Error, format!("  {why}"))));
            self.put(line, row);
        }
        rows
    }

    /// Draws short text from the start and says how much does not fit.
    pub fn paragraph(&mut self, area: Rect, lines: &[Line<'static>]) {
        self.page(lines, &ScrollPosition::default(), area);
    }

    /// Asks for a line of text on the last row; gives the rows above it.
    pub fn input_row(&mut self, area: Rect, label: &str, input: &TextInput) -> Rect {
        if area.is_empty() {
            return area;
        }
        let [rows, row] = bottom(area, 1);
        self.input(row, label, input, None);
        rows
    }
}

/// A row of a list behind the pointer; filled to its end when it is marked.
pub fn pointed(
    styler: Styler,
    mut line: Line<'static>,
    mark: Option<Role>,
    width: u16,
) -> Line<'static> {
    line = styler.fitted(line, usize::from(width).saturating_sub(2));
    let Some(role) = mark else {
        line.spans.insert(0, styler.plain("  "));
        return line;
    };
    line.spans.insert(0, styler.span(Role::Key, styler.theme.pointer()));
    filled(styler, line, role, width)
}

/// A row that is one bar to its end.
pub fn filled(styler: Styler, mut line: Line<'static>, role: Role, width: u16) -> Line<'static> {
    let room = usize::from(width).saturating_sub(line.width());
    line.spans.push(styler.plain(" ".repeat(room)));
    let style = styler.theme.style(role);
    for span in line.spans.iter_mut().filter(|span| span.style.bg.is_none()) {
        span.style = span.style.patch(style);
    }
    line
}

/// The maximum number of lines of a text that are laid out.
const LINES: usize = 5_000;

/// Makes spans and lines that are safe for the terminal and styled by their role.
#[derive(Debug, Clone, Copy)]
pub struct Styler {
    /// The theme, which decides colours and whether only ASCII is written.
    pub theme: Theme,
    /// Whether panes have borders; the smallest terminals have no room for them.
    pub frames: bool,
}

impl Styler {
    pub fn document(self, page: &Page) -> Vec<Line<'static>> {
        page.lines().iter().map(|line| self.styled(line)).collect()
    }

    pub fn styled(self, line: &present::Line) -> Line<'static> {
        line.spans().iter().map(|(role, text)| self.span(*role, text)).collect()
    }

    /// A row of a table. Its cells have their room on the screen also where what is not ASCII is
    /// longer there, and the mark of a cut cell is never longer.
    pub fn row(
        self,
        layout: &TableLayout,
        cells: impl IntoIterator<Item = present::Line>,
    ) -> Line<'static> {
        let shown = |cell: present::Line| {
            let spans = cell.spans().iter();
            spans.fold(present::Line::default(), |line, (role, text)| {
                line.then(*role, self.plain(self.with_short_marks(text)).content)
            })
        };
        self.laid_out(&layout.line(cells.into_iter().map(shown)))
    }

    /// The titles of a table, above rows behind a pointer.
    pub fn titles(self, layout: &TableLayout) -> Line<'static> {
        self.laid_out(&layout.head().indented(2))
    }

    fn laid_out(self, row: &present::Line) -> Line<'static> {
        let spans = row.spans().iter();
        spans.map(|(role, text)| self.span(*role, self.with_short_marks(text))).collect()
    }

    fn with_short_marks(self, text: &str) -> String {
        if self.theme.ascii { text.replace('…', "~") } else { text.to_owned() }
    }

    pub fn new(theme: Theme) -> Self {
        Self { theme, frames: true }
    }

    pub fn span(self, meaning: Role, text: impl AsRef<str>) -> Span<'static> {
        let safe = without_flags(text::safe_line(text.as_ref()).into_owned());
        let safe = if self.theme.ascii { ascii(&safe) } else { safe };
        Span::styled(safe, self.theme.style(meaning))
    }

    pub fn plain(self, text: impl AsRef<str>) -> Span<'static> {
        self.span(Role::Plain, text)
    }

    pub fn dim(self, text: impl AsRef<str>) -> Span<'static> {
        self.span(Role::Dim, text)
    }

    pub fn bold(self, meaning: Role, text: impl AsRef<str>) -> Span<'static> {
        self.span(meaning, text).add_modifier(Modifier::BOLD)
    }

    pub fn chip(self, meaning: Role, text: impl AsRef<str>) -> Span<'static> {
        let span = self.span(meaning, format!(" {} ", text.as_ref()));
        Span::styled(span.content, self.theme.chip(meaning))
    }

    /// A text in exactly so many cells, as it is on the screen: what is not ASCII may be longer there.
    pub fn cell(self, text: &str, cells: usize) -> String {
        let mut shown = self.plain(text).content;
        if text::width(&shown) > cells {
            let mark = text::width(self.theme.more()).saturating_sub(1);
            let cut = text::cut(&shown, cells.saturating_sub(mark)).into_owned();
            shown = self.plain(cut).content;
        }
        let gap = " ".repeat(cells.saturating_sub(text::width(&shown)));
        format!("{shown}{gap}")
    }

    /// A line in at most so many cells: one that is longer ends in a mark.
    pub fn fitted(self, line: Line<'static>, width: usize) -> Line<'static> {
        if line.width() <= width {
            return line;
        }
        let mark = self.dim("…");
        let mut left = width.saturating_sub(mark.width());
        let mut spans = Vec::new();
        for span in line.spans {
            if span.width() > left {
                let longer = format!("{}…", span.content);
                let kept = text::cut(&longer, left + 1).trim_end_matches('…').to_owned();
                spans.push(Span::styled(kept, span.style));
                break;
            }
            left -= span.width();
            spans.push(span);
        }
        spans.push(mark);
        Line::from(spans)
    }

    pub fn line(self, meaning: Role, text: impl AsRef<str>) -> Line<'static> {
        Line::from(self.span(meaning, text))
    }

    /// What a pane of this height says in its upper third that has nothing to show yet: what is missing,
    /// and the keys with which it comes.
    pub fn empty(self, missing: &str, keys: &[(&str, &str)], height: u16) -> Vec<Line<'static>> {
        let height = usize::from(height);
        let needed = keys.len() + 2;
        let widest = keys.iter().map(|(key, _)| text::width(key)).max().unwrap_or(0);
        let key = |(key, does): &(&str, &str)| {
            Line::from(vec![
                self.span(Role::Key, format!("  {key:>widest$}")),
                self.dim(format!("   {does}")),
            ])
        };
        let mut lines = vec![Line::default(); height.saturating_sub(needed) / 3];
        lines.push(self.plain(format!("  {missing}")).into());
        lines.extend((height > needed).then(Line::default));
        lines.extend(keys.iter().map(key));
        lines
    }

    /// A key and what it does, as a window that asks lists them.
    pub fn answer(self, key: KeyPress, width: usize, does: &str) -> Line<'static> {
        let key = format!("{:>width$} ", key.to_string());
        Line::from(vec![self.span(Role::Key, key), self.plain(does)])
    }

    pub fn fact(self, name: &str, value: impl AsRef<str>) -> Line<'static> {
        Line::from(vec![self.span(Role::Dim, format!("{name:<10}")), self.span(Role::Plain, value)])
    }

    pub fn lines(self, meaning: Role, text: &str) -> Vec<Line<'static>> {
        text.lines().take(LINES).map(|line| self.line(meaning, line)).collect()
    }
}

/// Terminals disagree about how wide a flag is, so its two letters are shown instead.
fn without_flags(text: String) -> String {
    const FLAG_LETTERS: std::ops::RangeInclusive<char> = '\u{1f1e6}'..='\u{1f1ff}';
    if !text.contains(|c| FLAG_LETTERS.contains(&c)) {
        return text;
    }
    let letter = |c: char| u32::from(c) - u32::from(*FLAG_LETTERS.start()) + u32::from('A');
    let shown =
        |c| if FLAG_LETTERS.contains(&c) { char::from_u32(letter(c)).unwrap_or(c) } else { c };
    text.chars().map(shown).collect()
}

fn ascii(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '…' => out.push_str("..."),
            '·' | '▃' | '─' => out.push('-'),
            'µ' => out.push('u'),
            '±' => out.push_str("+-"),
            '→' => out.push_str("->"),
            '●' | '▇' => out.push('*'),
            '◐' => out.push('~'),
            '○' => out.push('o'),
            '✗' => out.push('x'),
            '✓' | '▆' | '└' => out.push('+'),
            '›' | '▸' | '▹' => out.push('>'),
            '‹' => out.push('<'),
            '↑' | '▲' => out.push('^'),
            '▾' | '↓' | '▼' => out.push('v'),
            '▁' => out.push('_'),
            '▂' | '░' => out.push('.'),
            '▄' => out.push(':'),
            '▅' => out.push('='),
            '█' | '━' => out.push('#'),
            '│' => out.push('|'),
            c if c.is_ascii() => out.push(c),
            // Writing into a string cannot fail.
            c => drop(write!(out, "<U+{:04X}>", u32::from(c))),
        }
    }
    out
}
