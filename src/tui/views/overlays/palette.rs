//! The command palette: fuzzy search over everything that can be done in the current view.

use crate::tui::keys::KeyPress;
use crate::tui::prelude::*;
use crate::tui::theme::ColourScheme;
use crate::tui::widgets::filter::{Fuzzy, Picker};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaletteCommand {
    Tool(String),
    Server(String),
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

pub fn entries(state: &AppState, places: &[KeyContext]) -> Vec<PaletteEntry> {
    let keys = &state.context.keys;
    let mut entries: Vec<PaletteEntry> = Vec::new();
    for binding in places.iter().flat_map(|place| keys.bindings(place)) {
        let command = PaletteCommand::Action(binding.action);
        let is_there = entries.iter().any(|entry| entry.command == command);
        let is_left_out = binding.about.is_empty() || binding.action == Action::Palette;
        if is_left_out || is_there || state.lacks_row(binding) {
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
    entries.extend(state.tools.catalogue.rows.iter().map(|row| PaletteEntry {
        command: PaletteCommand::Tool(row.name.clone()),
        key: None,
        name: row.name.clone(),
        about: row.tool.title.clone().unwrap_or_else(|| "fill in and call".to_owned()),
    }));
    entries.extend(state.servers.rows.iter().map(|server| PaletteEntry {
        command: PaletteCommand::Server(server.name.clone()),
        key: None,
        name: server.name.clone(),
        about: "server: its health, log and trace".to_owned(),
    }));
    entries
}

pub fn search(letters: &str, entries: &[PaletteEntry]) -> Vec<usize> {
    let texts = entries.iter().enumerate();
    let texts = texts.map(|(at, entry)| (at, &*entry.name, Some(entry.about.clone())));
    let mut found = Fuzzy::rank(letters, texts);
    // A tool or a server may be called like a command, which has a key as well.
    let is_whole = |entry: &PaletteEntry| {
        let is_named = matches!(entry.command, PaletteCommand::Tool(_) | PaletteCommand::Server(_));
        is_named && entry.name == letters.trim()
    };
    found.sort_by_key(|at| !is_whole(&entries[*at]));
    found
}

/// The cells of a key.
const KEYS: usize = 10;

pub fn draw(pen: &mut Pen<'_>, palette: &Picker<PaletteEntry>, area: Rect) {
    let size =
        (area.width.saturating_sub(8).clamp(78, 120), area.height.saturating_sub(4).clamp(5, 22));
    let inner = pen.open_over(area, size, &format!("Commands ({})", palette.found().len()));
    let [line, rows] = top(inner, 1);
    pen.input(line, "> ", &palette.list.filter.line, None);
    if palette.found().len() == 0 {
        let text = "No matching command. Esc closes.";
        return pen.put(pen.line(Role::Dim, text), rows);
    }
    let styler = pen.styler;
    let entries: Vec<&PaletteEntry> = palette.found().collect();
    let room = usize::from(rows.width).saturating_sub(2 + KEYS);
    let names = entries.iter().map(|entry| text::width(&entry.name));
    let name = names.max().unwrap_or(0).min(room * 2 / 3);
    pen.list(rows, palette.list.cursor, entries.len(), |at| {
        let entry = entries[at];
        let key = entry.key.map(|key| key.to_string()).unwrap_or_default();
        Line::from(vec![
            styler.span(Role::Key, format!("{key:<KEYS$}")),
            styler.span(Role::Name, styler.cell(&entry.name, name) + "  "),
            styler.plain(styler.cell(&entry.about, room.saturating_sub(name + 2))),
        ])
    });
}
