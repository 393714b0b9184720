//! Types of plain YAML scalars: the core schema of YAML 1.2, with stricter rules for ambiguous
//! words.

use serde_json::Number;

use crate::config::node::NodeValue;

/// Resolves a plain scalar. Booleans are `true` and `false` only; a leading zero, an underscore or
/// a colon makes it text. `Err` for infinities and NaN, which JSON cannot represent.
pub(super) fn resolve(word: &str) -> Result<NodeValue, &'static str> {
    Ok(match word {
        "" | "~" | "null" | "Null" | "NULL" => NodeValue::Null,
        "true" | "True" | "TRUE" => NodeValue::Bool(true),
        "false" | "False" | "FALSE" => NodeValue::Bool(false),
        _ => match number(word)? {
            Some(number) => NodeValue::Number(number),
            None => NodeValue::Text(word.to_owned()),
        },
    })
}

/// Parses a number; `None` if the scalar is not a number.
pub(super) fn number(word: &str) -> Result<Option<Number>, &'static str> {
    let starts_like_one = word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    if !starts_like_one {
        return Ok(None);
    }
    let unsigned = word.strip_prefix(['+', '-']).unwrap_or(word);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(word, ".nan" | ".NaN" | ".NAN") {
        return Err("infinities and NaN are not allowed here");
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = word.strip_prefix(prefix) {
            return Ok(u64::from_str_radix(digits, radix).ok().map(Number::from));
        }
    }
    let integer_digits = unsigned.split(['.', 'e', 'E']).next().unwrap_or_default();
    if integer_digits.len() > 1 && integer_digits.starts_with('0') {
        return Ok(None);
    }
    if !unsigned.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b)) {
        return Ok(None);
    }
    // JSON requires digits on both sides of the point and no leading plus.
    let word = word.strip_prefix('+').unwrap_or(word);
    let padded = match word.strip_prefix("-.").or_else(|| word.strip_prefix('.')) {
        Some(rest) if word.starts_with('-') => format!("-0.{rest}"),
        Some(rest) => format!("0.{rest}"),
        None if word.ends_with('.') => format!("{word}0"),
        None => word.to_owned(),
    };
    Ok(padded.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_yaml_1_2_says() {
        for (word, expected) in [
            ("12", "12"),
            ("+12", "12"),
            ("-12", "-12"),
            ("0x1F", "31"),
            ("0o17", "15"),
            (".5", "0.5"),
            ("-.5", "-0.5"),
            ("1.", "1.0"),
            ("1e3", "1e+3"),
            ("0", "0"),
            ("0.5", "0.5"),
        ] {
            let number = number(word).unwrap().map(|n| n.to_string());
            assert_eq!(number.as_deref(), Some(expected), "{word}");
        }
    }

    #[test]
    fn look_alikes_are_text() {
        for word in [
            "0755",
            "1_000",
            "1.2.3",
            "-",
            ".",
            "+",
            "1e",
            "12px",
            "0x",
            "0xZZ",
            "-x",
            "2026-11-21",
        ] {
            assert_eq!(number(word).unwrap(), None, "{word}");
        }
    }

    #[test]
    fn what_json_cannot_carry_is_refused() {
        assert!(number(".inf").is_err() && number("-.INF").is_err() && number(".nan").is_err());
    }
}
