//! Files of tools: lists of entries → [`ToolSpec`]s.

use std::path::Path;
use std::sync::Arc;

use super::{Claim, FileContext, Findings, Gathered, definition, is_off, origin};
use crate::config::expand::Expander;
use crate::config::keys::{TOOL, canonical};
use crate::config::node::{Node, NodeValue};
use crate::config::spec::{self, FileRole, KindWords, Site, ToolSpec, Trust};
use crate::config::trust;
use crate::model::{Place, Problem, Source, ToolName};

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
    let spec = findings
        .take(kind(&entry, &file.base_dir, file.kinds))
        .map(|words| resolve(entry, &name, words, file, gathered, &mut findings));
    if gathered.settle(&name, FileRole::Tools, findings) {
        gathered.configuration.tools.extend(spec);
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
    // Trust is bound to what the file says, not to what variables hold today.
    let ask = words.starts.filter(|_| !file.trusted);
    let written = Arc::new(entry);
    let mut entry = Arc::clone(&written);
    if Expander::concerns(&entry, words.expand) {
        file.expander().entry(Arc::make_mut(&mut entry), words.expand, &mut findings.problems);
    }
    let plain = ToolName::plain(name);
    let mut definition =
        definition::resolve(&entry, plain, Source::Internal, words.key, words.keys, file, findings);
    definition.entry = Some(origin::of_tool(&written, file));
    let trust = match ask {
        Some(starts) => {
            let site = Site {
                base_dir: &file.base_dir,
                environment: file.environment,
                written: &written,
                scopes: &file.scopes,
                defaults: file.written_defaults.as_ref(),
            };
            let lines = starts(&entry, &site);
            if lines.is_empty() {
                Trust::Trusted
            } else {
                let program = program(&entry).map(|argv| trust::program_lines(&argv, file));
                let lines = [lines, program.unwrap_or_default()].concat();
                let said = said_by_kind(&written);
                let parts = [&["tool".to_owned(), words.key.to_owned(), said], &lines[..]].concat();
                gathered.gate.decide(name, file, &parts, &lines)
            }
        }
        None => Trust::Trusted,
    };
    ToolSpec {
        definition,
        kind: words.key,
        place: entry.place(),
        entry,
        written,
        base_dir: file.base_dir.clone(),
        defaults: file.defaults.clone(),
        scopes: Arc::clone(&file.scopes),
        trust,
    }
}

/// The keys of an entry that are not about its description, as text.
fn said_by_kind(entry: &Node) -> String {
    let own: serde_json::Map<_, _> = entry
        .entries()
        .iter()
        .filter(|(key, _)| canonical(TOOL, &key.text).is_none_or(|word| word == "kind"))
        .map(|(key, value)| (key.text.clone(), value.to_json()))
        .collect();
    serde_json::Value::Object(own).to_string()
}

/// The argv of an entry that names one.
fn program(entry: &Node) -> Option<Vec<String>> {
    let words = |key| entry.get(key).and_then(|node| node.as_texts().ok()).unwrap_or_default();
    let argv = [words("command"), words("args")].concat();
    (entry.get("command").is_some() && !argv.is_empty()).then_some(argv)
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
fn kind<'k>(
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
