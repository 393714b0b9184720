//! What all views share: the screen, the focus, what is said, the calls that were made here.

use std::time::Duration;

use ratatui::layout::Rect;

use super::{Calls, List, PaletteWindow, Pane, View};
use crate::tui::keys::Keymap;
use crate::tui::layout::{self, Room};
use crate::tui::theme::Look;

/// Something that lies over everything else and has all keys.
#[derive(Debug, Clone, PartialEq)]
pub enum Overlay {
    /// What the keys do; scrolled by so many lines.
    Help(usize),
    /// Whether to leave although calls run.
    Leave,
    /// Everything that can be done, to choose from.
    Palette(Box<PaletteWindow>),
    /// A letter on every pane.
    Jump,
    /// The calls that run, to stop one of them.
    Running(List),
}

/// A message on the status line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// What it says.
    pub text: String,
    /// Whether something is wrong.
    pub is_bad: bool,
}

/// What all views share.
#[derive(Debug)]
pub struct Shell {
    /// The terminal's columns and rows.
    pub size: (u16, u16),
    /// The view that is shown.
    pub view: View,
    /// The pane that has the focus.
    pub focus: Pane,
    /// Whether that pane fills the screen.
    pub is_zoomed: bool,
    /// What lies over everything.
    pub overlay: Option<Overlay>,
    /// What is wrong with the settings.
    pub problems: Vec<String>,
    /// The status line.
    pub message: Option<Message>,
    /// The time since the Unix epoch, as far as anybody said.
    pub now: Duration,
    /// How many events were lost because more came than could be taken in.
    pub lost: u64,
    /// How it looks.
    pub look: Look,
    /// Which key does what.
    pub keys: Keymap,
    /// Calls that were made here.
    pub calls: Calls,
}

impl Shell {
    /// That of a console that just opened.
    pub fn new(size: (u16, u16)) -> Self {
        let view = View::default();
        Self {
            size,
            view,
            focus: view.panes()[0],
            is_zoomed: false,
            overlay: None,
            problems: Vec::new(),
            message: None,
            now: Duration::ZERO,
            lost: 0,
            look: Look::default(),
            keys: Keymap::default(),
            calls: Calls::default(),
        }
    }

    /// How much there is room for.
    pub fn room(&self) -> Room {
        Room::of(Rect::new(0, 0, self.size.0, self.size.1))
    }

    /// The panes that are seen, and where.
    pub fn panes_shown(&self) -> Vec<(Pane, Rect)> {
        let room = self.room();
        if room == Room::None {
            return Vec::new();
        }
        let [_, middle, _, _] = layout::frame(Rect::new(0, 0, self.size.0, self.size.1));
        if self.is_zoomed || room <= Room::Compact {
            vec![(self.focus, middle)]
        } else {
            layout::panes(self.view, room, middle)
        }
    }

    /// Where the newest lines of the wire are shown beside what is done.
    pub fn wire_shown(&self) -> Option<Rect> {
        let [_, middle, _, _] = layout::frame(Rect::new(0, 0, self.size.0, self.size.1));
        let (_, below) = layout::wire_below(self.view, self.room(), middle);
        below.filter(|_| !self.is_zoomed)
    }

    /// What is inside the frame of a pane; on a narrow screen only a title takes room.
    pub fn inside(&self, pane: Rect) -> Rect {
        layout::inside(pane, self.room())
    }

    /// Says something.
    pub fn say(&mut self, text: impl Into<String>) {
        self.message = Some(Message { text: text.into(), is_bad: false });
    }

    /// Says that something is wrong.
    pub fn say_bad(&mut self, text: impl Into<String>) {
        self.message = Some(Message { text: text.into(), is_bad: true });
    }

    /// Gives the focus to the next pane, or to one before.
    pub fn step_pane(&mut self, by: isize) {
        let panes = self.view.panes();
        let at = panes.iter().position(|pane| *pane == self.focus).unwrap_or(0);
        let length = isize::try_from(panes.len()).unwrap_or(1);
        let next = (isize::try_from(at).unwrap_or(0) + by).rem_euclid(length);
        let next = usize::try_from(next).ok().and_then(|next| panes.get(next));
        self.focus = next.copied().unwrap_or(panes[0]);
    }
}
