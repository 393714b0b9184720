//! Imitated names, descriptions that mention other servers' tools, and claims that contradict the
//! tool's own name.
//!
//! Lets pass: one name at several servers (that is what components are for), mentions of tools of
//! the same server, names that are ordinary words, and reading verbs before a writing word
//! (`get_deleted_items`, `list_write_permissions`).

use std::borrow::Borrow;
use std::collections::{BTreeSet, HashMap};

use unicode_security::confusable_detection::skeleton;

use super::{FindingCollector, FindingSeverity};
use crate::model::{ToolDefinition, ToolSource};
use crate::util::text::{identifier_words, is_one_of};

const SHORTEST: usize = 6;
const LONGEST: usize = 200;

/// First words of names that only look.
const READING: &str = "get list read search find fetch show describe check count query view is \
    has can validate preview lookup explain analyze audit dry scan test verify compare";
const WRITING: &str = "delete remove write update create send execute exec drop destroy insert \
    upload rename move patch modify set put post purge wipe kill overwrite edit";
const DESTROYING: &str = "delete remove drop destroy purge wipe truncate erase";

#[derive(Debug, Default)]
pub struct ToolNameIndex {
    owners: HashMap<String, BTreeSet<String>>,
    look_alikes: HashMap<String, BTreeSet<(String, String)>>,
}

impl ToolNameIndex {
    pub fn of<'t>(tools: impl IntoIterator<Item = &'t (impl Borrow<ToolDefinition> + 't)>) -> Self {
        let mut all = Self::default();
        for tool in tools {
            let tool: &ToolDefinition = tool.borrow();
            let (name, owner) = (tool.name.tool(), owner(tool));
            if name.len() > LONGEST {
                continue;
            }
            all.owners.entry(name.to_owned()).or_default().insert(owner.to_owned());
            all.owners.entry(tool.name.full()).or_default().insert(owner.to_owned());
            let look = skeleton(name).collect();
            all.look_alikes.entry(look).or_default().insert((name.to_owned(), owner.to_owned()));
        }
        all
    }
}

fn owner(tool: &ToolDefinition) -> &str {
    tool.name.component().unwrap_or_default()
}

pub(super) fn check(
    tool: &ToolDefinition,
    neighbours: &ToolNameIndex,
    findings: &mut FindingCollector,
) {
    let name = tool.name.tool();
    "name".clone_into(&mut findings.field);
    if name.len() <= LONGEST {
        let look: String = skeleton(name).collect();
        let twins = neighbours.look_alikes.get(&look).into_iter().flatten();
        let twin = twins
            .filter(|(other, _)| other != name)
            .find(|(_, of)| !name.is_ascii() || of != owner(tool));
        match twin {
            Some((other, of)) if !name.is_ascii() || other.is_ascii() => {
                let whose = if of.is_empty() { String::new() } else { format!(" of '{of}'") };
                let why = format!("it looks like '{other}'{whose} but is a different name");
                findings.add(FindingSeverity::High, "look-alike", name, why);
            }
            _ if !name.is_ascii() && look.is_ascii() => {
                let why = format!("it looks like '{look}' but is a different name");
                findings.add(FindingSeverity::High, "look-alike", name, why);
            }
            _ => {}
        }
    }
    if tool.source == ToolSource::Internal {
        return;
    }
    let head: String = name.chars().take(LONGEST).collect();
    let parts = identifier_words(&head);
    let reads = parts.first().is_some_and(|first| is_one_of(first, READING));
    let word = |list| parts.iter().find(|word| is_one_of(word, list));
    "annotations".clone_into(&mut findings.field);
    if let (Some(true), Some(word), false) = (tool.annotations.read_only, word(WRITING), reads) {
        let why = format!("it claims to be read-only, but its name says '{word}'");
        findings.add(FindingSeverity::Medium, "annotations", "readOnlyHint: true", why);
    }
    if let (Some(false), Some(word), false) =
        (tool.annotations.destructive, word(DESTROYING), reads)
    {
        let why = format!("it claims not to be destructive, but its name says '{word}'");
        findings.add(FindingSeverity::Medium, "annotations", "destructiveHint: false", why);
    }
}

pub(super) fn mentions(
    tool: &ToolDefinition,
    text: &str,
    neighbours: &ToolNameIndex,
    findings: &mut FindingCollector,
) {
    let own = owner(tool);
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':');
    for word in text.split(|c| !inside(c)) {
        let word = word.trim_matches(['.', ':', '-', '/']);
        // An ordinary word is no name of a tool.
        let named = word.contains(['_', '-'])
            || word
                .chars()
                .skip(1)
                .zip(word.chars())
                .any(|(c, before)| c.is_ascii_uppercase() && before.is_ascii_lowercase());
        if !named || word.len() < SHORTEST || word.len() > LONGEST {
            continue;
        }
        let Some(owners) = neighbours.owners.get(word) else { continue };
        if owners.contains(own) {
            continue;
        }
        let whose: Vec<String> = owners
            .iter()
            .take(3)
            .map(|owner| if owner.is_empty() { "this host".into() } else { format!("'{owner}'") })
            .collect();
        let why = format!("it mentions a tool of {}", whose.join(", "));
        findings.add(FindingSeverity::Medium, "other-tools", word, why);
    }
}
