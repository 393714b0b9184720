//! The load engine: calls tools at a fixed rate or concurrency, and analyses the results.
//!
//! Owns: what a run is to do ([`plan`]), when each call is made ([`arrival_schedule`]), what became of them
//! ([`meter`]), the account of it all ([`report`]), what follows from it ([`compare`], [`baseline`],
//! [`threshold`], [`bottlenecks`]) and the forms it is written in ([`json`], [`export`]). Never does:
//! know how calls are carried (`provider::repeat`), ask whether a tool may be called (`host`), or
//! print.
//!
//! Time comes in by a clock, chance by a seed: the same plan on a simulated tool gives the same
//! report.

pub mod argument_lines;
pub mod arguments;
pub mod arrival_schedule;
pub mod baseline;
pub mod bench_result;
pub mod bench_runner;
pub mod bottlenecks;
pub mod buckets;
pub mod caveats;
pub mod compare;
pub mod control;
pub mod distribution;
pub mod driver;
pub mod environment;
pub mod export;
pub mod findings;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod formatting;
pub mod interval;
pub mod json;
pub mod machine_facts;
pub mod meter;
pub mod monitor;
pub mod plan;
pub mod plan_options;
pub mod report;
mod report_builder;
pub mod run_facts;
mod scheduler;
#[cfg(test)]
pub(crate) mod simulation;
pub mod snapshot;
pub mod statistic;
mod step_runner;
pub mod steps;
pub mod summary;
pub mod syntax;
mod target_worker;
pub mod targets;
pub mod threshold;
mod turns;
