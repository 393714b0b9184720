//! What an entry of kind `command` says, checked as far as it can be without starting anything.
//!
//! The keys: `command` (a list, or a text that names one program), `args`, `cwd`, `env`,
//! `env_keys`, `input`, `input_property`, `output`, `max_output`, `allow_dash`, `sandbox`. There is
//! no shell: `shell` is refused, and so is a program that would come from an argument.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use super::template::Element;
use crate::config::consent::Seal;
use crate::config::environment::Environment;
use crate::config::node::{Node, NodeValue};
use crate::config::spec::ToolSpec;
use crate::model::Problem;
use crate::providers::confinement::{self, Life, Sandbox};
use crate::providers::properties::Properties;
use crate::providers::surroundings;
use crate::util::units;

/// The most output that is kept, in bytes, and the default.
pub(super) const MOST_OUTPUT: u64 = 16 << 20;

/// The keys of an entry that only this kind understands.
pub(super) const KEYS: &[&str] = &[
    "command",
    "args",
    "cwd",
    "env",
    "env_keys",
    "input",
    "input_property",
    "output",
    "max_output",
    "allow_dash",
    "shell",
    "sandbox",
];

/// How the arguments of a call reach the program, beside its argument template.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Input {
    /// As one JSON object on stdin.
    StdinJson,
    /// One argument as the text on stdin.
    StdinText(String),
    /// Each as a variable `TOOLHOST_ARG_{NAME}`.
    Env,
    /// By the template only.
    Args,
    /// Not at all.
    None,
}

/// What the program writes to stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    /// Text.
    Text,
    /// One JSON value.
    Json,
}

/// A checked entry.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// The program as written: a bare name or a path.
    pub(super) program: String,
    /// The arguments.
    pub(super) arguments: Vec<Element>,
    /// The working directory; `None` is the one the call is made in.
    pub(super) cwd: Option<PathBuf>,
    /// What a program with a slash in it is relative to.
    pub(super) base_dir: PathBuf,
    /// Variables set by the entry.
    pub(super) env: BTreeMap<String, String>,
    /// Variables passed through.
    pub(super) env_keys: Vec<String>,
    /// How arguments get in.
    pub(super) input: Input,
    /// What comes out.
    pub(super) output: Output,
    /// How much of it is kept, in bytes.
    pub(super) max_output: u64,
    /// Whether a value may start an argument with `-`.
    pub(super) allow_dash: bool,
    /// What has to be unchanged when it is started.
    pub(super) seal: Seal,
    /// Values that stand in for absent arguments.
    pub(super) defaults: Vec<(String, Value)>,
    /// What the program is confined to.
    pub(super) sandbox: Option<Box<Sandbox>>,
}

/// Reads an entry. Problems that leave it usable are added to `doubts`.
///
/// # Errors
/// The first problem that takes the entry out of service.
pub(super) fn read(
    spec: &ToolSpec,
    environment: &dyn Environment,
    doubts: &mut Vec<Problem>,
) -> Result<Entry, Problem> {
    let entry = &spec.entry;
    if let Some(shell) = entry.get("shell").filter(|node| !matches!(node.as_bool(), Ok(false))) {
        return Err(Problem::error("there is no shell between toolhost and a command")
            .hint("write the program and its arguments as a list; a script can be one of them")
            .at(shell.place()));
    }
    let (program, elements) = command(entry)?;
    let properties = Properties::of(&spec.definition.input_schema);
    let mut arguments = Vec::new();
    for (text, node) in elements {
        let element = Element::parse(&text)
            .map_err(|(message, hint)| Problem::error(message).hint(hint).at(node.place()))?;
        properties.check(&element, node, doubts)?;
        arguments.push(element);
    }
    let input = input(entry, &arguments, &properties)?;
    if matches!(input, Input::Args) {
        doubts.extend(properties.unused(&arguments, spec));
    }
    let env_keys = entry.get("env_keys").map(Node::as_texts).transpose()?.unwrap_or_default();
    let env = surroundings::written(entry)?;
    let sandbox =
        confinement::read(spec, Life::Call, env.contains_key("HOME"), environment, doubts)?
            .map(Box::new);
    Ok(Entry {
        program,
        arguments,
        cwd: entry
            .get("cwd")
            .map(|node| node.as_text().map(|path| spec.base_dir.join(path)))
            .transpose()?,
        base_dir: spec.base_dir.clone(),
        env,
        env_keys,
        input,
        output: output(entry)?,
        max_output: max_output(entry)?,
        allow_dash: entry.get("allow_dash").map(Node::as_bool).transpose()?.unwrap_or_default(),
        seal: spec.seal.clone(),
        defaults: properties.defaults,
        sandbox,
    })
}

/// The text of an element of the template, and where it stands.
pub(super) type Written<'n> = (String, &'n Node);

