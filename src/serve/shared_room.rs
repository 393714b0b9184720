//! How much memory the messages of clients may take from their arrival to their answers.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const BYTES: (usize, usize) = (128 << 20, 16 << 20);
/// The same for their values. As a tree one takes about a hundred bytes, several times over until a call
/// has begun.
const VALUES: (usize, usize) = (1_600_000, 200_000);
const MAX_VALUES: usize = 100_000;
/// What an object counts for: as a tree it takes as much as several other values.
const OBJECT: usize = 4;
/// Messages of fewer bytes and values take no room: there is a limit on their number.
pub(super) const SMALL: usize = 8 << 10;
const FEW_VALUES: usize = 1_000;
/// A message of more bytes is parsed where it does not delay others.
pub(super) const LARGE: usize = 64 << 10;
/// With more bytes or values its call is made there too. There is room for fewer of those than there are
/// threads.
const HEAVY: (usize, usize) = (1 << 20, 16_000);

/// Room of one kind: that of all clients, and of it the share of one token.
#[derive(Debug, Clone)]
pub(super) struct SharedRoom {
    all: Arc<Semaphore>,
    own: Arc<Semaphore>,
    share: usize,
}

#[derive(Debug)]
pub(super) struct TakenRoom {
    own: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl SharedRoom {
    pub(super) fn new((all, share): (usize, usize)) -> Self {
        Self { all: Arc::new(Semaphore::new(all)), own: Arc::new(Semaphore::new(share)), share }
    }

    pub(super) fn of_one_token(&self) -> Self {
        Self { own: Arc::new(Semaphore::new(self.share)), ..self.clone() }
    }

    pub(super) fn try_take(&self, count: usize) -> Option<TakenRoom> {
        let count = u32::try_from(count).ok()?;
        let own = Arc::clone(&self.own).try_acquire_many_owned(count).ok()?;
        let of_all = Arc::clone(&self.all).try_acquire_many_owned(count).ok()?;
        Some(TakenRoom { own, _of_all: of_all })
    }

    /// Waits for room; `None` for more than a token may ever have.
    pub(super) async fn take(&self, count: usize) -> Option<TakenRoom> {
        let count = u32::try_from(count).ok().filter(|_| count <= self.share)?;
        let own = Arc::clone(&self.own).acquire_many_owned(count).await.ok()?;
        let of_all = Arc::clone(&self.all).acquire_many_owned(count).await.ok()?;
        Some(TakenRoom { own, _of_all: of_all })
    }
}

#[derive(Debug, Clone)]
pub(super) struct MessageRoom {
    bytes: SharedRoom,
    values: SharedRoom,
}

/// The room of one message, from its arrival until nothing of it is needed.
#[derive(Debug, Default)]
pub(super) struct MessagePlace {
    bytes: Option<TakenRoom>,
    values: Option<TakenRoom>,
}

impl MessagePlace {
    /// Whether to look at everything in the message takes long enough to delay others.
    pub(super) fn is_heavy(&self) -> bool {
        let permits =
            |room: &Option<TakenRoom>| room.as_ref().map_or(0, |room| room.own.num_permits());
        permits(&self.bytes) > HEAVY.0 || permits(&self.values) > HEAVY.1
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoRoom {
    /// It is never taken.
    #[error("messages are limited to {MAX_VALUES} values, of which an object counts for {OBJECT}")]
    TooManyValues,
    #[error("too many large requests of this client are running; wait for one to end")]
    Full,
}

impl MessageRoom {
    pub(super) fn new() -> Self {
        Self { bytes: SharedRoom::new(BYTES), values: SharedRoom::new(VALUES) }
    }

    pub(super) fn of_one_token(&self) -> Self {
        Self { bytes: self.bytes.of_one_token(), values: self.values.of_one_token() }
    }

    pub(super) async fn place(&self, bytes: usize) -> MessagePlace {
        let bytes = if bytes > SMALL { self.bytes.take(bytes).await } else { None };
        MessagePlace { bytes, values: None }
    }

    /// The room of a message of so many bytes that is being read, if there is so much.
    pub(super) fn try_bytes(&self, bytes: usize) -> Option<TakenRoom> {
        self.bytes.try_take(bytes)
    }

    pub(super) async fn parse_place(
        &self,
        place: &mut MessagePlace,
        message: &Bytes,
    ) -> Result<(), NoRoom> {
        let values = if message.len() > LARGE {
            let message = message.clone();
            let counting = tokio::task::spawn_blocking(move || values(&message));
            counting.await.map_err(|_aborted| NoRoom::Full)??
        } else {
            values(message)?
        };
        if values > FEW_VALUES {
            place.values = self.values.take(values).await;
        }
        Ok(())
    }

    /// The room of a message that was read, from a client that must not be kept waiting: the next thing it
    /// sends may be what ends another of its requests.
    pub(super) fn try_place(&self, message: &[u8]) -> Result<MessagePlace, NoRoom> {
        let values = values(message)?;
        let take = |room: &SharedRoom, count: usize, small: usize| {
            let room_taken = (count > small).then(|| room.try_take(count).ok_or(NoRoom::Full));
            room_taken.transpose()
        };
        Ok(MessagePlace {
            bytes: take(&self.bytes, message.len(), SMALL)?,
            values: take(&self.values, values, FEW_VALUES)?,
        })
    }
}

/// What the values in a message count for, found without parsing it: each follows an opening bracket,
/// a comma or a colon, and a colon comes with one of the others.
fn values(message: &[u8]) -> Result<usize, NoRoom> {
    if message.len() <= FEW_VALUES {
        return Ok(0);
    }
    let (mut values, mut in_text, mut is_escaped) = (0, false, false);
    for byte in message {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_text,
            b'"' => in_text = !in_text,
            b'[' | b',' if !in_text => values += 1,
            b'{' if !in_text => values += OBJECT,
            _ => {}
        }
    }
    if values > MAX_VALUES { Err(NoRoom::TooManyValues) } else { Ok(values) }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn values_are_counted_and_brackets_in_texts_are_not() {
        let text = format!("[\"{}\\\"[{{,\"]", "[{,".repeat(1_000));
        assert_eq!(values(text.as_bytes()), Ok(1));
        let objects = format!("[{}1]", r#"{"a":[1]},"#.repeat(500));
        assert_eq!(values(objects.as_bytes()), Ok(1 + 500 * (OBJECT + 2)));
        let many = "1,".repeat(MAX_VALUES + 1);
        assert_eq!(values(many.as_bytes()), Err(NoRoom::TooManyValues));
        assert_eq!(values(&many.as_bytes()[2..]), Ok(MAX_VALUES));
    }

    #[test]
    fn one_token_takes_its_share_and_leaves_the_rest_to_others() {
        let room = SharedRoom::new((10, 6));
        let first = room.try_take(5).unwrap();
        assert!(
            room.try_take(2).is_none()
                && room.take(7).now_or_never().is_some_and(|taken| taken.is_none())
        );
        let other = room.of_one_token();
        let second = other.try_take(5).unwrap();
        assert!(room.try_take(1).is_none() && other.take(1).now_or_never().is_none());
        drop(first);
        assert!(room.try_take(5).is_some() && other.try_take(1).is_some());
        drop(second);
    }

    #[test]
    fn what_is_parsed_keeps_its_room_until_it_is_answered() {
        let room = MessageRoom::new();
        let message = format!("[{}]", "1,".repeat(MAX_VALUES - 1));
        let held: Vec<_> = (0..2).map(|_| room.try_place(message.as_bytes()).unwrap()).collect();
        assert_eq!(room.try_place(message.as_bytes()).err(), Some(NoRoom::Full));
        assert!(held.iter().all(MessagePlace::is_heavy));
        assert!(!room.try_place(b"[1,2]").unwrap().is_heavy());
        assert!(
            room.try_place(b"[1,2]").is_ok()
                && room.of_one_token().try_place(message.as_bytes()).is_ok()
        );
        drop(held);
        assert!(room.try_place(message.as_bytes()).is_ok());
    }
}
