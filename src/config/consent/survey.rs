//! Surveying a project's files for what would be trusted, without resolving the user's values.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::bundle::{Bundle, EntryRecord, digest_of};
use super::effect::{self, EntryEffect, EntrySite, KindDescriptor, is_inside, kind_of};
use super::seal::{BoundFile, EntryFiles, Hashing};
use super::written_credentials::WrittenCredentials;
use super::{program, trust_request};
use crate::config::discover::FileRole;
use crate::config::entries::{self, Top};
use crate::config::environment::Environment;
use crate::config::node::{ConfigNode, NodeValue};
use crate::config::references::{self, is_literal};
use crate::config::resolve::schemas::file_part;
use crate::config::sources::SourceFile;
use crate::config::{parse, read};
use crate::model::{Diagnostic, SourceLocation, check_name, safe_name};

pub(super) type EntryKey = (FileRole, String);

#[derive(Debug)]
pub(super) struct NamedEntry<'n> {
    pub role: FileRole,
    pub name: String,
    pub location: SourceLocation,
    pub node: &'n ConfigNode,
    pub is_component: bool,
}

/// The entries of a file that have a name.
fn entries(root: &ConfigNode, role: FileRole) -> impl Iterator<Item = NamedEntry<'_>> {
    entries::written(root, role).filter_map(move |entry| {
        let (written, location) = entry.name().ok()?;
        let (name, is_component) = match role {
            FileRole::Servers => (safe_name(&written), true),
            FileRole::Tools => {
                check_name(&written).ok()?;
                (written, entries::may_be_component(entry.node, entry.list))
            }
        };
        Some(NamedEntry { role, name, location, node: entry.node, is_component })
    })
}

