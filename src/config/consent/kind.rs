//! The kinds of internal tools, and which kind an entry is of.

use std::path::{Path, PathBuf};

use super::effect::{EntryEffect, EntrySite};
use crate::config::entries;
use crate::config::node::ConfigNode;
use crate::config::resolve::definition::ToolKeys;
use crate::config::typed::{Keys, names};
use crate::model::Diagnostic;

/// The kind that some builds are without, and the key that determines it.
const OPENAPI: &str = "openapi";

/// Keys that determine the kind of an entry, for suggestions when one is misspelled.
const DECIDING_KEYS: [&str; 10] = [
    "kind",
    "command",
    "module",
    "function",
    "endpoint_url",
    "toolkit",
    "toolkit_class",
    "root_dir",
    "openapi",
    "steps",
];

/// The vocabulary of one kind of internal tool. The registry of kinds passes these to the config
/// compiler, so that it does not need to know any kind.
#[derive(Debug, Clone, Copy)]
pub struct KindDescriptor {
    pub key: &'static str,
    /// Other names for it in `kind`, `provider_type` and `type`.
    pub aliases: &'static [&'static str],
    /// The keys that it has besides those of every entry.
    pub keys: &'static [Keys],
    /// Those of `keys` (and of their children) in which `${VAR}` and `~` are expanded, in addition
    /// to the list that applies to every entry.
    pub expand: &'static [&'static str],
    /// Whether an entry that names no kind is one of these; the path is the directory of its file.
    pub claims: fn(&ConfigNode, &Path) -> KindClaim,
    /// What an entry would do, derived from the entry as written. The user reads it before the
    /// entry acts; an entry without effects is harmless and acts at once.
    pub effects: fn(&ConfigNode, &EntrySite<'_>) -> Vec<EntryEffect>,
    /// For kinds that load code by themselves: the files they would load, to be bound by content.
    /// Called only when the user is asked.
    pub code: Option<CodeFilesFn>,
}

impl KindDescriptor {
    pub fn spellings(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().flat_map(|keys| keys.spellings()).copied()
    }

    pub fn has_key(&self, key: &str) -> bool {
        self.spellings().any(|spelling| spelling == key)
    }
}

/// How certain a kind is that an entry without a kind belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KindClaim {
    No,
    /// It is, unless another kind is certain.
    Fallback,
    Certain,
}

impl KindClaim {
    pub fn certain_if(holds: bool) -> Self {
        if holds { Self::Certain } else { Self::No }
    }
}

pub type CodeFilesFn = fn(&ConfigNode, &EntrySite<'_>) -> Result<Vec<PathBuf>, Diagnostic>;

/// The kind of an entry: the one it names, otherwise the one with the most certain claim.
pub fn kind_of<'k>(
    entry: &ConfigNode,
    base_dir: &Path,
    kinds: &'k [KindDescriptor],
) -> Result<&'k KindDescriptor, Diagnostic> {
    let spelled = |kind: &KindDescriptor| match kind.aliases {
        [] => kind.key.to_owned(),
        aliases => format!("{} ({})", kind.key, aliases.join(", ")),
    };
    let known_kinds = || kinds.iter().map(spelled).collect::<Vec<_>>().join(", ");
    if let Some((_, node)) = entry.get_any(&["kind", "provider_type", "type"]) {
        let word = node.as_text()?;
        if let Some(kind) = kinds.iter().find(|k| k.key == word || k.aliases.contains(&word)) {
            return Ok(kind);
        }
        let problem = match word {
            OPENAPI => format!("the kind '{word}' is not available in this version"),
            _ => format!("unknown kind '{word}'"),
        };
        let message = format!("{problem}; known kinds: {}", known_kinds());
        let spellings =
            kinds.iter().flat_map(|k| std::iter::once(k.key).chain(k.aliases.iter().copied()));
        return Err(node.error(message).with_suggestion(word, spellings));
    }
    let claims: Vec<_> = kinds.iter().map(|k| ((k.claims)(entry, base_dir), k)).collect();
    let first =
        |claim_kind| claims.iter().find(|(claim, _)| *claim == claim_kind).map(|(_, kind)| *kind);
    if let Some(kind) = first(KindClaim::Certain).or_else(|| first(KindClaim::Fallback)) {
        return Ok(kind);
    }
    let is_known = |key: &str| {
        key == OPENAPI || names::<ToolKeys>().contains(&key) || kinds.iter().any(|k| k.has_key(key))
    };
    if let Some((key, meant)) = entries::misspelled(entry, &DECIDING_KEYS, is_known) {
        let message = format!("the kind of this tool is missing; unknown key '{}'", key.text);
        return Err(Diagnostic::error(message)
            .with_suggestion(&key.text, [meant])
            .with_location(entry.location_of(key)));
    }
    // The only kind that a build can be without.
    let lacks_openapi = !kinds.iter().any(|kind| kind.key == OPENAPI);
    let missing = |what: &str| format!("{what}; known kinds: {}", known_kinds());
    Err(match entry.key(OPENAPI).filter(|_| lacks_openapi) {
        Some(key) => Diagnostic::error(missing(
            "the key 'openapi' makes this a tool of a kind that is not available in this version",
        ))
        .with_location(entry.location_of(key)),
        None => entry
            .error(missing("the kind of this tool is missing"))
            .with_hint("add 'command', 'module' and 'function', or 'kind'"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::fixtures::KINDS;
    use crate::config::node::SourceText;
    use crate::config::parse::parse;

    #[test]
    fn a_kind_has_its_own_keys() {
        let [_, command] = KINDS;
        assert!(command.has_key("env_keys") && !command.has_key("module"));
    }

    #[test]
    fn an_entry_of_no_kind_is_told_what_is_missing() {
        let without: &[KindDescriptor] = &KINDS;
        let with = [KindDescriptor { key: OPENAPI, claims: |_, _| KindClaim::No, ..KINDS[0] }];
        for (text, kinds, expected) in [
            ("{ name: x, comand: y }", without, "the kind of this tool is missing; unknown key"),
            ("{ name: x, openapi: y }", without, "the key 'openapi' makes this a tool of a kind"),
            ("{ name: x, openapi: y }", &with, "the kind of this tool is missing; known kinds"),
            ("{ name: x, timeout: 1 }", without, "the kind of this tool is missing; known kinds"),
        ] {
            let entry = parse(&SourceText::new("f.yaml", text), text).unwrap().root;
            let message = kind_of(&entry, Path::new("/"), kinds).unwrap_err().message;
            assert!(message.starts_with(expected), "{text}: {message}");
        }
    }
}
