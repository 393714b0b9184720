//! Lending a stdio server's pipes to a benchmark run.
//!
//! The reading side is lent for the whole run. The writing side is only held while lines are being
//! written, so that other senders get a turn between them.

use async_trait::async_trait;
use bytes::{Buf as _, Bytes};
use futures_util::future::BoxFuture;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::MutexGuard;

use super::{StdinPipe, StdioWire, StdoutReader, count_nuls, line_end, stdin_not_read_error};
use crate::mcp::wire::{PipeLender, PipeLoan, PipeReader, PipeWriter};
use crate::model::{CallId, Error};

impl PipeLender for StdioWire {
    fn lend(&self) -> BoxFuture<'_, PipeLoan<'_>> {
        Box::pin(async {
            let reader = self.reader.lock().await;
            PipeLoan {
                incoming: Box::new(LoanReader { wire: self, reader }),
                outgoing: Box::new(LoanWriter {
                    wire: self,
                    stdin: None,
                    lines: Vec::new(),
                    written: 0,
                    inherited_len: 0,
                    has_written: false,
                }),
            }
        })
    }
}

/// The lent stdout of a server, with what was read of it and not taken yet.
struct LoanReader<'a> {
    wire: &'a StdioWire,
    reader: MutexGuard<'a, StdoutReader>,
}

#[async_trait]
impl PipeReader for LoanReader<'_> {
    async fn wait_for_input(&mut self) {
        self.wire.wait_for_input(&mut self.reader).await;
    }

    fn close_reason(&self) -> Option<&Error> {
        self.reader.close_reason.as_ref()
    }

    fn each_line(&mut self, take: &mut dyn FnMut(&[u8])) {
        let tracer = &self.wire.tracer;
        let reader = &mut *self.reader;
        let mut from = 0;
        while let Some((end, next)) = line_end(&reader.buffer, reader.scanned) {
            let line = reader.buffer.get(from..end).unwrap_or_default();
            count_nuls(&mut reader.nuls, line);
            if tracer.is_on() {
                tracer.received(&Bytes::copy_from_slice(line), None);
            }
            take(line);
            (from, reader.scanned) = (next, next);
        }
        reader.buffer.advance(from);
        reader.scanned = reader.buffer.len();
        if reader.close_reason.is_some()
            && let Some(line) = reader.last_line()
        {
            take(&line);
        }
    }
}

/// The lent stdin of a server, with what waits to be written.
struct LoanWriter<'a> {
    wire: &'a StdioWire,
    /// Held from the first byte of `lines` to the last.
    stdin: Option<MutexGuard<'a, Option<StdinPipe>>>,
    lines: Vec<u8>,
    written: usize,
    /// How much of `lines` is the rest of a line that the last loan began.
    inherited_len: usize,
    has_written: bool,
}

impl LoanWriter<'_> {
    fn unfinished_line_end(&self) -> usize {
        if self.written < self.inherited_len {
            return self.inherited_len;
        }
        match self.written.checked_sub(1).and_then(|last| self.lines.get(last)) {
            None | Some(b'\n') => self.written,
            Some(_) => {
                let left = self.lines.get(self.written..).unwrap_or_default();
                memchr::memchr(b'\n', left).map_or(self.lines.len(), |end| self.written + end + 1)
            }
        }
    }
}

#[async_trait]
impl PipeWriter for LoanWriter<'_> {
    fn waiting(&self) -> usize {
        self.lines.len() - self.written
    }

    fn is_under_way(&self) -> bool {
        self.written > 0 || self.inherited_len > 0
    }

    fn take_has_written(&mut self) -> bool {
        std::mem::take(&mut self.has_written)
    }

    fn discard_unsent(&mut self) {
        if self.is_under_way() {
            self.lines.truncate(self.unfinished_line_end());
        }
    }

    fn line(&mut self, call: Option<&CallId>, write: &mut dyn FnMut(&mut Vec<u8>)) -> usize {
        let from = self.lines.len();
        write(&mut self.lines);
        let tracer = &self.wire.tracer;
        if tracer.is_on() {
            let line = self.lines.get(from..).unwrap_or_default();
            tracer.sent(&Bytes::copy_from_slice(line), call);
        }
        self.lines.push(b'\n');
        self.lines.len() - from
    }

    async fn write(&mut self) -> Result<(), Error> {
        if self.lines.is_empty() {
            return Ok(());
        }
        if self.stdin.is_none() {
            let mut stdin = self.wire.stdin.lock().await;
            if let Some(stdin) = stdin.as_mut()
                && !stdin.unfinished_line.is_empty()
            {
                // What the last loan left behind goes first.
                self.inherited_len = stdin.unfinished_line.len();
                self.lines.splice(..0, std::mem::take(&mut stdin.unfinished_line));
            }
            self.stdin = Some(stdin);
        }
        let Some(StdinPipe { pipe, .. }) = self.stdin.as_mut().and_then(|stdin| stdin.as_mut())
        else {
            return Err(Error::unreachable("the connection is closed"));
        };
        while let Some(waiting) = self.lines.get(self.written..).filter(|left| !left.is_empty()) {
            match pipe.write(waiting).await {
                Ok(0) => return Err(stdin_not_read_error(&std::io::ErrorKind::WriteZero.into())),
                Ok(written) => {
                    self.written += written;
                    self.has_written = true;
                }
                Err(error) => return Err(stdin_not_read_error(&error)),
            }
        }
        self.lines.clear();
        (self.written, self.inherited_len, self.stdin) = (0, 0, None);
        Ok(())
    }
}

impl Drop for LoanWriter<'_> {
    /// Leaves the rest of a partly written line to the next writer, and discards the lines after it.
    fn drop(&mut self) {
        let begun =
            self.lines.get(self.written..self.unfinished_line_end()).unwrap_or_default().to_vec();
        if let Some(stdin) = self.stdin.as_mut().and_then(|stdin| stdin.as_mut()) {
            stdin.unfinished_line = begun;
        }
    }
}
