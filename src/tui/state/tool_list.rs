//! The list of all tools, with fuzzy search.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use super::filter::{FilterSyntax, is_yes};
use super::{LineInput, ListCursor};
use crate::catalogue::Catalogue;
use crate::model::{ToolDefinition, ToolSource, ToolStatus};
use crate::stats::count::ToolKey;

/// In which order tools stand while nothing is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
    /// The 95th percentile of successful calls; `None` without one.
    pub p95: Option<Duration>,
    pub failed: u64,
}

/// The use of tools by their full names; a name that was several programs has one for each.
pub type UsageByName = HashMap<String, Vec<(ToolKey, UsageFigures)>>;

impl ToolSort {
    const ALL: [Self; 4] = [Self::Source, Self::Name, Self::P95, Self::Errors];

    /// The title in `by …`.
    pub fn title(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Name => "name",
            Self::P95 => "p95",
            Self::Errors => "errors",
        }
    }
}

/// A tool of the list with its full name.
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
    usage: UsageByName,
    rows: Vec<Arc<ToolRow>>,
    /// The rows that the query finds, the best first.
    found: Vec<usize>,
    pub list: ListCursor,
    pub filter: LineInput,
    /// Whether the filter is being typed.
    pub is_filtering: bool,
    /// The order while nothing is searched for.
    pub sort: ToolSort,
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

    pub fn rows(&self) -> &[Arc<ToolRow>] {
        &self.rows
    }

    /// The number of all tools, found or not.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn found(&self) -> impl ExactSizeIterator<Item = &ToolRow> + '_ {
        self.found_from(0)
    }

    pub fn found_from(&self, first: usize) -> impl ExactSizeIterator<Item = &ToolRow> + '_ {
        self.found.get(first..).unwrap_or_default().iter().map(|at| &*self.rows[*at])
    }

    /// The tool under the cursor; `None` when the filter finds none.
    pub fn chosen(&self) -> Option<&ToolRow> {
        self.rows.get(*self.found.get(self.list.chosen())?).map(|row| &**row)
    }

    pub fn find_by_name(&self, name: &str) -> Option<&ToolRow> {
        self.rows.iter().find(|row| row.name == name).map(|row| &**row)
    }

    /// Selects the tool with this name among the matches; `false` when it is not there.
    pub fn choose(&mut self, name: &str) -> bool {
        let at = self.found().position(|row| row.name == name);
        if let Some(at) = at {
            self.list.choose(at, self.found.len());
        }
        at.is_some()
    }

    pub fn sort_next(&mut self) {
        let at = ToolSort::ALL.iter().position(|sort| *sort == self.sort).unwrap_or(0);
        self.sort = ToolSort::ALL[(at + 1) % ToolSort::ALL.len()];
        self.arrange();
    }

    /// Filters again after the text has changed, with the best match chosen.
    pub fn refilter(&mut self) {
        self.found = ToolSearch::of(self.filter.text()).find(&self.rows);
        self.list.choose(0, self.found.len());
    }

    /// Shows all again; what was chosen stays so.
    pub fn clear_filter(&mut self) {
        self.is_filtering = false;
        self.filter.clear();
        self.arrange();
    }

    fn arrange(&mut self) {
        let chosen = self.chosen().map(|row| row.name.clone());
        let told: HashSet<&str> = self.servers.keys().map(String::as_str).collect();
        let silent = |row: &&Arc<ToolRow>| row.server().is_none_or(|server| !told.contains(server));
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
        self.rows = rows;
        self.found = ToolSearch::of(self.filter.text()).find(&self.rows);
        // Keeps the selection.
        let again = chosen.and_then(|name| self.found().position(|row| row.name == name));
        self.list.choose(again.unwrap_or(self.list.chosen()), self.found.len());
    }
}

impl ToolRow {
    fn of(tool: Arc<ToolDefinition>) -> Self {
        let name = tool.name.full();
        Self { tool, name }
    }

    /// What is searched when the name alone does not fit; `false` when there is nothing more.
    fn write_secondary_text(&self, into: &mut String) -> bool {
        into.clear();
        into.push_str(&self.name);
        for words in [&self.tool.title, &self.tool.category].into_iter().flatten() {
            into.push(' ');
            into.push_str(words);
        }
        into.len() > self.name.len()
    }

    pub fn server(&self) -> Option<&str> {
        self.tool.name.component().filter(|_| self.tool.source == ToolSource::Mcp)
    }

    pub fn source(&self) -> &str {
        self.server().unwrap_or(self.tool.kind)
    }

    pub fn status_mark(&self) -> char {
        match self.tool.status {
            ToolStatus::Unavailable => 'x',
            ToolStatus::Drifted | ToolStatus::Changed => '~',
            _ if self.tool.requires_approval || self.tool.annotations.destructive == Some(true) => {
                'A'
            }
            _ => ' ',
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum ToolFilterKey {
    Source,
    Approval,
}

const SYNTAX: FilterSyntax<ToolFilterKey> = FilterSyntax {
    keys: &[
        ("src", ToolFilterKey::Source),
        ("kind", ToolFilterKey::Source),
        ("approval", ToolFilterKey::Approval),
    ],
    has_quotes: true,
};

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
        let terms = SYNTAX.parse(text);
        let mut query = Self { words: terms.words.join(" "), ..Self::default() };
        query.without = terms.excluded.iter().map(|word| word.to_lowercase()).collect();
        for (key, value) in terms.values {
            match key {
                ToolFilterKey::Source => query.sources.push(value.to_lowercase()),
                ToolFilterKey::Approval => query.approval = Some(is_yes(&value)),
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
        let mut matcher = Matcher::new(Config::DEFAULT);
        let pattern = Pattern::parse(&self.words, CaseMatching::Smart, Normalization::Smart);
        let (mut letters, mut more) = (Vec::new(), String::new());
        let mut scored: Vec<(u32, usize)> = kept
            .filter_map(|(at, row)| {
                let mut score =
                    |text: &str| pattern.score(Utf32Str::new(text, &mut letters), &mut matcher);
                // The name counts more than its description.
                let name = score(&row.name).map(|score| score * 2);
                let all = || row.write_secondary_text(&mut more).then(|| score(&more)).flatten();
                Some((name.or_else(all)?, at))
            })
            .collect();
        scored.sort_unstable_by_key(|(score, at)| (Reverse(*score), *at));
        scored.into_iter().map(|(_, at)| at).collect()
    }

    fn matches(&self, row: &ToolRow) -> bool {
        if self.sources.is_empty() && self.approval.is_none() && self.without.is_empty() {
            return true;
        }
        let source = row.source().to_lowercase();
        let component = row.tool.name.component().unwrap_or_default().to_lowercase();
        let wanted = self.sources.is_empty()
            || self.sources.iter().any(|s| source.contains(s) || component.contains(s));
        let asks = row.status_mark() == 'A';
        let unwanted = || {
            let mut text = String::new();
            row.write_secondary_text(&mut text);
            let text = text.to_lowercase();
            self.without.iter().any(|word| text.contains(word) || source.contains(word))
        };
        wanted && self.approval.is_none_or(|approval| approval == asks) && !unwanted()
    }
}