#[derive(Debug)]
struct DescribedEntry {
    key: EntryKey,
    record: EntryRecord,
    /// Calls of other tools; an entry without other effects is harmless if these are.
    calls: Vec<String>,
    has_effects: bool,
    files: EntryFiles,
    /// Files and directories it would use, and their purpose.
    used_paths: Vec<(&'static str, PathBuf)>,
}

/// A project as it would be trusted.
#[derive(Debug)]
pub(super) struct EntrySurvey {
    pub root: PathBuf,
    /// What consent would be bound to, without what kinds list only on request.
    pub bundle: Bundle,
    /// Entries that are harmless and act without consent.
    pub harmless: BTreeSet<EntryKey>,
    /// What each entry would start, which is checked again just before.
    pub starts: BTreeMap<EntryKey, EntryFiles>,
    documents: EntryFiles,
    pub needs_consent: bool,
}

/// Examines the files of a project. `own` are the names of the user's own entries.
pub(super) fn survey(
    files: &[&SourceFile],
    kinds: &[KindDescriptor],
    environment: &dyn Environment,
    own: &UserEntryNames,
    credentials: &WrittenCredentials,
) -> EntrySurvey {
    let cwd = environment.cwd();
    let root_dir = files.first().map_or_else(|| cwd.clone(), |file| file.base_dir(&cwd));
    let root = root_dir.canonicalize().unwrap_or(root_dir);
    let mut bundle = Bundle::default();
    let mut described: Vec<DescribedEntry> = Vec::new();
    let mut named = EntryFiles::default();
    for file in files {
        let tree = &file.root;
        let path = &file.candidate.path;
        let name = relative(path, &root);
        let resolved = path.canonicalize().unwrap_or_else(|_| path.clone());
        let bound = BoundFile { resolved, sha256: Some(digest_of(tree)), stamp: None };
        bundle.entries.extend(settings(tree, file.candidate.role, &name));
        bundle.files.insert(name, bound);
        named.documents.extend(documents(tree, &file.base_dir(&cwd), &root));
    }
    let mut needs_consent = !bundle.entries.is_empty();
    for_each_entry(files, &root, environment, |file, entry, site| {
        let mut effects = effects(&entry, kinds, site);
        let (lines, users) = credentials.used_by(entry.node);
        effects.extend(lines.into_iter().map(EntryEffect::Other));
        bundle.credentials.extend(users);
        let mut one = describe(&entry, file, &effects, site, environment);
        for taken in own.taken_by(&entry, &effects) {
            let line =
                format!("replaces your own '{}' ({})", taken.name, taken.describe_location());
            one.record.lines.push(line);
            if !bundle.replaced_names.contains(&taken.name) {
                bundle.replaced_names.push(taken.name.clone());
            }
        }
        described.push(one);
    });
    bundle.replaced_names.sort_unstable();
    let harmless = harmless(&described, own);
    let mut starts = BTreeMap::new();
    for one in described {
        if harmless.contains(&one.key) {
            continue;
        }
        needs_consent = true;
        for (use_of, path) in &one.used_paths {
            bundle.resolved_paths.insert(format!("{}: {use_of}", one.key.1), path.clone());
        }
        starts.insert(one.key, one.files);
        bundle.entries.push(one.record);
    }
    needs_consent |= !bundle.replaced_names.is_empty();
    EntrySurvey { root, bundle, harmless, starts, documents: named, needs_consent }
}

impl EntrySurvey {
    /// Adds the code and documents to the bundle, as they are now.
    pub fn bind(&mut self, hashing: &mut Hashing<'_>) {
        for files in self.starts.values().chain([&self.documents]) {
            files.bind(&self.root, hashing, &mut self.bundle);
        }
    }
}

/// The code that entries of a kind load by themselves, which is listed only when the user is asked:
/// there may be thousands of files. Returns what could not be listed as lines to show.
pub(super) fn list_loaded_code(
    survey: &mut EntrySurvey,
    files: &[&SourceFile],
    kinds: &[KindDescriptor],
    environment: &dyn Environment,
    hashing: &mut Hashing<'_>,
) -> Vec<Diagnostic> {
    let EntrySurvey { root, bundle, .. } = survey;
    let mut diagnostics = Vec::new();
    for_each_entry(files, root, environment, |_, entry, site| {
        if entry.role != FileRole::Tools {
            return;
        }
        let kind = kind_of(entry.node, site.base_dir, kinds).ok();
        let Some(list) = kind.and_then(|descriptor| descriptor.code) else { return };
        match list(entry.node, site) {
            // Listed files are verified when loaded, so each has a hash.
            Ok(paths) => bundle.code.extend(paths.into_iter().filter_map(|path| {
                let bound = BoundFile::by_content(&path, hashing)?;
                Some((path, bound))
            })),
            Err(diagnostic) => {
                let mut records = bundle.entries.iter_mut();
                if let Some(record) = records.find(|record| record.name == entry.name) {
                    let line = format!("warning: {}", diagnostic.message);
                    record.lines.extend(trust_request::safe(&[line]));
                }
                diagnostics.push(diagnostic.with_entry(entry.name));
            }
        }
    });
    diagnostics
}

/// Hands over every entry that is not switched off, with the name of its file and what is around it.
fn for_each_entry<'f>(
    files: &[&'f SourceFile],
    root: &Path,
    environment: &dyn Environment,
    mut look: impl FnMut(&str, NamedEntry<'f>, &EntrySite<'_>),
) {
    let (cwd, scopes) = (environment.cwd(), written_scopes(files, root));
    for file in files {
        let (name, base_dir) = (relative(&file.candidate.path, root), file.base_dir(&cwd));
        let tree = &file.root;
        let site = EntrySite::new(&base_dir, root, &scopes, tree.get("defaults"), environment);
        let entries = entries(tree, file.candidate.role);
        for entry in entries.filter(|entry| !entries::is_off(entry.node)) {
            look(&name, entry, &site);
        }
    }
}

fn effects(
    entry: &NamedEntry<'_>,
    kinds: &[KindDescriptor],
    site: &EntrySite<'_>,
) -> Vec<EntryEffect> {
    match entry.role {
        FileRole::Servers => effect::effects(entry.node, site),
        FileRole::Tools => match kind_of(entry.node, site.base_dir, kinds) {
            Ok(descriptor) => (descriptor.effects)(entry.node, site),
            // Its kind is unknown, so it does nothing; the reason is reported when it is resolved.
            Err(_) => Vec::new(),
        },
    }
}

fn describe(
    entry: &NamedEntry<'_>,
    file: &str,
    effects: &[EntryEffect],
    site: &EntrySite<'_>,
    environment: &dyn Environment,
) -> DescribedEntry {
    let references = references::of(entry.node);
    let mut files = EntryFiles { name: entry.name.clone(), ..EntryFiles::default() };
    let mut programs = Vec::new();
    let mut places = Vec::new();
    for effect in effects {
        match effect {
            EntryEffect::Runs(runs) => {
                let (info, line) = program::inspect(runs, (site.base_dir, site.root), environment);
                files.commands.push(line);
                programs.push((runs, info));
            }
            EntryEffect::Document(text) | EntryEffect::EnvFile(text) => {
                files.documents.extend(site.path(text));
            }
            EntryEffect::Reads(path) => places.push(("reads", PathBuf::from(path))),
            EntryEffect::Writes(path) => places.push(("writes", PathBuf::from(path))),
            _ => {}
        }
    }
    let lines = trust_request::entry_lines(effects, &programs, &references, site);
    let calls = effects.iter().filter_map(|effect| match effect {
        EntryEffect::Calls { tool, .. } => Some(tool.clone()),
        _ => None,
    });
    let only_calls = effects.iter().all(|effect| matches!(effect, EntryEffect::Calls { .. }));
    DescribedEntry {
        key: (entry.role, entry.name.clone()),
        record: EntryRecord {
            name: entry.name.clone(),
            file: file.to_owned(),
            digest: digest_of(entry.node),
            lines,
        },
        calls: calls.collect(),
        has_effects: !only_calls || !is_literal(entry.node),
        files,
        used_paths: places,
    }
}

/// Entries without effects, and those that only call such entries. Entries that would reach a tool
/// of the user are not included.
fn harmless(described: &[DescribedEntry], own: &UserEntryNames) -> BTreeSet<EntryKey> {
    // Harmlessness is determined by name, so it requires that the name is unique.
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for one in described {
        *counts.entry(one.key.1.as_str()).or_default() += 1;
    }
    let is_alone = |name: &str| counts.get(name) == Some(&1);
    let mut harmless: BTreeSet<EntryKey> = described
        .iter()
        .filter(|one| !one.has_effects && one.calls.is_empty() && is_alone(&one.key.1))
        .map(|one| one.key.clone())
        .collect();
    let leads_to = |harmless: &BTreeSet<EntryKey>, call: &str| {
        let owner = described.iter().map(|one| &one.key).find(|key| {
            key.0 == FileRole::Tools
                && (key.1 == call || call.strip_prefix(key.1.as_str()).is_some_and(is_tool_part))
        });
        owner.is_some_and(|key| {
            harmless.contains(key) && own.conflicts(call, false).next().is_none()
        })
    };
    loop {
        let more: Vec<EntryKey> = described
            .iter()
            .filter(|one| !one.has_effects && is_alone(&one.key.1) && !harmless.contains(&one.key))
            .filter(|one| one.calls.iter().all(|call| leads_to(&harmless, call)))
            .map(|one| one.key.clone())
            .collect();
        if more.is_empty() {
            return harmless;
        }
        harmless.extend(more);
    }
}

fn is_tool_part(rest: &str) -> bool {
    rest.starts_with('-')
}

fn settings(tree: &ConfigNode, role: FileRole, file: &str) -> Option<EntryRecord> {
    let mut lines = Vec::new();
    for part in entries::top(tree, role) {
        let Top::Other(word, key, value) = part else { continue };
        if word.is_none() && role == FileRole::Servers {
            continue;
        }
        for (reference, places) in references::of(value) {
            let places: Vec<String> = places
                .iter()
                .map(|path| {
                    if path.is_empty() {
                        key.text.to_string()
                    } else {
                        format!("{}.{path}", key.text)
                    }
                })
                .collect();
            lines.push(format!("uses {reference} in {}", places.join(", ")));
        }
    }
    (!lines.is_empty()).then(|| EntryRecord {
        name: "settings".to_owned(),
        file: file.to_owned(),
        digest: String::new(),
        lines: trust_request::safe(&lines),
    })
}

/// Files that schemas anywhere in a file refer to, and those that they refer to in turn.
fn documents(tree: &ConfigNode, base_dir: &Path, root: &Path) -> Vec<PathBuf> {
    let (mut paths, mut seen) = (Vec::new(), BTreeSet::new());
    let mut add = |paths: &mut Vec<PathBuf>, tree: &ConfigNode| {
        tree.for_each_leaf(&mut |keys, leaf| {
            let NodeValue::Text(text) = &leaf.value else { return };
            let is_reference = keys.rsplit('.').next() == Some("$ref");
            let Some((path, _)) = file_part(text).filter(|_| is_reference) else { return };
            let path: PathBuf = base_dir.join(path).components().collect();
            if seen.insert(path.clone()) {
                paths.push(path);
            }
        });
    };
    add(&mut paths, tree);
    let mut next = 0;
    while let Some(path) = paths.get(next) {
        next += 1;
        // No schema is read that lies elsewhere.
        if is_inside(path, root)
            && let Ok((source, text)) = read::read(path, false)
            && let Ok(document) = parse::parse(&source, &text)
        {
            add(&mut paths, &document);
        }
    }
    paths
}

/// The named directories of all files, as written; the first file that names one wins.
fn written_scopes(files: &[&SourceFile], root: &Path) -> BTreeMap<String, String> {
    let mut scopes = BTreeMap::new();
    for file in files {
        for (key, value) in file.root.get("scopes").map(ConfigNode::entries).unwrap_or_default() {
            if let Some(text) = value.text() {
                scopes.entry(key.text.to_string()).or_insert_with(|| text.to_owned());
            }
        }
    }
    let root = root.to_string_lossy().into_owned();
    scopes.entry("PROJECT_ROOT".to_owned()).or_insert(root);
    scopes
}

fn relative(path: &Path, root: &Path) -> String {
    // The directory is resolved but the file is not: a link is bound by its target.
    let directory = path.parent().and_then(|parent| parent.canonicalize().ok());
    let whole = match (directory, path.file_name()) {
        (Some(directory), Some(name)) => directory.join(name),
        _ => path.to_path_buf(),
    };
    whole.strip_prefix(root).unwrap_or(&whole).display().to_string()
}

#[derive(Debug, Default)]
pub(super) struct UserEntryNames(Vec<UserEntryName>);

#[derive(Debug, Clone)]
pub(super) struct UserEntryName {
    pub name: String,
    role: FileRole,
    is_component: bool,
    location: SourceLocation,
}

impl UserEntryName {
    /// The file and line of the entry, as `FILE:LINE`.
    pub fn describe_location(&self) -> String {
        format!("{}:{}", self.location.file.display(), self.location.line)
    }

