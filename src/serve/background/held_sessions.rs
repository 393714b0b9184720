//! When the sessions of a background host's front ends end.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use crate::host::ToolHost;
use crate::util::lock::lock;

pub struct HeldSessions {
    host: Arc<ToolHost>,
    /// How long a named session lasts without a call.
    idle_limit: Duration,
    sessions: Mutex<HashMap<String, SessionHolders>>,
}

#[derive(Default)]
struct SessionHolders {
    connections: usize,
    named: Option<Instant>,
}

/// The sessions that a front end called in; they end with its connection, unless they are held
/// otherwise.
pub(in crate::serve) struct ConnectionSessions {
    held: Arc<HeldSessions>,
    names: Mutex<HashSet<String>>,
}

impl HeldSessions {
    /// The sessions of `host`, of which named ones last for `idle_limit` without a call.
    pub fn new(host: Arc<ToolHost>, idle_limit: Duration) -> Arc<Self> {
        Arc::new(Self { host, idle_limit, sessions: Mutex::default() })
    }

    pub(in crate::serve) fn of_connection(self: &Arc<Self>) -> ConnectionSessions {
        ConnectionSessions { held: Arc::clone(self), names: Mutex::default() }
    }

    fn hold_named(self: &Arc<Self>, session: &str) {
        let now = Instant::now();
        let mut sessions = lock(&self.sessions);
        if sessions.entry(session.to_owned()).or_default().named.replace(now).is_none() {
            let (held, session) = (Arc::clone(self), session.to_owned());
            tokio::spawn(async move { held.end_when_idle(&session).await });
        }
    }

    async fn end_when_idle(&self, session: &str) {
        loop {
            let newest = lock(&self.sessions).get(session).and_then(|holders| holders.named);
            let Some(newest) = newest else { return };
            let Some(end) = newest.checked_add(self.idle_limit) else {
                return std::future::pending().await;
            };
            if Instant::now() < end {
                tokio::time::sleep_until(end).await;
                continue;
            }
            return self.release(session, |holders| holders.named = None);
        }
    }

    /// Takes a holder away; the session ends with the last one.
    fn release(&self, session: &str, take: impl FnOnce(&mut SessionHolders)) {
        let mut sessions = lock(&self.sessions);
        let Some(holders) = sessions.get_mut(session) else { return };
        take(holders);
        if holders.connections == 0 && holders.named.is_none() {
            sessions.remove(session);
            drop(sessions);
            self.host.end_session(session);
        }
    }
}

impl ConnectionSessions {
    /// Keeps a session's own state while it can still be used: with `is_named`, because the user
    /// named it, for the host's idle time, and otherwise while the connection lives.
    pub(in crate::serve) fn hold(&self, session: &str, is_named: bool) {
        if is_named {
            return self.held.hold_named(session);
        }
        let mut names = lock(&self.names);
        if names.insert(session.to_owned()) {
            lock(&self.held.sessions).entry(session.to_owned()).or_default().connections += 1;
        }
    }
}

impl Drop for ConnectionSessions {
    fn drop(&mut self) {
        let names = std::mem::take(&mut *lock(&self.names));
        for name in names {
            self.held.release(&name, |holders| holders.connections -= 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::host::function_tool::FunctionTool;
    use crate::host::sessions::SessionInfo;
    use crate::model::{Error, JsonObject, ToolContext};

    const IDLE: Duration = Duration::from_mins(10);

    fn held(session: &str) -> Arc<HeldSessions> {
        let host = ToolHost::builder().build();
        let nothing = |_: JsonObject, _: ToolContext| async { Ok::<_, Error>(Value::Null) };
        host.register_function(FunctionTool::new("nothing", "Does nothing", nothing)).unwrap();
        let info = SessionInfo { session_id: session.into(), ..SessionInfo::default() };
        host.open_session(info).unwrap();
        HeldSessions::new(host, IDLE)
    }

    #[tokio::test(start_paused = true)]
    async fn a_named_session_lasts_until_no_call_came_for_the_idle_time() {
        let held = held("mine");
        held.of_connection().hold("mine", true);
        tokio::time::sleep(IDLE / 2).await;
        held.of_connection().hold("mine", true);
        tokio::time::sleep(IDLE * 3 / 4).await;
        assert!(lock(&held.sessions).contains_key("mine"), "a call came in between");
        tokio::time::sleep(IDLE / 2).await;
        assert!(lock(&held.sessions).is_empty());
        assert!(!held.host.end_session("mine"), "it had ended");
    }

    #[test]
    fn a_session_ends_with_the_last_connection_that_makes_its_calls() {
        let held = held("s");
        let [first, second] = [(); 2].map(|()| held.of_connection());
        for connection in [&first, &second, &second] {
            connection.hold("s", false);
        }
        drop(second);
        assert_eq!(lock(&held.sessions)["s"].connections, 1);
        drop(first);
        assert!(lock(&held.sessions).is_empty());
        assert!(!held.host.end_session("s"), "it had ended");
    }
}
