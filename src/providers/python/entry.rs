//! Entries of kind `python`, checked as far as possible without starting anything.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::definition::{PythonClass, START_TIMEOUT};
use super::module::is_dotted;
use super::sealed::SealedCode;
use crate::config::consent::Seal;
use crate::config::environment::Environment;
use crate::config::node::ConfigNode;
use crate::config::spec::{INPUT_SCHEMA_KEYS, ToolSpec};
use crate::config::typed::{self, Limit, Located};
use crate::model::{Diagnostic, Diagnostics, JsonObject, ToolScope};
use crate::providers::confinement::{self, ProgramLifetime, Sandbox};
use crate::providers::program_env::ProgramKeys;

/// The keys of an entry, besides those of every program.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
pub(super) struct PythonKeys {
    /// The module, as Python imports it; alone, everything that it offers.
    pub(super) module: Option<Located<String>>,
    /// The function of the module; a dotted name leads through a class.
    pub(super) function: Option<Located<String>>,
    /// typed: the functions of the module all of whose parameters have type hints.
    functions: Option<Located<FunctionsWord>>,
    /// The class of the module whose methods are tools.
    pub(super) class: Option<Located<String>>,
    /// The arguments of the constructor of the class, by name.
    #[schemars(with = "Option<BTreeMap<String, ConfigNode>>")]
    config: Option<ConfigNode>,
    /// The methods to take; default: all public ones.
    methods: Option<Located<Vec<Located<String>>>>,
    /// How long the constructor may take, up to 1h; default: 20s.
    start_timeout: Option<Located<Limit>>,
    /// The interpreter: a name, or a path relative to this file.
    pub(super) python: Option<Located<String>>,
    /// The directory in which modules are looked for first; default: that of this file.
    pub(super) root: Option<Located<String>>,
}

/// The parts of its module that an entry turns into tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Selection {
    /// This function; a dotted one leads through a class.
    Function(String),
    /// The definitions of the module, and every public function all of whose parameters have type
    /// hints.
    Offered,
    Class(PythonClass),
}

/// An entry of kind `python`, checked without starting an interpreter.
#[derive(Debug, Clone)]
pub(super) struct PythonEntry {
    /// The module as Python imports it, such as `tools.weather`.
    pub(super) module: String,
    /// The parts of it that become tools.
    pub(super) selection: Selection,
    /// The interpreter as written: a name, or a path relative to `base_dir`.
    pub(super) python: Option<String>,
    /// The first directory in which modules are looked for, and the worker's working directory.
    pub(super) root: PathBuf,
    pub(super) base_dir: PathBuf,
    pub(super) env: BTreeMap<String, String>,
    /// Variables of our own environment that the worker gets too.
    pub(super) env_keys: Vec<String>,
    pub(super) has_schema: bool,
    pub(super) by_session: bool,
    /// The confinement of its worker.
    pub(super) sandbox: Option<Sandbox>,
    /// What must be unchanged when its interpreter is started.
    pub(super) seal: Seal,
    /// The code it may run, if that is bound to what the user trusted.
    pub(super) sealed: Option<SealedCode>,
}

impl PythonEntry {
    pub(super) fn is_function(&self) -> bool {
        matches!(self.selection, Selection::Function(_))
    }

    /// The part of the module that the entry is about, for people.
    pub(super) fn source(&self) -> String {
        match &self.selection {
            Selection::Function(name) | Selection::Class(PythonClass { name, .. }) => {
                format!("{}.{name}", self.module)
            }
            Selection::Offered => self.module.clone(),
        }
    }
}

/// Reads an entry. Problems are added to `diagnostics`, also those that leave it usable.
pub(super) fn read(
    spec: &ToolSpec,
    environment: &dyn Environment,
    diagnostics: &Diagnostics,
) -> Option<PythonEntry> {
    let entry = &spec.entry;
    let keys: PythonKeys = typed::read_part(entry, diagnostics)?;
    let program: ProgramKeys = typed::read_part(entry, diagnostics)?;
    let module = diagnostics.ok(module(spec, &keys));
    let selection = selection(spec, &keys, diagnostics);
    if let Some(python) = keys.python.as_ref()
        && (python.trim().is_empty() || python.contains('\0'))
    {
        diagnostics.push(python.error("expected the path or name of an interpreter"));
    }
    let env = program.env(diagnostics);
    let sets_home = env.contains_key("HOME");
    let sandbox =
        confinement::read(spec, ProgramLifetime::LongLived, sets_home, environment, diagnostics);
    let (Some(module), Some(selection)) = (module, selection) else { return None };
    if diagnostics.errors() > 0 {
        return None;
    }
    let has_schema = entry.get_any(INPUT_SCHEMA_KEYS).is_some();
    let root = keys.root(&spec.base_dir);
    let python = keys.python.map(|python| python.value);
    let sealed = spec
        .seal
        .manifest()
        .map(|files| SealedCode::new(files, &root, &spec.base_dir, python.as_deref(), &env));
    Some(PythonEntry {
        module,
        selection,
        python,
        root,
        base_dir: spec.base_dir.clone(),
        env,
        env_keys: program.env_keys.unwrap_or_default().0,
        has_schema,
        by_session: spec.definition.scope == ToolScope::Session,
        sandbox,
        seal: spec.seal.clone(),
        sealed,
    })
}

