//! Filtering a catalogue: the flags of `list`, search, and profiles.

use std::borrow::Borrow;

use regex::{Regex, RegexBuilder};

use crate::config::spec::{FileRole, ProfileSpec, UntrustedEntry};
use crate::model::{Safety, ToolDefinition, ToolSource};
use crate::util::pattern;

/// What is wanted; every part that is empty allows everything.
#[derive(Debug, Clone, Default)]
pub struct CatalogueQuery {
    /// Words that must all occur in the name, title or description, whatever their case.
    pub words: Vec<String>,
    /// Only tools from files, or only those of MCP servers; `None` is both.
    pub source: Option<ToolSource>,
    pub servers: Vec<String>,
    pub kinds: Vec<String>,
    /// Only tools of these categories; empty means all.
    pub categories: Vec<String>,
    /// Only tools with these safety levels; empty means all.
    pub safety: Vec<String>,
}

impl CatalogueQuery {
    /// The places of the wanted tools in `tools`. With words the best match comes first: a name
    /// that begins with the word, then a name that holds it, a title, a description; otherwise
    /// the order is kept.
    pub fn select(&self, tools: &[impl Borrow<ToolDefinition>]) -> Vec<usize> {
        let matcher = WordMatcher::new(&self.words);
        let mut ranked: Vec<(u32, usize)> = tools
            .iter()
            .map(Borrow::borrow)
            .enumerate()
            .filter(|(_, tool)| self.allows(tool))
            .filter_map(|(at, tool)| matcher.rank(tool).map(|rank| (rank, at)))
            .collect();
        ranked.sort_unstable();
        ranked.into_iter().map(|(_, at)| at).collect()
    }

    fn allows(&self, tool: &ToolDefinition) -> bool {
        self.source.is_none_or(|source| source == tool.source)
            && (self.servers.is_empty() || one_of(&self.servers, tool.name.component()))
            && (self.kinds.is_empty() || one_of(&self.kinds, Some(&tool.kind)))
            && (self.categories.is_empty() || one_of(&self.categories, tool.category.as_deref()))
            && (self.safety.is_empty() || one_of(&self.safety, Some(tool.safety.as_str())))
    }
}

/// Whether a profile shows a tool. `include` and `exclude` are patterns over full names; exclusion
/// wins.
pub fn is_in_profile(profile: &ProfileSpec, tool: &ToolDefinition) -> bool {
    let name = tool.name.full();
    let matches = |patterns: &[String]| patterns.iter().any(|p| pattern::matches(p, &name));
    (profile.include.is_empty() || matches(&profile.include))
        && !matches(&profile.exclude)
        && (profile.servers.is_empty() || one_of(&profile.servers, tool.name.component()))
        && (profile.categories.is_empty() || one_of(&profile.categories, tool.category.as_deref()))
        && (profile.safety.is_empty() || one_of(&profile.safety, Some(tool.safety.as_str())))
}

pub fn may_show_component(profile: &ProfileSpec, component: &str) -> bool {
    let prefix = format!("{component}-");
    (profile.servers.is_empty() || one_of(&profile.servers, Some(component)))
        && (profile.include.is_empty()
            || profile.include.iter().any(|p| pattern::may_match_after(p, &prefix)))
        && !profile.exclude.iter().any(|p| pattern::matches_all_after(p, &prefix))
}

pub fn may_show_entry(profile: &ProfileSpec, name: &str) -> bool {
    let matches = |patterns: &[String]| patterns.iter().any(|p| pattern::matches(p, name));
    let as_tool = profile.servers.is_empty()
        && (profile.include.is_empty() || matches(&profile.include))
        && !matches(&profile.exclude);
    as_tool || may_show_component(profile, name)
}

/// Whether a profile may show tools whose names only the code of an entry tells. With a component they
/// are named after it. Without one a name has no component either, so that of the patterns with one
/// only that of the entry itself counts: excluding it excludes all that it offers.
pub fn may_show_offered(profile: &ProfileSpec, entry: &ToolDefinition, component: bool) -> bool {
    let name = entry.name.full();
    let category = entry.category.as_deref();
    let in_category = profile.categories.is_empty()
        || category.is_none()
        || one_of(&profile.categories, category);
    let matches = |pattern: &String| pattern::matches(pattern, &name);
    let by_name = if component {
        may_show_entry(profile, &name)
    } else {
        let may_include = |pattern: &String| !pattern.contains('-') || matches(pattern);
        profile.servers.is_empty()
            && (profile.include.is_empty() || profile.include.iter().any(may_include))
            && !profile.exclude.iter().any(matches)
    };
    in_category && by_name
}

