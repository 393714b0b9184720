//! Statistics, live.

use std::collections::HashSet;
use std::time::Duration;

use super::{Line, List, Pane, Shell, Stage};
use crate::bench::spread::{Spread, even, spread};
use crate::model::Fault;
use crate::stats::count::Tool;
use crate::stats::summary::{Order, Point, sort};
use crate::stats::{Usage, export};
use crate::tui::event::stats::{Look, News, Seen, Window, Wish};
use crate::tui::event::{Effect, Errand};
use crate::tui::keys::{Action, When};
use crate::util::json;

/// How often is looked while the view is shown.
const EVERY: Duration = Duration::from_secs(1);
/// Rows above and below the chosen one whose course is looked at: more than a screen has.
const AROUND: usize = 40;
/// Notes that are remembered.
const NOTES: usize = 3;
/// Classes of the histogram.
const CLASSES: usize = 48;

/// What the rows are put in order by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the names are all there is to say")]
pub enum Column {
    #[default]
    Calls,
    Errors,
    P50,
    P95,
    P99,
    Mean,
    Last,
    Name,
}

impl Column {
    const ALL: [Self; 8] = [
        Self::Calls,
        Self::Errors,
        Self::P50,
        Self::P95,
        Self::P99,
        Self::Mean,
        Self::Last,
        Self::Name,
    ];

    /// What it is called.
    pub fn title(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Errors => "errors",
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::Mean => "mean",
            Self::Last => "last used",
            Self::Name => "name",
        }
    }

    fn order(self) -> Order {
        match self {
            Self::Calls => Order::Calls,
            Self::Errors => Order::Errors,
            Self::P50 => Order::Quantile(0.5),
            Self::P95 => Order::Quantile(0.95),
            Self::P99 => Order::Quantile(0.99),
            Self::Mean => Order::Mean,
            Self::Last => Order::Last,
            Self::Name => Order::Name,
        }
    }

    fn next(self) -> Self {
        let at = Self::ALL.iter().position(|column| *column == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }
}

/// Statistics, live.
#[derive(Debug, Default)]
pub struct Stats {
    /// The window of time that is looked at.
    pub window: Window,
    /// One row for each server instead of each tool.
    pub by_server: bool,
    /// The order of the rows.
    pub column: Column,
    /// Whether it holds still.
    pub is_paused: bool,
    /// Whether the histogram has classes of equal length instead of equal ratio.
    pub is_even: bool,
    /// What was seen last.
    pub seen: Option<Seen>,
    /// Why nothing was seen the last time.
    pub fault: Option<Fault>,
    /// What had to be put right, the newest last; said until somebody looks again by hand.
    pub notes: Vec<String>,
    /// The servers, in order, while they are the rows.
    servers: Vec<Usage>,
    /// The chosen one.
    pub list: List,
    /// How its durations are spread.
    pub spread: Option<Spread>,
    /// How far the latency is scrolled.
    pub scroll: usize,
    /// The name of the file to write to, while it is written.
    pub file: Option<Line>,
    is_looking: bool,
    looked: Duration,
}

