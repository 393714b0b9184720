//! Further calls of a run, and how often each is made.
//!
//! Owns: their syntax, and saying what is understood when something is not.

use std::str::FromStr;

use super::syntax::ParseLoadError;

/// Another call of the same run, written as `WEIGHT NAME [ARGS]`.
#[derive(Debug, Clone, PartialEq)]
pub struct MixSpec {
    /// How often it is chosen.
    pub weight: f64,
    /// The tool.
    pub name: String,
    /// Its arguments, as words of a call.
    pub words: Vec<String>,
}

/// A value of `--mix` that is no weighted call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected WEIGHT NAME [ARGS] in quotes, such as '2 notes-get key=milk'")]
pub struct ParseMixError;

impl FromStr for MixSpec {
    type Err = ParseMixError;

    fn from_str(text: &str) -> Result<Self, ParseMixError> {
        let (weight, rest) = text.trim().split_once(char::is_whitespace).ok_or(ParseMixError)?;
        let weight = weight_of(weight).map_err(|_| ParseMixError)?;
        let rest = rest.trim_start();
        let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let arguments = arguments.trim();
        let words = if arguments.starts_with('{') {
            vec![arguments.to_owned()]
        } else {
            arguments.split_whitespace().map(str::to_owned).collect()
        };
        Ok(Self { weight, name: name.to_owned(), words })
    }
}

/// Reads a weight.
///
/// # Errors
/// What is understood instead.
pub fn weight_of(text: &str) -> Result<f64, ParseLoadError> {
    match text.parse::<f64>() {
        Ok(weight) if weight > 0.0 && weight <= 1e6 => Ok(weight),
        _ => Err(ParseLoadError::Weight),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_call_is_a_weight_a_name_and_arguments() {
        let mixed = |text: &str| text.parse::<MixSpec>();
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(
            mixed("2 notes-get key=milk n:=1"),
            Ok(MixSpec {
                weight: 2.0,
                name: "notes-get".to_owned(),
                words: words(&["key=milk", "n:=1"])
            })
        );
        let object = mixed(r#"0.5  a {"text": "two words"} "#).unwrap();
        assert_eq!(object.words, [r#"{"text": "two words"}"#]);
        assert_eq!(mixed("1 a").unwrap().words, [""; 0]);
        for text in ["", "a", "a 2", "0 a", "-1 a", "nan a"] {
            assert!(mixed(text).is_err(), "{text}");
        }
    }
}
