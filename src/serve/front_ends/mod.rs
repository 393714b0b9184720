//! What a background host does for the front ends of this program.

mod conversation;
pub(in crate::serve) mod request;
pub mod service;
