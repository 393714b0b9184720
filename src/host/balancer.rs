//! Choosing among several servers that offer one tool, prompt or resource.
//!
//! A server's `routing_weight` puts it into a tier: 1.0 and more are the primaries; every lower
//! weight is its own tier of backups, higher weights first. Of the highest tier in which some
//! server is available, one is chosen: primaries take turns in proportion to their weights (a
//! smooth weighted round robin, so that the same calls give the same turns), backups of one weight
//! take turns evenly. A server whose circuit is open is not available.
//!
//! Owns: the choice, and the turns that were taken. Never does: contact a server.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::model::ListKind;

/// A server from this weight on is a primary.
const PRIMARY: f64 = 1.0;

/// One server that offers the item.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ServerCandidate<'a> {
    pub(super) server: &'a str,
    pub(super) weight: f64,
    pub(super) available: bool,
}

impl ServerCandidate<'_> {
    /// Its tier; the greatest goes first.
    fn tier(&self) -> f64 {
        self.weight.min(PRIMARY)
    }

    /// Its part of the calls of its tier.
    fn share(&self) -> f64 {
        if self.weight >= PRIMARY { self.weight } else { 1.0 }
    }
}

/// The places of those that may be chosen now: all that are available in the highest tier.
fn candidates(choices: &[ServerCandidate<'_>]) -> Vec<usize> {
    let available = || choices.iter().enumerate().filter(|(_, choice)| choice.available);
    let Some(highest) = available().map(|(_, choice)| choice.tier()).max_by(f64::total_cmp) else {
        return Vec::new();
    };
    let in_it = available().filter(|(_, choice)| choice.tier().total_cmp(&highest).is_eq());
    in_it.map(|(at, _)| at).collect()
}

/// The one to show when nothing is called: the heaviest of the highest tier, of equals the first.
pub(super) fn preferred(choices: &[ServerCandidate<'_>]) -> Option<usize> {
    let weight = |at: &usize| choices.get(*at).map_or(0.0, |choice| choice.weight);
    candidates(choices)
        .into_iter()
        .reduce(|best, next| if weight(&next) > weight(&best) { next } else { best })
}

/// How much each server has earned towards its next turn.
type Credit = HashMap<String, f64>;

/// Something that several servers offer: the list it is on, and its name or address there.
pub(super) type SharedItem<'a> = (ListKind, &'a str);

/// The turns taken so far, for each item.
#[derive(Debug, Default)]
pub(super) struct Balancer(Mutex<HashMap<(ListKind, String), Credit>>);

impl Balancer {
    /// The place of the server that gets the next request for `item`; nothing when none is available.
    pub(super) fn pick(
        &self,
        (list, name): SharedItem<'_>,
        choices: &[ServerCandidate<'_>],
    ) -> Option<usize> {
        let candidates = candidates(choices);
        if candidates.len() < 2 {
            return candidates.first().copied();
        }
        // What several servers offer is on their lists, which are bounded.
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        next_turn(turns.entry((list, name.to_owned())).or_default(), &candidates, choices)
    }
}

/// One turn: every server earns its share; the one with the highest balance is chosen (the first of
/// equals) and pays what all of them earned.
fn next_turn(
    credit: &mut Credit,
    candidates: &[usize],
    choices: &[ServerCandidate<'_>],
) -> Option<usize> {
    let taking_part = || candidates.iter().filter_map(|at| Some((*at, choices.get(*at)?)));
    let total: f64 = taking_part().map(|(_, choice)| choice.share()).sum();
    let mut best: Option<(usize, &str, f64)> = None;
    for (at, choice) in taking_part() {
        let own = credit.entry(choice.server.to_owned()).or_default();
        *own += choice.share();
        if best.is_none_or(|(_, _, most)| *own > most) {
            best = Some((at, choice.server, *own));
        }
    }
    let (at, server, _) = best?;
    *credit.entry(server.to_owned()).or_default() -= total;
    Some(at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn choice(server: &'static str, weight: f64) -> ServerCandidate<'static> {
        ServerCandidate { server, weight, available: true }
    }

    fn picks(choices: &[ServerCandidate<'_>], times: usize) -> String {
        let balance = Balancer::default();
        (0..times)
            .map(|_| choices[balance.pick((ListKind::Tools, "t"), choices).unwrap()].server)
            .collect()
    }

    #[test]
    fn primaries_share_by_weight_and_take_turns_smoothly() {
        assert_eq!(picks(&[choice("a", 1.0), choice("b", 1.0)], 6), "ababab");
        assert_eq!(picks(&[choice("a", 5.0), choice("b", 1.0), choice("c", 1.0)], 7), "aabacaa");
        assert_eq!(picks(&[choice("a", 1.0), choice("b", 1.5)], 5), "babab");
    }

    #[test]
    fn backups_wait_until_no_primary_is_left_and_the_greater_weight_goes_first() {
        let mut all = [choice("z", 0.0), choice("c", 0.2), choice("b", 0.5), choice("a", 1.0)];
        let mut order = String::new();
        for _ in 0..4 {
            let at = Balancer::default().pick((ListKind::Tools, "t"), &all).unwrap();
            assert_eq!(preferred(&all), Some(at));
            order.push_str(all[at].server);
            all[at].available = false;
        }
        assert_eq!(order, "abcz");
        assert_eq!(Balancer::default().pick((ListKind::Tools, "t"), &all), None);
        assert_eq!(picks(&[choice("a", 0.5), choice("b", 0.5)], 4), "abab");
    }

    #[test]
    fn looking_takes_no_turn_and_shows_the_heaviest() {
        let all = [choice("a", 1.0), choice("b", 3.0), choice("c", 3.0)];
        assert_eq!((preferred(&all), preferred(&all)), (Some(1), Some(1)));
    }

    #[test]
    fn each_tool_has_turns_of_its_own() {
        let (balance, all) = (Balancer::default(), [choice("a", 1.0), choice("b", 1.0)]);
        assert_eq!(balance.pick((ListKind::Tools, "one"), &all), Some(0));
        assert_eq!(balance.pick((ListKind::Tools, "two"), &all), Some(0));
        assert_eq!(balance.pick((ListKind::Tools, "one"), &all), Some(1));
    }

    proptest! {
        #[test]
        fn every_primary_gets_its_part_of_a_whole_round(
            weights in prop::collection::vec(1_u32..9, 2..6),
        ) {
            let names = ["a", "b", "c", "d", "e"];
            let all: Vec<_> = weights.iter().zip(names)
                .map(|(weight, name)| choice(name, f64::from(*weight))).collect();
            let round: u32 = weights.iter().sum();
            let picked = picks(&all, round as usize);
            for (weight, name) in weights.iter().zip(names) {
                prop_assert_eq!(picked.matches(name).count(), *weight as usize);
            }
        }

        #[test]
        fn what_is_not_available_is_never_chosen(
            all in prop::collection::vec((0.0_f64..3.0, any::<bool>()), 1..6),
            times in 1_usize..20,
        ) {
            let names = ["a", "b", "c", "d", "e"];
            let all: Vec<_> = all.iter().zip(names)
                .map(|((weight, available), server)| ServerCandidate { server, weight: *weight, available: *available })
                .collect();
            let balance = Balancer::default();
            for _ in 0..times {
                match balance.pick((ListKind::Tools, "t"), &all) {
                    Some(at) => prop_assert!(all[at].available),
                    None => prop_assert!(all.iter().all(|choice| !choice.available)),
                }
            }
        }
    }
}
