//! Everything the console knows, as plain data, and what becomes of it.
//!
//! Owns: [`State::update`]: an event in, effects out. Pure: no clock, no input or output, so every
//! behaviour of the console can be tested by telling it what happened.

mod calls;
mod catalogue;
mod form;
mod line;
mod list;
mod servers;
mod update;

#[cfg(test)]
pub(super) mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use ratatui::layout::Rect;

use super::event::{AskId, AskedApproval, Effect};
use super::keys::When;
use super::layout::Room;
pub use calls::{Call, Calls, Outcome};
pub use catalogue::{Catalogue, Query, Row, Sort};
pub use form::{Field, FieldState, Form};
pub use line::Line;
pub use list::List;
pub use servers::Servers;

/// One of the views.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum View {
    /// The catalogue, a tool, its arguments and results.
    #[default]
    Tools,
    /// The servers.
    Servers,
}

impl View {
    /// All of them, in the order of their keys.
    pub const ALL: [Self; 2] = [Self::Tools, Self::Servers];

    /// What it is called.
    pub fn title(self) -> &'static str {
        match self {
            Self::Tools => "Tools",
            Self::Servers => "Servers",
        }
    }

    /// Its panes, in the order in which the focus goes through them.
    pub fn panes(self) -> &'static [Pane] {
        match self {
            Self::Tools => &[Pane::Catalogue, Pane::Detail, Pane::Result],
            Self::Servers => &[Pane::Servers, Pane::Health],
        }
    }
}

/// A part of a view that can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pane {
    /// The list of tools.
    Catalogue,
    /// The chosen tool, or its arguments while they are filled in.
    Detail,
    /// What calls of it gave.
    Result,
    /// The list of servers.
    Servers,
    /// How the chosen server is.
    Health,
}

/// Something that lies over everything else and has all keys.
#[derive(Debug, Clone, PartialEq)]
pub enum Overlay {
    /// What the keys do; scrolled by so many lines.
    Help(usize),
    /// Whether to leave although calls run.
    Leave,
}

/// A message on the status line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// What it says.
    pub text: String,
    /// Whether something is wrong.
    pub is_bad: bool,
}

/// A person is asked whether a call may be made.
#[derive(Debug, Clone)]
pub struct PendingApproval {
    /// To be named in the answer.
    pub id: AskId,
    /// What is asked.
    pub asked: AskedApproval,
    /// Since when; keys that were typed ahead must not answer it.
    pub since: Option<Duration>,
    /// How far the request is scrolled.
    pub scroll: usize,
}

/// Everything the console knows.
#[derive(Debug)]
pub struct State {
    /// The terminal's columns and rows.
    pub size: (u16, u16),
    /// The view that is shown.
    pub view: View,
    /// The pane that has the focus.
    pub focus: Pane,
    /// Whether that pane fills the screen.
    pub is_zoomed: bool,
    /// The tools of all sources.
    pub catalogue: Catalogue,
    /// The servers.
    pub servers: Servers,
    /// The arguments that are being filled in.
    pub form: Option<Form>,
    /// Calls that were made here.
    pub calls: Calls,
    /// How far the detail is scrolled.
    pub detail_scroll: usize,
    /// How far the result is scrolled.
    pub result_scroll: usize,
    /// What lies over everything.
    pub overlay: Option<Overlay>,
    /// Calls that wait for a person, the oldest first.
    pub approvals: VecDeque<PendingApproval>,
    /// The status line.
    pub message: Option<Message>,
    /// The time since the Unix epoch, as far as anybody said.
    pub now: Duration,
}

impl State {
    /// The state of a console that just opened.
    pub fn new(size: (u16, u16)) -> Self {
        Self {
            size,
            view: View::default(),
            focus: Pane::Catalogue,
            is_zoomed: false,
            catalogue: Catalogue::default(),
            servers: Servers::default(),
            form: None,
            calls: Calls::default(),
            detail_scroll: 0,
            result_scroll: 0,
            overlay: None,
            approvals: VecDeque::new(),
            message: None,
            now: Duration::ZERO,
        }
    }

    /// What is wanted first.
    pub fn begin(&self) -> Vec<Effect> {
        vec![Effect::ListDeclared, Effect::LookAtServers]
    }

    /// How much there is room for.
    pub fn room(&self) -> Room {
        Room::of(Rect::new(0, 0, self.size.0, self.size.1))
    }

    /// Whether something on the screen changes by itself.
    pub fn is_moving(&self) -> bool {
        self.calls.running().next().is_some()
            || self.servers.are_starting()
            || !self.approvals.is_empty()
    }

    /// Whether a line of text is being written, so that letters are letters.
    pub fn is_writing(&self) -> bool {
        self.catalogue.is_filtering || self.form.is_some()
    }

    /// Where keys are looked up, the nearest place first.
    pub fn places(&self) -> Vec<When> {
        if !self.approvals.is_empty() {
            return vec![When::Approval, When::Pane];
        }
        if self.overlay.is_some() {
            return vec![When::Overlay, When::Pane, When::Anywhere];
        }
        if self.form.is_some() && self.focus == Pane::Detail {
            return vec![When::Form];
        }
        if self.catalogue.is_filtering {
            return vec![When::Text];
        }
        let own = match self.view {
            View::Tools => When::Tools,
            View::Servers => When::Servers,
        };
        vec![own, When::Pane, When::Anywhere]
    }
}
