//! Tests against a real `redis-server`.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use super::RedisEngine;
use crate::model::ErrorKind;
use crate::providers::engines::Engine;
use crate::util::clock::{Clock, SystemClock};

/// A server on a port of its own that keeps nothing; it ends with the test.
pub(in crate::providers) struct RedisTestServer {
    child: Child,
    port: u16,
    _dir: tempfile::TempDir,
}

impl RedisTestServer {
    /// Starts one; `None`, and a loud line, where the program is not installed.
    pub(in crate::providers) fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    fn start_with(more: &[&str]) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let started = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .args(["--appendonly", "no", "--dir", dir.path().to_str().unwrap()])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = match started {
            Ok(child) => child,
            Err(error) => {
                crate::util::skipped::left_out(&format!(
                    "nothing about redis was tested: redis-server: {error}"
                ));
                return None;
            }
        };
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(
            lines.any(|line| line.unwrap().contains("eady to accept connections")),
            "redis-server ended: {:?}",
            child.wait()
        );
        // It blocks on a full pipe otherwise.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Self { child, port, _dir: dir })
    }

    pub(in crate::providers) fn engine(
        &self,
        component: &str,
        clock: Arc<dyn Clock>,
    ) -> Arc<dyn Engine> {
        Arc::new(self.remote("", component, clock))
    }

    /// Its address, as an entry writes it.
    pub(in crate::providers) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    fn remote(&self, user: &str, component: &str, clock: Arc<dyn Clock>) -> RedisEngine {
        let host = format!("127.0.0.1:{}", self.port);
        RedisEngine::new(format!("redis://{user}{host}/0").into(), host, component, clock)
    }
}

impl Drop for RedisTestServer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_without_the_password() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let host = format!("127.0.0.1:{port}");
    let url = format!("redis://me:hunter2@{host}/0");
    let remote = RedisEngine::new(url.into(), host.clone(), "c", Arc::new(SystemClock));
    let error = remote.read("s", "k").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(error.message().contains(&host), "{error}");
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
}

#[tokio::test]
async fn credentials_are_asked_for_and_refused_as_such() {
    let Some(server) = RedisTestServer::start_with(&["--requirepass", "hunter2"]) else { return };
    for user in ["", ":wrong-one@"] {
        let remote = server.remote(user, "c", Arc::new(SystemClock));
        let error = remote.read("s", "k").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Auth, "{error}");
        assert!(!format!("{error:?}").contains("wrong-one"), "{error:?}");
    }
    let remote = server.remote(":hunter2@", "c", Arc::new(SystemClock));
    assert_eq!(remote.read("s", "k").await.unwrap(), None);
}

#[tokio::test]
async fn a_server_that_comes_back_is_used_again() {
    let Some(mut server) = RedisTestServer::start() else { return };
    let remote = server.remote("", "c", Arc::new(SystemClock));
    assert_eq!(remote.read("s", "k").await.unwrap(), None);
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let error = remote.read("s", "k").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    let port = server.port.to_string();
    let Some(_again) = RedisTestServer::start_with(&["--port", &port]) else { return };
    assert_eq!(remote.read("s", "k").await.unwrap(), None);
}