pub fn may_show_untrusted(profile: &ProfileSpec, entry: &UntrustedEntry) -> bool {
    match entry.role {
        FileRole::Servers => may_show_server(profile, &entry.name, entry.definitions.iter()),
        FileRole::Tools => may_show_entry(profile, &entry.name),
    }
}

/// Whether a profile may show tools of a server that was not asked yet. What its file does not
/// declare is external and of no category, whatever the server says of it.
pub fn may_show_server(
    profile: &ProfileSpec,
    server: &str,
    mut declared: impl Iterator<Item = impl Borrow<ToolDefinition>>,
) -> bool {
    let shows_undeclared = profile.categories.is_empty()
        && (profile.safety.is_empty() || one_of(&profile.safety, Some(Safety::External.as_str())));
    may_show_component(profile, server)
        && (shows_undeclared || declared.any(|tool| is_in_profile(profile, tool.borrow())))
}

fn one_of(allowed: &[String], value: Option<&str>) -> bool {
    value.is_some_and(|value| allowed.iter().any(|a| a == value))
}

/// The words of a query, made for searching many texts without copying them.
#[derive(Debug)]
pub struct WordMatcher(Vec<Regex>);

impl WordMatcher {
    /// Words that must all occur, whatever their case; without any, everything fits.
    pub fn new(words: &[String]) -> Self {
        // An escaped literal always compiles unless it is absurdly long; such a word is cut, which
        // can only widen the result.
        let literal = |word: &String| {
            let word: String = word.chars().take(256).collect();
            RegexBuilder::new(&regex::escape(&word)).case_insensitive(true).build().ok()
        };
        Self(words.iter().filter(|w| !w.is_empty()).filter_map(literal).collect())
    }

    pub fn matches(&self, texts: &[Option<&str>]) -> bool {
        let occurs = |word: &Regex| texts.iter().flatten().any(|text| word.is_match(text));
        self.0.iter().all(occurs)
    }

    /// How well a tool matches all words; lower is better.
    fn rank(&self, tool: &ToolDefinition) -> Option<u32> {
        if self.0.is_empty() {
            return Some(0);
        }
        let name = tool.name.full();
        self.0.iter().try_fold(0, |sum, word| Some(sum + rank_one(word, tool, &name)?))
    }
}

