//! The command palette: fuzzy search over everything that can be done in the current view.

use std::sync::Arc;

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use crate::tui::keys::{KeyPress, Keymap};
use crate::tui::prelude::*;
use crate::tui::theme::ColourScheme;
use crate::tui::views::tools::list::ToolRow;
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

pub fn draw(pen: &mut Pen<'_>, palette: &PaletteWindow, area: Rect) {
    let size = (78, area.height.saturating_sub(4).clamp(5, 22));
    let inner = pen.open_over(area, size, &format!("Commands ({})", palette.len()));
    let [line, rows] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(inner);
    pen.input(line, "> ", &palette.line, None);
    if palette.is_empty() {
        let text = "No matching command. Esc closes.";
        return pen.put(pen.line(Role::Dim, text), rows);
    }
    let styler = pen.styler;
    pen.list(rows, palette.list, palette.len(), |at| {
        let Some(entry) = palette.from(at).next() else { return Line::default() };
        let chosen = at == palette.list.chosen();
        let pointer = if chosen { styler.theme.pointer() } else { "  " };
        let key = entry.key.map(|key| key.to_string()).unwrap_or_default();
        let name = text::cut(&entry.name, 20).into_owned();
        let pad = " ".repeat(22_usize.saturating_sub(text::width(&name)));
        let meaning = |other| if chosen { Role::Selected } else { other };
        Line::from(vec![
            styler.span(meaning(Role::Key), format!("{pointer}{key:<10}")),
            styler.span(meaning(Role::Name), format!("{name}{pad}")),
            styler.span(meaning(Role::Plain), &entry.about),
        ])
    });
}