impl Stage for Stats {
    fn act(&mut self, action: Action, shell: &mut Shell) -> Option<Vec<Effect>> {
        match action {
            Action::Sort => {
                self.column = self.column.next();
                self.arrange(self.chosen().map(|usage| usage.tool.clone()));
                shell.say(format!("sorted by {}", self.column.title()));
            }
            Action::Turn => {
                self.by_server = !self.by_server;
                self.list = List::default();
                self.arrange(None);
                return Some(self.look());
            }
            Action::Scale => {
                self.is_even = !self.is_even;
                self.focus();
            }
            Action::Window => {
                self.window = self.window.next();
                return Some(self.look());
            }
            Action::Reset => {
                self.window = Window::Anew;
                shell.say("counting from now on; nothing was deleted");
                self.is_looking = true;
                return Some(vec![Effect::Stats(Wish::Begin(self.question()))]);
            }
            Action::Pause => {
                self.is_paused = !self.is_paused;
                shell.say(if self.is_paused { "held still; Space goes on" } else { "live again" });
                return Some(if self.is_paused { Vec::new() } else { self.look() });
            }
            Action::Refresh => {
                self.notes.clear();
                return Some(self.look());
            }
            Action::Export => self.file = Some(Line::of("stats.json")),
            Action::Open if self.file.is_some() => return Some(self.exported(shell)),
            Action::Back if self.file.is_some() => self.file = None,
            Action::Open => return Some(self.opened(shell)),
            Action::Bench => return Some(self.benched(shell)),
            Action::ShowHistory => {
                let tool = self.chosen().map(|usage| usage.tool.name.clone());
                let tool = tool.filter(|name| !name.is_empty());
                return Some(
                    tool.map(|tool| Effect::Go(Errand::ShowHistory(tool))).into_iter().collect(),
                );
            }
            Action::Copy => {
                let usage = self.chosen()?;
                let name = if self.by_server { usage.tool.server.clone() } else { None };
                let name = name.unwrap_or_else(|| usage.tool.name.clone());
                shell.say("copied");
                return Some(vec![Effect::Copy(name)]);
            }
            _ => return None,
        }
        Some(Vec::new())
    }

    fn places(&self, _focus: Pane) -> Vec<When> {
        match self.file {
            Some(_) => vec![When::Choosing],
            None => vec![When::Stats, When::Pane, When::Anywhere],
        }
    }

    fn scroll(&mut self, focus: Pane, by: isize) {
        if focus == Pane::Usage {
            self.list.step(by, self.rows().len());
            self.scroll = 0;
            self.focus();
        } else {
            self.scroll = self.scroll.saturating_add_signed(by);
        }
    }

    fn enter(&mut self, _shell: &mut Shell) -> Vec<Effect> {
        if self.is_paused { Vec::new() } else { self.look() }
    }

    fn line(&mut self, _focus: Pane) -> Option<&mut Line> {
        self.file.as_mut()
    }

    fn tick(&mut self, shell: &mut Shell) -> Vec<Effect> {
        if self.is_paused || shell.now.saturating_sub(self.looked) < EVERY {
            return Vec::new();
        }
        self.looked = shell.now;
        self.look()
    }

    fn is_moving(&self) -> bool {
        !self.is_paused
    }
}

impl Stats {
    /// Looks at what was counted, unless somebody does already.
    pub fn look(&mut self) -> Vec<Effect> {
        if self.is_looking {
            return Vec::new();
        }
        self.is_looking = true;
        vec![Effect::Stats(Wish::Look(self.question()))]
    }

    /// Takes in what was seen.
    pub fn take(&mut self, news: News) -> Vec<Effect> {
        self.is_looking = false;
        match news {
            News::Failed(fault) => self.fault = Some(fault),
            News::Seen(seen) => {
                let is_new = self.seen.is_none();
                let other = seen.window != self.window;
                let chosen = self.chosen().map(|usage| usage.tool.clone());
                self.fault = None;
                // Each is told once, and the next look comes in a second.
                self.notes.extend(seen.notes.iter().cloned());
                self.notes.drain(..self.notes.len().saturating_sub(NOTES));
                self.seen = Some(*seen);
                self.arrange(chosen);
                // What was chosen meanwhile, and the courses of rows that were not known before.
                if other || (is_new && !self.rows().is_empty()) {
                    return self.look();
                }
            }
        }
        Vec::new()
    }

    /// The rows, in order.
    pub fn rows(&self) -> &[Usage] {
        match &self.seen {
            Some(seen) if !self.by_server => &seen.summary.tools,
            _ => &self.servers,
        }
    }

    /// The chosen row.
    pub fn chosen(&self) -> Option<&Usage> {
        self.rows().get(self.list.chosen())
    }

