//! Parsing one threshold expression.
//!
//! Owns: the grammar: `TERM SIGN TERM`, where a term is a metric or a quantity, times or divided by
//! a number, plus or minus a quantity. Goes on after an error, so that all are found at once.

use super::metric::{Metric, MetricUnit};
use super::{Comparator, Operand, Term, Threshold};

/// The longest expression.
const MAX_LENGTH: usize = 1_000;

/// Something wrong with an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ExpressionError {
    /// Where, in characters from its start.
    pub(super) at: usize,
    /// How many characters.
    pub(super) len: usize,
    pub(super) message: String,
}

/// A word of an expression and where it stands.
#[derive(Debug, Clone)]
struct ExpressionToken {
    at: usize,
    text: String,
    kind: TokenKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    Name,
    Quantity,
    Comparator,
    Operator,
    Unknown,
}

/// A number with what follows it.
#[derive(Debug, Clone, Copy)]
struct Quantity {
    value: f64,
    unit: QuantityUnit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuantityUnit {
    None,
    Time,
    Percent,
    Rate,
}

/// A side before its constants are known to fit.
struct UncheckedTerm {
    operand: Option<UncheckedOperand>,
    factor: f64,
    offset: Option<(ExpressionToken, Quantity, f64)>,
}

enum UncheckedOperand {
    Metric(Option<usize>, Metric),
    Quantity(ExpressionToken, Quantity),
}

pub(super) fn expression(text: &str, targets: usize) -> Result<Threshold, Vec<ExpressionError>> {
    let mut errors = Vec::new();
    if text.len() > MAX_LENGTH {
        let message = format!("it is longer than {MAX_LENGTH} bytes");
        return Err(vec![ExpressionError { at: 0, len: 1, message }]);
    }
    let words = tokenize(text);
    for word in words.iter().filter(|word| word.kind == TokenKind::Unknown) {
        errors.push(error_at(word, format!("unexpected '{}'", word.text)));
    }
    let signs: Vec<usize> =
        (0..words.len()).filter(|at| words[*at].kind == TokenKind::Comparator).collect();
    let end = text.chars().count();
    let Some(&first) = signs.first() else {
        let message = "expected a comparison such as '>50ms'".to_owned();
        errors.push(ExpressionError { at: end, len: 1, message });
        let mut reader = ExpressionParser { tokens: &words, targets, end, errors };
        let _side = reader.term();
        return Err(reader.errors);
    };
    for second in &signs[1..] {
        errors.push(error_at(
            &words[*second],
            "only one comparison is allowed: repeat --fail-if".to_owned(),
        ));
    }
    let last = signs.get(1).copied().unwrap_or(words.len());
    let middle = words[first].at;
    let mut reader = ExpressionParser { tokens: &words[..first], targets, end: middle, errors };
    let left = reader.term();
    let mut reader =
        ExpressionParser { tokens: &words[first + 1..last], targets, end, errors: reader.errors };
    let right = reader.term();
    let mut errors = reader.errors;
    let sign = comparator(&words[first], &mut errors);
    let measure = common_unit(&left, &right, &words[first], &mut errors);
    let left = left.resolve(measure, &mut errors);
    let right = right.resolve(measure, &mut errors);
    match (left, sign, right) {
        (Some(left), Some(sign), Some(right)) if errors.is_empty() => {
            Ok(Threshold { text: text.to_owned(), left, comparator: sign, right })
        }
        _ => {
            errors.sort_by_key(|error| error.at);
            Err(errors)
        }
    }
}

fn error_at(word: &ExpressionToken, message: String) -> ExpressionError {
    ExpressionError { at: word.at, len: word.text.chars().count(), message }
}

fn tokenize(text: &str) -> Vec<ExpressionToken> {
    let mut words: Vec<ExpressionToken> = Vec::new();
    let mut signs = text.chars().enumerate().peekable();
    while let Some((at, first)) = signs.next() {
        if first.is_whitespace() {
            continue;
        }
        let mut text = String::from(first);
        let mut more = |text: &mut String, wanted: &dyn Fn(&str, char) -> bool| {
            while let Some((_, next)) = signs.next_if(|(_, next)| wanted(text, *next)) {
                text.push(next);
            }
        };
        let kind = if first.is_alphabetic() || first == '_' {
            more(&mut text, &|_, c| c.is_alphanumeric() || c == '_' || c == '.');
            TokenKind::Name
        } else if first.is_ascii_digit() || first == '.' {
            more(&mut text, &|_, c| c.is_ascii_digit() || c == '.');
            more(&mut text, &|_, c| c.is_alphabetic() || c == '%');
            // `/s` belongs to the number; any other `/` divides.
            if text.bytes().all(|c| c.is_ascii_digit() || c == b'.') {
                let mut ahead = signs.clone();
                let slash = ahead.next().map(|(_, c)| c) == Some('/');
                if slash && ahead.next().map(|(_, c)| c) == Some('s') {
                    text.push_str("/s");
                    signs.nth(1);
                }
            }
            TokenKind::Quantity
        } else if matches!(first, '<' | '>' | '=' | '!' | '≤' | '≥' | '≠') {
            more(&mut text, &|text, c| text.chars().count() == 1 && matches!(c, '=' | '>' | '<'));
            TokenKind::Comparator
        } else if matches!(first, '*' | '/' | '+' | '-' | '×') {
            TokenKind::Operator
        } else {
            TokenKind::Unknown
        };
        words.push(ExpressionToken { at, text, kind });
    }
    words
}

struct ExpressionParser<'a> {
    tokens: &'a [ExpressionToken],
    targets: usize,
    end: usize,
    errors: Vec<ExpressionError>,
}

