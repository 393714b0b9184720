//! Sampling requests: the prompt for the model, and the answer a person writes in its place.

use serde_json::{Value, json};

/// How many messages of a conversation are shown, the newest of them.
const MESSAGES: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConversationLine<'a> {
    Role(&'a str),
    Text(&'a str),
    /// Something that is not text; its kind.
    NonText(&'a str),
    /// Something of ours about it.
    Note(String),
}

/// The end of a conversation (`sampling/createMessage`), in the order in which it is read.
pub fn conversation(params: &Value) -> Vec<ConversationLine<'_>> {
    let mut all = Vec::new();
    if let Some(system) = params.get("systemPrompt").and_then(Value::as_str) {
        all.extend([ConversationLine::Role("system"), ConversationLine::Text(system)]);
    }
    let messages = params.get("messages").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let hidden = messages.len().saturating_sub(MESSAGES);
    if hidden > 0 {
        all.push(ConversationLine::Note(format!("… {hidden} earlier messages")));
    }
    for message in messages.iter().skip(hidden) {
        all.push(ConversationLine::Role(
            message.get("role").and_then(Value::as_str).unwrap_or("?"),
        ));
        let content = message.get("content").unwrap_or(&Value::Null);
        let blocks = content.as_array().map_or(std::slice::from_ref(content), Vec::as_slice);
        all.extend(blocks.iter().take(MESSAGES).map(|block| {
            match block.get("text").and_then(Value::as_str) {
                Some(text) => ConversationLine::Text(text),
                None => ConversationLine::NonText(
                    block.get("type").and_then(Value::as_str).unwrap_or("something"),
                ),
            }
        }));
    }
    let count = |key: &str| params.get(key).and_then(Value::as_array).map(Vec::len);
    if let Some(tools @ 1..) = count("tools") {
        all.push(ConversationLine::Note(format!(
            "{tools} tools are offered to the model; a person answers in text"
        )));
    }
    if let Some(most) = params.get("maxTokens").and_then(Value::as_u64) {
        all.push(ConversationLine::Note(format!("at most {most} tokens")));
    }
    all
}

pub fn text_result(text: &str) -> Value {
    json!({
        "role": "assistant",
        "content": { "type": "text", "text": text },
        "model": "human",
        "stopReason": "endTurn",
    })
}
