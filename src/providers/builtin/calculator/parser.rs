//! The parser: tokens to stack machine code, by precedence climbing (Pratt).
//!
//! The program is flat: evaluating and dropping it needs no recursion, and the parser's own
//! recursion is bounded by [`MAX_DEPTH`].

use super::MAX_DEPTH;
use super::error::{CalculatorError, ExpectedToken};
use super::lexer::{ExprToken, ExprTokenKind};
use super::number::Number;

/// One step of the stack machine.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Instruction<'a> {
    Push(Number),
    Constant(&'a str),
    /// Replace the top by its negative (`-`), or by itself as a number (`+`).
    Sign(&'static str),
    /// Replace the two topmost by the result of an operator.
    Binary(&'static str),
    /// Replace the topmost `n + 1` by the truth of a chain of `n` comparisons.
    Compare(Vec<&'static str>),
    /// Replace the topmost `n` by the value of a function.
    Call(&'a str, usize),
}

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

/// Parses a whole expression.
pub(super) fn parse<'a>(tokens: &[ExprToken<'a>]) -> Result<Vec<Instruction<'a>>, CalculatorError> {
    let mut parser = Parser { tokens, at: 0, program: Vec::new(), depth: 0 };
    parser.expression(0)?;
    match parser.tokens.get(parser.at) {
        None => Ok(parser.program),
        Some(_) => Err(parser.unexpected(ExpectedToken::Operator)),
    }
}

struct Parser<'t, 'a> {
    tokens: &'t [ExprToken<'a>],
    at: usize,
    program: Vec<Instruction<'a>>,
    depth: usize,
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
            Err(self.unexpected(ExpectedToken::Symbol(symbol)))
        }
    }

    fn unexpected(&self, expected: ExpectedToken) -> CalculatorError {
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
    fn expression(&mut self, lowest: u8) -> Result<(), CalculatorError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(CalculatorError::TooDeep);
        }
        self.operand()?;
        while let Some(symbol) = self.symbol() {
            let Some(strength) = precedence(symbol).filter(|s| *s >= lowest) else { break };
            if strength == COMPARE {
                self.comparisons()?;
                continue;
            }
            self.at += 1;
            // A power groups to the right and lets a sign stand after it: 2 ** -1.
            self.expression(if strength == POWER { SIGN } else { strength + 1 })?;
            self.program.push(Instruction::Binary(symbol));
        }
        self.depth -= 1;
        Ok(())
    }

    /// `a < b <= c` means `a < b and b <= c`.
    fn comparisons(&mut self) -> Result<(), CalculatorError> {
        let mut chain = Vec::new();
        while let Some(symbol) = self.symbol().filter(|s| precedence(s) == Some(COMPARE)) {
            self.at += 1;
            self.expression(SUM)?;
            chain.push(symbol);
        }
        self.program.push(Instruction::Compare(chain));
        Ok(())
    }

    fn operand(&mut self) -> Result<(), CalculatorError> {
        let Some(token) = self.tokens.get(self.at) else {
            return Err(self.unexpected(ExpectedToken::Value));
        };
        match token.kind.clone() {
            ExprTokenKind::Number(number) => {
                self.at += 1;
                self.program.push(Instruction::Push(number));
            }
            ExprTokenKind::Name(name) => {
                self.at += 1;
                if self.symbol() == Some("(") {
                    self.at += 1;
                    let count = self.arguments()?;
                    self.program.push(Instruction::Call(name, count));
                } else {
                    self.program.push(Instruction::Constant(name));
                }
            }
            ExprTokenKind::Symbol("(") => {
                self.at += 1;
                self.expression(0)?;
                self.expect(")")?;
            }
            ExprTokenKind::Symbol(sign @ ("-" | "+")) => {
                self.at += 1;
                // A sign binds weaker than a power: -2 ** 2 is -(2 ** 2).
                self.expression(SIGN)?;
                self.program.push(Instruction::Sign(sign));
            }
            ExprTokenKind::Symbol(_) => return Err(self.unexpected(ExpectedToken::Value)),
        }
        Ok(())
    }

    /// The arguments after the opening bracket, and the closing one; returns how many.
    fn arguments(&mut self) -> Result<usize, CalculatorError> {
        let mut count = 0;
        loop {
            if self.symbol() == Some(")") {
                break;
            }
            self.expression(0)?;
            count += 1;
            if self.symbol() != Some(",") {
                break;
            }
            self.at += 1;
        }
        self.expect(")")?;
        Ok(count)
    }
}
