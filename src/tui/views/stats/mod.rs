//! The statistics view, live.

pub mod draw;
pub mod tasks;
#[cfg(test)]
pub mod tests;

use std::collections::HashSet;

use crate::model::ToolDefinition;
use crate::stats::Usage;
use crate::stats::comparison::ExceededSpeed;
use crate::stats::count::ToolKey;
use crate::stats::summary::{SeriesPoint, UsageOrder, sort};
use crate::tui::context::ShownProjects;
use crate::tui::keys::KeyPress::{Char, Enter};
use crate::tui::prelude::*;
use crate::tui::views::stats::tasks::{StatsSnapshot, StatsViewQuery, StatsWindow};
use crate::tui::views::tools::list::{UsageByName, UsageFigures};
use crate::tui::widgets::filter::FilteredList;

/// How often is looked while the view is shown.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);
/// The rows above and below the chosen one whose timelines are read: more than a screen shows.
const TIMELINE_ROWS: usize = 40;

/// The orders of the rows, with their titles in `Tools by …`.
const ORDERS: [(&str, UsageOrder); 8] = [
    ("calls", UsageOrder::Calls),
    ("errors", UsageOrder::Errors),
    ("p50", UsageOrder::Quantile(0.5)),
    ("p95", UsageOrder::Quantile(0.95)),
    ("p99", UsageOrder::Quantile(0.99)),
    ("mean", UsageOrder::Mean),
    ("last used", UsageOrder::LastUsed),
    ("name", UsageOrder::Name),
];

/// The statistics view: what is read, the sort order and the selection.
#[derive(Debug, Default)]
pub struct StatsView {
    pub window: StatsWindow,
    /// Whether rows are servers instead of tools.
    pub by_server: bool,
    /// Which of the orders the rows are in.
    order: usize,
    /// Whether new statistics are ignored until the person resumes.
    pub is_paused: bool,
    /// Whether the histogram has classes of equal length instead of equal ratio.
    pub has_linear_buckets: bool,
    /// The newest statistics; `None` until the first were read.
    pub snapshot: Option<StatsSnapshot>,
    /// The error of the last read, if it failed.
    pub error: Option<Error>,
    servers: Vec<Usage>,
    pub list: FilteredList,
    pub position: ScrollPosition,
    pub is_querying: bool,
    last_query: Duration,
}

impl View for StatsView {
    fn act(&mut self, action: Action, context: &mut AppContext) -> bool {
        match action {
            Action::Sort => {
                self.order = (self.order + 1) % ORDERS.len();
                self.arrange(self.chosen().map(|usage| usage.tool.clone()));
                context.show_status(format!("sorted by {}", self.order()));
            }
            Action::ChangeFormat => {
                self.by_server = !self.by_server;
                self.list.cursor = ListCursor::default();
                self.arrange(None);
                self.refresh(context);
            }
            Action::Scale => self.has_linear_buckets = !self.has_linear_buckets,
            Action::Window => {
                self.window = self.window.next();
                self.refresh(context);
            }
            Action::AllProjects => {
                context.switch_projects();
                self.refresh(context);
            }
            Action::Reset => {
                self.window = StatsWindow::SinceReset;
                context.show_status("counting from now on");
                self.query(true, context);
            }
            Action::Pause => {
                self.is_paused = !self.is_paused;
                let text = if self.is_paused { "paused; Space resumes" } else { "resumed" };
                context.show_status(text);
                self.enter(context);
            }
            Action::Refresh => self.refresh(context),
            Action::Open => self.open_tool(context),
            Action::Bench => match self.chosen() {
                Some(usage) if !self.by_server => {
                    context.emit(Navigation::Bench(usage.tool.name.clone()));
                }
                _ => context.show_status("choose a tool first; t lists them by tool"),
            },
            Action::ShowHistory => {
                let tool = self.chosen().map(|usage| usage.tool.name.clone());
                if let Some(tool) = tool.filter(|name| !name.is_empty()) {
                    context.emit(Navigation::ShowHistory(tool));
                }
            }
            Action::Copy => {
                let Some(usage) = self.chosen() else { return false };
                let server = usage.tool.server.as_ref().filter(|_| self.by_server);
                context.copy("name", server.unwrap_or(&usage.tool.name).clone());
            }
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
    }

    fn key_contexts(&self, _focus: Pane) -> Vec<KeyContext> {
        vec![&STATS, &PANE, &ANYWHERE]
    }

    fn scroll(&mut self, pane: Pane, by: isize, _context: &mut AppContext) {
        if pane == Pane::Usage {
            self.list.step(by);
            self.position.reset();
        } else {
            self.position.scroll(by);
        }
    }

    fn enter(&mut self, context: &mut AppContext) {
        if !self.is_paused {
            self.refresh(context);
        }
    }

    fn tick(&mut self, context: &mut AppContext) {
        if context.now.saturating_sub(self.last_query) >= REFRESH_INTERVAL && !self.is_paused {
            self.last_query = context.now;
            self.refresh(context);
        }
    }

    fn is_animating(&self) -> bool {
        !self.is_paused
    }
}

impl StatsView {
    /// What the rows are ordered by.
    pub fn order(&self) -> &'static str {
        ORDERS[self.order].0
    }

