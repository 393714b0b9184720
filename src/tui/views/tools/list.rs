//! The list of all tools, with fuzzy search.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use indexmap::IndexMap;

use crate::catalogue::Catalogue;
use crate::model::{ToolDefinition, ToolSource};
use crate::stats::count::ToolKey;
use crate::tui::prelude::*;
use crate::tui::widgets::filter::{FilterTerms, Fuzzy, is_yes};

/// In which order tools stand while nothing is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum ToolSort {
    #[default]
    Source,
    Name,
    /// By the 95th percentile of successful calls, the slowest first.
    P95,
    /// By the number of failed calls, the most first.
    Errors,
}

/// What lists show of the use of a tool, in the window of the statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UsageFigures {
    /// Percentiles of successful calls; `None` without one.
    pub p95: Option<Duration>,
    pub p50: Option<Duration>,
    pub calls: u64,
    pub failed: u64,
}

/// The use of tools by their full names; a name that was several programs has one for each.
pub type UsageByName = HashMap<String, Vec<(ToolKey, UsageFigures)>>;

#[derive(Debug, Clone)]
pub struct ToolRow {
    pub tool: Arc<ToolDefinition>,
    pub name: String,
}

#[derive(Debug, Default)]
pub struct ToolListState {
    local: Vec<Arc<ToolRow>>,
    servers: BTreeMap<String, Vec<Arc<ToolRow>>>,
    /// The use of each, by full name; programs with the same name are distinguished.
    pub usage: UsageByName,
    pub rows: Vec<Arc<ToolRow>>,
    /// The rows that the query finds, the best first.
    pub found: Vec<Arc<ToolRow>>,
    pub list: ListCursor,
    pub filter: ListFilter,
    /// The order while nothing is searched for.
    pub sort: ToolSort,
    pub grouping: ToolGrouping,
    pub folded: HashSet<String>,
    /// What is listed: groups with their tools, or what is found.
    pub lines: Vec<ToolLine>,
    /// The servers in the order of their files, also those without tools.
    server_names: Vec<String>,
    /// Whether a person chose a line; before that it is the first tool, whatever comes.
    is_touched: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, strum::VariantArray)]
pub enum ToolGrouping {
    /// Their server, or their kind.
    #[default]
    Source,
    Category,
    None,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolGroup {
    pub name: String,
    pub is_server: bool,
    pub tools: usize,
}

#[derive(Debug)]
pub enum ToolLine {
    Group(ToolGroup),
    Tool(Arc<ToolRow>),
}

impl ToolListState {
    /// Takes in a list: of what is known without asking, or of these servers.
    pub fn set_tools(&mut self, servers: &[String], listed: Catalogue) {
        let rows = listed.tools.into_iter().map(|tool| Arc::new(ToolRow::of(tool)));
        if servers.is_empty() {
            self.local = rows.collect();
        } else {
            let rows: Vec<Arc<ToolRow>> = rows.collect();
            for server in servers {
                let own = rows.iter().filter(|row| row.server() == Some(server));
                self.servers.insert(server.clone(), own.cloned().collect());
            }
        }
        self.arrange();
    }

    /// Takes in how the tools are used; re-sorts if the order depends on it.
    pub fn set_usage(&mut self, usage: UsageByName) {
        self.usage = usage;
        if matches!(self.sort, ToolSort::P95 | ToolSort::Errors) {
            self.arrange();
        }
    }

    pub fn usage_of(&self, row: &ToolRow) -> Option<UsageFigures> {
        let mut programs = self.usage.get(&row.name)?.iter();
        programs.find(|(key, _)| key.is_of(&row.tool)).map(|(_, figures)| *figures)
    }

    pub fn forget_servers(&mut self) {
        self.servers.clear();
        self.arrange();
    }

    /// The tool under the cursor; `None` when the filter finds none, or at a group.
    pub fn chosen(&self) -> Option<&ToolRow> {
        match self.lines.get(self.list.chosen())? {
            ToolLine::Tool(row) => Some(row),
            ToolLine::Group(_) => None,
        }
    }

    pub fn chosen_group(&self) -> Option<&ToolGroup> {
        match self.lines.get(self.list.chosen())? {
            ToolLine::Group(group) => Some(group),
            ToolLine::Tool(_) => None,
        }
    }

    pub fn is_tree(&self) -> bool {
        matches!(self.lines.first(), Some(ToolLine::Group(_)))
    }

    pub fn widest_name(&self) -> usize {
        let is_tree = self.is_tree();
        let name = |row: &Arc<ToolRow>| {
            if is_tree { text::width(row.short_name()) } else { text::width(&row.name) }
        };
        self.found.iter().map(name).max().unwrap_or(0)
    }

