//! Managing servers: stop, restart, log level.

use futures_util::future::BoxFuture;

use super::link::HostQuery;
use super::registry::ProviderLease;
use super::{ToolHost, attempt};
use crate::model::event::LOG_LEVELS;
use crate::model::{Error, ServerState, ServerStatus};
use crate::provider::ManagedServer;

impl ToolHost {
    /// Ends a server. The next call or listing starts it again.
    ///
    /// # Errors
    /// A server that is not there.
    pub async fn stop_server(&self, name: &str) -> Result<ServerStatus, Error> {
        if let Some(status) = self.ask_link(HostQuery::StopServer(name.to_owned())).await? {
            return status;
        }
        let provider = self.find_server(name)?;
        // Each provider bounds its shutdown; the bound here is for one that does not.
        let close = provider.inner.close();
        let _elapsed = tokio::time::timeout(attempt::STOP_GRACE_PERIOD * 2, close).await;
        let status = provider.inner.as_server().map(|server| self.with_host_state(server.status()));
        status.ok_or_else(|| self.unknown_server(name))
    }

    /// Ends a server and starts it again at once, whatever it did before: failures that kept it
    /// from being started are forgotten. That it could not be started is
    /// told by its status.
    ///
    /// # Errors
    /// A server that is not there.
    pub async fn restart_server(&self, name: &str) -> Result<ServerStatus, Error> {
        if let Some(status) = self.ask_link(HostQuery::RestartServer(name.to_owned())).await? {
            return status;
        }
        let provider = self.find_server(name)?;
        let status = self.status_after(&provider, |s| s.restart(), "has not started yet").await;
        status.ok_or_else(|| self.unknown_server(name))
    }

    /// What is known of a server after `work`, or that it did not end in time; `None` for what is no
    /// server.
    pub(super) async fn status_after(
        &self,
        provider: &ProviderLease,
        work: impl for<'a> FnOnce(&'a dyn ManagedServer) -> BoxFuture<'a, ServerStatus>,
        late: &str,
    ) -> Option<ServerStatus> {
        let server = provider.inner.as_server()?;
        let work = work(server);
        let ended = provider.while_registered(async { Ok(work.await) });
        let error = match tokio::time::timeout(attempt::LISTING_TIMEOUT, ended).await {
            Ok(Ok(status)) => return Some(self.with_host_state(status)),
            Ok(Err(removed)) => removed,
            Err(_elapsed) => Error::timeout(late),
        };
        let status = server.status();
        let state = ServerState::Failed(error.with_server(&status.name));
        Some(self.with_host_state(ServerStatus { state, ..status }))
    }

    /// Sets the minimum level of the log lines requested from a server from now on, one of
    /// [`LOG_LEVELS`].
    ///
    /// # Errors
    /// An unknown server or level, or a server that refuses.
    pub async fn set_log_level(&self, name: &str, level: &str) -> Result<(), Error> {
        let Some(level) = LOG_LEVELS.into_iter().find(|known| *known == level) else {
            let known = LOG_LEVELS.join(", ");
            return Err(Error::usage(format!("there is no log level '{level}'"))
                .with_hint(format!("known: {known}")));
        };
        let query = HostQuery::SetLogLevel { server: name.to_owned(), level: level.to_owned() };
        if let Some(set) = self.ask_link(query).await? {
            return set;
        }
        let provider = self.find_server(name)?;
        let Some(offers) = provider.inner.as_offerings() else {
            return Err(Error::usage(format!("'{name}' does not support log levels")));
        };
        let set = provider.while_registered(offers.set_log_level(level)).await;
        set.map_err(|error| self.pipeline.masker.error(error))
    }

    fn find_server(&self, name: &str) -> Result<ProviderLease, Error> {
        let provider = self.directory.server(name).ok_or_else(|| self.unknown_server(name))?;
        self.directory.mark_start([&*provider]);
        Ok(provider)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::host::fake::{FakeProvider, host};
    use crate::model::ServerState;

    #[tokio::test]
    async fn one_server_is_ended_or_started_again_and_no_other() {
        let one = Arc::new(FakeProvider::server("one", &["echo"]));
        let two = Arc::new(FakeProvider::server("two", &["echo"]));
        let host = host(&[&one, &two]).build();
        let status = host.restart_server("one").await.unwrap();
        assert!(matches!(status.state, ServerState::Ready), "{status:?}");
        assert_eq!((one.listed(), two.listed()), (1, 0));
        assert_eq!(host.stop_server("one").await.unwrap().name, "one");
        assert_eq!((one.ended(), two.ended()), (2, 0));
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_a_usage_error() {
        let host = host(&[&Arc::new(FakeProvider::server("one", &["echo"]))]).build();
        for error in [
            host.stop_server("two").await.unwrap_err(),
            host.restart_server("two").await.unwrap_err(),
            host.set_log_level("two", "debug").await.unwrap_err(),
            host.set_log_level("one", "debug").await.unwrap_err(),
        ] {
            assert_eq!(error.kind().exit_code(), 2, "{error}");
        }
    }
}
