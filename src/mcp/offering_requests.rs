//! Requests about offerings: read, get, complete, and the log level.

use serde_json::{Map, Value, json};

use super::calling::check_content;
use super::connection::{Connection, RequestOptions};
use super::message::{METHOD_NOT_FOUND, RawJson};
use super::page::freshness;
use super::rounds::{self, RequestResult};
use crate::model::{
    Completion, CompletionQuery, CompletionReference, Era, Error, JsonObject, PromptMessages,
    ResourceContents, ToolName,
};
use crate::util::text::truncate;
use crate::util::units::show_duration;

/// How many values of a completion are kept; the specification allows 100.
const MAX_VALUES: usize = 1_000;

pub async fn read(
    connection: &Connection,
    uri: &str,
    options: &RequestOptions,
) -> Result<ResourceContents, Error> {
    let request = ObjectRequest { connection, method: "resources/read", options };
    let (raw, mut answer) = request.complete(json!({ "uri": uri })).await?;
    let contents = match answer.remove("contents") {
        Some(Value::Array(items)) => items,
        Some(_) => return Err(request.unusable_answer("has contents that are not an array", &raw)),
        None => return Err(request.unusable_answer("has no contents", &raw)),
    };
    for (index, item) in contents.iter().enumerate() {
        check_part(item).map_err(|why| {
            request.unusable_answer(&format!("has bad contents[{index}]: {why}"), &raw)
        })?;
    }
    Ok(ResourceContents {
        server: connection.server.clone(),
        uri: uri.to_owned(),
        contents,
        freshness: freshness(answer.get("ttlMs"), answer.get("cacheScope")),
        meta: answer.remove("_meta"),
        routing: None,
    })
}

fn check_part(item: &Value) -> Result<(), &'static str> {
    if !item.get("uri").is_some_and(Value::is_string) {
        return Err("it has no uri");
    }
    match (item.get("text"), item.get("blob")) {
        (Some(Value::String(_)), None) | (None, Some(Value::String(_))) => Ok(()),
        (None, None) => Err("it has neither text nor blob"),
        (Some(_), Some(_)) => Err("it has text and blob"),
        _ => Err("its text or blob is not a string"),
    }
}

pub async fn prompt(
    connection: &Connection,
    name: &str,
    arguments: &JsonObject,
    options: &RequestOptions,
) -> Result<PromptMessages, Error> {
    let request = ObjectRequest { connection, method: "prompts/get", options };
    let mut params = json!({ "name": name });
    if !arguments.is_empty() {
        params["arguments"] = Value::Object(arguments.clone());
    }
    let (raw, mut answer) = request.complete(params).await?;
    let messages = match answer.remove("messages") {
        Some(Value::Array(items)) => items,
        Some(_) => return Err(request.unusable_answer("has messages that are not an array", &raw)),
        None => return Err(request.unusable_answer("has no messages", &raw)),
    };
    for (index, message) in messages.iter().enumerate() {
        check_message(message).map_err(|error| {
            let what = format!("has a bad messages[{index}]: {}", error.message());
            request.unusable_answer(&what, &raw)
        })?;
    }
    Ok(PromptMessages {
        name: ToolName::of(&connection.server, name),
        description: answer.get("description").and_then(Value::as_str).map(str::to_owned),
        messages,
        meta: answer.remove("_meta"),
        routing: None,
    })
}

fn check_message(message: &Value) -> Result<(), Error> {
    if !message.get("role").is_some_and(Value::is_string) {
        return Err(Error::protocol("it has no role"));
    }
    match message.get("content") {
        Some(content @ Value::Object(_)) => check_content(content),
        Some(_) => Err(Error::protocol("its content is not an object")),
        None => Err(Error::protocol("it has no content")),
    }
}

pub async fn complete(
    connection: &Connection,
    query: &CompletionQuery,
    options: &RequestOptions,
) -> Result<Completion, Error> {
    let request = ObjectRequest { connection, method: "completion/complete", options };
    let reference = match &query.reference {
        CompletionReference::Prompt(name) => json!({ "type": "ref/prompt", "name": name }),
        CompletionReference::Template(uri) => json!({ "type": "ref/resource", "uri": uri }),
    };
    let argument = json!({ "name": query.argument, "value": query.value });
    let mut params = json!({ "ref": reference, "argument": argument });
    if !query.context.is_empty() {
        params["context"] = json!({ "arguments": query.context });
    }
    let answered = request.complete(params).await;
    let (raw, answer) = answered.map_err(|error| match error.rpc_code() {
        Some(METHOD_NOT_FOUND) => error.with_hint("this server does not support completion"),
        _ => error,
    })?;
    let completion = answer.get("completion").and_then(Value::as_object);
    let values = completion.and_then(|completion| completion.get("values")?.as_array());
    let (Some(completion), Some(values)) = (completion, values) else {
        return Err(request.unusable_answer("has no values", &raw));
    };
    let texts: Option<Vec<&str>> = values.iter().map(Value::as_str).collect();
    let Some(texts) = texts else {
        return Err(request.unusable_answer("has values that are not strings", &raw));
    };
    if texts.len() > MAX_VALUES {
        let count = texts.len();
        let text = format!("it returned {count} completions; {MAX_VALUES} are used");
        connection.add_warning(&text);
    }
    Ok(Completion {
        values: texts.into_iter().take(MAX_VALUES).map(str::to_owned).collect(),
        total: completion.get("total").and_then(Value::as_u64),
        has_more: completion.get("hasMore").and_then(Value::as_bool),
    })
}

/// Sets the minimum level of the log lines of a server of the legacy era. One of the modern era
/// gets it with each request instead (see [`RequestOptions::log_level`]), and one that declares no
/// logging gets no request.
pub async fn set_level(
    connection: &Connection,
    level: &str,
    options: &RequestOptions,
) -> Result<(), Error> {
    if connection.agreement.era == Era::Modern || !connection.declares("logging") {
        return Ok(());
    }
    connection.request("logging/setLevel", json!({ "level": level }), options).await.map(drop)
}

struct ObjectRequest<'a> {
    connection: &'a Connection,
    method: &'static str,
    options: &'a RequestOptions,
}

impl ObjectRequest<'_> {
    /// Sends it and answers what the server asks before it answers; the answer as text and as its
    /// members.
    async fn complete(&self, params: Value) -> Result<(RawJson, Map<String, Value>), Error> {
        let Value::Object(params) = params else {
            return Err(Error::internal("the parameters of a request are not an object"));
        };
        let work = rounds::request(self.connection, self.method, params, self.options);
        let limit = self.options.total_timeout;
        let RequestResult { result: map, raw, .. } =
            tokio::time::timeout(limit, work).await.unwrap_or_else(|_elapsed| {
                let text = format!("{} took more than {}", self.method, show_duration(limit));
                Err(self.in_context(Error::timeout(text)))
            })?;
        match map.get("resultType") {
            None => Ok((raw, map)),
            Some(Value::String(kind)) if kind == "complete" => Ok((raw, map)),
            Some(other) => {
                Err(self.unusable_answer(&format!("has the unknown resultType {other}"), &raw))
            }
        }
    }

    fn unusable_answer(&self, what: &str, raw: &RawJson) -> Error {
        let error = Error::protocol(format!("the response to {} {what}", self.method));
        self.in_context(error.with_detail(format!("result: {}", truncate(raw.get(), 300))))
    }

    fn in_context(&self, error: Error) -> Error {
        self.connection.in_context(error, self.options.phase)
    }
}