    /// How the list is ordered, where that is not as usual.
    pub fn order(&self) -> String {
        let sort =
            (self.sort != ToolSort::default()).then(|| format!("by {}", <&str>::from(self.sort)));
        let grouping = match self.grouping {
            ToolGrouping::Source => None,
            ToolGrouping::Category => Some("by category".to_owned()),
            ToolGrouping::None => Some("ungrouped".to_owned()),
        };
        [grouping, sort].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    pub fn group_next(&mut self) {
        self.grouping = after(ToolGrouping::VARIANTS, self.grouping);
        self.arrange();
    }

    /// Folds or unfolds the group under the cursor, or that of the tool there.
    pub fn fold(&mut self, is_open: Option<bool>) {
        let name = match self.lines.get(self.list.chosen()) {
            Some(ToolLine::Group(group)) => group.name.clone(),
            Some(ToolLine::Tool(row)) if self.is_tree() => self.group_of(row).0.to_owned(),
            _ => return,
        };
        if is_open.unwrap_or_else(|| self.folded.contains(&name)) {
            self.folded.remove(&name);
        } else {
            self.folded.insert(name.clone());
        }
        self.is_touched = true;
        let chosen = self.chosen().map(|row| row.name.clone());
        self.arrange_lines();
        if !chosen.is_some_and(|chosen| self.choose(&chosen)) {
            let is_group = |line: &ToolLine| matches!(line, ToolLine::Group(of) if of.name == name);
            let at = self.lines.iter().position(is_group);
            self.list.choose(at.unwrap_or(self.list.chosen()), self.lines.len());
        }
    }

    pub fn set_servers(&mut self, names: Vec<String>) {
        if names != self.server_names {
            self.server_names = names;
            self.arrange();
        }
    }

    /// Moves the cursor by this many lines; negative moves up.
    pub fn step(&mut self, by: isize) {
        self.is_touched = true;
        self.list.step(by, self.lines.len());
    }

    pub fn find_by_name(&self, name: &str) -> Option<&ToolRow> {
        self.rows.iter().find(|row| row.name == name).map(|row| &**row)
    }

    /// Selects the tool with this name among the matches; `false` when it is not there.
    pub fn choose(&mut self, name: &str) -> bool {
        let is_it = |line: &ToolLine| matches!(line, ToolLine::Tool(row) if row.name == name);
        let at = self.lines.iter().position(is_it);
        if let Some(at) = at {
            self.is_touched = true;
            self.list.choose(at, self.lines.len());
        }
        at.is_some()
    }

    pub fn reveal(&mut self, name: &str) -> bool {
        let group = self.find_by_name(name).map(|row| self.group_of(row).0.to_owned());
        if group.is_some_and(|group| self.folded.remove(&group)) {
            self.arrange_lines();
        }
        self.choose(name)
    }

    pub fn sort_next(&mut self) {
        self.sort = after(ToolSort::VARIANTS, self.sort);
        self.arrange();
    }

    /// Filters again after the text has changed, with the best match chosen; without a text what was
    /// chosen stays so.
    pub fn refilter(&mut self) {
        if self.filter.text().is_empty() {
            return self.arrange();
        }
        self.search();
        self.choose_first();
        self.is_touched = true;
    }

    /// Chooses the first tool, not the group that it stands in.
    fn choose_first(&mut self) {
        let first = self.lines.iter().position(|line| matches!(line, ToolLine::Tool(_)));
        self.list.choose(first.unwrap_or(0), self.lines.len());
    }

    fn group_of<'a>(&self, row: &'a ToolRow) -> (&'a str, bool) {
        if self.grouping == ToolGrouping::Category {
            return (row.tool.category.as_deref().unwrap_or("other"), false);
        }
        match (row.server(), row.tool.name.component(), &*row.tool.kind) {
            (Some(server), ..) => (server, true),
            (None, Some(component), _) => (component, false),
            (None, None, "builtin") => ("built-in", false),
            (None, None, kind) => (kind, false),
        }
    }

    fn search(&mut self) {
        let found = ToolSearch::of(self.filter.text()).find(&self.rows);
        self.found = found.into_iter().map(|at| Arc::clone(&self.rows[at])).collect();
        self.arrange_lines();
    }

    /// Writes down what is listed: a tree, unless an order or a search makes one list of all.
    fn arrange_lines(&mut self) {
        // What fits best stands first.
        let is_searched = !ToolSearch::of(self.filter.text()).words.is_empty();
        let is_ordered = matches!(self.sort, ToolSort::P95 | ToolSort::Errors);
        let mut groups: IndexMap<(&str, bool), Vec<&Arc<ToolRow>>> = IndexMap::new();
        if self.filter.text().is_empty() && self.grouping == ToolGrouping::Source {
            let servers = self.server_names.iter().map(|name| ((name.as_str(), true), Vec::new()));
            groups.extend(servers);
        }
        for row in &self.found {
            groups.entry(self.group_of(row)).or_default().push(row);
        }
        let tool = |row: &Arc<ToolRow>| ToolLine::Tool(Arc::clone(row));
        // One kind of all needs no heading.
        let is_one_kind = groups.len() <= 1 && groups.keys().all(|(_, is_server)| !is_server);
        if is_searched || is_ordered || self.grouping == ToolGrouping::None || is_one_kind {
            self.lines = self.found.iter().map(tool).collect();
            return;
        }
        let (servers, kinds): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|((_, is_server), _)| *is_server);
        let mut lines = Vec::new();
        for ((name, is_server), rows) in servers.into_iter().chain(kinds) {
            let group = ToolGroup { name: name.to_owned(), is_server, tools: rows.len() };
            lines.push(ToolLine::Group(group));
            if !self.folded.contains(name) {
                lines.extend(rows.into_iter().map(tool));
            }
        }
        self.lines = lines;
    }

