//! Keys among the servers.

use super::{Place, also, quiet, shown};
use crate::tui::keys::{Action, Key, When};

pub(super) const SERVERS: Place = Place {
    when: When::Servers,
    title: "in the servers",
    bindings: &[
        shown(Key::Enter, Action::Open, "open", "connect; beside the list: show its wire"),
        shown(Key::Char('c'), Action::Connect, "connect", "connect, or ask for a sign of life"),
        also(Key::Char('P'), Action::Connect),
        shown(Key::Char('R'), Action::Restart, "restart", "end it and start it again"),
        shown(Key::Char('x'), Action::Stop, "stop", "end it; its next call starts it again"),
        shown(Key::Char('l'), Action::Log, "log", "its log and its standard error, or its health"),
        shown(Key::Char('d'), Action::Diff, "diff", "declared tools against advertised ones"),
        shown(Key::Char('t'), Action::ShowTools, "tools", "show the tools of this server"),
        shown(Key::Char('T'), Action::ShowTrace, "trace", "show its wire"),
        quiet(Key::Char('L'), Action::Level, "ask it for log lines of the next level"),
        quiet(Key::Char('u'), Action::Refresh, "list its tools again"),
    ],
};
