//! Closing a host: what was started last is stopped first.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use super::listings::RegisteredProvider;
use super::{ToolHost, limits};

impl ToolHost {
    /// Ends everything that was started, in the reverse order of the starts: what was started
    /// together is ended together, and what was started before it when that has ended, or has had
    /// its time. Nothing can be registered from now on. Idempotent.
    pub async fn close(&self) {
        self.subscriptions.clear();
        let (providers, leaving) = {
            let mut roster = self.directory.roster();
            roster.is_closed = true;
            (self.directory.providers(), roster.leaving.clone())
        };
        let mut groups: BTreeMap<Reverse<Option<u64>>, Vec<&RegisteredProvider>> = BTreeMap::new();
        for provider in providers.iter().chain(&leaving) {
            groups.entry(Reverse(provider.first_start.get().copied())).or_default().push(provider);
        }
        let count = u32::try_from(groups.len()).unwrap_or(u32::MAX).max(1);
        // So all of them are told to end within half of the whole time, even if some hang.
        let patience = limits::STOP_GRACE_PERIOD / count;
        let all = async {
            let mut closing = FuturesUnordered::new();
            for group in groups.into_values() {
                closing.extend(group.into_iter().map(|provider| provider.inner.close()));
                let ended = async { while closing.next().await.is_some() {} };
                let _late = tokio::time::timeout(patience, ended).await;
            }
            while closing.next().await.is_some() {}
        };
        // Each provider bounds its shutdown; the bound here is for one that does not.
        let _elapsed = tokio::time::timeout(limits::STOP_GRACE_PERIOD * 2, all).await;
        self.sessions.live.clear();
        self.pipeline.recorder.close().await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use crate::host::fake::{FakeProvider, call, host};
    use crate::host::request::ListScope;

    type Ends = Arc<Mutex<Vec<&'static str>>>;

    /// A server that writes its end down; one that hangs never ends.
    fn server(name: &'static str, ends: &Ends, hangs: bool) -> Arc<FakeProvider> {
        let ends = Arc::clone(ends);
        Arc::new(FakeProvider::server(name, &["echo"]).ending(move || {
            ends.lock().unwrap().push(name);
            if hangs { tokio::time::Duration::MAX } else { tokio::time::Duration::ZERO }
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_started_last_is_ended_first() {
        let ends = Ends::default();
        let [one, two, three] = ["one", "two", "three"].map(|name| server(name, &ends, false));
        let host = host(&[&one, &two, &three]).build();
        for name in ["two-echo", "three-echo", "one-echo", "two-echo"] {
            host.call(call(name)).await.unwrap();
        }
        host.close().await;
        assert_eq!(*ends.lock().unwrap(), ["one", "three", "two"]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_hangs_keeps_no_other_from_being_ended() {
        let ends = Ends::default();
        let (first, last) = (server("first", &ends, false), server("last", &ends, true));
        let together = ["a", "b"].map(|name| server(name, &ends, true));
        let host = host(&[&first, &together[0], &together[1], &last]).build();
        host.call(call("first-echo")).await.unwrap();
        let scope = ListScope::Servers(vec!["a".to_owned(), "b".to_owned()]);
        host.catalogue(&scope).await;
        host.call(call("last-echo")).await.unwrap();
        host.close().await;
        assert_eq!(*ends.lock().unwrap(), ["last", "a", "b", "first"]);
    }
}
