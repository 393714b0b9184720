//! What an entry of `mcp.yaml` would do, derived from the entry as written.

use super::effect::{EntryEffect, EntrySite, ProgramEffect};
use crate::config::node::ConfigNode;
use crate::config::resolve::servers::ServerKeys;
use crate::config::spec::DriftPolicy;
use crate::config::typed::{self, Either};

pub(super) fn effects(entry: &ConfigNode, site: &EntrySite<'_>) -> Vec<EntryEffect> {
    let other = |text: &str| EntryEffect::Other(text.to_owned());
    let Some(keys) = typed::peek::<ServerKeys>(entry) else {
        return vec![other("does not say how to reach it")];
    };
    let mut effects = Vec::new();
    let watched = keys.watched().map(|patterns| patterns.0.join(" or "));
    if keys.program().is_some() {
        let argv = keys.argv(|path| site.path(path));
        let is_path = argv.first().is_some_and(|word| word.contains('/'));
        let env = keys.env.unwrap_or_default().into_iter();
        effects.push(EntryEffect::Runs(ProgramEffect {
            argv,
            cwd: keys.cwd,
            env: env.map(|(name, value)| (name, value.value.0)).collect(),
            found_from: is_path.then(|| site.base_dir.to_path_buf()),
            usual_cwd: site.base_dir.to_path_buf(),
        }));
    }
    if let Some(patterns) = watched {
        effects.push(EntryEffect::Other(format!("restarts it when {patterns} changes")));
    }
    effects.extend(keys.env_file.map(|path| EntryEffect::EnvFile(path.value)));
    let files = keys.tls.iter().flat_map(|tls| tls.files());
    effects.extend(files.map(EntryEffect::Reads));
    effects.extend(keys.url.map(|url| EntryEffect::Contacts(origin(&url))));
    for login in [keys.auth, keys.oauth].into_iter().flatten() {
        if let Either::Nested(login) = login.value {
            let addresses = login.addresses().into_iter();
            effects.extend(addresses.map(|address| EntryEffect::Contacts(origin(&address))));
        }
    }
    if let Some(node) = entry.get("roots").filter(|node| !node.is_null()) {
        effects.push(EntryEffect::Other(format!("sends it the roots {}", node.to_json())));
    }
    if keys.routing_weight.is_some() {
        effects.push(other("may answer bare tool names alongside other servers"));
    }
    let loosens = matches!(keys.dev, Some(Either::Short(true)))
        || keys.drift.is_some_and(|drift| drift != DriftPolicy::Block);
    if loosens {
        effects.push(other("does not block tools that differ from their pins"));
    }
    if let Some(permissions) = keys.permissions {
        let lines = permissions.value.permissions().lines();
        effects.push(EntryEffect::Other(format!("may use only {}", lines.join("; "))));
    }
    if effects.is_empty() {
        // It does not say how to reach it: the error is reported when the entry is resolved.
        effects.push(other("does not say how to reach it"));
    }
    effects
}

/// The part of an address that says who is contacted: scheme, host and port, or the text as written
/// if it depends on a reference.
pub(super) fn origin(written: &str) -> String {
    match url::Url::parse(written) {
        Ok(url) if url.has_host() && !written.contains("${") => url.origin().ascii_serialization(),
        _ => written.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;
    use crate::config::environment::FixedEnvironment;
    use crate::config::node::SourceText;
    use crate::config::parse::parse;

    #[test]
    fn a_server_whose_changes_do_not_block_says_so() {
        let (base, scopes) = (Path::new("/p"), BTreeMap::new());
        let environment = FixedEnvironment::default();
        let site = EntrySite::new(base, base, &scopes, None, &environment);
        for (keys, expected) in [
            ("", false),
            (", dev: true", true),
            (", dev: false", false),
            (", drift: warn", true),
            (", drift: allow", true),
            (", drift: block", false),
            (", dev: true, drift: block", true),
        ] {
            let text = format!("{{ command: x{keys} }}");
            let entry = parse(&SourceText::new("f.yaml", &text), &text).unwrap().root;
            let line = "does not block tools that differ from their pins".to_owned();
            let says = effects(&entry, &site).contains(&EntryEffect::Other(line));
            assert_eq!(says, expected, "{text}");
        }
    }
}
