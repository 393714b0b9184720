//! Entries that give several tools: which ones, under which names and definitions.
//!
//! | the entry says | the tools are |
//! |---|---|
//! | none of these | everything offered, as `{component}-{tool}` |
//! | `selected_tools: [a, b]` or `tools: [a, b]` | these, as `{component}-{tool}` |
//! | `tools: [{ original_tool_name: a, name: x }]` | these, as `{component}-x` |
//! | `original_tool_name: a` | this one, under the name of the entry, or its own when that has none |

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::spec::ToolSpec;
use crate::config::typed::{self, Either, Located};
use crate::model::{Diagnostic, Diagnostics, SourceLocation, ToolDefinition, ToolName, check_name};
use crate::util::spelling::did_you_mean;

/// A tool that is taken, by its name or with one of its own.
type ToolSelection = Located<Either<String, SelectedKeys>>;

/// The keys of an entry that select its tools.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
pub(super) struct ToolkitKeys {
    /// What its tools are named after; default: the name of the entry.
    component: Option<Located<String>>,
    /// The tools to take, some with a name or description of their own; default: the usual ones.
    #[serde(alias = "selected_tools")]
    tools: Option<Located<Vec<ToolSelection>>>,
    /// The one tool to take, under the name of the entry.
    original_tool_name: Option<Located<String>>,
    /// Require approval before each call: of all its tools, or of these.
    requires_approval: Option<Either<bool, Vec<Located<String>>>>,
}

/// One of the tools to take.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
struct SelectedKeys {
    /// Which tool.
    original_tool_name: Option<String>,
    /// Its name here; alone, it says which tool.
    #[serde(alias = "tool_name")]
    name: Option<String>,
    /// A human-readable title.
    title: Option<String>,
    /// What the tool does, for people and models.
    description: Option<String>,
    /// Require approval before each call.
    requires_approval: Option<bool>,
}

impl ToolkitKeys {
    pub(super) fn selects(&self) -> bool {
        self.tools.is_some() || self.original_tool_name.is_some()
    }

    /// The tools that it selects, as it spells them.
    pub(super) fn selected(&self) -> Vec<&str> {
        if let Some(name) = &self.original_tool_name {
            return vec![name.as_str()];
        }
        self.tools.iter().flat_map(|tools| &tools.value).filter_map(|item| word(item)).collect()
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct ToolkitTool {
    /// Its name in the kind, and the last part of the full name unless the entry sets another.
    pub(super) name: &'static str,
    /// Other spellings of the name that files may use.
    pub(super) aliases: &'static [&'static str],
}

impl ToolkitTool {
    fn has_name(&self, word: &str) -> bool {
        self.name == word || self.aliases.contains(&word)
    }
}

#[derive(Debug)]
pub(super) struct SelectedTool {
    pub(super) original: &'static ToolkitTool,
    pub(super) name: ToolName,
    /// Whether the entry requires approval of this tool; `None` leaves it to the kind.
    pub(super) approval: Option<bool>,
    title: Option<String>,
    description: Option<String>,
    place: SourceLocation,
}

impl SelectedTool {
    /// The definition from the common keys of the entry and the overrides. Description and schemas
    /// are `None` or the entry's where the item sets none: the kind fills them.
    pub(super) fn definition(&self, spec: &ToolSpec) -> ToolDefinition {
        ToolDefinition {
            name: self.name.clone(),
            title: self.title.clone(),
            description: self.description.clone(),
            requires_approval: self.approval.unwrap_or(spec.definition.requires_approval),
            origin: crate::model::Origin::File(self.place.clone()),
            ..spec.definition.clone()
        }
    }
}

/// Which tool an item means.
fn word(item: &Either<String, SelectedKeys>) -> Option<&str> {
    match item {
        Either::Short(word) => Some(word),
        Either::Nested(keys) => keys.original_tool_name.as_deref().or(keys.name.as_deref()),
    }
}

/// The tools that an entry asks for out of `available`, in the order it names them.
pub(super) fn choose(
    spec: &ToolSpec,
    keys: &ToolkitKeys,
    available: impl IntoIterator<Item = &'static ToolkitTool>,
    diagnostics: &Diagnostics,
) -> Vec<SelectedTool> {
    let available: Vec<&'static ToolkitTool> = available.into_iter().collect();
    let mut chosen = Vec::new();
    let component = diagnostics.ok(component(spec, keys)).unwrap_or_default();
    let plain = |original: &'static ToolkitTool, name, place: &SourceLocation| SelectedTool {
        original,
        name,
        approval: None,
        title: None,
        description: None,
        place: place.clone(),
    };
    if let Some(word) = &keys.original_tool_name {
        let original_tool = diagnostics.ok(find_tool(word, &word.location, &available));
        chosen.extend(original_tool.map(|original| SelectedTool {
            title: spec.definition.title.clone(),
            description: spec.definition.description.clone(),
            ..plain(original, spec.definition.name.clone(), &spec.location)
        }));
    } else if let Some(list) = &keys.tools {
        if list.is_empty() {
            diagnostics.push(
                list.error("the list selects no tools")
                    .with_hint("name some, or omit the list to select all"),
            );
        }
        let items = list.value.iter();
        chosen
            .extend(items.filter_map(|item| diagnostics.ok(select(item, &component, &available))));
    } else {
        chosen.extend(available.iter().map(|original| {
            plain(original, ToolName::of(&component, original.name), &spec.location)
        }));
    }
    for (at, tool) in chosen.iter().enumerate() {
        if chosen.iter().take(at).any(|before| before.name == tool.name) {
            diagnostics.push(
                Diagnostic::error(format!("'{}' is selected twice", tool.name))
                    .with_hint("give one of them another 'name'")
                    .with_location(tool.place.clone()),
            );
        }
    }
    approval(keys, &mut chosen, &available, diagnostics);
    chosen
}

