//! Subscriptions to changes: `subscriptions/listen` in the modern era, `resources/subscribe` and
//! notifications in the legacy one.

use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::connection::{Connection, RequestOptions};
use super::message::METHOD_NOT_FOUND;
use super::notifications::{
    ChangeNotification, NotificationKind, NotificationListener, SUBSCRIPTION,
};
use crate::model::{
    Era, Error, ErrorKind, ErrorPhase, JsonObject, ListKind, SubscriptionEvent, SubscriptionFilter,
};

/// How long taking subscriptions back may take, all together.
const UNSUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub enum SubscriptionEnd {
    Cancelled,
    Gracefully,
    /// The server does not give what is wanted.
    Refused(Error),
    Broken(Error),
}

pub struct Subscription<'a> {
    pub connection: &'a Connection,
    pub filter: &'a SubscriptionFilter,
    /// How long the server may take to agree.
    pub ack_timeout: Duration,
    pub changes: &'a mpsc::Sender<SubscriptionEvent>,
    /// Gets the moment at which the server agreed.
    pub acknowledged: &'a OnceLock<Instant>,
    pub cancel: &'a CancellationToken,
}

impl Subscription<'_> {
    /// Subscribes and hands on the changes until the end.
    pub async fn run(&self) -> SubscriptionEnd {
        match self.connection.agreement.era {
            Era::Modern => self.listen().await,
            Era::Legacy => self.subscribe().await,
        }
    }

    /// Hands a change on; whether the subscriber is still there.
    async fn send_change(&self, change: SubscriptionEvent) -> bool {
        if matches!(change, SubscriptionEvent::Subscribed { .. }) {
            let _first = self.acknowledged.set(Instant::now());
        }
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => false,
            sent = self.changes.send(change) => sent.is_ok(),
        }
    }

    /// Reports that notifications were lost because they arrived faster than they were read.
    fn warn_lost(&self, listener: &NotificationListener) {
        match listener.take_lost() {
            0 => {}
            lost => self.connection.add_warning(&format!(
                "it sent {lost} change notifications faster than they could be processed"
            )),
        }
    }

    async fn listen(&self) -> SubscriptionEnd {
        let listener = self.connection.listener();
        let filter = ("notifications".to_owned(), filter_to_json(self.filter));
        let params = JsonObject::from_iter([filter]);
        let options =
            RequestOptions::with_timeouts(self.ack_timeout, self.ack_timeout, ErrorPhase::Call);
        let sent = self.connection.send_request("subscriptions/listen", &params, &options);
        let mut held = sent.await;
        let id = Value::from(held.id);
        let agreed_by = Instant::now() + self.ack_timeout;
        let mut accepted: Option<SubscriptionFilter> = None;
        let ended = {
            // Kept over the rounds: what it has taken of the answer must not be dropped.
            let mut answer = Box::pin(held.explained_outcome());
            loop {
                tokio::select! {
                    biased;
                    () = self.cancel.cancelled() => break SubscriptionEnd::Cancelled,
                    (news, times) = listener.next() => {
                        self.warn_lost(&listener);
                        if self.belongs_to(&news, &id)
                            && let Some(ended) = self.handle_notification(news.kind, times, &mut accepted).await
                        {
                            break ended;
                        }
                    }
                    answer = &mut answer => {
                        let result = answer.map(|raw| raw.parse());
                        return self.end_from_answer(result, &id, accepted.is_some());
                    }
                    () = tokio::time::sleep_until(agreed_by), if accepted.is_none() => {
                        break SubscriptionEnd::Broken(self.in_context(self.unacknowledged()));
                    }
                }
            }
        };
        held.cancel("there are no listeners left").await;
        ended
    }

    fn unacknowledged(&self) -> Error {
        let limit = self.ack_timeout.as_secs_f64();
        Error::timeout(format!("no acknowledgement of subscriptions/listen within {limit} s"))
    }

    /// One piece of news of this subscription; how it ends, if it does.
    async fn handle_notification(
        &self,
        kind: NotificationKind,
        times: u64,
        accepted: &mut Option<SubscriptionFilter>,
    ) -> Option<SubscriptionEnd> {
        let change = match (kind, &*accepted) {
            (NotificationKind::Acknowledged(filter), None) => {
                let accepted_filter = read_filter(&filter);
                let refused = self.missing(&accepted_filter);
                if accepted_filter == SubscriptionFilter::default() {
                    let error = Error::tool("the server accepted none of the subscriptions")
                        .with_details(
                            refused.into_iter().map(|what| format!("not reported: {what}")),
                        )
                        .with_hint("it reports changes of other resources, or of none");
                    return Some(SubscriptionEnd::Refused(self.in_context(error)));
                }
                *accepted = Some(accepted_filter);
                SubscriptionEvent::Subscribed { refused }
            }
            (NotificationKind::Acknowledged(_), Some(_)) => {
                self.connection.add_warning("it acknowledged a subscription twice");
                return None;
            }
            (_, None) => {
                let text = "it sent change notifications before it acknowledged the subscription";
                self.connection.add_warning(text);
                return None;
            }
            (NotificationKind::ListChanged(list), Some(accepted_filter))
                if accepted_filter.lists.contains(&list) =>
            {
                SubscriptionEvent::ListChanged(list)
            }
            (NotificationKind::ListChanged(list), Some(_)) => {
                let list = list.as_str();
                let text = format!("it sent an unrequested change notification for its {list}");
                self.connection.add_warning(&text);
                return None;
            }
            (NotificationKind::ResourceUpdated(uri), Some(_)) => {
                SubscriptionEvent::ResourceUpdated { uri, times }
            }
        };
        (!self.send_change(change).await).then_some(SubscriptionEnd::Cancelled)
    }

    fn belongs_to(&self, news: &ChangeNotification, id: &Value) -> bool {
        let Some(subscription) = &news.subscription else {
            let text = "it sent a change notification without a subscription id";
            self.connection.add_warning(text);
            return false;
        };
        same_id(subscription, id)
    }

    /// What of the wanted is not in what the server gives.
    fn missing(&self, accepted: &SubscriptionFilter) -> Vec<String> {
        let lists = self.filter.lists.iter().filter(|list| !accepted.lists.contains(list));
        let uris = self.filter.uris.iter().filter(|uri| !accepted.uris.contains(uri));
        lists.map(|list| format!("the list of {}", list.as_str())).chain(uris.cloned()).collect()
    }

    fn end_from_answer(
        &self,
        answer: Result<Result<Value, Error>, Error>,
        id: &Value,
        agreed: bool,
    ) -> SubscriptionEnd {
        match answer {
            Ok(Ok(result)) => {
                let named = result.get("_meta").and_then(|meta| meta.get(SUBSCRIPTION));
                if !named.is_some_and(|named| same_id(named, id)) {
                    self.connection.add_warning("it ended a subscription without its id");
                }
                if agreed {
                    return SubscriptionEnd::Gracefully;
                }
                let text = "the server ended the subscription before it acknowledged it";
                SubscriptionEnd::Broken(self.in_context(Error::protocol(text)))
            }
            // A well-formed no to what is asked; later it is a stream that ended badly.
            Err(error) if error.kind() == ErrorKind::Tool && !agreed => {
                let unknown = error.rpc_code() == Some(METHOD_NOT_FOUND);
                let error = if unknown { unknown_method(&error) } else { error };
                SubscriptionEnd::Refused(self.in_context(error))
            }
            Ok(Err(error)) | Err(error) => SubscriptionEnd::Broken(self.in_context(error)),
        }
    }

    async fn subscribe(&self) -> SubscriptionEnd {
        let listener = self.connection.listener();
        let mut subscribed: Vec<&String> = Vec::new();
        let mut refused = Vec::new();
        let mut last = None;
        for uri in &self.filter.uris {
            let mut options =
                RequestOptions::with_timeouts(self.ack_timeout, self.ack_timeout, ErrorPhase::Call);
            options.cancel = self.cancel.clone();
            let reply =
                self.connection.request("resources/subscribe", json!({ "uri": uri }), &options);
            match reply.await {
                Ok(_) => subscribed.push(uri),
                Err(_) if self.cancel.is_cancelled() => {
                    self.unsubscribe(&subscribed).await;
                    return SubscriptionEnd::Cancelled;
                }
                Err(error) if error.kind() == ErrorKind::Tool => {
                    refused.push(uri.clone());
                    last = Some(error);
                }
                Err(error) => return SubscriptionEnd::Broken(error),
            }
        }
        if let Some(error) = last
            && subscribed.is_empty()
            && self.filter.lists.is_empty()
        {
            return SubscriptionEnd::Refused(error);
        }
        let ended = self.forward_changes(&listener, refused).await;
        if matches!(ended, SubscriptionEnd::Cancelled) {
            self.unsubscribe(&subscribed).await;
        }
        ended
    }

    async fn forward_changes(
        &self,
        listener: &NotificationListener,
        refused: Vec<String>,
    ) -> SubscriptionEnd {
        if !self.send_change(SubscriptionEvent::Subscribed { refused }).await {
            return SubscriptionEnd::Cancelled;
        }
        loop {
            let (news, times) = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return SubscriptionEnd::Cancelled,
                news = listener.next() => news,
                error = self.connection.wait_closed() => return SubscriptionEnd::Broken(error),
            };
            self.warn_lost(listener);
            let change = match news.kind {
                NotificationKind::ListChanged(list) if self.filter.lists.contains(&list) => {
                    SubscriptionEvent::ListChanged(list)
                }
                // The server reports parts of a subscribed resource under their own addresses.
                NotificationKind::ResourceUpdated(uri) if !self.filter.uris.is_empty() => {
                    SubscriptionEvent::ResourceUpdated { uri, times }
                }
                NotificationKind::ListChanged(_)
                | NotificationKind::ResourceUpdated(_)
                | NotificationKind::Acknowledged(_) => continue,
            };
            if !self.send_change(change).await {
                return SubscriptionEnd::Cancelled;
            }
        }
    }

    /// Takes subscriptions back; a server that does not answer is left with them.
    async fn unsubscribe(&self, uris: &[&String]) {
        let all = async {
            for uri in uris {
                let options = RequestOptions::with_timeouts(
                    UNSUBSCRIBE_TIMEOUT,
                    UNSUBSCRIBE_TIMEOUT,
                    ErrorPhase::Shutdown,
                );
                let params = json!({ "uri": uri });
                let reply = self.connection.request("resources/unsubscribe", params, &options);
                if reply.await.is_err_and(|error| error.kind() != ErrorKind::Tool) {
                    return;
                }
            }
        };
        let _late = tokio::time::timeout(UNSUBSCRIBE_TIMEOUT, all).await;
    }

    fn in_context(&self, error: Error) -> Error {
        let error =
            if error.phase().is_some() { error } else { error.with_phase(ErrorPhase::Call) };
        error.with_server(&self.connection.server)
    }
}

