//! Numbers with Python's rules: exact integers, floats, booleans that count as 0 and 1.
//!
//! Integers are 128 bits wide, which is 38 digits; what does not fit is an error and never a wrong
//! value. A float is always finite: what Python shows as `inf` or `nan` is an error here.

use std::cmp::Ordering;

use crate::model::Error;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    /// The result of a comparison.
    Bool(bool),
    /// An integer of at most 38 digits, exact.
    Int(i128),
    Float(f64),
}

enum NumberPair {
    Ints(i128, i128),
    Floats(f64, f64),
}

impl Number {
    pub(super) fn float(value: f64) -> Result<Self, Error> {
        let is_finite = Some(value).filter(|value| value.is_finite());
        is_finite.map(Self::Float).ok_or_else(|| Error::tool("the result is not a finite number"))
    }

    /// A float without a fraction as an integer.
    pub(super) fn int_from(value: f64) -> Result<Self, Error> {
        // 2^127 is exact as a float; everything below it in magnitude fits.
        if value.abs() < 2_f64.powi(127) {
            #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
            Ok(Self::Int(value as i128))
        } else {
            Err(too_large())
        }
    }

    /// A boolean as 0 or 1; anything else unchanged.
    pub(super) fn bool_as_int(self) -> Self {
        match self {
            Self::Bool(value) => Self::Int(i128::from(value)),
            other => other,
        }
    }

    pub(super) fn to_float(self) -> f64 {
        match self.bool_as_int() {
            Self::Float(value) => value,
            #[expect(clippy::cast_precision_loss, reason = "Python rounds here too")]
            Self::Int(value) => value as f64,
            Self::Bool(_) => 0.0,
        }
    }

    pub(super) fn to_int(self) -> Option<i128> {
        match self.bool_as_int() {
            Self::Int(value) => Some(value),
            _ => None,
        }
    }

    fn pair(self, other: Self) -> NumberPair {
        match (self.to_int(), other.to_int()) {
            (Some(left), Some(right)) => NumberPair::Ints(left, right),
            _ => NumberPair::Floats(self.to_float(), other.to_float()),
        }
    }

    pub(super) fn negated(self) -> Result<Self, Error> {
        match self.bool_as_int() {
            Self::Int(value) => fits(value.checked_neg()),
            other => Ok(Self::Float(-other.to_float())),
        }
    }

    /// `self operator other`, for the arithmetic operators.
    pub(super) fn apply(self, operator: &str, other: Self) -> Result<Self, Error> {
        match (operator, self.pair(other)) {
            ("+", NumberPair::Ints(a, b)) => fits(a.checked_add(b)),
            ("+", NumberPair::Floats(a, b)) => Self::float(a + b),
            ("-", NumberPair::Ints(a, b)) => fits(a.checked_sub(b)),
            ("-", NumberPair::Floats(a, b)) => Self::float(a - b),
            ("*", NumberPair::Ints(a, b)) => fits(a.checked_mul(b)),
            ("*", NumberPair::Floats(a, b)) => Self::float(a * b),
            ("/" | "//" | "%", NumberPair::Ints(_, 0) | NumberPair::Floats(_, 0.0)) => {
                Err(Error::tool("division by zero"))
            }
            ("/", NumberPair::Ints(a, b)) => Ok(Self::Float(quotient(a, b))),
            ("/", NumberPair::Floats(a, b)) => Self::float(a / b),
            ("//", NumberPair::Ints(a, b)) => fits(floor_division(a, b).map(|(q, _)| q)),
            ("//", NumberPair::Floats(a, b)) => Self::float(float_division(a, b).0),
            ("%", NumberPair::Ints(a, b)) => fits(floor_division(a, b).map(|(_, r)| r)),
            ("%", NumberPair::Floats(a, b)) => Self::float(float_division(a, b).1),
            ("**", pair) => power(&pair),
            _ => Err(Error::tool(format!("the operator '{operator}' is not supported"))),
        }
    }

    /// Whether `self operator other` holds, for the comparisons; exact between integers and floats.
    pub(super) fn compare(self, operator: &str, other: Self) -> bool {
        let order = match (self.to_int(), other.to_int()) {
            (Some(a), Some(b)) => a.cmp(&b),
            (Some(a), None) => int_and_float(a, other.to_float()),
            (None, Some(b)) => int_and_float(b, self.to_float()).reverse(),
            (None, None) => {
                self.to_float().partial_cmp(&other.to_float()).unwrap_or(Ordering::Equal)
            }
        };
        match operator {
            "<" => order.is_lt(),
            "<=" => order.is_le(),
            ">" => order.is_gt(),
            ">=" => order.is_ge(),
            "==" => order.is_eq(),
            _ => order.is_ne(),
        }
    }

