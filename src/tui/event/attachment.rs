//! Events about the background host that the console is attached to.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachmentEvent {
    /// Everything is passed on to the host with this process id; `None`: the console is its own host.
    Attached(Option<u32>),
    Lost(u32),
}
