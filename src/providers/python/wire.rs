//! The messages between toolhost and a worker: one JSON value per line.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::class::PythonClass;
use crate::model::{JsonObject, ToolContext, TraceContext};

/// The longest line in either direction, in bytes.
pub(super) const MAX_LINE_BYTES: usize = 16 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum WorkerOp {
    Call,
    /// Describe one function: its description and the schema of its arguments.
    Describe,
    /// Tell what a module offers: definitions and typed functions, with their schemas.
    Functions,
    Methods,
}

/// The part of a module that a request is about.
#[derive(Debug, Clone, Copy)]
pub(super) enum WorkerTarget<'a> {
    Module,
    /// This function; a dotted one leads through a class.
    Function(&'a str),
    /// What the module offers under this name: a definition or a typed function.
    Offer(&'a str),
    /// A class: one of its methods, or the one that makes the class a single tool.
    Class(&'a PythonClass, Option<&'a str>),
}

/// A request, before it has a number.
#[derive(Debug, Clone, Copy)]
pub(super) struct WorkerRequest<'a> {
    pub(super) op: WorkerOp,
    pub(super) module: &'a str,
    pub(super) target: WorkerTarget<'a>,
    /// The file the module must come from, if it is below the root.
    pub(super) file: Option<&'a Path>,
    /// The arguments, for a call.
    pub(super) args: Option<&'a JsonObject>,
}

impl WorkerRequest<'_> {
    pub(super) fn line(&self, id: u64, context: &ToolContext) -> Vec<u8> {
        #[derive(Serialize)]
        struct RequestContext<'a> {
            call_id: &'a str,
            session_id: &'a str,
            user_id: Option<&'a str>,
            traceparent: Option<&'a str>,
            cwd: std::borrow::Cow<'a, str>,
            environment: &'a std::collections::BTreeMap<String, String>,
            metadata: &'a JsonObject,
        }
        #[derive(Serialize)]
        struct RequestLine<'a> {
            id: u64,
            op: WorkerOp,
            module: &'a str,
            function: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            offer: Option<&'a str>,
            #[serde(flatten)]
            class: Option<&'a PythonClass>,
            file: Option<std::borrow::Cow<'a, str>>,
            args: Option<&'a JsonObject>,
            context: RequestContext<'a>,
        }
        let (function, offer, class) = match self.target {
            WorkerTarget::Module => (None, None, None),
            WorkerTarget::Function(name) => (Some(name), None, None),
            WorkerTarget::Offer(name) => (None, Some(name), None),
            WorkerTarget::Class(class, method) => (method, None, Some(class)),
        };
        let line = RequestLine {
            id,
            op: self.op,
            module: self.module,
            function,
            offer,
            class,
            file: self.file.map(|file| file.to_string_lossy()),
            args: self.args,
            context: RequestContext {
                call_id: &context.call_id.0,
                session_id: &context.session_id,
                user_id: context.user_id.as_deref(),
                traceparent: context.trace.as_ref().map(TraceContext::traceparent),
                cwd: context.cwd.to_string_lossy(),
                environment: &context.environment,
                metadata: &context.metadata,
            },
        };
        // A JSON object always can be written as JSON.
        let mut bytes = serde_json::to_vec(&line).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

/// The line that takes a request back.
pub(super) fn cancel(id: u64) -> Vec<u8> {
    format!("{{\"id\":{id},\"op\":\"cancel\"}}\n").into_bytes()
}

#[derive(Debug, Deserialize)]
pub(super) struct WorkerMessage<'a> {
    pub(super) id: Option<u64>,
    /// The first line: the worker is ready.
    pub(super) hello: Option<WorkerHello>,
    pub(super) progress: Option<f64>,
    /// The value of `progress` at which the call is done, when that is known.
    pub(super) total: Option<f64>,
    /// What the function is doing at this progress.
    pub(super) message: Option<String>,
    /// The severity of a line of a log.
    pub(super) level: Option<String>,
    pub(super) text: Option<String>,
    pub(super) error: Option<WorkerError>,
    /// The result, as text. A result of `null` is also `None` here.
    #[serde(borrow)]
    pub(super) result: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) warnings: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct WorkerHello {
    /// The version of Python, such as `3.11.7`.
    pub(super) version: String,
}

/// An answer to a request.
pub(super) struct WorkerReply {
    /// The result, as JSON text; absent for `null`.
    pub(super) result: Option<Box<RawValue>>,
    /// Why there is no result; `None` when there is one.
    pub(super) error: Option<WorkerError>,
    pub(super) warnings: Vec<String>,
}

/// Why a request gave no result.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct WorkerError {
    /// The source of the failure.
    pub(super) kind: WorkerErrorKind,
    /// The class of the exception that the function raised, without its module.
    #[serde(default)]
    pub(super) exception: Option<String>,
    /// The cause as one line; for an exception its class and message.
    pub(super) message: String,
    #[serde(default)]
    pub(super) hint: Option<String>,
    /// Lines of evidence, such as a traceback.
    #[serde(default)]
    pub(super) details: Vec<String>,
}

/// The source of the failure of a request without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WorkerErrorKind {
    Raised,
    Import,
    /// The entry names something that does not exist.
    Entry,
    /// A class could not be given its instance.
    Start,
    /// The constructor of a class did not return in time.
    StartTimeout,
    /// The result passes the limit.
    TooLarge,
    /// The function was stopped because its call was cancelled.
    Stopped,
    /// It would have loaded code that is not the code that was trusted.
    Denied,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_a_result() {
        let message: WorkerMessage<'_> =
            serde_json::from_str(r#"{"id":1,"warnings":[],"result":null}"#).unwrap();
        assert!(message.id == Some(1) && message.result.is_none() && message.error.is_none());
    }
}
