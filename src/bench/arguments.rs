//! The arguments of the calls of a run: fixed, templated, or taken from a data file.
//!
//! Owns: constant arguments, rows, templates, and the check of all that is known of them before
//! anything is sent.

use std::sync::Arc;

use super::driver::ArgumentStream;
use super::plan::ArgumentSource;
use super::template::{ArgumentTemplate, has_placeholder};
use crate::host::load::LoadTarget;
use crate::host::request::{ArgumentWord, CallArguments};
use crate::model::Error;
use crate::provider::load::EncodedArguments;
use crate::util::clock::Clock;

/// How many generated arguments are checked before anything is sent.
const CHECKED_SAMPLES: u64 = 8;

/// Readies arguments for a target: all of them fit its schema, of generated ones the first few.
///
/// # Errors
/// A usage error: what does not fit, which row it is, or which placeholder means nothing.
pub async fn prepare(
    source: ArgumentSource,
    target: &LoadTarget,
    seed: u64,
    clock: Arc<dyn Clock>,
) -> Result<Box<dyn ArgumentStream>, Error> {
    match source {
        ArgumentSource::Constant(object) => {
            let payload = target.encode_arguments(CallArguments::Object(object)).await?;
            Ok(Box::new(ArgumentRows(vec![Arc::new(payload)])))
        }
        ArgumentSource::Rows(rows) => {
            let mut payloads = Vec::with_capacity(rows.len());
            for (number, row) in (1..).zip(rows) {
                let payload = target.encode_arguments(CallArguments::Object(row)).await;
                let payload = payload.map_err(|error| error.context(&format!("row {number}")))?;
                payloads.push(Arc::new(payload));
            }
            if payloads.is_empty() {
                return Err(Error::usage("there are no rows of arguments"));
            }
            Ok(Box::new(ArgumentRows(payloads)))
        }
        ArgumentSource::Template(object) => {
            let mut template = ArgumentTemplate::read(&object, seed)?;
            let properties = target.definition().input_schema.get("properties");
            template.stringify(|key| {
                let wants = properties.and_then(|all| all.get(key)?.get("type"));
                wants.is_some_and(|wants| wants == "string")
            });
            if template.is_constant() {
                let payload = target.encode_arguments(CallArguments::Object(object)).await?;
                return Ok(Box::new(ArgumentRows(vec![Arc::new(payload)])));
            }
            let mut made = GeneratedArguments { template, clock };
            for number in 0..CHECKED_SAMPLES {
                let sample = CallArguments::Object(made.payload(number).object.clone());
                let checked = target.encode_arguments(sample).await;
                checked.map_err(|error| error.context(&format!("made for call {}", number + 1)))?;
            }
            Ok(Box::new(made))
        }
    }
}

/// What was typed, as a source: a template when it has placeholders. What is typed for a property
/// that is no text, such as `count={{int 1 9}}`, gets the type that the schema wants.
///
/// # Errors
/// As [`prepare`].
pub async fn parse(
    given: CallArguments,
    target: &LoadTarget,
    seed: u64,
) -> Result<ArgumentSource, Error> {
    let words = match given {
        CallArguments::Object(object) => return Ok(ArgumentSource::Template(object)),
        CallArguments::Words(words) => words,
    };
    let is_made = |word: &ArgumentWord| matches!(word, ArgumentWord::Text { value: text, .. } if has_placeholder(text));
    if !words.iter().any(is_made) {
        return target
            .encode_arguments(CallArguments::Words(words))
            .await
            .map(|all| ArgumentSource::Constant(all.object));
    }
    let mut sample = words.clone();
    for word in &mut sample {
        if let ArgumentWord::Text { key, value: text } = word
            && has_placeholder(text)
        {
            let one = [(key.clone(), text.clone().into())].into_iter().collect();
            let filled = ArgumentTemplate::read(&one, seed)?.fill(0, 0);
            *text = match filled.get(key.as_str()) {
                Some(serde_json::Value::String(made)) => made.clone(),
                made => made.map(ToString::to_string).unwrap_or_default(),
            };
        }
    }
    let mut object = target.encode_arguments(CallArguments::Words(sample)).await?.object;
    for word in words {
        if let ArgumentWord::Text { key, value: text } = word
            && has_placeholder(&text)
        {
            object.insert(key, text.into());
        }
    }
    Ok(ArgumentSource::Template(object))
}

/// One after the other, and from the beginning again; at least one.
struct ArgumentRows(Vec<Arc<EncodedArguments>>);

impl ArgumentStream for ArgumentRows {
    fn payload(&mut self, ticket: u64) -> Arc<EncodedArguments> {
        let at = ticket % self.0.len() as u64;
        Arc::clone(&self.0[usize::try_from(at).unwrap_or_default()])
    }
}

/// Made for each call.
struct GeneratedArguments {
    template: ArgumentTemplate,
    clock: Arc<dyn Clock>,
}

impl ArgumentStream for GeneratedArguments {
    fn payload(&mut self, ticket: u64) -> Arc<EncodedArguments> {
        let millis = u64::try_from(self.clock.unix().as_millis()).unwrap_or(u64::MAX);
        Arc::new(EncodedArguments::new(self.template.fill(ticket, millis)))
    }
}
