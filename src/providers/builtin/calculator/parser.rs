//! The parser: evaluates tokens while it reads them, by precedence climbing (Pratt).
//!
//! Its recursion is bounded by [`MAX_DEPTH`]. What is wrong with the syntax counts before what is
//! wrong with the values.
//!
//! The lexer: numbers as Python writes them, names, operators.
//!
//! The functions and constants an expression may name.

use super::MAX_DEPTH;
use super::number::{Number, too_large};
use crate::model::Error;

/// Precedence: comparisons < sum < product < sign < power.
const COMPARE: u8 = 1;
const SUM: u8 = 2;
const PRODUCT: u8 = 3;
const SIGN: u8 = 4;
const POWER: u8 = 5;

fn precedence(symbol: &str) -> Option<u8> {
    Some(match symbol {
        "<" | "<=" | ">" | ">=" | "==" | "!=" => COMPARE,
        "+" | "-" => SUM,
        "*" | "/" | "//" | "%" => PRODUCT,
        "**" => POWER,
        _ => return None,
    })
}

pub(super) fn evaluate(tokens: &[ExprToken<'_>]) -> Result<Number, Error> {
    let mut parser = Parser { tokens, at: 0, depth: 0, failure: None };
    let value = parser.expression(0)?;
    if parser.at < tokens.len() {
        return Err(parser.unexpected("an operator"));
    }
    parser.failure.map_or(Ok(value), Err)
}

struct Parser<'t, 'a> {
    tokens: &'t [ExprToken<'a>],
    at: usize,
    depth: usize,
    /// Why there is no value, as far as it is known.
    failure: Option<Error>,
}

impl Parser<'_, '_> {
    fn symbol(&self) -> Option<&'static str> {
        match self.tokens.get(self.at)?.kind {
            ExprTokenKind::Symbol(symbol) => Some(symbol),
            _ => None,
        }
    }

    fn expect(&mut self, symbol: &'static str) -> Result<(), Error> {
        if self.symbol() == Some(symbol) {
            self.at += 1;
            Ok(())
        } else {
            Err(self.unexpected(&format!("'{symbol}'")))
        }
    }

    fn unexpected(&self, expected: &str) -> Error {
        let Some(token) = self.tokens.get(self.at) else {
            let message = format!("the expression ends where {expected} was expected");
            return Error::tool(format!("invalid syntax: {message}"));
        };
        let actual = match &token.kind {
            ExprTokenKind::Number(number) => number.show(),
            ExprTokenKind::Name(name) => (*name).to_owned(),
            ExprTokenKind::Symbol(symbol) => (*symbol).to_owned(),
        };
        let column = token.column;
        let message = format!("'{actual}' at column {column} where {expected} was expected");
        Error::tool(format!("invalid syntax: {message}"))
    }

    /// Parses an operand and all operators that bind at least as tightly as `lowest`.
    fn expression(&mut self, lowest: u8) -> Result<Number, Error> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let message = format!("the expression nests more than {MAX_DEPTH} levels deep");
            return Err(Error::tool(message));
        }
        let mut value = self.operand()?;
        while let Some(symbol) = self.symbol() {
            let Some(strength) = precedence(symbol).filter(|s| *s >= lowest) else { break };
            if strength == COMPARE {
                value = self.comparisons(value)?;
                continue;
            }
            self.at += 1;
            // A power groups to the right and lets a sign stand after it: 2 ** -1.
            let right = self.expression(if strength == POWER { SIGN } else { strength + 1 })?;
            value = self.noted(value.apply(symbol, right));
        }
        self.depth -= 1;
        Ok(value)
    }

    /// The value, or one to go on reading with.
    fn noted(&mut self, value: Result<Number, Error>) -> Number {
        value.unwrap_or_else(|failure| {
            self.failure.get_or_insert(failure);
            Number::Int(0)
        })
    }

    /// A chain such as `1 < 2 < 3`, all of whose links must hold.
    fn comparisons(&mut self, first: Number) -> Result<Number, Error> {
        let (mut left, mut holds) = (first, true);
        while let Some(symbol) = self.symbol().filter(|s| precedence(s) == Some(COMPARE)) {
            self.at += 1;
            let right = self.expression(SUM)?;
            holds &= left.compare(symbol, right);
            left = right;
        }
        Ok(Number::Bool(holds))
    }

    fn operand(&mut self) -> Result<Number, Error> {
        let Some(token) = self.tokens.get(self.at) else {
            return Err(self.unexpected("a value"));
        };
        match token.kind.clone() {
            ExprTokenKind::Number(number) => {
                self.at += 1;
                Ok(number)
            }
            ExprTokenKind::Name(name) => {
                self.at += 1;
                let value = if self.symbol() == Some("(") {
                    self.at += 1;
                    call(name, &self.arguments()?)
                } else {
                    constant(name)
                };
                Ok(self.noted(value))
            }
            ExprTokenKind::Symbol("(") => {
                self.at += 1;
                let value = self.expression(0)?;
                self.expect(")")?;
                Ok(value)
            }
            ExprTokenKind::Symbol(sign @ ("-" | "+")) => {
                self.at += 1;
                // A sign binds weaker than a power: -2 ** 2 is -(2 ** 2).
                let value = self.expression(SIGN)?;
                Ok(if sign == "-" { self.noted(value.negated()) } else { value.bool_as_int() })
            }
            ExprTokenKind::Symbol(_) => Err(self.unexpected("a value")),
        }
    }

    /// Arguments of a call, after its opening parenthesis.
    fn arguments(&mut self) -> Result<Vec<Number>, Error> {
        let mut arguments = Vec::new();
        while self.symbol() != Some(")") {
            arguments.push(self.expression(0)?);
            if self.symbol() != Some(",") {
                break;
            }
            self.at += 1;
        }
        self.expect(")")?;
        Ok(arguments)
    }
}

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

