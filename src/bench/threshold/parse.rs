//! Reads one expression.
//!
//! Owns: the grammar: `TERM SIGN TERM`, where a term is a figure or a quantity, times or divided by
//! a number, plus or minus a quantity. Goes on after a flaw, so that all are found at once.

use super::figure::{Figure, Measure};
use super::{Base, Sign, Term, Threshold};

/// The longest expression.
const LONGEST: usize = 1_000;

/// Something wrong with an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flaw {
    /// Where, in characters from its beginning.
    pub(super) at: usize,
    /// How many characters.
    pub(super) len: usize,
    pub(super) message: String,
}

/// A word of an expression and where it stands.
#[derive(Debug, Clone)]
struct Word {
    at: usize,
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Name,
    Quantity,
    Sign,
    Operator,
    Unknown,
}

/// A number with what follows it.
#[derive(Debug, Clone, Copy)]
struct Quantity {
    value: f64,
    unit: Unit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    None,
    Time,
    Percent,
    Rate,
}

/// A side before its constants are known to fit.
struct Side {
    base: Option<Read>,
    factor: f64,
    plus: Option<(Word, Quantity, f64)>,
}

enum Read {
    Figure(Option<usize>, Figure),
    Quantity(Word, Quantity),
}

pub(super) fn expression(text: &str, targets: usize) -> Result<Threshold, Vec<Flaw>> {
    let mut flaws = Vec::new();
    if text.len() > LONGEST {
        let message = format!("it is longer than {LONGEST} bytes");
        return Err(vec![Flaw { at: 0, len: 1, message }]);
    }
    let words = words(text);
    for word in words.iter().filter(|word| word.kind == Kind::Unknown) {
        flaws.push(flaw(word, format!("'{}' has no meaning here", word.text)));
    }
    let signs: Vec<usize> = (0..words.len()).filter(|at| words[*at].kind == Kind::Sign).collect();
    let end = text.chars().count();
    let Some(&first) = signs.first() else {
        let message = "a comparison is missing, such as '>50ms'".to_owned();
        flaws.push(Flaw { at: end, len: 1, message });
        let mut reader = Reader { words: &words, targets, end, flaws };
        let _side = reader.side();
        return Err(reader.flaws);
    };
    for second in &signs[1..] {
        flaws.push(flaw(&words[*second], "one comparison is enough: repeat --fail-if".to_owned()));
    }
    let last = signs.get(1).copied().unwrap_or(words.len());
    let middle = words[first].at;
    let mut reader = Reader { words: &words[..first], targets, end: middle, flaws };
    let left = reader.side();
    let mut reader = Reader { words: &words[first + 1..last], targets, end, flaws: reader.flaws };
    let right = reader.side();
    let mut flaws = reader.flaws;
    let sign = sign(&words[first], &mut flaws);
    let measure = fit(&left, &right, &words[first], &mut flaws);
    let left = left.settle(measure, &mut flaws);
    let right = right.settle(measure, &mut flaws);
    match (left, sign, right) {
        (Some(left), Some(sign), Some(right)) if flaws.is_empty() => {
            Ok(Threshold { text: text.to_owned(), left, sign, right })
        }
        _ => {
            flaws.sort_by_key(|flaw| flaw.at);
            Err(flaws)
        }
    }
}

fn flaw(word: &Word, message: String) -> Flaw {
    Flaw { at: word.at, len: word.text.chars().count(), message }
}

fn words(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
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
            Kind::Name
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
            Kind::Quantity
        } else if matches!(first, '<' | '>' | '=' | '!' | '≤' | '≥' | '≠') {
            more(&mut text, &|text, c| text.chars().count() == 1 && matches!(c, '=' | '>' | '<'));
            Kind::Sign
        } else if matches!(first, '*' | '/' | '+' | '-' | '×') {
            Kind::Operator
        } else {
            Kind::Unknown
        };
        words.push(Word { at, text, kind });
    }
    words
}

