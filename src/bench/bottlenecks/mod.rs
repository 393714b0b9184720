//! Explaining in a few sentences what limited a run.

use std::time::Duration;

use super::formatting::per_second;
use super::plan::{LoadModel, OverflowPolicy};
use super::report::{BenchReport, TargetReport, TimelineSlice};
use super::steps;
use crate::util::histogram::Durations;
use crate::util::units::{float, float_len, show_count, show_duration};

/// With more failed calls than this, the times describe only the calls that happened to succeed.
const MANY_FAILURES: f64 = 0.05;
/// Fewer answers than this share of the wanted ones: the rate was not reached.
const MIN_RATE_SHARE: f64 = 0.95;
/// More calls than this share found all places in flight taken: the tool is saturated.
const MANY_QUEUED: f64 = 0.05;
/// Lateness of the generator beyond this share of the median disturbs what is measured.
const LATENESS: f64 = 0.1;
const LONG_TAIL: f64 = 10.0;
/// A first call this many times the median was a cold one.
const COLD: f64 = 10.0;
/// Below this, what a machine needs to wake up two processes is a good part of a call.
const WAKEUP_COST: Duration = Duration::from_micros(200);
/// Medians of the ends of a run that differ by this factor mean that something changed.
const DRIFT_FACTOR: f64 = 1.5;
/// A program of one thread that used more than this share of a processor had no time left.
const BUSY_SHARE: f64 = 0.8;

/// What limits a run: for each target a few sentences, the most important one first.
pub fn find(report: &BenchReport) -> Vec<String> {
    let mut all: Vec<String> = steps::reading(report).into_iter().collect();
    for target in &report.targets {
        let sentences = if target.step.is_some() {
            failures(target).into_iter().chain(long_tail(target)).collect()
        } else {
            of_target(report, target)
        };
        all.extend(sentences.into_iter().map(|sentence| report.about(target, sentence)));
    }
    all
}

fn own_share(report: &BenchReport) -> Option<f64> {
    let elapsed = report.elapsed.as_secs_f64();
    let share = report.generator.cpu?.as_secs_f64() / elapsed;
    (elapsed > 0.0).then(|| share.min(1.0))
}

fn of_target(report: &BenchReport, target: &TargetReport) -> Vec<String> {
    if target.requests == 0 {
        return vec![if target.dropped > 0 {
            format!("No call was made: too many were in flight for all {}.", target.dropped)
        } else {
            "No call was made.".to_owned()
        }];
    }
    let mut sentences = Vec::new();
    sentences.extend(failures(target));
    if target.ok == 0 {
        return sentences;
    }
    sentences.extend(match &report.plan.model {
        LoadModel::Closed { concurrency } => closed_load(report, target, *concurrency),
        LoadModel::Open { arrivals, in_flight, overflow: over } => {
            open_load(report, target, arrivals.rate(), *in_flight, *over)
        }
    });
    sentences.extend(drift(target));
    sentences.extend(long_tail(target));
    sentences.extend(cold_start(target));
    sentences
}

fn failures(target: &TargetReport) -> Option<String> {
    let failed = target.failed_calls();
    let share = float(failed) / float(target.requests);
    // A few are in the table and in the warnings.
    if share <= MANY_FAILURES {
        return None;
    }
    let errors = target.commonest_errors();
    let mostly = errors.first().map_or_else(String::new, |(kind, error)| {
        format!(", mostly '{kind}' ({})", show_count(error.count))
    });
    let unanswered = match target.unanswered {
        0 => String::new(),
        some => format!("; {} had no response at the end", show_count(some)),
    };
    let what = format!(
        "{} of {} calls failed{mostly}{unanswered}",
        show_count(failed),
        show_count(target.requests)
    );
    Some(if target.ok == 0 {
        format!("{what}: no latencies.")
    } else {
        format!("Errors first: {what}. Times cover successful calls only.")
    })
}

fn closed_load(report: &BenchReport, target: &TargetReport, concurrency: usize) -> Vec<String> {
    let Some(mean) = target.service.mean() else { return Vec::new() };
    let middle = target.service.quantile(0.5).unwrap_or(mean);
    // What the same number in flight would give if nothing but the tool took time (Little's law).
    let alone = float_len(concurrency) / mean.as_secs_f64().max(1e-9);
    let busy = target.throughput / alone;
    let mut sentences = Vec::new();
    // Turns give each target a part of the time.
    if report.targets.len() == 1 && busy < 0.7 && target.ok == target.requests {
        sentences.push(format!(
            "Limited by the load generator or the connection: {concurrency} in flight with a mean of \
             {} allow {} calls/s; {} were measured.",
            show_duration(mean),
            per_second(alone),
            per_second(target.throughput)
        ));
    } else if let Some(share) = own_share(report).filter(|share| *share > BUSY_SHARE) {
        sentences.push(format!(
            "Limited by toolhost itself, which used {:.0}% of a processor: {} calls/s are what it can \
             make and read, and the tool may answer more.",
            share * 100.0,
            per_second(target.throughput)
        ));
    } else if concurrency == 1 {
        let where_ = if middle < WAKEUP_COST {
            "so short that scheduling is a large part of it"
        } else {
            "spent in the tool and in transit"
        };
        sentences.push(format!(
            "Limited by latency: one call at a time, each takes {} (median), {where_}. More \
             calls in flight, 2 or 10, show whether that raises the throughput.",
            show_duration(middle)
        ));
    } else {
        sentences.push(format!(
            "Limited by the tool or the connection: all {concurrency} calls in flight waited for it, \
             {} each (median), {} calls/s. If -c {} reaches about the same, the tool is saturated \
             and the rest is queueing; if it reaches less, latency is the limit and a higher -c \
             helps.",
            show_duration(middle),
            per_second(target.throughput),
            (concurrency / 2).max(1)
        ));
        let quickest = target.service.min().unwrap_or(middle);
        if concurrency >= 4 && ratio(middle, quickest) > float_len(concurrency) / 2.0 {
            sentences.push(format!(
                "The fastest call took {}, so most of the median is probably queueing behind other \
                 calls.",
                show_duration(quickest)
            ));
        }
    }
    sentences
}

