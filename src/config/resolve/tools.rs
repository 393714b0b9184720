//! Resolving lists of tool entries to [`ToolSpec`]s.

use std::sync::Arc;

use super::{ConfigurationBuilder, FileContext, definition, origin};
use crate::config::consent::{Expander, kind_of};
use crate::config::credentials::{CredentialTarget, EntryCredentials};
use crate::config::entries;
use crate::config::node::{ConfigNode, NodeValue};
use crate::config::spec::{
    FileRole, INPUT_SCHEMA_KEYS, KindDescriptor, OUTPUT_SCHEMA_KEYS, ToolSpec,
};
use crate::model::{ToolDefinition, ToolName, ToolSource, ToolStatus};

const UNKNOWN_KIND: &str = "unknown";

/// Resolves one list of entries: `tools`, `toolkits` or `components`.
pub fn list(
    node: ConfigNode,
    list: &str,
    file: &mut FileContext<'_>,
    builder: &mut ConfigurationBuilder,
) {
    file.diagnostics.push(match node.value {
        NodeValue::Null => return,
        NodeValue::List(items) => {
            builder.configuration.tools.reserve_exact(items.len());
            for (index, item) in Arc::unwrap_or_clone(items).into_iter().enumerate() {
                tool(item, list, index, file, builder);
            }
            return;
        }
        NodeValue::Map(_) => {
            node.expected("a list of entries").with_hint("start each entry with '- name: …'")
        }
        _ => node.error(format!("'{list}' must be a list of entries")),
    });
}

fn tool(
    entry: ConfigNode,
    list: &str,
    index: usize,
    file: &mut FileContext<'_>,
    builder: &mut ConfigurationBuilder,
) {
    let role = FileRole::Tools;
    builder.begin_entry(&entry, file);
    let location = entry.location();
    let named = entry.get_any(&entries::NAMES).map(|(_, node)| node);
    let Some(name) = file.diagnostics.ok(entries::name(&entry)) else {
        let shown = named.and_then(|name| name.as_scalar_text().ok());
        let shown = shown.filter(|text| !text.trim().is_empty());
        let shown = shown.unwrap_or_else(|| format!("{list}[{index}]"));
        builder.report_entry(&shown, role, file);
        return;
    };
    let claim = (name.as_str(), role, entries::may_be_component(&entry, list));
    let name_location = named.unwrap_or(&entry).location();
    if !builder.admits(claim, &name_location, file) {
        file.diagnostics.take();
        return;
    }
    if entries::is_off(&entry) && file.diagnostics.is_empty() {
        builder.add_switched_off(&name, role, location, Vec::new());
        return;
    }
    builder.literals.inspect(&entry, &file.diagnostics);
    let kind = kind_of(&entry, &file.base_dir, file.shared.kinds);
    let Some(kind) = file.diagnostics.ok(kind) else {
        if let Some(disabled) = builder.report_entry(&name, role, file) {
            disabled.definitions = vec![define(&entry, &name, None, file)];
            // Errors in the other keys are reported once the allowed keys are known.
            file.diagnostics.take();
        }
        return;
    };
    if file.grant.is_none() && !file.shared.consent.is_harmless(role, &name) {
        // If it may provide several tools, only its own name is known.
        let mut definition = define(&entry, &name, Some(kind), file);
        definition.entry = Some(origin::of_tool(&entry, file));
        definition.status = ToolStatus::Untrusted;
        let description = definition.description.clone();
        let listed = (name.as_str(), role, kind.key);
        builder.add_untrusted(listed, location, description, vec![definition], file);
        return;
    }
    let spec = resolve(entry, &name, kind, file, builder);
    match builder.report_entry(&name, role, file) {
        None => builder.configuration.tools.push(spec),
        Some(disabled) => disabled.definitions = vec![spec.definition],
    }
}

/// What the keys say that every kind has.
fn define(
    entry: &ConfigNode,
    name: &str,
    kind: Option<&KindDescriptor>,
    file: &FileContext<'_>,
) -> ToolDefinition {
    let name = ToolName::plain(name);
    let keys: Vec<&str> = kind.into_iter().flat_map(KindDescriptor::spellings).collect();
    let kind = kind.map_or(UNKNOWN_KIND, |kind| kind.key);
    definition::resolve(entry, name, ToolSource::Internal, kind, &keys, file)
}

fn resolve(
    entry: ConfigNode,
    name: &str,
    kind: &KindDescriptor,
    file: &FileContext<'_>,
    builder: &ConfigurationBuilder,
) -> ToolSpec {
    let mut written = entry;
    let mut expanded = None;
    if let Some(expander) = file.expander()
        && Expander::has_references_in(&written, kind.expand)
    {
        let entry = expanded.insert(written.clone());
        expander.entry(entry, kind.expand, &file.diagnostics);
    }
    let mut credentials = Vec::new();
    if written.get("credentials").is_some() {
        let target = if kind.has_key("headers") {
            CredentialTarget::Requests
        } else if kind.has_key("env") {
            CredentialTarget::Program
        } else {
            CredentialTarget::Nothing
        };
        let entry = expanded.get_or_insert_with(|| written.clone());
        let named = EntryCredentials { entry, written: Some(&mut written), target, file };
        credentials = named.apply(&builder.credentials);
    }
    let mut definition = define(expanded.as_ref().unwrap_or(&written), name, Some(kind), file);
    definition.entry = Some(origin::of_tool(&written, file));
    definition.credentials = credentials.into();
    let location = written.location();
    for entry in expanded.iter_mut().chain([&mut written]) {
        drop_schemas(entry);
    }
    let unexpanded = Arc::new(written);
    ToolSpec {
        definition,
        kind: kind.key,
        location,
        entry: expanded.map_or_else(|| Arc::clone(&unexpanded), Arc::new),
        unexpanded,
        base_dir: file.base_dir.clone(),
        defaults: file.defaults.clone(),
        scopes: Arc::clone(&file.scopes),
        grant: file.grant.clone(),
        seal: file.shared.consent.seal(FileRole::Tools, name),
    }
}

/// Puts the schema of anything in place of those that the definition has: they would be the most of a
/// large catalogue.
fn drop_schemas(entry: &mut ConfigNode) {
    let names_schema =
        |key: &str| INPUT_SCHEMA_KEYS.contains(&key) || OUTPUT_SCHEMA_KEYS.contains(&key);
    for (key, value) in entry.entries_mut().into_iter().flatten() {
        if names_schema(&key.text) && !value.entries().is_empty() {
            value.value = NodeValue::Bool(true);
        }
    }
}
