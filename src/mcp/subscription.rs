//! Being told about changes: `subscriptions/listen` in the modern era, `resources/subscribe` and
//! announcements in the legacy one.
//!
//! Owns: one subscription from the request to its end, and what of the news belongs to it. Never
//! does: begin again after the end; whoever owns the connection decides that.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::connection::{Connection, RequestOptions};
use super::message::error_code;
use super::news::{Ear, News, SUBSCRIPTION, Told};
use crate::model::{Change, Era, Fault, FaultKind, OfferList, Phase, Wanted};

/// How long taking subscriptions back may take, all together.
const FAREWELL: Duration = Duration::from_secs(1);

/// How a subscription ended.
#[derive(Debug)]
pub enum Ended {
    /// Nobody wants it any more.
    Cancelled,
    /// The server ended it in good order.
    Gracefully,
    /// The server does not give what is wanted.
    Refused(Fault),
    /// The connection or the stream broke, or the server broke the rules.
    Broken(Fault),
}

/// One subscription.
pub struct Subscription<'a> {
    /// The server.
    pub connection: &'a Connection,
    /// What is wanted.
    pub wanted: &'a Wanted,
    /// How long the server may take to agree.
    pub limit: Duration,
    /// Who is told. When the other end is dropped, nobody wants it any more.
    pub changes: &'a mpsc::Sender<Change>,
    /// Fires when nobody wants it any more.
    pub cancel: &'a CancellationToken,
}

