//! The load engine: calls of tools at a rate or side by side, and what can be said about them.
//!
//! Owns: what a run is to do ([`plan`]), when each call is made ([`schedule`]), what became of them
//! ([`meter`]), the account of it all ([`report`]), what follows from it ([`compare`], [`baseline`],
//! [`threshold`], [`reading`]) and the forms it is written in ([`json`], [`export`]). Never does:
//! know how calls are carried (`provider::repeat`), ask whether a tool may be called (`host`), or
//! print.
//!
//! Time comes in by a clock, chance by a seed: the same plan on a simulated tool gives the same
//! report.

pub mod account;
pub mod advice;
pub mod arguments;
pub mod baseline;
pub mod brief;
pub mod buckets;
mod carry;
pub mod compare;
pub mod control;
mod course;
pub mod driver;
pub mod environment;
pub mod export;
pub mod findings;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod interval;
pub mod json;
pub mod meter;
mod moments;
pub mod plan;
pub mod reading;
pub mod report;
pub mod run;
pub mod schedule;
pub mod seen;
#[cfg(test)]
pub(crate) mod simulation;
pub mod spelling;
pub mod spread;
pub mod statistic;
mod stock;
pub mod targets;
pub mod template;
pub mod threshold;
pub mod watch;
pub mod words;