struct Reader<'a> {
    words: &'a [Word],
    targets: usize,
    end: usize,
    flaws: Vec<Flaw>,
}

impl Reader<'_> {
    fn side(&mut self) -> Side {
        let words: Vec<&Word> = self.words.iter().filter(|w| w.kind != Kind::Unknown).collect();
        let mut words = words.into_iter();
        let mut side = Side { base: None, factor: 1.0, plus: None };
        match words.next() {
            None => {
                let message = "a figure or a quantity is missing here".to_owned();
                self.flaws.push(Flaw { at: self.end, len: 1, message });
            }
            Some(word) => side.base = self.base(word),
        }
        while let Some(operator) = words.next() {
            if operator.kind != Kind::Operator {
                let message = format!("an operator is missing before '{}'", operator.text);
                self.flaws.push(flaw(operator, message));
                continue;
            }
            let quantity = words.next().and_then(|word| Some((word, self.quantity(word)?)));
            let Some((word, quantity)) = quantity else {
                let message = format!("'{}' takes a number after it", operator.text);
                self.flaws.push(flaw(operator, message));
                continue;
            };
            match operator.text.as_str() {
                "+" | "-" if side.plus.is_some() => {
                    self.flaws.push(flaw(operator, "one sum is enough".to_owned()));
                }
                sign @ ("+" | "-") => {
                    let sign = if sign == "-" { -1.0 } else { 1.0 };
                    side.plus = Some((word.clone(), quantity, sign));
                }
                _ if side.plus.is_some() => {
                    let message = "multiply before you add".to_owned();
                    self.flaws.push(flaw(operator, message));
                }
                _ if matches!(quantity.unit, Unit::Time | Unit::Rate) => {
                    let message = format!("'{}' takes a number without a unit", operator.text);
                    self.flaws.push(flaw(word, message));
                }
                "/" if quantity.value == 0.0 => {
                    self.flaws.push(flaw(word, "nothing can be divided by 0".to_owned()));
                }
                "/" => side.factor /= quantity.value,
                _ => side.factor *= quantity.value,
            }
        }
        side
    }

    fn base(&mut self, word: &Word) -> Option<Read> {
        match word.kind {
            Kind::Quantity => Some(Read::Quantity(word.clone(), self.quantity(word)?)),
            Kind::Name => self.figure(word),
            _ => {
                let message = format!("a figure is missing before '{}'", word.text);
                self.flaws.push(flaw(word, message));
                None
            }
        }
    }

    fn figure(&mut self, word: &Word) -> Option<Read> {
        let (target, name) = match word.text.split_once('.') {
            Some((letter, name)) if is_letter(letter) => {
                let at = usize::from(letter.as_bytes()[0] - b'A');
                if at >= self.targets {
                    let message = if self.targets < 2 {
                        format!("there is no {letter}: it takes --vs to have a second tool")
                    } else {
                        format!("there is no {letter}: the run has {} tools", self.targets)
                    };
                    self.flaws.push(Flaw { at: word.at, len: 1, message });
                }
                (Some(at), name)
            }
            _ => (None, word.text.as_str()),
        };
        match Figure::parse(name) {
            Ok(figure) => Some(Read::Figure(target, figure)),
            Err(message) => {
                self.flaws.push(flaw(word, message));
                None
            }
        }
    }

    fn quantity(&mut self, word: &Word) -> Option<Quantity> {
        let text = &word.text;
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let Ok(number) = number.parse::<f64>() else {
            self.flaws.push(flaw(word, format!("'{text}' is no number")));
            return None;
        };
        let (factor, unit) = match unit {
            "" => (1.0, Unit::None),
            "%" => (0.01, Unit::Percent),
            "/s" => (1.0, Unit::Rate),
            "ns" => (1e-9, Unit::Time),
            "us" | "µs" | "μs" => (1e-6, Unit::Time),
            "ms" => (1e-3, Unit::Time),
            "s" | "sec" => (1.0, Unit::Time),
            "m" | "min" => (60.0, Unit::Time),
            "h" => (3_600.0, Unit::Time),
            _ => {
                let message =
                    format!("'{unit}' is no unit: there are ns, us, ms, s, m, h, % and /s");
                self.flaws.push(flaw(word, message));
                return None;
            }
        };
        Some(Quantity { value: number * factor, unit })
    }
}

