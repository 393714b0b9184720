//! The servers view.

pub mod activity;
pub mod draw;
#[cfg(test)]
pub mod tests;

use std::collections::BTreeMap;

use crate::catalogue::Catalogue;
use crate::model::event::LOG_LEVELS;
use crate::model::{HostEvent, ServerState, ServerStatus, ToolDefinition, ToolSource};
use crate::tui::keys::KeyPress::{Char, Enter};
use crate::tui::prelude::*;
use crate::tui::views::servers::activity::{ServerActivity, ServerToolLists};
use crate::tui::widgets::filter::FilteredList;

/// How often the states of the servers are refreshed while they are shown. No server is contacted
/// for that.
const REFRESH_INTERVAL: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub struct ServersView {
    /// What is known of each, in the order of the files.
    pub rows: Vec<ServerStatus>,
    pub list: FilteredList,
    /// Why the list of a server's tools did not come.
    pub errors: BTreeMap<String, Error>,
    pub position: ScrollPosition,
    pub tab: ServerTab,
    pub activity: BTreeMap<String, ServerActivity>,
    pub tool_lists: BTreeMap<String, ServerToolLists>,
    last_refresh: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum ServerTab {
    /// The status as the host reports it.
    #[default]
    Health,
    /// What it logged and wrote to its standard error.
    Log,
    /// What is declared of its tools against what it advertises.
    #[strum(serialize = "declared tools")]
    Drift,
}

impl View for ServersView {
    fn act(&mut self, action: Action, context: &mut AppContext) -> bool {
        if action == Action::Back && self.tab != ServerTab::Health {
            self.set_tab(ServerTab::Health);
            return true;
        }
        let Some(name) = self.chosen().map(|server| server.name.clone()) else { return false };
        match action {
            Action::Open if context.focus == Pane::Health => {
                context.emit(Navigation::ShowTrace(name));
            }
            Action::Open | Action::Connect | Action::Refresh => {
                context.show_status(format!("connecting to {name}…"));
                context.emit(AppEffect::PingServer(name.clone()));
                context.emit(AppEffect::ListServer(name));
            }
            Action::Restart => {
                context.show_status(format!("restarting {name}…"));
                context.emit(restart(name));
            }
            Action::Stop => {
                context.show_status(format!("stopping {name}…"));
                context.emit(stop(name));
            }
            Action::Level => {
                let past = self.past_mut(&name);
                let next = past.level.map_or(LOG_LEVELS[0], |level| after(&LOG_LEVELS, level));
                past.level = Some(next);
                context.emit(set_log_level(name, next));
            }
            Action::Log => self.toggle_tab(ServerTab::Log),
            Action::Diff => self.toggle_tab(ServerTab::Drift),
            Action::ShowTools => context.emit(Navigation::ShowTools(name)),
            Action::ShowTrace => context.emit(Navigation::ShowTrace(name)),
            Action::Copy => context.copy("name", name),
            _ => return false,
        }
        true
    }

    fn filter(&self) -> Option<&ListFilter> {
        Some(&self.list.filter)
    }

    fn filter_mut(&mut self) -> Option<&mut ListFilter> {
        Some(&mut self.list.filter)
    }

    fn is_list_empty(&self) -> bool {
        self.chosen().is_none()
    }

    fn on_text_changed(&mut self, _context: &mut AppContext) {
        self.list.narrow(self.find());
        self.position.reset();
    }

    fn key_contexts(&self, _focus: Pane) -> Vec<KeyContext> {
        vec![&SERVERS, &PANE, &ANYWHERE]
    }

    fn scroll(&mut self, pane: Pane, by: isize, _context: &mut AppContext) {
        if pane == Pane::Servers {
            self.list.step(by);
            self.position.reset();
        } else {
            self.position.scroll(by);
        }
    }

    fn enter(&mut self, context: &mut AppContext) {
        self.last_refresh = context.now;
        context.emit(AppEffect::RefreshServers);
    }

    fn tick(&mut self, context: &mut AppContext) {
        if context.now.saturating_sub(self.last_refresh) >= REFRESH_INTERVAL {
            self.enter(context);
        }
    }

    fn is_animating(&self) -> bool {
        true
    }
}

fn tools_of(server: &str, catalogue: &Catalogue) -> Vec<Arc<ToolDefinition>> {
    let own = |tool: &&Arc<ToolDefinition>| {
        tool.source == ToolSource::Mcp && tool.name.component() == Some(server)
    };
    catalogue.tools.iter().filter(own).cloned().collect()
}

impl ServersView {
    /// Takes in what is known of some servers at `now`, the time since the Unix epoch.
    pub fn update_statuses(&mut self, statuses: Vec<ServerStatus>, now: Duration) {
        let chosen = self.chosen().map(|server| server.name.clone());
        for status in statuses {
            let past = self.past_mut(&status.name);
            past.ping(status.ping);
            past.sample(status.memory, status.cpu_time, now);
            match self.rows.iter_mut().find(|row| row.name == status.name) {
                Some(row) => *row = status,
                None => self.rows.push(status),
            }
        }
        self.show(chosen.as_deref());
    }

    fn find(&self) -> Vec<usize> {
        self.list.filter.find(self.rows.iter().map(|row| row.name.as_str()))
    }

    /// Chooses a server, whatever the filter left out.
    pub fn choose(&mut self, server: &str) {
        self.list.filter.set("");
        self.position.reset();
        self.show(Some(server));
    }

    /// The rows are other ones: what was chosen stays so.
    fn show(&mut self, chosen: Option<&str>) {
        let again = self.rows.iter().position(|row| Some(row.name.as_str()) == chosen);
        self.list.show(self.find(), again);
    }

    /// Drops the servers that are not among these any more, and names them.
    pub fn retain_servers(&mut self, all: &[ServerStatus]) -> Vec<String> {
        let is_there = |name: &str| all.iter().any(|status| status.name == name);
        let chosen = self.chosen().map(|server| server.name.clone());
        let removed = self.rows.extract_if(.., |row| !is_there(&row.name));
        let removed = removed.map(|row| row.name).collect();
        self.show(chosen.as_deref());
        self.errors.retain(|name, _| is_there(name));
        self.tool_lists.retain(|name, _| is_there(name));
        removed
    }

    pub fn clear(&mut self) {
        self.rows.clear();
        self.show(None);
        self.errors.clear();
        self.tool_lists.clear();
    }

    /// Takes in lists of tools: what is declared of all, or what these servers advertise.
    pub fn listed(&mut self, servers: &[String], catalogue: &Catalogue) {
        if servers.is_empty() {
            self.declared(catalogue);
            return;
        }
        for listing in &catalogue.servers {
            let server = &listing.name;
            if let Some(error) = &listing.error {
                self.errors.insert(server.clone(), error.clone());
            } else {
                self.errors.remove(server);
                let tools = tools_of(server, catalogue);
                let lists = self.tool_lists.entry(server.clone()).or_default();
                lists.advertised = Some(tools);
                lists.compare();
            }
        }
    }

    fn declared(&mut self, catalogue: &Catalogue) {
        self.tool_lists.values_mut().for_each(|lists| lists.declared.clear());
        for tool in catalogue.tools.iter().filter(|tool| tool.source == ToolSource::Mcp) {
            if let Some(server) = tool.name.component() {
                let lists = self.tool_lists.entry(server.to_owned()).or_default();
                lists.declared.push(Arc::clone(tool));
            }
        }
        self.tool_lists.values_mut().for_each(ServerToolLists::compare);
    }

    pub fn handle_host_event(&mut self, event: &HostEvent) {
        match event {
            HostEvent::ServerStateChanged { server, state } => {
                if let Some(row) = self.rows.iter_mut().find(|row| row.name == *server) {
                    row.state = state.clone();
                }
            }
            HostEvent::Log { origin, level, text, .. } if self.has_server(origin) => {
                self.past_mut(origin).logged(&level.0, text);
            }
            _ => {}
        }
    }

    pub fn find_by_name(&self, name: &str) -> Option<&ServerStatus> {
        self.rows.iter().find(|row| row.name == name)
    }

    pub fn has_server(&self, name: &str) -> bool {
        self.find_by_name(name).is_some()
    }

    pub fn chosen(&self) -> Option<&ServerStatus> {
        self.rows.get(self.list.chosen()?)
    }

    /// Why a server is out of service, if it is.
    pub fn error<'a>(&'a self, server: &'a ServerStatus) -> Option<&'a Error> {
        match &server.state {
            ServerState::Failed(error) | ServerState::Untrusted(error) => Some(error),
            _ => self.errors.get(&server.name),
        }
    }

    pub fn is_any_starting(&self) -> bool {
        self.rows.iter().any(|row| matches!(row.state, ServerState::Starting))
    }

    pub fn ready(&self) -> usize {
        self.rows.iter().filter(|row| matches!(row.state, ServerState::Ready)).count()
    }

    fn past_mut(&mut self, server: &str) -> &mut ServerActivity {
        self.activity.entry(server.to_owned()).or_default()
    }

    /// Shows this of the chosen one, or its health again.
    fn toggle_tab(&mut self, tab: ServerTab) {
        self.set_tab(if self.tab == tab { ServerTab::Health } else { tab });
    }

    fn set_tab(&mut self, tab: ServerTab) {
        self.tab = tab;
        self.position.reset();
    }
}

#[rustfmt::skip]
pub const SERVERS: KeyTable = KeyTable { name: "servers", title: "Servers", rows: &[
    on_row(&[Enter], Action::Open, "open", "connect; in the details: show the trace"),
    row(&[Char('/')], Action::Filter, "filter", "filter by name: words !word"),
    on_row(&[Char('c'), Char('P')], Action::Connect, "connect", "connect or ping"),
    on_row(&[Char('R')], Action::Restart, "restart", "restart the server"),
    on_row(&[Char('x')], Action::Stop, "stop", "stop the server; the next call starts it"),
    on_row(&[Char('l')], Action::Log, "log", "switch between log and health"),
    on_row(&[Char('d')], Action::Diff, "diff", "compare declared and advertised tools"),
    on_row(&[Char('t')], Action::ShowTools, "tools", "show the tools of this server"),
    on_row(&[Char('T')], Action::ShowTrace, "trace", "show its trace"),
    on_row(&[Char('L')], Action::Level, "", "change the log level"),
    row(&[Char('A')], Action::Attach, "", "use the background host"),
    on_row(&[Char('u')], Action::Refresh, "", "reload its tools"),
] };

pub fn restart(server: String) -> Task {
    let name = ("restart server", server.clone());
    let work = async move |context: TaskContext| context.deps.host.restart_server(&server).await;
    Task::new(name, work, |state, status| {
        // It may be a different program by now: its offerings are listed again.
        if let Ok(ServerStatus { name, state: ServerState::Ready, .. }) = &status {
            state.context.emit(AppEffect::ListServer(name.clone()));
        }
        state.server_changed(status);
    })
}

/// Closes the connection of a server, which ends its process.
pub fn stop(server: String) -> Task {
    let name = ("stop server", server.clone());
    let work = async move |context: TaskContext| context.deps.host.stop_server(&server).await;
    Task::new(name, work, AppState::server_changed)
}

/// Asks a server to log at a level of the MCP specification, such as `warning`.
pub fn set_log_level(server: String, level: &'static str) -> Task {
    let name = ("log level", server.clone(), level);
    Task::message(name, async move |context: TaskContext| {
        let set = context.deps.host.set_log_level(&server, level).await;
        set.map(|()| format!("requested log level {level} from {server}"))
            .map_err(|error| error.to_string())
    })
}

impl AppState {
    fn server_changed(&mut self, status: Result<ServerStatus, Error>) {
        match status {
            Ok(status) => self.update_servers(vec![status]),
            Err(error) => self.context.show_error(error.to_string()),
        }
    }
}
