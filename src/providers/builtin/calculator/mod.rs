//! `builtin.calculator`: arithmetic with Python's rules, without Python.
//!
//! Owns: the tool; the language and its functions are in `parser`, its numbers in `number`.
//! Never does: evaluate anything but arithmetic — there are no strings, no
//! attributes, no assignments, and every size is bounded, so that `9**9**9` fails at once.

mod number;
mod parser;

use super::{BuiltinFunction, FunctionBody, input};
use crate::model::{Error, ToolResult};
use crate::providers::arguments::text;

/// The longest expression that is read, in bytes.
const MAX_EXPRESSION_BYTES: usize = 4096;
/// How deep brackets, signs and powers may nest.
const MAX_DEPTH: usize = 100;

pub(super) const CALCULATE: BuiltinFunction = BuiltinFunction {
    module: "builtin.calculator",
    name: "calculate",
    aliases: &[("src.tools.core.calculator_tool", "calculate")],
    title: "Calculator",
    description: "Evaluates an arithmetic expression with Python's rules: + - * / // % **, \
                  comparisons, parentheses, sqrt, sin, cos, tan, log, log10, exp, abs, round, \
                  floor, ceil, min, max, pow, factorial and the constants pi, e, tau.",
    input: || {
        let mut expression = text("The expression, such as 2 * (3 + 4) or sqrt(16)");
        expression["maxLength"] = MAX_EXPRESSION_BYTES.into();
        input(&[("expression", expression)], &["expression"])
    },
    output: None,
    idempotent: true,
    run: FunctionBody::Sync(|_, arguments| {
        evaluate(arguments.text("expression")?).map(ToolResult::text)
    }),
};

fn evaluate(expression: &str) -> Result<String, Error> {
    if expression.trim().is_empty() {
        return Err(Error::tool("Empty expression provided."));
    }
    if expression.len() > MAX_EXPRESSION_BYTES {
        let message = format!("the expression is longer than {MAX_EXPRESSION_BYTES} bytes");
        return Err(Error::tool(message));
    }
    let tokens = parser::tokens(expression)?;
    parser::evaluate(&tokens).map(number::Number::show)
}

#[cfg(test)]
mod tests;
