//! The files of a server's own code, as its `watch` names them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::watched_files::FileStamp;

const MAX_PATTERNS: usize = 32;
/// How many files and directories are looked at, matching or not.
const MAX_ENTRIES: usize = 20_000;
/// Directories that no author edits, besides hidden ones.
const SKIPPED: [&str; 4] = ["node_modules", "target", "venv", "__pycache__"];

#[derive(Debug, Clone)]
pub struct CodePatterns {
    files: GlobSet,
    /// Where to begin for each pattern: its directories before the first wildcard.
    beginnings: Vec<PathBuf>,
}

/// The matching files, in their current state.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CodeState {
    files: BTreeMap<PathBuf, Option<FileStamp>>,
    /// Whether there are more files than are looked at.
    pub is_partial: bool,
}

impl CodePatterns {
    /// Patterns as written, which lead to files below a directory and nowhere else.
    pub fn read(patterns: &[String]) -> Result<Self, String> {
        if patterns.is_empty() || patterns.len() > MAX_PATTERNS {
            return Err(format!("expected 1 to {MAX_PATTERNS} patterns"));
        }
        let (mut files, mut beginnings) = (GlobSetBuilder::new(), Vec::new());
        for written in patterns {
            let pattern = written.strip_prefix("./").unwrap_or(written);
            let path = Path::new(pattern);
            let is_below = path.components().all(|part| matches!(part, Component::Normal(_)));
            if pattern.is_empty() || !is_below || pattern.contains("${") || pattern.starts_with('~')
            {
                return Err(format!(
                    "the pattern '{written}' must be a path below the working directory"
                ));
            }
            let glob = GlobBuilder::new(pattern).literal_separator(true).build();
            files.add(glob.map_err(|error| format!("invalid pattern: {error}"))?);
            let plain =
                |part: &&OsStr| !part.to_string_lossy().contains(['*', '?', '[', '{', '\\']);
            beginnings.push(path.parent().unwrap_or(path).iter().take_while(plain).collect());
        }
        let files = files.build().map_err(|error| format!("invalid pattern: {error}"))?;
        Ok(Self { files, beginnings })
    }

    /// The state of the files in `directory` that match. Links are not followed.
    pub fn state_in(&self, directory: &Path) -> CodeState {
        let mut state = CodeState::default();
        let Ok(root) = directory.canonicalize() else { return state };
        let places = self.beginnings.iter().map(|beginning| root.join(beginning));
        let is_no_link = |place: &PathBuf| place.canonicalize().is_ok_and(|real| real == *place);
        let mut pending: Vec<PathBuf> = places.filter(is_no_link).collect();
        pending.sort();
        pending.dedup();
        let mut count = 0;
        while let Some(place) = pending.pop() {
            for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
                count += 1;
                if count > MAX_ENTRIES {
                    state.is_partial = true;
                    return state;
                }
                let (Ok(kind), name, path) = (entry.file_type(), entry.file_name(), entry.path())
                else {
                    continue;
                };
                let name = name.to_string_lossy();
                let is_code = !name.starts_with('.') && !SKIPPED.contains(&&*name);
                if kind.is_dir() && is_code {
                    pending.push(path);
                } else if kind.is_file()
                    && path.strip_prefix(&root).is_ok_and(|path| self.files.is_match(path))
                {
                    let stamp = FileStamp::of_link(&path);
                    state.files.insert(path, stamp);
                }
            }
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(written: &[&str]) -> Result<CodePatterns, String> {
        CodePatterns::read(&written.iter().map(|&text| text.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn matching_files_count_and_what_is_hidden_built_or_linked_does_not() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = |name: &str| dir.path().join(name);
        let write = |name: &str| {
            std::fs::create_dir_all(path(name).parent().unwrap()).unwrap();
            std::fs::write(path(name), "").unwrap();
        };
        for name in [
            "src/a.py",
            "src/deep/b.py",
            "src/c.txt",
            "src/.git/d.py",
            "src/node_modules/e.py",
            "src/target/f.py",
            "other/g.py",
            "main.py",
        ] {
            write(name);
        }
        std::fs::write(outside.path().join("h.py"), "").unwrap();
        std::os::unix::fs::symlink(outside.path(), path("src/link")).unwrap();
        std::os::unix::fs::symlink(outside.path(), path("linked")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("h.py"), path("src/h.py")).unwrap();
        let names = |written: &[&str]| -> Vec<String> {
            let state = patterns(written).unwrap().state_in(dir.path());
            let root = dir.path().canonicalize().unwrap();
            let name = |path: &PathBuf| path.strip_prefix(&root).unwrap().display().to_string();
            state.files.keys().map(name).collect()
        };
        assert_eq!(names(&["src/**/*.py"]), ["src/a.py", "src/deep/b.py"]);
        assert_eq!(names(&["./*.py", "src/*.txt"]), ["main.py", "src/c.txt"]);
        assert_eq!(names(&["src/a.py", "src/a.py"]), ["src/a.py"]);
        assert_eq!(names(&["linked/*.py", "nothing/*"]), [""; 0]);

        let python = patterns(&["**/*.py"]).unwrap();
        let before = python.state_in(dir.path());
        write("src/c.txt");
        assert_eq!(python.state_in(dir.path()), before);
        std::fs::write(path("src/a.py"), "changed").unwrap();
        assert_ne!(python.state_in(dir.path()), before);
    }

    #[test]
    fn a_pattern_leads_nowhere_else() {
        for written in
            ["", "/etc/*", "../*.py", "a/../../*", "~/*.py", "${HOME}/*.py", "src/[", "."]
        {
            assert!(patterns(&[written]).is_err(), "{written}");
        }
        assert!(patterns(&[]).is_err() && patterns(&["*"; MAX_PATTERNS + 1]).is_err());
    }

    #[test]
    fn more_files_than_are_looked_at_are_told_from_all() {
        let dir = tempfile::tempdir().unwrap();
        for at in 0..=MAX_ENTRIES {
            std::fs::File::create(dir.path().join(at.to_string())).unwrap();
        }
        assert!(patterns(&["*"]).unwrap().state_in(dir.path()).is_partial);
        assert!(!patterns(&["sub/*"]).unwrap().state_in(dir.path()).is_partial);
    }
}
