//! Arguments with placeholders that are filled in for each call.
//!
//! Owns: reading `{{int 1 100}}` and similar placeholders, and making values from number and seed:
//! the same call of the same plan has the same arguments, whenever it is made. Pure but for
//! `{{now}}`.

use std::fmt::Write as _;

use serde_json::{Number, Value};

use crate::model::{Error, JsonObject};
use crate::util::spelling::nearest;

/// The words a placeholder may start with.
const KNOWN: [&str; 7] = ["seq", "int", "float", "pick", "uuid", "word", "now"];

/// What `{{word}}` chooses from.
const WORDS: [&str; 24] = [
    "amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "harbor", "island", "jasper",
    "kettle", "lagoon", "meadow", "nectar", "orchid", "pebble", "quartz", "river", "saddle",
    "timber", "umbra", "valley", "willow", "zephyr",
];

/// One placeholder.
#[derive(Debug, Clone, PartialEq)]
enum Placeholder {
    Seq,
    Int(i64, i64),
    Float(f64, f64),
    Pick(Vec<String>),
    Uuid,
    Word,
    Now,
}

#[derive(Debug, Clone, PartialEq)]
enum TextSegment {
    Text(String),
    Generated(Placeholder),
}

#[derive(Debug, Clone, PartialEq)]
enum TemplateNode {
    Literal(Value),
    /// Exactly one placeholder: the value has its type.
    Generated(Placeholder),
    Text(Vec<TextSegment>),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

/// An object with placeholders.
#[derive(Debug, Clone, PartialEq)]
pub struct ArgumentTemplate {
    parts: Vec<(String, TemplateNode)>,
    seed: u64,
}

/// What is known when a call is made.
#[derive(Debug)]
struct FillContext {
    number: u64,
    random: fastrand::Rng,
    unix_millis: u64,
}

impl ArgumentTemplate {
    /// Reads an object; placeholders are looked for in all its texts, however deep.
    ///
    /// # Errors
    /// A usage error about a placeholder that means nothing.
    pub fn read(object: &JsonObject, seed: u64) -> Result<Self, Error> {
        Ok(Self { parts: entries(object)?, seed })
    }

    /// Makes the values of some properties texts, also where a placeholder has another type.
    pub fn stringify(&mut self, is_text: impl Fn(&str) -> bool) {
        for (key, part) in &mut self.parts {
            if let TemplateNode::Generated(one) = part
                && is_text(key)
            {
                *part = TemplateNode::Text(vec![TextSegment::Generated(one.clone())]);
            }
        }
    }

    /// Whether all calls get the same.
    pub fn is_constant(&self) -> bool {
        self.parts.iter().all(|(_, part)| part.is_fixed())
    }

    /// The arguments of the call with this number, at this time (milliseconds since the epoch).
    pub fn fill(&self, number: u64, unix_millis: u64) -> JsonObject {
        // Neighbouring seeds give unrelated numbers only after they were mixed.
        let mixed = self.seed ^ number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = fastrand::Rng::with_seed(mixed);
        random.seed(random.clone().u64(..));
        let mut moment = FillContext { number, random, unix_millis };
        let filled = |(key, part): &(String, TemplateNode)| (key.clone(), part.fill(&mut moment));
        self.parts.iter().map(filled).collect()
    }
}

/// Whether a text has something that looks like a placeholder.
pub fn has_placeholder(text: &str) -> bool {
    text.contains("{{")
}

fn entries(object: &JsonObject) -> Result<Vec<(String, TemplateNode)>, Error> {
    object.iter().map(|(key, value)| Ok((key.clone(), part(value)?))).collect()
}

fn part(value: &Value) -> Result<TemplateNode, Error> {
    Ok(match value {
        Value::String(text) if has_placeholder(text) => match &mut pieces(text)?[..] {
            [TextSegment::Generated(one)] => TemplateNode::Generated(one.clone()),
            several => TemplateNode::Text(several.to_vec()),
        },
        Value::Array(items) => {
            let parts = items.iter().map(part).collect::<Result<Vec<_>, _>>()?;
            if parts.iter().all(TemplateNode::is_fixed) {
                TemplateNode::Literal(value.clone())
            } else {
                TemplateNode::List(parts)
            }
        }
        Value::Object(object) => {
            let parts = entries(object)?;
            if parts.iter().all(|(_, part)| part.is_fixed()) {
                TemplateNode::Literal(value.clone())
            } else {
                TemplateNode::Object(parts)
            }
        }
        fixed => TemplateNode::Literal(fixed.clone()),
    })
}

fn pieces(text: &str) -> Result<Vec<TextSegment>, Error> {
    let mut all = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        if !before.is_empty() {
            all.push(TextSegment::Text(before.to_owned()));
        }
        let Some((words, after)) = after.split_once("}}") else {
            return Err(Error::usage(format!("'{text}' has a '{{{{' without a '}}}}'")));
        };
        all.push(TextSegment::Generated(placeholder(words)?));
        rest = after;
    }
    if !rest.is_empty() {
        all.push(TextSegment::Text(rest.to_owned()));
    }
    Ok(all)
}

