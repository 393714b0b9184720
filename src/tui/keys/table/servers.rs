//! Keys among the servers.

use super::{Place, also, shown};
use crate::tui::keys::{Action, Key, When};

pub(super) const SERVERS: Place = Place {
    when: When::Servers,
    title: "in the servers",
    bindings: &[
        shown(Key::Enter, Action::Connect, "connect", "connect, or ask for a sign of life"),
        also(Key::Char('c'), Action::Connect),
        also(Key::Char('P'), Action::Connect),
        shown(Key::Char('t'), Action::ShowTools, "tools", "show the tools of this server"),
    ],
};
