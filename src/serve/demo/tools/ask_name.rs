//! `ask_name`: asks the user of the client, in the way of the protocol's era.
//!
//! Before 2026-07-28 the server sends `elicitation/create` and waits; from then on it returns
//! `input_required` and is called again with the answer.

use std::time::Duration;

use async_trait::async_trait;
use rmcp::model::{
    CallToolResponse, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, ErrorData, InputRequest, InputRequests, InputRequiredResult, Tool,
};
use serde_json::{Value, json};

use super::{DemoCall, DemoServer, DemoTool};
use crate::serve::demo::server::is_modern;

const ANSWER_TIMEOUT: Duration = Duration::from_mins(5);
const QUESTION: &str = "name";

pub(super) struct AskName;

#[async_trait]
impl DemoTool for AskName {
    fn definition(&self) -> Tool {
        let schema = json!({ "type": "object", "properties": {}, "additionalProperties": false });
        super::tool("ask_name", "Ask for a name", "Asks who is there and says hello", schema)
            .with_annotations(super::read_only())
    }

    async fn call(
        &self,
        server: &DemoServer,
        call: DemoCall,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(responses) = &call.request.input_responses {
            let Some(response) = responses.get(QUESTION) else {
                return Err(ErrorData::invalid_params("the answer 'name' is missing", None));
            };
            return match serde_json::from_value(response.clone()) {
                Ok(answer) => Ok(greet(&answer)),
                Err(error) => Err(ErrorData::invalid_params(error.to_string(), None)),
            };
        }
        let elicitation = call.context.client_capabilities().and_then(|c| c.elicitation);
        // An empty object is the form mode's older spelling.
        if !elicitation.is_some_and(|e| e.form.is_some() || e.url.is_none()) {
            return Ok(super::error_result(
                "this client cannot ask, so I do not know who is there",
            ));
        }
        let form = form()?;
        if is_modern(&call.context) {
            let question = InputRequest::Elicitation(ElicitRequest::new(form));
            let questions = InputRequests::from([(QUESTION.to_owned(), question)]);
            return Ok(InputRequiredResult::from_input_requests(questions).into());
        }
        tokio::select! {
            () = call.wait_cancelled(server) => Ok(super::error_result("cancelled")),
            answer = call.context.peer.create_elicitation_with_timeout(form, Some(ANSWER_TIMEOUT)) => {
                Ok(match answer {
                    Ok(answer) => greet(&answer),
                    Err(error) => super::error_result(format!("no answer: {error}")),
                })
            }
        }
    }
}

fn form() -> Result<ElicitRequestParams, ErrorData> {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "title": "Name", "minLength": 1, "maxLength": 60 },
        },
        "required": ["name"],
    });
    let requested_schema = ElicitationSchema::from_json_schema(super::object(schema))
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    Ok(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: "What is your name?".to_owned(),
        requested_schema,
    })
}

fn greet(answer: &ElicitResult) -> CallToolResponse {
    match answer.action {
        ElicitationAction::Accept => {
            match answer.content.as_ref().and_then(|content| content.get(QUESTION)) {
                Some(Value::String(name)) if !name.trim().is_empty() => {
                    super::text(format!("Hello, {}!", name.trim()))
                }
                _ => super::error_result("the answer has no name"),
            }
        }
        ElicitationAction::Decline => super::text("Hello, whoever you are. Thank you anyway."),
        _ => super::text("No name then. Perhaps another time."),
    }
}
