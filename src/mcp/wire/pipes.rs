//! The optional ability of a stdio wire to lend its pipes.

use async_trait::async_trait;
use futures_util::future::BoxFuture;

use crate::model::{CallId, Error};

/// A wire whose pipes can be lent.
pub trait PipeLender: Send + Sync {
    /// Lends the pipes. A pending [`receive`](super::Wire::receive) has to end first.
    fn lend(&self) -> BoxFuture<'_, PipeLoan<'_>>;
}

/// Both directions of a wire, until they are dropped.
pub struct PipeLoan<'a> {
    pub incoming: Box<dyn PipeReader + 'a>,
    pub outgoing: Box<dyn PipeWriter + 'a>,
}

/// The lent way from a server, read in lines.
#[async_trait]
pub trait PipeReader: Send + Sync {
    /// Waits until more has come or the wire is closed. Cancel-safe.
    async fn wait_for_input(&mut self);

    /// Why nothing will come any more; none while the wire is open.
    fn close_reason(&self) -> Option<&Error>;

    fn each_line(&mut self, take: &mut dyn FnMut(&[u8]));
}

/// The lent way to a server, held only while lines are on it.
#[async_trait]
pub trait PipeWriter: Send + Sync {
    fn waiting(&self) -> usize;

    /// Whether a line is partly written.
    fn is_under_way(&self) -> bool;

    /// Whether anything was written since the last call of this function.
    fn take_has_written(&mut self) -> bool;

    /// Discards the lines waiting behind a partly written one.
    fn discard_unsent(&mut self);

    /// Adds one line, which `write` appends without its end. Returns its length in bytes, the end
    /// included.
    fn line(&mut self, call: Option<&CallId>, write: &mut dyn FnMut(&mut Vec<u8>)) -> usize;

    /// Writes all waiting lines. If cancelled, the next call continues where it stopped.
    async fn write(&mut self) -> Result<(), Error>;
}
