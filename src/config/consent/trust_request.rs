//! The trust question about a project, as lines of text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::bundle::{Bundle, Difference, EntryRecord};
use super::decision::ProjectRecord;
use super::effect::{EntryEffect, EntrySite, ProgramEffect};
use super::program::{self, ProgramInfo};
use super::seal::{BoundFile, MAX_HASHED, is_system};
use crate::config::env_file;
use crate::config::references::has_reference;
use crate::config::secrets::{display_value, has_password, names_secret};
use crate::util::regular_file;
use crate::util::text::{safe_line, shell_quoted};
use crate::util::timestamp::local_date;
use crate::util::units::show_size;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustRequest {
    pub root: PathBuf,
    pub bundle: Bundle,
    /// The stored answer that no longer matches the content, to show what changed.
    pub previous: Option<Arc<ProjectRecord>>,
    /// When this content was refused, as RFC 3339, empty if unknown; toolhost then does not ask again
    /// by itself.
    pub refused_at: Option<String>,
    /// Why it is not known what was trusted before.
    pub store_error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustRequestLine {
    Heading(String),
    Entry {
        name: String,
        text: String,
    },
    /// More about the entry above.
    Detail(String),
    Warning(String),
    /// What was trusted before but is no longer the case.
    Previous(String),
}

impl TrustRequestLine {
    pub fn text(&self) -> String {
        match self {
            Self::Heading(text) => text.clone(),
            Self::Entry { name, text } => format!("  {name}: {text}"),
            Self::Detail(text) => format!("    {text}"),
            Self::Warning(text) => format!("    warning: {text}"),
            Self::Previous(text) => format!("    before: {text}"),
        }
    }
}

const WARNING: &str = "warning: ";

impl TrustRequest {
    pub fn full_lines(&self) -> Vec<TrustRequestLine> {
        let mut lines = Vec::new();
        for file in self.bundle.files.keys() {
            lines.push(TrustRequestLine::Heading(safe_line(file).into_owned()));
            for entry in self.bundle.entries.iter().filter(|entry| entry.file == *file) {
                push_entry(entry, &mut lines);
            }
        }
        let hashed = self.bundle.code.values().filter(|file| file.sha256.is_some());
        let (stamped, hashed): (Vec<&BoundFile>, Vec<_>) = hashed.partition(|file| file.is_stamp());
        let count = |files: &[&BoundFile]| match files.len() {
            1 => "1 file".to_owned(),
            many => format!("{many} files"),
        };
        if !hashed.is_empty() {
            let files = count(&hashed);
            let text = format!("bound by content: {files} of code and documents");
            lines.push(TrustRequestLine::Heading(text));
        }
        if !stamped.is_empty() {
            let (files, limit) = (count(&stamped), show_size(MAX_HASHED));
            let by = "bound by size and time of change only";
            let text = format!("{by}: {files}, beyond the {limit} that are hashed");
            lines.push(TrustRequestLine::Heading(text));
        }
        lines
    }

    /// What changed since the project was trusted; everything if it never was.
    pub fn difference_lines(&self) -> Vec<TrustRequestLine> {
        let Some(previous) = &self.previous else { return self.full_lines() };
        let before = &previous.bundle;
        let mut lines = Vec::new();
        for file in self.bundle.files.keys() {
            let changed: Vec<&EntryRecord> = self
                .bundle
                .entries
                .iter()
                .filter(|entry| entry.file == *file && !before.entries.contains(entry))
                .collect();
            if changed.is_empty() {
                continue;
            }
            lines.push(TrustRequestLine::Heading(safe_line(file).into_owned()));
            for entry in changed {
                push_entry(entry, &mut lines);
                let old = before.entries.iter().find(|old| {
                    old.file == entry.file && old.name == entry.name && old.lines != entry.lines
                });
                let old = old.map(|old| old.lines.as_slice()).unwrap_or_default();
                let gone = old.iter().filter(|line| !entry.lines.contains(line));
                lines.extend(gone.cloned().map(TrustRequestLine::Previous));
            }
        }
        let gone = before.entries.iter().filter(|old| {
            !self.bundle.entries.iter().any(|now| now.name == old.name && now.file == old.file)
        });
        for old in gone {
            lines.push(TrustRequestLine::Heading(format!("removed: {} ({})", old.name, old.file)));
        }
        for difference in self.bundle.differences(previous) {
            let text = match difference {
                Difference::Code(path) => {
                    let is_there = |bundle: &Bundle| {
                        bundle.code.get(&path).is_some_and(|file| !file.is_missing())
                    };
                    let word = match (is_there(before), is_there(&self.bundle)) {
                        (true, true) => "changed",
                        (true, false) => "removed",
                        (false, _) => "new",
                    };
                    format!("{word} code: {}", self.display_path(&path))
                }
                Difference::Resolved(use_of, now) => match before.resolved_paths.get(&use_of) {
                    Some(old) => {
                        format!("{use_of} is now {}, it was {}", now.display(), old.display())
                    }
                    None => format!("{use_of} is {}", now.display()),
                },
                Difference::Credential(handle) => {
                    format!("your credential '{handle}' has changed")
                }
                // Both are shown with the entries above.
                Difference::Replaces(_) | Difference::File(_) => continue,
            };
            lines.push(TrustRequestLine::Heading(safe_line(&text).into_owned()));
        }
        if lines.is_empty() {
            let text = "nothing that an entry runs, contacts, reads or replaces has changed";
            lines.push(TrustRequestLine::Heading(text.to_owned()));
        }
        lines
    }

    /// Whether this, apart from its configuration files, only adds to what was trusted, and
    /// replaces nothing of the user's own.
    pub fn only_adds(&self) -> bool {
        let nothing = ProjectRecord::default();
        let previous = self.previous.as_deref().unwrap_or(&nothing);
        let before = &previous.bundle;
        let adds = |difference: &Difference| match difference {
            Difference::File(_) => true,
            Difference::Code(path) => !before.code.contains_key(path),
            Difference::Resolved(use_of, _) => !before.resolved_paths.contains_key(use_of),
            Difference::Replaces(_) | Difference::Credential(_) => false,
        };
        self.bundle.differences(previous).iter().all(adds)
    }

    /// Why the project may not act, in words that follow "is".
    pub fn reason(&self) -> String {
        let since = |at: &str| {
            let day = at.parse::<jiff::Timestamp>().ok()?.as_second();
            Some(format!(" on {}", local_date(Duration::from_secs(u64::try_from(day).ok()?))))
        };
        if let Some(error) = &self.store_error {
            return format!("not trusted: {error}; remove it to be asked again");
        }
        match (&self.refused_at, &self.previous) {
            (Some(at), _) => {
                format!("not trusted: you declined it{}", since(at).unwrap_or_default())
            }
            (None, Some(_)) => "not trusted any more: its project changed".to_owned(),
            (None, None) => "not trusted yet".to_owned(),
        }
    }

    pub fn command(&self) -> String {
        let root = self.root.to_string_lossy().into_owned();
        format!("toolhost trust {}", shell_quoted(&[safe_line(&root).into_owned()]))
    }

    fn display_path(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }
}

fn push_entry(entry: &EntryRecord, lines: &mut Vec<TrustRequestLine>) {
    let mut rest = entry.lines.iter();
    let text = rest.next().cloned().unwrap_or_default();
    lines.push(TrustRequestLine::Entry { name: safe_line(&entry.name).into_owned(), text });
    for line in rest {
        lines.push(match line.strip_prefix(WARNING) {
            Some(text) => TrustRequestLine::Warning(text.to_owned()),
            None => TrustRequestLine::Detail(line.clone()),
        });
    }
}

/// Lines without terminal control sequences or invisible characters.
pub(super) fn safe(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| safe_line(line).into_owned()).collect()
}

