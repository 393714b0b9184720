//! When the sessions of a background host's front ends end.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::host::ToolHost;
use crate::util::process_exit::wait_for_exit;

pub struct HeldSessions {
    host: Arc<ToolHost>,
    /// How long a named session lasts without a call.
    idle_limit: Duration,
    sessions: Mutex<HashMap<String, SessionHolders>>,
}

#[derive(Default)]
struct SessionHolders {
    processes: HashSet<u32>,
    named: Option<Instant>,
}

impl HeldSessions {
    /// The sessions of `host`, of which named ones last for `idle_limit` without a call.
    pub fn new(host: Arc<ToolHost>, idle_limit: Duration) -> Arc<Self> {
        Arc::new(Self { host, idle_limit, sessions: Mutex::default() })
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, SessionHolders>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn hold_for_process(self: &Arc<Self>, session: &str, pid: u32) {
        let mut sessions = self.sessions();
        if sessions.entry(session.to_owned()).or_default().processes.insert(pid) {
            let (held, session) = (Arc::clone(self), session.to_owned());
            tokio::spawn(async move {
                wait_for_exit(pid).await;
                held.release(&session, |holders| {
                    holders.processes.remove(&pid);
                });
            });
        }
    }

    pub fn hold_named(self: &Arc<Self>, session: &str) {
        let now = Instant::now();
        let mut sessions = self.sessions();
        if sessions.entry(session.to_owned()).or_default().named.replace(now).is_none() {
            let (held, session) = (Arc::clone(self), session.to_owned());
            tokio::spawn(async move { held.end_when_idle(&session).await });
        }
    }

    async fn end_when_idle(&self, session: &str) {
        loop {
            let newest = self.sessions().get(session).and_then(|holders| holders.named);
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
        let mut sessions = self.sessions();
        let Some(holders) = sessions.get_mut(session) else { return };
        take(holders);
        if holders.processes.is_empty() && holders.named.is_none() {
            sessions.remove(session);
            drop(sessions);
            self.host.end_session(session);
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
        let info = SessionInfo { session_id: session.to_owned(), ..SessionInfo::default() };
        host.open_session(info).unwrap();
        HeldSessions::new(host, IDLE)
    }

    #[tokio::test(start_paused = true)]
    async fn a_named_session_lasts_until_no_call_came_for_the_idle_time() {
        let held = held("mine");
        held.hold_named("mine");
        tokio::time::sleep(IDLE / 2).await;
        held.hold_named("mine");
        tokio::time::sleep(IDLE * 3 / 4).await;
        assert!(held.sessions().contains_key("mine"), "a call came in between");
        tokio::time::sleep(IDLE / 2).await;
        assert!(held.sessions().is_empty());
        assert!(!held.host.end_session("mine"), "it had ended");
    }

    #[tokio::test]
    async fn a_session_ends_with_the_last_process_that_makes_its_calls() {
        let held = held("s");
        let mut processes = ["1", "2"].map(|_| {
            let mut command = tokio::process::Command::new("cat");
            command.stdin(std::process::Stdio::piped()).kill_on_drop(true).spawn().unwrap()
        });
        for process in &processes {
            held.hold_for_process("s", process.id().unwrap());
        }
        processes[0].kill().await.unwrap();
        while held.sessions()["s"].processes.len() > 1 {
            tokio::task::yield_now().await;
        }
        processes[1].kill().await.unwrap();
        while !held.sessions().is_empty() {
            tokio::task::yield_now().await;
        }
        assert!(!held.host.end_session("s"), "it had ended");
    }
}
