//! The whole compiler: request → [`Configuration`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::discover::{self, Candidate, EMBEDDED_SERVERS, EMBEDDED_TOOLS, LoadRequest};
use super::environment::Environment;
use super::expand::Allowed;
use super::keys::{self, TOOLS_FILE, canonical};
use super::node::{Node, NodeValue, SourceText};
use super::parse::{self, Parsed};
use super::read;
use super::resolve::settings::{self, Settings};
use super::resolve::{FileContext, Findings, Gathered, servers, tools};
use super::spec::{Configuration, FileRole, KindWords, Layer, LoadedFile};
use super::trust::Gate;
use crate::model::Problem;

/// Finds, reads and understands all configuration files. Never fails as a whole: what is wrong is
/// in [`Configuration::problems`], and entries out of service are in [`Configuration::disabled`].
pub fn load(
    request: &LoadRequest,
    kinds: &[KindWords],
    environment: &dyn Environment,
) -> Configuration {
    let found = discover::find(request, environment);
    let mut loader = Loader {
        environment,
        kinds,
        gathered: Gathered::new(Gate::new(environment)),
        settings: Settings::default(),
        project_root: environment.cwd(),
        trust_all: request.trust_all,
    };
    loader.gathered.configuration.problems = found.problems;
    loader.files(&found.files, true);
    loader.finish(found.searched)
}

struct Loader<'a> {
    environment: &'a dyn Environment,
    kinds: &'a [KindWords],
    gathered: Gathered<'a>,
    settings: Settings,
    /// What the scope `PROJECT_ROOT` is when no file says so.
    project_root: PathBuf,
    trust_all: bool,
}

impl Loader<'_> {
    /// Loads files in order; `may_discover` is false for files of a `discover:` directory.
    fn files(&mut self, candidates: &[Candidate], may_discover: bool) {
        let opened = open_all(candidates);
        self.scopes(candidates, &opened, may_discover);
        for (candidate, opened) in candidates.iter().zip(opened) {
            match opened {
                Ok((text, parsed)) => self.file(candidate, &text, parsed, may_discover),
                Err(problem) => self.problem(problem),
            }
        }
    }

    /// Reads the named directories of all files before any entry uses one.
    fn scopes(
        &mut self,
        candidates: &[Candidate],
        opened: &[Result<(String, Parsed), Problem>],
        may_discover: bool,
    ) {
        let tools = candidates.iter().zip(opened).filter_map(|(candidate, opened)| {
            let (text, parsed) = opened.as_ref().ok()?;
            (candidate.role == FileRole::Tools).then_some((candidate, text, parsed))
        });
        let mut unplaced = may_discover;
        for (candidate, text, parsed) in tools {
            if unplaced && candidate.layer != Layer::Embedded {
                unplaced = false;
                if let Some(directory) = candidate.path.parent() {
                    self.project_root = directory.to_path_buf();
                }
            }
            if let Some(node) = parsed.root.get("scopes") {
                let file = self.context(candidate, text, Vec::new());
                let mut findings = Findings::default();
                self.settings.scopes(node, &file, &mut findings);
                self.gathered.configuration.problems.extend(findings.problems);
            }
        }
    }

    fn file(&mut self, candidate: &Candidate, text: &str, parsed: Parsed, may_discover: bool) {
        let role = candidate.role;
        self.gathered.configuration.files.push(LoadedFile {
            path: candidate.path.clone(),
            role,
            layer: candidate.layer,
        });
        let mut file = self.context(candidate, text, parsed.duplicates);
        match role {
            FileRole::Servers => {
                file.defaults = parsed.root.get("defaults").cloned();
                let mut findings = Findings::default();
                reserved_keys(&parsed.root, candidate.layer, &mut findings);
                if let Some(node) = &file.defaults {
                    self.settings.read("defaults", node, &file, &mut findings);
                }
                self.gathered.configuration.problems.extend(findings.problems);
                servers::file(parsed.root, &mut file, &mut self.gathered);
            }
            FileRole::Tools => {
                let directories = self.tools(parsed.root, &mut file);
                if may_discover {
                    self.discovered(directories, &file, candidate);
                } else if let Some(node) = directories {
                    let problem = Problem::warning("a discovered file cannot discover more");
                    self.problem(problem.at(node.place()));
                }
            }
        }
        // What no entry owned: keys repeated in settings and at the top.
        let rest = file.duplicates.into_iter().map(|duplicate| duplicate.problem);
        self.gathered.configuration.problems.extend(rest);
    }

    fn context<'f>(
        &self,
        candidate: &'f Candidate,
        text: &str,
        duplicates: Vec<parse::Duplicate>,
    ) -> FileContext<'f>
    where
        Self: 'f,
    {
        let cwd = self.environment.cwd();
        let base_dir = match candidate.layer {
            Layer::Embedded => cwd.clone(),
            _ if candidate.given.is_some() => cwd.clone(),
            _ => candidate.path.parent().map_or_else(|| cwd.clone(), Path::to_path_buf),
        };
        let default_cwd = match candidate.layer {
            Layer::User | Layer::Embedded => cwd,
            _ => base_dir.clone(),
        };
        FileContext {
            environment: self.environment,
            kinds: self.kinds,
            path: &candidate.path,
            layer: candidate.layer,
            base_dir,
            default_cwd,
            trusted: self.trust_all
                || candidate.layer != Layer::Project
                || text == EMBEDDED_TOOLS
                || text == EMBEDDED_SERVERS,
            duplicates,
            schemas: None,
            defaults: None,
            scopes: Arc::new(self.settings.scopes_for(
                candidate.layer,
                &self.project_root,
                self.environment,
            )),
            written_defaults: None,
            expanded: self.gathered.configuration.expanded.clone(),
        }
    }

    /// Resolves a file of tools; gives its `discover` value.
    fn tools(&mut self, root: Node, file: &mut FileContext<'_>) -> Option<Node> {
        if root.is_null() {
            return None;
        }
        if root.as_map().is_err() {
            self.problem(root.expected("a mapping with 'tools'"));
            return None;
        }
        file.schemas = root.get("schemas").cloned();
        file.defaults = root.get("defaults").cloned();
        file.written_defaults.clone_from(&file.defaults);
        if let Some(defaults) = &mut file.defaults {
            let expander =
                super::expand::Expander::new(self.environment, &file.base_dir, &file.expanded);
            let problems = &mut self.gathered.configuration.problems;
            expander.entry(defaults, &[], problems);
        }
        let mut findings = Findings::default();
        reserved_keys(&root, file.layer, &mut findings);
        let NodeValue::Map(pairs) = root.value else { return None };
        let owner = Node { value: NodeValue::Null, position: root.position, source: root.source };
        let mut directories = None;
        for (key, value) in pairs {
            let Some(word) = canonical(TOOLS_FILE, &key.text) else {
                if settings::reserved(&key.text, file.layer).is_none() {
                    findings.unknown_key(&owner, &key, TOOLS_FILE, &[]);
                    if keys::canonical(keys::SERVERS_FILE, &key.text).is_some()
                        && let Some(problem) = findings.problems.last_mut()
                    {
                        problem.hint = Some("servers belong in mcp.yaml (--mcp)".to_owned());
                    }
                }
                continue;
            };
            match word {
                "tools" => tools::list(value, "tools", file, &mut self.gathered),
                "toolkits" => tools::list(value, "toolkits", file, &mut self.gathered),
                "components" => tools::list(value, "components", file, &mut self.gathered),
                "discover" => directories = Some(value),
                "version" => check_version(&value, &mut findings),
                // Read before the entries of any file.
                "scopes" => {}
                _ => {
                    self.settings.read(word, &value, file, &mut findings);
                }
            }
        }
        self.gathered.configuration.problems.extend(findings.problems);
        directories
    }

    /// Loads the files of the directories that `discover` names.
    fn discovered(&mut self, node: Option<Node>, file: &FileContext<'_>, from: &Candidate) {
        let Some(mut node) = node.filter(|node| !node.is_null()) else { return };
        let mut findings = Findings::default();
        file.expander().value(&mut node, "discover", Allowed::Variables, &mut findings.problems);
        let directories = findings.take(node.as_texts()).unwrap_or_default();
        for directory in directories {
            let directory: PathBuf = file.base_dir.join(directory).components().collect();
            self.gathered.configuration.searched.push(directory.clone());
            match discover::directory(&directory) {
                Err(why) => findings.error(node.place(), why),
                Ok(paths) => {
                    let files = paths.into_iter().map(|path| Candidate { path, ..from.clone() });
                    self.files(&files.collect::<Vec<_>>(), false);
                }
            }
        }
        self.gathered.configuration.problems.extend(findings.problems);
    }

    fn problem(&mut self, problem: Problem) {
        self.gathered.configuration.problems.push(problem);
    }

    fn finish(self, searched: Vec<PathBuf>) -> Configuration {
        let Gathered { mut configuration, gate, literals, .. } = self.gathered;
        let settings = self.settings.in_force(&self.project_root, self.environment);
        configuration.profiles = settings.profiles;
        configuration.policy = settings.policy;
        configuration.stats = settings.stats;
        configuration.audit = settings.audit;
        configuration.history = settings.history;
        configuration.scopes = settings.scopes;
        configuration.tools.shrink_to_fit();
        configuration.problems.extend(gate.into_problems());
        configuration.searched = [searched, configuration.searched].concat();
        order(&mut configuration);
        configuration.problems.iter_mut().for_each(|p| literals.mask(p));
        configuration.disabled.iter_mut().for_each(|entry| literals.mask(&mut entry.problem));
        configuration
    }
}

