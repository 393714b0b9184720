//! What an entry of either file would do, derived from the entry as written; the kinds of internal tools,
//! and which kind an entry is of.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::expander;
use crate::config::entries;
use crate::config::environment::Environment;
use crate::config::node::ConfigNode;
use crate::config::resolve::definition::ToolKeys;
use crate::config::resolve::servers::ServerKeys;
use crate::config::spec::DriftPolicy;
use crate::config::typed::{self, Either, Keys, names};
use crate::model::Diagnostic;

/// One thing an entry would do once it acts. An entry without effects is harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryEffect {
    Runs(ProgramEffect),
    /// Runs code that a program finds by itself: a label for it, and the files that would be run,
    /// listed by the entry's kind when the user is asked.
    Loads(String),
    Contacts(String),
    Reads(String),
    Writes(String),
    /// Takes its definition from a document, as written; relative to the entry's file.
    #[cfg_attr(
        not(feature = "openapi"),
        expect(dead_code, reason = "only that kind has documents")
    )]
    Document(String),
    /// Passes the variables in this file to a program, as written; it is bound by its content.
    EnvFile(String),
    Calls {
        tool: String,
        arguments: Option<String>,
    },
    /// Lists the tools of this server under its own name.
    Renames(String),
    /// Anything else, as text that continues after "it".
    Other(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProgramEffect {
    pub argv: Vec<String>,
    /// Its working directory, as written; `None` means the default of the kind.
    pub cwd: Option<String>,
    /// Variables the entry sets, as written.
    pub env: Vec<(String, String)>,
    /// What a program named by a path is relative to, if that is not the directory it is
    /// started in.
    pub found_from: Option<PathBuf>,
    /// Its working directory if the entry does not set one.
    pub usual_cwd: PathBuf,
}

/// The context of an entry, for describing what it would do. It gives no access to the environment.
#[derive(Clone, Copy)]
pub struct EntrySite<'a> {
    /// The directory of its file; relative paths are relative to it.
    pub base_dir: &'a Path,
    pub root: &'a Path,
    /// Named directories, as the files of the project write them.
    pub scopes: &'a BTreeMap<String, String>,
    /// The defaults of its file, as written.
    pub defaults: Option<&'a ConfigNode>,
    environment: &'a dyn Environment,
}

impl<'a> EntrySite<'a> {
    /// A context in the project rooted at `root`.
    pub fn new(
        base_dir: &'a Path,
        root: &'a Path,
        scopes: &'a BTreeMap<String, String>,
        defaults: Option<&'a ConfigNode>,
        environment: &'a dyn Environment,
    ) -> Self {
        Self { base_dir, root, scopes, defaults, environment }
    }

    /// A path as the entry means it, if it depends only on known directories.
    pub fn path(&self, text: &str) -> Option<PathBuf> {
        expander::path(text, self.base_dir, self.environment)
    }

    /// A path with links resolved, as far as it exists.
    pub fn real(&self, text: &str) -> Option<PathBuf> {
        let path = self.path(text)?;
        Some(path.canonicalize().unwrap_or(path))
    }

    /// Whether a path is below the root of the project, links resolved.
    pub fn is_inside(&self, path: &Path) -> bool {
        is_inside(path, self.root)
    }

    pub fn cwd(&self) -> PathBuf {
        self.environment.cwd()
    }

    /// The directories searched for programs: those of the `PATH` that an entry sets, as
    /// written, or the user's own. `None` if they depend on another variable.
    pub fn search_path(&self, written: Option<&str>) -> Option<String> {
        match written {
            Some(written) => expander::resolve(written, self.base_dir, self.environment).ok(),
            None => self.environment.var("PATH"),
        }
    }
}

/// Whether a file is there, and below `root` also after all links.
pub(super) fn is_inside(path: &Path, root: &Path) -> bool {
    path.canonicalize().is_ok_and(|real| real.starts_with(root))
}

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
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::config::environment::FixedEnvironment;
    use crate::config::fixtures::KINDS;
    use crate::config::node::SourceText;
    use crate::config::parse::parse;

    #[test]
    fn a_link_that_leads_out_of_the_project_is_not_inside() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("project");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        symlink("..", root.join("out")).unwrap();
        symlink("sub", root.join("in")).unwrap();
        let (scopes, environment) = (BTreeMap::new(), FixedEnvironment::default());
        let site = EntrySite::new(&root, &root, &scopes, None, &environment);
        for (name, is_inside) in [("sub", true), ("in", true), ("out", false), ("none", false)] {
            assert_eq!(site.is_inside(&root.join(name)), is_inside, "{name}");
        }
    }

    #[test]
    fn programs_are_searched_where_the_entry_says_or_the_user() {
        let mut environment = FixedEnvironment::default();
        environment.vars.insert("PATH".to_owned(), "/bin".to_owned());
        let (base, scopes) = (Path::new("/p"), BTreeMap::new());
        let site = EntrySite::new(base, base, &scopes, None, &environment);
        for (written, searched) in [
            (None, Some("/bin")),
            (Some("x:${PATH}"), Some("x:/bin")),
            (Some("${OTHER}:/bin"), None),
        ] {
            assert_eq!(site.search_path(written).as_deref(), searched, "{written:?}");
        }
    }

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
            let entry = parse(&SourceText::new("f.yaml", &text), &text).unwrap();
            let line = "does not block tools that differ from their pins".to_owned();
            let says = effects(&entry, &site).contains(&EntryEffect::Other(line));
            assert_eq!(says, expected, "{text}");
        }
    }

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
            let entry = parse(&SourceText::new("f.yaml", text), text).unwrap();
            let message = kind_of(&entry, Path::new("/"), kinds).unwrap_err().message;
            assert!(message.starts_with(expected), "{text}: {message}");
        }
    }
}