fn placeholder(words: &str) -> Result<Placeholder, Error> {
    let mut parts = words.split_whitespace();
    let name = parts.next().unwrap_or_default();
    let given: Vec<&str> = parts.collect();
    let wrong = |form: &str| Error::usage(format!("'{{{{{words}}}}}' is not of the form {form}"));
    let found = match (name, &given[..]) {
        ("seq", []) => Placeholder::Seq,
        ("uuid", []) => Placeholder::Uuid,
        ("word", []) => Placeholder::Word,
        ("now", []) => Placeholder::Now,
        ("seq" | "uuid" | "word" | "now", _) => return Err(wrong(&format!("{{{{{name}}}}}"))),
        ("int", [low, high]) => match (low.parse(), high.parse()) {
            (Ok(low), Ok(high)) if low <= high => Placeholder::Int(low, high),
            _ => return Err(wrong("{{int 1 100}}")),
        },
        ("int", _) => return Err(wrong("{{int 1 100}}")),
        ("float", [low, high]) => match (low.parse::<f64>(), high.parse::<f64>()) {
            (Ok(low), Ok(high)) if low <= high && low.is_finite() && high.is_finite() => {
                Placeholder::Float(low, high)
            }
            _ => return Err(wrong("{{float 0 1}}")),
        },
        ("float", _) => return Err(wrong("{{float 0 1}}")),
        ("pick", []) => return Err(wrong("{{pick red green blue}}")),
        ("pick", all) => Placeholder::Pick(all.iter().map(ToString::to_string).collect()),
        (unknown, _) => {
            let error = Error::usage(format!("'{{{{{words}}}}}' is not a placeholder"));
            return Err(match nearest(unknown, KNOWN) {
                Some(near) => error.with_hint(format!("did you mean '{{{{{near}}}}}'?")),
                None => error.with_hint(format!("use one of: {}", KNOWN.join(", "))),
            });
        }
    };
    Ok(found)
}

impl Placeholder {
    fn fill(&self, moment: &mut FillContext) -> Value {
        match self {
            Self::Seq => moment.number.into(),
            Self::Int(low, high) => moment.random.i64(*low..=*high).into(),
            Self::Float(low, high) => {
                let made = low + (high - low) * moment.random.f64();
                Number::from_f64(made).map_or(Value::Null, Value::Number)
            }
            Self::Pick(all) => all[moment.random.usize(..all.len())].clone().into(),
            Self::Uuid => {
                let bytes = moment.random.u128(..).to_be_bytes();
                uuid::Builder::from_random_bytes(bytes).into_uuid().to_string().into()
            }
            Self::Word => WORDS[moment.random.usize(..WORDS.len())].into(),
            Self::Now => moment.unix_millis.into(),
        }
    }
}

impl TemplateNode {
    fn is_fixed(&self) -> bool {
        matches!(self, Self::Literal(_))
    }

    fn fill(&self, moment: &mut FillContext) -> Value {
        match self {
            Self::Literal(value) => value.clone(),
            Self::Generated(one) => one.fill(moment),
            Self::Text(pieces) => {
                let mut text = String::new();
                for piece in pieces {
                    match piece {
                        TextSegment::Text(fixed) => text.push_str(fixed),
                        TextSegment::Generated(one) => match one.fill(moment) {
                            Value::String(made) => text.push_str(&made),
                            made => {
                                // Writing to a string cannot fail.
                                let _written = write!(text, "{made}");
                            }
                        },
                    }
                }
                text.into()
            }
            Self::List(parts) => parts.iter().map(|part| part.fill(moment)).collect(),
            Self::Object(parts) => {
                let filled = |(key, part): &(String, Self)| (key.clone(), part.fill(moment));
                Value::Object(parts.iter().map(filled).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<ArgumentTemplate, Error> {
        let Value::Object(object) = value else { panic!("no object") };
        ArgumentTemplate::read(&object, 7)
    }

    #[test]
    fn a_single_placeholder_has_its_type_and_others_are_text() {
        let template = read(json!({
            "id": "{{seq}}", "note": "n {{seq}} of {{int 3 3}}", "deep": [{"x": "{{float 2 2}}"}], "at": "{{now}}"
        }));
        let expected = json!({"id": 5, "note": "n 5 of 3", "deep": [{"x": 2.0}], "at": 99});
        assert_eq!(Value::Object(template.unwrap().fill(5, 99)), expected);
    }

    #[test]
    fn the_same_number_and_seed_give_the_same_and_others_something_else() {
        let value = json!({"a": "{{int 0 1000000}}", "b": "{{uuid}}", "c": "{{word}}", "d": "{{pick x y z}}"});
        let template = read(value.clone()).unwrap();
        let made = |number| template.fill(number, 0);
        assert_eq!(made(3), read(value).unwrap().fill(3, 1));
        let all: std::collections::BTreeSet<String> =
            (0..200).map(|number| made(number)["b"].to_string()).collect();
        assert_eq!(all.len(), 200);
        let picked: std::collections::BTreeSet<String> =
            (0..200).map(|number| made(number)["d"].to_string()).collect();
        assert_eq!(picked.len(), 3);
    }

    #[test]
    fn where_a_text_is_wanted_a_number_is_written_out() {
        let mut template = read(json!({"a": "{{seq}}", "b": "{{seq}}"})).unwrap();
        template.stringify(|key| key == "b");
        assert_eq!(Value::Object(template.fill(4, 0)), json!({"a": 4, "b": "4"}));
    }

    #[test]
    fn what_has_no_placeholder_is_constant() {
        assert!(read(json!({"a": [1, {"b": "c"}], "d": "}} {"})).unwrap().is_constant());
        assert!(!read(json!({"a": [1, {"b": "{{seq}}"}]})).unwrap().is_constant());
    }

    #[test]
    fn a_wrong_placeholder_is_named_with_what_was_meant() {
        let error = read(json!({"a": "{{sec}}"})).unwrap_err();
        assert_eq!(error.message(), "'{{sec}}' is not a placeholder");
        assert_eq!(error.hint(), Some("did you mean '{{seq}}'?"));
        for wrong in
            ["{{int 1}}", "{{int 9 1}}", "{{float a b}}", "{{pick}}", "{{seq 1}}", "{{seq", "{{}}"]
        {
            assert!(read(json!({"a": wrong})).is_err(), "{wrong}");
        }
    }
}