fn rank_one(word: &Regex, tool: &ToolDefinition, name: &str) -> Option<u32> {
    if let Some(part) = word.find(name) {
        let whole = part.len() == name.len() || part.as_str() == tool.name.tool();
        return Some(match part.start() {
            _ if whole => 0,
            0 => 1,
            _ => 2,
        });
    }
    let holds = |text: &Option<String>| text.as_deref().is_some_and(|text| word.is_match(text));
    if holds(&tool.title) || holds(&tool.annotations.title) {
        Some(3)
    } else {
        holds(&tool.description).then_some(4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Origin, ToolName};

    fn tools() -> Vec<ToolDefinition> {
        let internal = |name: &str| {
            ToolDefinition::new(
                ToolName::plain(name),
                ToolSource::Internal,
                "builtin",
                Origin::Server(String::new()),
            )
        };
        let mcp = |server: &str, name: &str| {
            ToolDefinition::new(
                ToolName::of(server, name),
                ToolSource::Mcp,
                "mcp",
                Origin::Server(server.to_owned()),
            )
        };
        let mut all = vec![
            internal("calculator"),
            internal("web-search"),
            mcp("github", "search"),
            mcp("github", "delete"),
            mcp("files", "read"),
        ];
        all[0].description = Some("Computes; no SEARCH here".into());
        all[0].category = Some("math".into());
        all[1].safety = Safety::Sandboxed;
        all[4].title = Some("Research a file".into());
        all
    }

    fn names(query: &CatalogueQuery) -> Vec<String> {
        let tools = tools();
        query.select(&tools).into_iter().map(|at| tools[at].name.full()).collect()
    }

    fn words(text: &str) -> CatalogueQuery {
        let words = text.split_whitespace().map(str::to_owned).collect();
        CatalogueQuery { words, ..CatalogueQuery::default() }
    }

    #[test]
    fn without_a_word_the_order_is_kept() {
        assert_eq!(names(&CatalogueQuery::default()).len(), 5);
        assert_eq!(names(&CatalogueQuery::default())[0], "calculator");
    }

    #[test]
    fn names_rank_before_titles_before_descriptions() {
        for word in ["search", "SEARCH"] {
            assert_eq!(
                names(&words(word)),
                ["github-search", "web-search", "files-read", "calculator"]
            );
        }
    }

    #[test]
    fn all_words_must_occur() {
        assert_eq!(names(&words("github search")), ["github-search"]);
        assert!(names(&words("github nowhere")).is_empty());
        assert!(names(&words("s.arch")).is_empty());
    }

    #[test]
    fn flags_narrow_the_list() {
        let query = |change: fn(&mut CatalogueQuery)| {
            let mut query = CatalogueQuery::default();
            change(&mut query);
            names(&query)
        };
        assert_eq!(query(|q| q.source = Some(ToolSource::Internal)), ["calculator", "web-search"]);
        assert_eq!(query(|q| q.servers = vec!["files".into()]), ["files-read"]);
        assert_eq!(query(|q| q.categories = vec!["math".into()]), ["calculator"]);
        assert_eq!(query(|q| q.safety = vec!["sandboxed".into()]), ["web-search"]);
        assert_eq!(query(|q| q.kinds = vec!["mcp".into()]).len(), 3);
    }

    #[test]
    fn a_profile_is_a_view() {
        let profile = ProfileSpec {
            include: vec!["github-*".into(), "calc*".into()],
            exclude: vec!["*-delete".into()],
            ..ProfileSpec::default()
        };
        let shown = |profile: &ProfileSpec| -> Vec<String> {
            let tools = tools().into_iter().filter(|tool| is_in_profile(profile, tool));
            tools.map(|tool| tool.name.full()).collect()
        };
        assert_eq!(shown(&profile), ["calculator", "github-search"]);
        let servers = ProfileSpec { servers: vec!["files".into()], ..ProfileSpec::default() };
        assert_eq!(shown(&servers), ["files-read"]);
    }

    #[test]
    fn an_entry_is_hidden_when_neither_it_nor_a_tool_of_it_is_shown() {
        let include = ["notes-*".to_owned(), "calculator".to_owned()].to_vec();
        let profile = ProfileSpec { include, ..ProfileSpec::default() };
        let shown = |name| may_show_entry(&profile, name);
        assert!(shown("notes") && shown("calculator") && !shown("other"));
        let exclude = ["calculator".to_owned(), "notes*".to_owned()].to_vec();
        let profile = ProfileSpec { exclude, ..ProfileSpec::default() };
        let shown = |name| may_show_entry(&profile, name);
        assert!(!shown("notes") && shown("other"));
        // It may be a component, whose tools are not hidden.
        assert!(shown("calculator"));
        let profile = ProfileSpec { servers: vec!["files".into()], ..ProfileSpec::default() };
        assert!(may_show_entry(&profile, "files") && !may_show_entry(&profile, "calculator"));
    }

    #[test]
    fn what_a_profile_may_show_of_a_server_is_known_before_it_is_asked() {
        let strings = |strings: &[&str]| strings.iter().map(|word| (*word).to_owned()).collect();
        let profile = |change: &dyn Fn(&mut ProfileSpec)| {
            let mut profile = ProfileSpec::default();
            change(&mut profile);
            profile
        };
        let mut declared = tools()[2].clone();
        declared.safety = Safety::Sandboxed;
        declared.category = Some("code".into());
        let may = |change: &dyn Fn(&mut ProfileSpec)| {
            may_show_server(&profile(change), "github", std::iter::once(&declared))
        };
        assert!(may(&|_| {}));
        assert!(may(&|p| p.include = strings(&["notes-*", "git*"])));
        assert!(!may(&|p| p.include = strings(&["notes-*", "calculator"])));
        assert!(may(&|p| p.exclude = strings(&["*-delete"])));
        assert!(!may(&|p| p.exclude = strings(&["github-*"])));
        assert!(!may(&|p| p.servers = strings(&["files"])));
        assert!(may(&|p| p.safety = strings(&["external"])));
        // Only what is declared is anything but external, or has a category.
        assert!(may(&|p| p.safety = strings(&["sandboxed"])));
        assert!(!may(&|p| p.safety = strings(&["native"])));
        assert!(may(&|p| p.categories = strings(&["code"])));
        assert!(!may(&|p| p.categories = strings(&["math"])));
        let hidden = profile(&|p| {
            p.safety = strings(&["sandboxed"]);
            p.exclude = strings(&["github-search"]);
        });
        assert!(!may_show_server(&hidden, "github", std::iter::once(&declared)));
    }
}
