//! The servers, and how they are.

mod drift;
mod past;

#[cfg(test)]
pub(in crate::tui) mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{List, Pane, Shell, Stage};
use crate::catalogue::Catalogue as Listed;
use crate::model::event::LOG_LEVELS;
use crate::model::{Event, Fault, ServerState, ServerStatus, Source, ToolDefinition};
use crate::tui::event::servers::Wish;
use crate::tui::event::{Effect, Errand};
use crate::tui::keys::{Action, When};
pub use drift::{Advertised, Line as DriftLine};
pub use past::Past;

/// How often it is looked how they are, while they are shown. Nobody is asked for that.
const LOOK_EVERY: Duration = Duration::from_secs(2);

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
    /// What of the chosen one is shown.
    pub facet: Facet,
    pasts: BTreeMap<String, Past>,
    advertised: BTreeMap<String, Advertised>,
    looked: Duration,
}

/// What of a server is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Facet {
    /// How it is.
    #[default]
    Health,
    /// What it logged and wrote to its standard error.
    Log,
    /// What is declared of its tools against what it advertises.
    Drift,
}

impl Stage for Servers {
    fn act(&mut self, action: Action, shell: &mut Shell) -> Option<Vec<Effect>> {
        if action == Action::Back && self.facet != Facet::Health && !shell.is_zoomed {
            self.turn_to(Facet::Health);
            return Some(Vec::new());
        }
        let name = self.chosen()?.name.clone();
        Some(match action {
            Action::Open if shell.focus == Pane::Health => trace(name),
            Action::Open | Action::Connect | Action::Refresh => {
                shell.say(format!("asking {name}"));
                vec![Effect::CheckServer(name.clone()), Effect::ListServer(name)]
            }
            Action::Restart => {
                shell.say(format!("starting {name} again"));
                vec![Effect::Servers(Wish::Restart(name))]
            }
            Action::Stop => {
                shell.say(format!("ending {name}; whoever asks for it next starts it again"));
                vec![Effect::Servers(Wish::Stop(name))]
            }
            Action::Level => vec![self.next_level(name)],
            Action::Log => self.facet(Facet::Log),
            Action::Diff => self.facet(Facet::Drift),
            Action::ShowTools => vec![Effect::Go(Errand::ShowTools(name))],
            Action::ShowTrace => trace(name),
            Action::Copy => {
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

    fn enter(&mut self, shell: &mut Shell) -> Vec<Effect> {
        self.looked = shell.now;
        vec![Effect::LookAtServers]
    }

    fn tick(&mut self, shell: &mut Shell) -> Vec<Effect> {
        if shell.now.saturating_sub(self.looked) < LOOK_EVERY {
            return Vec::new();
        }
        self.looked = shell.now;
        vec![Effect::LookAtServers]
    }

    fn is_moving(&self) -> bool {
        true
    }

    fn point(&mut self, pane: Pane, row: usize, height: usize) {
        if pane == Pane::Servers {
            let length = self.rows.len();
            self.list.choose(self.list.first(height, length) + row, length);
        }
    }
}

fn trace(server: String) -> Vec<Effect> {
    vec![Effect::Go(Errand::ShowTrace(server))]
}

impl Servers {
    /// Takes in what is known of some servers.
    pub fn take(&mut self, statuses: Vec<ServerStatus>) {
        for status in statuses {
            self.past_mut(&status.name).ping(status.ping);
            match self.rows.iter_mut().find(|row| row.name == status.name) {
                Some(row) => *row = status,
                None => self.rows.push(status),
            }
        }
    }

    /// The servers are those of another host now, of which nothing is known yet.
    pub fn forget(&mut self) {
        self.rows.clear();
        self.faults.clear();
        self.advertised.clear();
    }

    /// Takes in lists of tools: what is declared, or what these servers advertise.
    pub fn listed(&mut self, servers: &[String], catalogue: &Listed) {
        for listing in &catalogue.servers {
            let server = &listing.name;
            let own = |tool: &&Arc<ToolDefinition>| {
                tool.source == Source::Mcp && tool.name.component() == Some(server)
            };
            let tools: Vec<_> = catalogue.tools.iter().filter(own).cloned().collect();
            let advertised = self.advertised.entry(server.clone()).or_default();
            match &listing.fault {
                _ if servers.is_empty() => advertised.declare(tools),
                Some(fault) => drop(self.faults.insert(server.clone(), fault.clone())),
                None => {
                    self.faults.remove(server);
                    advertised.advertise(tools);
                }
            }
        }
    }

    /// Hears what the host tells.
    pub fn hear(&mut self, event: &Event) {
        match event {
            Event::Server { server, state } => {
                if let Some(row) = self.rows.iter_mut().find(|row| row.name == *server) {
                    row.state = state.clone();
                }
            }
            Event::Log { origin, level, text } if self.is_one(origin) => {
                self.past_mut(origin).logged(&level.0, text);
            }
            _ => {}
        }
    }

    /// Whether there is a server of this name.
    pub fn is_one(&self, name: &str) -> bool {
        self.rows.iter().any(|row| row.name == *name)
    }

    /// The chosen one.
    pub fn chosen(&self) -> Option<&ServerStatus> {
        self.rows.get(self.list.chosen())
    }

    /// What was seen of a server.
    pub fn past(&self, server: &str) -> Option<&Past> {
        self.pasts.get(server)
    }

    /// What is declared of a server's tools, and what it advertises.
    pub fn advertised(&self, server: &str) -> Option<&Advertised> {
        self.advertised.get(server)
    }

    /// Why a server is out of service, if it is.
    pub fn fault<'a>(&'a self, server: &'a ServerStatus) -> Option<&'a Fault> {
        match &server.state {
            ServerState::Failed(fault) | ServerState::Untrusted(fault) => Some(fault),
            _ => self.faults.get(&server.name),
        }
    }

    /// Whether some are being started.
    pub fn are_starting(&self) -> bool {
        self.rows.iter().any(|row| matches!(row.state, ServerState::Starting))
    }

    /// How many are ready.
    pub fn ready(&self) -> usize {
        self.rows.iter().filter(|row| matches!(row.state, ServerState::Ready)).count()
    }

    fn past_mut(&mut self, server: &str) -> &mut Past {
        self.pasts.entry(server.to_owned()).or_default()
    }

    /// Shows this of the chosen one, or its health again.
    fn facet(&mut self, facet: Facet) -> Vec<Effect> {
        self.turn_to(if self.facet == facet { Facet::Health } else { facet });
        Vec::new()
    }

    fn turn_to(&mut self, facet: Facet) {
        (self.facet, self.scroll) = (facet, 0);
    }

    fn next_level(&mut self, server: String) -> Effect {
        let past = self.past_mut(&server);
        let at = past.level.and_then(|level| LOG_LEVELS.iter().position(|l| *l == level));
        let level = LOG_LEVELS[at.map_or(0, |at| at + 1) % LOG_LEVELS.len()];
        past.level = Some(level);
        Effect::Servers(Wish::LogLevel { server, level })
    }
}