pub(super) fn component(spec: &ToolSpec, keys: &ToolkitKeys) -> Result<String, Diagnostic> {
    let Some(component) = &keys.component else { return Ok(spec.definition.name.full()) };
    check_name(component).map_err(|error| component.error(error.to_string()))?;
    Ok(component.value.clone())
}

fn select(
    item: &Located<Either<String, SelectedKeys>>,
    component: &str,
    available: &[&'static ToolkitTool],
) -> Result<SelectedTool, Diagnostic> {
    let Some(word) = word(item) else {
        return Err(item
            .error("this does not say which tool is meant")
            .with_hint("add 'original_tool_name: …'"));
    };
    let original = find_tool(word, &item.location, available)?;
    let keys = match &item.value {
        Either::Short(_) => None,
        Either::Nested(keys) => Some(keys),
    };
    let name = keys.and_then(|keys| keys.name.as_deref()).unwrap_or(word);
    if keys.is_some() {
        check_name(name).map_err(|error| item.error(error.to_string()))?;
    }
    Ok(SelectedTool {
        original,
        name: ToolName::of(component, name),
        approval: keys.and_then(|keys| keys.requires_approval),
        title: keys.and_then(|keys| keys.title.clone()),
        description: keys.and_then(|keys| keys.description.clone()),
        place: item.location.clone(),
    })
}

fn find_tool(
    word: &str,
    at: &SourceLocation,
    available: &[&'static ToolkitTool],
) -> Result<&'static ToolkitTool, Diagnostic> {
    available.iter().copied().find(|tool| tool.has_name(word)).ok_or_else(|| {
        let names: Vec<&str> = available.iter().map(|tool| tool.name).collect();
        let all =
            available.iter().flat_map(|o| std::iter::once(o.name).chain(o.aliases.iter().copied()));
        let hint = did_you_mean(word, all)
            .unwrap_or_else(|| format!("the tools are {}", names.join(", ")));
        Diagnostic::error(format!("there is no tool '{word}' to select"))
            .with_hint(hint)
            .with_location(at.clone())
    })
}

/// `requires_approval` of the entry: for all tools, or for those it lists.
fn approval(
    keys: &ToolkitKeys,
    chosen: &mut [SelectedTool],
    available: &[&'static ToolkitTool],
    diagnostics: &Diagnostics,
) {
    let (words, others) = match &keys.requires_approval {
        None => return,
        Some(Either::Short(all)) => (&[][..], *all),
        // A list names every tool that asks, so the others do not.
        Some(Either::Nested(words)) => (words.as_slice(), false),
    };
    for tool in chosen.iter_mut() {
        tool.approval = tool.approval.or(Some(others));
    }
    for word in words {
        let mut matched = false;
        for tool in chosen.iter_mut() {
            if tool.name.tool() == word.value || tool.original.has_name(word) {
                tool.approval = Some(true);
                matched = true;
            }
        }
        if !matched {
            diagnostics.push(match find_tool(word, &word.location, available) {
                Err(diagnostic) => diagnostic,
                Ok(_) => word.error(format!("'{}' is not among the selected tools", word.value)),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::spec::{KindClaim, KindDescriptor};
    use crate::config::typed::Keys;
    use crate::providers::harness;

    const TOOLS: &[ToolkitTool] = &[
        ToolkitTool { name: "read", aliases: &["get"] },
        ToolkitTool { name: "search", aliases: &["file_search"] },
        ToolkitTool { name: "write", aliases: &[] },
    ];

    const WORDS: KindDescriptor = KindDescriptor {
        key: "kit",
        aliases: &[],
        keys: &[Keys::of::<ToolkitKeys>()],
        expand: &[],
        claims: |_, _| KindClaim::Certain,
        effects: |_, _| Vec::new(),
        code: None,
    };

    fn chosen(entry: &str) -> Result<Vec<String>, Vec<String>> {
        let (_dir, specs, _) = harness::specs(WORDS, &format!("components:\n  - {{ {entry} }}\n"));
        let diagnostics = Diagnostics::default();
        let keys = typed::read_part(&specs[0].entry, &diagnostics).unwrap();
        let all = choose(&specs[0], &keys, TOOLS, &diagnostics);
        if diagnostics.errors() > 0 {
            let problem = |p: Diagnostic| format!("{} ({})", p.message, p.hint.unwrap_or_default());
            return Err(diagnostics.take().into_iter().map(problem).collect());
        }
        let tools = all.iter().map(|tool| {
            let definition = tool.definition(&specs[0]);
            let ask = if definition.requires_approval { " asks" } else { "" };
            let about = definition.description.unwrap_or_default();
            format!("{}={}{ask} {about}", definition.name, tool.original.name).trim().into()
        });
        Ok(tools.collect())
    }

    #[test]
    fn without_a_selection_everything_is_given() {
        assert_eq!(chosen("name: a").unwrap(), ["a-read=read", "a-search=search", "a-write=write"]);
        assert_eq!(chosen("name: a, component: b, tools: [get]").unwrap(), ["b-get=read"]);
        assert_eq!(
            chosen("name: a, selected_tools: []").unwrap_err(),
            ["the list selects no tools (name some, or omit the list to select all)"]
        );
    }

    #[test]
    fn one_tool_without_a_name_goes_by_its_own() {
        assert_eq!(chosen("original_tool_name: file_search").unwrap(), ["file_search=search"]);
    }

    #[test]
    fn a_selected_tool_may_have_another_name_and_description() {
        let entry = "name: docs, tools: [{ original_tool_name: file_search, name: find, \
                     description: Finds }, { name: write, requires_approval: true }]";
        assert_eq!(chosen(entry).unwrap(), ["docs-find=search Finds", "docs-write=write asks"]);
        let entry = "name: find_docs, original_tool_name: file_search, description: Finds";
        assert_eq!(chosen(entry).unwrap(), ["find_docs=search Finds"]);
    }

    #[test]
    fn approval_is_for_all_or_for_those_it_lists() {
        let all = chosen("name: a, selected_tools: [read, write], requires_approval: true");
        assert_eq!(all.unwrap(), ["a-read=read asks", "a-write=write asks"]);
        let some = chosen("name: a, selected_tools: [get, write], requires_approval: [read]");
        assert_eq!(some.unwrap(), ["a-get=read asks", "a-write=write"]);
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let entry =
            "name: a, tools: [raed, [1], { title: x }, read, read, { name: write, nmae: x }]";
        insta::assert_debug_snapshot!(chosen(entry).unwrap_err(), @r#"
        [
            "expected a mapping, found a list ()",
            "unknown key 'nmae' (did you mean 'name'?)",
            "there is no tool 'raed' to select (did you mean 'read'?)",
            "this does not say which tool is meant (add 'original_tool_name: …')",
            "'a-read' is selected twice (give one of them another 'name')",
        ]
        "#);
        insta::assert_debug_snapshot!(
            chosen("name: a, tools: [read], requires_approval: [write, wrte]").unwrap_err(), @r#"
        [
            "'write' is not among the selected tools ()",
            "there is no tool 'wrte' to select (did you mean 'write'?)",
        ]
        "#);
    }
}
