//! Entries of kind `command`, checked as far as possible without starting anything.
//!
//! The keys: `command` (a list, or a text that names one program), `args`, `cwd`, `env`,
//! `env_keys`, `input`, `input_property`, `output`, `max_output`, `allow_dash`, `sandbox`. There is
//! no shell: `shell` is refused, as is a program that comes from an argument.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use super::argument::CommandPlaceholder;
use crate::config::consent::Seal;
use crate::config::environment::Environment;
use crate::config::node::{ConfigNode, NodeValue};
use crate::config::spec::ToolSpec;
use crate::model::Diagnostic;
use crate::providers::confinement::{self, ProgramLifetime, Sandbox};
use crate::providers::hinted_error::HintedError as _;
use crate::providers::program_env;
use crate::providers::properties::SchemaProperties;
use crate::providers::template::TextTemplate;
use crate::util::units;

/// The most output that is kept, in bytes, and the default.
pub(super) const MAX_OUTPUT_BYTES: u64 = 16 << 20;

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

/// How the arguments of a call reach the program, besides its argument template.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CommandInput {
    StdinJson,
    StdinText(String),
    /// Each as a variable `TOOLHOST_ARG_{NAME}`.
    Env,
    /// Only in the elements of the template.
    Args,
    /// Not at all: the program is the same for every call.
    None,
}

/// What the program writes to stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandOutput {
    /// Text, without the newline that ends it.
    Text,
    /// One JSON value; anything else is a protocol error.
    Json,
}

/// An entry of kind `command`, checked without looking for the program.
#[derive(Debug, Clone)]
pub(super) struct CommandEntry {
    /// The program as written: a bare name or a path.
    pub(super) program: String,
    /// The elements after the program; each becomes at most one argument.
    pub(super) arguments: Vec<TextTemplate<CommandPlaceholder>>,
    /// The working directory; `None` is the one the call is made in.
    pub(super) cwd: Option<PathBuf>,
    pub(super) base_dir: PathBuf,
    pub(super) env: BTreeMap<String, String>,
    /// Variables of our own environment that the program gets too.
    pub(super) env_keys: Vec<String>,
    /// How the program gets the arguments of a call, besides its elements.
    pub(super) input: CommandInput,
    pub(super) output: CommandOutput,
    /// How much of it is kept, in bytes.
    pub(super) max_output: u64,
    /// Whether a value may start an argument with `-`.
    pub(super) allow_dash: bool,
    /// What must be unchanged when it is started.
    pub(super) seal: Seal,
    pub(super) defaults: Vec<(String, Value)>,
    /// What the program is confined to.
    pub(super) sandbox: Option<Box<Sandbox>>,
}

/// Reads an entry. Problems that leave it usable are added to `warnings`.
pub(super) fn read(
    spec: &ToolSpec,
    environment: &dyn Environment,
    warnings: &mut Vec<Diagnostic>,
) -> Result<CommandEntry, Diagnostic> {
    let entry = &spec.entry;
    if let Some(shell) = entry.get("shell").filter(|node| !matches!(node.as_bool(), Ok(false))) {
        return Err(Diagnostic::error("toolhost does not run commands in a shell")
            .with_hint("write the program and its arguments as a list; a script can be one of them")
            .with_location(shell.location()));
    }
    let (program, elements) = command(entry)?;
    let properties = SchemaProperties::of(&spec.definition.input_schema);
    let mut arguments = Vec::new();
    for (text, node) in elements {
        let element: TextTemplate<CommandPlaceholder> =
            TextTemplate::parse(&text).map_err(|error| error.diagnostic(node))?;
        properties.check(&element, node, warnings)?;
        arguments.push(element);
    }
    let input = input(entry, &arguments, &properties)?;
    if matches!(input, CommandInput::Args) {
        warnings.extend(properties.unused(&arguments, spec));
    }
    let env_keys = entry.get("env_keys").map(ConfigNode::as_texts).transpose()?.unwrap_or_default();
    let env = program_env::read_env(entry)?;
    let sandbox = confinement::read(
        spec,
        ProgramLifetime::PerCall,
        env.contains_key("HOME"),
        environment,
        warnings,
    )?
    .map(Box::new);
    Ok(CommandEntry {
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
        allow_dash: entry
            .get("allow_dash")
            .map(ConfigNode::as_bool)
            .transpose()?
            .unwrap_or_default(),
        seal: spec.seal.clone(),
        defaults: properties.defaults,
        sandbox,
    })
}

pub(super) type RawElement<'n> = (String, &'n ConfigNode);

/// The program, and the elements after it.
pub(super) fn command(entry: &ConfigNode) -> Result<(String, Vec<RawElement<'_>>), Diagnostic> {
    let Some(node) = entry.get("command") else {
        return Err(Diagnostic::error("'command' is missing").with_location(entry.location()));
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
        return Err(Diagnostic::error(format!("'{}' contains a NUL byte", text.escape_debug()))
            .with_location(node.location()));
    }
    let empty = matches!(&node.value, NodeValue::List(items) if items.is_empty());
    if empty || elements.is_empty() {
        return Err(Diagnostic::error("'command' is empty")
            .with_hint("write the program and its arguments: command: [git, log]")
            .with_location(node.location()));
    }
    let (first, node) = elements.remove(0);
    let element = TextTemplate::<CommandPlaceholder>::parse(&first).ok();
    let program = element.and_then(|element| element.literal().map(str::to_owned));
    match program {
        Some(program) if program.trim().is_empty() => Err(node.expected("the name of a program")),
        Some(program) if program.contains(' ') && !program.contains('/') => {
            Err(Diagnostic::error(format!("'{program}' is not the name of a program"))
                .with_hint("write each argument as a separate element: command: [git, log]")
                .with_location(node.location()))
        }
        Some(program) => Ok((program, elements)),
        None => Err(Diagnostic::error("the program itself cannot come from an argument")
            .with_hint("name the program; placeholders are allowed in the elements after it")
            .with_location(node.location())),
    }
}

