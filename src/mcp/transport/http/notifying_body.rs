//! A request body that reports when sending began, so that a retry is known to be safe; and a guess
//! at the MCP endpoint of a URL without a path.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use url::Url;

/// A request body of known length that calls back when it is first asked for, that is, when a
/// connection stands and the request's head has been written.
pub(super) struct NotifyingBody<F> {
    bytes: Option<Bytes>,
    on_first_poll: Option<F>,
}

impl<F: FnOnce() + Send + Sync + Unpin + 'static> NotifyingBody<F> {
    /// `bytes` as a body that calls `departed` when it is first asked for.
    pub(super) fn body(bytes: Bytes, departed: F) -> reqwest::Body {
        reqwest::Body::wrap(Self { bytes: Some(bytes), on_first_poll: Some(departed) })
    }
}

impl<F: FnOnce() + Unpin> Body for NotifyingBody<F> {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(departed) = self.on_first_poll.take() {
            departed();
        }
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// Where a server without a path in its URL may be found as well.
pub(super) fn mcp_path_guess(url: &Url) -> Option<Url> {
    let bare = matches!(url.path(), "" | "/") && url.query().is_none();
    bare.then(|| {
        let mut guess = url.clone();
        guess.set_path("/mcp");
        guess
    })
}

#[cfg(test)]
mod tests {
    use super::mcp_path_guess;

    #[test]
    fn only_a_url_without_a_path_is_guessed_at() {
        let guess = |url: &str| mcp_path_guess(&url.parse().unwrap()).map(|url| url.to_string());
        assert_eq!(guess("http://localhost:8001"), Some("http://localhost:8001/mcp".to_owned()));
        assert_eq!(guess("http://localhost:8001/"), Some("http://localhost:8001/mcp".to_owned()));
        assert_eq!(guess("http://localhost:8001/api"), None);
        assert_eq!(guess("http://localhost:8001/?key=1"), None);
    }
}
