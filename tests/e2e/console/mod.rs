//! The console on a real terminal: what a person types and sees, and what comes of it on the side of
//! servers and on disk.

mod bench;
mod craft;
mod first_minutes;
mod form;
mod history;
mod hostile;
mod inbox;
mod journey;
mod mouse;
mod offers;
mod pictures;
mod real;
mod reload;
mod servers;
mod shell;
mod sizes;
mod stats;
mod tools;
mod trace;
mod trust;
mod windows;

use crate::support::{Fixture, Place, Sandbox};

/// What a program sends to leave the screen it drew on.
const LEAVES: &str = "\u{1b}[?1049l";

/// A room with a server `srv` that works.
fn room_with_server() -> (Sandbox, Fixture) {
    let room = Sandbox::new();
    let fixture = Fixture::fault(Place::Stdio, "none", "legacy", &room.log("srv"));
    room.server("srv", &fixture);
    (room, fixture)
}
