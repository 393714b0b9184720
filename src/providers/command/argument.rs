//! The argument templates of a command: each element of the entry's list makes one argument.

use crate::model::{Diagnostic, Error, JsonObject};
use crate::providers::template::{
    Placeholder, TemplatePart, TextTemplate, is_argument_name, value_text,
};

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
    use serde_json::{Value, json};

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
