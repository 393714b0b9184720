//! What the demo tools do.
#![expect(deprecated, reason = "logging is deprecated in the newest revision, and a demo shows it")]

use std::pin::pin;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequest,
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, ErrorData,
    InputRequest, InputRequests, InputRequiredResult, InputResponses, LoggingLevel,
    LoggingMessageNotificationParam, ProgressNotificationParam,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler as _};
use serde::Deserialize;
use serde_json::{Number, Value, json};

use super::DemoServer;
use crate::serve::is_modern;
use crate::util::lock::lock;

const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
const MAX_SECONDS: f64 = 30.0;
const MAX_LINES: u32 = 100;
const ANSWER_TIMEOUT: Duration = Duration::from_mins(5);
const QUESTION: &str = "name";

/// A call, as its client makes it.
#[derive(Deserialize)]
#[serde(tag = "name", content = "arguments", rename_all = "snake_case")]
enum DemoCall {
    Echo {
        message: String,
    },
    Add {
        a: Number,
        b: Number,
    },
    WeatherReport {
        city: City,
        #[serde(default)]
        units: Units,
    },
    Slow {
        seconds: Option<f64>,
    },
    Fail {
        message: Option<String>,
    },
    DeleteNote {
        name: String,
    },
    AskName {},
    LogLines {
        count: Option<u32>,
        level: Option<LoggingLevel>,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum City {
    Lima,
    Nairobi,
    Oslo,
    Tokyo,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "lowercase")]
enum Units {
    #[default]
    Celsius,
    Fahrenheit,
}

/// Calls a tool. A wrong argument gives a result that the model can read, not a protocol error.
pub(super) async fn call(
    server: &DemoServer,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    if server.get_tool(&request.name).is_none() {
        let message = format!("unknown tool: {}", request.name);
        return Err(ErrorData::invalid_params(message, None));
    }
    // The name comes first, so that numbers are read as they were written.
    let arguments = request.arguments.unwrap_or_default();
    let call = json!({ "name": request.name, "arguments": arguments });
    Ok(match serde_json::from_value(call) {
        Ok(DemoCall::Echo { message }) => text(message),
        Ok(DemoCall::Add { a, b }) => match sum(&a, &b) {
            Some(sum) => CallToolResult::structured(json!({ "sum": Value::Number(sum) })).into(),
            None => error_result("the sum is too large to represent"),
        },
        Ok(DemoCall::WeatherReport { city, units }) => weather_report(&city, &units),
        Ok(DemoCall::Slow { seconds }) => slow(server, &context, seconds.unwrap_or(1.0)).await,
        Ok(DemoCall::Fail { message }) => {
            error_result(message.unwrap_or_else(|| "this tool always fails".to_owned()))
        }
        Ok(DemoCall::DeleteNote { name }) => delete_note(server, &name),
        Ok(DemoCall::AskName {}) => {
            return ask_name(server, request.input_responses, &context).await;
        }
        Ok(DemoCall::LogLines { count, level }) => {
            log_lines(server, &context, count.unwrap_or(3), level.unwrap_or(LoggingLevel::Info))
                .await
        }
        Err(wrong) => error_result(format!("wrong arguments: {wrong}")),
    })
}

fn text(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text.into())]).into()
}

/// A result with `isError` and this text.
fn error_result(reason: impl Into<String>) -> CallToolResponse {
    CallToolResult::error(vec![ContentBlock::text(reason.into())]).into()
}

/// Whole numbers stay whole as long as they fit; `None` when the sum is not finite.
fn sum(a: &Number, b: &Number) -> Option<Number> {
    let whole = || Some(Number::from(a.as_i64()?.checked_add(b.as_i64()?)?));
    whole().or_else(|| Number::from_f64(a.as_f64()? + b.as_f64()?))
}

fn weather_report(city: &City, units: &Units) -> CallToolResponse {
    // Made up, and the description says so.
    let (city, sky, celsius) = match city {
        City::Lima => ("Lima", "fog", 18),
        City::Nairobi => ("Nairobi", "sunny", 24),
        City::Oslo => ("Oslo", "snow", -4),
        City::Tokyo => ("Tokyo", "rain", 12),
    };
    let (temperature, units) = match units {
        Units::Celsius => (celsius, "celsius"),
        Units::Fahrenheit => (celsius * 9 / 5 + 32, "fahrenheit"),
    };
    let report = json!({ "city": city, "sky": sky, "temperature": temperature, "units": units });
    CallToolResult::structured(report).into()
}

fn delete_note(server: &DemoServer, name: &str) -> CallToolResponse {
    let mut notes = lock(&server.notes);
    if notes.remove(name).is_some() {
        text(format!("deleted {name}"))
    } else {
        let names: Vec<&str> = notes.keys().copied().collect();
        error_result(format!("there is no note '{name}'; there are: {}", names.join(", ")))
    }
}

/// Waits until a call is not wanted any more.
async fn wait_cancelled(server: &DemoServer, context: &RequestContext<RoleServer>) {
    tokio::select! {
        () = context.ct.cancelled() => (),
        () = server.client_gone.cancelled() => (),
    }
}

async fn slow(
    server: &DemoServer,
    context: &RequestContext<RoleServer>,
    seconds: f64,
) -> CallToolResponse {
    if !(0.0..=MAX_SECONDS).contains(&seconds) {
        return error_result("'seconds' must be between 0 and 30");
    }
    let total = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let waited =
        wait(total, wait_cancelled(server, context), |time| report(context, time, total)).await;
    match waited {
        Ok(()) => text(format!("waited {seconds} s")),
        Err(time) => error_result(format!("cancelled after {:.1} s", time.as_secs_f64())),
    }
}