/// A server without subscriptions does not know the method, and says no more than that.
fn unknown_method(error: &Error) -> Error {
    Error::tool("the server does not report changes")
        .with_detail(error.message())
        .with_hint("poll instead: toolhost resources read")
}

/// What is wanted, as `subscriptions/listen` says it.
fn filter_to_json(subscription_filter: &SubscriptionFilter) -> Value {
    let mut filter = Map::new();
    for list in &subscription_filter.lists {
        filter.insert(list_key(*list).to_owned(), Value::Bool(true));
    }
    if !subscription_filter.uris.is_empty() {
        filter.insert("resourceSubscriptions".to_owned(), json!(subscription_filter.uris));
    }
    Value::Object(filter)
}

fn read_filter(filter: &Value) -> SubscriptionFilter {
    let lists =
        ListKind::ALL.into_iter().filter(|list| filter[list_key(*list)] == Value::Bool(true));
    let uris = filter["resourceSubscriptions"].as_array().into_iter().flatten();
    SubscriptionFilter {
        lists: lists.collect(),
        uris: uris.filter_map(Value::as_str).map(str::to_owned).collect(),
    }
}

fn list_key(list: ListKind) -> &'static str {
    match list {
        ListKind::Tools => "toolsListChanged",
        ListKind::Prompts => "promptsListChanged",
        ListKind::Resources => "resourcesListChanged",
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
        let expected = SubscriptionFilter {
            lists: vec![ListKind::Tools, ListKind::Resources],
            uris: vec!["a:1".to_owned()],
        };
        let filter = filter_to_json(&expected);
        assert_eq!(
            filter,
            json!({ "toolsListChanged": true, "resourcesListChanged": true,
                "resourceSubscriptions": ["a:1"] })
        );
        assert_eq!(read_filter(&filter), expected);
        assert_eq!(
            read_filter(&json!({ "toolsListChanged": "yes" })),
            SubscriptionFilter::default()
        );
    }

    #[test]
    fn ids_are_the_same_as_numbers_and_as_texts() {
        assert!(same_id(&json!("3"), &json!(3)) && same_id(&json!(3), &json!(3)));
        assert!(!same_id(&json!(4), &json!(3)));
    }
}
