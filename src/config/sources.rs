//! Files that were found → files that were read, those of `discover:` directories among them.
//!
//! Owns: the order of the files, and what a project's `discover` may reach before anybody agreed to
//! the project: literal directories below its own. Never does: understand an entry.

use std::path::{Path, PathBuf};

use super::consent::{Grant, is_literal};
use super::discover::{self, Candidate, EMBEDDED_SERVERS, EMBEDDED_TOOLS, Found};
use super::environment::Environment;
use super::expand::Allowed;
use super::expanded::ExpandedValues;
use super::node::SourceText;
use super::parse::{self, Parsed};
use super::read;
use super::spec::{FileRole, Layer};
use crate::model::Problem;

/// One file that was read and parsed.
#[derive(Debug)]
pub(super) struct SourceFile {
    pub candidate: Candidate,
    pub parsed: Parsed,
    /// Whether its text is that of the embedded default, which is trusted wherever it lies.
    pub is_embedded: bool,
    /// Whether a `discover:` directory gave it.
    pub is_discovered: bool,
}

impl SourceFile {
    /// Whether it belongs to a project that a person has to agree to.
    pub fn is_project(&self) -> bool {
        self.candidate.layer == Layer::Project && !self.is_embedded
    }

    /// The directory that relative paths in it begin at.
    pub fn base_dir(&self, cwd: &Path) -> PathBuf {
        match self.candidate.layer {
            Layer::Embedded => cwd.to_path_buf(),
            _ if self.candidate.given.is_some() => cwd.to_path_buf(),
            _ => {
                let parent = self.candidate.path.parent();
                parent.map_or_else(|| cwd.to_path_buf(), Path::to_path_buf)
            }
        }
    }
}

/// All files of one load, those that win first.
#[derive(Debug, Default)]
pub(super) struct Sources {
    pub files: Vec<SourceFile>,
    pub problems: Vec<Problem>,
    /// Every place that was looked at.
    pub searched: Vec<PathBuf>,
}

impl Sources {
    /// Reads what was found.
    pub fn read(found: Found, environment: &dyn Environment, expanded: &ExpandedValues) -> Self {
        let mut sources =
            Self { problems: found.problems, searched: found.searched, files: Vec::new() };
        let opened = open_all(&found.files);
        for (candidate, opened) in found.files.into_iter().zip(opened) {
            let file = match opened {
                Ok(file) => SourceFile { candidate, ..file },
                Err(problem) => {
                    sources.problems.push(problem);
                    continue;
                }
            };
            let directories = sources.directories(&file, environment, expanded);
            let from = file.candidate.clone();
            sources.files.push(file);
            for directory in directories {
                sources.discovered(&directory, &from);
            }
        }
        sources
    }

    /// The directories that a file's `discover` names.
    fn directories(
        &mut self,
        file: &SourceFile,
        environment: &dyn Environment,
        expanded: &ExpandedValues,
    ) -> Vec<Directory> {
        let node = (file.candidate.role == FileRole::Tools)
            .then(|| file.parsed.root.get("discover"))
            .flatten();
        let Some(node) = node.filter(|node| !node.is_null()) else { return Vec::new() };
        let mut node = node.clone();
        let base_dir = file.base_dir(&environment.cwd());
        if file.is_project() {
            if !is_literal(&node) {
                let problem = Problem::error("'discover' of a project names plain directories")
                    .hint("variables are filled in only after the project was trusted");
                self.problems.push(problem.at(node.place()));
                return Vec::new();
            }
        } else {
            let expander = Grant::own().expander(environment, &base_dir, expanded);
            expander.value(&mut node, "discover", Allowed::Variables, &mut self.problems);
        }
        let texts = match node.as_texts() {
            Ok(texts) => texts,
            Err(problem) => {
                self.problems.push(problem);
                return Vec::new();
            }
        };
        let root = file.is_project().then(|| base_dir.canonicalize().unwrap_or(base_dir.clone()));
        let directory = |text: String| Directory {
            path: base_dir.join(text).components().collect(),
            place: node.place(),
            root: root.clone(),
        };
        texts.into_iter().map(directory).collect()
    }

