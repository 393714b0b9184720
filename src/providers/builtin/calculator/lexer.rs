//! The lexer: numbers as Python writes them, names, operators.

use super::number::{Number, too_large};
use crate::model::Error;

/// A token and the column (from 1, in characters) it starts at.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ExprToken<'a> {
    pub(super) kind: ExprTokenKind<'a>,
    pub(super) column: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ExprTokenKind<'a> {
    /// A literal, converted to its value.
    Number(Number),
    /// The name of a function or constant; the parser tells which.
    Name(&'a str),
    /// An operator, bracket or comma.
    Symbol(&'static str),
}

/// Longer symbols first, so that `**` is not read as two `*`.
const SYMBOLS: [&str; 17] =
    ["**", "//", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "(", ")", ",", "<", ">", "^"];

pub(super) fn tokens(text: &str) -> Result<Vec<ExprToken<'_>>, Error> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else {
            return Ok(tokens);
        };
        let before = text.len() - rest.len();
        let column = text.get(..before).unwrap_or_default().chars().count() + 1;
        let (kind, length) = if first.is_ascii_digit() || first == '.' {
            let length = number_length(rest);
            let literal = rest.get(..length).unwrap_or_default();
            (ExprTokenKind::Number(number(literal, column)?), length)
        } else if first.is_alphabetic() || first == '_' {
            let length =
                rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            let name = rest.get(..length).unwrap_or_default();
            if matches!(name, "import" | "from" | "__import__") {
                return Err(Error::tool("Import not supported"));
            }
            (ExprTokenKind::Name(name), length)
        } else if let Some(symbol) = SYMBOLS.iter().find(|s| rest.starts_with(**s)) {
            if *symbol == "^" {
                return Err(Error::tool(format!(
                    "'^' at column {column} is not supported: use '**' for powers"
                )));
            }
            (ExprTokenKind::Symbol(symbol), symbol.len())
        } else {
            return Err(Error::tool(format!(
                "invalid syntax: unexpected '{first}' at column {column}"
            )));
        };
        tokens.push(ExprToken { kind, column });
        rest = rest.get(length..).unwrap_or_default();
    }
}

/// How many bytes of `text` belong to the number it starts with; generous, so that `12abc` is one
/// wrong number and not a number and a name.
fn number_length(text: &str) -> usize {
    let decimal = !["0x", "0X", "0b", "0B", "0o", "0O"].iter().any(|p| text.starts_with(p));
    let mut previous = ' ';
    for (at, c) in text.char_indices() {
        let sign = decimal && matches!(c, '+' | '-') && matches!(previous, 'e' | 'E');
        if !(c.is_ascii_alphanumeric() || c == '.' || c == '_' || sign) {
            return at;
        }
        previous = c;
    }
    text.len()
}

fn number(literal: &str, column: usize) -> Result<Number, Error> {
    let wrong = || Error::tool(format!("invalid number '{literal}' at column {column}"));
    // An underscore stands between two digits, or after the prefix of a base.
    let bytes = literal.as_bytes();
    let lonely = |at: usize| {
        let digit = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
        !(digit(at.checked_sub(1).and_then(|before| bytes.get(before))) && digit(bytes.get(at + 1)))
    };
    if (0..bytes.len()).any(|at| bytes[at] == b'_' && lonely(at)) {
        return Err(wrong());
    }
    let digits = literal.replace('_', "");
    for (prefix, base) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        let lower = digits.to_ascii_lowercase();
        if let Some(digits) = lower.strip_prefix(prefix) {
            return integer(digits, base).ok_or_else(wrong)?;
        }
    }
    if digits.bytes().all(|b| b.is_ascii_digit()) {
        if digits.len() > 1 && digits.starts_with('0') && digits.bytes().any(|b| b != b'0') {
            let why = "leading zeros in decimal integer literals are not permitted";
            return Err(Error::tool(why));
        }
        return integer(&digits, 10).ok_or_else(wrong)?;
    }
    // Rust reads words such as "inf" as numbers; a literal here starts with a digit or a dot.
    let float: f64 = digits.parse().map_err(|_| wrong())?;
    Number::float(float)
}

/// `None` if a character is not a digit of the base; an error when there are too many.
fn integer(digits: &str, base: u32) -> Option<Result<Number, Error>> {
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        return None;
    }
    Some(i128::from_str_radix(digits, base).map(Number::Int).map_err(|_| too_large()))
}
