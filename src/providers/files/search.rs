//! Finding files by name and by what stands in them.
//!
//! Bounded: matches, bytes of one file, bytes of all files, the length of a shown line, the size
//! of a compiled expression; time by the call's own limit.

use std::io::Read as _;

use globset::{GlobBuilder, GlobMatcher};
use regex::bytes::{Regex, RegexBuilder};
use serde_json::{Value, json};

use super::arguments::Arguments;
use super::job::Job;
use super::walk::{self, Met, Next, Walk};
use super::{open, read};
use crate::model::{Fault, ToolResult};
use crate::util::text::safe_line;
use crate::util::units;

/// How much is read in one search, in bytes.
const MOST_READ: u64 = 64 << 20;
/// How much of one file is searched, in bytes.
const MOST_OF_ONE: u64 = 16 << 20;
/// How much of a file tells whether it is text, in bytes.
const LOOKED_AT: u64 = 8 << 10;
/// How much of a line is shown, in characters.
const LINE_SHOWN: usize = 240;
/// How much of a long line is shown before what was found, in characters.
const BEFORE: usize = 60;
/// The longest pattern, in bytes.
const PATTERN: usize = 4 << 10;

/// What is looked for.
struct Wanted {
    glob: Option<Names>,
    text: Option<Regex>,
    limit: usize,
}

/// A pattern over names, or over paths when it has a slash in it.
struct Names {
    matcher: GlobMatcher,
    paths: bool,
}

/// What was found so far.
#[derive(Default)]
struct Found {
    matches: Vec<Value>,
    lines: Vec<String>,
    truncated: bool,
    read: u64,
    searched: u64,
    cut: u64,
    full: bool,
}

/// Runs one call.
pub(super) fn run(job: &Job, arguments: &Arguments<'_>) -> Result<ToolResult, Fault> {
    let path = job.directory(arguments)?;
    let wanted = Wanted::read(arguments)?;
    let mut found = Found::default();
    let mut walk = Walk::new(job);
    walk.through(path.path(), &mut |met| {
        if met.kind.is_dir() {
            return Ok(if met.name == ".git" { Next::Past } else { Next::On });
        }
        if wanted.glob.as_ref().is_none_or(|glob| glob.fits(met)) {
            found.look_at(job, met, &wanted)?;
        }
        Ok(if found.truncated || found.full { Next::End } else { Next::On })
    })?;
    Ok(found.answer(&wanted, &walk.unseen))
}

impl Wanted {
    fn read(arguments: &Arguments<'_>) -> Result<Self, Fault> {
        let glob = arguments.text(&["glob", "pattern"])?;
        let text = arguments.text(&["text"])?;
        if glob.is_none() && text.is_none() {
            return Err(Fault::usage("nothing says what to look for")
                .hint("give a pattern for names, a text, or both: glob=*.md text=milk"));
        }
        if [glob, text].into_iter().flatten().any(str::is_empty) {
            return Err(Fault::usage("what is looked for is empty"));
        }
        if [glob, text].into_iter().flatten().any(|pattern| pattern.len() > PATTERN) {
            return Err(Fault::usage(format!("a pattern has at most {PATTERN} bytes")));
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
                    let words = error.to_string();
                    let why = words.lines().last().unwrap_or_default();
                    let why = why.strip_prefix("error: ").unwrap_or(why);
                    Fault::usage(format!("'text' is no regular expression: {why}"))
                })
        });
        Ok(Self {
            glob: glob.map(Names::read).transpose()?,
            text: text.transpose()?,
            limit: arguments.limit()?,
        })
    }
}

impl Names {
    fn read(pattern: &str) -> Result<Self, Fault> {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        let glob = glob.map_err(|error| Fault::usage(format!("the pattern is none: {error}")))?;
        Ok(Self { matcher: glob.compile_matcher(), paths: pattern.contains('/') })
    }

    fn fits(&self, met: &Met<'_>) -> bool {
        if self.paths { self.matcher.is_match(met.below) } else { self.matcher.is_match(met.name) }
    }
}

impl Found {
    fn look_at(&mut self, job: &Job, met: &Met<'_>, wanted: &Wanted) -> Result<(), Fault> {
        let Some(text) = &wanted.text else {
            let shown = met.path.display().to_string();
            self.add(safe_line(&shown).into_owned(), json!({ "path": shown }), wanted);
            return Ok(());
        };
        job.go_on()?;
        // What cannot be opened is left out, as are links and everything that is no file.
        let Ok(Some((mut file, metadata))) = open::plain(met.dir, met.name) else { return Ok(()) };
        let mut bytes = Vec::new();
        let mut take = |bytes: &mut Vec<u8>, most: u64| (&mut file).take(most).read_to_end(bytes);
        if take(&mut bytes, LOOKED_AT).is_err() || read::binary(&bytes).is_some() {
            self.read += bytes.len() as u64;
            return Ok(());
        }
        let room = MOST_OF_ONE.min(MOST_READ.saturating_sub(self.read));
        if take(&mut bytes, room.saturating_sub(LOOKED_AT)).is_err() {
            return Ok(());
        }
        self.read += bytes.len() as u64;
        self.searched += 1;
        self.full = self.read >= MOST_READ;
        self.cut += u64::from(metadata.len() > bytes.len() as u64);
        let shown = met.path.display().to_string();
        for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if at % 4096 == 0 {
                job.go_on()?;
            }
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let Some(hit) = text.find(line) else { continue };
            let text = window(line, hit.start());
            let number = at + 1;
            let said = format!("{}:{number}: {text}", safe_line(&shown));
            self.add(said, json!({ "path": shown, "line": number, "text": text }), wanted);
            if self.truncated {
                break;
            }
        }
        Ok(())
    }

    /// Adds a match, unless there are enough: then it is known that there are more.
    fn add(&mut self, line: String, found: Value, wanted: &Wanted) {
        if self.matches.len() < wanted.limit {
            self.lines.push(line);
            self.matches.push(found);
        } else {
            self.truncated = true;
        }
    }

    fn answer(mut self, wanted: &Wanted, unseen: &[String]) -> ToolResult {
        if self.matches.is_empty() {
            self.lines.push("nothing found".to_owned());
        }
        let mut warnings: Vec<String> = walk::unseen(unseen).into_iter().collect();
        if self.truncated {
            let limit = wanted.limit;
            self.lines.push(format!("[only the first {limit}; 'limit' allows more]"));
        }
        if self.full {
            warnings.push(format!(
                "the search ended after {}, {} files; a narrower path or pattern reaches further",
                units::show_size(self.read),
                self.searched
            ));
        } else if self.cut > 0 {
            warnings.push(format!(
                "of {} large files only the first {} were searched",
                self.cut,
                units::show_size(MOST_OF_ONE)
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
    if whole <= LINE_SHOWN {
        return format!("{before}{after}");
    }
    let skip = lead.saturating_sub(BEFORE);
    let shown: String = before.chars().chain(after.chars()).skip(skip).take(LINE_SHOWN).collect();
    let head = if skip > 0 { "…" } else { "" };
    let tail = if skip + LINE_SHOWN < whole { "…" } else { "" };
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
        assert_eq!(shown.chars().count(), LINE_SHOWN + 2);
    }
}
