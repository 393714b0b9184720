//! The trust question about a project, as lines of text.
//!
//! Owns: the text. References are shown as written, and everything that came from a file is
//! sanitised here, before it is stored or shown. Never does: show or ask.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::bundle::{Bundle, Difference, EntryRecord};
use super::effect::{EntryEffect, EntrySite, ProgramEffect};
use super::program::{self, ProgramInfo};
use super::project_record::ProjectRecord;
use crate::config::variables::decides_code;
use crate::util::text::safe_line;

/// What the user is asked to trust.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustRequest {
    /// The root of the project, links resolved.
    pub root: PathBuf,
    /// Exactly what would be trusted.
    pub bundle: Bundle,
    /// The stored answer that no longer matches the content, to show what changed.
    pub previous: Option<Arc<ProjectRecord>>,
    /// Whether this content was refused before; toolhost then does not ask again by itself.
    pub was_refused: bool,
}

/// One line of the question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustRequestLine {
    /// A file of the project, or another heading.
    Heading(String),
    /// An entry and what it would do.
    Entry {
        /// The name of the entry in its file.
        name: String,
        /// What the entry would do, as text that follows the name.
        text: String,
    },
    /// More about the entry above.
    Detail(String),
    /// A warning about the entry above.
    Warning(String),
    /// What was trusted before but is no longer the case.
    Previous(String),
}

impl TrustRequestLine {
    /// The line as plain text, indented by its type.
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

/// The prefix of a stored line that is a warning.
const WARNING: &str = "warning: ";

impl TrustRequest {
    /// The question in lines, with every entry and every effect.
    pub fn full_lines(&self) -> Vec<TrustRequestLine> {
        let mut lines = Vec::new();
        for file in self.bundle.files.keys() {
            lines.push(TrustRequestLine::Heading(safe_line(file).into_owned()));
            for entry in self.bundle.entries.iter().filter(|entry| entry.file == *file) {
                push_entry(entry, &mut lines);
            }
        }
        let bound = self.bundle.code.values().filter(|file| file.sha256.is_some()).count();
        if bound > 0 {
            let files = if bound == 1 { "file" } else { "files" };
            lines.push(TrustRequestLine::Heading(format!(
                "bound by content: {bound} {files} of code and documents"
            )));
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
        for difference in self.bundle.differences(before, &self.root, previous.allows_code_changes)
        {
            let text = match difference {
                Difference::Code(path) => {
                    let word = if before.code.contains_key(&path) { "changed" } else { "new" };
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

    /// The command that allows it.
    pub fn command(&self) -> String {
        let root = self.root.to_string_lossy().into_owned();
        format!("toolhost trust {}", program::shell_quoted(&[safe_line(&root).into_owned()]))
    }

    fn display_path(&self, path: &std::path::Path) -> String {
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

/// What an entry would do: one line, then code-deciding variables and warnings.
pub(super) fn entry_lines(
    effects: &[EntryEffect],
    programs: &[(&ProgramEffect, ProgramInfo)],
    references: &BTreeMap<String, Vec<String>>,
    site: &EntrySite<'_>,
) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut more: Vec<String> = Vec::new();
    for (effect, known) in programs {
        parts.push(starts(effect, known, site));
        let deciding = effect.env.iter().filter(|(name, _)| decides_code(name));
        more.extend(deciding.map(|(name, value)| format!("{name}={value}")));
        if !known.files.data.is_empty() {
            let files: Vec<String> =
                known.files.data.iter().map(|path| path.display().to_string()).collect();
            more.push(format!("is given {} (not bound by content)", files.join(", ")));
        }
        let found = known.program.as_ref().map(|program| program.resolved.as_path());
        let warnings = program::warnings(&effect.argv, found);
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
            EntryEffect::EnvFile(path) => format!("passes it the variables in {path}"),
            EntryEffect::Calls { tool, arguments: None } => format!("calls {tool}"),
            EntryEffect::Calls { tool, arguments: Some(with) } => {
                format!("calls {tool} with {with}")
            }
            EntryEffect::Renames(server) => format!("lists the tools of '{server}' as its own"),
            EntryEffect::Other(words) => words.clone(),
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

/// Describes the program that starts, such as `starts npx server (/usr/bin/npx)`.
fn starts(effect: &ProgramEffect, known: &ProgramInfo, site: &EntrySite<'_>) -> String {
    let mut about: Vec<String> = Vec::new();
    match &known.program {
        Some(program) => {
            let found = program.resolved.display().to_string();
            if effect.argv.first().is_none_or(|word| *word != found) {
                about.push(found);
            }
            if program.resolved.starts_with(site.root) {
                about.push("part of the project".to_owned());
            }
        }
        None if known.decided_by.is_empty() => about.push("not found".to_owned()),
        None => {}
    }
    if !known.decided_by.is_empty() {
        about.push(format!("decided by your {}", known.decided_by.join(", ")));
    }
    let code = known.files.code.iter().filter(|path| !path.starts_with(site.root));
    let outside: Vec<String> = code.map(|path| path.display().to_string()).collect();
    if known.program.as_ref().is_none_or(|program| !program.program.contains('/'))
        && !outside.is_empty()
    {
        about.push(format!("runs {} from outside the project", outside.join(", ")));
    }
    let mut text = format!("starts {}", program::shell_quoted(&effect.argv));
    if !about.is_empty() {
        text = format!("{text} ({})", about.join(", "));
    }
    match program::unusual_cwd(effect, site) {
        Some(cwd) => format!("{text} in {cwd}"),
        None => text,
    }
}
