//! HTTP/1.1 over connections of our own, without TLS and without a proxy.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use hyper::body::{Body as _, Frame, Incoming};
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper::header::{ACCEPT_ENCODING, HOST, HeaderMap, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response, Uri};
use hyper_util::rt::TokioIo;
use url::{Position, Url};

use super::address::host_and_port;
use super::client::{self, HEADER_LINES};
use super::dial::{Dialer, NetStream};
use super::errors;
use super::idle_connections::IdleConnections;
use super::posted_body::PostedBody;
use crate::model::Error;

/// How many pieces of a body that is not read are skipped to keep its connection.
const MAX_UNREAD_PIECES: usize = 4;

/// Asks one origin for everything.
pub(super) struct PlainClient {
    dialer: Dialer,
    /// What every request carries, unless it says otherwise itself.
    headers: HeaderMap,
    idle: Arc<IdleConnections<Box<PlainConnection>>>,
}

/// A connection that does nothing unless it is polled.
struct PlainConnection {
    sender: SendRequest<PostedBody>,
    /// What reads and writes, until the connection ends.
    driver: Option<Connection<TokioIo<NetStream>, PostedBody>>,
}

/// The body of a response; dropped before its end came, it ends the connection.
pub(super) struct PlainBody {
    incoming: Incoming,
    connection: Option<Box<PlainConnection>>,
    idle: Arc<IdleConnections<Box<PlainConnection>>>,
}

/// Why a request got no response.
enum ExchangeError {
    /// Nothing of it was sent: here it is.
    Unsent(Box<Request<PostedBody>>, hyper::Error),
    Failed(hyper::Error),
}

impl PlainClient {
    /// A client that connects by `dialer`; `headers` go with every request to `url`'s origin.
    pub(super) fn new(dialer: Dialer, url: &Url, mut headers: HeaderMap) -> Self {
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(client::USER_AGENT));
        headers.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("gzip"));
        let host = url.host_str().unwrap_or_default();
        let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        headers.extend(HeaderValue::try_from(host).ok().map(|host| (HOST, host)));
        Self { dialer, headers, idle: IdleConnections::new(client::IDLE_TIMEOUT) }
    }

    pub(super) async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: &HeaderMap,
        body: PostedBody,
    ) -> Result<Response<PlainBody>, Error> {
        let mut request = self.request(method, url, headers, body)?;
        loop {
            let (connection, is_new) = match self.idle.take() {
                Some(connection) => (connection, false),
                None => (PlainConnection::open(&self.dialer).await?, true),
            };
            match connection.exchange(request).await {
                Ok((response, connection)) => {
                    return Ok(response.map(|body| PlainBody::new(body, connection, &self.idle)));
                }
                // It had ended while it was idle.
                Err(ExchangeError::Unsent(unsent, _)) if !is_new => request = *unsent,
                Err(ExchangeError::Unsent(_, error) | ExchangeError::Failed(error)) => {
                    return Err(errors::broken_exchange(&error, &self.dialer.place()));
                }
            }
        }
    }

    fn request(
        &self,
        method: Method,
        url: &Url,
        headers_of_call: &HeaderMap,
        body: PostedBody,
    ) -> Result<Request<PostedBody>, Error> {
        let target = &url[Position::BeforePath..Position::AfterQuery];
        let target = Uri::try_from(target).map_err(|cause| {
            Error::config(format!("cannot send requests to {}: {cause}", host_and_port(url)))
        })?;
        let mut headers = HeaderMap::with_capacity(self.headers.len() + headers_of_call.len());
        let own = self.headers.iter().filter(|(name, _)| !headers_of_call.contains_key(*name));
        for (name, value) in headers_of_call.iter().chain(own) {
            headers.append(name.clone(), value.clone());
        }
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = target;
        *request.headers_mut() = headers;
        Ok(request)
    }
}

impl PlainConnection {
    async fn open(dialer: &Dialer) -> Result<Box<Self>, Error> {
        let stream = TokioIo::new(dialer.dial().await?);
        let opened = http1::Builder::new().max_headers(HEADER_LINES).handshake(stream).await;
        let (sender, driver) =
            opened.map_err(|error| errors::broken_exchange(&error, &dialer.place()))?;
        Ok(Box::new(Self { sender, driver: Some(driver) }))
    }

    /// Sends a request and waits for the head of its response.
    async fn exchange(
        mut self: Box<Self>,
        request: Request<PostedBody>,
    ) -> Result<(Response<Incoming>, Box<Self>), ExchangeError> {
        let mut answer = pin!(self.sender.try_send_request(request));
        let answered = poll_fn(|cx| {
            self.drive(cx);
            answer.as_mut().poll(cx)
        });
        match answered.await {
            Ok(response) => Ok((response, self)),
            Err(mut error) => Err(match error.take_message() {
                Some(request) => ExchangeError::Unsent(Box::new(request), error.into_error()),
                None => ExchangeError::Failed(error.into_error()),
            }),
        }
    }

    /// Lets the connection make progress. What it breaks with is heard by who waits for a response
    /// or a body.
    fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && Pin::new(driver).poll(cx).is_ready()
        {
            self.driver = None;
        }
    }

    /// Whether another request can be sent.
    fn is_ready(&self) -> bool {
        self.driver.is_some() && self.sender.is_ready()
    }
}

impl PlainBody {
    fn new(
        incoming: Incoming,
        connection: Box<PlainConnection>,
        idle: &Arc<IdleConnections<Box<PlainConnection>>>,
    ) -> Self {
        let mut body = Self { incoming, connection: Some(connection), idle: Arc::clone(idle) };
        if body.incoming.is_end_stream() {
            body.release(None);
        }
        body
    }

    /// The announced length in bytes, when there is one.
    pub(super) fn content_length(&self) -> Option<u64> {
        self.incoming.size_hint().exact()
    }

    /// The next bytes, `None` at the regular end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, hyper::Error> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, hyper::Error>> {
        loop {
            let mut frame = Pin::new(&mut self.incoming).poll_frame(cx);
            if frame.is_pending()
                && let Some(connection) = &mut self.connection
            {
                connection.drive(cx);
                frame = Pin::new(&mut self.incoming).poll_frame(cx);
            }
            let frame = match frame {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                Poll::Ready(Some(Ok(frame))) => Some(frame),
                Poll::Ready(None) => None,
            };
            if frame.is_none() || self.incoming.is_end_stream() {
                self.release(Some(cx));
            }
            // Trailers say nothing here.
            match frame.map(Frame::into_data) {
                None => return Poll::Ready(Ok(None)),
                Some(Ok(bytes)) => return Poll::Ready(Ok(Some(bytes))),
                Some(Err(_)) => {}
            }
        }
    }

    /// Gives the connection back after the end of the body, if it can be used again.
    fn release(&mut self, cx: Option<&mut Context<'_>>) {
        let Some(mut connection) = self.connection.take() else { return };
        if let Some(cx) = cx
            && !connection.is_ready()
        {
            // It has yet to notice that the body is over.
            connection.drive(cx);
        }
        if connection.is_ready() {
            self.idle.put(connection);
        }
    }
}

impl Drop for PlainBody {
    /// A body that is not read is mostly empty, and its end is here already: then its connection
    /// can be used again.
    fn drop(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..MAX_UNREAD_PIECES {
            if self.connection.is_none()
                || !matches!(self.poll_next(&mut cx), Poll::Ready(Ok(Some(_))))
            {
                return;
            }
        }
    }
}
