//! The tool `search`: finding files by name and by their content.
//!
//! Bounded: matches, bytes of one file, bytes of all files, the length of a shown line, the size
//! of a compiled expression; time by the call's own limit.

use std::io::Read as _;

use globset::{GlobBuilder, GlobMatcher};
use regex::bytes::{Regex, RegexBuilder};
use serde_json::{Value, json};

use super::job::{FileJob, entry_limit};
use super::walk::{self, Walk, WalkControl, WalkEntry};
use super::{read, root};
use crate::model::{Error, ToolResult};
use crate::providers::arguments::Arguments;
use crate::util::text::safe_line;
use crate::util::units;

const MAX_READ_BYTES: u64 = 64 << 20;
const MAX_FILE_BYTES: u64 = 16 << 20;
/// How much of a file tells whether it is text, in bytes.
const SNIFF_BYTES: u64 = 8 << 10;
const MAX_LINE_CHARS: usize = 240;
/// How much of a long line is shown before what was found, in characters.
const CONTEXT_CHARS: usize = 60;
const MAX_PATTERN_BYTES: usize = 4 << 10;

/// The compiled arguments of a search: a pattern of names, a text, or both.
struct SearchQuery {
    glob: Option<GlobMatcher>,
    text: Option<Regex>,
    limit: usize,
}

/// The matches so far, and how much was read for them.
#[derive(Default)]
struct SearchResults {
    matches: Vec<Value>,
    lines: Vec<String>,
    truncated: bool,
    read: u64,
    searched: u64,
    truncated_files: u64,
    full: bool,
}

/// Answers a call of `search`, up to the limits of matches and of bytes read.
pub(super) fn run(job: &FileJob, arguments: Arguments<'_>) -> Result<ToolResult, Error> {
    let path = job.directory(arguments)?;
    let query = SearchQuery::read(arguments)?;
    let mut results = SearchResults::default();
    let mut walk = Walk::new(job);
    walk.for_each(path.path(), &mut |entry| {
        if entry.kind.is_dir() {
            return Ok(if entry.name == ".git" {
                WalkControl::SkipChildren
            } else {
                WalkControl::Continue
            });
        }
        if query.glob.as_ref().is_none_or(|glob| glob.is_match(entry.relative_path)) {
            results.search_entry(job, entry, &query)?;
        }
        Ok(if results.truncated || results.full {
            WalkControl::Stop
        } else {
            WalkControl::Continue
        })
    })?;
    Ok(results.answer(&query, &walk.unreadable))
}

impl SearchQuery {
    fn read(arguments: Arguments<'_>) -> Result<Self, Error> {
        let glob = arguments.optional_text("glob")?;
        let text = arguments.optional_text("text")?;
        if glob.is_none() && text.is_none() {
            return Err(Error::usage("no search criteria")
                .with_hint("give a pattern for names, a text, or both: glob=*.md text=milk"));
        }
        if [glob, text].into_iter().flatten().any(str::is_empty) {
            return Err(Error::usage("the pattern or text to search for is empty"));
        }
        if [glob, text].into_iter().flatten().any(|pattern| pattern.len() > MAX_PATTERN_BYTES) {
            return Err(Error::usage(format!(
                "a pattern can have at most {MAX_PATTERN_BYTES} bytes"
            )));
        }
        let text = text.map(|text| {
            let pattern =
                if arguments.flag("regex")? { text.to_owned() } else { regex::escape(text) };
            RegexBuilder::new(&pattern)
                .case_insensitive(arguments.flag("ignore_case")?)
                .size_limit(1 << 20)
                .dfa_size_limit(4 << 20)
                .build()
                .map_err(|error| {
                    // Its message is a drawing of several lines, of which the last says why.
                    let message = error.to_string();
                    let reason = message.lines().last().unwrap_or_default();
                    let reason = reason.strip_prefix("error: ").unwrap_or(reason);
                    Error::usage(format!("'text' is not a regular expression: {reason}"))
                })
        });
        Ok(Self {
            glob: glob.map(name_pattern).transpose()?,
            text: text.transpose()?,
            limit: entry_limit(arguments)?,
        })
    }
}

/// A pattern for paths; one without a slash is for names, wherever they are.
fn name_pattern(pattern: &str) -> Result<GlobMatcher, Error> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let anywhere = if pattern.contains('/') { "" } else { "**/" };
    let glob = GlobBuilder::new(&format!("{anywhere}{pattern}")).literal_separator(true).build();
    let glob = glob.map_err(|error| {
        let kind = error.kind();
        Error::usage(format!("invalid pattern: error parsing glob '{pattern}': {kind}"))
    })?;
    Ok(glob.compile_matcher())
}

