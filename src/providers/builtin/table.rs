//! Which built-in functions there are, and how files name them.

use super::{BuiltinFunction, calculator, digest, echo, fail, json, text, time, uuid, wait};

/// Every built-in function, in the order in which they are listed to people.
pub(super) static FUNCTIONS: [&BuiltinFunction; 10] = [
    &calculator::CALCULATE,
    &time::NOW,
    &text::COUNT,
    &text::TRANSFORM,
    &digest::DIGEST,
    &json::QUERY,
    &uuid::GENERATE,
    &echo::ECHO,
    &wait::WAIT,
    &fail::FAIL,
];

/// Whether a module belongs to this kind.
pub(super) fn is_builtin(module: &str, function: Option<&str>) -> bool {
    module == "builtin"
        || module.starts_with("builtin.")
        || function.is_some_and(|function| {
            FUNCTIONS.iter().any(|row| row.aliases.contains(&(module, function)))
        })
}

/// Finds the function an entry names. A module with a single function needs no `function`.
///
/// # Errors
/// What is wrong and which names there are, as message and hint.
pub(super) fn find(
    module: &str,
    function: Option<&str>,
) -> Result<&'static BuiltinFunction, (String, String)> {
    if let Some(function) = function
        && let Some(row) = FUNCTIONS.iter().find(|row| row.aliases.contains(&(module, function)))
    {
        return Ok(row);
    }
    let of_module: Vec<&BuiltinFunction> =
        FUNCTIONS.iter().copied().filter(|row| row.module == module).collect();
    if of_module.is_empty() {
        let mut modules: Vec<&str> = FUNCTIONS.iter().map(|row| row.module).collect();
        modules.dedup();
        return Err((format!("there is no module '{module}'"), advice(module, &modules)));
    }
    match (function, of_module.as_slice()) {
        (None, [only]) => Ok(only),
        (None, _) => {
            Err((format!("'{module}' has several functions"), advice("", &names(&of_module))))
        }
        (Some(function), rows) => {
            rows.iter().copied().find(|row| row.name == function).ok_or_else(|| {
                (format!("'{module}' has no function '{function}'"), advice(function, &names(rows)))
            })
        }
    }
}

fn names(rows: &[&BuiltinFunction]) -> Vec<&'static str> {
    rows.iter().map(|row| row.name).collect()
}

fn advice(given: &str, known: &[&str]) -> String {
    let near = known
        .iter()
        .map(|name| (strsim::jaro_winkler(given, name), name))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(likeness, _)| *likeness > 0.85);
    match near {
        // Modules share the prefix `builtin.`, so likeness alone would always suggest one.
        Some((_, name)) if strsim::levenshtein(given, name) <= 3 => {
            format!("did you mean '{name}'? known are {}", known.join(", "))
        }
        _ => format!("known are {}", known.join(", ")),
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
        insta::assert_debug_snapshot!(find("builtin.text", None).err(), @r#"
        Some(
            (
                "'builtin.text' has several functions",
                "known are count, transform",
            ),
        )
        "#);
    }

    #[test]
    fn a_near_miss_is_suggested() {
        insta::assert_debug_snapshot!(find("builtin.calculater", None).err(), @r#"
        Some(
            (
                "there is no module 'builtin.calculater'",
                "did you mean 'builtin.calculator'? known are builtin.calculator, builtin.time, builtin.text, builtin.hash, builtin.json, builtin.uuid, builtin.echo, builtin.wait, builtin.fail",
            ),
        )
        "#);
        insta::assert_debug_snapshot!(find("builtin.calculator", Some("compute")).err(), @r#"
        Some(
            (
                "'builtin.calculator' has no function 'compute'",
                "known are calculate",
            ),
        )
        "#);
    }
}
