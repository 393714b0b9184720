//! Files of tools: lists of entries → [`ToolSpec`]s.

use std::path::Path;
use std::sync::Arc;

use super::{Claim, FileContext, Findings, Gathered, definition, is_off, origin};
use crate::config::expand::Expander;
use crate::config::node::{Node, NodeValue};
use crate::config::spec::{self, FileRole, KindWords, ToolSpec, UntrustedEntry};
use crate::model::{Place, Problem, Source, ToolName, ToolStatus};

/// What names an entry, the best first: one tool of a toolkit may go by the name it has there.
const NAMES: [&str; 3] = ["name", "tool_name", "original_tool_name"];

/// Kinds that other builds have, to tell a typing error from a missing ability.
const LATER: [&str; 1] = ["openapi"];

/// Resolves one list of entries: `tools`, `toolkits` or `components`.
pub fn list(
    node: Node,
    list: &'static str,
    file: &mut FileContext<'_>,
    gathered: &mut Gathered<'_>,
) {
    let place = node.place();
    match node.value {
        NodeValue::Null => {}
        NodeValue::List(items) => {
            for (index, item) in items.into_iter().enumerate() {
                tool(item, list, index, file, gathered);
            }
        }
        NodeValue::Map(_) => gathered
            .configuration
            .problems
            .push(node.expected("a list of entries").hint("begin each entry with '- name: …'")),
        _ => {
            let problem = Problem::error(format!("'{list}' has to be a list of entries"));
            gathered.configuration.problems.push(problem.at(place));
        }
    }
}

fn tool(
    entry: Node,
    list: &'static str,
    index: usize,
    file: &mut FileContext<'_>,
    gathered: &mut Gathered<'_>,
) {
    let mut findings = Findings::default();
    findings.duplicates(&entry, &mut file.duplicates);
    let place = entry.place();
    let name = match name(&entry) {
        Ok(name) => name,
        Err(problem) => {
            findings.problems.push(problem);
            let shown = entry
                .get_any(&NAMES)
                .and_then(|(_, n)| n.as_scalar_text().ok())
                .filter(|text| !text.trim().is_empty())
                .unwrap_or_else(|| format!("{list}[{index}]"));
            gathered.settle(&shown, FileRole::Tools, findings);
            return;
        }
    };
    let name_place = entry.get_any(&NAMES).map_or(place.clone(), |(_, n)| n.place());
    if gathered.keeps_own((&name, may_be_component(&entry, list)), &name_place, file) {
        return;
    }
    match gathered.tools.claim(&name, name_place, file.layer) {
        Claim::Granted => {}
        Claim::Shadowed => return,
        Claim::Taken(problem) => {
            findings.problems.push(problem);
            gathered.settle(&name, FileRole::Tools, findings);
            return;
        }
    }
    if is_off(&entry, &mut findings) && findings.problems.is_empty() {
        gathered.switched_off(&name, FileRole::Tools, place);
        return;
    }
    gathered.literals.inspect(&entry, &mut findings.problems);
    let Some(words) = findings.take(kind(&entry, &file.base_dir, file.kinds)) else {
        gathered.settle(&name, FileRole::Tools, findings);
        return;
    };
    let may_act =
        file.access.grant().is_some() || gathered.consent.is_harmless(FileRole::Tools, &name);
    if !may_act {
        untrusted(&entry, &name, words, file, gathered, findings);
        return;
    }
    let spec = resolve(entry, &name, words, file, gathered, &mut findings);
    if gathered.settle(&name, FileRole::Tools, findings) {
        gathered.configuration.tools.push(spec);
    }
}

/// Lists an entry that nobody agreed to yet. Of several tools that it may give, only its own name
/// is known.
fn untrusted(
    entry: &Node,
    name: &str,
    words: &KindWords,
    file: &FileContext<'_>,
    gathered: &mut Gathered<'_>,
    mut findings: Findings,
) {
    let plain = ToolName::plain(name);
    let source = Source::Internal;
    let mut definition =
        definition::resolve(entry, plain, source, words.key, words.keys, file, &mut findings);
    definition.entry = Some(origin::of_tool(entry, file));
    definition.status = ToolStatus::Untrusted;
    if gathered.settle(name, FileRole::Tools, findings) {
        let (effects, allowed_by, has_changed) = gathered.refusal_words(name);
        gathered.untrusted(UntrustedEntry {
            name: name.to_owned(),
            role: FileRole::Tools,
            kind: words.key,
            description: definition.description.clone(),
            definitions: vec![definition],
            effects,
            allowed_by,
            has_changed,
            place: entry.place(),
        });
    }
}