    /// Whether an entry called `name` would receive calls meant for this one: it has the same name,
    /// or either is a component and the other has the name of one of its tools.
    fn is_taken_by(&self, name: &str, is_component: bool) -> bool {
        let is_tool_of =
            |tool: &str, component: &str| tool.strip_prefix(component).is_some_and(is_tool_part);
        self.name == name
            || (self.is_component && is_tool_of(name, &self.name))
            || (is_component && is_tool_of(&self.name, name))
    }
}

impl UserEntryNames {
    pub fn of<'f>(files: impl Iterator<Item = &'f SourceFile>) -> Self {
        let mut names = Vec::new();
        for file in files {
            for entry in entries(&file.root, file.candidate.role) {
                let NamedEntry { name, role, is_component, location, .. } = entry;
                names.push(UserEntryName { name, role, is_component, location });
            }
        }
        Self(names)
    }

    /// Which of them an entry of a project would replace: its name, the name of one of the tools of
    /// either, or a server whose tools it lists as its own.
    pub fn taken_by(&self, entry: &NamedEntry<'_>, effects: &[EntryEffect]) -> Vec<&UserEntryName> {
        let renamed = effects.iter().find_map(|effect| match effect {
            EntryEffect::Renames(server) => Some(server.as_str()),
            _ => None,
        });
        let takes = |own: &&UserEntryName| {
            own.is_taken_by(&entry.name, entry.is_component)
                || (own.role == FileRole::Servers && renamed == Some(own.name.as_str()))
        };
        self.0.iter().filter(takes).collect()
    }

