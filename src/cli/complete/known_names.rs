//! Cached names: names that only a server knows, from the newest listing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::assembly::Assembly;
use crate::audit::Masker;
use crate::catalogue::{Catalogue, ServerListing};
use crate::cli::context::CommandContext;
use crate::config::environment::Environment;
use crate::config::spec::Configuration;
use crate::host::offerings::Offerings;
use crate::model::{Prompt, Resource, ToolDefinition, ToolName, ToolSource};
use crate::present;
use crate::util::atomic_file::{self, FileMode};
use crate::util::hex::hex;
use crate::util::{private_file, text};

pub(super) const MAX_NAMES: usize = 10_000;
const MAX_KEYS: usize = 50;
const MAX_BYTES: u64 = 4 << 20;

pub type CandidateNames = BTreeMap<String, String>;

/// What is known without contacting a server. The description of cached tools, prompts and
/// resources is their server.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct KnownNames {
    pub(super) tools: CandidateNames,
    #[serde(rename = "tool_arguments")]
    pub(super) arguments: BTreeMap<String, Vec<KnownArgument>>,
    pub(super) prompts: CandidateNames,
    pub(super) prompt_arguments: BTreeMap<String, Vec<KnownArgument>>,
    pub(super) resources: CandidateNames,
    #[serde(skip)]
    pub(super) servers: CandidateNames,
    #[serde(skip)]
    pub(super) profiles: CandidateNames,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownArgument {
    pub(super) name: String,
    pub(super) about: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) values: Vec<String>,
}

pub(super) fn arguments(tool: &ToolDefinition) -> Vec<KnownArgument> {
    let schema = tool.input_schema.read();
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flatten().take(MAX_KEYS);
    properties
        .filter(|(name, _)| !name.contains('='))
        .map(|(name, property)| {
            let text = property.get("description").and_then(Value::as_str).unwrap_or_default();
            let values = super::of_property(&schema, name, property);
            KnownArgument { name: name.clone(), about: summary(text), values }
        })
        .collect()
}

impl KnownNames {
    pub fn add_tools(&mut self, catalogue: &Catalogue) {
        if catalogue.servers.is_empty() {
            return;
        }
        let listed =
            || catalogue.tools.iter().filter(|tool| tool.source == ToolSource::Mcp).take(MAX_NAMES);
        self.tools.retain(|_, server| !has_answered(&catalogue.servers, server));
        self.arguments.retain(|tool, _| self.tools.contains_key(tool));
        self.tools.extend(listed().map(|tool| with_server(&tool.name)));
        self.arguments.extend(listed().map(|tool| (tool.name.full(), arguments(tool))));
    }

    pub fn add_prompts(&mut self, listed: &Offerings<Prompt>) {
        let arguments = |prompt: &Prompt| -> Vec<KnownArgument> {
            let arguments = prompt.arguments.iter().take(MAX_KEYS);
            let about = |about: &Option<String>| summary(about.as_deref().unwrap_or_default());
            arguments
                .map(|one| KnownArgument {
                    name: one.name.clone(),
                    about: about(&one.description),
                    values: Vec::new(),
                })
                .collect()
        };
        let prompts = || listed.items.iter().take(MAX_NAMES);
        self.prompts.retain(|_, server| !has_answered(&listed.servers, server));
        self.prompts.extend(prompts().map(|prompt| with_server(&prompt.name)));
        self.prompt_arguments.extend(prompts().map(|one| (one.name.full(), arguments(one))));
        self.prompt_arguments.retain(|prompt, _| self.prompts.contains_key(prompt));
    }

    pub fn add_resources(&mut self, listed: &Offerings<Resource>) {
        let items = listed.items.iter().take(MAX_NAMES);
        self.resources.retain(|_, server| !has_answered(&listed.servers, server));
        self.resources.extend(items.map(|one| (one.uri.clone(), one.server.clone())));
    }
}

/// Caches what a command listed for the next completion, unless a profile hid some of it: a hidden
/// name is not missing. A failure only affects completion.
pub fn update_names(
    context: &CommandContext,
    assembly: &Assembly,
    change: impl FnOnce(&mut KnownNames),
) {
    if context.global.rare.profile.is_none() {
        update(&*context.environment, &assembly.configuration, &assembly.masker, change);
    }
}

fn update(
    environment: &dyn Environment,
    configuration: &Configuration,
    masker: &Masker,
    change: impl FnOnce(&mut KnownNames),
) {
    let Some(path) = path(environment, configuration) else { return };
    let before = read_text(&path);
    let mut names = serde_json::from_str(&before).unwrap_or_default();
    change(&mut names);
    let Ok(kept) = serde_json::to_string(&without_secrets(names, masker)) else { return };
    if kept == before {
        return;
    }
    if let Some(directory) = path.parent()
        && private_file::make_own_directory(directory).is_ok()
    {
        // If the cache cannot be written, completion is slower or incomplete, nothing else.
        let _unwritten = atomic_file::replace(&path, kept.as_bytes(), FileMode::Private);
    }
}

fn with_server(name: &ToolName) -> (String, String) {
    (name.full(), name.component().unwrap_or_default().to_owned())
}

/// The names of a server that did not answer this time are not forgotten.
fn has_answered(servers: &[ServerListing], name: &str) -> bool {
    let listing = servers.iter().find(|listing| listing.name == name);
    listing.is_some_and(|listing| listing.error.is_none() && !listing.is_partial)
}

pub(super) fn summary(text: &str) -> String {
    text::cut(&text::safe_line(&present::first_sentence(text)), 80).into_owned()
}