    /// The value as Python's `repr` writes it.
    pub(super) fn show(self) -> String {
        match self {
            Self::Bool(true) => "True".to_owned(),
            Self::Bool(false) => "False".to_owned(),
            Self::Int(value) => value.to_string(),
            Self::Float(value) => show_float(value),
        }
    }
}

pub(super) fn too_large() -> Error {
    Error::tool("the integer is too large: 38 digits are supported")
}

fn zero_to_negative_power() -> Error {
    Error::tool("zero cannot be raised to a negative power")
}

fn fits(value: Option<i128>) -> Result<Number, Error> {
    value.map(Number::Int).ok_or_else(too_large)
}

fn floor_division(a: i128, b: i128) -> Option<(i128, i128)> {
    let (quotient, remainder) = (a.checked_div(b)?, a.checked_rem(b)?);
    if remainder != 0 && (remainder < 0) != (b < 0) {
        Some((quotient - 1, remainder + b))
    } else {
        Some((quotient, remainder))
    }
}

/// The same for floats, in the steps Python takes, so that the last bit agrees.
fn float_division(a: f64, b: f64) -> (f64, f64) {
    let mut remainder = a % b;
    let mut division = (a - remainder) / b;
    if remainder == 0.0 {
        remainder = 0_f64.copysign(b);
    } else if (b < 0.0) != (remainder < 0.0) {
        remainder += b;
        division -= 1.0;
    }
    let floor = if division == 0.0 {
        0_f64.copysign(a / b)
    } else if division - division.floor() > 0.5 {
        division.floor() + 1.0
    } else {
        division.floor()
    };
    (floor, remainder)
}

/// `a / b` rounded once, as Python does it: two roundings would differ in the last digit.
#[expect(clippy::cast_precision_loss, reason = "the one rounding that is wanted")]
fn quotient(a: i128, b: i128) -> f64 {
    let (dividend, divisor) = (a.unsigned_abs(), b.unsigned_abs());
    let mut bits = dividend / divisor;
    let mut remainder = dividend % divisor;
    let mut shift = 0_i32;
    // Bits are added until there are more than a float holds; the rest only decides the rounding,
    // so one "sticky" bit stands for it. An integer divided by one is never below 2^-127, so the
    // shift is bounded and no result is subnormal.
    while bits < 1 << 64 && remainder != 0 {
        bits <<= 1;
        remainder <<= 1;
        if remainder >= divisor {
            remainder -= divisor;
            bits |= 1;
        }
        shift += 1;
    }
    if remainder != 0 {
        bits |= 1;
    }
    let value = bits as f64 * 2_f64.powi(-shift);
    if (a < 0) == (b < 0) { value } else { -value }
}

fn power(pair: &NumberPair) -> Result<Number, Error> {
    match *pair {
        NumberPair::Ints(0, exponent) if exponent < 0 => Err(zero_to_negative_power()),
        NumberPair::Ints(base, exponent) if exponent >= 0 => {
            match (base, u32::try_from(exponent)) {
                (0 | 1, _) => Ok(Number::Int(if exponent == 0 { 1 } else { base })),
                (-1, _) => Ok(Number::Int(if exponent % 2 == 0 { 1 } else { -1 })),
                (_, Ok(exponent)) => fits(base.checked_pow(exponent)),
                (_, Err(_)) => Err(too_large()),
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "Python takes floats here too")]
        NumberPair::Ints(base, exponent) => float_power(base as f64, exponent as f64),
        NumberPair::Floats(base, exponent) => float_power(base, exponent),
    }
}

fn float_power(base: f64, exponent: f64) -> Result<Number, Error> {
    if base == 0.0 && exponent < 0.0 {
        return Err(zero_to_negative_power());
    }
    if base < 0.0 && exponent.fract() != 0.0 {
        let why = "a root of a negative number is complex, which is not supported";
        return Err(Error::tool(why));
    }
    Number::float(base.powf(exponent))
}

fn int_and_float(int: i128, float: f64) -> Ordering {
    let limit = 2_f64.powi(127);
    if float >= limit {
        return Ordering::Less;
    }
    if float < -limit {
        return Ordering::Greater;
    }
    let floor = float.floor();
    #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
    let whole = floor as i128;
    int.cmp(&whole).then(if float > floor { Ordering::Less } else { Ordering::Equal })
}

/// The shortest digits that read back as the same float, laid out as Python's `repr` does: with a
/// point always, with an exponent below 1e-4 and from 1e16 on.
fn show_float(value: f64) -> String {
    // Rust's `{:e}` gives the same shortest digits: "1.5e-7", "1e16".
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..16).contains(&exponent) {
        let plain = value.to_string();
        if plain.contains('.') { plain } else { plain + ".0" }
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{mantissa}e{sign}{:02}", exponent.abs())
    }
}
