//! Opening a dedicated connection, outside of the client's pool.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::{Host, Url};

use super::{errors, lookup, tls};
use crate::model::Error;

/// Makes connections to one place.
pub struct Dialer {
    url: Url,
    socket: Option<PathBuf>,
    connect_timeout: Duration,
    tls: Option<TlsConnector>,
}

/// One connection, encrypted or not.
#[derive(Debug)]
pub enum NetStream {
    /// TCP without TLS, for plain HTTP.
    Tcp(TcpStream),
    TcpTls(Box<TlsStream<TcpStream>>),
    Unix(UnixStream),
    UnixTls(Box<TlsStream<UnixStream>>),
}

impl Dialer {
    /// Connections to the host of `url`, or to `socket` in its place; each is there within `limit`.
    /// With `insecure` certificates are not checked.
    pub fn new(
        url: Url,
        socket: Option<PathBuf>,
        limit: Duration,
        insecure: bool,
    ) -> Result<Self, Error> {
        let tls = (url.scheme() == "https").then(|| tls::connector(insecure)).transpose()?;
        Ok(Self { url, socket, connect_timeout: limit, tls })
    }

    pub fn place(&self) -> errors::Place<'_> {
        errors::Place { url: &self.url, socket: self.socket.as_deref() }
    }

    pub async fn dial(&self) -> Result<NetStream, Error> {
        let made = timeout(self.connect_timeout, Box::pin(self.connect())).await;
        made.unwrap_or_else(|_| Err(errors::connect_timed_out(&self.url, self.connect_timeout)))
    }

    async fn connect(&self) -> Result<NetStream, Error> {
        if let Some(socket) = &self.socket {
            let stream = UnixStream::connect(socket)
                .await
                .map_err(|error| errors::no_connection_over(&error, socket))?;
            return Ok(match self.with_tls(stream).await? {
                Ok(secret) => NetStream::UnixTls(secret),
                Err(stream) => NetStream::Unix(stream),
            });
        }
        let stream = self.connect_tcp().await?;
        // Requests are written whole: there is nothing to gather.
        stream.set_nodelay(true).map_err(|error| errors::no_connection(&error, &self.url))?;
        Ok(match self.with_tls(stream).await? {
            Ok(secret) => NetStream::TcpTls(secret),
            Err(stream) => NetStream::Tcp(stream),
        })
    }

    /// The first of the host's addresses that can be reached.
    async fn connect_tcp(&self) -> Result<TcpStream, Error> {
        let port = self.url.port_or_known_default().unwrap_or(80);
        let addresses: Vec<_> = match self.url.host() {
            Some(Host::Ipv4(ip)) => vec![(ip, port).into()],
            Some(Host::Ipv6(ip)) => vec![(ip, port).into()],
            Some(Host::Domain(name)) => lookup::addresses(name, port)
                .await
                .map_err(|error| errors::host_not_found(&error.to_string(), &self.url))?,
            None => Vec::new(),
        };
        let mut last = io::Error::from(io::ErrorKind::HostUnreachable);
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(errors::no_connection(&last, &self.url))
    }

    async fn with_tls<S>(&self, stream: S) -> Result<Result<Box<TlsStream<S>>, S>, Error>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let Some(tls) = &self.tls else { return Ok(Err(stream)) };
        let host = self.url.host_str().unwrap_or_default();
        let name =
            ServerName::try_from(host.trim_matches(['[', ']']).to_owned()).map_err(|_| {
                errors::host_not_found("it is not a valid name for a certificate", &self.url)
            })?;
        let secret = tls.connect(name, stream).await;
        secret
            .map(|secret| Ok(Box::new(secret)))
            .map_err(|error| errors::no_connection(&error, &self.url))
    }
}

impl AsyncRead for NetStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::TcpTls(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::UnixTls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for NetStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::TcpTls(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::UnixTls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            // What is written is on its way.
            Self::Tcp(_) | Self::Unix(_) => Poll::Ready(Ok(())),
            Self::TcpTls(stream) => Pin::new(stream).poll_flush(cx),
            Self::UnixTls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::TcpTls(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::UnixTls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