    pub fn conflicts(
        &self,
        name: &str,
        is_component: bool,
    ) -> impl Iterator<Item = &UserEntryName> {
        self.0.iter().filter(move |own| own.is_taken_by(name, is_component))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::consent::KindClaim;
    use crate::config::consent::bundle::Difference;
    use crate::config::consent::decision::ProjectRecord;
    use crate::config::discover::ConfigFileCandidate;
    use crate::config::environment::FixedEnvironment;
    use crate::config::node::SourceText;
    use crate::model::Layer;

    /// Entries of this kind say themselves what they do.
    const KIND: KindDescriptor = KindDescriptor {
        key: "test",
        aliases: &[],
        keys: &[],
        expand: &[],
        claims: |_, _| KindClaim::Certain,
        effects: |entry, _| {
            let text = |key: &str| entry.get(key)?.text().map(str::to_owned);
            let calls = text("calls").map(|tool| EntryEffect::Calls { tool, arguments: None });
            calls.into_iter().chain(text("reads").map(EntryEffect::Reads)).collect()
        },
        code: Some(|entry, site| match entry.get("code").and_then(ConfigNode::text) {
            Some("unknown") => Err(Diagnostic::error("cannot list it")),
            name => Ok(name.into_iter().map(|name| site.base_dir.join(name)).collect()),
        }),
    };

    fn file(dir: &Path, role: FileRole, text: &str) -> SourceFile {
        let name = if role == FileRole::Tools { "tools.yaml" } else { "mcp.yaml" };
        let path = dir.join(name);
        let root = parse::parse(&SourceText::new(path.clone(), text), text).unwrap();
        let layer = Layer::Project;
        let candidate = ConfigFileCandidate { path, role, layer, inline_text: None };
        SourceFile { candidate, root, is_embedded: false, is_discovered: false }
    }

    fn tools(text: &str) -> SourceFile {
        file(Path::new("/own"), FileRole::Tools, text)
    }

    fn servers(text: &str) -> SourceFile {
        file(Path::new("/own"), FileRole::Servers, text)
    }

    #[test]
    fn what_only_calls_harmless_entries_of_the_project_is_harmless() {
        let dir = tempfile::tempdir().unwrap();
        let server = file(dir.path(), FileRole::Servers, "mcp_servers: { run: { command: x } }");
        for (called, own, expected) in [
            ("sum", "other", "chain sum"),
            ("sum-part", "other", "chain sum"),
            ("sum", "sum", "sum"),
            ("summary", "other", "sum"),
            ("disk", "other", "sum"),
            ("run", "other", "sum"),
        ] {
            let text = format!(
                "tools: [{{ name: sum }}, {{ name: disk, reads: x }}, \
                 {{ name: chain, calls: {called} }}]"
            );
            let project = file(dir.path(), FileRole::Tools, &text);
            let own = UserEntryNames::of([tools(&format!("tools: [{{ name: {own} }}]"))].iter());
            let survey = survey(
                &[&project, &server],
                &[KIND],
                &FixedEnvironment::default(),
                &own,
                &WrittenCredentials::default(),
            );
            let names: Vec<&str> = survey.harmless.iter().map(|(_, name)| name.as_str()).collect();
            assert_eq!(names.join(" "), expected, "{called}");
        }
    }

    #[test]
    fn a_secret_that_changes_is_a_change_although_it_is_not_shown() {
        let dir = tempfile::tempdir().unwrap();
        let bundle = |secret: &str| {
            let text = format!("s: {{ command: x, env: {{ A_KEY: {secret} }} }}");
            let file = file(dir.path(), FileRole::Servers, &text);
            let (environment, own) = (FixedEnvironment::default(), UserEntryNames::default());
            survey(&[&file], &[], &environment, &own, &WrittenCredentials::default()).bundle
        };
        let (before, after) = (bundle("hunter2"), bundle("hunter3"));
        assert!(!serde_json::to_string(&before).unwrap().contains("hunter2"), "{before:?}");
        assert_eq!(before.entries[0].lines, after.entries[0].lines);
        assert_ne!(before.entries[0].digest, after.entries[0].digest);
        let record = ProjectRecord { bundle: before, ..ProjectRecord::default() };
        assert_eq!(after.differences(&record), [Difference::File("mcp.yaml".to_owned())]);
    }

    #[test]
    fn code_is_listed_of_the_tools_that_are_on() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["on.py", "off.py", "server.py"] {
            std::fs::write(dir.path().join(name), "x").unwrap();
        }
        let text = "tools: [{ name: on, reads: x, code: on.py }, \
                    { name: off, disabled: true, code: off.py }, \
                    { name: broken, reads: x, code: unknown }]";
        let files = [
            file(dir.path(), FileRole::Tools, text),
            file(dir.path(), FileRole::Servers, "s: { command: x, code: server.py }"),
        ];
        let files: Vec<&SourceFile> = files.iter().collect();
        let (environment, own) = (FixedEnvironment::default(), UserEntryNames::default());
        let credentials = WrittenCredentials::default();
        let mut survey = survey(&files, &[KIND], &environment, &own, &credentials);
        let mut hashing = Hashing::new(None);
        let problems = list_loaded_code(&mut survey, &files, &[KIND], &environment, &mut hashing);
        let code: Vec<&PathBuf> = survey.bundle.code.keys().collect();
        assert_eq!(code, [&dir.path().join("on.py")]);
        let entries: Vec<_> = problems.iter().map(|problem| problem.entry.as_deref()).collect();
        assert_eq!(entries, [Some("broken")]);
        let warned =
            |record: &&EntryRecord| record.lines.contains(&"warning: cannot list it".to_owned());
        let warned: Vec<&str> =
            survey.bundle.entries.iter().filter(warned).map(|it| it.name.as_str()).collect();
        assert_eq!(warned, ["broken"]);
    }

