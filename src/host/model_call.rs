//! Calls that a model asks for.

use serde_json::{Value, json};

use super::ToolHost;
use super::call_record::OpenCall;
use super::request::{CallArguments, CallRequest};
use crate::audit::mask::MASK;
use crate::formats::{CallAnswer, ExportedCatalogue, RAW_ARGUMENTS, RequestedCall};
use crate::model::{Error, ToolResult};

impl ToolHost {
    /// Runs a call that a model asks for, under the rules of every call, and gives the answer to
    /// send back. Errors are reported to the model too. `exported` is what the model was given, and
    /// `adjust` says what the call has beside its name and arguments, such as a session.
    pub async fn answer_model(
        &self,
        exported: &ExportedCatalogue,
        call: &RequestedCall,
        adjust: impl FnOnce(&mut CallRequest),
    ) -> CallAnswer {
        let arguments = match &call.arguments {
            Ok(arguments) => arguments.clone(),
            Err(unparsed) => {
                let name = exported.tool(&call.name).map_or(&call.name, |tool| &tool.full_name);
                // The text may hold a secret, and no schema says where.
                let masked = [(RAW_ARGUMENTS.to_owned(), Value::from(MASK))].into_iter().collect();
                let mut request = CallRequest::new(name, CallArguments::Object(masked));
                adjust(&mut request);
                let error = Error::usage(unparsed.to_string());
                OpenCall::new(self, &request, self.new_call_id(), None).fail(&error);
                return CallAnswer::failure(
                    json!({ "error": error.message(), RAW_ARGUMENTS: unparsed.text }).to_string(),
                );
            }
        };
        let (name, arguments) = match exported.tool(&call.name) {
            Some(tool) => (tool.full_name.as_str(), tool.own_arguments(arguments)),
            None => (call.name.as_str(), arguments),
        };
        let mut request = CallRequest::new(name, CallArguments::Object(arguments));
        adjust(&mut request);
        match self.call(request).await.and_then(|outcome| outcome.result) {
            Ok(result) => answer_of(result),
            Err(error) => CallAnswer::failure(error_text(&error)),
        }
    }
}

fn answer_of(result: ToolResult) -> CallAnswer {
    CallAnswer {
        is_error: !result.success || result.error.is_some(),
        content: result.content,
        structured: result.structured,
    }
}

/// An error as a model reads it: what happened, and each detail; the hint, which often names a command
/// for a person, only without them.
fn error_text(error: &Error) -> String {
    let mut lines = vec![error.to_string()];
    match (error.details(), error.hint()) {
        ([], Some(hint)) => lines.push(format!("hint: {hint}")),
        (details, _) => lines.extend(details.iter().cloned()),
    }
    lines.join("\n")
}
