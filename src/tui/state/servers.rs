//! The servers, and how they are.

use std::collections::BTreeMap;

use super::{List, Pane, Shell, Stage};
use crate::model::{Event, Fault, ServerState, ServerStatus};
use crate::tui::event::{Effect, Errand};
use crate::tui::keys::{Action, When};

/// The servers.
#[derive(Debug, Default)]
pub struct Servers {
    /// What is known of each, in the order of the files.
    pub rows: Vec<ServerStatus>,
    /// The chosen one.
    pub list: List,
    /// Why the list of a server's tools did not come.
    pub faults: BTreeMap<String, Fault>,
    /// How far the health is scrolled.
    pub scroll: usize,
}

impl Stage for Servers {
    fn act(&mut self, action: Action, shell: &mut Shell) -> Option<Vec<Effect>> {
        let name = self.chosen().map(|row| row.name.clone());
        Some(match (action, name) {
            (Action::Connect | Action::Refresh, Some(name)) => {
                shell.say(format!("asking {name}"));
                vec![Effect::CheckServer(name.clone()), Effect::ListServer(name)]
            }
            (Action::ShowTools, Some(name)) => vec![Effect::Go(Errand::ShowTools(name))],
            (Action::Copy, Some(name)) => {
                shell.say("copied");
                vec![Effect::Copy(name)]
            }
            _ => return None,
        })
    }

    fn places(&self, _focus: Pane) -> Vec<When> {
        vec![When::Servers, When::Pane, When::Anywhere]
    }

    fn scroll(&mut self, focus: Pane, by: isize) {
        if focus == Pane::Servers {
            let length = self.rows.len();
            self.list.step(by, length);
            self.scroll = 0;
        } else {
            self.scroll = self.scroll.saturating_add_signed(by);
        }
    }

    fn point(&mut self, pane: Pane, row: usize, height: usize) {
        if pane == Pane::Servers {
            let length = self.rows.len();
            self.list.choose(self.list.first(height, length) + row, length);
        }
    }
}

impl Servers {
    /// Takes in what is known of some servers.
    pub fn take(&mut self, statuses: Vec<ServerStatus>) {
        for status in statuses {
            match self.rows.iter_mut().find(|row| row.name == status.name) {
                Some(row) => *row = status,
                None => self.rows.push(status),
            }
        }
    }

    /// Hears what the host tells.
    pub fn hear(&mut self, event: &Event) {
        if let Event::Server { server, state } = event
            && let Some(row) = self.rows.iter_mut().find(|row| row.name == *server)
        {
            row.state = state.clone();
        }
    }

    /// The chosen one.
    pub fn chosen(&self) -> Option<&ServerStatus> {
        self.rows.get(self.list.chosen())
    }

    /// Whether some are being started.
    pub fn are_starting(&self) -> bool {
        self.rows.iter().any(|row| matches!(row.state, ServerState::Starting))
    }

    /// How many are ready.
    pub fn ready(&self) -> usize {
        self.rows.iter().filter(|row| matches!(row.state, ServerState::Ready)).count()
    }
}
