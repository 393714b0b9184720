//! Stops and restarts servers, and sets their log levels.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::listed;
use crate::host::ToolHost;
use crate::host::request::ListScope;
use crate::model::{Error, ServerState, ServerStatus};
use crate::tui::event::AppEvent;
use crate::tui::event::servers::ServersEffect;

pub(super) async fn perform(
    host: Arc<ToolHost>,
    effect: ServersEffect,
    send: mpsc::Sender<AppEvent>,
) {
    let event = match effect {
        ServersEffect::Restart(name) => {
            let event = status(host.restart_server(&name).await);
            // It may be a different program by now: list its offerings again.
            let is_ready = matches!(&event, AppEvent::ServerStatuses(all)
                if all.iter().any(|one| matches!(one.state, ServerState::Ready)));
            let _unheard = send.send(event).await;
            if !is_ready {
                return;
            }
            listed(&host, ListScope::Servers(vec![name.clone()]), vec![name]).await
        }
        ServersEffect::Stop(name) => status(host.stop_server(&name).await),
        ServersEffect::LogLevel { server, level } => match host.set_log_level(&server, level).await
        {
            Ok(()) => {
                let text = format!("requested log level {level} from {server}");
                AppEvent::StatusText { text, is_bad: false }
            }
            Err(error) => failed(&error),
        },
    };
    // The console is gone; its events are not needed.
    let _unheard = send.send(event).await;
}

fn status(done: Result<ServerStatus, Error>) -> AppEvent {
    match done {
        Ok(status) => AppEvent::ServerStatuses(vec![status]),
        Err(error) => failed(&error),
    }
}

fn failed(error: &Error) -> AppEvent {
    AppEvent::StatusText { text: error.to_string(), is_bad: true }
}
