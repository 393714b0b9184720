//! Resolving lists of tool entries to [`ToolSpec`]s.

use std::sync::Arc;

use super::{
    ConfigurationBuilder, FileContext, NameClaim, definition, ok_or_report, origin, take_duplicates,
};
use crate::config::consent::{Expander, kind_of};
use crate::config::credentials::{CredentialTarget, EntryCredentials};
use crate::config::entries;
use crate::config::node::{ConfigNode, NodeValue};
use crate::config::spec::{FileRole, KindDescriptor, ToolSpec};
use crate::model::{Diagnostic, ToolName, ToolSource, ToolStatus};

const UNKNOWN_KIND: &str = "unknown";

/// Resolves one list of entries: `tools`, `toolkits` or `components`.
pub fn list(
    node: &ConfigNode,
    list: &'static str,
    file: &mut FileContext<'_>,
    builder: &mut ConfigurationBuilder<'_>,
) {
    let location = node.location();
    match &node.value {
        NodeValue::Null => {}
        NodeValue::List(items) => {
            for (index, item) in items.iter().enumerate() {
                tool(item, list, index, file, builder);
            }
        }
        NodeValue::Map(_) => builder.configuration.diagnostics.push(
            node.expected("a list of entries").with_hint("start each entry with '- name: …'"),
        ),
        _ => {
            let diagnostic = Diagnostic::error(format!("'{list}' must be a list of entries"));
            builder.configuration.diagnostics.push(diagnostic.with_location(location));
        }
    }
}

fn tool(
    entry: &ConfigNode,
    list: &'static str,
    index: usize,
    file: &mut FileContext<'_>,
    builder: &mut ConfigurationBuilder<'_>,
) {
    let mut diagnostics = Vec::new();
    take_duplicates(entry, &mut file.duplicates, &mut diagnostics);
    let location = entry.location();
    let name = match entries::name(entry) {
        Ok(name) => name,
        Err(diagnostic) => {
            diagnostics.push(diagnostic);
            let shown = entry
                .get_any(&entries::NAMES)
                .and_then(|(_, n)| n.as_scalar_text().ok())
                .filter(|text| !text.trim().is_empty())
                .unwrap_or_else(|| format!("{list}[{index}]"));
            builder.report_entry(&shown, FileRole::Tools, diagnostics);
            return;
        }
    };
    let name_location =
        entry.get_any(&entries::NAMES).map_or(location.clone(), |(_, n)| n.location());
    if builder.is_users_name((&name, entries::may_be_component(entry, list)), &name_location, file)
    {
        return;
    }
    match builder.tools.claim(&name, name_location, file.layer) {
        NameClaim::Claimed => {}
        NameClaim::Shadowed => return,
        NameClaim::Taken(diagnostic) => {
            diagnostics.push(diagnostic);
            builder.report_entry(&name, FileRole::Tools, diagnostics);
            return;
        }
    }
    if entries::is_off(entry) && diagnostics.is_empty() {
        builder.add_switched_off(&name, FileRole::Tools, location);
        return;
    }
    builder.literals.inspect(entry, &mut diagnostics);
    let Some(kind) = ok_or_report(&mut diagnostics, kind_of(entry, &file.base_dir, file.kinds))
    else {
        let plain = ToolName::plain(&name);
        // Errors in the other keys are reported once the allowed keys are known.
        let mut untold = Vec::new();
        let source = ToolSource::Internal;
        let definition =
            definition::resolve(entry, plain, source, UNKNOWN_KIND, &[], file, &mut untold);
        builder.report_entry(&name, FileRole::Tools, diagnostics);
        builder.record_definitions(vec![definition]);
        return;
    };
    let may_act =
        file.access.grant().is_some() || builder.consent.is_harmless(FileRole::Tools, &name);
    if !may_act {
        untrusted(entry, &name, kind, file, builder, diagnostics);
        return;
    }
    let spec = resolve(entry, &name, kind, file, builder, &mut diagnostics);
    if builder.report_entry(&name, FileRole::Tools, diagnostics) {
        builder.configuration.tools.push(spec);
    } else {
        builder.record_definitions(vec![spec.definition]);
    }
}

/// Lists an untrusted entry. If it may provide several tools, only its own name is known.
fn untrusted(
    entry: &ConfigNode,
    name: &str,
    kind: &KindDescriptor,
    file: &FileContext<'_>,
    builder: &mut ConfigurationBuilder<'_>,
    mut diagnostics: Vec<Diagnostic>,
) {
    let plain = ToolName::plain(name);
    let source = ToolSource::Internal;
    let mut definition = definition::resolve(
        entry,
        plain,
        source,
        kind.key,
        &kind.spellings().collect::<Vec<_>>(),
        file,
        &mut diagnostics,
    );
    definition.entry = Some(origin::of_tool(entry, file));
    definition.status = ToolStatus::Untrusted;
    let description = definition.description.clone();
    let listed = (name, FileRole::Tools, kind.key);
    builder.add_untrusted(listed, entry.location(), description, vec![definition], diagnostics);
}

fn resolve(
    entry: &ConfigNode,
    name: &str,
    kind: &KindDescriptor,
    file: &FileContext<'_>,
    builder: &mut ConfigurationBuilder<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> ToolSpec {
    let written = Arc::new(entry.clone());
    let mut entry = Arc::clone(&written);
    if let Some(expander) = file.expander()
        && Expander::has_references_in(&entry, kind.expand)
    {
        expander.entry(Arc::make_mut(&mut entry), kind.expand, diagnostics);
    }
    let mut written = written;
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
            layer: file.layer,
        };
        credentials = named.apply(&builder.credentials, diagnostics);
    }
    let plain = ToolName::plain(name);
    let mut definition = definition::resolve(
        &entry,
        plain,
        ToolSource::Internal,
        kind.key,
        &kind.spellings().collect::<Vec<_>>(),
        file,
        diagnostics,
    );
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
        grant: file.access.grant().cloned(),
        seal: builder.consent.seal(FileRole::Tools, name),
    }
}
