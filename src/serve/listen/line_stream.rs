//! One message per line, as standard streams and Unix sockets carry them.

use std::io;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};

use super::MAX_MESSAGE;
use super::text_transport::{TextError, TextSink, TextSource};

pub(super) struct LineSource<R> {
    lines: FramedRead<R, LinesCodec>,
}

impl<R: AsyncRead> LineSource<R> {
    pub(super) fn new(input: R) -> Self {
        Self { lines: FramedRead::new(input, LinesCodec::new_with_max_length(MAX_MESSAGE)) }
    }
}

#[async_trait]
impl<R: AsyncRead + Send + Unpin> TextSource for LineSource<R> {
    async fn next(&mut self) -> Option<Result<String, TextError>> {
        loop {
            return match self.lines.next().await? {
                Ok(line) if line.trim().is_empty() => continue,
                Ok(line) => Some(Ok(line)),
                Err(LinesCodecError::MaxLineLengthExceeded) => Some(Err(TextError::TooLong)),
                Err(LinesCodecError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                    Some(Err(TextError::NotText))
                }
                Err(LinesCodecError::Io(_)) => None,
            };
        }
    }
}

pub(super) struct LineSink<W>(pub(super) W);

#[async_trait]
impl<W: AsyncWrite + Send + Unpin> TextSink for LineSink<W> {
    async fn send(&mut self, mut text: String) -> io::Result<()> {
        text.push('\n');
        self.0.write_all(text.as_bytes()).await?;
        self.0.flush().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.0.shutdown().await
    }
}
