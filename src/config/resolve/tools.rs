//! Files of tools: lists of entries → [`ToolSpec`]s.

use std::path::Path;
use std::sync::Arc;

use super::{
    ConfigurationBuilder, EntryDiagnostics, FileContext, NameClaim, definition, is_off, origin,
};
use crate::config::expand::Expander;
use crate::config::node::{ConfigNode, NodeValue};
use crate::config::spec::{self, FileRole, KindDescriptor, ToolSpec, UntrustedEntry};
use crate::model::{Diagnostic, SourceLocation, ToolName, ToolSource, ToolStatus};

/// What names an entry, the best first: one tool of a toolkit may go by the name it has there.
const NAMES: [&str; 3] = ["name", "tool_name", "original_tool_name"];

/// Kinds that other builds have, to tell a typing error from a missing ability.
const UNAVAILABLE_KINDS: [&str; 1] = ["openapi"];

/// Resolves one list of entries: `tools`, `toolkits` or `components`.
pub fn list(
    node: ConfigNode,
    list: &'static str,
    file: &mut FileContext<'_>,
    builder: &mut ConfigurationBuilder<'_>,
) {
    let place = node.location();
    match node.value {
        NodeValue::Null => {}
        NodeValue::List(items) => {
            for (index, item) in items.into_iter().enumerate() {
                tool(item, list, index, file, builder);
            }
        }
        NodeValue::Map(_) => builder.configuration.diagnostics.push(
            node.expected("a list of entries").with_hint("begin each entry with '- name: …'"),
        ),
        _ => {
            let diagnostic = Diagnostic::error(format!("'{list}' has to be a list of entries"));
            builder.configuration.diagnostics.push(diagnostic.with_location(place));
        }
    }
}

fn tool(
    entry: ConfigNode,
    list: &'static str,
    index: usize,
    file: &mut FileContext<'_>,
    builder: &mut ConfigurationBuilder<'_>,
) {
    let mut entry_diagnostics = EntryDiagnostics::default();
    entry_diagnostics.duplicates(&entry, &mut file.duplicates);
    let place = entry.location();
    let name = match name(&entry) {
        Ok(name) => name,
        Err(diagnostic) => {
            entry_diagnostics.diagnostics.push(diagnostic);
            let shown = entry
                .get_any(&NAMES)
                .and_then(|(_, n)| n.as_scalar_text().ok())
                .filter(|text| !text.trim().is_empty())
                .unwrap_or_else(|| format!("{list}[{index}]"));
            builder.report_entry(&shown, FileRole::Tools, entry_diagnostics);
            return;
        }
    };
    let name_place = entry.get_any(&NAMES).map_or(place.clone(), |(_, n)| n.location());
    if builder.is_users_name((&name, may_be_component(&entry, list)), &name_place, file) {
        return;
    }
    match builder.tools.claim(&name, name_place, file.layer) {
        NameClaim::Claimed => {}
        NameClaim::Shadowed => return,
        NameClaim::Taken(diagnostic) => {
            entry_diagnostics.diagnostics.push(diagnostic);
            builder.report_entry(&name, FileRole::Tools, entry_diagnostics);
            return;
        }
    }
    if is_off(&entry, &mut entry_diagnostics) && entry_diagnostics.diagnostics.is_empty() {
        builder.add_switched_off(&name, FileRole::Tools, place);
        return;
    }
    builder.literals.inspect(&entry, &mut entry_diagnostics.diagnostics);
    let Some(words) = entry_diagnostics.ok_or_report(kind(&entry, &file.base_dir, file.kinds))
    else {
        builder.report_entry(&name, FileRole::Tools, entry_diagnostics);
        return;
    };
    let may_act =
        file.access.grant().is_some() || builder.consent.is_harmless(FileRole::Tools, &name);
    if !may_act {
        untrusted(&entry, &name, words, file, builder, entry_diagnostics);
        return;
    }
    let spec = resolve(entry, &name, words, file, builder, &mut entry_diagnostics);
    if builder.report_entry(&name, FileRole::Tools, entry_diagnostics) {
        builder.configuration.tools.push(spec);
    }
}

/// Lists an entry that nobody agreed to yet. Of several tools that it may give, only its own name
/// is known.
fn untrusted(
    entry: &ConfigNode,
    name: &str,
    words: &KindDescriptor,
    file: &FileContext<'_>,
    builder: &mut ConfigurationBuilder<'_>,
    mut entry_diagnostics: EntryDiagnostics,
) {
    let plain = ToolName::plain(name);
    let source = ToolSource::Internal;
    let mut definition = definition::resolve(
        entry,
        plain,
        source,
        words.key,
        words.keys,
        file,
        &mut entry_diagnostics,
    );
    definition.entry = Some(origin::of_tool(entry, file));
    definition.status = ToolStatus::Untrusted;
    if builder.report_entry(name, FileRole::Tools, entry_diagnostics) {
        let (effects, allowed_by, has_changed) = builder.refusal_details(name);
        builder.add_untrusted(UntrustedEntry {
            name: name.to_owned(),
            role: FileRole::Tools,
            kind: words.key,
            description: definition.description.clone(),
            definitions: vec![definition],
            effects,
            trust_command: allowed_by,
            has_changed,
            location: entry.location(),
        });
    }
}