fn resolve(
    entry: Node,
    name: &str,
    words: &KindWords,
    file: &FileContext<'_>,
    gathered: &mut Gathered<'_>,
    findings: &mut Findings,
) -> ToolSpec {
    let written = Arc::new(entry);
    let mut entry = Arc::clone(&written);
    if let Some(expander) = file.expander()
        && Expander::concerns(&entry, words.expand)
    {
        expander.entry(Arc::make_mut(&mut entry), words.expand, &mut findings.problems);
    }
    let plain = ToolName::plain(name);
    let mut definition =
        definition::resolve(&entry, plain, Source::Internal, words.key, words.keys, file, findings);
    definition.entry = Some(origin::of_tool(&written, file));
    ToolSpec {
        definition,
        kind: words.key,
        place: entry.place(),
        entry,
        written,
        base_dir: file.base_dir.clone(),
        defaults: file.defaults.clone(),
        scopes: Arc::clone(&file.scopes),
        grant: file.access.grant().cloned(),
        seal: gathered.consent.seal(FileRole::Tools, name),
    }
}

/// Whether tools may be named after an entry of this list, as far as the entry tells.
pub fn may_be_component(entry: &Node, list: &str) -> bool {
    matches!(list, "components" | "toolkits")
        || entry.get_any(&["kind", "provider_type", "type", "openapi"]).is_some()
}

/// The name of an entry as it is written, when it has one that can be used.
pub fn written_name(entry: &Node) -> Option<String> {
    name(entry).ok()
}

fn name(entry: &Node) -> Result<String, Problem> {
    entry.as_map()?;
    let Some((_, node)) = entry.get_any(&NAMES) else {
        return Err(Problem::error("this entry has no name")
            .hint("add 'name: …'")
            .at(entry.place()));
    };
    let name = node.as_scalar_text()?;
    crate::model::check_name(&name).map_err(|why| Problem::error(why).at(node.place()))?;
    Ok(name)
}

/// The kind of an entry: by its word, else by whoever claims it.
pub fn kind<'k>(
    entry: &Node,
    base_dir: &Path,
    kinds: &'k [KindWords],
) -> Result<&'k KindWords, Problem> {
    let known = || kinds.iter().map(|k| k.key).collect::<Vec<_>>().join(", ");
    if let Some((_, node)) = entry.get_any(&["kind", "provider_type", "type"]) {
        let word = node.as_text()?;
        if let Some(found) = kinds.iter().find(|k| k.key == word || k.aliases.contains(&word)) {
            return Ok(found);
        }
        return Err(unknown(word, &known(), node.place(), kinds));
    }
    let claims: Vec<_> = kinds.iter().map(|k| ((k.claims)(entry, base_dir), k)).collect();
    let first = |wanted| claims.iter().find(|(claim, _)| *claim == wanted).map(|(_, kind)| *kind);
    if let Some(found) = first(spec::Claim::Certain).or_else(|| first(spec::Claim::Fallback)) {
        return Ok(found);
    }
    let guess = [("openapi", "openapi")]
        .into_iter()
        .find(|(key, kind)| entry.get(key).is_some() && !kinds.iter().any(|k| k.key == *kind));
    Err(match guess {
        Some((key, kind)) => {
            let place = entry.key(key).map_or_else(|| entry.place(), |k| entry.place_of(k));
            Problem::error(format!(
                "the key '{key}' makes this a tool of the kind '{kind}', which this version does not have; known kinds: {}",
                known()
            ))
            .at(place)
        }
        None => Problem::error(format!(
            "nothing says what kind of tool this is; known kinds: {}",
            known()
        ))
        .hint("add 'command', 'module' and 'function', or 'kind'")
        .at(entry.place()),
    })
}

fn unknown(word: &str, known: &str, place: Place, kinds: &[KindWords]) -> Problem {
    let message = if LATER.contains(&word) {
        format!("the kind '{word}' is not in this version; known kinds: {known}")
    } else {
        format!("unknown kind '{word}'; known kinds: {known}")
    };
    let mut problem = Problem::error(message).at(place);
    let words = kinds.iter().flat_map(|k| std::iter::once(k.key).chain(k.aliases.iter().copied()));
    if let Some(meant) = crate::config::keys::suggestion(word, words) {
        problem = problem.hint(format!("did you mean '{meant}'?"));
    }
    problem
}
