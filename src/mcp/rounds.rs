//! Requests that a server may answer with questions first.
//!
//! Owns: the rounds of `tools/call`, `prompts/get` and `resources/read` in revision 2026-07-28
//! (`input_required`, answered by the same request with `inputResponses`), and the pages that
//! revision 2025-11-25 asks for with the error -32042. Each round is a request of its own with an
//! id of its own; they are few, and a server that goes on asking where nobody answers ends the
//! request. Never does: know what the final answer means.

use serde_json::{Value, json};

use super::connection::{Connection, RequestOptions};
use super::message::{Raw, error_code, head};
use super::respondent::{Occasion, Refusal, is_for_a_person};
use crate::model::{Fault, FaultKind, JsonObject, Signal, Verdict};

/// How often a server may ask before it answers.
const ROUNDS: u32 = 10;
/// How many questions one round may have.
const TOGETHER: usize = 32;
/// Pages have to be visited before the request can be answered (revision 2025-11-25).
const PAGES_REQUIRED: i64 = -32042;
/// A capability that we do not have is needed.
const CAPABILITY_MISSING: i64 = -32021;
/// The version of the request is not spoken.
const VERSION_UNSUPPORTED: i64 = -32022;

/// What to do where nobody can be asked.
pub(super) const HOW_TO_ANSWER: &str =
    "--answers FILE answers what servers ask; so does a person at a terminal";

/// The answer to a request, when nothing is asked any more.
#[derive(Debug)]
pub struct Settled {
    /// The result.
    pub result: JsonObject,
    /// Its exact text.
    pub raw: Raw,
}