    /// What was counted of a tool, and in which window.
    pub fn usage_of(&self, tool: &str) -> Option<(&Usage, Window)> {
        let seen = self.seen.as_ref()?;
        let usage = seen.summary.tools.iter().find(|usage| usage.tool.name == tool)?;
        Some((usage, seen.window))
    }

    /// What happened to a row when.
    pub fn course_of(&self, row: &Tool) -> &[Point] {
        let courses = self.seen.iter().flat_map(|seen| &seen.courses.of);
        let mut own = courses.filter(|(tool, _)| tool == row);
        own.next().map_or(&[], |(_, points)| points.as_slice())
    }

    /// Calls a second of a row in the window.
    pub fn rate_of(&self, usage: &Usage) -> Option<f64> {
        let summary = &self.seen.as_ref()?.summary;
        let from = summary.from.unwrap_or(Duration::from_millis(usage.used.first));
        let lasted = summary.now.saturating_sub(from).as_secs_f64().max(1.0);
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        let calls = usage.counts.calls() as f64;
        Some(calls / lasted)
    }

    fn question(&self) -> Look {
        let first = self.list.chosen().saturating_sub(AROUND);
        let near = self.rows().iter().skip(first).take(2 * AROUND).map(|usage| &usage.tool);
        let courses_of = if self.by_server {
            let servers: HashSet<Option<&str>> = near.map(|row| row.server.as_deref()).collect();
            let tools = self.seen.iter().flat_map(|seen| &seen.summary.tools);
            let own = tools.filter(|usage| servers.contains(&usage.tool.server.as_deref()));
            own.map(|usage| usage.tool.name.clone()).collect()
        } else {
            near.map(|tool| tool.name.clone()).collect()
        };
        Look { window: self.window, courses_of, by_server: self.by_server }
    }

    /// Puts the rows in order; what was chosen stays chosen, wherever it is now.
    fn arrange(&mut self, chosen: Option<Tool>) {
        let Some(seen) = &mut self.seen else { return };
        sort(&mut seen.summary.tools, self.column.order());
        self.servers = if self.by_server { seen.summary.servers() } else { Vec::new() };
        sort(&mut self.servers, self.column.order());
        let again = chosen.and_then(|tool| self.rows().iter().position(|usage| usage.tool == tool));
        let length = self.rows().len();
        self.list.choose(again.unwrap_or(self.list.chosen()), length);
        self.focus();
    }

    fn focus(&mut self) {
        let durations = self.chosen().map(|usage| &usage.counts.durations);
        let classed = if self.is_even { even } else { spread };
        self.spread = durations.and_then(|durations| classed(durations, CLASSES));
    }

    fn opened(&self, shell: &mut Shell) -> Vec<Effect> {
        let Some(usage) = self.chosen() else { return Vec::new() };
        match (&usage.tool.server, self.by_server) {
            (Some(server), true) => vec![Effect::Go(Errand::ShowTools(server.clone()))],
            (None, true) => {
                shell.say("these are tools of no server: t shows them one by one");
                Vec::new()
            }
            (_, false) => vec![Effect::Go(Errand::ShowTool(usage.tool.name.clone()))],
        }
    }

    fn benched(&self, shell: &mut Shell) -> Vec<Effect> {
        match self.chosen() {
            Some(usage) if !self.by_server => {
                let tool = usage.tool.name.clone();
                vec![Effect::Go(Errand::Bench { tool, arguments: None })]
            }
            _ => {
                shell.say("choose a tool first: t shows them one by one");
                Vec::new()
            }
        }
    }

    fn exported(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let (Some(file), Some(seen)) = (self.file.take(), &self.seen) else {
            shell.say_bad("there is nothing to write yet");
            return Vec::new();
        };
        let name = file.text().trim();
        let text = if name.to_ascii_lowercase().ends_with(".csv") {
            export::csv(&seen.summary)
        } else {
            json::pretty(&export::json(&seen.summary)) + "\n"
        };
        vec![Effect::Write { path: name.into(), text }]
    }
}

#[cfg(test)]
pub(in crate::tui) mod tests;
