//! The Redis engine, shared by several machines.
//!
//! Owns: the connection, and one script for each operation: a script is atomic in Redis, so that
//! conditions and quotas hold against other writers. Never does: repeat what may have happened.
//!
//! All keys start with `toolhost:{component}:`. The clock of the client machine decides whether
//! values have expired, so the machines' clocks should agree.

#[cfg(test)]
pub(in crate::providers) mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError, ServerErrorKind};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::Mutex;

use super::{
    Engine, KeyInfo, KeyPage, StoredValue, TakeOutcome, WriteCondition, WriteOutcome, WriteRequest,
    expiry, millis,
};
use crate::model::Error;
use crate::util::clock::Clock;

/// Bounds connecting, and waiting for one answer.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection that was silent for longer is tried before something is asked that must not be
/// repeated.
const IDLE_BEFORE_PING: Duration = Duration::from_secs(1);

macro_rules! script {
    ($name:literal) => {
        concat!(include_str!("prelude.lua"), include_str!(concat!($name, ".lua")))
    };
}

pub(super) struct RedisEngine {
    url: SecretString,
    host: String,
    prefix: String,
    clock: Arc<dyn Clock>,
    link: Mutex<Option<RedisConnection>>,
}

#[derive(Clone)]
struct RedisConnection {
    connection: MultiplexedConnection,
    used: Instant,
}

impl RedisEngine {
    /// Names the server; it is contacted with the first operation.
    pub(super) fn new(
        url: SecretString,
        host: String,
        component: &str,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let prefix = format!("toolhost:{component}:");
        Self { url, host, prefix, clock, link: Mutex::default() }
    }

    /// The shared connection, reopened if the previous one was lost.
    async fn connection(&self) -> Result<MultiplexedConnection, Error> {
        let mut link = self.link.lock().await;
        let now = self.clock.now();
        if let Some(current) = link.as_mut() {
            let fresh = now.saturating_duration_since(current.used) < IDLE_BEFORE_PING;
            if fresh || redis::cmd("PING").exec_async(&mut current.connection).await.is_ok() {
                current.used = now;
                return Ok(current.connection.clone());
            }
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(RESPONSE_TIMEOUT))
            .set_response_timeout(Some(RESPONSE_TIMEOUT));
        let opened = async {
            Client::open(self.url.expose_secret())?
                .get_multiplexed_async_connection_with_config(&config)
                .await
        };
        // Connecting is several steps, of which each has the deadline of one.
        let connection = match tokio::time::timeout(RESPONSE_TIMEOUT, opened).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(cause)) => return Err(self.error(&cause)),
            Err(_elapsed) => return Err(self.silent()),
        };
        *link = Some(RedisConnection { connection: connection.clone(), used: now });
        Ok(connection)
    }

    async fn run(&self, script: &str, arguments: &[&str]) -> Result<Vec<String>, Error> {
        let mut connection = self.connection().await?;
        let now = millis(self.clock.as_ref()).to_string();
        let mut command = redis::cmd("EVAL");
        command.arg(script).arg(1).arg(&self.prefix).arg(now).arg(arguments);
        match command.query_async(&mut connection).await {
            Ok(answer) => Ok(answer),
            Err(cause) => {
                if cause.is_io_error() || cause.is_unrecoverable_error() {
                    *self.link.lock().await = None;
                }
                Err(self.error(&cause))
            }
        }
    }

    fn silent(&self) -> Error {
        Error::unreachable(format!(
            "redis at {} did not respond within {} s",
            self.host,
            RESPONSE_TIMEOUT.as_secs()
        ))
    }

    fn error(&self, cause: &RedisError) -> Error {
        let host = &self.host;
        // Their text never contains the configured address, and so no password.
        match cause.kind() {
            redis::ErrorKind::AuthenticationFailed => {
                Error::auth(format!("redis at {host} refused the credentials: {cause}"))
                    .with_hint("they are set in 'url' of the entry")
            }
            redis::ErrorKind::Server(ServerErrorKind::NoPerm) => {
                Error::auth(format!("redis at {host} denied permission: {cause}"))
            }
            _ if cause.code() == Some("NOAUTH") => {
                Error::auth(format!("redis at {host} requires credentials"))
                    .with_hint("write them into 'url': redis://user:${PASSWORD}@host:6379")
            }
            _ if cause.is_timeout() => {
                self.silent().with_hint("the operation may still have been performed")
            }
            redis::ErrorKind::Server(_) | redis::ErrorKind::Extension => Error::unreachable(
                format!("redis at {host} could not perform the operation: {cause}"),
            ),
            redis::ErrorKind::Parse | redis::ErrorKind::UnexpectedReturnType => {
                Error::protocol(format!("redis at {host} sent an unexpected response: {cause}"))
            }
            _ => Error::unreachable(format!("redis at {host} cannot be reached: {cause}"))
                .with_hint("is it running, and is its address right?"),
        }
    }

    fn strange(&self, answer: &[String]) -> Error {
        let first = answer.first().map(String::as_str).unwrap_or_default();
        Error::protocol(format!("redis at {} sent an unexpected response: '{first}'", self.host))
    }

    fn number(&self, text: &str) -> Result<u64, Error> {
        text.parse().map_err(|_| self.strange(&[text.to_owned()]))
    }
}

