//! The keys, as they are when nobody changed them.

use super::{Action, Key, When};
use crate::tui::state::View;

/// One key in one place.
#[derive(Debug, Clone, Copy)]
pub struct Binding {
    /// Where.
    pub when: When,
    /// Which key.
    pub key: Key,
    /// What it does.
    pub action: Action,
    /// How the footer calls it; without a word it is in the help only.
    pub word: Option<&'static str>,
}

const fn quiet(when: When, key: Key, action: Action) -> Binding {
    Binding { when, key, action, word: None }
}

const fn shown(when: When, key: Key, action: Action, word: &'static str) -> Binding {
    Binding { when, key, action, word: Some(word) }
}

/// All of them; of two for one key in one place the first counts.
pub const TABLE: &[Binding] = &[
    shown(When::Tools, Key::Enter, Action::Fill, "call"),
    shown(When::Tools, Key::Char('/'), Action::Filter, "find"),
    quiet(When::Tools, Key::Char('e'), Action::Fill),
    shown(When::Tools, Key::Char('Y'), Action::CopyCommand, "copy as command"),
    shown(When::Tools, Key::Char('s'), Action::Sort, "sort"),
    shown(When::Tools, Key::Char('r'), Action::Refresh, "list again"),
    shown(When::Servers, Key::Enter, Action::Refresh, "connect, check"),
    quiet(When::Servers, Key::Char('r'), Action::Refresh),
    shown(When::Form, Key::F(5), Action::Run, "run"),
    quiet(When::Form, Key::AltEnter, Action::Run),
    quiet(When::Form, Key::Ctrl('j'), Action::Run),
    quiet(When::Form, Key::Ctrl('r'), Action::Run),
    quiet(When::Form, Key::Enter, Action::NextField),
    quiet(When::Form, Key::Tab, Action::NextField),
    quiet(When::Form, Key::BackTab, Action::PreviousField),
    quiet(When::Form, Key::Down, Action::NextField),
    quiet(When::Form, Key::Up, Action::PreviousField),
    quiet(When::Form, Key::Left, Action::PreviousChoice),
    quiet(When::Form, Key::Right, Action::NextChoice),
    shown(When::Form, Key::Delete, Action::Unset, "unset"),
    shown(When::Form, Key::Ctrl('n'), Action::Null, "null"),
    shown(When::Form, Key::Esc, Action::Back, "back"),
    quiet(When::Text, Key::Enter, Action::Back),
    quiet(When::Text, Key::Esc, Action::Back),
    quiet(When::Text, Key::Down, Action::Down),
    quiet(When::Text, Key::Up, Action::Up),
    shown(When::Approval, Key::Enter, Action::No, "deny"),
    shown(When::Approval, Key::Char('y'), Action::Yes, "allow once"),
    quiet(When::Approval, Key::Char('n'), Action::No),
    quiet(When::Approval, Key::Esc, Action::No),
    shown(When::Overlay, Key::Esc, Action::Back, "close"),
    quiet(When::Overlay, Key::Char('q'), Action::Back),
    quiet(When::Overlay, Key::Char('y'), Action::Yes),
    quiet(When::Overlay, Key::Char('n'), Action::Back),
    quiet(When::Overlay, Key::Char('?'), Action::Back),
    quiet(When::Pane, Key::Char('j'), Action::Down),
    quiet(When::Pane, Key::Down, Action::Down),
    quiet(When::Pane, Key::Char('k'), Action::Up),
    quiet(When::Pane, Key::Up, Action::Up),
    quiet(When::Pane, Key::PageDown, Action::PageDown),
    quiet(When::Pane, Key::PageUp, Action::PageUp),
    quiet(When::Pane, Key::Char('g'), Action::Top),
    quiet(When::Pane, Key::Home, Action::Top),
    quiet(When::Pane, Key::Char('G'), Action::Bottom),
    quiet(When::Pane, Key::End, Action::Bottom),
    shown(When::Anywhere, Key::Tab, Action::NextPane, "pane"),
    quiet(When::Anywhere, Key::BackTab, Action::PreviousPane),
    quiet(When::Anywhere, Key::Char('z'), Action::Zoom),
    shown(When::Anywhere, Key::Char('y'), Action::Copy, "copy"),
    quiet(When::Anywhere, Key::Char('1'), Action::Show(View::Tools)),
    quiet(When::Anywhere, Key::Char('2'), Action::Show(View::Servers)),
    quiet(When::Anywhere, Key::Esc, Action::Back),
    quiet(When::Anywhere, Key::Ctrl('c'), Action::Cancel),
    quiet(When::Anywhere, Key::Ctrl('l'), Action::Redraw),
    quiet(When::Anywhere, Key::Ctrl('z'), Action::Suspend),
    shown(When::Anywhere, Key::Char('?'), Action::Help, "help"),
    shown(When::Anywhere, Key::Char('q'), Action::Quit, "quit"),
];

impl Action {
    /// What it does, for the help.
    pub fn about(self) -> String {
        match self {
            Self::Show(view) => return format!("show {}", view.title().to_lowercase()),
            Self::NextPane => "next pane",
            Self::PreviousPane => "previous pane",
            Self::Zoom => "let the pane fill the screen, or give it back",
            Self::Filter => {
                "find by a few letters; src:NAME kind:NAME approval:yes !word narrow it"
            }
            Self::Sort => "another order",
            Self::Down => "down",
            Self::Up => "up",
            Self::PageDown => "a page down",
            Self::PageUp => "a page up",
            Self::Top => "to the beginning",
            Self::Bottom => "to the end",
            Self::Fill => "fill in the arguments and call",
            Self::Run => "make the call",
            Self::PreviousField => "previous field",
            Self::NextField => "next field",
            Self::PreviousChoice => "previous choice",
            Self::NextChoice => "next choice",
            Self::Unset => "leave the field out",
            Self::Null => "send null for the field",
            Self::Copy => "copy what is shown",
            Self::CopyCommand => "copy the call as a command line",
            Self::Refresh => "ask again",
            Self::Yes => "allow this call, once",
            Self::No => "refuse",
            Self::Help => "what the keys do",
            Self::Back => "close, leave, go back",
            Self::Cancel => "stop the newest call; again, with nothing running: quit",
            Self::Redraw => "draw the screen anew",
            Self::Suspend => "back to the shell for a while (fg returns)",
            Self::Quit => "quit",
        }
        .to_owned()
    }
}

impl When {
    /// What it is called in the help.
    pub fn title(self) -> &'static str {
        match self {
            Self::Anywhere => "anywhere",
            Self::Pane => "in a pane",
            Self::Tools => "in the catalogue",
            Self::Servers => "in the servers",
            Self::Form => "in the arguments",
            Self::Text => "while writing",
            Self::Approval => "asked for approval",
            Self::Overlay => "in a window",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_key_has_two_meanings_in_one_place() {
        let mut seen = HashSet::new();
        for binding in TABLE {
            assert!(seen.insert((binding.when, binding.key)), "{binding:?}");
        }
    }
}
