//! Requests that a server may answer with questions before the result.

use futures_util::future::try_join_all;
use serde_json::{Value, json};

use super::connection::{Connection, RequestOptions};
use super::message::{MISSING_CAPABILITY, RawJson, UNSUPPORTED_VERSION, URL_ELICITATION_REQUIRED};
use super::responder::{QuestionContext, QuestionRefusal, needs_person};
use super::session::SentRequest;
use crate::model::{Error, JsonObject, QuestionAbilities, QuestionOutcome};
use crate::util::text::truncate;

/// How often a server may ask before it answers.
const MAX_ROUNDS: u32 = 10;
const MAX_QUESTIONS: usize = 32;

/// The hint for runs without a person to ask.
pub(super) const HOW_TO_ANSWER: &str = "answer on a terminal, or with --answers FILE";

pub struct RequestResult {
    pub result: JsonObject,
    pub raw: RawJson,
    /// Held, its progress is heard.
    pub request: SentRequest,
}

/// Sends a request, answers what the server asks before it answers, and returns what comes then.
pub async fn request(
    connection: &Connection,
    method: &str,
    mut params: JsonObject,
    options: &RequestOptions,
) -> Result<RequestResult, Error> {
    let named = |error: Error| connection.in_context(error, options.phase);
    let mut rounds = InputRounds::default();
    let mut pages_were_asked_for = false;
    loop {
        let sent = connection.request_held(method, &params, options).await;
        let (raw, request) = match sent {
            Ok(answer) => answer,
            Err(error)
                if error.rpc_code() == Some(URL_ELICITATION_REQUIRED) && !pages_were_asked_for =>
            {
                pages_were_asked_for = true;
                Box::pin(open_pages(connection, error, options)).await?;
                continue;
            }
            Err(error) => return Err(named(with_hint(error))),
        };
        match RoundReply::read(raw, method).map_err(named)? {
            RoundReply::Final(result, raw) => return Ok(RequestResult { result, raw, request }),
            RoundReply::Questions { requests, state } => {
                let answers = Box::pin(rounds.answer(connection, &requests, options)).await;
                let answers = answers.map_err(named)?;
                params.insert("inputResponses".into(), Value::Object(answers));
                // Echoed exactly, and only when there was one.
                match state {
                    Some(state) => params.insert("requestState".into(), state),
                    None => params.remove("requestState"),
                };
            }
        }
    }
}

enum RoundReply {
    Final(JsonObject, RawJson),
    Questions { requests: JsonObject, state: Option<Value> },
}

impl RoundReply {
    fn read(raw: RawJson, method: &str) -> Result<Self, Error> {
        let broken = |what: &str| {
            Error::protocol(format!("the response to {method} {what}"))
                .with_detail(format!("result: {}", truncate(raw.get(), 300)))
        };
        let Value::Object(mut result) = raw.parse()? else {
            return Err(broken("is not an object"));
        };
        if result.get("resultType").and_then(Value::as_str) != Some("input_required") {
            return Ok(Self::Final(result, raw));
        }
        let requests = match result.remove("inputRequests") {
            Some(Value::Object(requests)) => requests,
            None => JsonObject::new(),
            Some(_) => return Err(broken("has inputRequests that are not an object")),
        };
        Ok(Self::Questions { requests, state: result.remove("requestState") })
    }
}

#[derive(Debug, Default)]
pub(super) struct InputRounds {
    count: u32,
    /// The questions that no person could be asked, if some were for a person.
    unattended: Option<JsonObject>,
}

