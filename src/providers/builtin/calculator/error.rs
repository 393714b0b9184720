//! Errors of the calculator, worded as in Python where Python has them.

use super::{MAX_DEPTH, MAX_EXPRESSION_BYTES};

/// Why an expression has no value; columns count characters from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum CalculatorError {
    #[error("Empty expression provided.")]
    Empty,
    #[error("the expression is longer than {MAX_EXPRESSION_BYTES} bytes")]
    TooLong,
    #[error("the expression nests more than {MAX_DEPTH} levels deep")]
    TooDeep,
    #[error("Import not supported")]
    Import,
    #[error("'^' at column {column} is not supported: use '**' for powers")]
    Caret { column: usize },
    #[error("invalid syntax: unexpected '{character}' at column {column}")]
    UnexpectedCharacter { character: char, column: usize },
    #[error("invalid syntax: '{found}' at column {column} where {expected} was expected")]
    UnexpectedToken { found: String, column: usize, expected: String },
    #[error("invalid syntax: the expression ends where {0} was expected")]
    UnexpectedEnd(String),
    #[error("invalid number '{literal}' at column {column}")]
    InvalidNumber { literal: String, column: usize },
    #[error("leading zeros in decimal integer literals are not permitted")]
    LeadingZeros,
    #[error("name '{0}' is not defined")]
    UndefinedName(String),
    #[error("{name}() takes {expected} ({given} given)")]
    ArgumentCount { name: String, expected: &'static str, given: usize },
    #[error("math domain error")]
    Domain,
    #[error("math range error")]
    Range,
    /// An integer has more than 38 digits.
    #[error("the integer is too large: 38 digits are supported")]
    TooLarge,
    #[error("the result is not a finite number")]
    NotFinite,
    #[error("division by zero")]
    DivisionByZero,
    #[error("zero cannot be raised to a negative power")]
    ZeroToNegativePower,
    #[error("a root of a negative number is complex, which is not supported")]
    ComplexRoot,
    #[error("the second argument of round() is an integer")]
    RoundDigits,
    #[error("factorial() takes an integer")]
    FactorialOfFraction,
    #[error("factorial() not defined for negative values")]
    FactorialOfNegative,
    /// The parser knows an operator that numbers lack; a bug.
    #[error("the operator '{0}' is not supported")]
    UnsupportedOperator(String),
}
