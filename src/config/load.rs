//! The whole compiler: from a load request to a [`Configuration`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::consent::{self, Consent, EnvironmentAccess};
use super::discover::{self, LoadRequest};
use super::entries::{self, file_key};
use super::environment::Environment;
use super::expanded::ExpandedValues;
use super::node::ConfigNode;
use super::parse;
use super::project_root::ProjectRoot;
use super::resolve::settings::{self, SettingsLayers, ToolsFile};
use super::resolve::{ConfigurationBuilder, FileContext, ok_or_report, servers, tools};
use super::source_file::SourceFile;
use super::sources::ConfigSources;
use super::spec::{Configuration, CredentialSection, FileRole, KindDescriptor, Layer, LoadedFile};
use super::typed;
use crate::model::Diagnostic;

/// Finds, reads and resolves all configuration files. Never fails as a whole: errors are
/// in [`Configuration::diagnostics`], entries out of service are in [`Configuration::disabled`],
/// and entries of an untrusted project in [`Configuration::untrusted`].
pub fn load(
    request: &LoadRequest,
    kinds: &[KindDescriptor],
    environment: &dyn Environment,
) -> Configuration {
    load_beside(request, &[], kinds, environment)
}

/// The same for files whose entries may name credentials from an earlier load.
pub fn load_beside(
    request: &LoadRequest,
    credentials: &[CredentialSection],
    kinds: &[KindDescriptor],
    environment: &dyn Environment,
) -> Configuration {
    let expanded = ExpandedValues::default();
    let discovered = discover::find(request, environment);
    let sources = ConfigSources::read(discovered, environment, &expanded);
    let consent = consent::decide(&sources.files, kinds, environment, request.trust_all);
    let mut loader = Loader {
        environment,
        kinds,
        consent: &consent,
        builder: ConfigurationBuilder::new(&consent),
        settings: SettingsLayers::default(),
        project_root: environment.cwd(),
        project: sources
            .files
            .iter()
            .find(|file| file.candidate.layer == Layer::Project)
            .and_then(|file| file.candidate.directory().map(Path::to_path_buf)),
        command_end: request.command_end.clone(),
    };
    loader.builder.configuration.expanded = expanded;
    loader.builder.configuration.diagnostics = sources.diagnostics;
    loader.builder.configuration.unusable = sources.unreadable;
    loader.builder.configuration.searched = sources.searched;
    loader.builder.configuration.directories = sources.directories;
    loader.scopes(&sources.files);
    loader.credentials(&sources.files);
    for section in credentials {
        // Its errors were reported when its file was read.
        let _told_before = loader.credential_section(section);
    }
    for file in sources.files {
        loader.file(&file);
    }
    let mut configuration = loader.finish();
    configuration.project_root = match consent.root() {
        root if root.as_os_str().is_empty() => {
            let mut files = configuration.files.iter();
            let named = files.find(|file| file.layer.is_named());
            let path = named.map(|file| file.path.clone());
            path.map(|path| ProjectRoot::of_named(path, environment)).unwrap_or_default()
        }
        root => ProjectRoot::at(root.to_path_buf()),
    };
    configuration.is_agreed_for_run =
        request.trust_all || configuration.files.iter().any(|file| file.layer.is_named());
    configuration.trusted_root = consent.trusted_root();
    configuration.trust_record = consent.record().cloned();
    configuration.trust_request = consent.request;
    configuration
}

