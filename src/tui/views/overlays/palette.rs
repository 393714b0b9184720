//! The command palette: fuzzy search over everything that can be done in the current view.

use std::sync::Arc;

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::Clear;

use crate::tui::keys::action::Action;
use crate::tui::keys::key_press::KeyPress;
use crate::tui::keys::{KeyContext, Keymap};
use crate::tui::layout;
use crate::tui::theme::{ColourScheme, StyleRole};
use crate::tui::views::tools::list::ToolRow;
use crate::tui::widgets::input::LineInput;
use crate::tui::widgets::list::ListCursor;
use crate::tui::widgets::pane::{self, Styler};
use crate::util::text;

/// Something that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaletteCommand {
    Tool(String),
    /// An action, as if its key were pressed.
    Action(Action),
    Colours(ColourScheme),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaletteEntry {
    pub command: PaletteCommand,
    /// The key of the command in this context, if it has one.
    pub key: Option<KeyPress>,
    /// The name in `console.yaml`.
    pub name: String,
    /// The description, as in the help.
    pub about: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PaletteWindow {
    /// The search text.
    pub line: LineInput,
    /// The position of the selected match.
    pub list: ListCursor,
    entries: Vec<PaletteEntry>,
    found: Vec<usize>,
}

impl PaletteWindow {
    pub fn of(keys: &Keymap, places: &[KeyContext], tools: &[Arc<ToolRow>]) -> Self {
        let mut entries: Vec<PaletteEntry> = Vec::new();
        for binding in places.iter().flat_map(|place| keys.bindings(*place)) {
            let command = PaletteCommand::Action(binding.action);
            let is_there = entries.iter().any(|entry| entry.command == command);
            if binding.about.is_empty() || binding.action == Action::Palette || is_there {
                continue;
            }
            entries.push(PaletteEntry {
                command,
                // What this key does here may be something nearer.
                key: keys.key_of(binding.action, places),
                name: binding.action.name(),
                about: binding.about.to_owned(),
            });
        }
        for palette in ColourScheme::ALL {
            entries.push(PaletteEntry {
                command: PaletteCommand::Colours(palette),
                key: None,
                name: format!("theme-{}", palette.name()),
                about: format!("use the {} colours", palette.name()),
            });
        }
        entries.extend(tools.iter().map(|row| PaletteEntry {
            command: PaletteCommand::Tool(row.name.clone()),
            key: None,
            name: row.name.clone(),
            about: row.tool.title.clone().unwrap_or_else(|| "fill in and call".to_owned()),
        }));
        let found = (0..entries.len()).collect();
        Self { line: LineInput::default(), list: ListCursor::default(), entries, found }
    }

    /// Searches again after the text has changed.
    pub fn refilter(&mut self) {
        let pattern = Pattern::parse(self.line.text(), CaseMatching::Smart, Normalization::Smart);
        let mut matcher = Matcher::new(Config::DEFAULT);
        let mut letters = Vec::new();
        let mut scored: Vec<(u32, usize)> = Vec::new();
        for (at, entry) in self.entries.iter().enumerate() {
            let mut score =
                |text: &str| pattern.score(Utf32Str::new(text, &mut letters), &mut matcher);
            // The name counts more than its description.
            let name = score(&entry.name).map(|score| score * 2);
            if let Some(score) = name.or_else(|| score(&entry.about)) {
                scored.push((score, at));
            }
        }
        scored.sort_by_key(|(score, at)| (std::cmp::Reverse(*score), *at));
        self.found = scored.into_iter().map(|(_, at)| at).collect();
        self.list.choose(0, self.found.len());
    }

    /// The number of matching commands.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Whether no command matches.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The matching commands from this one on.
    pub fn from(&self, first: usize) -> impl Iterator<Item = &PaletteEntry> + '_ {
        let found = self.found.get(first..).unwrap_or_default();
        found.iter().filter_map(|at| self.entries.get(*at))
    }

    /// The chosen command; `None` when none matches.
    pub fn chosen(&self) -> Option<&PaletteEntry> {
        self.from(self.list.chosen()).next()
    }

    /// Moves the cursor by this many lines; negative moves up.
    pub fn step(&mut self, by: isize) {
        let length = self.found.len();
        self.list.step(by, length);
    }
}

pub fn draw(frame: &mut Frame<'_>, styler: &Styler<'_>, palette: &PaletteWindow, area: Rect) {
    let place = layout::window(area, 78, area.height.saturating_sub(4).clamp(5, 22));
    frame.render_widget(Clear, place);
    let title = format!("Commands ({})", palette.len());
    let inner = pane::open(frame, styler, place, &title, true);
    let [line, rows] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(inner);
    let (before, behind) = palette.line.split();
    let spans = [("> ", StyleRole::Key), (before, StyleRole::Plain), (behind, StyleRole::Plain)];
    let spans: Vec<_> = spans.into_iter().map(|(text, how)| styler.span(how, text)).collect();
    let at: usize = spans.iter().take(2).map(ratatui::text::Span::width).sum();
    frame.render_widget(Line::from(spans), line);
    let x = line.x + u16::try_from(at).unwrap_or(0).min(line.width.saturating_sub(1));
    frame.set_cursor_position((x, line.y));
    if palette.is_empty() {
        let text = "No matching command. Esc closes.";
        return frame.render_widget(styler.line(StyleRole::Dim, text), rows);
    }
    let height = usize::from(rows.height);
    let first = palette.list.first(height, palette.len());
    for (number, entry) in palette.from(first).take(height).enumerate() {
        let y = rows.y + u16::try_from(number).unwrap_or(0);
        let chosen = first + number == palette.list.chosen();
        let pointer = if chosen { styler.theme.pointer() } else { "  " };
        let key = entry.key.map(|key| key.to_string()).unwrap_or_default();
        let name = text::cut(&entry.name, 20).into_owned();
        let pad = " ".repeat(22_usize.saturating_sub(text::width(&name)));
        let meaning = |other| if chosen { StyleRole::Selected } else { other };
        let line = Line::from(vec![
            styler.span(meaning(StyleRole::Key), format!("{pointer}{key:<10}")),
            styler.span(meaning(StyleRole::Name), format!("{name}{pad}")),
            styler.span(meaning(StyleRole::Plain), &entry.about),
        ]);
        frame.render_widget(line, Rect { y, height: 1, ..rows });
    }
}