/// A name with a secret in it is not stored at all: with a mask in its place it would name nothing.
fn without_secrets(mut names: KnownNames, masker: &Masker) -> KnownNames {
    if masker.is_empty() {
        return names;
    }
    let is_clean = |text: &String| masker.text(text) == *text;
    for table in [&mut names.tools, &mut names.prompts, &mut names.resources] {
        table.retain(|name, about| is_clean(name) && is_clean(about));
    }
    for arguments in names.arguments.values_mut().chain(names.prompt_arguments.values_mut()) {
        arguments.retain(|argument| is_clean(&argument.name));
        for argument in arguments {
            argument.about = masker.text(&argument.about);
            argument.values.retain(is_clean);
        }
    }
    names.arguments.retain(|tool, _| names.tools.contains_key(tool));
    names.prompt_arguments.retain(|prompt, _| names.prompts.contains_key(prompt));
    names
}

/// The names cached for these configuration files, each with its server. Edits to the file can only
/// change the words that are offered.
pub(super) fn read(environment: &dyn Environment, configuration: &Configuration) -> KnownNames {
    let text = path(environment, configuration).map(|path| read_text(&path)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn read_text(path: &Path) -> String {
    if std::fs::metadata(path).is_ok_and(|file| file.len() > MAX_BYTES) {
        return String::new();
    }
    std::fs::read_to_string(path).unwrap_or_default()
}

/// One file per set of configuration files, so that projects do not mix.
fn path(environment: &dyn Environment, configuration: &Configuration) -> Option<PathBuf> {
    let mut hash = Sha256::new();
    for file in &configuration.files {
        hash.update(file.path.as_os_str().as_encoded_bytes());
        hash.update([0]);
    }
    Some(environment.cache_dir()?.join(format!("names-{}.json", hex(&hash.finalize()[..8]))))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::config::environment::FixedEnvironment;
    use crate::config::node::SourceText;
    use crate::config::spec::{FileRole, Layer, LoadedFile};
    use crate::model::{Error, Origin, ToolSchema};

    fn files(path: &str) -> Configuration {
        let file = LoadedFile {
            path: PathBuf::from(path),
            role: FileRole::Servers,
            layer: Layer::Project,
            text: SourceText::new("mcp.yaml", ""),
        };
        Configuration { files: vec![file], ..Configuration::default() }
    }

    fn catalogue(tools: &[(&str, &str)], servers: &[(&str, bool)]) -> Catalogue {
        let tools = tools.iter().map(|(server, tool)| {
            let origin = Origin::Server((*server).to_owned());
            let name = ToolName::of(*server, *tool);
            Arc::new(ToolDefinition::new(name, ToolSource::Mcp, "mcp", origin))
        });
        let servers = servers.iter().map(|(name, ok)| ServerListing {
            name: (*name).to_owned(),
            error: (!ok).then(|| Error::unreachable("gone")),
            is_partial: false,
        });
        Catalogue { tools: tools.collect(), servers: servers.collect(), ..Catalogue::default() }
    }

    fn kept(environment: &dyn Environment, configuration: &Configuration) -> Vec<String> {
        read(environment, configuration).tools.into_keys().collect()
    }

    #[test]
    fn names_are_kept_per_configuration_and_per_server() {
        let dir = tempfile::tempdir().unwrap();
        let environment = FixedEnvironment {
            root: Some(dir.path().to_path_buf()),
            ..FixedEnvironment::default()
        };
        let here = files("/here/mcp.yaml");
        let both = [("a", true), ("b", true)];
        update(&environment, &here, &Masker::default(), |names| {
            names.add_tools(&catalogue(&[("a", "x"), ("b", "y")], &both));
        });
        assert_eq!(kept(&environment, &here), ["a-x", "b-y"]);
        assert_eq!(kept(&environment, &files("/there/mcp.yaml")), [""; 0]);
        // `a` answers with another tool, `b` does not answer.
        let one = [("a", true), ("b", false)];
        update(&environment, &here, &Masker::default(), |names| {
            names.add_tools(&catalogue(&[("a", "z")], &one));
        });
        assert_eq!(kept(&environment, &here), ["a-z", "b-y"]);
    }

    #[test]
    fn a_damaged_file_of_names_is_no_trouble() {
        let dir = tempfile::tempdir().unwrap();
        let environment = FixedEnvironment {
            root: Some(dir.path().to_path_buf()),
            ..FixedEnvironment::default()
        };
        let here = files("/here/mcp.yaml");
        let path = path(&environment, &here).unwrap();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        for text in ["", "{", "[1]", r#"{"tools":{"a":1}}"#] {
            std::fs::write(&path, text).unwrap();
            let _names = kept(&environment, &here);
        }
    }

    #[test]
    fn the_arguments_of_a_server_s_tool_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let environment = FixedEnvironment {
            root: Some(dir.path().to_path_buf()),
            ..FixedEnvironment::default()
        };
        let mut listed = catalogue(&[("a", "x")], &[("a", true)]);
        Arc::make_mut(&mut listed.tools[0]).input_schema = ToolSchema::from(json!({
            "properties": { "city": { "description": "Where. In words.", "enum": ["Oslo"] } }
        }));
        update(&environment, &files("f"), &Masker::default(), |names| names.add_tools(&listed));
        let known = read(&environment, &files("f"));
        let city = KnownArgument {
            name: "city".to_owned(),
            about: "Where".to_owned(),
            values: vec!["Oslo".to_owned()],
        };
        assert_eq!(known.arguments["a-x"], [city]);
    }
}
