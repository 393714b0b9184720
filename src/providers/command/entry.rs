//! Entries of kind `command`, checked as far as possible without starting anything.
//!
//! The argument templates of a command: each element of the entry's list makes one argument.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::config::consent::Seal;
use crate::config::environment::Environment;
use crate::config::node::ConfigNode;
use crate::config::spec::ToolSpec;
use crate::config::typed::{self, ByteSize, Either, Located, PlainText, Scalar};
use crate::model::{Diagnostic, Diagnostics, Error, JsonObject, SourceLocation};
use crate::providers::arguments::SchemaProperties;
use crate::providers::confinement::{self, ProgramLifetime, Sandbox};
use crate::providers::program_env::ProgramKeys;
use crate::providers::template::{
    Placeholder, TemplatePart, TextTemplate, is_argument_name, value_text,
};
use crate::util::text::variable_name;

/// The most output that is kept, in bytes, and the default.
pub(super) const MAX_OUTPUT_BYTES: u64 = 16 << 20;

/// The keys of an entry, besides those of every program.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
pub(super) struct CommandKeys {
    /// The program and its arguments; {name} is an argument of the call. Text names only the program.
    command: Option<Located<Elements>>,
    /// More arguments of the program.
    args: Option<Located<Elements>>,
    /// The working directory, relative to this file; default: the one the call is made in.
    pub(super) cwd: Option<String>,
    /// How the program gets the arguments of a call, besides {name} in its own.
    input: Option<Located<CommandInput>>,
    /// The argument that goes to stdin as text.
    input_property: Option<Located<String>>,
    /// What the program writes to stdout; default: text.
    output: Option<CommandOutput>,
    /// How much of its output is kept; default: 16MiB.
    max_output: Option<ByteSize<MAX_OUTPUT_BYTES>>,
    /// Allow values that start an argument with '-'.
    pub(super) allow_dash: Option<bool>,
    /// Refused: nothing runs in a shell.
    shell: Option<ConfigNode>,
}

type Elements = Either<Located<PlainText>, Vec<Located<Scalar>>>;

/// The words of `input`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", rename = "Input")]
pub(super) enum CommandInput {
    StdinJson,
    StdinText,
    // Only in the elements after the program.
    Args,
    // Each as a variable `TOOLHOST_ARG_{NAME}`.
    Env,
    None,
}

/// What the program writes to stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", rename = "Output")]
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
    pub(super) arguments: Vec<TextTemplate<String>>,
    /// The working directory; `None` is the one the call is made in.
    pub(super) cwd: Option<PathBuf>,
    pub(super) base_dir: PathBuf,
    pub(super) env: BTreeMap<String, String>,
    /// Variables of our own environment that the program gets too.
    pub(super) env_keys: Vec<String>,
    /// How the program gets the arguments of a call, besides its elements.
    pub(super) input: CommandInput,
    /// The argument that `CommandInput::StdinText` writes.
    pub(super) stdin_argument: String,
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

/// Reads an entry. Problems are added to `diagnostics`, also those that leave it usable.
pub(super) fn read(
    spec: &ToolSpec,
    environment: &dyn Environment,
    diagnostics: &Diagnostics,
) -> Option<CommandEntry> {
    let keys: CommandKeys = typed::read_part(&spec.entry, diagnostics)?;
    let program: ProgramKeys = typed::read_part(&spec.entry, diagnostics)?;
    if keys.command.is_none() && spec.entry.get("command").is_some_and(|node| !node.is_null()) {
        // It is there and wrong, and was reported.
        return None;
    }
    let entry = diagnostics.ok(resolve(spec, keys, program, environment, diagnostics));
    entry.filter(|_| diagnostics.errors() == 0)
}

