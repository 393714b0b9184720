//! The whole compiler: request → [`Configuration`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::consent::{self, Access, Consent};
use super::discover::{self, LoadRequest};
use super::environment::Environment;
use super::expanded::ExpandedValues;
use super::keys::{self, TOOLS_FILE, canonical};
use super::node::{Node, NodeValue};
use super::parse;
use super::resolve::settings::{self, Settings};
use super::resolve::{FileContext, Findings, Gathered, servers, tools};
use super::sources::{SourceFile, Sources};
use super::spec::{Configuration, FileRole, KindWords, Layer, LoadedFile};
use crate::model::Problem;

/// Finds, reads and understands all configuration files. Never fails as a whole: what is wrong is
/// in [`Configuration::problems`], entries out of service are in [`Configuration::disabled`], and
/// entries that nobody agreed to yet in [`Configuration::untrusted`].
pub fn load(
    request: &LoadRequest,
    kinds: &[KindWords],
    environment: &dyn Environment,
) -> Configuration {
    let expanded = ExpandedValues::default();
    let found = discover::find(request, environment);
    let sources = Sources::read(found, environment, &expanded);
    let consent = consent::decide(&sources.files, kinds, environment, request.trust_all);
    let mut loader = Loader {
        environment,
        kinds,
        consent: &consent,
        gathered: Gathered::new(&consent),
        settings: Settings::default(),
        project_root: environment.cwd(),
        project: sources
            .files
            .iter()
            .find(|file| file.candidate.layer == Layer::Project)
            .and_then(|file| file.candidate.path.parent().map(Path::to_path_buf)),
    };
    loader.gathered.configuration.expanded = expanded;
    loader.gathered.configuration.problems = sources.problems;
    loader.gathered.configuration.searched = sources.searched;
    loader.scopes(&sources.files);
    for file in sources.files {
        loader.file(&file);
    }
    let mut configuration = loader.finish();
    configuration.trusted_root = consent.trusted_root();
    configuration.trust_record = consent.record().cloned();
    configuration.trust_request = consent.request;
    configuration
}

struct Loader<'a> {
    environment: &'a dyn Environment,
    kinds: &'a [KindWords],
    consent: &'a Consent,
    gathered: Gathered<'a>,
    settings: Settings,
    /// What the scope `PROJECT_ROOT` is when no file says so.
    project_root: PathBuf,
    /// The directory in which the project's configuration was found.
    project: Option<PathBuf>,
}

impl<'a> Loader<'a> {
    /// Reads the named directories of all files before any entry uses one.
    fn scopes(&mut self, files: &[SourceFile]) {
        let mut unplaced = true;
        for file in files.iter().filter(|file| file.candidate.role == FileRole::Tools) {
            let candidate = &file.candidate;
            if unplaced && !file.is_discovered && candidate.layer != Layer::Embedded {
                unplaced = false;
                if let Some(directory) = candidate.path.parent() {
                    self.project_root = directory.to_path_buf();
                }
            }
            if let Some(node) = file.parsed.root.get("scopes") {
                let file = self.context(file, Vec::new());
                let mut findings = Findings::default();
                self.settings.scopes(node, &file, &mut findings);
                self.gathered.configuration.problems.extend(findings.problems);
            }
        }
    }

    fn file(&mut self, source: &SourceFile) {
        let role = source.candidate.role;
        self.gathered.configuration.files.push(LoadedFile {
            path: source.candidate.path.clone(),
            role,
            layer: source.candidate.layer,
        });
        let mut file = self.context(source, source.parsed.duplicates.clone());
        let root = source.parsed.root.clone();
        match role {
            FileRole::Servers => {
                file.defaults = root.get("defaults").cloned();
                let mut findings = Findings::default();
                reserved_keys(&root, file.layer, &mut findings);
                if let Some(node) = &file.defaults {
                    self.settings.read("defaults", node, &file, &mut findings);
                }
                self.gathered.configuration.problems.extend(findings.problems);
                servers::file(root, &mut file, &mut self.gathered);
            }
            FileRole::Tools => {
                if source.is_discovered
                    && let Some(node) = root.get("discover").filter(|node| !node.is_null())
                {
                    let problem = Problem::warning("a discovered file cannot discover more");
                    self.problem(problem.at(node.place()));
                }
                self.tools(root, &mut file);
            }
        }
        // What no entry owned: keys repeated in settings and at the top.
        let rest = file.duplicates.into_iter().map(|duplicate| duplicate.problem);
        self.gathered.configuration.problems.extend(rest);
    }

    fn context<'f>(
        &self,
        source: &'f SourceFile,
        duplicates: Vec<parse::Duplicate>,
    ) -> FileContext<'f>
    where
        'a: 'f,
    {
        let cwd = self.environment.cwd();
        let candidate = &source.candidate;
        let base_dir = source.base_dir(&cwd);
        let default_cwd = match candidate.layer {
            Layer::User | Layer::Embedded => cwd,
            _ => base_dir.clone(),
        };
        FileContext {
            access: Access::new(
                self.environment,
                self.consent.grant(source),
                self.gathered.configuration.expanded.clone(),
            ),
            kinds: self.kinds,
            layer: candidate.layer,
            is_project: source.is_project(),
            root: self.consent.root(),
            base_dir,
            project_root: self.project.clone(),
            default_cwd,
            duplicates,
            schemas: None,
            defaults: None,
            scopes: Arc::new(self.settings.scopes_for(
                candidate.layer,
                &self.project_root,
                self.environment,
            )),
        }
    }

    /// Resolves a file of tools.
    fn tools(&mut self, root: Node, file: &mut FileContext<'_>) {
        if root.is_null() {
            return;
        }
        if root.as_map().is_err() {
            self.problem(root.expected("a mapping with 'tools'"));
            return;
        }
        file.schemas = root.get("schemas").cloned();
        file.defaults = root.get("defaults").cloned();
        if let Some(mut defaults) = file.defaults.take() {
            if let Some(expander) = file.expander() {
                let problems = &mut self.gathered.configuration.problems;
                expander.entry(&mut defaults, &[], problems);
            }
            file.defaults = Some(defaults);
        }
        let mut findings = Findings::default();
        reserved_keys(&root, file.layer, &mut findings);
        let NodeValue::Map(pairs) = root.value else { return };
        let owner = Node { value: NodeValue::Null, position: root.position, source: root.source };
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
                "version" => check_version(&value, &mut findings),
                // Read before the entries of any file.
                "scopes" | "discover" => {}
                _ => {
                    self.settings.read(word, &value, file, &mut findings);
                }
            }
        }
        self.gathered.configuration.problems.extend(findings.problems);
    }

    fn problem(&mut self, problem: Problem) {
        self.gathered.configuration.problems.push(problem);
    }

    fn finish(self) -> Configuration {
        let Gathered { mut configuration, literals, .. } = self.gathered;
        let settings = self.settings.in_force(&self.project_root, self.environment);
        configuration.profiles = settings.profiles;
        configuration.policy = settings.policy;
        configuration.stats = settings.stats;
        configuration.audit = settings.audit;
        configuration.history = settings.history;
        configuration.scopes = settings.scopes;
        configuration.tools.shrink_to_fit();
        configuration.problems.extend(self.consent.problems.iter().cloned());
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