    #[test]
    fn what_stands_beside_the_entries_uses_variables_too() {
        for (role, text, expected) in [
            (FileRole::Tools, "x-mine: { a: '${X}' }", Some("uses ${X} in x-mine.a")),
            (FileRole::Tools, "tools: [{ name: a, b: '${X}' }]", None),
            (FileRole::Servers, "s: { url: 'http://${X}' }", None),
            (FileRole::Servers, "mcp_servers: { s: { url: 'http://${X}' } }", None),
            (FileRole::Servers, "defaults: { a: '${X}' }", Some("uses ${X} in defaults.a")),
        ] {
            let tree = file(Path::new("/p"), role, text).root;
            let lines = settings(&tree, role, "f").map(|record| record.lines.join("; "));
            assert_eq!(lines.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_name_is_taken_with_those_of_the_tools_of_a_component() {
        let own = tools("tools: [{ name: git-log }]\ncomponents: [{ name: kit }]");
        let own = UserEntryNames::of([own].iter());
        for (name, is_component, expected) in [
            ("git-log", false, "git-log"),
            ("git", true, "git-log"),
            ("git", false, ""),
            ("gi", true, ""),
            ("other", true, ""),
            ("kit", false, "kit"),
            ("kit-read", false, "kit"),
            ("kitten", false, ""),
        ] {
            let taken: Vec<&str> =
                own.conflicts(name, is_component).map(|own| own.name.as_str()).collect();
            assert_eq!(taken.join(" "), expected, "{name} {is_component}");
        }
    }

    #[test]
    fn who_lists_the_tools_of_a_server_replaces_that_server() {
        let own = [
            tools("tools: [{ name: git }]"),
            servers("mcp_servers: { git: { command: x }, hub: { command: x } }"),
        ];
        let own = UserEntryNames::of(own.iter());
        let project = tools("tools: [{ name: mine }]");
        let entries: Vec<_> = entries(&project.root, FileRole::Tools).collect();
        let renames = [EntryEffect::Renames("git".to_owned())];
        let taken = own.taken_by(&entries[0], &renames);
        let taken: Vec<_> = taken.iter().map(|own| (own.role, own.name.as_str())).collect();
        assert_eq!(taken, [(FileRole::Servers, "git")]);
        assert!(own.taken_by(&entries[0], &[]).is_empty());
    }
}