/// What an entry would do: one line, then the variables it sets and warnings.
pub(super) fn entry_lines(
    effects: &[EntryEffect],
    programs: &[(&ProgramEffect, ProgramInfo)],
    references: &BTreeMap<String, Vec<String>>,
    site: &EntrySite<'_>,
) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut more: Vec<String> = Vec::new();
    for (effect, info) in programs {
        parts.push(starts(effect, info, site));
        more.extend(effect.env.iter().map(|(name, value)| {
            let is_hidden = names_secret(name) && !has_reference(value);
            format!("{name}={}", if is_hidden { "***" } else { value })
        }));
        more.extend(chosen_by(info));
        if !info.files.data.is_empty() {
            more.push(format!("is given {} (not bound by content)", joined(&info.files.data)));
        }
        let warnings = program::warnings(&effect.argv, info.program.as_deref());
        more.extend(warnings.into_iter().map(|text| format!("{WARNING}{text}")));
    }
    for effect in effects {
        parts.push(match effect {
            EntryEffect::Runs(_) => continue,
            EntryEffect::Loads(what) => format!("runs {what}"),
            EntryEffect::Contacts(address) => format!("contacts {address}"),
            EntryEffect::Reads(what) => format!("reads {what}"),
            EntryEffect::Writes(what) => format!("reads and writes {what}"),
            EntryEffect::Document(path) => format!("is described by {path}"),
            EntryEffect::EnvFile(path) => {
                more.extend(site.path(path).into_iter().flat_map(|file| variables(&file, site)));
                format!("passes it the variables in {path}")
            }
            EntryEffect::Calls { tool, arguments: None } => format!("calls {tool}"),
            EntryEffect::Calls { tool, arguments: Some(with) } => {
                format!("calls {tool} with {with}")
            }
            EntryEffect::Renames(server) => format!("lists the tools of '{server}' as its own"),
            EntryEffect::Other(text) => text.clone(),
        });
    }
    for (reference, places) in references {
        // The locations of programs and of the home directory are not secret.
        let is_place = matches!(reference.as_str(), "${PATH}" | "${HOME}" | "${TOOLHOST}");
        if is_place || reference.starts_with("${workspace") || reference == "${userHome}" {
            continue;
        }
        parts.push(format!("uses {reference} in {}", places.join(", ")));
    }
    let mut lines =
        vec![if parts.is_empty() { "reaches nothing".to_owned() } else { parts.join("; ") }];
    lines.append(&mut more);
    safe(&lines)
}