    fn discovered(&mut self, directory: &Directory, from: &Candidate) {
        self.searched.push(directory.path.clone());
        if !directory.may_be_read(&directory.path) {
            let problem = Problem::error("'discover' of a project stays below its own directory")
                .hint("name the files with --tools, or 'discover' them from your own");
            self.problems.push(problem.at(directory.place.clone()));
            return;
        }
        let paths = match discover::directory(&directory.path) {
            Ok(paths) => paths,
            Err(why) => {
                self.problems.push(Problem::error(why).at(directory.place.clone()));
                return;
            }
        };
        let (inside, outside): (Vec<PathBuf>, Vec<PathBuf>) =
            paths.into_iter().partition(|path| directory.may_be_read(path));
        for path in outside {
            let problem = Problem::error("a link that leads out of the project is not followed");
            self.problems.push(problem.at(read::place(&path)));
        }
        let candidates: Vec<Candidate> =
            inside.into_iter().map(|path| Candidate { path, ..from.clone() }).collect();
        let opened = open_all(&candidates);
        for (candidate, opened) in candidates.into_iter().zip(opened) {
            match opened {
                Ok(file) => {
                    self.files.push(SourceFile { candidate, is_discovered: true, ..file });
                }
                Err(problem) => self.problems.push(problem),
            }
        }
    }
}

/// A directory of more files.
struct Directory {
    path: PathBuf,
    place: crate::model::Place,
    /// The root that a project's directories stay below, links resolved.
    root: Option<PathBuf>,
}

impl Directory {
    /// Whether nothing outside the project would be read. A path that is not there reads nothing.
    fn may_be_read(&self, path: &Path) -> bool {
        let Some(root) = &self.root else { return true };
        path.canonicalize().map_or(true, |real| real.starts_with(root))
    }
}

/// Opens files, several at a time when there are many: parsing is most of the work of loading.
fn open_all(candidates: &[Candidate]) -> Vec<Result<SourceFile, Problem>> {
    /// Fewer files are not worth a thread.
    const MANY: usize = 4;
    const MOST_THREADS: usize = 8;
    // Asking for the number of cores reads several files of the system, so it comes second.
    if candidates.len() < MANY {
        return candidates.iter().map(open).collect();
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    if threads == 1 {
        return candidates.iter().map(open).collect();
    }
    std::thread::scope(|scope| {
        let share = candidates.len().div_ceil(threads);
        let workers: Vec<_> = candidates
            .chunks(share)
            .map(|chunk| (chunk, scope.spawn(|| chunk.iter().map(open).collect::<Vec<_>>())))
            .collect();
        let finish =
            |(chunk, worker): (&[Candidate], std::thread::ScopedJoinHandle<'_, Vec<_>>)| {
                // A worker that panicked met a bug; its files are opened here, where it shows.
                worker.join().unwrap_or_else(|_| chunk.iter().map(open).collect())
            };
        workers.into_iter().flat_map(finish).collect()
    })
}

/// Reads and parses one file.
pub(super) fn open(candidate: &Candidate) -> Result<SourceFile, Problem> {
    let (source, text) = if let Some(text) = candidate.text() {
        (SourceText::new(&candidate.path, text), text.to_owned())
    } else {
        let named = matches!(candidate.layer, Layer::Flag | Layer::Variable);
        read::read(&candidate.path, named)?
    };
    let parsed = parse::parse(&source, &text)?;
    Ok(SourceFile {
        candidate: candidate.clone(),
        parsed,
        is_embedded: text == EMBEDDED_TOOLS || text == EMBEDDED_SERVERS,
        is_discovered: false,
    })
}