impl Subscription<'_> {
    /// Subscribes and hands on what is told until the end.
    pub async fn follow(&self) -> Ended {
        match self.connection.agreement.era {
            Era::Modern => self.listen().await,
            Era::Legacy => self.subscribe().await,
        }
    }

    /// Hands a change on; whether somebody still wants more.
    async fn tell(&self, change: Change) -> bool {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => false,
            sent = self.changes.send(change) => sent.is_ok(),
        }
    }

    /// Tells that news got lost because it came faster than it was taken.
    fn note_loss(&self, ear: &Ear) {
        match ear.take_lost() {
            0 => {}
            lost => self
                .connection
                .doubt(format!("it told {lost} changes faster than they could be taken")),
        }
    }

    async fn listen(&self) -> Ended {
        let ear = self.connection.ear();
        let params = json!({ "notifications": filter(self.wanted) });
        let mut held = match self.connection.hold("subscriptions/listen", params).await {
            Ok(held) => held,
            Err(fault) => return Ended::Broken(fault),
        };
        let id = held.id();
        let agreed_by = Instant::now() + self.limit;
        let mut accepted: Option<Wanted> = None;
        let ended = {
            // Kept over the rounds: what it has taken of the answer must not be dropped.
            let mut answer = Box::pin(held.answer());
            loop {
                tokio::select! {
                    biased;
                    () = self.cancel.cancelled() => break Ended::Cancelled,
                    (news, times) = ear.next() => {
                        self.note_loss(&ear);
                        if self.is_ours(&news, &id)
                            && let Some(ended) = self.heard(news.told, times, &mut accepted).await
                        {
                            break ended;
                        }
                    }
                    answer = &mut answer => {
                        let result = answer.map(|raw| raw.parse());
                        return self.judged(result, &id, accepted.is_some());
                    }
                    () = tokio::time::sleep_until(agreed_by), if accepted.is_none() => {
                        break Ended::Broken(self.named(self.unacknowledged()));
                    }
                }
            }
        };
        held.abandon("nobody listens any more").await;
        ended
    }

    fn unacknowledged(&self) -> Fault {
        let limit = self.limit.as_secs_f64();
        Fault::timeout(format!("no acknowledgement of subscriptions/listen within {limit} s"))
    }

    /// One piece of news of this subscription; how it ends, if it does.
    async fn heard(&self, told: Told, times: u64, accepted: &mut Option<Wanted>) -> Option<Ended> {
        let change = match (told, &*accepted) {
            (Told::Acknowledged(filter), None) => {
                let given = read_filter(&filter);
                let refused = self.missing(&given);
                if given == Wanted::default() {
                    let fault = Fault::tool("the server accepted none of the subscriptions")
                        .details(refused.into_iter().map(|what| format!("not told: {what}")))
                        .hint("it tells when other resources change, or none");
                    return Some(Ended::Refused(self.named(fault)));
                }
                *accepted = Some(given);
                Change::Listening { refused }
            }
            (Told::Acknowledged(_), Some(_)) => {
                self.connection.doubt("it acknowledged a subscription twice");
                return None;
            }
            (_, None) => {
                self.connection.doubt("it told changes before it acknowledged the subscription");
                return None;
            }
            (Told::List(list), Some(given)) if given.lists.contains(&list) => Change::List(list),
            (Told::List(list), Some(_)) => {
                let list = list.as_str();
                self.connection.doubt(format!("it told a change of its {list}, unasked"));
                return None;
            }
            (Told::Updated(uri), Some(_)) => Change::Updated { uri, times },
        };
        (!self.tell(change).await).then_some(Ended::Cancelled)
    }

    /// Whether news belongs to the subscription with this id.
    fn is_ours(&self, news: &News, id: &Value) -> bool {
        let Some(subscription) = &news.subscription else {
            self.connection.doubt("it told a change without naming the subscription");
            return false;
        };
        same_id(subscription, id)
    }

    /// What of the wanted is not in what the server gives.
    fn missing(&self, given: &Wanted) -> Vec<String> {
        let lists = self.wanted.lists.iter().filter(|list| !given.lists.contains(list));
        let uris = self.wanted.uris.iter().filter(|uri| !given.uris.contains(uri));
        lists.map(|list| format!("the list of {}", list.as_str())).chain(uris.cloned()).collect()
    }

    /// What the answer to `subscriptions/listen` means: it is the end of the subscription.
    fn judged(
        &self,
        answer: Result<Result<Value, Fault>, Fault>,
        id: &Value,
        agreed: bool,
    ) -> Ended {
        match answer {
            Ok(Ok(result)) => {
                let named = result.get("_meta").and_then(|meta| meta.get(SUBSCRIPTION));
                if !named.is_some_and(|named| same_id(named, id)) {
                    self.connection.doubt("it ended a subscription without naming it");
                }
                if agreed {
                    return Ended::Gracefully;
                }
                let text = "the server ended the subscription before it acknowledged it";
                Ended::Broken(self.named(Fault::protocol(text)))
            }
            // A well-formed no to what is asked; later it is a stream that ended badly.
            Err(fault) if fault.kind() == FaultKind::Tool && !agreed => {
                let unknown = error_code(&fault) == Some(-32601);
                let fault = if unknown { unknown_method(&fault) } else { fault };
                Ended::Refused(self.named(fault))
            }
            Ok(Err(fault)) | Err(fault) => Ended::Broken(self.named(fault)),
        }
    }

    async fn subscribe(&self) -> Ended {
        let ear = self.connection.ear();
        let mut given: Vec<&String> = Vec::new();
        let mut refused = Vec::new();
        let mut last = None;
        for uri in &self.wanted.uris {
            let mut options = RequestOptions::within(self.limit, self.limit, Phase::Call);
            options.cancel = self.cancel.clone();
            let asked =
                self.connection.request("resources/subscribe", json!({ "uri": uri }), &options);
            match asked.await {
                Ok(_) => given.push(uri),
                Err(_) if self.cancel.is_cancelled() => {
                    self.unsubscribe(&given).await;
                    return Ended::Cancelled;
                }
                Err(fault) if fault.kind() == FaultKind::Tool => {
                    refused.push(uri.clone());
                    last = Some(fault);
                }
                Err(fault) => return Ended::Broken(fault),
            }
        }
        if let Some(fault) = last
            && given.is_empty()
            && self.wanted.lists.is_empty()
        {
            return Ended::Refused(fault);
        }
        let ended = self.hand_on(&ear, refused).await;
        if matches!(ended, Ended::Cancelled) {
            self.unsubscribe(&given).await;
        }
        ended
    }

    async fn hand_on(&self, ear: &Ear, refused: Vec<String>) -> Ended {
        if !self.tell(Change::Listening { refused }).await {
            return Ended::Cancelled;
        }
        loop {
            let (news, times) = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Ended::Cancelled,
                news = ear.next() => news,
                fault = self.connection.ended() => return Ended::Broken(fault),
            };
            self.note_loss(ear);
            let change = match news.told {
                Told::List(list) if self.wanted.lists.contains(&list) => Change::List(list),
                // Of parts of what was subscribed to the server tells by their own addresses.
                Told::Updated(uri) if !self.wanted.uris.is_empty() => {
                    Change::Updated { uri, times }
                }
                Told::List(_) | Told::Updated(_) | Told::Acknowledged(_) => continue,
            };
            if !self.tell(change).await {
                return Ended::Cancelled;
            }
        }
    }

    /// Takes subscriptions back; a server that does not answer is left with them.
    async fn unsubscribe(&self, uris: &[&String]) {
        let all = async {
            for uri in uris {
                let options = RequestOptions::within(FAREWELL, FAREWELL, Phase::Shutdown);
                let params = json!({ "uri": uri });
                let asked = self.connection.request("resources/unsubscribe", params, &options);
                if asked.await.is_err_and(|fault| fault.kind() != FaultKind::Tool) {
                    return;
                }
            }
        };
        let _late = tokio::time::timeout(FAREWELL, all).await;
    }

    fn named(&self, fault: Fault) -> Fault {
        let fault = if fault.at_phase().is_some() { fault } else { fault.phase(Phase::Call) };
        fault.server(self.connection.name())
    }
}