    fn arrange(&mut self) {
        let chosen = self.chosen().map(|row| row.name.clone());
        let listed: HashSet<&str> = self.servers.keys().map(String::as_str).collect();
        let silent =
            |row: &&Arc<ToolRow>| row.server().is_none_or(|server| !listed.contains(server));
        let local = self.local.iter().filter(silent);
        let mut rows: Vec<Arc<ToolRow>> =
            local.chain(self.servers.values().flatten()).cloned().collect();
        let figures = |row: &Arc<ToolRow>| self.usage_of(row).unwrap_or_default();
        match self.sort {
            ToolSort::Source => {}
            ToolSort::Name => rows.sort_unstable_by(|a, b| a.name.cmp(&b.name)),
            ToolSort::P95 => rows.sort_by_cached_key(|row| Reverse(figures(row).p95)),
            ToolSort::Errors => rows.sort_by_cached_key(|row| Reverse(figures(row).failed)),
        }
        if self.sort == ToolSort::Source {
            rows.sort_by_key(|row| row.server().is_none());
        }
        self.rows = rows;
        self.search();
        if !self.is_touched {
            return self.choose_first();
        }
        // Keeps the selection.
        if !chosen.is_some_and(|name| self.choose(&name)) {
            self.list.choose(self.list.chosen(), self.lines.len());
        }
    }
}

impl ToolRow {
    fn of(tool: Arc<ToolDefinition>) -> Self {
        let name = tool.name.full();
        Self { tool, name }
    }

    /// What is searched when the name alone does not fit; `None` when there is nothing more.
    fn secondary_text(&self) -> Option<String> {
        let parts: Vec<&str> = [&self.tool.title, &self.tool.category]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        (!parts.is_empty()).then(|| format!("{} {}", self.name, parts.join(" ")))
    }

    pub fn short_name(&self) -> &str {
        let component = self.tool.name.component();
        let rest = component.and_then(|component| self.name.strip_prefix(component));
        rest.and_then(|rest| rest.strip_prefix('-')).unwrap_or(&self.name)
    }

    pub fn server(&self) -> Option<&str> {
        self.tool.name.component().filter(|_| self.tool.source == ToolSource::Mcp)
    }

    pub fn source(&self) -> &str {
        self.server().unwrap_or(&self.tool.kind)
    }
}

/// What is searched for: letters in their order, and fields that narrow it.
#[derive(Debug, Default, PartialEq)]
pub struct ToolSearch {
    words: String,
    sources: Vec<String>,
    approval: Option<bool>,
    without: Vec<String>,
}

impl ToolSearch {
    /// Reads `calc`, `src:files`, `kind:command`, `approval:yes`, `!web`, in any order.
    pub fn of(text: &str) -> Self {
        let terms = FilterTerms::of(text, &["src", "kind", "approval"], true);
        let mut query = Self { words: terms.words.join(" "), ..Self::default() };
        query.without = terms.excluded.iter().map(|word| word.to_lowercase()).collect();
        for (key, value) in terms.values {
            match key {
                "approval" => query.approval = Some(is_yes(&value)),
                _ => query.sources.push(value.to_lowercase()),
            }
        }
        query
    }

    /// The rows that are found, the best first; equally good ones in their order.
    pub fn find(&self, rows: &[Arc<ToolRow>]) -> Vec<usize> {
        let kept = rows.iter().enumerate().filter(|(_, row)| self.matches(row));
        if self.words.is_empty() {
            return kept.map(|(at, _)| at).collect();
        }
        Fuzzy::rank(&self.words, kept.map(|(at, row)| (at, &*row.name, row.secondary_text())))
    }

    fn matches(&self, row: &ToolRow) -> bool {
        let source = row.source().to_lowercase();
        let component = row.tool.name.component().unwrap_or_default().to_lowercase();
        let is_of_source = self.sources.is_empty()
            || self.sources.iter().any(|s| source.contains(s) || component.contains(s));
        let asks = row.tool.requires_approval || row.tool.annotations.destructive == Some(true);
        let is_excluded = || {
            let text = row.secondary_text().unwrap_or_else(|| row.name.clone()).to_lowercase();
            self.without.iter().any(|word| text.contains(word) || source.contains(word))
        };
        is_of_source && self.approval.is_none_or(|approval| approval == asks) && !is_excluded()
    }
}
