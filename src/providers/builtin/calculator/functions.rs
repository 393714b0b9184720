//! The functions and constants an expression may name.

use super::number::{Number, too_large};
use crate::model::Error;

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
            let scale = 10_f64.powi(i32::try_from(-digits).unwrap_or(i32::MAX));
            if scale.is_finite() {
                Number::float((x / scale).round_ties_even() * scale)
            } else {
                Ok(Number::Float(0_f64.copysign(x)))
            }
        }
        Number::Int(x) if digits < 0 => {
            let scale = u32::try_from(-digits).ok().and_then(|d| 10_i128.checked_pow(d));
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
