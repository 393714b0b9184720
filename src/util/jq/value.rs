//! Converting between JSON and the engine's values; numbers keep their digits.

use jaq_json::{Num, Val, read};
use serde_json::Value;

use super::JqError;

/// How deep a result may nest; what readers of JSON accept.
pub(super) const DEEPEST: usize = 128;

/// A JSON value for the engine. The caller bounds its depth (every reader of JSON here does).
pub(super) fn from_json(value: &Value) -> Result<Val, JqError> {
    read::parse_single(value.to_string().as_bytes())
        .map_err(|error| JqError::Runtime(error.to_string()))
}

/// A result as JSON. What JSON cannot say becomes what jq prints: `null` for not-a-number, the
/// largest float for infinity, replacement characters for bytes that are no text.
pub(super) fn to_json(value: &Val) -> Result<Value, JqError> {
    convert(value, 0)
}

fn convert(value: &Val, depth: usize) -> Result<Value, JqError> {
    if depth > DEEPEST {
        return Err(JqError::ResultTooDeep);
    }
    Ok(match value {
        Val::Null => Value::Null,
        Val::Bool(value) => Value::Bool(*value),
        Val::Num(number) => self::number(number),
        Val::TStr(bytes) | Val::BStr(bytes) => {
            Value::String(String::from_utf8_lossy(bytes).into_owned())
        }
        Val::Arr(items) => Value::Array(
            items.iter().map(|item| convert(item, depth + 1)).collect::<Result<_, _>>()?,
        ),
        Val::Obj(entries) => {
            let mut object = serde_json::Map::new();
            for (key, value) in entries.iter() {
                let Val::TStr(key) = key else {
                    return Err(JqError::KeyIsNotText);
                };
                object
                    .insert(String::from_utf8_lossy(key).into_owned(), convert(value, depth + 1)?);
            }
            Value::Object(object)
        }
    })
}

fn number(number: &Num) -> Value {
    let float = |value: f64| {
        let finite = value.clamp(f64::MIN, f64::MAX);
        serde_json::Number::from_f64(finite).map_or(Value::Null, Value::Number)
    };
    match number {
        Num::Int(value) => Value::from(*value),
        Num::Float(value) => float(*value),
        Num::BigInt(value) => parsed(&value.to_string()),
        Num::Dec(text) => parsed(text),
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).map_or(Value::Null, Value::Number)
}
