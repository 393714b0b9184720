//! What goes over the wire between toolhost and a server, for whoever looks at it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::call::CallId;

/// One thing that crossed a wire, or happened to it, in the order in which it did.
#[derive(Debug, Clone)]
pub struct Traffic {
    /// The server's name in the files.
    pub server: String,
    /// Counts up from 1 for each server in one run, so that a gap can be seen.
    pub sequence: u64,
    /// When, since the Unix epoch.
    pub at: Duration,
    /// The tool call it belongs to, when it belongs to one.
    pub call: Option<CallId>,
    /// What it was.
    pub what: Passed,
}

/// Which way something went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From toolhost to the server.
    Sent,
    /// From the server to toolhost.
    Received,
}

/// What crossed a wire, or happened to it.
#[derive(Debug, Clone)]
pub enum Passed {
    /// A message, or what should have been one.
    Message {
        /// Which way.
        direction: Direction,
        /// Its bytes exactly as they crossed, the line end removed.
        bytes: Bytes,
        /// What it is, as far as a glance tells.
        glance: Glance,
        /// For an answer: how long it took since its request was sent.
        latency: Option<Duration>,
    },
    /// The head of an HTTP request or response. Credentials are replaced before it comes here.
    Head {
        /// Which way.
        direction: Direction,
        /// `POST http://…/mcp` or `200 OK`.
        line: String,
        /// Name and value, in order.
        headers: Vec<(String, String)>,
        /// For a response: how long it took since the request was sent.
        latency: Option<Duration>,
    },
    /// A line on the standard error of a child process.
    Stderr(String),
    /// Something that is no message: a banner on stdout, a comment of an event stream.
    Noise(String),
    /// The wire was opened: the command line or address, without secrets.
    Opened(String),
    /// The wire is gone, and why.
    Closed(String),
}

/// What a message is, without looking deep into it.
#[derive(Debug, Clone, PartialEq)]
pub enum Glance {
    /// A request.
    Request {
        /// Its id.
        id: Value,
        /// Its method.
        method: String,
    },
    /// An answer.
    Answer {
        /// The id it names.
        id: Value,
        /// The method of the request it answers, when that is known.
        method: Option<String>,
        /// Whether it is an error.
        error: bool,
    },
    /// A notification.
    Notification {
        /// Its method.
        method: String,
    },
    /// Nothing that can be told apart.
    Unknown,
}

/// Where traffic is shown or saved. Nobody looks unless somebody asked to: check
/// [`TrafficSink::is_on`] before anything is prepared for it.
#[derive(Clone, Default)]
pub struct TrafficSink {
    deliver: Option<Arc<dyn Fn(Traffic) + Send + Sync>>,
    shutter: Shutter,
}

impl TrafficSink {
    /// A sink that hands each item to `deliver`. It is called in order, on the path of every
    /// message: it must be quick.
    pub fn new(deliver: impl Fn(Traffic) + Send + Sync + 'static) -> Self {
        Self { deliver: Some(Arc::new(deliver)), shutter: Shutter::default() }
    }

    /// A sink that nobody looks at.
    pub fn off() -> Self {
        Self::default()
    }

    /// The same behind a shutter: while that is closed nobody looks.
    #[must_use]
    pub fn behind(self, shutter: Shutter) -> Self {
        Self { shutter, ..self }
    }

    /// What it is behind of.
    pub fn shutter(&self) -> Shutter {
        self.shutter.clone()
    }

    /// Whether anybody ever looks.
    pub fn is_there(&self) -> bool {
        self.deliver.is_some()
    }

    /// Whether anybody looks now.
    pub fn is_on(&self) -> bool {
        self.deliver.is_some() && !self.shutter.is_closed()
    }

    /// Hands one item over.
    pub fn emit(&self, traffic: Traffic) {
        if let Some(deliver) = self.deliver.as_ref().filter(|_| !self.shutter.is_closed()) {
            deliver(traffic);
        }
    }
}

/// Keeps what crosses the wires from being looked at for a while, when each look would cost more
/// than it is worth. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub struct Shutter(Arc<AtomicUsize>);

impl Shutter {
    /// Closes it until what is given back is dropped.
    pub fn close(&self) -> Closed {
        self.0.fetch_add(1, Ordering::Relaxed);
        Closed(self.clone())
    }

    fn is_closed(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

/// Keeps a [`Shutter`] closed.
#[derive(Debug)]
#[must_use]
pub struct Closed(Shutter);

impl Drop for Closed {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for TrafficSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TrafficSink({})", if self.is_on() { "on" } else { "off" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_a_closed_shutter_nobody_looks() {
        let seen = Arc::new(AtomicUsize::new(0));
        let counts = Arc::clone(&seen);
        let shutter = Shutter::default();
        let sink = TrafficSink::new(move |_| {
            counts.fetch_add(1, Ordering::Relaxed);
        });
        let sink = sink.behind(shutter.clone());
        let traffic = || Traffic {
            server: "srv".to_owned(),
            sequence: 1,
            at: Duration::ZERO,
            call: None,
            what: Passed::Stderr("x".to_owned()),
        };
        sink.emit(traffic());
        let (first, second) = (shutter.close(), sink.shutter().close());
        assert!(sink.is_there() && !sink.is_on());
        sink.emit(traffic());
        drop(first);
        assert!(!sink.is_on());
        drop(second);
        assert!(sink.is_on());
        sink.emit(traffic());
        assert_eq!(seen.load(Ordering::Relaxed), 2);
    }
}