impl SearchResults {
    fn search_entry(
        &mut self,
        job: &FileJob,
        entry: &WalkEntry<'_>,
        query: &SearchQuery,
    ) -> Result<(), Error> {
        let Some(text) = &query.text else {
            let shown = entry.path.display().to_string();
            self.add(safe_line(&shown).into_owned(), json!({ "path": shown }), query);
            return Ok(());
        };
        job.check_cancelled()?;
        // What cannot be opened is skipped, as are links and anything that is not a file.
        let Ok(Some((mut file, metadata))) = root::open_no_follow(entry.dir, entry.name) else {
            return Ok(());
        };
        let mut bytes = Vec::new();
        let mut take = |bytes: &mut Vec<u8>, most: u64| (&mut file).take(most).read_to_end(bytes);
        if take(&mut bytes, SNIFF_BYTES).is_err() || read::binary(&bytes).is_some() {
            self.read += bytes.len() as u64;
            return Ok(());
        }
        let room = MAX_FILE_BYTES.min(MAX_READ_BYTES.saturating_sub(self.read));
        if take(&mut bytes, room.saturating_sub(SNIFF_BYTES)).is_err() {
            return Ok(());
        }
        self.read += bytes.len() as u64;
        self.searched += 1;
        self.full = self.read >= MAX_READ_BYTES;
        self.truncated_files += u64::from(metadata.len() > bytes.len() as u64);
        let shown = entry.path.display().to_string();
        for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if at % 4096 == 0 {
                job.check_cancelled()?;
            }
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let Some(hit) = text.find(line) else { continue };
            let text = window(line, hit.start());
            let number = at + 1;
            let shown_match = format!("{}:{number}: {text}", safe_line(&shown));
            self.add(shown_match, json!({ "path": shown, "line": number, "text": text }), query);
            if self.truncated {
                break;
            }
        }
        Ok(())
    }

    /// Adds a match, unless there are enough: then it is known that there are more.
    fn add(&mut self, line: String, value: Value, query: &SearchQuery) {
        if self.matches.len() < query.limit {
            self.lines.push(line);
            self.matches.push(value);
        } else {
            self.truncated = true;
        }
    }

    fn answer(mut self, query: &SearchQuery, unseen: &[String]) -> ToolResult {
        if self.matches.is_empty() {
            self.lines.push("nothing found".to_owned());
        }
        let mut warnings: Vec<String> = walk::unreadable_line(unseen).into_iter().collect();
        if self.truncated {
            let limit = query.limit;
            self.lines.push(format!("[only the first {limit}; 'limit' allows more]"));
        }
        if self.full {
            warnings.push(format!(
                "the search ended after {}, {} files; narrow the path or pattern to search further",
                units::show_size(self.read),
                self.searched
            ));
        } else if self.truncated_files > 0 {
            warnings.push(format!(
                "of {} large files only the first {} were searched",
                self.truncated_files,
                units::show_size(MAX_FILE_BYTES)
            ));
        }
        let truncated = self.truncated || self.full;
        let structured = json!({ "matches": self.matches, "truncated": truncated });
        ToolResult {
            success: true,
            output: structured.clone(),
            content: vec![json!({ "type": "text", "text": self.lines.join("\n") + "\n" })],
            structured: Some(structured),
            warnings,
            ..ToolResult::default()
        }
    }
}

/// The part of a line that shows what was found at byte `hit`.
fn window(line: &[u8], hit: usize) -> String {
    let before = String::from_utf8_lossy(line.get(..hit).unwrap_or_default());
    let after = String::from_utf8_lossy(line.get(hit..).unwrap_or_default());
    let lead = before.chars().count();
    let whole = lead + after.chars().count();
    if whole <= MAX_LINE_CHARS {
        return format!("{before}{after}");
    }
    let skip = lead.saturating_sub(CONTEXT_CHARS);
    let shown: String =
        before.chars().chain(after.chars()).skip(skip).take(MAX_LINE_CHARS).collect();
    let head = if skip > 0 { "…" } else { "" };
    let tail = if skip + MAX_LINE_CHARS < whole { "…" } else { "" };
    format!("{head}{shown}{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_shows_what_was_found() {
        assert_eq!(window(b"short line", 6), "short line");
        let line = format!("{}needle{}", "a".repeat(500), "b".repeat(500));
        let shown = window(line.as_bytes(), 500);
        assert!(shown.starts_with("…aaa") && shown.contains("needle") && shown.ends_with("b…"));
        assert_eq!(shown.chars().count(), MAX_LINE_CHARS + 2);
    }
}