/// The word of `functions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", rename = "Functions")]
enum FunctionsWord {
    Typed,
}

impl PythonKeys {
    /// The directory of an entry's modules: that of its file, when it names none.
    fn root(&self, base_dir: &Path) -> PathBuf {
        let written = self.root.as_ref().map_or(".", |root| root);
        base_dir.join(written).components().filter(|part| part.as_os_str() != ".").collect()
    }
}

fn module(spec: &ToolSpec, keys: &PythonKeys) -> Result<String, Diagnostic> {
    let Some(module) = &keys.module else {
        return Err(Diagnostic::error("'module' is missing")
            .with_hint("name the Python module, such as module: mytools.text")
            .with_location(spec.location.clone()));
    };
    let text = &module.value;
    if is_dotted(text) {
        return Ok(text.clone());
    }
    let hint = match text.strip_suffix(".py") {
        Some(stem) => format!("write it as in an import: {}", stem.replace('/', ".")),
        None => "write it as in an import, such as mytools.text".to_owned(),
    };
    Err(module.error(format!("'{text}' cannot be the name of a Python module")).with_hint(hint))
}

fn selection(spec: &ToolSpec, keys: &PythonKeys, diagnostics: &Diagnostics) -> Option<Selection> {
    let choices = [
        ("function", keys.function.is_some()),
        ("functions", keys.functions.is_some()),
        ("class", keys.class.is_some()),
    ];
    let entry = &spec.entry;
    let place = |key| entry.key(key).map_or(entry.location(), |key| entry.location_of(key));
    let named: Vec<&str> =
        choices.iter().filter(|(_, is_set)| *is_set).map(|(key, _)| *key).collect();
    if let [first, second, ..] = named.as_slice() {
        diagnostics.push(
            Diagnostic::error(format!("'{first}' and '{second}' exclude each other"))
                .with_location(place(second)),
        );
        return None;
    }
    if keys.class.is_none() {
        let of_classes = ["config", "methods", "start_timeout"];
        for key in of_classes.into_iter().filter(|key| entry.get(key).is_some()) {
            diagnostics.push(
                Diagnostic::error(format!("'{key}' is for a 'class', but the entry has none"))
                    .with_hint("add 'class: …', or remove the key")
                    .with_location(place(key)),
            );
        }
    }
    match (&keys.function, &keys.class) {
        (Some(function), _) if !is_dotted(function) => {
            let message = format!("'{}' cannot be the name of a function", function.value);
            diagnostics.push(
                function.error(message).with_hint("write its name alone, without parentheses"),
            );
            None
        }
        (Some(function), _) => Some(Selection::Function(function.value.clone())),
        (None, Some(class)) => Some(Selection::Class(keys.class(class, diagnostics))),
        (None, None) => Some(Selection::Offered),
    }
}

impl PythonKeys {
    fn class(&self, name: &Located<String>, diagnostics: &Diagnostics) -> PythonClass {
        if !is_dotted(name) {
            diagnostics.push(
                name.error(format!("'{}' cannot be the name of a class", name.value))
                    .with_hint("write its name alone; 'module' says where it is"),
            );
        }
        let config = match self.config.as_ref().map(|node| (node, node.to_json())) {
            None => JsonObject::new(),
            Some((_, Value::Object(config))) => config,
            Some((node, _)) => {
                let hint = "'config' gives the constructor its arguments by name";
                diagnostics.push(node.expected("a mapping").with_hint(hint));
                JsonObject::new()
            }
        };
        let methods = self.methods.as_ref();
        if let Some(methods) = methods.filter(|methods| methods.is_empty()) {
            diagnostics.push(
                methods
                    .error("the list selects no methods")
                    .with_hint("name some, or omit the list to select all"),
            );
        }
        let names = methods.map(|methods| methods.value.as_slice());
        for method in names.into_iter().flatten() {
            if !is_dotted(method) || method.contains('.') {
                diagnostics.push(method.error("expected the name of a method"));
            }
        }
        // The maximum of Python's timers is much longer, and of no practical use.
        let start_timeout = self.start_timeout.as_ref();
        if let Some(limit) = start_timeout.filter(|limit| limit.0 > Duration::from_hours(1)) {
            diagnostics.push(limit.error("expected a duration up to 1h, greater than 0"));
        }
        PythonClass {
            name: name.value.clone(),
            config,
            methods: names.map(|names| names.iter().map(|name| name.value.clone()).collect()),
            start_timeout: start_timeout.map_or(START_TIMEOUT, |limit| limit.0),
        }
    }
}
