//! Entries that give several tools: which ones, under which names and definitions.
//!
//! | the entry says | the tools are |
//! |---|---|
//! | none of these | everything offered, as `{component}-{tool}` |
//! | `selected_tools: [a, b]` or `tools: [a, b]` | these, as `{component}-{tool}` |
//! | `tools: [{ original_tool_name: a, name: x }]` | these, as `{component}-x` |
//! | `original_tool_name: a` | this one, under the name of the entry, or its own when that has none |

use crate::config::node::{ConfigNode, NodeValue};
use crate::config::spec::ToolSpec;
use crate::model::{Diagnostic, SourceLocation, ToolDefinition, ToolName, check_name};
use crate::util::spelling::did_you_mean;

/// The keys of an entry that selecting understands; a kind adds them to its own.
pub(super) const KEYS: [&str; 5] =
    ["component", "tools", "selected_tools", "original_tool_name", "requires_approval"];

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

/// The tools that an entry asks for out of `available`, in the order it names them.
pub(super) fn choose(
    spec: &ToolSpec,
    available: impl IntoIterator<Item = &'static ToolkitTool>,
) -> Result<Vec<SelectedTool>, Vec<Diagnostic>> {
    let available: Vec<&'static ToolkitTool> = available.into_iter().collect();
    let available = available.as_slice();
    let entry = &spec.entry;
    let mut diagnostics = Vec::new();
    let mut chosen = Vec::new();
    let component = component(spec).map_err(|diagnostic| vec![diagnostic])?;
    if let Some(node) = entry.get("original_tool_name") {
        match node.as_text().and_then(|word| find_tool(word, node, available)) {
            Ok(original) => chosen.push(SelectedTool {
                original,
                name: spec.definition.name.clone(),
                approval: None,
                title: spec.definition.title.clone(),
                description: spec.definition.description.clone(),
                place: spec.location.clone(),
            }),
            Err(diagnostic) => diagnostics.push(diagnostic),
        }
    } else if let Some((_, list)) = entry.get_any(&["tools", "selected_tools"]) {
        match list.as_list() {
            Ok([]) => diagnostics.push(
                Diagnostic::error("the list selects no tools")
                    .with_hint("name some, or omit the list to select all")
                    .with_location(list.location()),
            ),
            Ok(items) => {
                for item in items {
                    match read_item(item, &component, available) {
                        Ok(tool) => chosen.push(tool),
                        Err(diagnostic) => diagnostics.push(diagnostic),
                    }
                }
            }
            Err(diagnostic) => diagnostics.push(diagnostic),
        }
    } else {
        chosen.extend(available.iter().map(|original| SelectedTool {
            original,
            name: ToolName::of(&component, original.name),
            approval: None,
            title: None,
            description: None,
            place: spec.location.clone(),
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
    if let Err(more) = approval(entry, &mut chosen, available) {
        diagnostics.extend(more);
    }
    if diagnostics.is_empty() { Ok(chosen) } else { Err(diagnostics) }
}

pub(super) fn component(spec: &ToolSpec) -> Result<String, Diagnostic> {
    let Some(node) = spec.entry.get("component") else {
        return Ok(spec.definition.name.full());
    };
    let text = node.as_scalar_text()?;
    check_name(&text)
        .map_err(|error| Diagnostic::error(error.to_string()).with_location(node.location()))?;
    Ok(text)
}

const ITEM_KEYS: [&str; 6] =
    ["original_tool_name", "name", "tool_name", "title", "description", "requires_approval"];

/// One item of the list: a name, or a mapping with overrides.
fn read_item(
    item: &ConfigNode,
    component: &str,
    available: &[&'static ToolkitTool],
) -> Result<SelectedTool, Diagnostic> {
    if let NodeValue::Text(word) = &item.value {
        let original = find_tool(word, item, available)?;
        return Ok(SelectedTool {
            original,
            name: ToolName::of(component, word.as_str()),
            approval: None,
            title: None,
            description: None,
            place: item.location(),
        });
    }
    item.as_map()?;
    if let Some((key, _)) =
        item.entries().iter().find(|(k, _)| !ITEM_KEYS.contains(&k.text.as_str()))
    {
        let diagnostic = Diagnostic::error(format!("unknown key '{}'", key.text))
            .with_location(item.location_of(key));
        let hint = did_you_mean(&key.text, ITEM_KEYS)
            .unwrap_or_else(|| format!("the keys of a selected tool are {}", ITEM_KEYS.join(", ")));
        return Err(diagnostic.with_hint(hint));
    }
    let named = item.get_any(&["name", "tool_name"]).map(|(_, node)| node);
    let (word, at) = match (item.get("original_tool_name"), named) {
        (Some(node), _) | (None, Some(node)) => (node.as_text()?, node),
        (None, None) => {
            return Err(Diagnostic::error("this does not say which tool is meant")
                .with_hint("add 'original_tool_name: …'")
                .with_location(item.location()));
        }
    };
    let original = find_tool(word, at, available)?;
    let name = named.map_or(Ok(word.to_owned()), ConfigNode::as_scalar_text)?;
    check_name(&name)
        .map_err(|error| Diagnostic::error(error.to_string()).with_location(item.location()))?;
    let text = |key| item.get(key).map(ConfigNode::as_scalar_text).transpose();
    Ok(SelectedTool {
        original,
        name: ToolName::of(component, name),
        approval: item.get("requires_approval").map(ConfigNode::as_bool).transpose()?,
        title: text("title")?,
        description: text("description")?,
        place: item.location(),
    })
}

fn find_tool(
    word: &str,
    at: &ConfigNode,
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
            .with_location(at.location())
    })
}

/// `requires_approval` of the entry: for all tools, or for those it lists.
fn approval(
    entry: &ConfigNode,
    chosen: &mut [SelectedTool],
    available: &[&'static ToolkitTool],
) -> Result<(), Vec<Diagnostic>> {
    let Some(node) = entry.get("requires_approval").filter(|node| !node.is_null()) else {
        return Ok(());
    };
    let NodeValue::List(items) = &node.value else {
        let all = node.as_bool().map_err(|diagnostic| vec![diagnostic])?;
        for tool in chosen {
            tool.approval = tool.approval.or(Some(all));
        }
        return Ok(());
    };
    let mut diagnostics = Vec::new();
    // A list names every tool that asks, so the others do not.
    for tool in chosen.iter_mut() {
        tool.approval = tool.approval.or(Some(false));
    }
    for item in items {
        let word = match item.as_text() {
            Ok(word) => word,
            Err(diagnostic) => {
                diagnostics.push(diagnostic);
                continue;
            }
        };
        let mut matched = false;
        for tool in chosen.iter_mut() {
            if tool.name.tool() == word || tool.original.has_name(word) {
                tool.approval = Some(true);
                matched = true;
            }
        }
        if !matched {
            match find_tool(word, item, available) {
                Err(diagnostic) => diagnostics.push(diagnostic),
                Ok(_) => diagnostics.push(
                    Diagnostic::error(format!("'{word}' is not among the selected tools"))
                        .with_location(item.location()),
                ),
            }
        }
    }
    if diagnostics.is_empty() { Ok(()) } else { Err(diagnostics) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::spec::{KindClaim, KindDescriptor};
    use crate::providers::harness;

    const TOOLS: &[ToolkitTool] = &[
        ToolkitTool { name: "read", aliases: &["get"] },
        ToolkitTool { name: "search", aliases: &["file_search"] },
        ToolkitTool { name: "write", aliases: &[] },
    ];

    const WORDS: KindDescriptor = KindDescriptor {
        key: "kit",
        aliases: &[],
        keys: &KEYS,
        expand: &[],
        claims: |_, _| KindClaim::Certain,
        effects: |_, _| Vec::new(),
        code: None,
    };

    fn chosen(entry: &str) -> Result<Vec<String>, Vec<String>> {
        let (_dir, specs, _) = harness::specs(WORDS, &format!("components:\n  - {{ {entry} }}\n"));
        match choose(&specs[0], TOOLS) {
            Ok(all) => Ok(all
                .iter()
                .map(|tool| {
                    let definition = tool.definition(&specs[0]);
                    let ask = if definition.requires_approval { " asks" } else { "" };
                    let about = definition.description.unwrap_or_default();
                    format!("{}={}{ask} {about}", definition.name, tool.original.name).trim().into()
                })
                .collect()),
            Err(diagnostics) => Err(diagnostics
                .into_iter()
                .map(|p| format!("{} ({})", p.message, p.hint.unwrap_or_default()))
                .collect()),
        }
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
            "there is no tool 'raed' to select (did you mean 'read'?)",
            "expected a mapping, found a list ()",
            "this does not say which tool is meant (add 'original_tool_name: …')",
            "unknown key 'nmae' (did you mean 'name'?)",
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
