//! The argument template of a command: elements with `{name}` in them.
//!
//! Owns: parsing an element and filling it in. Never does: split, quote or join — one element of
//! the template is one argument of the program, or none, whatever the values hold.

use serde_json::Value;

use crate::model::{Error, JsonObject};

/// One element of the template.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CommandArgument {
    parts: Vec<ArgumentPart>,
}

#[derive(Debug, Clone, PartialEq)]
enum ArgumentPart {
    Literal(String),
    Placeholder(String),
}

impl CommandArgument {
    /// Reads an element: `{name}` is a placeholder, `{{` and `}}` are braces.
    ///
    /// # Errors
    /// Says what is wrong with a brace, and what to write instead, as message and hint.
    pub(super) fn parse(text: &str) -> Result<Self, (String, String)> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '{' | '}' if rest.peek() == Some(&c) => {
                    rest.next();
                    literal.push(c);
                }
                '{' => {
                    let mut name = String::new();
                    let closed = loop {
                        match rest.next() {
                            Some('}') => break true,
                            Some(c) => name.push(c),
                            None => break false,
                        }
                    };
                    if !closed || !is_name(&name) {
                        return Err(brace('{', text));
                    }
                    if !literal.is_empty() {
                        parts.push(ArgumentPart::Literal(std::mem::take(&mut literal)));
                    }
                    parts.push(ArgumentPart::Placeholder(name));
                }
                '}' => return Err(brace('}', text)),
                c => literal.push(c),
            }
        }
        if !literal.is_empty() || parts.is_empty() {
            parts.push(ArgumentPart::Literal(literal));
        }
        Ok(Self { parts })
    }

    /// The names of its placeholders.
    pub(super) fn placeholders(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            ArgumentPart::Placeholder(name) => Some(name.as_str()),
            ArgumentPart::Literal(_) => None,
        })
    }

    /// Whether it is one placeholder and nothing else.
    pub(super) fn is_placeholder(&self) -> bool {
        matches!(self.parts.as_slice(), [ArgumentPart::Placeholder(_)])
    }

    /// The text of an element without placeholders.
    pub(super) fn literal(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [ArgumentPart::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// The one argument this element becomes; `None` when it is nothing but a placeholder whose
    /// argument is absent.
    ///
    /// Text stands as it is, numbers and truth values as JSON writes them, lists and objects as
    /// compact JSON. Null counts as absent.
    ///
    /// # Errors
    /// A usage error when an argument is absent within a larger element, holds a NUL byte, or
    /// would make the argument start with `-` although `allow_dash` is off.
    pub(super) fn fill(
        &self,
        arguments: &JsonObject,
        allow_dash: bool,
    ) -> Result<Option<String>, Error> {
        let mut filled = String::new();
        for part in &self.parts {
            match part {
                ArgumentPart::Literal(text) => filled.push_str(text),
                ArgumentPart::Placeholder(name) => match arguments.get(name).and_then(show) {
                    Some(value) if value.contains('\0') => {
                        return Err(Error::usage(format!("'{name}' holds a NUL byte"))
                            .with_hint("an argument of a program cannot hold one"));
                    }
                    Some(value) => filled.push_str(&value),
                    None if self.is_placeholder() => return Ok(None),
                    None => {
                        return Err(Error::usage(format!(
                            "'{name}' is missing: the command needs it inside another argument"
                        )));
                    }
                },
            }
        }
        // The whole is looked at, and not only the first value: an empty value may leave a later
        // one at the start.
        if let Some(ArgumentPart::Placeholder(name)) = self.parts.first()
            && !allow_dash
            && filled.starts_with('-')
        {
            return Err(Error::usage(format!(
                "'{name}' would make an argument that starts with '-', which a program may take \
                 for an option"
            ))
            .with_hint("'allow_dash: true' in the entry permits it"));
        }
        Ok(Some(filled))
    }
}

/// A value as it stands in an argument, an environment variable or a text; `None` is absent.
pub(super) fn show(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

fn brace(brace: char, text: &str) -> (String, String) {
    (
        format!("the '{brace}' in '{text}' belongs to no placeholder"),
        "write {name} for an argument, and {{ or }} for a brace itself".to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn fill(template: &str, arguments: Value) -> Result<Option<String>, String> {
        let Value::Object(arguments) = arguments else { panic!("not an object") };
        let element = CommandArgument::parse(template).map_err(|(message, _)| message)?;
        element.fill(&arguments, false).map_err(|error| error.to_string())
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
                fill(template, json!({ "a": 1 })).unwrap_err().contains("belongs to no"),
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
        let element = CommandArgument::parse("{x}").unwrap();
        let Value::Object(arguments) = json!({ "x": "-5" }) else { panic!() };
        assert_eq!(element.fill(&arguments, true).unwrap().as_deref(), Some("-5"));
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
            match CommandArgument::parse("{v}").unwrap().fill(&arguments, false) {
                Ok(filled) => {
                    prop_assert!(!refused && !value.starts_with('-'));
                    prop_assert_eq!(filled, Some(value.clone()));
                }
                Err(_) => prop_assert!(refused || value.starts_with('-')),
            }
            match CommandArgument::parse("--x={v}").unwrap().fill(&arguments, false) {
                Ok(filled) => prop_assert_eq!(filled, Some(format!("--x={value}"))),
                Err(_) => prop_assert!(refused),
            }
        }

        #[test]
        fn any_template_is_read_or_refused(text in "[{}a-c=-]{0,10}") {
            if let Ok(element) = CommandArgument::parse(&text) {
                let names: Vec<&str> = element.placeholders().collect();
                prop_assert!(names.iter().all(|name| is_name(name)));
            }
        }
    }
}
