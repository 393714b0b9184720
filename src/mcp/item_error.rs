//! Why an item of a server's list cannot be used.

use super::headers::HeaderAnnotationError;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ItemError {
    #[error("{} {item} is {value}, not an object", article(.item))]
    NotAnObject { item: &'static str, value: String },
    #[error("{} {item} has no {key}", article(.item))]
    NoKey { item: &'static str, key: String },
    #[error("the {key} of {} {item} is {value}", article(.item))]
    KeyNotText { item: &'static str, key: String, value: String },
    #[error("the {key} of {} {item} is empty", article(.item))]
    EmptyKey { item: &'static str, key: String },
    #[error("the {key} of {} {item} is {count} characters long; {limit} are allowed", article(.item))]
    KeyTooLong {
        item: &'static str,
        key: String,
        /// How long it is, in characters.
        count: usize,
        limit: usize,
    },
    #[error("the {key} \"{shown}\" of {} {item} has characters that cannot be shown", article(.item))]
    UnshowableKey {
        item: &'static str,
        key: String,
        /// What it looks like when it is made safe.
        shown: String,
    },
    #[error("a tool's name is {0}, not text")]
    ToolNameNotText(String),
    #[error("a tool has an empty name")]
    EmptyToolName,
    #[error("a tool's name is {count} characters long; {limit} are allowed")]
    ToolNameTooLong {
        /// How long it is, in characters.
        count: usize,
        limit: usize,
    },
    #[error("the tool name \"{0}\" has characters that cannot be shown")]
    UnshowableToolName(String),
    /// A tool without a schema of its arguments.
    #[error("tool \"{0}\" has no inputSchema")]
    NoInputSchema(String),
    #[error("tool \"{tool}\": {flaw}")]
    InvalidHeader { tool: String, flaw: HeaderAnnotationError },
    #[error("{item} \"{name}\": {member} is {value}")]
    InvalidMember { item: &'static str, name: String, member: String, value: String },
    #[error("prompt \"{prompt}\" has more than {limit} arguments")]
    TooManyArguments { prompt: String, limit: usize },
    #[error("prompt \"{prompt}\": {flaw}")]
    InvalidArgument { prompt: String, flaw: Box<Self> },
    #[error("prompt \"{prompt}\" has two arguments called \"{argument}\"")]
    ArgumentTwice { prompt: String, argument: String },
}

fn article(item: &str) -> &'static str {
    if item.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}
