//! Everything that can be done here, found by a few letters.
//!
//! Owns: the list, which is made of the map of keys, and the query. Never does: do any of it.

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use super::{Line, List};
use crate::tui::keys::{Action, Key, Keymap, When};
use crate::tui::theme::Palette;

/// Something that can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// What a key does.
    Act(Action),
    /// Other colours.
    Colours(Palette),
}

/// One line of the palette.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What is done.
    pub command: Command,
    /// Its key here, if it has one.
    pub key: Option<Key>,
    /// What it is called in settings.
    pub name: String,
    /// What it does.
    pub about: String,
}

/// The palette, while it is open.
#[derive(Debug, Clone, PartialEq)]
pub struct PaletteWindow {
    /// What is searched for.
    pub line: Line,
    /// The chosen one of those that are found.
    pub list: List,
    entries: Vec<Entry>,
    found: Vec<usize>,
}

impl PaletteWindow {
    /// What can be done in these places, the nearest first.
    pub fn of(keys: &Keymap, places: &[When]) -> Self {
        let mut entries: Vec<Entry> = Vec::new();
        for binding in places.iter().flat_map(|place| keys.bindings(*place)) {
            let command = Command::Act(binding.action);
            let is_there = entries.iter().any(|entry| entry.command == command);
            if binding.about.is_empty() || binding.action == Action::Palette || is_there {
                continue;
            }
            entries.push(Entry {
                command,
                // What this key does here may be something nearer.
                key: keys.key_of(binding.action, places),
                name: binding.action.name(),
                about: binding.about.to_owned(),
            });
        }
        for palette in Palette::ALL {
            entries.push(Entry {
                command: Command::Colours(palette),
                key: None,
                name: format!("theme-{}", palette.name()),
                about: format!("the {} colours, from now on", palette.name()),
            });
        }
        let found = (0..entries.len()).collect();
        Self { line: Line::default(), list: List::default(), entries, found }
    }

    /// The query has changed.
    pub fn refilter(&mut self) {
        let pattern = Pattern::parse(self.line.text(), CaseMatching::Smart, Normalization::Smart);
        let mut matcher = Matcher::new(Config::DEFAULT);
        let mut letters = Vec::new();
        let mut scored: Vec<(u32, usize)> = Vec::new();
        for (at, entry) in self.entries.iter().enumerate() {
            let mut score =
                |text: &str| pattern.score(Utf32Str::new(text, &mut letters), &mut matcher);
            // The name counts more than what is said about it.
            let name = score(&entry.name).map(|score| score * 2);
            if let Some(score) = name.or_else(|| score(&entry.about)) {
                scored.push((score, at));
            }
        }
        scored.sort_by_key(|(score, at)| (std::cmp::Reverse(*score), *at));
        self.found = scored.into_iter().map(|(_, at)| at).collect();
        self.list.choose(0, self.found.len());
    }

    /// How many are found.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Whether nothing is found.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Those that are found, from this one on.
    pub fn from(&self, first: usize) -> impl Iterator<Item = &Entry> + '_ {
        let found = self.found.get(first..).unwrap_or_default();
        found.iter().filter_map(|at| self.entries.get(*at))
    }

    /// The chosen one.
    pub fn chosen(&self) -> Option<&Entry> {
        self.from(self.list.chosen()).next()
    }

    /// So many lines on.
    pub fn step(&mut self, by: isize) {
        let length = self.found.len();
        self.list.step(by, length);
    }
}
