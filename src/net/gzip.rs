//! Bodies that came compressed.

use std::io;
use std::pin::Pin;

use async_compression::tokio::bufread::GzipDecoder;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio_util::io::StreamReader;

use super::plain::PlainBody;

/// The most that is decompressed at once, in bytes.
const PIECE: usize = 8 << 10;

pub(super) struct GzipBody(Pin<Box<dyn AsyncRead + Send>>);

impl GzipBody {
    pub(super) fn new(body: PlainBody) -> Self {
        let pieces = stream::try_unfold(body, |mut body| async move {
            let piece = body.next().await.map_err(io::Error::other)?;
            Ok::<_, io::Error>(piece.map(|piece| (piece, body)))
        });
        let mut decoder = GzipDecoder::new(StreamReader::new(Box::pin(pieces)));
        decoder.multiple_members(true);
        Self(Box::pin(decoder))
    }

    /// The next bytes, `None` at the regular end.
    pub(super) async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let mut piece = BytesMut::with_capacity(PIECE);
        let came = self.0.read_buf(&mut piece).await?;
        Ok((came > 0).then(|| piece.freeze()))
    }
}
