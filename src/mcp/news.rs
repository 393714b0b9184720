//! What a server tells by itself about its lists and resources, for those who listen.
//!
//! Owns: the reading of such notifications, how often each list changed, and the ears: bounded
//! queues in which equal news is counted instead of kept twice, so that a storm of notifications
//! costs a listener neither memory nor time. Never does: decide who wants to know what.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde_json::Value;
use tokio::sync::Notify;

use crate::model::{Event, ListOwner, OfferList};

/// How many different news wait in one ear.
const KEPT: usize = 256;
/// The longest address of a resource, in bytes.
pub(super) const URI_LIMIT: usize = 8 * 1024;
/// Which subscription a notification belongs to (revision 2026-07-28).
pub(super) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// What is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// A list changed.
    List(OfferList),
    /// The resource with this address changed.
    Updated(String),
    /// A subscription is accepted, as far as this filter says.
    Acknowledged(Value),
}

/// One notification.
#[derive(Debug, Clone, PartialEq)]
pub struct News {
    /// The subscription it belongs to: the id of the request that opened it.
    pub subscription: Option<Value>,
    /// What is told.
    pub told: Told,
}

impl News {
    /// The event for whoever watches, when there is one.
    pub fn event(&self, server: &str) -> Option<Event> {
        match &self.told {
            Told::List(list) => {
                Some(Event::ListChanged { owner: ListOwner::Server(server.into()), list: *list })
            }
            Told::Updated(uri) => {
                Some(Event::ResourceUpdated { server: server.into(), uri: uri.clone() })
            }
            Told::Acknowledged(_) => None,
        }
    }
}

/// Reads a notification; `None` when it is about something else.
///
/// # Errors
/// What is wrong with it, in words that follow its name.
pub fn read(method: &str, params: &Value) -> Result<Option<News>, &'static str> {
    let told = match method {
        "notifications/tools/list_changed" => Told::List(OfferList::Tools),
        "notifications/prompts/list_changed" => Told::List(OfferList::Prompts),
        "notifications/resources/list_changed" => Told::List(OfferList::Resources),
        "notifications/resources/updated" => match params.get("uri").and_then(Value::as_str) {
            Some(uri) if uri.len() > URI_LIMIT => return Err("has an address that is too long"),
            Some(uri) => Told::Updated(uri.to_owned()),
            None => return Err("names no resource"),
        },
        "notifications/subscriptions/acknowledged" => match params.get("notifications") {
            Some(filter @ Value::Object(_)) => Told::Acknowledged(filter.clone()),
            _ => return Err("does not say what was accepted"),
        },
        _ => return Ok(None),
    };
    let subscription = params.get("_meta").and_then(|meta| meta.get(SUBSCRIPTION)).cloned();
    Ok(Some(News { subscription, told }))
}

/// Everybody who listens to one server, and how often each list changed.
#[derive(Default)]
pub struct Audience {
    versions: [u64; OfferList::ALL.len()],
    ears: Vec<Weak<Ear>>,
}

impl Audience {
    /// Grows each time the server says that this list changed.
    pub fn version(&self, list: OfferList) -> u64 {
        self.versions[place(list)]
    }

    /// A new ear; it hears until it is dropped.
    pub fn ear(&mut self) -> Arc<Ear> {
        self.ears.retain(|ear| ear.strong_count() > 0);
        let ear = Arc::new(Ear::default());
        self.ears.push(Arc::downgrade(&ear));
        ear
    }

    /// Tells everybody.
    pub fn hear(&mut self, news: &News) {
        if let Told::List(list) = news.told {
            self.versions[place(list)] += 1;
        }
        for ear in self.ears.iter().filter_map(Weak::upgrade) {
            ear.hear(news);
        }
    }
}

fn place(list: OfferList) -> usize {
    match list {
        OfferList::Tools => 0,
        OfferList::Prompts => 1,
        OfferList::Resources => 2,
    }
}

/// What one listener has not taken yet.
#[derive(Default)]
pub struct Ear {
    waiting: Mutex<Waiting>,
    woken: Notify,
}

#[derive(Default)]
struct Waiting {
    news: VecDeque<(News, u64)>,
    lost: u64,
}

impl Ear {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, news: &News) {
        let mut waiting = self.waiting();
        if let Some((_, times)) = waiting.news.iter_mut().find(|(known, _)| known == news) {
            *times += 1;
        } else if waiting.news.len() < KEPT {
            waiting.news.push_back((news.clone(), 1));
        } else {
            waiting.lost += 1;
        }
        drop(waiting);
        self.woken.notify_one();
    }

    /// The oldest news, and how often it came. Cancel-safe; one caller only.
    pub async fn next(&self) -> (News, u64) {
        loop {
            if let Some(oldest) = self.waiting().news.pop_front() {
                return oldest;
            }
            self.woken.notified().await;
        }
    }

    /// How much was told that found no room since this was asked last.
    pub fn take_lost(&self) -> u64 {
        std::mem::take(&mut self.waiting().lost)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn updated(uri: &str) -> News {
        let params = json!({ "uri": uri, "_meta": { SUBSCRIPTION: 7 } });
        read("notifications/resources/updated", &params).unwrap().unwrap()
    }

    #[tokio::test]
    async fn a_storm_of_equal_news_is_one_with_a_count() {
        let mut audience = Audience::default();
        let ear = audience.ear();
        for _ in 0..100_000 {
            audience.hear(&updated("a:1"));
        }
        audience.hear(&updated("a:2"));
        assert_eq!(ear.next().await, (updated("a:1"), 100_000));
        assert_eq!(ear.next().await, (updated("a:2"), 1));
        assert_eq!(updated("a:2").subscription, Some(json!(7)));
    }

    #[tokio::test]
    async fn more_different_news_than_there_is_room_for_is_counted() {
        let mut audience = Audience::default();
        let ear = audience.ear();
        for n in 0..300 {
            audience.hear(&updated(&format!("a:{n}")));
        }
        assert_eq!((ear.take_lost(), ear.take_lost()), (44, 0));
        assert_eq!(ear.next().await.0, updated("a:0"));
    }

    #[test]
    fn lists_count_their_changes_and_ears_that_are_gone_are_forgotten() {
        let mut audience = Audience::default();
        drop(audience.ear());
        let _ear = audience.ear();
        assert_eq!(audience.ears.len(), 1);
        let news = read("notifications/prompts/list_changed", &json!({})).unwrap().unwrap();
        audience.hear(&news);
        assert_eq!(OfferList::ALL.map(|list| audience.version(list)), [0, 1, 0]);
    }

    #[test]
    fn what_cannot_be_told_says_why() {
        let read = |method: &str, params: Value| read(&format!("notifications/{method}"), &params);
        assert!(read("resources/updated", json!({})).is_err());
        assert!(read("resources/updated", json!({ "uri": "x".repeat(10_000) })).is_err());
        assert!(read("subscriptions/acknowledged", json!({ "notifications": 1 })).is_err());
        assert_eq!(read("message", json!({})), Ok(None));
    }
}