/// Puts the findings into the order of the files and of the lines in them.
fn order(configuration: &mut Configuration) {
    let files = &configuration.files;
    configuration.problems.sort_by_key(|problem| {
        let place = problem.place.as_ref();
        let file = place.and_then(|p| files.iter().position(|f| f.path == **p.file));
        (file.unwrap_or(files.len()), place.map(|p| (p.line, p.column)))
    });
}

/// Opens files, several at a time when there are many: parsing is most of the work of loading.
fn open_all(candidates: &[Candidate]) -> Vec<Result<(String, Parsed), Problem>> {
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
pub(super) fn open(candidate: &Candidate) -> Result<(String, Parsed), Problem> {
    let (source, text) = if let Some(text) = candidate.text() {
        (SourceText::new(&candidate.path, text), text.to_owned())
    } else {
        let named = matches!(candidate.layer, Layer::Flag | Layer::Variable);
        read::read(&candidate.path, named)?
    };
    let parsed = parse::parse(&source, &text)?;
    Ok((text, parsed))
}

fn check_version(node: &Node, findings: &mut Findings) {
    if let Some(text) = findings.take(node.as_scalar_text())
        && text != "1"
    {
        let problem = Problem::error(format!("version {text} of this file's form is not known"));
        findings.problems.push(problem.hint("this build reads version 1").at(node.place()));
    }
}

/// Finds keys with which a project's file would decide what only the user may.
fn reserved_keys(root: &Node, layer: Layer, findings: &mut Findings) {
    for (key, _) in root.entries() {
        if let Some(message) = settings::reserved(&key.text, layer) {
            findings.error(root.place_of(key), message);
        }
    }
}
