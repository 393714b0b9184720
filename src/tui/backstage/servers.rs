//! Ends servers, starts them again, and tells them what to log.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::listed;
use crate::host::ToolHost;
use crate::host::request::Reach;
use crate::model::{Fault, ServerState, ServerStatus};
use crate::tui::event::Event;
use crate::tui::event::servers::Wish;

/// Does what is wanted, and tells what comes of it here.
pub(super) async fn perform(host: Arc<ToolHost>, wish: Wish, send: mpsc::Sender<Event>) {
    let event = match wish {
        Wish::Restart(name) => {
            let event = status(host.restart_server(&name).await);
            // It may be another program by now: what it offers is asked for anew.
            let is_ready = matches!(&event, Event::Servers(all)
                if all.iter().any(|one| matches!(one.state, ServerState::Ready)));
            let _unheard = send.send(event).await;
            if !is_ready {
                return;
            }
            listed(&host, Reach::Servers(vec![name.clone()]), vec![name]).await
        }
        Wish::Stop(name) => status(host.stop_server(&name).await),
        Wish::LogLevel { server, level } => match host.set_log_level(&server, level).await {
            Ok(()) => {
                let text = format!("{server} is asked for log lines from {level} on");
                Event::Said { text, is_bad: false }
            }
            Err(fault) => failed(&fault),
        },
    };
    // The console is gone: nobody wants to know.
    let _unheard = send.send(event).await;
}

fn status(done: Result<ServerStatus, Fault>) -> Event {
    match done {
        Ok(status) => Event::Servers(vec![status]),
        Err(fault) => failed(&fault),
    }
}

fn failed(fault: &Fault) -> Event {
    Event::Said { text: fault.to_string(), is_bad: true }
}
