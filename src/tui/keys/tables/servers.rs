//! Keys among the servers.

use super::{KeyTable, alias_binding, footer_binding, help_binding};
use crate::tui::keys::{Action, KeyContext, KeyPress};

pub(super) const SERVERS: KeyTable = KeyTable {
    context: KeyContext::Servers,
    title: "in the servers",
    bindings: &[
        footer_binding(
            KeyPress::Enter,
            Action::Open,
            "open",
            "connect; beside the list: show its wire",
        ),
        footer_binding(
            KeyPress::Char('c'),
            Action::Connect,
            "connect",
            "connect, or ask for a sign of life",
        ),
        alias_binding(KeyPress::Char('P'), Action::Connect),
        footer_binding(
            KeyPress::Char('R'),
            Action::Restart,
            "restart",
            "end it and start it again",
        ),
        footer_binding(
            KeyPress::Char('x'),
            Action::Stop,
            "stop",
            "end it; its next call starts it again",
        ),
        footer_binding(
            KeyPress::Char('l'),
            Action::Log,
            "log",
            "its log and its standard error, or its health",
        ),
        footer_binding(
            KeyPress::Char('d'),
            Action::Diff,
            "diff",
            "declared tools against advertised ones",
        ),
        footer_binding(
            KeyPress::Char('t'),
            Action::ShowTools,
            "tools",
            "show the tools of this server",
        ),
        footer_binding(KeyPress::Char('T'), Action::ShowTrace, "trace", "show its wire"),
        help_binding(KeyPress::Char('L'), Action::Level, "ask it for log lines of the next level"),
        help_binding(KeyPress::Char('u'), Action::Refresh, "list its tools again"),
    ],
};