/// Waits in steps and reports each; the error is how far it came before it was cancelled.
async fn wait<Report: Future<Output = ()> + Send>(
    total: Duration,
    unwanted: impl Future<Output = ()> + Send,
    report: impl Fn(Duration) -> Report + Send,
) -> Result<(), Duration> {
    let mut unwanted = pin!(unwanted);
    let mut waited = Duration::ZERO;
    while waited < total {
        let step = PROGRESS_INTERVAL.min(total.saturating_sub(waited));
        tokio::select! {
            biased;
            () = &mut unwanted => return Err(waited),
            () = tokio::time::sleep(step) => waited += step,
        }
        report(waited).await;
    }
    Ok(())
}

/// Sends one progress notification to a client that asked for them.
async fn report(context: &RequestContext<RoleServer>, time: Duration, total: Duration) {
    let Some(token) = context.meta.get_progress_token() else { return };
    let (time, total) = (time.as_secs_f64(), total.as_secs_f64());
    let progress = ProgressNotificationParam::new(token, time)
        .with_total(total)
        .with_message(format!("{time:.1} of {total:.1} s"));
    // A client that is gone ends the call by cancelling it; losing a notification changes nothing.
    context.peer.notify_progress(progress).await.ok();
}

async fn log_lines(
    server: &DemoServer,
    context: &RequestContext<RoleServer>,
    count: u32,
    level: LoggingLevel,
) -> CallToolResponse {
    if count > MAX_LINES {
        return error_result(format!("'count' must be between 0 and {MAX_LINES}"));
    }
    let mut sent = 0;
    if server.wants_log(level, context) {
        for line in 1..=count {
            let message =
                LoggingMessageNotificationParam::new(level, json!(format!("line {line}")))
                    .with_logger("demo");
            if context.peer.notify_logging_message(message).await.is_err() {
                break;
            }
            sent += 1;
        }
    }
    text(format!("sent {sent} of {count} lines"))
}

/// Asks the user of the client, in the way of the protocol's era: before 2026-07-28 the server sends
/// `elicitation/create` and waits; from then on it returns `input_required` and is called again with the
/// answer.
async fn ask_name(
    server: &DemoServer,
    answers: Option<InputResponses>,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    if let Some(answers) = &answers {
        let missing = || ErrorData::invalid_params("the answer 'name' is missing", None);
        let answer = answers.get(QUESTION).ok_or_else(missing)?;
        return match serde_json::from_value(answer.clone()) {
            Ok(answer) => Ok(greet(&answer)),
            Err(error) => Err(ErrorData::invalid_params(error.to_string(), None)),
        };
    }
    let elicitation = context.client_capabilities().and_then(|c| c.elicitation);
    // An empty object is the form mode's older spelling.
    if !elicitation.is_some_and(|e| e.form.is_some() || e.url.is_none()) {
        return Ok(error_result("this client cannot ask, so I do not know who is there"));
    }
    let form = form()?;
    if is_modern(context) {
        let question = InputRequest::Elicitation(ElicitRequest::new(form));
        let questions = InputRequests::from([(QUESTION.to_owned(), question)]);
        return Ok(InputRequiredResult::from_input_requests(questions).into());
    }
    tokio::select! {
        () = wait_cancelled(server, context) => Ok(error_result("cancelled")),
        answer = context.peer.create_elicitation_with_timeout(form, Some(ANSWER_TIMEOUT)) => {
            Ok(match answer {
                Ok(answer) => greet(&answer),
                Err(error) => error_result(format!("no answer: {error}")),
            })
        }
    }
}

fn form() -> Result<ElicitRequestParams, ErrorData> {
    let name = json!({ "type": "string", "title": "Name", "minLength": 1, "maxLength": 60 });
    let schema =
        json!({ "type": "object", "properties": { QUESTION: name }, "required": [QUESTION] });
    let requested_schema = serde_json::from_value::<ElicitationSchema>(schema)
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
                    text(format!("Hello, {}!", name.trim()))
                }
                _ => error_result("the answer has no name"),
            }
        }
        ElicitationAction::Decline => text("Hello, whoever you are. Thank you anyway."),
        _ => text("No name then. Perhaps another time."),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio_util::sync::CancellationToken;

    use super::*;

    #[test]
    fn whole_numbers_stay_whole_until_they_do_not_fit() {
        let add = |a: &str, b: &str| {
            let number = |text: &str| serde_json::from_str::<Number>(text).unwrap();
            sum(&number(a), &number(b)).map(|n| n.to_string())
        };
        assert_eq!(add("2", "3").as_deref(), Some("5"));
        assert_eq!(add("2.5", "3").as_deref(), Some("5.5"));
        assert_eq!(add("9223372036854775807", "1").as_deref(), Some("9.223372036854776e+18"));
        assert_eq!(add("1e308", "1e308"), None);
    }

    #[tokio::test]
    async fn cancelling_ends_the_wait_at_the_step_it_is_in() {
        let cancelled = CancellationToken::new();
        let report = |_| {
            cancelled.cancel();
            std::future::ready(())
        };
        assert_eq!(
            wait(Duration::from_secs(30), cancelled.cancelled(), report).await,
            Err(PROGRESS_INTERVAL)
        );
    }

    #[tokio::test]
    async fn the_last_step_is_cut_to_the_total() {
        let steps = Mutex::new(Vec::new());
        let total = Duration::from_millis(150);
        let report = |time| {
            steps.lock().unwrap().push(time);
            std::future::ready(())
        };
        assert_eq!(wait(total, std::future::pending(), report).await, Ok(()));
        assert_eq!(*steps.lock().unwrap(), [PROGRESS_INTERVAL, total]);
    }
}
