//! The servers, and how they are.

use std::collections::BTreeMap;

use super::List;
use crate::model::{Event, Fault, ServerState, ServerStatus};

/// The servers.
#[derive(Debug, Default)]
pub struct Servers {
    /// What is known of each, in the order of the files.
    pub rows: Vec<ServerStatus>,
    /// The chosen one.
    pub list: List,
    /// Why the list of a server's tools did not come.
    pub faults: BTreeMap<String, Fault>,
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