impl ExpressionParser<'_> {
    fn term(&mut self) -> UncheckedTerm {
        let words: Vec<&ExpressionToken> =
            self.tokens.iter().filter(|w| w.kind != TokenKind::Unknown).collect();
        let mut words = words.into_iter();
        let mut side = UncheckedTerm { operand: None, factor: 1.0, offset: None };
        match words.next() {
            None => {
                let message = "expected a figure or a quantity".to_owned();
                self.errors.push(ExpressionError { at: self.end, len: 1, message });
            }
            Some(word) => side.operand = self.operand(word),
        }
        while let Some(operator) = words.next() {
            if operator.kind != TokenKind::Operator {
                let message = format!("an operator is missing before '{}'", operator.text);
                self.errors.push(error_at(operator, message));
                continue;
            }
            let quantity = words.next().and_then(|word| Some((word, self.quantity(word)?)));
            let Some((word, quantity)) = quantity else {
                let message = format!("'{}' must be followed by a number", operator.text);
                self.errors.push(error_at(operator, message));
                continue;
            };
            match operator.text.as_str() {
                "+" | "-" if side.offset.is_some() => {
                    self.errors.push(error_at(operator, "only one sum is allowed".to_owned()));
                }
                sign @ ("+" | "-") => {
                    let sign = if sign == "-" { -1.0 } else { 1.0 };
                    side.offset = Some((word.clone(), quantity, sign));
                }
                _ if side.offset.is_some() => {
                    let message = "use * and / before + and -".to_owned();
                    self.errors.push(error_at(operator, message));
                }
                _ if matches!(quantity.unit, QuantityUnit::Time | QuantityUnit::Rate) => {
                    let message = format!("'{}' takes a number without a unit", operator.text);
                    self.errors.push(error_at(word, message));
                }
                "/" if quantity.value == 0.0 => {
                    self.errors.push(error_at(word, "division by 0".to_owned()));
                }
                "/" => side.factor /= quantity.value,
                _ => side.factor *= quantity.value,
            }
        }
        side
    }

    fn operand(&mut self, word: &ExpressionToken) -> Option<UncheckedOperand> {
        match word.kind {
            TokenKind::Quantity => {
                Some(UncheckedOperand::Quantity(word.clone(), self.quantity(word)?))
            }
            TokenKind::Name => self.metric(word),
            _ => {
                let message = format!("a figure is missing before '{}'", word.text);
                self.errors.push(error_at(word, message));
                None
            }
        }
    }

    fn metric(&mut self, word: &ExpressionToken) -> Option<UncheckedOperand> {
        let (target, name) = match word.text.split_once('.') {
            Some((letter, name)) if is_letter(letter) => {
                let at = usize::from(letter.as_bytes()[0] - b'A');
                if at >= self.targets {
                    let message = if self.targets < 2 {
                        format!("there is no {letter}: --vs adds a second tool")
                    } else {
                        format!("there is no {letter}: the run has {} tools", self.targets)
                    };
                    self.errors.push(ExpressionError { at: word.at, len: 1, message });
                }
                (Some(at), name)
            }
            _ => (None, word.text.as_str()),
        };
        match Metric::parse(name) {
            Ok(metric) => Some(UncheckedOperand::Metric(target, metric)),
            Err(error) => {
                self.errors.push(error_at(word, error.to_string()));
                None
            }
        }
    }

    fn quantity(&mut self, word: &ExpressionToken) -> Option<Quantity> {
        let text = &word.text;
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let Ok(number) = number.parse::<f64>() else {
            self.errors.push(error_at(word, format!("'{text}' is not a number")));
            return None;
        };
        let (factor, unit) = match unit {
            "" => (1.0, QuantityUnit::None),
            "%" => (0.01, QuantityUnit::Percent),
            "/s" => (1.0, QuantityUnit::Rate),
            "ns" => (1e-9, QuantityUnit::Time),
            "us" | "µs" | "μs" => (1e-6, QuantityUnit::Time),
            "ms" => (1e-3, QuantityUnit::Time),
            "s" | "sec" => (1.0, QuantityUnit::Time),
            "m" | "min" => (60.0, QuantityUnit::Time),
            "h" => (3_600.0, QuantityUnit::Time),
            _ => {
                let message = format!("'{unit}' is not a unit; use ns, us, ms, s, m, h, % and /s");
                self.errors.push(error_at(word, message));
                return None;
            }
        };
        Some(Quantity { value: number * factor, unit })
    }
}

