//! Servers as a person looks after them: ended, started again, told what to log.
//!
//! Owns: finding the one that is meant, and what the host has to forget with it. Never does: know
//! how a server is started or ended, which is the provider's work.

use super::{ToolHost, limits};
use crate::model::{Fault, ServerState, ServerStatus, ToolResult};
use crate::provider::{Server, ToolProvider};

impl ToolHost {
    /// Ends a server. Whoever asks for it next starts it again.
    ///
    /// # Errors
    /// A server that is not there.
    pub async fn stop_server(&self, name: &str) -> Result<ServerStatus, Fault> {
        let (provider, server) = self.server_named(name)?;
        // Each provider bounds its farewell; the bound here is for one that does not.
        let _elapsed = tokio::time::timeout(limits::GRACE * 2, provider.close()).await;
        Ok(self.completed(server.status()))
    }

    /// Ends a server and starts it again at once, whatever it did before: failures that kept it
    /// from being started, or from getting calls, are forgotten. That it could not be started is
    /// told by its status.
    ///
    /// # Errors
    /// A server that is not there.
    pub async fn restart_server(&self, name: &str) -> Result<ServerStatus, Fault> {
        let (_, server) = self.server_named(name)?;
        let status = match tokio::time::timeout(limits::LISTING, server.restart()).await {
            Ok(status) => status,
            Err(_elapsed) => {
                let fault = Fault::timeout("is not started yet").server(name);
                ServerStatus { state: ServerState::Failed(fault), ..server.status() }
            }
        };
        if matches!(status.state, ServerState::Ready) {
            self.circuits.note(name, Ok(&ToolResult::default()));
        }
        Ok(self.completed(status))
    }

    /// Chooses the least level of the log lines that a server is asked for from now on, one of
    /// [`LOG_LEVELS`](crate::model::event::LOG_LEVELS).
    ///
    /// # Errors
    /// A server that is not there, or that refuses.
    pub async fn set_log_level(&self, name: &str, level: &'static str) -> Result<(), Fault> {
        let (provider, _) = self.server_named(name)?;
        let Some(offers) = provider.as_offers() else {
            return Err(Fault::usage(format!("'{name}' takes no log level")));
        };
        offers.set_log_level(level).await.map_err(|fault| self.masker.fault(fault))
    }

    fn server_named(&self, name: &str) -> Result<(&dyn ToolProvider, &dyn Server), Fault> {
        let member = self.members.iter().find(|member| member.server.as_deref() == Some(name));
        let found = member.and_then(|m| Some((&*m.provider, m.provider.as_server()?)));
        found.ok_or_else(|| self.unknown_server(name))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::host::fake::{Fake, host};
    use crate::model::ServerState;

    #[tokio::test]
    async fn one_server_is_ended_or_started_again_and_no_other() {
        let one = Arc::new(Fake::server("one", &["echo"]));
        let two = Arc::new(Fake::server("two", &["echo"]));
        let host = host(&[&one, &two]).build();
        let status = host.restart_server("one").await.unwrap();
        assert!(matches!(status.state, ServerState::Ready), "{status:?}");
        assert_eq!((one.listed(), two.listed()), (1, 0));
        assert_eq!(host.stop_server("one").await.unwrap().name, "one");
        assert_eq!((one.ended(), two.ended()), (2, 0));
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_a_usage_fault() {
        let host = host(&[&Arc::new(Fake::server("one", &["echo"]))]).build();
        for fault in [
            host.stop_server("two").await.unwrap_err(),
            host.restart_server("two").await.unwrap_err(),
            host.set_log_level("two", "debug").await.unwrap_err(),
            host.set_log_level("one", "debug").await.unwrap_err(),
        ] {
            assert_eq!(fault.kind().exit_code(), 2, "{fault}");
        }
    }
}
