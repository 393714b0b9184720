//! Every view in every size: each is reached by its number and says what it is.

use super::room_with_server;
use crate::support::Pty;

/// What each view shows first, in the order of their keys.
const VIEWS: [(&str, &str); 8] = [
    ("1", "Tools"),
    ("2", "Servers"),
    ("3", "Trace"),
    ("4", "Tools by"),
    ("5", "Plan"),
    ("6", "History"),
    ("7", "Resources"),
    ("8", "Inbox"),
];

#[test]
fn every_view_is_there_in_every_size() {
    for (rows, columns) in [(40, 120), (24, 80), (16, 60), (10, 40), (200, 500)] {
        let (room, _fixture) = room_with_server();
        let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], rows, columns);
        pty.expect_shown("srv");
        for (key, title) in VIEWS {
            pty.type_keys(key).expect_shown(&format!("{key} ")).expect_shown(title);
            // The way out and the way to know more are always told.
            pty.expect_shown("? help").expect_shown("q quit");
        }
        pty.type_keys("q");
        let (code, screen) = pty.finish();
        assert_eq!(code, Some(0), "{columns}x{rows}: {screen}");
    }
}