impl InputRounds {
    pub(super) async fn answer(
        &mut self,
        connection: &Connection,
        requests: &JsonObject,
        options: &RequestOptions,
    ) -> Result<JsonObject, Error> {
        if asks_a_person(requests) && options.questions == Some(QuestionAbilities::default()) {
            return Err(Error::denied("the server asks for input, which its caller cannot give"));
        }
        self.count_round(requests)?;
        let (round, unattended) = (self.count, &mut self.unattended);
        // All at once: a person who answers one thing at a time is asked in this order.
        let each = requests.iter().map(|(key, request)| async move {
            let occasion = QuestionContext {
                call: options.call.clone(),
                round: Some(round),
                key: Some(key.clone()),
            };
            let (method, params) = question(key, request)?;
            let answer = connection.respondent.answer(method, params, &occasion).await;
            let answer = answer.map_err(|refusal| unanswered_error(method, &refusal))?;
            Ok::<_, Error>((key.clone(), answer))
        });
        let work = async {
            let mut answers = JsonObject::new();
            for (key, answer) in try_join_all(each).await? {
                if answer.verdict == Some(QuestionOutcome::Unattended) {
                    *unattended = Some(requests.clone());
                }
                answers.insert(key, answer.result);
            }
            Ok(answers)
        };
        tokio::select! {
            biased;
            () = options.cancel.cancelled() => {
                Err(Error::interrupted("cancelled while a question was open"))
            }
            answers = work => answers,
        }
    }

    fn count_round(&mut self, requests: &JsonObject) -> Result<(), Error> {
        if self.count >= MAX_ROUNDS {
            return Err(Error::protocol(format!(
                "limit: the server asked for input {MAX_ROUNDS} times in a row"
            )));
        }
        match &self.unattended {
            // It would go on like this until the limit is reached.
            Some(unanswered) if unanswered == requests => {
                let what = "limit: the server asks the same again although no person can be asked";
                return Err(Error::protocol(what).with_hint(HOW_TO_ANSWER));
            }
            Some(_) if asks_a_person(requests) => {
                let what = "the server asked again although no person can be asked";
                return Err(Error::denied(what).with_hint(HOW_TO_ANSWER));
            }
            _ => {}
        }
        if requests.len() > MAX_QUESTIONS {
            return Err(Error::protocol(format!(
                "limit: the server asked {} things at once, more than {MAX_QUESTIONS}",
                requests.len()
            )));
        }
        self.count += 1;
        Ok(())
    }
}

fn asks_a_person(requests: &JsonObject) -> bool {
    let mut methods = requests.values().filter_map(|request| request.get("method")?.as_str());
    methods.any(needs_person)
}

fn question<'a>(key: &str, request: &'a Value) -> Result<(&'a str, &'a Value), Error> {
    let method = request.get("method").and_then(Value::as_str);
    let Some(method) = method else {
        return Err(Error::protocol(format!("the input request {key:?} has no method")));
    };
    Ok((method, request.get("params").unwrap_or(&Value::Null)))
}

fn unanswered_error(method: &str, refusal: &QuestionRefusal) -> Error {
    match refusal {
        QuestionRefusal::Declined(QuestionOutcome::Unattended) => {
            Error::denied(format!("the server needs {method}, but no person can be asked"))
                .with_hint(HOW_TO_ANSWER)
        }
        QuestionRefusal::Declined(_) => {
            Error::denied(format!("{method} was declined, and the server requires it"))
        }
        QuestionRefusal::Unknown(why) => Error::tool(format!(
            "the server needs {} before it answers: {why}",
            truncate(method, 100)
        )),
        QuestionRefusal::Malformed(why) => Error::protocol(why.clone()),
    }
}

async fn open_pages(
    connection: &Connection,
    error: Error,
    options: &RequestOptions,
) -> Result<(), Error> {
    let pages = error
        .rpc_data()
        .and_then(|data| data.get("elicitations"))
        .and_then(Value::as_array)
        .cloned();
    let pages = match pages {
        Some(pages) if !pages.is_empty() && pages.len() <= MAX_QUESTIONS => pages,
        _ => return Err(error.with_detail("its data names no URL (elicitations)")),
    };
    let mut requests = JsonObject::new();
    for (index, mut page) in pages.into_iter().enumerate() {
        if let Some(id) = page.get("elicitationId").and_then(Value::as_str) {
            connection.remember_page(id);
        }
        if let Value::Object(page) = &mut page {
            page.insert("mode".to_owned(), json!("url"));
        }
        let request = json!({ "method": "elicitation/create", "params": page });
        requests.insert(index.to_string(), request);
    }
    let answers = InputRounds::default().answer(connection, &requests, options).await;
    let answers = answers.map_err(|error| connection.in_context(error, options.phase))?;
    if answers.values().all(|answer| answer["action"] == "accept") {
        return Ok(());
    }
    let error = Error::denied("the server requires visiting a URL first, which was not done")
        .with_detail(error.message().to_owned())
        .with_hint(HOW_TO_ANSWER);
    Err(connection.in_context(error, options.phase))
}

