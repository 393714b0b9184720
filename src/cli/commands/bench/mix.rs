//! Values of the options: other calls of the same run.
//!
//! Owns: their syntax, and saying what is understood when something is not.

use std::str::FromStr;

/// `--mix`: another call of the same run, written as `WEIGHT NAME [ARGS]`.
#[derive(Debug, Clone, PartialEq)]
pub struct MixSpec {
    /// How often it is chosen.
    pub weight: f64,
    /// The tool.
    pub name: String,
    /// Its arguments, as words of a call.
    pub words: Vec<String>,
}

impl FromStr for MixSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected =
            || "expected WEIGHT NAME [ARGS] in quotes, such as '2 notes-get key=milk'".to_owned();
        let (weight, rest) = text.trim().split_once(char::is_whitespace).ok_or_else(expected)?;
        let weight = weight_of(weight).map_err(|_| expected())?;
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
/// What is understood, in words.
pub fn weight_of(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(weight) if weight > 0.0 && weight <= 1e6 => Ok(weight),
        _ => Err("expected a weight above 0, such as 1 or 0.5".to_owned()),
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