fn open_load(
    report: &BenchReport,
    target: &TargetReport,
    requested: f64,
    in_flight: usize,
    over: OverflowPolicy,
) -> Vec<String> {
    let mut sentences = Vec::new();
    let (Some(response), Some(service)) =
        (target.response.quantile(0.5), target.service.quantile(0.5))
    else {
        return sentences;
    };
    let made = target.requests + target.dropped;
    let generator = &report.generator;
    // What a queue still held when the run ended waited too.
    let waited = generator.queued + if over == OverflowPolicy::Queue { target.dropped } else { 0 };
    let queued = float(waited) / float(made.max(1)) > MANY_QUEUED;
    if over == OverflowPolicy::Drop && target.dropped > 0 {
        sentences.push(format!(
            "Saturated: {} of {} calls were dropped because {in_flight} were in flight. The tool \
             reaches {} calls/s with {in_flight} in flight.",
            show_count(target.dropped),
            show_count(made),
            per_second(target.throughput)
        ));
    } else if queued {
        let is_short = target.throughput < requested * MIN_RATE_SHARE;
        let wish = if report.targets.len() == 1 && is_short {
            format!(" of {} requested", per_second(requested))
        } else {
            String::new()
        };
        sentences.push(format!(
            "Saturated: calls wait for one of the {in_flight} slots in flight. The median is {} \
             from the intended start, of which the tool takes {}; it reaches {} calls/s{wish}. \
             Either the tool cannot do more, or a -c above {in_flight} would help.",
            show_duration(response),
            show_duration(service),
            per_second(target.throughput)
        ));
    } else if let Some(sentence) = generator_lag(&generator.lag, service) {
        sentences.push(sentence);
    } else {
        sentences.push(format!(
            "Not limited at this rate: calls were sent on time, and at most {} of {in_flight} were \
             in flight. The tool takes {} (median). A higher rate finds the limit.",
            target.peak_in_flight,
            show_duration(service)
        ));
    }
    sentences
}

/// The generator was late although there was room: it is what limits.
fn generator_lag(lag: &Durations, service: Duration) -> Option<String> {
    let late = lag.quantile(0.99)?;
    (ratio(late, service) > LATENESS && late > Duration::from_millis(1)).then(|| {
        format!(
            "Limited by the load generator: 1% of calls were sent {} or more after their intended \
             start although there was room, against a median of {} for the tool. This machine is \
             too busy to generate this load evenly.",
            show_duration(late),
            show_duration(service)
        )
    })
}

/// Whether times at the end differ from those at the start.
fn drift(target: &TargetReport) -> Option<String> {
    let quarter = target.timeline.len() / 4;
    if quarter < 2 {
        return None;
    }
    let median = |slices: &[TimelineSlice]| {
        let response = TimelineSlice::joined(slices)?.response;
        response.quantile(0.5).filter(|_| response.count() >= 50)
    };
    let first = median(target.timeline.get(..quarter)?)?;
    let last = median(target.timeline.get(target.timeline.len() - quarter..)?)?;
    let (direction, factor) =
        if last > first { ("slower", ratio(last, first)) } else { ("faster", ratio(first, last)) };
    (factor > DRIFT_FACTOR).then(|| {
        format!(
            "Calls became {direction} during the run: the median was {} in the first quarter and {} in \
             the last.",
            show_duration(first),
            show_duration(last)
        )
    })
}

fn long_tail(target: &TargetReport) -> Option<String> {
    let (middle, tail) = (target.response.quantile(0.5)?, target.response.quantile(0.99)?);
    (target.response.is_reliable_at(0.99) && ratio(tail, middle) > LONG_TAIL).then(|| {
        format!(
            "Long tail: 1% of calls take {} or more, {:.0} times the median.",
            show_duration(tail),
            ratio(tail, middle)
        )
    })
}

fn cold_start(target: &TargetReport) -> Option<String> {
    let middle = target.service.quantile(0.5)?;
    let connect = target.cold.connect.unwrap_or_default();
    let first = target.cold.first_call.unwrap_or_default();
    let whole = connect + first;
    let dominated = ratio(whole, middle) > COLD && whole > Duration::from_millis(1);
    dominated.then(|| {
        format!(
            "Cold start: connecting took {} and the first call {}, {:.0} times a warm call.",
            show_duration(connect),
            show_duration(first),
            ratio(whole, middle)
        )
    })
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64().max(1e-9)
}

#[cfg(test)]
mod tests;