fn input(
    entry: &ConfigNode,
    arguments: &[TextTemplate<CommandPlaceholder>],
    properties: &SchemaProperties,
) -> Result<CommandInput, Diagnostic> {
    let property = entry.get("input_property").map(ConfigNode::as_text).transpose()?;
    let Some(node) = entry.get("input") else {
        let templated = arguments.iter().any(|element| element.placeholders().next().is_some());
        return Ok(match property {
            Some(property) => {
                CommandInput::StdinText(properties.require_property(property, entry)?)
            }
            None if templated => CommandInput::Args,
            None if !properties.names.is_empty() => CommandInput::StdinJson,
            None => CommandInput::None,
        });
    };
    Ok(match node.as_text()? {
        "stdin_json" => CommandInput::StdinJson,
        "stdin_text" => {
            CommandInput::StdinText(properties.require_property(property.unwrap_or("text"), entry)?)
        }
        "args" => CommandInput::Args,
        "env" => {
            properties.check_variable_names(node)?;
            CommandInput::Env
        }
        "none" => CommandInput::None,
        _ => return Err(node.expected("stdin_json, stdin_text, args, env or none")),
    })
}

fn output(entry: &ConfigNode) -> Result<CommandOutput, Diagnostic> {
    let Some(node) = entry.get("output") else { return Ok(CommandOutput::Text) };
    match node.as_text()? {
        "text" => Ok(CommandOutput::Text),
        "json" => Ok(CommandOutput::Json),
        other => Err(Diagnostic::error(format!("'output' must be text or json, found '{other}'"))
            .with_location(node.location())),
    }
}

fn max_output(entry: &ConfigNode) -> Result<u64, Diagnostic> {
    let Some(node) = entry.get("max_output") else { return Ok(MAX_OUTPUT_BYTES) };
    units::size(&node.as_scalar_text()?)
        .filter(|size| (1..=MAX_OUTPUT_BYTES).contains(size))
        .ok_or_else(|| node.expected("a size from 1 to 16MiB, such as 64KiB"))
}

pub(super) fn variable(property: &str) -> String {
    let name = property
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    "TOOLHOST_ARG_".chars().chain(name).collect()
}

impl SchemaProperties {
    fn require_property(&self, name: &str, entry: &ConfigNode) -> Result<String, Diagnostic> {
        if self.has(name) {
            return Ok(name.to_owned());
        }
        let spot = entry.get_any(&["input_property", "input"]).map_or(entry, |(_, node)| node);
        Err(Diagnostic::error(format!("the schema has no property '{name}' to write to stdin"))
            .with_hint(self.unknown_name_hint(name))
            .with_location(spot.location()))
    }

    fn check(
        &self,
        element: &TextTemplate<CommandPlaceholder>,
        node: &ConfigNode,
        warnings: &mut Vec<Diagnostic>,
    ) -> Result<(), Diagnostic> {
        for CommandPlaceholder(name) in element.placeholders() {
            if !self.has(name) {
                return Err(Diagnostic::error(format!(
                    "'{{{name}}}' is not a property of the schema"
                ))
                .with_hint(self.unknown_name_hint(name))
                .with_location(node.location()));
            }
            if !self.is_required(name)
                && !self.allows_additional
                && element.sole_placeholder().is_none()
            {
                warnings.push(
                    Diagnostic::warning(format!("calls without '{name}' will be refused"))
                        .with_hint("make it required, give it a default, or its own element")
                        .with_location(node.location()),
                );
            }
        }
        Ok(())
    }

    fn unused(
        &self,
        arguments: &[TextTemplate<CommandPlaceholder>],
        spec: &ToolSpec,
    ) -> Option<Diagnostic> {
        let used: Vec<&str> = arguments
            .iter()
            .flat_map(TextTemplate::placeholders)
            .map(|CommandPlaceholder(name)| name.as_str())
            .collect();
        let unused: Vec<&str> =
            self.names.iter().map(String::as_str).filter(|name| !used.contains(name)).collect();
        (!unused.is_empty()).then(|| {
            Diagnostic::warning(format!("the command does not use {}", unused.join(", ")))
                .with_hint("put {name} into the command, or set 'input: stdin_json'")
                .with_location(spec.location.clone())
        })
    }

    /// Two properties must not share a variable.
    fn check_variable_names(&self, node: &ConfigNode) -> Result<(), Diagnostic> {
        let mut by_variable = BTreeMap::new();
        for name in &self.names {
            if let Some(other) = by_variable.insert(variable(name), name) {
                return Err(Diagnostic::error(format!(
                    "'{other}' and '{name}' would both be the variable {}",
                    variable(name)
                ))
                .with_location(node.location()));
            }
        }
        Ok(())
    }
}
