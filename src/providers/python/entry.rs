//! Entries of kind `python`, checked as far as possible without starting anything.
//!
//! The keys: `module`, `function` (or `class` with `config`, `methods` and `start_timeout`, or
//! `functions: typed`, which is what a module alone means), `python`, `root`, `env`, `env_keys`,
//! `sandbox`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::class::{self, PythonClass};
use super::module::is_dotted;
use super::sealed::SealedCode;
use crate::config::consent::Seal;
use crate::config::environment::Environment;
use crate::config::node::ConfigNode;
use crate::config::spec::ToolSpec;
use crate::model::{Diagnostic, ToolScope};
use crate::providers::confinement::{self, ProgramLifetime, Sandbox};
use crate::providers::program_env;

pub(super) const KEYS: &[&str] = &[
    "module",
    "function",
    "functions",
    "class",
    "config",
    "methods",
    "start_timeout",
    "python",
    "root",
    "env",
    "env_keys",
    "sandbox",
];

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
    /// Whether the file says what the arguments are.
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

/// Reads an entry. Problems that leave it usable are added to `warnings`.
pub(super) fn read(
    spec: &ToolSpec,
    environment: &dyn Environment,
    warnings: &mut Vec<Diagnostic>,
) -> Result<PythonEntry, Vec<Diagnostic>> {
    let entry = &spec.entry;
    let mut diagnostics = Vec::new();
    let mut note = |diagnostic: Diagnostic| diagnostics.push(diagnostic);
    let module = module(entry).map_err(&mut note).unwrap_or_default();
    let selection = match selection(entry) {
        Ok(selection) => selection,
        Err(diagnostics) => {
            diagnostics.into_iter().for_each(&mut note);
            Selection::Offered
        }
    };
    let python =
        entry.get("python").map(|node| python(node).map_err(&mut note).unwrap_or_default());
    if let Some(node) = entry.get("root") {
        let _noted = node.as_text().map_err(&mut note);
    }
    let env = program_env::read_env(entry).map_err(&mut note).unwrap_or_default();
    let env_keys = entry.get("env_keys").map(ConfigNode::as_texts).transpose();
    let env_keys = env_keys.map_err(&mut note).unwrap_or_default().unwrap_or_default();
    let sets_home = env.contains_key("HOME");
    let sandbox =
        confinement::read(spec, ProgramLifetime::LongLived, sets_home, environment, warnings);
    let sandbox = sandbox.map_err(&mut note).unwrap_or_default();
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let schemas = ["parameters_schema", "parameters", "inputSchema", "input_schema"];
    let has_schema =
        schemas.iter().chain(&["param_schema_ref"]).any(|key| entry.get(key).is_some());
    let root = root(entry, &spec.base_dir);
    let sealed = spec
        .seal
        .manifest()
        .map(|files| SealedCode::new(files, &root, &spec.base_dir, python.as_deref(), &env));
    Ok(PythonEntry {
        module,
        selection,
        python,
        root,
        base_dir: spec.base_dir.clone(),
        env,
        env_keys,
        has_schema,
        by_session: spec.definition.scope == ToolScope::Session,
        sandbox,
        seal: spec.seal.clone(),
        sealed,
    })
}

/// The directory of an entry's modules: that of its file, when it names none.
pub(super) fn root(entry: &ConfigNode, base_dir: &Path) -> PathBuf {
    let written = entry.get("root").and_then(|node| node.as_text().ok()).unwrap_or(".");
    base_dir.join(written).components().filter(|part| part.as_os_str() != ".").collect()
}

fn module(entry: &ConfigNode) -> Result<String, Diagnostic> {
    let Some(node) = entry.get("module") else {
        return Err(Diagnostic::error("'module' is missing")
            .with_hint("name the Python module, such as module: mytools.text")
            .with_location(entry.location()));
    };
    let text = node.as_text()?;
    if is_dotted(text) {
        return Ok(text.to_owned());
    }
    let diagnostic = Diagnostic::error(format!("'{text}' cannot be the name of a Python module"));
    let hint = match text.strip_suffix(".py") {
        Some(stem) => format!("write it as in an import: {}", stem.replace('/', ".")),
        None => "write it as in an import, such as mytools.text".to_owned(),
    };
    Err(diagnostic.with_hint(hint).with_location(node.location()))
}

fn selection(entry: &ConfigNode) -> Result<Selection, Vec<Diagnostic>> {
    let choices = ["function", "functions", "class"];
    let sources: Vec<&str> =
        choices.into_iter().filter(|key| entry.get(key).is_some_and(|n| !n.is_null())).collect();
    if let [first, second, ..] = sources.as_slice() {
        let location = entry.key(second).map_or(entry.location(), |key| entry.location_of(key));
        return Err(vec![
            Diagnostic::error(format!("'{first}' and '{second}' exclude each other"))
                .with_location(location),
        ]);
    }
    if !sources.contains(&"class") {
        class::refuse_keys_of_classes(entry)?;
    }
    let one = |diagnostic| vec![diagnostic];
    match sources.first().and_then(|key| Some((*key, entry.get(key)?))) {
        Some(("function", node)) => {
            let text = node.as_text().map_err(one)?;
            if is_dotted(text) {
                return Ok(Selection::Function(text.to_owned()));
            }
            Err(one(Diagnostic::error(format!("'{text}' cannot be the name of a function"))
                .with_hint("write its name alone, without parentheses")
                .with_location(node.location())))
        }
        Some(("class", node)) => class::read(entry, node).map(Selection::Class),
        Some((_, node)) if !matches!(node.as_text(), Ok("typed")) => {
            let error = Diagnostic::error("'functions' can only be 'typed'").with_hint(
                "it offers the functions with type hints; 'function' names one of any kind",
            );
            Err(one(error.with_location(node.location())))
        }
        _ => Ok(Selection::Offered),
    }
}

fn python(node: &ConfigNode) -> Result<String, Diagnostic> {
    let text = node.as_text()?;
    if text.trim().is_empty() || text.contains('\0') {
        return Err(node.expected("the path or name of an interpreter"));
    }
    Ok(text.to_owned())
}
