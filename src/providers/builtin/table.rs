//! The table of built-in functions and their names in files.

use super::{
    BuiltinFunction, calculator, digest, echo, fail, http, json, json_diff, regex, text, time,
    uuid, wait,
};
use crate::providers::hinted_error::HintedError;
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

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FunctionLookupError {
    #[error("there is no module '{0}'")]
    UnknownModule(String),
    #[error("'{0}' has several functions")]
    SeveralFunctions(String),
    #[error("'{module}' has no function '{function}'")]
    UnknownFunction { module: String, function: String },
}

impl HintedError for FunctionLookupError {
    fn hint(&self) -> Option<String> {
        let (name, names) = match self {
            Self::UnknownModule(module) => {
                let mut modules: Vec<&str> = FUNCTIONS.iter().map(|row| row.module).collect();
                modules.dedup();
                (module.as_str(), modules)
            }
            Self::SeveralFunctions(module) => ("", function_names(module)),
            Self::UnknownFunction { module, function } => {
                (function.as_str(), function_names(module))
            }
        };
        let all = format!("choose from {}", names.join(", "));
        Some(match did_you_mean(name, names) {
            Some(meant) => format!("{meant} {all}"),
            None => all,
        })
    }
}

fn function_names(module: &str) -> Vec<&'static str> {
    FUNCTIONS.iter().filter(|row| row.module == module).map(|row| row.name).collect()
}

/// Finds the function an entry names. A module with a single function needs no `function`.
pub(super) fn find(
    module: &str,
    function: Option<&str>,
) -> Result<&'static BuiltinFunction, FunctionLookupError> {
    if let Some(function) = function
        && let Some(row) = FUNCTIONS.iter().find(|row| row.aliases.contains(&(module, function)))
    {
        return Ok(row);
    }
    let mut of_module = FUNCTIONS.iter().copied().filter(|row| row.module == module).peekable();
    if of_module.peek().is_none() {
        return Err(FunctionLookupError::UnknownModule(module.to_owned()));
    }
    if let Some(function) = function {
        return of_module.find(|row| row.name == function).ok_or_else(|| {
            FunctionLookupError::UnknownFunction {
                module: module.to_owned(),
                function: function.to_owned(),
            }
        });
    }
    match (of_module.next(), of_module.next()) {
        (Some(only), None) => Ok(only),
        _ => Err(FunctionLookupError::SeveralFunctions(module.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_found_by_its_name_and_its_aliases() {
        for row in FUNCTIONS {
            assert_eq!(find(row.module, Some(row.name)).unwrap().title, row.title);
            for (module, function) in row.aliases {
                assert_eq!(find(module, Some(function)).unwrap().title, row.title);
                assert!(is_builtin(module, Some(function)));
            }
        }
    }

    #[test]
    fn a_module_with_one_function_needs_no_function() {
        assert_eq!(find("builtin.echo", None).unwrap().name, "echo");
        let (message, hint) = refusal("builtin.text", None);
        assert_eq!(message, "'builtin.text' has several functions");
        assert_eq!(hint, "choose from count, transform");
    }

    fn refusal(module: &str, function: Option<&str>) -> (String, String) {
        let error = find(module, function).err().unwrap();
        (error.to_string(), error.hint().unwrap_or_default())
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
