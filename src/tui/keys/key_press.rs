//! A key press, in the forms that terminals can tell apart.

use std::fmt;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyPress {
    /// A character, as it was typed: `A` is shift and `a`.
    Char(char),
    /// Control and a letter, in lower case.
    Ctrl(char),
    Alt(char),
    /// A function key, from F1 on.
    F(u8),
    Enter,
    AltEnter,
    Tab,
    BackTab,
    Esc,
    Backspace,
    Delete,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
}

impl KeyPress {
    /// The key of a terminal event; `None` for releases, repeats and keys that cannot be bound.
    pub fn from_event(event: &KeyEvent) -> Option<Self> {
        if event.kind == KeyEventKind::Release {
            return None;
        }
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        let alt = event.modifiers.contains(KeyModifiers::ALT);
        Some(match event.code {
            // AltGr is reported as both: it produces characters.
            KeyCode::Char(c) if ctrl && !alt => Self::Ctrl(c.to_ascii_lowercase()),
            KeyCode::Char(c) if alt && !ctrl => Self::Alt(c),
            KeyCode::Char(c) => Self::Char(c),
            KeyCode::F(number) => Self::F(number),
            KeyCode::Enter if alt => Self::AltEnter,
            // Terminals that cannot tell it from Enter send a line feed, or nothing else.
            KeyCode::Enter if ctrl => Self::Ctrl('j'),
            KeyCode::Enter => Self::Enter,
            KeyCode::Tab => Self::Tab,
            KeyCode::BackTab => Self::BackTab,
            KeyCode::Esc => Self::Esc,
            KeyCode::Backspace => Self::Backspace,
            KeyCode::Delete => Self::Delete,
            KeyCode::Up => Self::Up,
            KeyCode::Down => Self::Down,
            KeyCode::Left => Self::Left,
            KeyCode::Right => Self::Right,
            KeyCode::Home => Self::Home,
            KeyCode::End => Self::End,
            KeyCode::PageUp => Self::PageUp,
            KeyCode::PageDown => Self::PageDown,
            _ => return None,
        })
    }
}

impl std::str::FromStr for KeyPress {
    type Err = ();

    /// Reads a key as it is shown (`F5`, `^P`, `Del`), or as it is said: `ctrl-p`, `alt-x`,
    /// `space`, `page-up`. One character stands for itself.
    fn from_str(text: &str) -> Result<Self, ()> {
        let mut letters = text.chars();
        if let (Some(only), None) = (letters.next(), letters.next()) {
            return if only.is_control() { Err(()) } else { Ok(Self::Char(only)) };
        }
        let lower = text.to_ascii_lowercase().replace(['+', '_'], "-");
        let one = |rest: &str| {
            let mut letters = rest.chars();
            letters.next().filter(|_| letters.next().is_none())
        };
        for control in ["^", "ctrl-", "c-"] {
            if let Some(letter) = lower.strip_prefix(control).and_then(one) {
                return Ok(Self::Ctrl(letter));
            }
        }
        for alt in ["alt-", "m-"] {
            // What alt is pressed with may be a capital.
            let rest = lower.strip_prefix(alt).and_then(|rest| text.get(text.len() - rest.len()..));
            if let Some(letter) = rest.and_then(one) {
                return Ok(Self::Alt(letter));
            }
        }
        if let Some(number) = lower.strip_prefix('f').and_then(|number| number.parse().ok()) {
            return if (1..=12).contains(&number) { Ok(Self::F(number)) } else { Err(()) };
        }
        Ok(match lower.as_str() {
            "space" => Self::Char(' '),
            "enter" | "return" => Self::Enter,
            "alt-enter" => Self::AltEnter,
            "tab" => Self::Tab,
            "shift-tab" | "backtab" => Self::BackTab,
            "esc" | "escape" => Self::Esc,
            "backspace" => Self::Backspace,
            "del" | "delete" => Self::Delete,
            "up" => Self::Up,
            "down" => Self::Down,
            "left" => Self::Left,
            "right" => Self::Right,
            "home" => Self::Home,
            "end" => Self::End,
            "pgup" | "page-up" | "pageup" => Self::PageUp,
            "pgdn" | "page-down" | "pagedown" => Self::PageDown,
            _ => return Err(()),
        })
    }
}

impl fmt::Display for KeyPress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Char(' ') => f.write_str("Space"),
            Self::Char(c) => write!(f, "{c}"),
            Self::Ctrl(c) => write!(f, "^{}", c.to_ascii_uppercase()),
            Self::Alt(c) => write!(f, "Alt-{c}"),
            Self::F(number) => write!(f, "F{number}"),
            Self::AltEnter => f.write_str("Alt-Enter"),
            Self::BackTab => f.write_str("Shift-Tab"),
            Self::Delete => f.write_str("Del"),
            Self::PageUp => f.write_str("PgUp"),
            Self::PageDown => f.write_str("PgDn"),
            other => write!(f, "{other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::keys::KEY_TABLES;

    #[test]
    fn every_key_is_read_as_it_is_shown() {
        for binding in KEY_TABLES.iter().flat_map(|place| place.bindings) {
            assert_eq!(binding.key.to_string().parse(), Ok(binding.key));
        }
        assert_eq!("Ctrl+P".parse(), Ok(KeyPress::Ctrl('p')));
        assert_eq!("alt-X".parse(), Ok(KeyPress::Alt('X')));
        for wrong in ["", "f0", "f13", "ctrl-", "ctrl-ab", "hyper-x", "\u{1b}"] {
            assert_eq!(wrong.parse::<KeyPress>(), Err(()), "{wrong:?}");
        }
    }
}