/// The program, and the elements after it.
///
/// # Errors
/// When there is no program, or it is not a fixed one.
pub(super) fn command(entry: &Node) -> Result<(String, Vec<Written<'_>>), Problem> {
    let Some(node) = entry.get("command") else {
        return Err(Problem::error("'command' is missing").at(entry.place()));
    };
    let mut elements = Vec::new();
    for key in ["command", "args"] {
        match entry.get(key).map(|node| (node, &node.value)) {
            None => {}
            Some((_, NodeValue::List(items))) => {
                for item in items {
                    elements.push((item.as_scalar_text()?, item));
                }
            }
            Some((node, NodeValue::Text(text))) => elements.push((text.clone(), node)),
            Some((node, _)) => return Err(node.expected("a list of texts")),
        }
    }
    if let Some((text, node)) = elements.iter().find(|(text, _)| text.contains('\0')) {
        return Err(
            Problem::error(format!("'{}' holds a NUL byte", text.escape_debug())).at(node.place())
        );
    }
    let empty = matches!(&node.value, NodeValue::List(items) if items.is_empty());
    if empty || elements.is_empty() {
        return Err(Problem::error("'command' is empty")
            .hint("write the program and its arguments: command: [git, log]")
            .at(node.place()));
    }
    let (first, node) = elements.remove(0);
    let program = Element::parse(&first).ok().and_then(|e| e.literal().map(str::to_owned));
    match program {
        Some(program) if program.trim().is_empty() => Err(node.expected("the name of a program")),
        Some(program) if program.contains(' ') && !program.contains('/') => {
            Err(Problem::error(format!("'{program}' is not the name of a program"))
                .hint("write each argument as an element of its own: command: [git, log]")
                .at(node.place()))
        }
        Some(program) => Ok((program, elements)),
        None => Err(Problem::error("the program itself cannot come from an argument")
            .hint("name the program; arguments may stand in the elements after it")
            .at(node.place())),
    }
}

fn input(entry: &Node, arguments: &[Element], properties: &Properties) -> Result<Input, Problem> {
    let property = entry.get("input_property").map(Node::as_text).transpose()?;
    let Some(node) = entry.get("input") else {
        let templated = arguments.iter().any(|element| element.placeholders().next().is_some());
        return Ok(match property {
            Some(property) => Input::StdinText(properties.known(property, entry)?),
            None if templated => Input::Args,
            None if !properties.names.is_empty() => Input::StdinJson,
            None => Input::None,
        });
    };
    Ok(match node.as_text()? {
        "stdin_json" => Input::StdinJson,
        "stdin_text" => Input::StdinText(properties.known(property.unwrap_or("text"), entry)?),
        "args" => Input::Args,
        "env" => {
            properties.as_variables(node)?;
            Input::Env
        }
        "none" => Input::None,
        _ => return Err(node.expected("stdin_json, stdin_text, args, env or none")),
    })
}

fn output(entry: &Node) -> Result<Output, Problem> {
    let Some(node) = entry.get("output") else { return Ok(Output::Text) };
    match node.as_text()? {
        "text" => Ok(Output::Text),
        "json" => Ok(Output::Json),
        other => {
            Err(Problem::error(format!("'output' is text or json, found '{other}'"))
                .at(node.place()))
        }
    }
}

fn max_output(entry: &Node) -> Result<u64, Problem> {
    let Some(node) = entry.get("max_output") else { return Ok(MOST_OUTPUT) };
    units::size(&node.as_scalar_text()?)
        .filter(|size| (1..=MOST_OUTPUT).contains(size))
        .ok_or_else(|| node.expected("a size from 1 to 16MiB, such as 64KiB"))
}

/// The name of the variable that carries an argument.
pub(super) fn variable(property: &str) -> String {
    let name = property
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    "TOOLHOST_ARG_".chars().chain(name).collect()
}

impl Properties {
    /// A property that has to be one.
    fn known(&self, name: &str, entry: &Node) -> Result<String, Problem> {
        if self.has(name) {
            return Ok(name.to_owned());
        }
        let spot = entry.get_any(&["input_property", "input"]).map_or(entry, |(_, node)| node);
        Err(Problem::error(format!("the schema has no property '{name}' to write to stdin"))
            .hint(self.advice(name))
            .at(spot.place()))
    }

    fn check(
        &self,
        element: &Element,
        node: &Node,
        doubts: &mut Vec<Problem>,
    ) -> Result<(), Problem> {
        for name in element.placeholders() {
            if !self.has(name) {
                return Err(Problem::error(format!("'{{{name}}}' is no property of the schema"))
                    .hint(self.advice(name))
                    .at(node.place()));
            }
            if !self.is_certain(name) && !self.open && !element.is_placeholder() {
                doubts.push(
                    Problem::warning(format!("calls without '{name}' will be refused"))
                        .hint("make it required, give it a default, or an element of its own")
                        .at(node.place()),
                );
            }
        }
        Ok(())
    }

    fn unused(&self, arguments: &[Element], spec: &ToolSpec) -> Option<Problem> {
        let used: Vec<&str> = arguments.iter().flat_map(Element::placeholders).collect();
        let unused: Vec<&str> =
            self.names.iter().map(String::as_str).filter(|name| !used.contains(name)).collect();
        (!unused.is_empty()).then(|| {
            Problem::warning(format!("the command makes no use of {}", unused.join(", ")))
                .hint("put {name} into the command, or set 'input: stdin_json'")
                .at(spec.place.clone())
        })
    }

    /// Two properties must not share a variable.
    fn as_variables(&self, node: &Node) -> Result<(), Problem> {
        let mut seen = BTreeMap::new();
        for name in &self.names {
            if let Some(other) = seen.insert(variable(name), name) {
                return Err(Problem::error(format!(
                    "'{other}' and '{name}' would both be the variable {}",
                    variable(name)
                ))
                .at(node.place()));
            }
        }
        Ok(())
    }
}
