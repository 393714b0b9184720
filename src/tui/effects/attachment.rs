//! The background host that the console is attached to, while it is.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio::sync::mpsc::error::TrySendError;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::EffectRunner;
use crate::assembly::LoadedConfiguration;
use crate::audit::Masker;
use crate::host::ToolHost;
use crate::host::link::{HostLink, ObservationSink};
use crate::tui::event::AppEvent;
use crate::tui::event::attachment::AttachmentEvent;

#[async_trait]
pub trait HostFinder: Send + Sync {
    /// Where that host would listen; `None` when none is to be used.
    fn socket(&self, loaded: &LoadedConfiguration) -> Option<PathBuf>;

    /// Connects to the host that listens there; `None` when none does.
    async fn connect(&self, socket: &Path, masker: &Masker) -> Option<Arc<dyn HostLink>>;
}

/// Passes everything that `host` is asked on to the background host behind a socket, when one listens;
/// otherwise `host` answers itself.
pub async fn attach(
    finder: &dyn HostFinder,
    host: &ToolHost,
    masker: &Masker,
    socket: Option<PathBuf>,
) {
    let link = match socket {
        Some(socket) => finder.connect(&socket, masker).await,
        None => None,
    };
    match link {
        Some(link) => host.attach(link),
        None => host.detach(),
    }
}

impl EffectRunner {
    /// Tells what happens in the attached host from now on, and that it ended. Without one it tells that.
    pub(super) fn observe_attached(&mut self) {
        let host = Arc::clone(&self.deps.host);
        let cancel = CancellationToken::new();
        self.observing = Some(cancel.clone().drop_guard());
        let (shown, send) = (self.bridge.observation_sink(), self.event_tx.clone());
        tokio::spawn(async move {
            let pid = host.attached_pid();
            let attached = AppEvent::Attachment(AttachmentEvent::Attached(pid));
            let Some(pid) = pid else {
                let _unheard = send.send(attached).await;
                return;
            };
            // Said when nothing is missed any more.
            let (attached, tell) = (Mutex::new(Some(attached)), send.clone());
            let sink: ObservationSink = Arc::new(move |seen| {
                let attached = attached.lock().unwrap_or_else(PoisonError::into_inner).take();
                // Before what is observed, unless the console is too busy to take it in.
                if let Some(attached) = attached
                    && let Err(TrySendError::Full(attached)) = tell.try_send(attached)
                {
                    let tell = tell.clone();
                    tokio::spawn(async move { tell.send(attached).await });
                }
                shown(seen);
            });
            let _ended = host.observe_link(&sink, &cancel).await;
            if !cancel.is_cancelled() {
                host.detach();
                let told = AppEvent::Attachment(AttachmentEvent::Lost(pid));
                let _unheard = send.send(told).await;
            }
        });
    }
}

pub(super) type ObservationGuard = DropGuard;
