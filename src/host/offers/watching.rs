//! Being told when something changes at a server.
//!
//! Owns: which server is asked for which changes, and that one that fails costs only itself. Never
//! does: connect or begin again, which is the provider's work.

use futures_util::future::join_all;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::given_up;
use crate::host::ToolHost;
use crate::model::{Change, Fault, FaultKind, Wanted};
use crate::provider::Offers;

/// A change at one of the servers that are watched.
#[derive(Debug)]
pub struct Seen {
    /// The server.
    pub server: String,
    /// What happened.
    pub change: Change,
}

impl ToolHost {
    /// Finds the servers of these resources and hands on what they tell about changes, until
    /// `cancel` fires or nobody takes it any more. A server that fails is told as such, and the
    /// others go on.
    ///
    /// # Errors
    /// An address that nobody has or several have. When every server failed, its failure.
    pub async fn watch(
        &self,
        uris: &[String],
        servers: &[String],
        seen: &mpsc::Sender<Seen>,
        cancel: &CancellationToken,
    ) -> Result<(), Fault> {
        let mut wanted: Vec<(String, Wanted)> = Vec::new();
        let owners = async {
            for uri in uris {
                let server = self.owner(uri, servers).await?;
                let known = wanted.iter_mut().find(|(known, _)| *known == server);
                match known {
                    Some((_, wanted)) if wanted.uris.contains(uri) => {}
                    Some((_, wanted)) => wanted.uris.push(uri.clone()),
                    None => {
                        let only = Wanted { lists: Vec::new(), uris: vec![uri.clone()] };
                        wanted.push((server, only));
                    }
                }
            }
            Ok(())
        };
        given_up(owners, cancel).await.map_err(|fault| self.masker.fault(fault))?;
        self.follow(wanted, seen, cancel).await
    }

    /// Hands on what servers tell about changes: for each server what is wanted of it.
    ///
    /// # Errors
    /// When every server failed, the decisive failure.
    pub async fn follow(
        &self,
        wanted: Vec<(String, Wanted)>,
        seen: &mpsc::Sender<Seen>,
        cancel: &CancellationToken,
    ) -> Result<(), Fault> {
        let all = wanted.iter().map(|(server, wanted)| async move {
            let outcome = match self.offers_of(server) {
                Ok(offers) => self.follow_one(server, offers, wanted, seen, cancel).await,
                Err(fault) => Err(fault),
            };
            let fault = outcome.err().map(|fault| self.masker.fault(fault));
            if let Some(fault) = &fault
                && wanted_by_others(fault)
            {
                let seen_last =
                    Seen { server: server.clone(), change: Change::Failed(fault.clone()) };
                // Whoever does not listen any more does not want to know this either.
                let _unheard = seen.send(seen_last).await;
            }
            fault
        });
        let faults: Vec<Option<Fault>> = join_all(all).await;
        let failed: Vec<Fault> = faults.iter().flatten().cloned().collect();
        if failed.is_empty() || failed.len() < faults.len() {
            return Ok(());
        }
        failed.into_iter().min_by_key(|fault| fault.kind().precedence()).map_or(Ok(()), Err)
    }

    async fn follow_one(
        &self,
        server: &str,
        offers: &dyn Offers,
        wanted: &Wanted,
        seen: &mpsc::Sender<Seen>,
        cancel: &CancellationToken,
    ) -> Result<(), Fault> {
        let (sender, mut changes) = mpsc::channel(1);
        let handing_on = async {
            while let Some(change) = changes.recv().await {
                let change = match change {
                    Change::Interrupted(fault) => Change::Interrupted(self.masker.fault(fault)),
                    other => other,
                };
                let server = server.to_owned();
                let handed = tokio::select! {
                    biased;
                    () = cancel.cancelled() => return,
                    handed = seen.send(Seen { server, change }) => handed,
                };
                if handed.is_err() {
                    return;
                }
            }
        };
        let watching = async move { offers.watch(wanted, &sender, cancel).await };
        let (outcome, ()) = tokio::join!(watching, handing_on);
        outcome
    }
}

/// Whether a failure is worth telling beside what the other servers say.
fn wanted_by_others(fault: &Fault) -> bool {
    !matches!(fault.kind(), FaultKind::Interrupted(_))
}
