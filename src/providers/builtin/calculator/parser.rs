//! The parser: evaluates tokens while it reads them, by precedence climbing (Pratt).
//!
//! Its recursion is bounded by [`MAX_DEPTH`]. What is wrong with the syntax counts before what is
//! wrong with the values.

use super::MAX_DEPTH;
use super::functions;
use super::lexer::{ExprToken, ExprTokenKind};
use super::number::Number;
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
                    functions::call(name, &self.arguments()?)
                } else {
                    functions::constant(name)
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