    /// Reads the statistics, unless a read is in progress.
    pub fn refresh(&mut self, context: &mut AppContext) {
        if !self.is_querying {
            self.query(false, context);
        }
    }

    /// Takes in what was read.
    pub fn loaded(&mut self, snapshot: Result<StatsSnapshot, Error>, context: &mut AppContext) {
        self.is_querying = false;
        let snapshot = match snapshot {
            Ok(snapshot) => snapshot,
            Err(error) => {
                self.error = Some(error);
                return;
            }
        };
        let is_new = self.snapshot.is_none();
        let is_other = (snapshot.window, snapshot.all_projects)
            != (self.window, context.shown_projects == ShownProjects::All);
        let chosen = self.chosen().map(|usage| usage.tool.clone());
        self.error = None;
        self.snapshot = Some(snapshot);
        self.arrange(chosen);
        // What was chosen meanwhile, and the timelines of rows that were not known before.
        if is_other || (is_new && !self.rows().is_empty()) {
            self.refresh(context);
        }
    }

    pub fn rows(&self) -> &[Usage] {
        match &self.snapshot {
            Some(seen) if !self.by_server => &seen.summary.tools,
            _ => &self.servers,
        }
    }

    /// The row under the cursor; `None` when there are no rows.
    pub fn chosen(&self) -> Option<&Usage> {
        self.rows().get(self.list.chosen()?)
    }

    fn find(&self) -> Vec<usize> {
        let names = self.rows().iter().map(|usage| draw::name_of(usage, self.by_server));
        self.list.filter.find(names)
    }

    pub fn usage_of(&self, tool: &ToolDefinition) -> Option<(&Usage, StatsWindow)> {
        let seen = self.snapshot.as_ref()?;
        let usage = seen.summary.tools.iter().find(|usage| usage.tool.is_of(tool))?;
        Some((usage, seen.window))
    }

    /// The figures of all tools that lists show: the 95th percentile of successful calls, and how
    /// many calls failed.
    pub fn usage_figures(&self) -> UsageByName {
        let mut by_name = UsageByName::new();
        for Usage { tool, counts, .. } in self.snapshot.iter().flat_map(|it| &it.summary.tools) {
            let figures = UsageFigures {
                p95: counts.durations.quantile(0.95),
                p50: counts.durations.quantile(0.5),
                calls: counts.calls(),
                failed: counts.failed(),
            };
            by_name.entry(tool.name.clone()).or_default().push((tool.clone(), figures));
        }
        by_name
    }

    /// Whether a tool was slower in the window than it declares to be, and by how much.
    pub fn exceeded_speed_of(&self, tool: &ToolDefinition) -> Option<ExceededSpeed> {
        let (usage, _) = self.usage_of(tool)?;
        ExceededSpeed::of(tool, usage)
    }

