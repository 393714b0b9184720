//! The table of built-in functions and their names in files.

use super::{
    BuiltinFunction, calculator, digest, echo, fail, http, json, json_diff, regex, text, time,
    uuid, wait,
};
use crate::config::typed::Located;
use crate::model::Diagnostic;
use crate::util::spelling::did_you_mean;

pub(super) static FUNCTIONS: [&BuiltinFunction; 15] = [
    &calculator::CALCULATE,
    &time::NOW,
    &text::COUNT,
    &text::TRANSFORM,
    &digest::DIGEST,
    &json::QUERY,
    &json_diff::DIFF,
    &regex::MATCH,
    &regex::FIND_ALL,
    &regex::REPLACE,
    &http::FETCH,
    &uuid::GENERATE,
    &echo::ECHO,
    &wait::WAIT,
    &fail::FAIL,
];

pub(super) fn is_builtin(module: &str, function: Option<&str>) -> bool {
    module == "builtin"
        || module.starts_with("builtin.")
        || function.is_some_and(|function| {
            FUNCTIONS.iter().any(|row| row.aliases.contains(&(module, function)))
        })
}

/// Finds the function an entry names. A module with a single function needs no `function`.
pub(super) fn find(
    module: &Located<String>,
    function: Option<&Located<String>>,
) -> Result<&'static BuiltinFunction, Diagnostic> {
    let name = function.map(|function| function.as_str());
    if let Some(function) = name
        && let Some(row) =
            FUNCTIONS.iter().find(|row| row.aliases.contains(&(module.as_str(), function)))
    {
        return Ok(row);
    }
    let rows: Vec<&BuiltinFunction> =
        FUNCTIONS.iter().copied().filter(|row| row.module == module.value).collect();
    if rows.is_empty() {
        let mut modules: Vec<&str> = FUNCTIONS.iter().map(|row| row.module).collect();
        modules.dedup();
        return Err(unknown(module, format!("there is no module '{}'", module.value), &modules));
    }
    let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
    let Some(function) = function else {
        return match rows.as_slice() {
            [only] => Ok(only),
            _ => Err(module
                .error(format!("'{}' has several functions", module.value))
                .with_hint(format!("choose from {}", names.join(", ")))),
        };
    };
    rows.into_iter().find(|row| row.name == function.value).ok_or_else(|| {
        let message = format!("'{}' has no function '{}'", module.value, function.value);
        unknown(function, message, &names)
    })
}

fn unknown(name: &Located<String>, message: String, names: &[&str]) -> Diagnostic {
    let all = format!("choose from {}", names.join(", "));
    name.error(message).with_hint(match did_you_mean(name, names.iter().copied()) {
        Some(meant) => format!("{meant} {all}"),
        None => all,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SourceLocation;

    fn named(module: &str, function: Option<&str>) -> Result<&'static BuiltinFunction, Diagnostic> {
        let location = || SourceLocation {
            file: std::sync::Arc::default(),
            line: 1,
            column: 1,
            text: "".into(),
        };
        let located = |text: &str| Located { value: text.to_owned(), location: location() };
        find(&located(module), function.map(located).as_ref())
    }

    #[test]
    fn every_function_is_found_by_its_name_and_its_aliases() {
        for row in FUNCTIONS {
            assert_eq!(named(row.module, Some(row.name)).unwrap().title, row.title);
            for (module, function) in row.aliases {
                assert_eq!(named(module, Some(function)).unwrap().title, row.title);
                assert!(is_builtin(module, Some(function)));
            }
        }
    }

    #[test]
    fn a_module_with_one_function_needs_no_function() {
        assert_eq!(named("builtin.echo", None).unwrap().name, "echo");
        let (message, hint) = refusal("builtin.text", None);
        assert_eq!(message, "'builtin.text' has several functions");
        assert_eq!(hint, "choose from count, transform");
    }

    fn refusal(module: &str, function: Option<&str>) -> (String, String) {
        let error = named(module, function).err().unwrap();
        (error.message, error.hint.unwrap_or_default())
    }

    #[test]
    fn a_near_miss_is_suggested() {
        let (message, hint) = refusal("builtin.calculater", None);
        assert_eq!(message, "there is no module 'builtin.calculater'");
        assert_eq!(
            hint,
            "did you mean 'builtin.calculator'? choose from builtin.calculator, builtin.time, \
             builtin.text, builtin.hash, builtin.json, builtin.json_diff, builtin.regex, \
             builtin.http, builtin.uuid, builtin.echo, builtin.wait, builtin.fail"
        );
        let (message, hint) = refusal("builtin.calculator", Some("compute"));
        assert_eq!(message, "'builtin.calculator' has no function 'compute'");
        assert_eq!(hint, "choose from calculate");
    }
}
