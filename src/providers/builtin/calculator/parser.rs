//! The parser: evaluates tokens while it reads them, by precedence climbing (Pratt).
//!
//! Its recursion is bounded by [`MAX_DEPTH`]. What is wrong with the syntax counts before what is
//! wrong with the values.

use super::MAX_DEPTH;
use super::error::CalculatorError;
use super::functions;
use super::lexer::{ExprToken, ExprTokenKind};
use super::number::Number;

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

pub(super) fn evaluate(tokens: &[ExprToken<'_>]) -> Result<Number, CalculatorError> {
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
    failure: Option<CalculatorError>,
}

impl Parser<'_, '_> {
    fn symbol(&self) -> Option<&'static str> {
        match self.tokens.get(self.at)?.kind {
            ExprTokenKind::Symbol(symbol) => Some(symbol),
            _ => None,
        }
    }

    fn expect(&mut self, symbol: &'static str) -> Result<(), CalculatorError> {
        if self.symbol() == Some(symbol) {
            self.at += 1;
            Ok(())
        } else {
            Err(self.unexpected(&format!("'{symbol}'")))
        }
    }

    fn unexpected(&self, expected: &str) -> CalculatorError {
        let expected = expected.to_owned();
        let Some(token) = self.tokens.get(self.at) else {
            return CalculatorError::UnexpectedEnd(expected);
        };
        let actual = match &token.kind {
            ExprTokenKind::Number(number) => number.show(),
            ExprTokenKind::Name(name) => (*name).to_owned(),
            ExprTokenKind::Symbol(symbol) => (*symbol).to_owned(),
        };
        CalculatorError::UnexpectedToken { found: actual, column: token.column, expected }
    }

    /// Parses an operand and all operators that bind at least as tightly as `lowest`.
    fn expression(&mut self, lowest: u8) -> Result<Number, CalculatorError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(CalculatorError::TooDeep);
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
    fn noted(&mut self, value: Result<Number, CalculatorError>) -> Number {
        value.unwrap_or_else(|failure| {
            self.failure.get_or_insert(failure);
            Number::Int(0)
        })
    }

    /// A chain such as `1 < 2 < 3`, all of whose links must hold.
    fn comparisons(&mut self, first: Number) -> Result<Number, CalculatorError> {
        let (mut left, mut holds) = (first, true);
        while let Some(symbol) = self.symbol().filter(|s| precedence(s) == Some(COMPARE)) {
            self.at += 1;
            let right = self.expression(SUM)?;
            holds &= left.compare(symbol, right);
            left = right;
        }
        Ok(Number::Bool(holds))
    }

    fn operand(&mut self) -> Result<Number, CalculatorError> {
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
    fn arguments(&mut self) -> Result<Vec<Number>, CalculatorError> {
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