/// A server without subscriptions does not know the method, and says no more than that.
fn unknown_method(fault: &Fault) -> Fault {
    Fault::tool("the server does not tell when something changes")
        .detail(fault.message())
        .hint("read the resource again now and then: toolhost resources read")
}

/// What is wanted, as `subscriptions/listen` says it.
fn filter(wanted: &Wanted) -> Value {
    let mut filter = Map::new();
    for list in &wanted.lists {
        filter.insert(key(*list).to_owned(), Value::Bool(true));
    }
    if !wanted.uris.is_empty() {
        filter.insert("resourceSubscriptions".to_owned(), json!(wanted.uris));
    }
    Value::Object(filter)
}

/// What a filter of the server says.
fn read_filter(filter: &Value) -> Wanted {
    let lists = OfferList::ALL.into_iter().filter(|list| filter[key(*list)] == Value::Bool(true));
    let uris = filter["resourceSubscriptions"].as_array().into_iter().flatten();
    Wanted {
        lists: lists.collect(),
        uris: uris.filter_map(Value::as_str).map(str::to_owned).collect(),
    }
}

fn key(list: OfferList) -> &'static str {
    match list {
        OfferList::Tools => "toolsListChanged",
        OfferList::Prompts => "promptsListChanged",
        OfferList::Resources => "resourcesListChanged",
    }
}

/// Ids are compared as what they say: some servers write numbers as texts.
fn same_id(one: &Value, other: &Value) -> bool {
    let text = |id: &Value| id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    text(one) == text(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_says_what_is_wanted_and_reads_back() {
        let wanted = Wanted {
            lists: vec![OfferList::Tools, OfferList::Resources],
            uris: vec!["a:1".to_owned()],
        };
        let filter = filter(&wanted);
        assert_eq!(
            filter,
            json!({ "toolsListChanged": true, "resourcesListChanged": true,
                "resourceSubscriptions": ["a:1"] })
        );
        assert_eq!(read_filter(&filter), wanted);
        assert_eq!(read_filter(&json!({ "toolsListChanged": "yes" })), Wanted::default());
    }

    #[test]
    fn ids_are_the_same_as_numbers_and_as_texts() {
        assert!(same_id(&json!("3"), &json!(3)) && same_id(&json!(3), &json!(3)));
        assert!(!same_id(&json!(4), &json!(3)));
    }
}
