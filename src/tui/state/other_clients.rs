//! The calls that other clients of the attached host make.

use std::time::Duration;

use indexmap::IndexMap;

use super::ConsoleCalls;
use crate::model::{CallId, HostEvent};
use crate::util::text::shorten;

/// How many calls are remembered at least; of more than twice as many, those that began last.
const MAX_CALLS: usize = 1_000;
/// The maximum number of characters of the name of a client, which it chose itself.
const MAX_NAME: usize = 60;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherCall {
    /// The identity that all its events share.
    pub id: CallId,
    pub tool: String,
    pub client: String,
    pub since: Duration,
    pub is_running: bool,
}

#[derive(Debug, Default)]
pub struct OtherClients {
    calls: IndexMap<CallId, OtherCall>,
}

impl OtherClients {
    /// Takes in an event of the host. Calls of `own` are not another client's.
    pub fn handle_host_event(&mut self, event: &HostEvent, own: &ConsoleCalls, now: Duration) {
        match event {
            HostEvent::CallStarted { call_id, tool, parent, client: Some(client) } => {
                let is_own = |id: &CallId| own.has_made(id);
                if is_own(call_id) || parent.as_ref().is_some_and(is_own) {
                    return;
                }
                if self.calls.len() >= 2 * MAX_CALLS {
                    // Half at a time, so that one call costs little on average.
                    self.calls.drain(..MAX_CALLS);
                }
                let call = OtherCall {
                    id: call_id.clone(),
                    tool: tool.clone(),
                    client: shorten(client, MAX_NAME).into_owned(),
                    since: now,
                    is_running: true,
                };
                self.calls.insert(call_id.clone(), call);
            }
            HostEvent::CallFinished { call_id, .. } => {
                if let Some(call) = self.calls.get_mut(call_id) {
                    call.is_running = false;
                }
            }
            _ => {}
        }
    }

    /// The client that made a call; `None` for a call of this console, and one that is not known.
    pub fn client_of(&self, id: &CallId) -> Option<&str> {
        self.calls.get(id).map(|call| &*call.client)
    }

    pub fn running(&self) -> impl Iterator<Item = &OtherCall> + '_ {
        self.calls.values().rev().filter(|call| call.is_running)
    }

    /// The host is gone, and nothing is heard of its calls any more.
    pub fn clear(&mut self) {
        self.calls.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::JsonObject;

    fn started(id: &str, parent: Option<&str>, client: &str) -> HostEvent {
        HostEvent::CallStarted {
            call_id: CallId(id.to_owned()),
            tool: "echo".to_owned(),
            parent: parent.map(|parent| CallId(parent.to_owned())),
            client: Some(client.to_owned()),
        }
    }

    fn finished(id: &str) -> HostEvent {
        HostEvent::CallFinished {
            call_id: CallId(id.to_owned()),
            tool: "echo".to_owned(),
            success: true,
            is_cancelled: false,
            duration: Duration::ZERO,
        }
    }

    #[test]
    fn calls_of_this_console_and_what_they_call_are_its_own() {
        let mut own = ConsoleCalls::default();
        let run = own.begin("echo".to_owned(), JsonObject::new());
        own.set_host_id(run, CallId("mine".to_owned()));
        let mut others = OtherClients::default();
        let events = [
            started("mine", None, "toolhost console"),
            started("within", Some("mine"), "toolhost console"),
            started("theirs", None, "an editor"),
            started("nested", Some("theirs"), "an editor"),
        ];
        for event in &events {
            others.handle_host_event(event, &own, Duration::ZERO);
        }
        let running: Vec<&str> = others.running().map(|call| &*call.id.0).collect();
        assert_eq!(running, ["nested", "theirs"]);
        others.handle_host_event(&finished("theirs"), &own, Duration::ZERO);
        assert_eq!(others.running().count(), 1);
        assert_eq!(others.client_of(&CallId("theirs".to_owned())), Some("an editor"));
        assert_eq!(others.client_of(&CallId("mine".to_owned())), None);
    }

    #[test]
    fn the_number_of_calls_and_the_names_of_clients_are_bounded() {
        let (own, mut others) = (ConsoleCalls::default(), OtherClients::default());
        for number in 0..5 * MAX_CALLS {
            let event = started(&number.to_string(), None, &"x".repeat(10_000));
            others.handle_host_event(&event, &own, Duration::ZERO);
        }
        assert!((MAX_CALLS..=2 * MAX_CALLS).contains(&others.calls.len()));
        assert!(others.calls[0].client.chars().count() < 2 * MAX_NAME);
    }
}