fn resolve(
    spec: &ToolSpec,
    keys: CommandKeys,
    program_keys: ProgramKeys,
    environment: &dyn Environment,
    diagnostics: &Diagnostics,
) -> Result<CommandEntry, Diagnostic> {
    let env = program_keys.env(diagnostics);
    let sets_home = env.contains_key("HOME");
    let sandbox =
        confinement::read(spec, ProgramLifetime::PerCall, sets_home, environment, diagnostics);
    if let Some(shell) = keys.shell.as_ref().filter(|node| !matches!(node.as_bool(), Ok(false))) {
        return Err(Diagnostic::error("toolhost does not run commands in a shell")
            .with_hint("write the program and its arguments as a list; a script can be one of them")
            .with_location(shell.location()));
    }
    let (program, elements) = keys.program(&spec.location)?;
    let properties = SchemaProperties::of(&spec.definition.input_schema.read());
    let mut arguments = Vec::with_capacity(elements.len());
    for text in elements {
        let element: TextTemplate<String> = TextTemplate::parse(&text)
            .map_err(|error| error.with_location(text.location.clone()))?;
        let remedy = "give it a default, or its own element";
        let remedy = element.sole_placeholder().is_none().then_some(remedy);
        for name in element.placeholders() {
            match properties.check(name, name, remedy, &text.location) {
                Some(diagnostic) if diagnostic.is_error() => return Err(diagnostic),
                diagnostic => diagnostics.extend(diagnostic),
            }
        }
        arguments.push(element);
    }
    let named = keys.input_property.as_ref();
    let stdin_argument = named.map_or("text", |name| name).to_owned();
    let input = input(&keys, &arguments, &properties)?;
    if input == CommandInput::StdinText && !properties.has(&stdin_argument) {
        let place = named.map(|key| &key.location).or(keys.input.as_ref().map(|key| &key.location));
        let message = format!("the schema has no property '{stdin_argument}' to write to stdin");
        return Err(Diagnostic::error(message)
            .with_hint(properties.unknown_name_hint(&stdin_argument))
            .with_location(place.unwrap_or(&spec.location).clone()));
    }
    if input == CommandInput::Args {
        diagnostics.extend(properties.unused(&arguments, spec));
    }
    Ok(CommandEntry {
        program,
        arguments,
        cwd: keys.cwd.map(|path| spec.base_dir.join(path)),
        base_dir: spec.base_dir.clone(),
        env,
        env_keys: program_keys.env_keys.unwrap_or_default().0,
        input,
        stdin_argument,
        output: keys.output.unwrap_or(CommandOutput::Text),
        max_output: keys.max_output.map_or(MAX_OUTPUT_BYTES, |size| size.0),
        allow_dash: keys.allow_dash.unwrap_or_default(),
        seal: spec.seal.clone(),
        defaults: properties.defaults,
        sandbox: sandbox.map(Box::new),
    })
}

impl CommandKeys {
    pub(super) fn program(
        &self,
        entry: &SourceLocation,
    ) -> Result<(String, Vec<Located<String>>), Diagnostic> {
        let Some(command) = &self.command else {
            return Err(Diagnostic::error("'command' is missing").with_location(entry.clone()));
        };
        let mut elements = self.elements();
        if let Some(text) = elements.iter().find(|text| text.contains('\0')) {
            let message = format!("'{}' contains a NUL byte", text.escape_debug());
            return Err(text.error(message));
        }
        let empty = matches!(&command.value, Either::Nested(items) if items.is_empty());
        if empty || elements.is_empty() {
            return Err(command
                .error("'command' is empty")
                .with_hint("write the program and its arguments: command: [git, log]"));
        }
        let first = elements.remove(0);
        let element = TextTemplate::<String>::parse(&first).ok();
        let program = element.and_then(|element| element.literal().map(str::to_owned));
        match program {
            Some(program) if program.trim().is_empty() => {
                Err(first.error("expected the name of a program"))
            }
            Some(program) if program.contains(' ') && !program.contains('/') => Err(first
                .error(format!("'{program}' is not the name of a program"))
                .with_hint("write each argument as a separate element: command: [git, log]")),
            Some(program) => Ok((program, elements)),
            None => Err(first
                .error("the program itself cannot come from an argument")
                .with_hint("name the program; placeholders are allowed in the elements after it")),
        }
    }

