//! What is answered when the suite's servers ask: yes, with what the form itself proposes.

use crate::host::example;
use crate::model::{JsonObject, Question, QuestionBody, QuestionHandler, QuestionReply};
use async_trait::async_trait;
use serde_json::{Value, json};

/// Says yes to every question.
pub struct Obliging;

#[async_trait]
impl QuestionHandler for Obliging {
    async fn ask(&self, question: Question) -> QuestionReply {
        QuestionReply::Accept(match question.body {
            QuestionBody::Form { schema, .. } => Value::Object(filled_in(&schema)),
            QuestionBody::Url { .. } => json!({}),
            QuestionBody::Sampling { .. } => json!({
                "role": "assistant",
                "content": { "type": "text", "text": "a sample" },
                "model": "none",
                "stopReason": "endTurn",
            }),
        })
    }
}

/// A form with every default, and something that fits where an answer is required without one.
fn filled_in(schema: &Value) -> JsonObject {
    let mut form = example::arguments(schema);
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(default) = field.get("default") {
            form.insert(name.clone(), default.clone());
        }
    }
    form
}