fn is_letter(text: &str) -> bool {
    matches!(text.as_bytes(), [b'A'..=b'Z'])
}

fn comparator(word: &ExpressionToken, errors: &mut Vec<ExpressionError>) -> Option<Comparator> {
    match word.text.as_str() {
        ">" => Some(Comparator::Greater),
        ">=" | "≥" => Some(Comparator::AtLeast),
        "<" => Some(Comparator::Less),
        "<=" | "≤" => Some(Comparator::AtMost),
        "=" | "==" => Some(Comparator::Equal),
        "!=" | "<>" | "≠" => Some(Comparator::NotEqual),
        other => {
            errors.push(error_at(
                word,
                format!("'{other}' is not a comparison: use > >= < <= == !="),
            ));
            None
        }
    }
}

/// What both sides are measured in.
fn common_unit(
    left: &UncheckedTerm,
    right: &UncheckedTerm,
    sign: &ExpressionToken,
    errors: &mut Vec<ExpressionError>,
) -> Option<MetricUnit> {
    let measure = |side: &UncheckedTerm| match &side.operand {
        Some(UncheckedOperand::Metric(_, metric)) => Some(metric.measure()),
        _ => None,
    };
    match (measure(left), measure(right)) {
        (Some(a), Some(b)) if a != b => {
            let message = "the two sides do not measure the same thing".to_owned();
            errors.push(error_at(sign, message));
            None
        }
        (None, None) if left.operand.is_some() && right.operand.is_some() => {
            let message = "it compares no measurement: one side must be a figure";
            errors.push(error_at(sign, message.to_owned()));
            None
        }
        (a, b) => a.or(b),
    }
}

impl UncheckedTerm {
    fn resolve(
        self,
        measure: Option<MetricUnit>,
        errors: &mut Vec<ExpressionError>,
    ) -> Option<Term> {
        let measure = measure?;
        let plus = match &self.offset {
            None => 0.0,
            Some((word, quantity, sign)) => sign * value_in_unit(word, *quantity, measure, errors)?,
        };
        let base = match self.operand? {
            UncheckedOperand::Metric(target, metric) => Operand::Metric { target, metric },
            UncheckedOperand::Quantity(word, quantity) => {
                let value = value_in_unit(&word, quantity, measure, errors)?;
                return Some(Term {
                    operand: Operand::Constant(value * self.factor + plus),
                    factor: 1.0,
                    offset: 0.0,
                });
            }
        };
        Some(Term { operand: base, factor: self.factor, offset: plus })
    }
}

/// The value of a quantity that is compared with a metric of this measure.
fn value_in_unit(
    word: &ExpressionToken,
    quantity: Quantity,
    measure: MetricUnit,
    errors: &mut Vec<ExpressionError>,
) -> Option<f64> {
    let text = &word.text;
    let message = match (measure, quantity.unit) {
        (MetricUnit::Time, QuantityUnit::Time)
        | (MetricUnit::Share, QuantityUnit::Percent)
        | (MetricUnit::Rate, QuantityUnit::Rate | QuantityUnit::None)
        | (MetricUnit::Count, QuantityUnit::None) => return Some(quantity.value),
        (_, QuantityUnit::None) if quantity.value == 0.0 => return Some(0.0),
        (MetricUnit::Share, QuantityUnit::None) if quantity.value < 1.0 => {
            return Some(quantity.value);
        }
        (MetricUnit::Time, QuantityUnit::None) => {
            format!("a time needs a unit: write {text}ms or {text}s")
        }
        (MetricUnit::Share, QuantityUnit::None) => {
            format!("write a share as {text}% or 0.01")
        }
        (MetricUnit::Time, _) => format!("'{text}' is not a time; write it like 50ms"),
        (MetricUnit::Share, _) => format!("'{text}' is not a percentage; write it like 1%"),
        (MetricUnit::Rate, _) => format!("'{text}' is not a rate; write it like 1000 or 1000/s"),
        (MetricUnit::Count, _) => format!("'{text}' is not a count; write a number without a unit"),
    };
    errors.push(error_at(word, message));
    None
}
