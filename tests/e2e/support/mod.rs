//! What the tests stand on: a sealed room, held-to rules, and servers to talk to.

mod finished;
mod fixture;
mod pty;
mod sandbox;
mod witness;

pub use finished::{Finished, forbidden};
pub use fixture::{Fixture, Place, example, log_events};
pub use pty::Pty;
pub use sandbox::{Run, Sandbox};
pub use witness::{Listener, Recorder, disguises, files_below, script};
