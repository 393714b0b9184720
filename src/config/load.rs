//! The whole compiler: from a load request to a [`Configuration`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::consent::{self, Consent, Expander, Grant};
use super::discover::{self, LoadRequest};
use super::entries::{self, file_key};
use super::environment::Environment;
use super::expanded::ExpandedValues;
use super::node::{ConfigNode, NodeValue};
use super::resolve::settings::{self, SettingsLayers};
use super::resolve::{self, ConfigurationBuilder, FileContext, servers};
use super::sources::{ConfigSources, SourceFile};
use super::spec::{Configuration, CredentialSection, FileRole, KindDescriptor, Layer, LoadedFile};
use crate::model::{Diagnostic, Diagnostics};

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

/// What all files of one load share.
pub(super) struct LoadContext<'a> {
    pub environment: &'a dyn Environment,
    pub kinds: &'a [KindDescriptor],
    pub consent: &'a Consent,
    pub expanded: ExpandedValues,
    /// The directory of the project's files.
    pub project: Option<PathBuf>,
    /// The command-line arguments that name the ad-hoc server again; there is no other entry then.
    pub command_end: Option<String>,
}

impl LoadContext<'_> {
    /// Replaces references in a file by values; `None` without its grant.
    pub fn expander<'s>(
        &'s self,
        grant: Option<&Grant>,
        base_dir: &'s Path,
    ) -> Option<Expander<'s>> {
        Some(Expander::new(grant?, self.environment, base_dir, &self.expanded))
    }
}

/// The same for files whose entries may name credentials from an earlier load.
pub fn load_beside(
    request: &LoadRequest,
    credentials: &[CredentialSection],
    kinds: &[KindDescriptor],
    environment: &dyn Environment,
) -> Configuration {
    let expanded = ExpandedValues::default();
    let sources = ConfigSources::read(discover::find(request, environment), environment, &expanded);
    let ConfigSources { files, diagnostics, unread, unreadable, searched, directories } = sources;
    let consent = consent::decide(&files, kinds, environment, request);
    let project = files.iter().find(|file| file.candidate.layer == Layer::Project);
    let shared = LoadContext {
        environment,
        kinds,
        consent: &consent,
        expanded: expanded.clone(),
        project: project.and_then(|file| file.candidate.directory().map(Path::to_path_buf)),
        command_end: request.command_end.clone(),
    };
    let mut loader = Loader {
        shared: &shared,
        builder: ConfigurationBuilder::default(),
        settings: SettingsLayers::default(),
        project_root: environment.cwd(),
    };
    loader.builder.configuration = Configuration {
        expanded,
        diagnostics: diagnostics.take(),
        unusable: unreadable,
        unread: unread.into_iter().map(|file| (file.path, file.layer)).collect(),
        searched,
        directories,
        ..Configuration::default()
    };
    loader.scopes(&files);
    loader.credentials(&files);
    for section in credentials {
        // Its errors were reported when its file was read.
        let _told_before = loader.builder.credentials.read(section);
    }
    for file in files {
        loader.file(file);
    }
    let mut configuration = loader.finish();
    let named = configuration.files.iter().find(|file| file.layer.is_named());
    let (cwd, user) = (environment.cwd(), environment.config_dir());
    configuration.project_root = match consent.root() {
        root if !root.as_os_str().is_empty() => Some(root.to_path_buf()),
        _ => named.and_then(|file| discover::project_of_named(&file.path, &cwd, user.as_deref())),
    };
    configuration.is_agreed_for_run = request.trust_all || named.is_some();
    configuration.trust_record = consent.record().cloned();
    configuration.trust_request = consent.request;
    configuration
}

