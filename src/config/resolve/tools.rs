//! Resolving lists of tool entries to [`ToolSpec`]s.

use std::sync::Arc;

use super::{ConfigurationBuilder, FileContext, definition, origin};
use crate::config::consent::{Expander, kind_of};
use crate::config::credentials::{CredentialTarget, EntryCredentials};
use crate::config::entries;
use crate::config::node::{ConfigNode, NodeValue};
use crate::config::spec::{FileRole, KindDescriptor, ToolSpec};
use crate::model::{ToolDefinition, ToolName, ToolSource, ToolStatus};

const UNKNOWN_KIND: &str = "unknown";

/// Resolves one list of entries: `tools`, `toolkits` or `components`.
pub fn list(
    node: &ConfigNode,
    list: &str,
    file: &mut FileContext<'_>,
    builder: &mut ConfigurationBuilder,
) {
    let diagnostic = match &node.value {
        NodeValue::Null => return,
        NodeValue::List(items) => {
            for (index, item) in items.iter().enumerate() {
                tool(item, list, index, file, builder);
            }
            return;
        }
        NodeValue::Map(_) => {
            node.expected("a list of entries").with_hint("start each entry with '- name: …'")
        }
        _ => node.error(format!("'{list}' must be a list of entries")),
    };
    file.diagnostics.push(diagnostic);
}

fn tool(
    entry: &ConfigNode,
    list: &str,
    index: usize,
    file: &mut FileContext<'_>,
    builder: &mut ConfigurationBuilder,
) {
    let role = FileRole::Tools;
    builder.begin_entry(entry, file);
    let location = entry.location();
    let named = entry.get_any(&entries::NAMES).map(|(_, node)| node);
    let Some(name) = file.diagnostics.ok(entries::name(entry)) else {
        let shown = named.and_then(|name| name.as_scalar_text().ok());
        let shown = shown.filter(|text| !text.trim().is_empty());
        let shown = shown.unwrap_or_else(|| format!("{list}[{index}]"));
        builder.report_entry(&shown, role, file);
        return;
    };
    let claim = (name.as_str(), role, entries::may_be_component(entry, list));
    let name_location = named.unwrap_or(entry).location();
    if !builder.admits(claim, &name_location, file) {
        file.diagnostics.take();
        return;
    }
    if entries::is_off(entry) && file.diagnostics.is_empty() {
        builder.add_switched_off(&name, role, location, Vec::new());
        return;
    }
    builder.literals.inspect(entry, &file.diagnostics);
    let kind = kind_of(entry, &file.base_dir, file.shared.kinds);
    let Some(kind) = file.diagnostics.ok(kind) else {
        if let Some(disabled) = builder.report_entry(&name, role, file) {
            disabled.definitions = vec![define(entry, &name, None, file)];
            // Errors in the other keys are reported once the allowed keys are known.
            file.diagnostics.take();
        }
        return;
    };
    if file.grant.is_none() && !file.shared.consent.is_harmless(role, &name) {
        // If it may provide several tools, only its own name is known.
        let mut definition = define(entry, &name, Some(kind), file);
        definition.entry = Some(origin::of_tool(entry, file));
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
    entry: &ConfigNode,
    name: &str,
    kind: &KindDescriptor,
    file: &FileContext<'_>,
    builder: &ConfigurationBuilder,
) -> ToolSpec {
    let mut written = Arc::new(entry.clone());
    let mut entry = Arc::clone(&written);
    if let Some(expander) = file.expander()
        && Expander::has_references_in(&entry, kind.expand)
    {
        expander.entry(Arc::make_mut(&mut entry), kind.expand, &file.diagnostics);
    }
    let mut credentials = Vec::new();
    if entry.get("credentials").is_some() {
        let target = if kind.has_key("headers") {
            CredentialTarget::Requests
        } else if kind.has_key("env") {
            CredentialTarget::Program
        } else {
            CredentialTarget::Nothing
        };
        let named = EntryCredentials {
            entry: Arc::make_mut(&mut entry),
            written: Some(Arc::make_mut(&mut written)),
            target,
            file,
        };
        credentials = named.apply(&builder.credentials);
    }
    let mut definition = define(&entry, name, Some(kind), file);
    definition.entry = Some(origin::of_tool(&written, file));
    definition.credentials = credentials.into();
    ToolSpec {
        definition,
        kind: kind.key,
        location: entry.location(),
        entry,
        unexpanded: written,
        base_dir: file.base_dir.clone(),
        defaults: file.defaults.clone(),
        scopes: Arc::clone(&file.scopes),
        grant: file.grant.clone(),
        seal: file.shared.consent.seal(FileRole::Tools, name),
    }
}
