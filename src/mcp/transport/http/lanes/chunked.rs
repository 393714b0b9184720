//! Incremental decoding of the chunked transfer coding (RFC 9112, 7.1).

use httparse::{Status, parse_chunk_size};

/// Bytes of one chunk's size line, extensions included.
const MAX_SIZE_LINE: usize = 4 << 10;
/// Bytes that all trailers together may have.
const MAX_TRAILERS: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum ChunkError {
    /// A chunk does not begin with its size in hexadecimal digits.
    #[error("a chunk has no size")]
    NoSize,
    #[error("the size line of a chunk does not end")]
    EndlessSizeLine,
    #[error("a chunk is longer than announced")]
    TooLong,
    #[error("the trailers do not end")]
    EndlessTrailers,
}

#[derive(Debug, Default)]
pub(super) struct ChunkedDecoder {
    state: ChunkState,
    trailers: usize,
}

#[derive(Debug, Default)]
enum ChunkState {
    #[default]
    Size,
    Data(u64),
    AfterData,
    Trailers,
    Done,
}

impl ChunkedDecoder {
    pub(super) fn is_done(&self) -> bool {
        matches!(self.state, ChunkState::Done)
    }

    /// Takes what it can of `bytes`, gives the content to `content`, and returns how much it took.
    /// What is left is the beginning of something; it is wanted again with more behind it.
    pub(super) fn decode(
        &mut self,
        bytes: &[u8],
        mut content: impl FnMut(&[u8]),
    ) -> Result<usize, ChunkError> {
        let mut at = 0;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            match self.state {
                // The parser takes a line without digits for the last chunk.
                ChunkState::Size if rest.first().is_some_and(|byte| !byte.is_ascii_hexdigit()) => {
                    return Err(ChunkError::NoSize);
                }
                ChunkState::Size => match parse_chunk_size(rest) {
                    Ok(Status::Complete((length, 0))) => {
                        at += length;
                        self.state = ChunkState::Trailers;
                    }
                    Ok(Status::Complete((length, size))) => {
                        at += length;
                        self.state = ChunkState::Data(size);
                    }
                    Ok(Status::Partial) if rest.len() <= MAX_SIZE_LINE => return Ok(at),
                    Ok(Status::Partial) => return Err(ChunkError::EndlessSizeLine),
                    Err(_) => return Err(ChunkError::NoSize),
                },
                ChunkState::Data(left) => {
                    if rest.is_empty() {
                        return Ok(at);
                    }
                    let here = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                    content(rest.get(..here).unwrap_or_default());
                    at += here;
                    let left = left - here as u64;
                    self.state =
                        if left == 0 { ChunkState::AfterData } else { ChunkState::Data(left) };
                }
                ChunkState::AfterData => match rest {
                    [b'\r', b'\n', ..] => {
                        at += 2;
                        self.state = ChunkState::Size;
                    }
                    [] | [b'\r'] => return Ok(at),
                    _ => return Err(ChunkError::TooLong),
                },
                ChunkState::Trailers => {
                    let Some(end) = memchr::memchr(b'\n', rest) else {
                        let fits = self.trailers + rest.len() <= MAX_TRAILERS;
                        return if fits { Ok(at) } else { Err(ChunkError::EndlessTrailers) };
                    };
                    let is_last = matches!(rest.get(..end), Some([] | [b'\r']));
                    at += end + 1;
                    self.trailers += end + 1;
                    if self.trailers > MAX_TRAILERS {
                        return Err(ChunkError::EndlessTrailers);
                    }
                    if is_last {
                        self.state = ChunkState::Done;
                    }
                }
                ChunkState::Done => return Ok(at),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8], step: usize) -> Result<(Vec<u8>, bool, usize), ChunkError> {
        let (mut chunked, mut out, mut held, mut taken) =
            (ChunkedDecoder::default(), Vec::new(), Vec::new(), 0);
        for part in bytes.chunks(step.max(1)) {
            held.extend_from_slice(part);
            let took = chunked.decode(&held, |content| out.extend_from_slice(content))?;
            held.drain(..took);
            taken += took;
        }
        Ok((out, chunked.is_done(), taken))
    }

    #[test]
    fn a_body_is_its_chunks_however_they_come() {
        let body = b"5;name=x\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\nX: y\r\n\r\nHTTP/1.1";
        for step in 1..body.len() {
            let read = read(body, step).unwrap();
            assert_eq!(read, (b"hello world".to_vec(), true, body.len() - 8), "steps of {step}");
        }
    }

    #[test]
    fn a_broken_coding_is_told_from_one_that_goes_on() {
        for broken in ["zz\r\n", "3\r\nabcd\r\n", "\r\n", "fffffffffffffffff\r\n", "-1\r\n"] {
            assert!(read(broken.as_bytes(), 100).is_err(), "{broken:?}");
        }
        for begun in ["", "5", "5\r\nhel", "5\r\nhello\r", "0\r\nX: y\r\n"] {
            assert!(!read(begun.as_bytes(), 100).unwrap().1, "{begun:?}");
        }
    }

    #[test]
    fn what_stands_between_chunks_is_bounded() {
        let long = format!("5;{}", "x".repeat(MAX_SIZE_LINE));
        assert!(read(long.as_bytes(), 1000).is_err());
        let long = format!("0\r\n{}", "X: y\r\n".repeat(MAX_TRAILERS / 6 + 1));
        assert!(read(long.as_bytes(), 1000).is_err());
    }

    proptest! {
        #[test]
        fn what_was_cut_into_chunks_is_put_together(
            pieces in prop::collection::vec("[a-z\r\n]{1,30}", 0..8),
            step in 1_usize..40,
        ) {
            let chunk = |piece: &String| format!("{:x}\r\n{piece}\r\n", piece.len());
            let mut coded = pieces.iter().map(chunk).collect::<Vec<_>>().concat();
            coded.push_str("0\r\n\r\n");
            let (out, done, _) = read(coded.as_bytes(), step).unwrap();
            prop_assert!(done);
            prop_assert_eq!(out, pieces.concat().into_bytes());
        }
    }
}