    pub(super) fn elements(&self) -> Vec<Located<String>> {
        let text = |text: &str, location: &SourceLocation| Located {
            value: text.to_owned(),
            location: location.clone(),
        };
        let mut elements = Vec::new();
        for list in [&self.command, &self.args].into_iter().flatten() {
            match &list.value {
                Either::Short(one) => elements.push(text(&one.0, &one.location)),
                Either::Nested(items) => {
                    elements.extend(items.iter().map(|item| text(&item.0, &item.location)));
                }
            }
        }
        elements
    }
}

fn input(
    keys: &CommandKeys,
    arguments: &[TextTemplate<String>],
    properties: &SchemaProperties,
) -> Result<CommandInput, Diagnostic> {
    let is_templated = || arguments.iter().any(|one| one.placeholders().next().is_some());
    Ok(match &keys.input {
        Some(word) => {
            if word.value == CommandInput::Env {
                properties.check_variable_names(&word.location)?;
            }
            word.value
        }
        None if keys.input_property.is_some() => CommandInput::StdinText,
        None if is_templated() => CommandInput::Args,
        None if !properties.names.is_empty() => CommandInput::StdinJson,
        None => CommandInput::None,
    })
}

pub(super) fn variable(property: &str) -> String {
    format!("TOOLHOST_ARG_{}", variable_name(property))
}

impl SchemaProperties {
    fn unused(&self, arguments: &[TextTemplate<String>], spec: &ToolSpec) -> Option<Diagnostic> {
        let used: Vec<&str> =
            arguments.iter().flat_map(TextTemplate::placeholders).map(String::as_str).collect();
        let unused: Vec<&str> =
            self.names.iter().map(String::as_str).filter(|name| !used.contains(name)).collect();
        (!unused.is_empty()).then(|| {
            Diagnostic::warning(format!("the command does not use {}", unused.join(", ")))
                .with_hint("put {name} into the command, or set 'input: stdin_json'")
                .with_location(spec.location.clone())
        })
    }

    /// Two properties must not share a variable.
    fn check_variable_names(&self, place: &SourceLocation) -> Result<(), Diagnostic> {
        let mut by_variable = BTreeMap::new();
        for name in &self.names {
            if let Some(other) = by_variable.insert(variable(name), name) {
                return Err(Diagnostic::error(format!(
                    "'{other}' and '{name}' would both be the variable {}",
                    variable(name)
                ))
                .with_location(place.clone()));
            }
        }
        Ok(())
    }
}

/// The name of an argument.
impl Placeholder for String {
    fn parse(inside: &str) -> Result<Option<Self>, Diagnostic> {
        Ok(is_argument_name(inside).then(|| inside.to_owned()))
    }
}

