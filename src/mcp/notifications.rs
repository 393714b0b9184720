//! Notifications of changed lists and resources, for subscribers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde_json::Value;
use tokio::sync::Notify;

use crate::model::{HostEvent, ListKind, ListOwner};

const QUEUE_LIMIT: usize = 256;
/// The longest address of a resource, in bytes.
pub(super) const URI_LIMIT: usize = 8 * 1024;
/// Which subscription a notification belongs to (revision 2026-07-28).
pub const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

#[derive(Debug, Clone, PartialEq)]
pub enum NotificationKind {
    ListChanged(ListKind),
    ResourceUpdated(String),
    /// A subscription is accepted, as far as this filter says.
    Acknowledged(Value),
}

#[derive(Debug, Clone, PartialEq)]
pub struct ChangeNotification {
    /// The subscription it belongs to: the id of the request that opened it.
    pub subscription: Option<Value>,
    pub kind: NotificationKind,
}

impl ChangeNotification {
    pub fn event(&self, server: &str) -> Option<HostEvent> {
        match &self.kind {
            NotificationKind::ListChanged(list) => Some(HostEvent::ListChanged {
                owner: ListOwner::Server(server.into()),
                list: *list,
            }),
            NotificationKind::ResourceUpdated(uri) => {
                Some(HostEvent::ResourceUpdated { server: server.into(), uri: uri.clone() })
            }
            NotificationKind::Acknowledged(_) => None,
        }
    }
}

/// Reads a notification; `None` when it is about something else. The error ends a sentence about it.
pub fn read(method: &str, params: &Value) -> Result<Option<ChangeNotification>, &'static str> {
    let kind = match method {
        "notifications/tools/list_changed" => NotificationKind::ListChanged(ListKind::Tools),
        "notifications/prompts/list_changed" => NotificationKind::ListChanged(ListKind::Prompts),
        "notifications/resources/list_changed" => {
            NotificationKind::ListChanged(ListKind::Resources)
        }
        "notifications/resources/updated" => match params.get("uri").and_then(Value::as_str) {
            Some(uri) if uri.len() > URI_LIMIT => return Err("has a URI that is too long"),
            Some(uri) => NotificationKind::ResourceUpdated(uri.to_owned()),
            None => return Err("names no resource"),
        },
        "notifications/subscriptions/acknowledged" => match params.get("notifications") {
            Some(filter @ Value::Object(_)) => NotificationKind::Acknowledged(filter.clone()),
            _ => return Err("does not say what was accepted"),
        },
        _ => return Ok(None),
    };
    let subscription = params.get("_meta").and_then(|meta| meta.get(SUBSCRIPTION)).cloned();
    Ok(Some(ChangeNotification { subscription, kind }))
}

/// Everybody who listens to one server, and how often each list changed.
#[derive(Default)]
pub struct NotificationHub {
    versions: [u64; ListKind::ALL.len()],
    listeners: Vec<Weak<NotificationListener>>,
}

impl NotificationHub {
    /// Grows each time the server says that this list changed.
    pub fn version(&self, list: ListKind) -> u64 {
        self.versions[list as usize]
    }

    /// A new listener; it hears until it is dropped.
    pub fn listener(&mut self) -> Arc<NotificationListener> {
        self.listeners.retain(|listener| listener.strong_count() > 0);
        let listener = Arc::new(NotificationListener::default());
        self.listeners.push(Arc::downgrade(&listener));
        listener
    }

    pub fn publish(&mut self, news: &ChangeNotification) {
        if let NotificationKind::ListChanged(list) = news.kind {
            self.versions[list as usize] += 1;
        }
        for listener in self.listeners.iter().filter_map(Weak::upgrade) {
            listener.push(news);
        }
    }
}

/// What one listener has not taken yet.
#[derive(Default)]
pub struct NotificationListener {
    queue: Mutex<NotificationQueue>,
    woken: Notify,
}

#[derive(Default)]
struct NotificationQueue {
    notifications: VecDeque<(ChangeNotification, u64)>,
    lost: u64,
}

impl NotificationListener {
    fn queue(&self) -> MutexGuard<'_, NotificationQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, news: &ChangeNotification) {
        let mut waiting = self.queue();
        if let Some((_, times)) = waiting.notifications.iter_mut().find(|(key, _)| key == news) {
            *times += 1;
        } else if waiting.notifications.len() < QUEUE_LIMIT {
            waiting.notifications.push_back((news.clone(), 1));
        } else {
            waiting.lost += 1;
        }
        drop(waiting);
        self.woken.notify_one();
    }

    /// The oldest news, and how often it came. Cancel-safe; one caller only.
    pub async fn next(&self) -> (ChangeNotification, u64) {
        loop {
            if let Some(oldest) = self.queue().notifications.pop_front() {
                return oldest;
            }
            self.woken.notified().await;
        }
    }

    /// How many changes found no room since the last call of this function.
    pub fn take_lost(&self) -> u64 {
        std::mem::take(&mut self.queue().lost)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn updated(uri: &str) -> ChangeNotification {
        let params = json!({ "uri": uri, "_meta": { SUBSCRIPTION: 7 } });
        read("notifications/resources/updated", &params).unwrap().unwrap()
    }

    #[tokio::test]
    async fn a_storm_of_equal_news_is_one_with_a_count() {
        let mut audience = NotificationHub::default();
        let listener = audience.listener();
        for _ in 0..100_000 {
            audience.publish(&updated("a:1"));
        }
        audience.publish(&updated("a:2"));
        assert_eq!(listener.next().await, (updated("a:1"), 100_000));
        assert_eq!(listener.next().await, (updated("a:2"), 1));
        assert_eq!(updated("a:2").subscription, Some(json!(7)));
    }

    #[tokio::test]
    async fn more_different_news_than_there_is_room_for_is_counted() {
        let mut audience = NotificationHub::default();
        let listener = audience.listener();
        for n in 0..300 {
            audience.publish(&updated(&format!("a:{n}")));
        }
        assert_eq!((listener.take_lost(), listener.take_lost()), (44, 0));
        assert_eq!(listener.next().await.0, updated("a:0"));
    }

    #[test]
    fn lists_count_their_changes_and_ears_that_are_gone_are_forgotten() {
        let mut audience = NotificationHub::default();
        drop(audience.listener());
        let _ear = audience.listener();
        assert_eq!(audience.listeners.len(), 1);
        let news = read("notifications/prompts/list_changed", &json!({})).unwrap().unwrap();
        audience.publish(&news);
        assert_eq!(ListKind::ALL.map(|list| audience.version(list)), [0, 1, 0]);
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
