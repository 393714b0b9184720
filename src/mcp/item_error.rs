//! Why an item of a server's list cannot be used.
//!
//! Owns: every such reason and its message, which names the item as far as possible. Never does:
//! read an item.

use super::headers::HeaderAnnotationError;

/// Why one item of a list is left out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ItemError {
    /// The item is another kind of JSON value.
    #[error("{} {item} is {value}, not an object", article(.item))]
    NotAnObject {
        /// The kind of item, in one word.
        item: &'static str,
        /// The beginning of the value.
        value: String,
    },
    /// The member by which an item is known is missing.
    #[error("{} {item} has no {key}", article(.item))]
    NoKey {
        /// The kind of item, in one word.
        item: &'static str,
        /// The name of the missing member.
        key: String,
    },
    /// The member by which an item is known is another kind of JSON value.
    #[error("the {key} of {} {item} is {value}", article(.item))]
    KeyNotText {
        /// The kind of item, in one word.
        item: &'static str,
        /// The name of the member.
        key: String,
        /// The beginning of the value.
        value: String,
    },
    /// The member by which an item is known holds white space at most.
    #[error("the {key} of {} {item} is empty", article(.item))]
    EmptyKey {
        /// The kind of item, in one word.
        item: &'static str,
        /// The name of the member.
        key: String,
    },
    /// The member by which an item is known is too long, in characters.
    #[error("the {key} of {} {item} is {count} characters long; {limit} are allowed", article(.item))]
    KeyTooLong {
        /// The kind of item, in one word.
        item: &'static str,
        /// The name of the member.
        key: String,
        /// How long it is, in characters.
        count: usize,
        /// How long it may be.
        limit: usize,
    },
    /// The member that identifies an item contains characters that cannot be shown.
    #[error("the {key} \"{shown}\" of {} {item} has characters that cannot be shown", article(.item))]
    UnshowableKey {
        /// The kind of item, in one word.
        item: &'static str,
        /// The name of the member.
        key: String,
        /// What it looks like when it is made safe.
        shown: String,
    },
    /// A tool's name is another kind of JSON value.
    #[error("a tool's name is {0}, not text")]
    ToolNameNotText(String),
    /// A tool's name has no characters.
    #[error("a tool has an empty name")]
    EmptyToolName,
    /// A tool's name is too long, in characters.
    #[error("a tool's name is {count} characters long; {limit} are allowed")]
    ToolNameTooLong {
        /// How long it is, in characters.
        count: usize,
        /// How long it may be.
        limit: usize,
    },
    /// A tool's name, made safe, that contains characters that cannot be shown.
    #[error("the tool name \"{0}\" has characters that cannot be shown")]
    UnshowableToolName(String),
    /// A tool without a schema of its arguments.
    #[error("tool \"{0}\" has no inputSchema")]
    NoInputSchema(String),
    /// A tool whose arguments cannot travel as headers.
    #[error("tool \"{tool}\": {flaw}")]
    InvalidHeader {
        /// The tool's name on the server.
        tool: String,
        /// What is wrong with the annotation.
        flaw: HeaderAnnotationError,
    },
    /// A member of a named item has the wrong type or value.
    #[error("{item} \"{name}\": {member} is {value}")]
    InvalidMember {
        /// The kind of item, in one word.
        item: &'static str,
        /// The item's own name or address.
        name: String,
        /// The member, in words for people.
        member: String,
        /// The beginning of its value.
        value: String,
    },
    /// A prompt with more arguments than are read.
    #[error("prompt \"{prompt}\" has more than {limit} arguments")]
    TooManyArguments {
        /// The prompt's name on the server.
        prompt: String,
        /// How many it may have.
        limit: usize,
    },
    /// An argument of a prompt that cannot be used.
    #[error("prompt \"{prompt}\": {flaw}")]
    InvalidArgument {
        /// The prompt's name on the server.
        prompt: String,
        /// What is wrong with the argument.
        flaw: Box<Self>,
    },
    /// Two arguments of a prompt with one name.
    #[error("prompt \"{prompt}\" has two arguments called \"{argument}\"")]
    ArgumentTwice {
        /// The prompt's name on the server.
        prompt: String,
        /// The name that two arguments share.
        argument: String,
    },
}

fn article(item: &str) -> &'static str {
    if item.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}