fn joined<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> String {
    paths.into_iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// The files that decide which code a runner of packages fetches, if there are any.
fn chosen_by(info: &ProgramInfo) -> Option<String> {
    let files = info.files.settings.iter().filter(|path| path.is_file());
    let files = joined(files);
    (!files.is_empty()).then(|| format!("what it runs is decided by {files} too"))
}

/// The variables in a file that the entry passes to its program; of a file outside the project,
/// which may be anybody's, only the names.
fn variables(file: &Path, site: &EntrySite<'_>) -> Vec<String> {
    let text = regular_file::text(file, env_file::MAX_BYTES).unwrap_or_default();
    let is_inside = site.is_inside(file);
    let line = |(name, value): (String, String)| match display_value(&name, &value) {
        _ if !is_inside => name,
        _ if has_password(&value) => format!("{name}=***"),
        shown => format!("{name}={shown}"),
    };
    env_file::parse(&text).unwrap_or_default().into_iter().map(line).collect()
}

/// Describes the program that starts, such as `starts npx server (/usr/bin/npx)`.
fn starts(effect: &ProgramEffect, info: &ProgramInfo, site: &EntrySite<'_>) -> String {
    let mut about: Vec<String> = Vec::new();
    match &info.program {
        Some(program) => {
            let path = program.display().to_string();
            if effect.argv.first().is_none_or(|word| *word != path) {
                about.push(path);
            }
            if program.starts_with(site.root) {
                about.push("part of the project".to_owned());
            }
        }
        None if info.decided_by.is_empty() => about.push("not found".to_owned()),
        None => {}
    }
    if !info.decided_by.is_empty() {
        about.push(format!("decided by your {}", info.decided_by.join(", ")));
    }
    // What the system's administrator put there needs no mention.
    let is_own = |path: &PathBuf| {
        let resolved = path.canonicalize().unwrap_or_default();
        info.program.as_ref() != Some(&resolved) && !is_system(&resolved, site.root)
    };
    let named = info.files.programs.values().filter(|path| is_own(path));
    let (inside, outside): (BTreeSet<&PathBuf>, BTreeSet<&PathBuf>) = (info.files.code.iter())
        .filter(|path| !path.starts_with(site.root) && is_own(path))
        .chain(named)
        .partition(|path| path.starts_with(site.root));
    if !inside.is_empty() {
        about.push(format!("runs {} of the project", joined(inside)));
    }
    if !outside.is_empty() {
        about.push(format!("runs {} from outside the project", joined(outside)));
    }
    let mut text = format!("starts {}", shell_quoted(&effect.argv));
    if !about.is_empty() {
        text = format!("{text} ({})", about.join(", "));
    }
    match program::unusual_cwd(effect, site) {
        Some(cwd) => format!("{text} in {cwd}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::consent::command_files::CommandFiles;
    use crate::config::environment::FixedEnvironment;

    fn entry(name: &str, file: &str, line: &str) -> EntryRecord {
        let [name, file, line] = [name, file, line].map(str::to_owned);
        EntryRecord { name, file, digest: line.clone(), lines: vec![line] }
    }

    fn request(before: Option<Bundle>, bundle: Bundle) -> TrustRequest {
        let record = |bundle| Arc::new(ProjectRecord { bundle, ..ProjectRecord::default() });
        TrustRequest {
            root: "/p".into(),
            bundle,
            previous: before.map(record),
            ..TrustRequest::default()
        }
    }

    fn program(program: Option<&Path>, files: CommandFiles) -> ProgramInfo {
        let program = program.map(Path::to_path_buf);
        ProgramInfo { program, decided_by: Vec::new(), files }
    }

    #[test]
    fn a_change_is_shown_with_what_was_there_before() {
        let files = ["f", "g"].map(|name| (name.to_owned(), BoundFile::default()));
        let bundle = |entries| Bundle { files: files.clone().into(), entries, ..Bundle::default() };
        let before = bundle(vec![
            entry("same", "f", "stays"),
            entry("one", "f", "was one"),
            entry("two", "f", "was two"),
            entry("two", "g", "was other"),
            entry("gone", "f", "was gone"),
        ]);
        let now = bundle(vec![
            entry("same", "f", "stays"),
            entry("one", "f", "is one"),
            entry("two", "f", "is two"),
            entry("two", "g", "is other"),
        ]);
        let lines = request(Some(before), now).difference_lines();
        let lines: Vec<String> = lines.iter().map(TrustRequestLine::text).collect();
        let expected = [
            "f",
            "  one: is one",
            "    before: was one",
            "  two: is two",
            "    before: was two",
            "g",
            "  two: is other",
            "    before: was other",
            "removed: gone (f)",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_request_only_adds_when_nothing_trusted_is_another_now() {
        let code = |name: &str, hash: &str| {
            let sha256 = Some(hash.to_owned());
            let file = BoundFile { resolved: name.into(), sha256, stamp: None };
            Bundle { code: [(name.into(), file)].into(), ..Bundle::default() }
        };
        let program = |word: &str, path: &str| Bundle {
            resolved_paths: [(word.to_owned(), path.into())].into(),
            ..Bundle::default()
        };
        let replaces = || Bundle { replaced_names: vec!["x".to_owned()], ..Bundle::default() };
        let file = BoundFile { sha256: Some("1".to_owned()), ..BoundFile::default() };
        let configuration = Bundle { files: [("f".to_owned(), file)].into(), ..Bundle::default() };
        for (before, now, expected) in [
            (None, code("a", "1"), true),
            (None, program("a", "/a"), true),
            (None, replaces(), false),
            (Some(Bundle::default()), configuration, true),
            (Some(code("a", "1")), code("b", "1"), true),
            (Some(code("a", "1")), code("a", "2"), false),
            (Some(program("a", "/a")), program("b", "/b"), true),
            (Some(program("a", "/a")), program("a", "/b"), false),
            (Some(replaces()), replaces(), true),
        ] {
            let request = request(before, now);
            assert_eq!(request.only_adds(), expected, "{request:?}");
        }
    }

    #[test]
    fn a_secret_is_hidden_and_what_is_none_needs_no_mention() {
        let (base, scopes) = (Path::new("/p"), BTreeMap::new());
        let environment = FixedEnvironment::default();
        let site = EntrySite::new(base, base, &scopes, None, &environment);
        let env = [("API_TOKEN", "hunter2"), ("OTHER_TOKEN", "${T}"), ("MODE", "fast")];
        let effect = ProgramEffect {
            argv: vec!["x".to_owned()],
            env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            ..ProgramEffect::default()
        };
        let references =
            ["${PATH}", "${HOME}", "${TOOLHOST}", "${workspaceFolder}", "${userHome}", "${T}"]
                .map(|reference| (reference.to_owned(), vec!["env".to_owned()]));
        let programs = [(&effect, program(None, CommandFiles::default()))];
        let lines = entry_lines(&[], &programs, &references.into(), &site);
        let expected = [
            "starts x (not found); uses ${T} in env",
            "API_TOKEN=***",
            "OTHER_TOKEN=${T}",
            "MODE=fast",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn files_that_choose_the_code_are_named_if_they_are_there() {
        let dir = tempfile::tempdir().unwrap();
        let [there, missing] = [".npmrc", "package.json"].map(|name| dir.path().join(name));
        std::fs::write(&there, "").unwrap();
        let chosen = |settings: &[&PathBuf]| {
            let settings = settings.iter().map(|&path| path.clone()).collect();
            chosen_by(&program(None, CommandFiles { settings, ..CommandFiles::default() }))
        };
        let line = format!("what it runs is decided by {} too", there.display());
        assert_eq!(chosen(&[&there, &missing]), Some(line));
        assert_eq!(chosen(&[&missing]), None);
    }

    #[test]
    fn other_programs_than_the_systems_are_named_as_the_projects_or_not() {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().canonicalize().unwrap();
        let root = outside.join("project");
        std::fs::create_dir(&root).unwrap();
        let [run, other, code] = ["run", "other", "code.sh"].map(|name| root.join(name));
        let [lib, tool] = ["lib.sh", "tool"].map(|name| outside.join(name));
        for path in [&run, &other, &code, &lib, &tool] {
            std::fs::write(path, "x").unwrap();
        }
        let shell = Path::new("/bin/sh").canonicalize().unwrap();
        let (scopes, environment) = (BTreeMap::new(), FixedEnvironment::default());
        let site = EntrySite::new(&root, &root, &scopes, None, &environment);
        let named = [("./run", &run), ("other", &other), ("tool", &tool), ("sh", &shell)];
        let files = CommandFiles {
            programs: named.map(|(word, path)| (word.to_owned(), path.clone())).into(),
            code: vec![run.clone(), code, lib.clone(), shell],
            ..CommandFiles::default()
        };
        let argv = ["./run", "x"].map(str::to_owned).to_vec();
        let effect = ProgramEffect { argv, ..ProgramEffect::default() };
        let text = starts(&effect, &program(Some(&run), files), &site);
        let [run, other, lib, tool] = [run, other, lib, tool].map(|it| it.display().to_string());
        let expected = format!(
            "starts ./run x ({run}, part of the project, runs {other} of the project, \
             runs {lib}, {tool} from outside the project)"
        );
        assert_eq!(text, expected);
    }
}