    pub fn timeline_of(&self, row: &ToolKey) -> &[SeriesPoint] {
        let series = self.snapshot.iter().flat_map(|seen| &seen.timelines.series);
        let mut own = series.filter(|(tool, _)| tool == row);
        own.next().map_or(&[], |(_, points)| points.as_slice())
    }

    /// Calls a second of a row in the window.
    pub fn rate_of(&self, usage: &Usage) -> Option<f64> {
        let summary = &self.snapshot.as_ref()?.summary;
        let from = summary.from.unwrap_or(Duration::from_millis(usage.period.first));
        let lasted = summary.now.saturating_sub(from).as_secs_f64().max(1.0);
        let calls = float(usage.counts.calls());
        Some(calls / lasted)
    }

    fn query(&mut self, is_reset: bool, context: &mut AppContext) {
        let first = self.list.cursor.chosen().saturating_sub(TIMELINE_ROWS);
        let near = self.list.found().iter().skip(first).take(2 * TIMELINE_ROWS);
        let near = near.map(|at| &self.rows()[*at].tool);
        let timelines_of = if self.by_server {
            let servers: HashSet<Option<&str>> = near.map(|row| row.server.as_deref()).collect();
            let tools = self.snapshot.iter().flat_map(|seen| &seen.summary.tools);
            let own = tools.filter(|usage| servers.contains(&usage.tool.server.as_deref()));
            own.map(|usage| usage.tool.name.clone()).collect()
        } else {
            near.map(|tool| tool.name.clone()).collect()
        };
        let query = StatsViewQuery {
            window: self.window,
            timelines_of,
            by_server: self.by_server,
            all_projects: context.shown_projects == ShownProjects::All,
        };
        self.is_querying = true;
        context.emit(tasks::query(query, is_reset));
    }

    /// Sorts the rows and keeps the selection.
    fn arrange(&mut self, chosen: Option<ToolKey>) {
        let Some(seen) = &mut self.snapshot else { return };
        sort(&mut seen.summary.tools, ORDERS[self.order].1);
        self.servers = if self.by_server { seen.summary.servers() } else { Vec::new() };
        sort(&mut self.servers, ORDERS[self.order].1);
        let again = chosen.and_then(|tool| self.rows().iter().position(|usage| usage.tool == tool));
        self.list.show(self.find(), again);
    }

    fn open_tool(&mut self, context: &mut AppContext) {
        let Some(usage) = self.chosen() else { return };
        match (&usage.tool.server, self.by_server) {
            (Some(server), true) => context.emit(Navigation::ShowTools(server.clone())),
            (None, true) => {
                context.show_status("these tools have no server; t lists them by tool");
            }
            (_, false) => context.emit(Navigation::ShowTool(usage.tool.name.clone())),
        }
    }
}

#[rustfmt::skip]
pub const STATS: KeyTable = KeyTable { name: "stats", title: "Statistics", rows: &[
    row(&[Char('w')], Action::Window, "window", "change the window: 1m 5m 1h session all"),
    row(&[Char('s')], Action::Sort, "sort", "change the sort order"),
    row(&[Char('/')], Action::Filter, "filter", "filter by name: words !word"),
    row(&[Char('t')], Action::ChangeFormat, "by server", "group by tool or by server"),
    on_row(&[Enter], Action::Open, "tool", "show the tool, or the server's tools"),
    on_row(&[Char('b')], Action::Bench, "bench", "benchmark the tool"),
    row(&[Char(' ')], Action::Pause, "pause", "pause or resume"),
    row(&[Char('0')], Action::Reset, "reset", "count from now on; keeps the data"),
    row(&[Char('P')], Action::AllProjects, "", "show calls of all projects or this one"),
    row(&[Char('H')], Action::Scale, "", "switch between linear and log scale"),
    on_row(&[Char('h')], Action::ShowHistory, "", "show the history of the tool"),
    row(&[Char('u'), Char('r')], Action::Refresh, "", "refresh now and clear messages"),
] };