#[async_trait]
impl Engine for RedisEngine {
    async fn read(&self, space: &str, key: &str) -> Result<Option<StoredValue>, Error> {
        let answer = self.run(script!("read"), &[space, key]).await?;
        match <[String; 2]>::try_from(answer) {
            Ok([version, value]) => {
                Ok(Some(StoredValue { version: self.number(&version)?, value }))
            }
            Err(answer) if answer.is_empty() => Ok(None),
            Err(answer) => Err(self.strange(&answer)),
        }
    }

    async fn write(&self, write: WriteRequest) -> Result<WriteOutcome, Error> {
        let condition = match write.condition {
            WriteCondition::Any => "any".to_owned(),
            WriteCondition::Absent => "absent".to_owned(),
            WriteCondition::Version(version) => version.to_string(),
        };
        let expires = expiry(millis(self.clock.as_ref()), write.ttl).unwrap_or_default();
        let arguments = [
            &write.space,
            write.key.as_deref().unwrap_or_default(),
            &write.value,
            &condition,
            &write.quota.keys.to_string(),
            &write.quota.bytes.to_string(),
            &expires.to_string(),
        ];
        let answer = self.run(script!("write"), &arguments).await?;
        let parts: Vec<&str> = answer.iter().map(String::as_str).collect();
        Ok(match parts.as_slice() {
            ["done", key, version] => {
                WriteOutcome::Done { key: (*key).to_owned(), version: self.number(version)? }
            }
            ["conflict", ""] => WriteOutcome::Conflict(None),
            ["conflict", at] => WriteOutcome::Conflict(Some(self.number(at)?)),
            ["keys"] => WriteOutcome::TooManyKeys,
            ["bytes"] => WriteOutcome::TooManyBytes,
            _ => return Err(self.strange(&answer)),
        })
    }

    async fn take(
        &self,
        space: &str,
        key: &str,
        version: Option<u64>,
    ) -> Result<TakeOutcome, Error> {
        let version_text = version.map(|version| version.to_string()).unwrap_or_default();
        let answer = self.run(script!("take"), &[space, key, &version_text]).await?;
        let parts: Vec<&str> = answer.iter().map(String::as_str).collect();
        Ok(match parts.as_slice() {
            ["absent"] => TakeOutcome::Absent,
            ["conflict", at] => TakeOutcome::Conflict(self.number(at)?),
            ["entry", version, value] => TakeOutcome::Removed(StoredValue {
                version: self.number(version)?,
                value: (*value).to_owned(),
            }),
            _ => return Err(self.strange(&answer)),
        })
    }

    async fn page(
        &self,
        space: &str,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<KeyPage, Error> {
        let arguments = [space, prefix, after.unwrap_or_default(), &limit.to_string()];
        let answer = self.run(script!("page"), &arguments).await?;
        let Some((more, items)) = answer.split_first() else { return Err(self.strange(&answer)) };
        let items = items.chunks(3).map(|item| match item {
            [key, version, bytes] => Ok(KeyInfo {
                key: key.clone(),
                version: self.number(version)?,
                bytes: self.number(bytes)?,
            }),
            _ => Err(self.strange(item)),
        });
        Ok(KeyPage { items: items.collect::<Result<_, _>>()?, more: more == "1" })
    }

    async fn clear(&self, space: &str) -> Result<u64, Error> {
        let answer = self.run(script!("clear"), &[space]).await?;
        self.number(answer.first().map(String::as_str).unwrap_or_default())
    }

    async fn spaces(&self, prefix: &str, limit: usize) -> Result<Vec<(String, u64)>, Error> {
        let answer = self.run(script!("spaces"), &[prefix, &limit.to_string()]).await?;
        let pairs = answer.chunks(2).map(|pair| match pair {
            [name, keys] => Ok((name.clone(), self.number(keys)?)),
            _ => Err(self.strange(pair)),
        });
        pairs.collect()
    }

    async fn close(&self) {
        *self.link.lock().await = None;
    }
}
