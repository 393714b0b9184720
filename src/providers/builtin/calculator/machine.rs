//! The stack machine that evaluates a parsed expression.

use super::error::CalculatorError;
use super::functions;
use super::number::Number;
use super::parser::Instruction;

pub(super) fn run(program: &[Instruction<'_>]) -> Result<Number, CalculatorError> {
    let mut stack: Vec<Number> = Vec::new();
    for step in program {
        let value = match step {
            Instruction::Push(number) => *number,
            Instruction::Constant(name) => functions::constant(name)?,
            Instruction::Sign(sign) => {
                let value = take(&mut stack)?;
                if *sign == "-" { value.negated()? } else { value.bool_as_int() }
            }
            Instruction::Binary(operator) => {
                let right = take(&mut stack)?;
                let left = take(&mut stack)?;
                left.apply(operator, right)?
            }
            Instruction::Compare(chain) => {
                let operands = take_many(&mut stack, chain.len() + 1)?;
                let holds = |(at, operator): (usize, &&'static str)| {
                    operands[at].compare(operator, operands[at + 1])
                };
                Number::Bool(chain.iter().enumerate().all(holds))
            }
            Instruction::Call(name, count) => {
                let arguments = take_many(&mut stack, *count)?;
                functions::call(name, &arguments)?
            }
        };
        stack.push(value);
    }
    take(&mut stack)
}

fn take(stack: &mut Vec<Number>) -> Result<Number, CalculatorError> {
    // The parser pushes operands before their operator, so the stack never runs dry; saying so
    // instead of panicking costs nothing.
    stack.pop().ok_or(CalculatorError::MissingOperand)
}

fn take_many(stack: &mut Vec<Number>, count: usize) -> Result<Vec<Number>, CalculatorError> {
    let from = stack.len().checked_sub(count).ok_or(CalculatorError::MissingOperand)?;
    Ok(stack.split_off(from))
}
