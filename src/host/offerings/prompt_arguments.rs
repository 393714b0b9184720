//! Checking the arguments for a prompt.

use crate::model::{Error, JsonObject, Prompt};
use crate::util::spelling::nearest;

/// Of prompts of one name those that take the arguments. `command_end` ends the command line of an
/// example.
pub(super) fn accepting<'p>(
    candidates: Vec<&'p Prompt>,
    arguments: &JsonObject,
    command_end: &str,
) -> Result<Vec<&'p Prompt>, Error> {
    let mut refusal = None;
    let mut accepted = Vec::with_capacity(candidates.len());
    for prompt in candidates {
        match check_arguments(prompt, arguments, command_end) {
            Ok(()) => accepted.push(prompt),
            Err(error) => drop(refusal.get_or_insert(error)),
        }
    }
    refusal.filter(|_| accepted.is_empty()).map_or(Ok(accepted), Err)
}

/// Checks the arguments of a prompt: all problems at once.
fn check_arguments(
    prompt: &Prompt,
    arguments: &JsonObject,
    command_end: &str,
) -> Result<(), Error> {
    let names = || prompt.arguments.iter().map(|argument| argument.name.as_str());
    let missing =
        prompt.arguments.iter().filter(|a| a.required && !arguments.contains_key(&a.name));
    let missing = missing.map(|argument| format!("{}: required, but missing", argument.name));
    let unknown = arguments.keys().filter(|key| !names().any(|name| name == *key)).map(|key| {
        match nearest(key, names()) {
            Some(near) => format!("{key}: unknown; did you mean '{near}'?"),
            None => format!("{key}: unknown"),
        }
    });
    let problems: Vec<String> = missing.chain(unknown).collect();
    if problems.is_empty() {
        return Ok(());
    }
    let error = Error::usage(format!("the arguments do not match the prompt '{}'", prompt.name));
    let example: Vec<String> = prompt
        .arguments
        .iter()
        .map(|a| if a.required { format!("{}=…", a.name) } else { format!("[{}=…]", a.name) })
        .collect();
    let hint = match example.as_slice() {
        [] => "it takes no arguments".to_owned(),
        pairs => format!("toolhost prompts get {} {}{command_end}", prompt.name, pairs.join(" ")),
    };
    Err(error.with_details(problems).with_hint(hint))
}