fn is_letter(text: &str) -> bool {
    matches!(text.as_bytes(), [b'A'..=b'Z'])
}

fn sign(word: &Word, flaws: &mut Vec<Flaw>) -> Option<Sign> {
    match word.text.as_str() {
        ">" => Some(Sign::More),
        ">=" | "≥" => Some(Sign::AtLeast),
        "<" => Some(Sign::Less),
        "<=" | "≤" => Some(Sign::AtMost),
        "=" | "==" => Some(Sign::Equal),
        "!=" | "<>" | "≠" => Some(Sign::Unequal),
        other => {
            flaws
                .push(flaw(word, format!("'{other}' is no comparison: there are > >= < <= == !=")));
            None
        }
    }
}

/// What both sides are measured in.
fn fit(left: &Side, right: &Side, sign: &Word, flaws: &mut Vec<Flaw>) -> Option<Measure> {
    let measure = |side: &Side| match &side.base {
        Some(Read::Figure(_, figure)) => Some(figure.measure()),
        _ => None,
    };
    match (measure(left), measure(right)) {
        (Some(a), Some(b)) if a != b => {
            let message = "the two sides do not measure the same thing".to_owned();
            flaws.push(flaw(sign, message));
            None
        }
        (None, None) if left.base.is_some() && right.base.is_some() => {
            let message = "it compares nothing that was measured: one side must be a figure";
            flaws.push(flaw(sign, message.to_owned()));
            None
        }
        (a, b) => a.or(b),
    }
}

impl Side {
    fn settle(self, measure: Option<Measure>, flaws: &mut Vec<Flaw>) -> Option<Term> {
        let measure = measure?;
        let plus = match &self.plus {
            None => 0.0,
            Some((word, quantity, sign)) => sign * checked(word, *quantity, measure, flaws)?,
        };
        let base = match self.base? {
            Read::Figure(target, figure) => Base::Figure { target, figure },
            Read::Quantity(word, quantity) => {
                let value = checked(&word, quantity, measure, flaws)?;
                return Some(Term {
                    base: Base::Constant(value * self.factor + plus),
                    factor: 1.0,
                    plus: 0.0,
                });
            }
        };
        Some(Term { base, factor: self.factor, plus })
    }
}

/// The value of a quantity that is compared with a figure of this measure.
fn checked(
    word: &Word,
    quantity: Quantity,
    measure: Measure,
    flaws: &mut Vec<Flaw>,
) -> Option<f64> {
    let text = &word.text;
    let message = match (measure, quantity.unit) {
        (Measure::Time, Unit::Time)
        | (Measure::Share, Unit::Percent)
        | (Measure::Rate, Unit::Rate | Unit::None)
        | (Measure::Count, Unit::None) => return Some(quantity.value),
        (_, Unit::None) if quantity.value == 0.0 => return Some(0.0),
        (Measure::Share, Unit::None) if quantity.value < 1.0 => return Some(quantity.value),
        (Measure::Time, Unit::None) => {
            format!("a time needs a unit: write {text}ms or {text}s")
        }
        (Measure::Share, Unit::None) => format!("a share is written as {text}%, or as 0.01"),
        (Measure::Time, _) => format!("'{text}' is no time: write it like 50ms"),
        (Measure::Share, _) => format!("'{text}' is no share: write it like 1%"),
        (Measure::Rate, _) => format!("'{text}' is no rate: write it like 1000 or 1000/s"),
        (Measure::Count, _) => format!("'{text}' is no count: write a number without a unit"),
    };
    flaws.push(flaw(word, message));
    None
}
