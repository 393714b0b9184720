//! Resolving lists of tool entries to [`ToolSpec`]s.

use std::sync::Arc;

use super::{ConfigurationBuilder, FileContext, definition, ok_or_report, origin};
use crate::config::consent::{Expander, kind_of};
use crate::config::credentials::{CredentialTarget, EntryCredentials};
use crate::config::entries;
use crate::config::node::{ConfigNode, NodeValue};
use crate::config::spec::{FileRole, KindDescriptor, ToolSpec};
use crate::model::{Diagnostic, ToolDefinition, ToolName, ToolSource, ToolStatus};

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
    builder.configuration.diagnostics.push(diagnostic);
}

fn tool(
    entry: &ConfigNode,
    list: &str,
    index: usize,
    file: &mut FileContext<'_>,
    builder: &mut ConfigurationBuilder,
) {
    let role = FileRole::Tools;
    let mut diagnostics = file.take_duplicates(entry);
    let location = entry.location();
    let named = entry.get_any(&entries::NAMES).map(|(_, node)| node);
    let Some(name) = ok_or_report(&mut diagnostics, entries::name(entry)) else {
        let shown = named.and_then(|name| name.as_scalar_text().ok());
        let shown = shown.filter(|text| !text.trim().is_empty());
        let shown = shown.unwrap_or_else(|| format!("{list}[{index}]"));
        builder.report_entry(&shown, role, diagnostics);
        return;
    };
    let claim = (name.as_str(), role, entries::may_be_component(entry, list));
    let name_location = named.unwrap_or(entry).location();
    if !builder.admits(claim, &name_location, file, &mut diagnostics) {
        return;
    }
    if entries::is_off(entry) && diagnostics.is_empty() {
        builder.add_switched_off(&name, role, location, Vec::new());
        return;
    }
    builder.literals.inspect(entry, &mut diagnostics);
    let kind = kind_of(entry, &file.base_dir, file.shared.kinds);
    let Some(kind) = ok_or_report(&mut diagnostics, kind) else {
        // Errors in the other keys are reported once the allowed keys are known.
        let definition = define(entry, &name, None, file, &mut Vec::new());
        if let Some(disabled) = builder.report_entry(&name, role, diagnostics) {
            disabled.definitions = vec![definition];
        }
        return;
    };
    if file.grant.is_none() && !file.shared.consent.is_harmless(role, &name) {
        // If it may provide several tools, only its own name is known.
        let mut definition = define(entry, &name, Some(kind), file, &mut diagnostics);
        definition.entry = Some(origin::of_tool(entry, file));
        definition.status = ToolStatus::Untrusted;
        let description = definition.description.clone();
        let listed = (name.as_str(), role, kind.key);
        builder.add_untrusted(listed, location, description, vec![definition], file, diagnostics);
        return;
    }
    let spec = resolve(entry, &name, kind, file, builder, &mut diagnostics);
    match builder.report_entry(&name, role, diagnostics) {
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
    diagnostics: &mut Vec<Diagnostic>,
) -> ToolDefinition {
    let name = ToolName::plain(name);
    let keys: Vec<&str> = kind.into_iter().flat_map(KindDescriptor::spellings).collect();
    let kind = kind.map_or(UNKNOWN_KIND, |kind| kind.key);
    definition::resolve(entry, name, ToolSource::Internal, kind, &keys, file, diagnostics)
}

fn resolve(
    entry: &ConfigNode,
    name: &str,
    kind: &KindDescriptor,
    file: &FileContext<'_>,
    builder: &mut ConfigurationBuilder,
    diagnostics: &mut Vec<Diagnostic>,
) -> ToolSpec {
    let mut written = Arc::new(entry.clone());
    let mut entry = Arc::clone(&written);
    if let Some(expander) = file.expander()
        && Expander::has_references_in(&entry, kind.expand)
    {
        expander.entry(Arc::make_mut(&mut entry), kind.expand, diagnostics);
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
        credentials = named.apply(&builder.credentials, diagnostics);
    }
    let mut definition = define(&entry, name, Some(kind), file, diagnostics);
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