pub(super) fn constant(name: &str) -> Result<Number, Error> {
    Ok(match name {
        "pi" => Number::Float(std::f64::consts::PI),
        "e" => Number::Float(std::f64::consts::E),
        "tau" => Number::Float(std::f64::consts::TAU),
        "True" => Number::Bool(true),
        "False" => Number::Bool(false),
        _ => return Err(unknown(name)),
    })
}

fn unknown(name: &str) -> Error {
    Error::tool(format!("name '{name}' is not defined"))
}

fn domain_error() -> Error {
    Error::tool("math domain error")
}

fn range_error() -> Error {
    Error::tool("math range error")
}

pub(super) fn call(name: &str, arguments: &[Number]) -> Result<Number, Error> {
    match (name, arguments) {
        ("sqrt", [x]) => checked(x.to_float(), |x| x >= 0.0, f64::sqrt),
        ("sin", [x]) => Number::float(x.to_float().sin()),
        ("cos", [x]) => Number::float(x.to_float().cos()),
        ("tan", [x]) => Number::float(x.to_float().tan()),
        ("log", [x]) => checked(x.to_float(), |x| x > 0.0, f64::ln),
        ("log", [x, base]) => {
            let (Number::Float(x), Number::Float(base)) = (
                checked(x.to_float(), |x| x > 0.0, f64::ln)?,
                checked(base.to_float(), |x| x > 0.0, f64::ln)?,
            ) else {
                return Err(domain_error());
            };
            Number::Float(x).apply("/", Number::Float(base))
        }
        ("log10", [x]) => checked(x.to_float(), |x| x > 0.0, f64::log10),
        ("exp", [x]) => Number::float(x.to_float().exp()).map_err(|_| range_error()),
        ("abs", [x]) => {
            let negative = x.compare("<", Number::Int(0));
            match x.bool_as_int() {
                Number::Float(x) => Ok(Number::Float(x.abs())),
                x if negative => x.negated(),
                x => Ok(x),
            }
        }
        ("round", [x]) => match x.bool_as_int() {
            Number::Float(x) => Number::int_from(x.round_ties_even()),
            x => Ok(x),
        },
        ("round", [x, digits]) => {
            let digits = digits
                .to_int()
                .ok_or_else(|| Error::tool("the second argument of round() is an integer"))?;
            round(x.bool_as_int(), digits)
        }
        ("floor", [x]) => whole(*x, f64::floor),
        ("ceil", [x]) => whole(*x, f64::ceil),
        ("min", [first, _, ..]) => Ok(extremum(*first, arguments, "<")),
        ("max", [first, _, ..]) => Ok(extremum(*first, arguments, ">")),
        ("pow", [base, exponent]) => base.apply("**", *exponent),
        ("factorial", [n]) => factorial(*n),
        _ => Err(wrong_call(name, arguments.len())),
    }
}

fn wrong_call(name: &str, count: usize) -> Error {
    let expected = match name {
        "sqrt" | "sin" | "cos" | "tan" | "log10" | "exp" | "abs" | "floor" | "ceil"
        | "factorial" => "1 argument",
        "log" | "round" => "1 or 2 arguments",
        "pow" => "2 arguments",
        "min" | "max" => "2 or more arguments",
        _ => return unknown(name),
    };
    Error::tool(format!("{name}() takes {expected} ({count} given)"))
}

fn checked(x: f64, domain: fn(f64) -> bool, function: fn(f64) -> f64) -> Result<Number, Error> {
    if domain(x) { Number::float(function(x)) } else { Err(domain_error()) }
}

fn whole(x: Number, function: fn(f64) -> f64) -> Result<Number, Error> {
    match x.bool_as_int() {
        Number::Float(x) => Number::int_from(function(x)),
        x => Ok(x),
    }
}

fn extremum(first: Number, arguments: &[Number], better: &str) -> Number {
    arguments.iter().fold(first, |best, x| if x.compare(better, best) { *x } else { best })
}

fn factorial(n: Number) -> Result<Number, Error> {
    let n = n.to_int().ok_or_else(|| Error::tool("factorial() takes an integer"))?;
    if n < 0 {
        return Err(Error::tool("factorial() not defined for negative values"));
    }
    if n > 33 {
        return Err(too_large());
    }
    Ok(Number::Int((1..=n).product()))
}

fn round(x: Number, digits: i128) -> Result<Number, Error> {
    match x {
        Number::Float(x) if digits >= 0 => {
            // Beyond 323 decimals every float is already exact.
            let digits = usize::try_from(digits).unwrap_or(usize::MAX).min(330);
            let text = format!("{x:.digits$}");
            text.parse().map_err(|_| range_error()).and_then(Number::float)
        }
        Number::Float(x) => {
            let scale = 10_f64.powi(i32::try_from(digits.unsigned_abs()).unwrap_or(i32::MAX));
            if scale.is_finite() {
                Number::float((x / scale).round_ties_even() * scale)
            } else {
                Ok(Number::Float(0_f64.copysign(x)))
            }
        }
        Number::Int(x) if digits < 0 => {
            let scale =
                u32::try_from(digits.unsigned_abs()).ok().and_then(|d| 10_i128.checked_pow(d));
            // Above 38 digits the step is larger than twice any integer.
            let Some(scale) = scale else { return Ok(Number::Int(0)) };
            let (quotient, rest) = (x.div_euclid(scale), x.rem_euclid(scale));
            let up = rest > scale - rest || (rest == scale - rest && quotient % 2 != 0);
            let nearest = quotient + i128::from(up);
            nearest.checked_mul(scale).map(Number::Int).ok_or_else(too_large)
        }
        other => Ok(other),
    }
}