struct Loader<'a> {
    shared: &'a LoadContext<'a>,
    builder: ConfigurationBuilder,
    settings: SettingsLayers,
    /// The scope `PROJECT_ROOT` if no file defines it.
    project_root: PathBuf,
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
            if let Some(node) = file.root.get("scopes") {
                let file = self.context(file);
                self.settings.scopes(node, &file);
                self.builder.report_file(&file);
            }
        }
    }

    /// Reads the handles of all files before any entry names one.
    fn credentials(&mut self, files: &[SourceFile]) {
        for file in files {
            let Some(node) = file.root.get("credentials") else { continue };
            if entries::is_bare(&file.root) {
                continue;
            }
            let ConfigurationBuilder { configuration, literals, credentials, .. } =
                &mut self.builder;
            let diagnostics = Diagnostics::default();
            literals.credentials(node, &diagnostics);
            configuration.diagnostics.extend(diagnostics.take());
            let section = CredentialSection {
                node: node.clone(),
                layer: file.candidate.layer,
                grant: self.shared.consent.grant(file),
                base_dir: file.base_dir(&self.shared.environment.cwd()),
            };
            configuration.diagnostics.extend(credentials.read(&section));
            configuration.credential_sections.push(section);
        }
    }

    fn file(&mut self, source: SourceFile) {
        let mut file = self.context(&source);
        let SourceFile { candidate, root, is_discovered, .. } = source;
        let role = candidate.role;
        self.builder.configuration.files.push(LoadedFile {
            path: candidate.path,
            role,
            layer: candidate.layer,
            text: Arc::clone(&root.source),
        });
        file.defaults = root.get("defaults").cloned();
        reserved_keys(&root, &file);
        file.diagnostics.extend(entries::repeated_keys(&root, role));
        match role {
            FileRole::Servers => {
                if let Some(node) = &file.defaults {
                    self.settings.read("defaults", node, &file);
                }
                servers::file(&root, &mut file, &mut self.builder);
            }
            FileRole::Tools => {
                let discovers = root.get("discover").filter(|node| !node.is_null());
                if let Some(node) = discovers.filter(|_| is_discovered) {
                    let message = "'discover' is not allowed in a discovered file";
                    file.diagnostics.push(node.warning(message));
                }
                self.tools(root, &mut file);
            }
        }
        self.builder.report_file(&file);
    }

    fn context(&self, source: &SourceFile) -> FileContext<'a> {
        let cwd = self.shared.environment.cwd();
        let layer = source.candidate.layer;
        let base_dir = source.base_dir(&cwd);
        let default_cwd = match layer {
            Layer::User | Layer::Embedded => cwd,
            _ => base_dir.clone(),
        };
        let scopes = self.settings.scopes_for(layer, &self.project_root, self.shared.environment);
        FileContext {
            shared: self.shared,
            grant: self.shared.consent.grant(source),
            layer,
            is_project: source.is_project(),
            base_dir,
            default_cwd,
            schemas: None,
            defaults: None,
            scopes: Arc::new(scopes),
            diagnostics: Diagnostics::default(),
        }
    }

    /// Reads a file of tools. Its tree is taken apart: that of an entry lasts as long as its spec.
    fn tools(&mut self, root: ConfigNode, file: &mut FileContext<'_>) {
        if root.is_null() {
            return;
        }
        if root.as_map().is_err() {
            file.diagnostics.push(root.expected("a mapping with 'tools'"));
            return;
        }
        file.schemas = root.get("schemas").cloned();
        if let Some(mut defaults) = file.defaults.take() {
            if let Some(expander) = file.expander() {
                expander.entry(&mut defaults, &[], &file.diagnostics);
            }
            file.defaults = Some(defaults);
        }
        let top = root.with_value(NodeValue::Null);
        let NodeValue::Map(entries) = root.value else { return };
        for (key, value) in Arc::unwrap_or_clone(entries) {
            match file_key(FileRole::Tools, &key.text) {
                None if settings::reserved(&key.text, file.layer).is_some() => {}
                None => {
                    file.diagnostics.extend(entries::unknown_key(&top, &key, FileRole::Tools));
                }
                Some(list @ ("tools" | "toolkits" | "components")) => {
                    resolve::list(value, list, file, &mut self.builder);
                }
                Some("version") => check_version(&value, &file.diagnostics),
                // Read before the entries of any file.
                Some("scopes" | "discover" | "credentials") => {}
                Some(word) => {
                    self.settings.read(word, &value, file);
                }
            }
        }
    }

    fn finish(self) -> Configuration {
        let ConfigurationBuilder { mut configuration, literals, .. } = self.builder;
        let LoadContext { environment, consent, .. } = self.shared;
        self.settings.apply(&mut configuration, &self.project_root, *environment);
        configuration.tools.shrink_to_fit();
        configuration.diagnostics.extend(consent.diagnostics.iter().cloned());
        sort_diagnostics(&mut configuration);
        let disabled = configuration.disabled.iter_mut().map(|entry| &mut entry.diagnostic);
        let all = configuration.diagnostics.iter_mut().chain(&mut configuration.unusable);
        literals.mask(all.chain(disabled));
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
    // What is wrong with an anchor is found at each of its aliases.
    configuration.diagnostics.dedup();
}

fn check_version(node: &ConfigNode, diagnostics: &Diagnostics) {
    if let Some(text) = diagnostics.ok(node.as_scalar_text())
        && text != "1"
    {
        let diagnostic = node.error(format!("unsupported configuration version {text}"));
        diagnostics.push(diagnostic.with_hint("this build reads version 1"));
    }
}

/// Finds keys with which a project's file would set what only the user may.
fn reserved_keys(root: &ConfigNode, file: &FileContext<'_>) {
    for (key, _) in root.entries() {
        if let Some(message) = settings::reserved(&key.text, file.layer) {
            let at = root.location_of(key);
            file.diagnostics.push(Diagnostic::error(message).with_location(at));
        }
    }
}