struct Loader<'a> {
    environment: &'a dyn Environment,
    kinds: &'a [KindDescriptor],
    consent: &'a Consent,
    builder: ConfigurationBuilder<'a>,
    settings: SettingsLayers,
    /// The scope `PROJECT_ROOT` if no file defines it.
    project_root: PathBuf,
    project: Option<PathBuf>,
    /// The command-line arguments that name the ad-hoc server again; there is no other entry then.
    command_end: Option<String>,
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
                let mut diagnostics = Vec::new();
                self.settings.scopes(node, &file, &mut diagnostics);
                self.builder.configuration.diagnostics.extend(diagnostics);
            }
        }
    }

    /// Reads the handles of all files before any entry names one.
    fn credentials(&mut self, files: &[SourceFile]) {
        for file in files {
            let Some(node) = file.parsed.root.get("credentials") else { continue };
            if entries::is_bare(&file.parsed.root) {
                continue;
            }
            self.builder.literals.credentials(node, &mut self.builder.configuration.diagnostics);
            let section = CredentialSection {
                node: node.clone(),
                layer: file.candidate.layer,
                grant: self.consent.grant(file),
                base_dir: file.base_dir(&self.environment.cwd()),
            };
            let diagnostics = self.credential_section(&section);
            self.builder.configuration.diagnostics.extend(diagnostics);
            self.builder.configuration.credential_sections.push(section);
        }
    }

    fn credential_section(&mut self, section: &CredentialSection) -> Vec<Diagnostic> {
        let expanded = self.builder.configuration.expanded.clone();
        let access = EnvironmentAccess::new(self.environment, section.grant.clone(), expanded);
        let CredentialSection { node, layer, base_dir, .. } = section;
        self.builder.credentials.read(node, *layer, &access, base_dir)
    }

    fn access(&self, source: &SourceFile) -> EnvironmentAccess<'a> {
        EnvironmentAccess::new(
            self.environment,
            self.consent.grant(source),
            self.builder.configuration.expanded.clone(),
        )
    }

    fn file(&mut self, source: &SourceFile) {
        let role = source.candidate.role;
        self.builder.configuration.files.push(LoadedFile {
            path: source.candidate.path.clone(),
            role,
            layer: source.candidate.layer,
            text: Arc::clone(&source.parsed.root.source),
        });
        let mut file = self.context(source, source.parsed.duplicates.clone());
        let root = &source.parsed.root;
        match role {
            FileRole::Servers => {
                file.defaults = root.get("defaults").cloned();
                let mut diagnostics = Vec::new();
                reserved_keys(root, file.layer, &mut diagnostics);
                if let Some(node) = &file.defaults {
                    self.settings.read("defaults", node, &file, &mut diagnostics);
                }
                self.builder.configuration.diagnostics.extend(diagnostics);
                servers::file(root, &mut file, &mut self.builder);
            }
            FileRole::Tools => {
                if source.is_discovered
                    && let Some(node) = root.get("discover").filter(|node| !node.is_null())
                {
                    let diagnostic =
                        Diagnostic::warning("'discover' is not allowed in a discovered file");
                    self.add_diagnostic(diagnostic.with_location(node.location()));
                }
                self.tools(root, &mut file);
            }
        }
        // Not owned by any entry: keys repeated in settings and at the top level.
        let rest = file.duplicates.into_iter().map(|duplicate| duplicate.diagnostic);
        self.builder.configuration.diagnostics.extend(rest);
    }

    fn context<'f>(
        &self,
        source: &'f SourceFile,
        duplicates: Vec<parse::DuplicateKey>,
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
            access: self.access(source),
            kinds: self.kinds,
            layer: candidate.layer,
            is_project: source.is_project(),
            root: self.consent.root(),
            base_dir,
            project_root: self.project.clone(),
            default_cwd,
            command_end: self.command_end.clone(),
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

    fn tools(&mut self, root: &ConfigNode, file: &mut FileContext<'_>) {
        if root.is_null() {
            return;
        }
        if root.as_map().is_err() {
            self.add_diagnostic(root.expected("a mapping with 'tools'"));
            return;
        }
        file.schemas = root.get("schemas").cloned();
        file.defaults = root.get("defaults").cloned();
        if let Some(mut defaults) = file.defaults.take() {
            if let Some(expander) = file.expander() {
                let diagnostics = &mut self.builder.configuration.diagnostics;
                expander.entry(&mut defaults, &[], diagnostics);
            }
            file.defaults = Some(defaults);
        }
        let mut diagnostics = Vec::new();
        reserved_keys(root, file.layer, &mut diagnostics);
        for (key, value) in root.entries() {
            let Some(word) = file_key(FileRole::Tools, &key.text) else {
                if settings::reserved(&key.text, file.layer).is_none() {
                    let keys = typed::names::<ToolsFile>();
                    let unknown = typed::unknown_key(root, key, keys);
                    diagnostics.extend(unknown.map(|diagnostic| {
                        match file_key(FileRole::Servers, &key.text) {
                            Some(_) => diagnostic.with_hint("servers belong in mcp.yaml (--mcp)"),
                            None => diagnostic,
                        }
                    }));
                }
                continue;
            };
            match word {
                "tools" => tools::list(value, "tools", file, &mut self.builder),
                "toolkits" => tools::list(value, "toolkits", file, &mut self.builder),
                "components" => tools::list(value, "components", file, &mut self.builder),
                "version" => check_version(value, &mut diagnostics),
                // Read before the entries of any file.
                "scopes" | "discover" | "credentials" => {}
                _ => {
                    self.settings.read(word, value, file, &mut diagnostics);
                }
            }
        }
        self.builder.configuration.diagnostics.extend(diagnostics);
    }

    fn add_diagnostic(&mut self, diagnostic: Diagnostic) {
        self.builder.configuration.diagnostics.push(diagnostic);
    }

    fn finish(self) -> Configuration {
        let ConfigurationBuilder { mut configuration, literals, .. } = self.builder;
        self.settings.apply(&mut configuration, &self.project_root, self.environment);
        configuration.tools.shrink_to_fit();
        configuration.diagnostics.extend(self.consent.diagnostics.iter().cloned());
        sort_diagnostics(&mut configuration);
        let unusable = configuration.unusable.iter_mut();
        configuration.diagnostics.iter_mut().chain(unusable).for_each(|p| literals.mask(p));
        configuration.disabled.iter_mut().for_each(|entry| literals.mask(&mut entry.diagnostic));
        configuration
    }
}

fn sort_diagnostics(configuration: &mut Configuration) {
    let files = &configuration.files;
    configuration.diagnostics.sort_by_key(|diagnostic| {
        let location = diagnostic.location.as_ref();
        let file = location.and_then(|p| files.iter().position(|f| f.path == **p.file));
        (file.unwrap_or(files.len()), location.map(|p| (p.line, p.column)))
    });
}

fn check_version(node: &ConfigNode, diagnostics: &mut Vec<Diagnostic>) {
    if let Some(text) = ok_or_report(diagnostics, node.as_scalar_text())
        && text != "1"
    {
        let diagnostic = Diagnostic::error(format!("unsupported configuration version {text}"));
        diagnostics.push(
            diagnostic.with_hint("this build reads version 1").with_location(node.location()),
        );
    }
}

/// Finds keys with which a project's file would set what only the user may.
fn reserved_keys(root: &ConfigNode, layer: Layer, diagnostics: &mut Vec<Diagnostic>) {
    for (key, _) in root.entries() {
        if let Some(message) = settings::reserved(&key.text, layer) {
            diagnostics.push(Diagnostic::error(message).with_location(root.location_of(key)));
        }
    }
}