fn resolve(
    entry: ConfigNode,
    name: &str,
    words: &KindDescriptor,
    file: &FileContext<'_>,
    builder: &mut ConfigurationBuilder<'_>,
    entry_diagnostics: &mut EntryDiagnostics,
) -> ToolSpec {
    let written = Arc::new(entry);
    let mut entry = Arc::clone(&written);
    if let Some(expander) = file.expander()
        && Expander::has_references_in(&entry, words.expand)
    {
        expander.entry(Arc::make_mut(&mut entry), words.expand, &mut entry_diagnostics.diagnostics);
    }
    let plain = ToolName::plain(name);
    let mut definition = definition::resolve(
        &entry,
        plain,
        ToolSource::Internal,
        words.key,
        words.keys,
        file,
        entry_diagnostics,
    );
    definition.entry = Some(origin::of_tool(&written, file));
    ToolSpec {
        definition,
        kind: words.key,
        location: entry.location(),
        entry,
        unexpanded: written,
        base_dir: file.base_dir.clone(),
        defaults: file.defaults.clone(),
        scopes: Arc::clone(&file.scopes),
        grant: file.access.grant().cloned(),
        seal: builder.consent.seal(FileRole::Tools, name),
    }
}

/// Whether tools may be named after an entry of this list, as far as the entry tells.
pub fn may_be_component(entry: &ConfigNode, list: &str) -> bool {
    matches!(list, "components" | "toolkits")
        || entry.get_any(&["kind", "provider_type", "type", "openapi"]).is_some()
}

/// The name of an entry as it is written, when it has one that can be used.
pub fn written_name(entry: &ConfigNode) -> Option<String> {
    name(entry).ok()
}

fn name(entry: &ConfigNode) -> Result<String, Diagnostic> {
    entry.as_map()?;
    let Some((_, node)) = entry.get_any(&NAMES) else {
        return Err(Diagnostic::error("this entry has no name")
            .with_hint("add 'name: …'")
            .with_location(entry.location()));
    };
    let name = node.as_scalar_text()?;
    crate::model::check_name(&name)
        .map_err(|why| Diagnostic::error(why).with_location(node.location()))?;
    Ok(name)
}

/// The kind of an entry: by its word, else by whoever claims it.
pub fn kind<'k>(
    entry: &ConfigNode,
    base_dir: &Path,
    kinds: &'k [KindDescriptor],
) -> Result<&'k KindDescriptor, Diagnostic> {
    let known = || kinds.iter().map(|k| k.key).collect::<Vec<_>>().join(", ");
    if let Some((_, node)) = entry.get_any(&["kind", "provider_type", "type"]) {
        let word = node.as_text()?;
        if let Some(found) = kinds.iter().find(|k| k.key == word || k.aliases.contains(&word)) {
            return Ok(found);
        }
        return Err(unknown(word, &known(), node.location(), kinds));
    }
    let claims: Vec<_> = kinds.iter().map(|k| ((k.claims)(entry, base_dir), k)).collect();
    let first = |wanted| claims.iter().find(|(claim, _)| *claim == wanted).map(|(_, kind)| *kind);
    if let Some(found) =
        first(spec::KindClaim::Certain).or_else(|| first(spec::KindClaim::Fallback))
    {
        return Ok(found);
    }
    let guess = [("openapi", "openapi")]
        .into_iter()
        .find(|(key, kind)| entry.get(key).is_some() && !kinds.iter().any(|k| k.key == *kind));
    Err(match guess {
        Some((key, kind)) => {
            let place = entry.key(key).map_or_else(|| entry.location(), |k| entry.location_of(k));
            Diagnostic::error(format!(
                "the key '{key}' makes this a tool of the kind '{kind}', which this version does not have; known kinds: {}",
                known()
            ))
            .with_location(place)
        }
        None => Diagnostic::error(format!(
            "nothing says what kind of tool this is; known kinds: {}",
            known()
        ))
        .with_hint("add 'command', 'module' and 'function', or 'kind'")
        .with_location(entry.location()),
    })
}

fn unknown(word: &str, known: &str, place: SourceLocation, kinds: &[KindDescriptor]) -> Diagnostic {
    let message = if UNAVAILABLE_KINDS.contains(&word) {
        format!("the kind '{word}' is not in this version; known kinds: {known}")
    } else {
        format!("unknown kind '{word}'; known kinds: {known}")
    };
    let mut diagnostic = Diagnostic::error(message).with_location(place);
    let words = kinds.iter().flat_map(|k| std::iter::once(k.key).chain(k.aliases.iter().copied()));
    if let Some(meant) = crate::config::keys::suggestion(word, words) {
        diagnostic = diagnostic.with_hint(format!("did you mean '{meant}'?"));
    }
    diagnostic
}