/// Sends a request, answers what the server asks before it answers, and returns what comes then.
///
/// # Errors
/// As [`Connection::request`]; when a question could not be answered and the server cannot go on
/// without it (kind denied); and when it does not stop asking (kind protocol).
pub async fn request(
    connection: &Connection,
    method: &str,
    mut params: JsonObject,
    options: &RequestOptions,
) -> Result<Settled, Fault> {
    let named = |fault: Fault| connection.named(fault, options.phase);
    let mut rounds = Rounds::default();
    let mut pages_were_asked_for = false;
    loop {
        let sent = connection.request(method, Value::Object(params.clone()), options).await;
        let raw = match sent {
            Ok(raw) => raw,
            Err(fault) if error_code(&fault) == Some(PAGES_REQUIRED) && !pages_were_asked_for => {
                pages_were_asked_for = true;
                open_pages(connection, fault, options).await?;
                continue;
            }
            Err(fault) => return Err(named(explained(fault))),
        };
        match Step::read(raw, method).map_err(named)? {
            Step::Settled(settled) => return Ok(settled),
            Step::Questions { requests, state } => {
                let answers = rounds.answer(connection, &requests, options).await.map_err(named)?;
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

/// One answer of the server.
enum Step {
    Settled(Settled),
    Questions { requests: JsonObject, state: Option<Value> },
}

impl Step {
    fn read(raw: Raw, method: &str) -> Result<Self, Fault> {
        let broken = |what: &str| {
            Fault::protocol(format!("the answer to {method} {what}"))
                .detail(format!("result: {}", head(raw.get(), 300)))
        };
        let Value::Object(mut result) = raw.parse()? else {
            return Err(broken("is not an object"));
        };
        if result.get("resultType").and_then(Value::as_str) != Some("input_required") {
            return Ok(Self::Settled(Settled { result, raw }));
        }
        let requests = match result.remove("inputRequests") {
            Some(Value::Object(requests)) => requests,
            None => JsonObject::new(),
            Some(_) => return Err(broken("has inputRequests that are no object")),
        };
        Ok(Self::Questions { requests, state: result.remove("requestState") })
    }
}

/// The rounds of questions of one request or task.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    count: u32,
    /// Somebody was asked for and nobody was there.
    nobody: bool,
}

impl Rounds {
    /// Answers the questions of one round.
    ///
    /// # Errors
    /// When a question has no answer that the server could go on with, or there are too many.
    pub(super) async fn answer(
        &mut self,
        connection: &Connection,
        requests: &JsonObject,
        options: &RequestOptions,
    ) -> Result<JsonObject, Fault> {
        self.admit(requests)?;
        let occasion = Occasion { call: options.call.clone(), round: Some(self.count) };
        let nobody = &mut self.nobody;
        let work = async {
            let mut answers = JsonObject::new();
            for (key, request) in requests {
                let (method, params) = question(key, request)?;
                let answer = connection.respondent().answer(method, params, &occasion).await;
                let answer = answer.map_err(|refusal| unanswered(method, &refusal))?;
                *nobody |= answer.verdict == Some(Verdict::Nobody);
                answers.insert(key.clone(), answer.result);
            }
            Ok(answers)
        };
        tokio::select! {
            biased;
            () = options.cancel.cancelled() => {
                let interrupted = FaultKind::Interrupted(Signal::Interrupt);
                Err(Fault::new(interrupted, "given up while a question was open"))
            }
            answers = work => answers,
        }
    }

    /// Counts one round more, and refuses the one that is too many.
    fn admit(&mut self, requests: &JsonObject) -> Result<(), Fault> {
        let asks_a_person = || {
            let methods = requests.values().filter_map(|request| request.get("method")?.as_str());
            methods.into_iter().any(is_for_a_person)
        };
        if self.count >= ROUNDS {
            return Err(Fault::protocol(format!(
                "limit: the server asked for input {ROUNDS} times in a row"
            )));
        }
        if self.nobody && asks_a_person() {
            let what = "limit: the server asked again after nobody could be asked";
            return Err(Fault::protocol(what).hint(HOW_TO_ANSWER));
        }
        if requests.len() > TOGETHER {
            return Err(Fault::protocol(format!(
                "limit: the server asked {} things at once, more than {TOGETHER}",
                requests.len()
            )));
        }
        self.count += 1;
        Ok(())
    }
}

fn question<'a>(key: &str, request: &'a Value) -> Result<(&'a str, &'a Value), Fault> {
    let method = request.get("method").and_then(Value::as_str);
    let Some(method) = method else {
        return Err(Fault::protocol(format!("the input request {key:?} has no method")));
    };
    Ok((method, request.get("params").unwrap_or(&Value::Null)))
}

/// The fault of a request whose question has no answer.
fn unanswered(method: &str, refusal: &Refusal) -> Fault {
    match refusal {
        Refusal::Declined(Verdict::Nobody) => {
            Fault::denied(format!("the server needs {method}, and nobody could be asked"))
                .hint(HOW_TO_ANSWER)
        }
        Refusal::Declined(_) => {
            Fault::denied(format!("{method} was declined, and the server cannot go on without it"))
        }
        Refusal::Unknown(why) => {
            Fault::tool(format!("the server needs {} before it answers: {why}", head(method, 100)))
        }
        Refusal::Malformed(why) => Fault::protocol(why.clone()),
    }
}

/// Asks a person to visit the pages that an error names.
async fn open_pages(
    connection: &Connection,
    fault: Fault,
    options: &RequestOptions,
) -> Result<(), Fault> {
    let data = fault.evidence().and_then(|evidence| evidence.get("data"));
    let pages = data.and_then(|data| data.get("elicitations")).and_then(Value::as_array).cloned();
    let pages = match pages {
        Some(pages) if !pages.is_empty() && pages.len() <= TOGETHER => pages,
        _ => return Err(fault.detail("its data names no page (elicitations)")),
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
    let answers = Rounds::default().answer(connection, &requests, options).await;
    let answers = answers.map_err(|fault| connection.named(fault, options.phase))?;
    if answers.values().all(|answer| answer["action"] == "accept") {
        return Ok(());
    }
    let fault = Fault::denied("the server needs a page to be visited first, and it was not")
        .detail(fault.message().to_owned())
        .hint(HOW_TO_ANSWER);
    Err(connection.named(fault, options.phase))
}

/// Errors whose numbers say more than their words.
pub(super) fn explained(fault: Fault) -> Fault {
    let data = || fault.evidence().and_then(|evidence| evidence.get("data")).cloned();
    match error_code(&fault) {
        Some(VERSION_UNSUPPORTED) => {
            let data = data().unwrap_or_default();
            let supported = data.get("supported").and_then(Value::as_array);
            let versions: Vec<&str> =
                supported.into_iter().flatten().filter_map(Value::as_str).take(20).collect();
            let requested = data.get("requested").and_then(Value::as_str).unwrap_or("the version");
            let told = match versions.as_slice() {
                [] => "it names no other".to_owned(),
                versions => format!("it supports {}", versions.join(", ")),
            };
            Fault::protocol(format!(
                "the server refuses {} although it was agreed on; {}",
                head(requested, 40),
                head(&told, 200)
            ))
            .detail(fault.message().to_owned())
            .data(data)
        }
        Some(CAPABILITY_MISSING) => {
            match data().and_then(|data| data.get("requiredCapabilities").cloned()) {
                Some(needed) => {
                    fault.detail(format!("it requires: {}", head(&needed.to_string(), 300)))
                }
                None => fault,
            }
        }
        _ => fault,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> JsonObject {
        let request = json!({ "method": "elicitation/create", "params": {} });
        JsonObject::from_iter([("a".to_owned(), request)])
    }

    #[test]
    fn rounds_are_few_and_fewer_where_nobody_answers() {
        let mut rounds = Rounds::default();
        for _ in 0..ROUNDS {
            rounds.admit(&form()).unwrap();
        }
        assert_eq!(rounds.admit(&form()).unwrap_err().kind(), FaultKind::Protocol);
        let mut rounds = Rounds { count: 1, nobody: true };
        assert_eq!(rounds.admit(&form()).unwrap_err().kind(), FaultKind::Protocol);
        // What needs nobody goes on.
        let roots = json!({ "method": "roots/list" });
        rounds.admit(&JsonObject::from_iter([("r".to_owned(), roots)])).unwrap();
        rounds.admit(&JsonObject::new()).unwrap();
        let many = (0..=TOGETHER).map(|n| (n.to_string(), Value::Null)).collect();
        assert!(rounds.admit(&many).is_err());
    }

    #[test]
    fn a_refused_version_names_those_that_are_spoken() {
        let data = json!({ "supported": ["2025-11-25", "2025-06-18"], "requested": "2026-07-28" });
        let error = Fault::tool("error -32022: no").data(json!({ "code": -32022, "data": data }));
        let fault = explained(error);
        assert_eq!(fault.kind(), FaultKind::Protocol);
        assert!(fault.message().contains("2026-07-28"), "{fault}");
        assert!(fault.message().contains("2025-11-25, 2025-06-18"), "{fault}");
    }

    #[test]
    fn questions_without_an_answer_end_the_request_each_in_its_way() {
        let kind = |refusal| unanswered("sampling/createMessage", &refusal).kind();
        assert_eq!(kind(Refusal::Declined(Verdict::Declined)), FaultKind::Denied);
        assert_eq!(kind(Refusal::Declined(Verdict::Nobody)), FaultKind::Denied);
        assert_eq!(kind(Refusal::Unknown("no".into())), FaultKind::Tool);
        assert_eq!(kind(Refusal::Malformed("no".into())), FaultKind::Protocol);
    }
}