/// Errors whose codes say more than their messages.
pub(super) fn with_hint(error: Error) -> Error {
    match error.rpc_code() {
        Some(UNSUPPORTED_VERSION) => {
            let data = error.rpc_data().cloned().unwrap_or_default();
            let supported = data.get("supported").and_then(Value::as_array);
            let versions: Vec<&str> =
                supported.into_iter().flatten().filter_map(Value::as_str).take(20).collect();
            let requested = data.get("requested").and_then(Value::as_str).unwrap_or("the version");
            let versions_text = match versions.as_slice() {
                [] => "it names no other".to_owned(),
                versions => format!("it supports {}", versions.join(", ")),
            };
            Error::protocol(format!(
                "the server refuses {} although it was agreed on; {}",
                truncate(requested, 40),
                truncate(&versions_text, 200)
            ))
            .with_detail(error.message().to_owned())
            .with_data(data)
        }
        Some(MISSING_CAPABILITY) => {
            match error.rpc_data().and_then(|data| data.get("requiredCapabilities").cloned()) {
                Some(needed) => error
                    .with_detail(format!("it requires: {}", truncate(&needed.to_string(), 300))),
                None => error,
            }
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ErrorKind;

    fn form() -> JsonObject {
        let request = json!({ "method": "elicitation/create", "params": {} });
        JsonObject::from_iter([("a".to_owned(), request)])
    }

    #[test]
    fn rounds_are_few_and_fewer_where_no_person_answers() {
        let mut rounds = InputRounds::default();
        for _ in 0..MAX_ROUNDS {
            rounds.count_round(&form()).unwrap();
        }
        assert_eq!(rounds.count_round(&form()).unwrap_err().kind(), ErrorKind::Protocol);
        let unattended = |requests| InputRounds { count: 1, unattended: Some(requests) };
        let same = unattended(form()).count_round(&form()).unwrap_err();
        assert_eq!(same.kind(), ErrorKind::Protocol);
        let mut rounds = unattended(JsonObject::from_iter([("other".to_owned(), Value::Null)]));
        assert_eq!(rounds.count_round(&form()).unwrap_err().kind(), ErrorKind::Denied);
        // A request that needs no person goes on.
        let roots = json!({ "method": "roots/list" });
        rounds.count_round(&JsonObject::from_iter([("r".to_owned(), roots)])).unwrap();
        rounds.count_round(&JsonObject::new()).unwrap();
        let many = (0..=MAX_QUESTIONS).map(|n| (n.to_string(), Value::Null)).collect();
        assert!(rounds.count_round(&many).is_err());
    }

    #[test]
    fn a_refused_version_names_those_that_are_spoken() {
        let data = json!({ "supported": ["2025-11-25", "2025-06-18"], "requested": "2026-07-28" });
        let cause =
            Error::tool("error -32022: no").with_rpc_error(UNSUPPORTED_VERSION, Some(&data));
        let error = with_hint(cause);
        assert_eq!(error.kind(), ErrorKind::Protocol);
        assert!(error.message().contains("2026-07-28"), "{error}");
        assert!(error.message().contains("2025-11-25, 2025-06-18"), "{error}");
    }

    #[test]
    fn questions_without_an_answer_end_the_request_each_in_its_way() {
        let kind = |refusal| unanswered_error("sampling/createMessage", &refusal).kind();
        assert_eq!(kind(QuestionRefusal::Declined(QuestionOutcome::Declined)), ErrorKind::Denied);
        assert_eq!(kind(QuestionRefusal::Declined(QuestionOutcome::Unattended)), ErrorKind::Denied);
        assert_eq!(kind(QuestionRefusal::Unknown("no".into())), ErrorKind::Tool);
        assert_eq!(kind(QuestionRefusal::Malformed("no".into())), ErrorKind::Protocol);
    }
}
