//! The calls of a run that are in flight.
//!
//! The lower bits of an id are the slot number of its call; ids whose slot is still taken are
//! skipped. Half of the slots are always free, so few are skipped.

use std::time::Instant;

use crate::mcp::call_template::FIRST_ID;

/// The index that means no slot.
const NO_SLOT: usize = usize::MAX;

/// A call without an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InFlightCall {
    pub id: i64,
    pub ticket: u64,
    /// When it was handed to the wire.
    pub sent: Instant,
    /// How long its request is, in bytes.
    pub bytes: usize,
}

#[derive(Debug)]
pub struct InFlightCalls {
    slots: Vec<CallSlot>,
    next: i64,
    oldest: usize,
    newest: usize,
    /// The oldest of those whose moment of sending is not known yet.
    first_unsent: usize,
    count: usize,
    limit: usize,
}

#[derive(Debug, Clone)]
struct CallSlot {
    call: Option<InFlightCall>,
    older: usize,
    newer: usize,
}

impl InFlightCalls {
    /// None in flight, at most `most` at once; ids from `next` on.
    pub fn new(most: usize, next: i64) -> Self {
        let most = most.max(1);
        let slots = (2 * most).next_power_of_two();
        Self {
            slots: vec![CallSlot { call: None, older: NO_SLOT, newer: NO_SLOT }; slots],
            next: next.max(FIRST_ID),
            oldest: NO_SLOT,
            newest: NO_SLOT,
            first_unsent: NO_SLOT,
            count: 0,
            limit: most,
        }
    }

    /// The id after the newest one.
    pub fn next(&self) -> i64 {
        self.next
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn is_full(&self) -> bool {
        self.count >= self.limit
    }

    pub fn has_issued(&self, id: i64) -> bool {
        (FIRST_ID..self.next).contains(&id)
    }

    fn slot(&self, id: i64) -> usize {
        // Their number is a power of two, and ids are above the first.
        usize::try_from(id - FIRST_ID).unwrap_or(0) & (self.slots.len() - 1)
    }

    pub fn reserve(&mut self) -> i64 {
        while self.slots[self.slot(self.next)].call.is_some() {
            self.next += 1;
        }
        self.next += 1;
        self.next - 1
    }

    /// Adds a call whose id was just [reserved](Self::reserve). `now` is used as its sending time
    /// until that is known.
    pub fn insert(&mut self, id: i64, ticket: u64, bytes: usize, now: Instant) {
        let at = self.slot(id);
        self.slots[at] = CallSlot {
            call: Some(InFlightCall { id, ticket, sent: now, bytes }),
            older: self.newest,
            newer: NO_SLOT,
        };
        match self.newest {
            NO_SLOT => self.oldest = at,
            newest => self.slots[newest].newer = at,
        }
        self.newest = at;
        self.count += 1;
        if self.first_unsent == NO_SLOT {
            self.first_unsent = at;
        }
    }

    /// Those that departed since the last time are sent now.
    pub fn mark_sent(&mut self, now: Instant) {
        let mut at = std::mem::replace(&mut self.first_unsent, NO_SLOT);
        while at != NO_SLOT {
            let slot = &mut self.slots[at];
            if let Some(flight) = &mut slot.call {
                flight.sent = now;
            }
            at = slot.newer;
        }
    }

    /// Takes out the call with this id, if it is in flight.
    pub fn remove(&mut self, id: i64) -> Option<InFlightCall> {
        if !self.has_issued(id) {
            return None;
        }
        let at = self.slot(id);
        self.slots[at].call.filter(|flight| flight.id == id)?;
        self.take(at)
    }

    /// The one that waits longest.
    pub fn oldest(&self) -> Option<&InFlightCall> {
        self.slots.get(self.oldest)?.call.as_ref()
    }

    /// Takes out the one that waits longest.
    pub fn take_oldest(&mut self) -> Option<InFlightCall> {
        self.take(self.oldest)
    }

    fn take(&mut self, at: usize) -> Option<InFlightCall> {
        let slot = self.slots.get_mut(at)?;
        let flight = slot.call.take()?;
        let (older, newer) = (slot.older, slot.newer);
        match older {
            NO_SLOT => self.oldest = newer,
            older => self.slots[older].newer = newer,
        }
        match newer {
            NO_SLOT => self.newest = older,
            newer => self.slots[newer].older = older,
        }
        if self.first_unsent == at {
            self.first_unsent = newer;
        }
        self.count -= 1;
        Some(flight)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::util::clock::{Clock as _, SystemClock};

    fn depart(flights: &mut InFlightCalls, ticket: u64) -> i64 {
        let id = flights.reserve();
        flights.insert(id, ticket, 10, SystemClock.now());
        id
    }

    #[test]
    fn one_that_never_lands_costs_one_slot() {
        let mut flights = InFlightCalls::new(2, FIRST_ID);
        let stuck = depart(&mut flights, 0);
        for ticket in 1..1_000 {
            let id = depart(&mut flights, ticket);
            assert_ne!(id & 3, stuck & 3);
            assert_eq!(flights.remove(id).unwrap().ticket, ticket);
            assert_eq!(flights.remove(id), None);
        }
        assert_eq!(flights.slots.len(), 4);
        assert_eq!(flights.oldest().unwrap().ticket, 0);
        assert_eq!(flights.take_oldest().unwrap().id, stuck);
        assert!(
            flights.has_issued(stuck)
                && !flights.has_issued(flights.next())
                && !flights.has_issued(5)
        );
    }

    #[test]
    fn the_moment_of_sending_is_that_of_the_whole_batch() {
        let mut flights = InFlightCalls::new(4, FIRST_ID);
        let (first, second) = (depart(&mut flights, 0), depart(&mut flights, 1));
        let sent = SystemClock.now() + Duration::from_secs(1);
        flights.mark_sent(sent);
        let third = depart(&mut flights, 2);
        flights.mark_sent(sent + Duration::from_secs(1));
        assert_eq!(flights.remove(second).unwrap().sent, sent);
        assert_eq!(flights.remove(first).unwrap().sent, sent);
        assert_eq!(flights.remove(third).unwrap().sent, sent + Duration::from_secs(1));
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_plain_map(steps in proptest::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..400)) {
            let mut flights = InFlightCalls::new(5, FIRST_ID);
            let mut model = BTreeMap::new();
            let mut ticket = 0;
            for (departs, which) in steps {
                if departs && !flights.is_full() {
                    model.insert(depart(&mut flights, ticket), ticket);
                    ticket += 1;
                } else if !model.is_empty() {
                    let id = *model.keys().nth(which.index(model.len())).unwrap();
                    prop_assert_eq!(flights.remove(id).map(|flight| flight.ticket), model.remove(&id));
                }
                prop_assert_eq!(flights.len(), model.len());
                let oldest = model.iter().next();
                prop_assert_eq!(flights.oldest().map(|f| (f.id, f.ticket)), oldest.map(|(id, t)| (*id, *t)));
            }
        }
    }
}
