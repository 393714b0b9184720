//! Keys of the servers view.

use super::{KeyTable, alias_binding, footer_binding, help_binding};
use crate::tui::keys::{Action, KeyContext, KeyPress};

pub(super) const SERVERS: KeyTable = KeyTable {
    context: KeyContext::Servers,
    title: "Servers",
    bindings: &[
        footer_binding(
            KeyPress::Enter,
            Action::Open,
            "open",
            "connect; in the details: show the trace",
        ),
        footer_binding(KeyPress::Char('/'), Action::Filter, "find", "find a server by its name"),
        footer_binding(KeyPress::Char('c'), Action::Connect, "connect", "connect or ping"),
        alias_binding(KeyPress::Char('P'), Action::Connect),
        footer_binding(KeyPress::Char('R'), Action::Restart, "restart", "restart the server"),
        footer_binding(
            KeyPress::Char('x'),
            Action::Stop,
            "stop",
            "stop the server; the next call starts it",
        ),
        footer_binding(KeyPress::Char('l'), Action::Log, "log", "switch between log and health"),
        footer_binding(
            KeyPress::Char('d'),
            Action::Diff,
            "diff",
            "compare declared and advertised tools",
        ),
        footer_binding(
            KeyPress::Char('t'),
            Action::ShowTools,
            "tools",
            "show the tools of this server",
        ),
        footer_binding(KeyPress::Char('T'), Action::ShowTrace, "trace", "show its trace"),
        help_binding(KeyPress::Char('L'), Action::Level, "change the log level"),
        help_binding(KeyPress::Char('A'), Action::Attach, "use the background host"),
        help_binding(KeyPress::Char('u'), Action::Refresh, "reload its tools"),
    ],
};
