//! A response that stays open for events, once its head was sent.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;

use bytes::{BufMut as _, Bytes, BytesMut};
use http_body_util::BodyExt as _;
use http_body_util::combinators::BoxBody;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};

use super::WRITE_TIMEOUT;

/// What ends a body in chunks (RFC 9112, 7.1).
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Sends a body chunk by chunk until it ends, the client leaves, or the client reads nothing of it
/// for too long. The connection ends with it.
pub(super) async fn carry<T>(mut io: T, mut body: BoxBody<Bytes, Infallible>)
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        let frame = tokio::select! {
            () = until_gone(&mut io) => return,
            frame = body.frame() => frame,
        };
        let Some(Ok(frame)) = frame else { break };
        let Ok(data) = frame.into_data() else { continue };
        // An empty chunk would be the last one.
        if !data.is_empty() && !send(&mut io, chunk(&data)).await {
            return;
        }
    }
    if send(&mut io, Bytes::from_static(LAST_CHUNK)).await {
        let _closed = tokio::time::timeout(WRITE_TIMEOUT, io.shutdown()).await;
    }
}

fn chunk(data: &[u8]) -> Bytes {
    let head = format!("{:x}\r\n", data.len());
    let mut chunk = BytesMut::with_capacity(head.len() + data.len() + 2);
    chunk.put_slice(head.as_bytes());
    chunk.put_slice(data);
    chunk.put_slice(b"\r\n");
    chunk.freeze()
}

/// Whether the client took all of it.
async fn send<T: AsyncWrite + Unpin>(io: &mut T, mut bytes: Bytes) -> bool {
    while !bytes.is_empty() {
        let written = tokio::time::timeout(WRITE_TIMEOUT, io.write_buf(&mut bytes)).await;
        if !matches!(written, Ok(Ok(1..))) {
            return false;
        }
    }
    matches!(tokio::time::timeout(WRITE_TIMEOUT, io.flush()).await, Ok(Ok(())))
}

/// Waits until the client leaves. What it sends meanwhile is not answered: the head of the answer
/// said that the connection ends with it.
async fn until_gone<T: AsyncRead + Unpin>(io: &mut T) {
    poll_fn(|context| {
        loop {
            let mut space = [0; 64];
            let mut buffer = ReadBuf::new(&mut space);
            let read = std::task::ready!(Pin::new(&mut *io).poll_read(context, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                return std::task::Poll::Ready(());
            }
        }
    })
    .await;
}
