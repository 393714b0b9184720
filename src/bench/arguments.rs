//! Where the arguments of calls come from.
//!
//! Owns: constant arguments, rows, templates, and the check of all that is known of them before
//! anything is sent.

use std::sync::Arc;

use super::driver::Arguments;
use super::plan::ArgumentSource;
use super::template::{Template, has_placeholder};
use crate::host::repeat::Target;
use crate::host::request::{ArgumentWord, Arguments as Given};
use crate::model::Fault;
use crate::provider::repeat::Payload;
use crate::util::clock::Clock;

/// How many generated arguments are checked before anything is sent.
const SAMPLES: u64 = 8;

/// Readies arguments for a target: all of them fit its schema, of generated ones the first few.
///
/// # Errors
/// A usage fault: what does not fit, which row it is, or which placeholder means nothing.
pub async fn ready(
    source: ArgumentSource,
    target: &Target,
    seed: u64,
    clock: Arc<dyn Clock>,
) -> Result<Box<dyn Arguments>, Fault> {
    match source {
        ArgumentSource::One(object) => {
            let payload = target.payload(Given::Object(object)).await?;
            Ok(Box::new(Rows(vec![Arc::new(payload)])))
        }
        ArgumentSource::Rows(rows) => {
            let mut payloads = Vec::with_capacity(rows.len());
            for (number, row) in (1..).zip(rows) {
                let payload = target.payload(Given::Object(row)).await;
                let payload = payload.map_err(|fault| fault.within(&format!("row {number}")))?;
                payloads.push(Arc::new(payload));
            }
            if payloads.is_empty() {
                return Err(Fault::usage("there is not one row of arguments"));
            }
            Ok(Box::new(Rows(payloads)))
        }
        ArgumentSource::Template(object) => {
            let mut template = Template::read(&object, seed)?;
            let properties = target.definition().input_schema.get("properties");
            template.write_out(|key| {
                let wants = properties.and_then(|all| all.get(key)?.get("type"));
                wants.is_some_and(|wants| wants == "string")
            });
            if template.is_constant() {
                let payload = target.payload(Given::Object(object)).await?;
                return Ok(Box::new(Rows(vec![Arc::new(payload)])));
            }
            let mut made = Generated { template, clock };
            for number in 0..SAMPLES {
                let sample = Given::Object(made.of(number).object.clone());
                let checked = target.payload(sample).await;
                checked.map_err(|fault| fault.within(&format!("made for call {}", number + 1)))?;
            }
            Ok(Box::new(made))
        }
    }
}

/// What was typed, as a source: a template when it has placeholders. What is typed for a property
/// that is no text, such as `count={{int 1 9}}`, gets the type that the schema wants.
///
/// # Errors
/// As [`ready`].
pub async fn typed(given: Given, target: &Target, seed: u64) -> Result<ArgumentSource, Fault> {
    let words = match given {
        Given::Object(object) => return Ok(ArgumentSource::Template(object)),
        Given::Words(words) => words,
    };
    let is_made = |word: &ArgumentWord| matches!(word, ArgumentWord::Text { value: text, .. } if has_placeholder(text));
    if !words.iter().any(is_made) {
        return target
            .payload(Given::Words(words))
            .await
            .map(|all| ArgumentSource::One(all.object));
    }
    let mut sample = words.clone();
    for word in &mut sample {
        if let ArgumentWord::Text { key, value: text } = word
            && has_placeholder(text)
        {
            let one = [(key.clone(), text.clone().into())].into_iter().collect();
            let filled = Template::read(&one, seed)?.fill(0, 0);
            *text = match filled.get(key.as_str()) {
                Some(serde_json::Value::String(made)) => made.clone(),
                made => made.map(ToString::to_string).unwrap_or_default(),
            };
        }
    }
    let mut object = target.payload(Given::Words(sample)).await?.object;
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
struct Rows(Vec<Arc<Payload>>);

impl Arguments for Rows {
    fn of(&mut self, ticket: u64) -> Arc<Payload> {
        let at = ticket % self.0.len() as u64;
        Arc::clone(&self.0[usize::try_from(at).unwrap_or_default()])
    }
}

/// Made for each call.
struct Generated {
    template: Template,
    clock: Arc<dyn Clock>,
}

impl Arguments for Generated {
    fn of(&mut self, ticket: u64) -> Arc<Payload> {
        let millis = u64::try_from(self.clock.unix().as_millis()).unwrap_or(u64::MAX);
        Arc::new(Payload::new(self.template.fill(ticket, millis)))
    }
}
