//! One press of a key, in the few forms that terminals can tell apart.

use std::fmt;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// A press of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// A character, as it was typed: `A` is shift and `a`.
    Char(char),
    /// Control and a letter, in lower case.
    Ctrl(char),
    /// Alt and a character.
    Alt(char),
    /// A function key.
    F(u8),
    /// Enter.
    Enter,
    /// Alt and Enter.
    AltEnter,
    /// Tab.
    Tab,
    /// Shift and Tab.
    BackTab,
    /// Escape.
    Esc,
    /// Backspace.
    Backspace,
    /// Delete.
    Delete,
    /// Up.
    Up,
    /// Down.
    Down,
    /// Left.
    Left,
    /// Right.
    Right,
    /// Home.
    Home,
    /// End.
    End,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
}

impl Key {
    /// What a terminal told; `None` for releases, repeats and keys nothing is bound to.
    pub fn of(event: &KeyEvent) -> Option<Self> {
        if event.kind == KeyEventKind::Release {
            return None;
        }
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        let alt = event.modifiers.contains(KeyModifiers::ALT);
        Some(match event.code {
            // Alt Gr is told as both: it makes characters.
            KeyCode::Char(c) if ctrl && !alt => Self::Ctrl(c.to_ascii_lowercase()),
            KeyCode::Char(c) if alt && !ctrl => Self::Alt(c),
            KeyCode::Char(c) => Self::Char(c),
            KeyCode::F(number) => Self::F(number),
            KeyCode::Enter if alt => Self::AltEnter,
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

impl fmt::Display for Key {
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