/// The argument that an element becomes; `None` if it is only a placeholder whose
/// argument is absent.
pub(super) fn fill_argument(
    element: &TextTemplate<String>,
    arguments: &JsonObject,
    allow_dash: bool,
) -> Result<Option<String>, Error> {
    let value = |name: &String| {
        let text = arguments.get(name).and_then(value_text);
        if text.as_ref().is_some_and(|text| text.contains('\0')) {
            return Err(Error::usage(format!("'{name}' contains a NUL byte"))
                .with_hint("a program argument cannot contain one"));
        }
        Ok(text)
    };
    let filled = element.render(value, |name| {
        Error::usage(format!("'{name}' is missing: the command needs it inside another argument"))
    })?;
    // The whole is looked at, and not only the first value: an empty value may leave a later one at
    // the start.
    if let Some(TemplatePart::Placeholder(name)) = element.parts.first()
        && !allow_dash
        && filled.as_ref().is_some_and(|text| text.starts_with('-'))
    {
        return Err(Error::usage(format!(
            "'{name}' would make an argument that starts with '-', which a program may take for an \
             option"
        ))
        .with_hint("'allow_dash: true' in the entry permits it"));
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn fill(template: &str, arguments: Value) -> Result<Option<String>, String> {
        let Value::Object(arguments) = arguments else { panic!("not an object") };
        let element = TextTemplate::parse(template).map_err(|error| error.message)?;
        fill_argument(&element, &arguments, false).map_err(|error| error.to_string())
    }

    #[test]
    fn values_stand_inside_an_element() {
        let arguments = json!({ "n": 3, "s": "a b", "t": true, "l": [1, "x"], "f": 1.50 });
        for (template, expected) in [
            ("--max={n}", "--max=3"),
            ("{s}", "a b"),
            ("{s}/{n}", "a b/3"),
            ("{t}", "true"),
            ("{l}", "[1,\"x\"]"),
            ("{f}", "1.5"),
            ("{{n}}", "{n}"),
            ("a}}b", "a}b"),
            ("{{{n}}}", "{3}"),
            ("", ""),
        ] {
            assert_eq!(
                fill(template, arguments.clone()),
                Ok(Some(expected.to_owned())),
                "{template}"
            );
        }
    }

    #[test]
    fn an_absent_argument_drops_its_element_or_is_asked_for() {
        assert_eq!(fill("{x}", json!({})), Ok(None));
        assert_eq!(fill("{x}", json!({ "x": null })), Ok(None));
        assert!(fill("--x={x}", json!({})).unwrap_err().contains("'x' is missing"));
    }

    #[test]
    fn braces_without_a_name_are_refused() {
        for template in ["{", "}", "{}", "{print $1}", "a{b", "{a}}"] {
            assert!(
                fill(template, json!({ "a": 1 }))
                    .unwrap_err()
                    .contains("is not part of a placeholder"),
                "{template}"
            );
        }
    }

    #[test]
    fn no_value_becomes_an_option() {
        assert!(fill("{x}", json!({ "x": "--help" })).unwrap_err().contains("starts with '-'"));
        assert!(fill("{x}", json!({ "x": -5 })).unwrap_err().contains("starts with '-'"));
        assert!(
            fill("{x}{y}", json!({ "x": "", "y": "-rf" })).unwrap_err().contains("starts with '-'")
        );
        assert_eq!(fill("--n={x}", json!({ "x": -5 })), Ok(Some("--n=-5".to_owned())));
        let element = TextTemplate::parse("{x}").unwrap();
        let Value::Object(arguments) = json!({ "x": "-5" }) else { panic!() };
        assert_eq!(fill_argument(&element, &arguments, true).unwrap().as_deref(), Some("-5"));
    }

    proptest! {
        /// O01: one element stays one element, byte for byte, or the call is refused.
        #[test]
        fn an_element_equals_its_value_or_the_call_is_refused(
            value in prop_oneof![
                any::<String>(),
                "[-;$`'\"\\\\ \n\t\0{}*?~|&<>()]{0,12}",
                Just("; rm -rf /".to_owned()),
                Just("$(reboot)".to_owned()),
                Just("--flag".to_owned()),
            ],
        ) {
            let arguments = JsonObject::from_iter([("v".to_owned(), Value::String(value.clone()))]);
            let refused = value.contains('\0');
            match fill_argument(&TextTemplate::parse("{v}").unwrap(), &arguments, false) {
                Ok(filled) => {
                    prop_assert!(!refused && !value.starts_with('-'));
                    prop_assert_eq!(filled, Some(value.clone()));
                }
                Err(_) => prop_assert!(refused || value.starts_with('-')),
            }
            match fill_argument(&TextTemplate::parse("--x={v}").unwrap(), &arguments, false) {
                Ok(filled) => prop_assert_eq!(filled, Some(format!("--x={value}"))),
                Err(_) => prop_assert!(refused),
            }
        }

        #[test]
        fn any_template_is_read_or_refused(text in "[{}a-c=-]{0,10}") {
            if let Ok(element) = TextTemplate::<String>::parse(&text) {
                prop_assert!(element.placeholders().all(|name| is_argument_name(name)));
            }
        }
    }
}
