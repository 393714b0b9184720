//! What the tests stand on: a sealed room, held-to rules, and servers to talk to.

mod finished;
mod fixture;
mod pty;
mod sandbox;
#[path = "../../../src/util/skipped.rs"]
mod skipped;
mod witness;

pub use finished::{Finished, forbidden};
pub use fixture::{Fixture, Place, example, log_events};
pub use pty::Pty;
pub use sandbox::{Run, Running, Sandbox};
pub use skipped::{lacks, left_out};
pub use witness::{Listener, Recorder, disguises, files_below, script};
