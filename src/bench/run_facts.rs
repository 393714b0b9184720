//! A run as facts: its load, its bounds, its end and how well it was kept; and where it was made.

use super::environment::BenchEnvironment;
use super::formatting;
use super::plan::{DEFAULT_DURATION, DEFAULT_REQUESTS, LoadModel, RunLimits, Sharing};
use super::report::{BenchReport, throughput};
use super::summary::LineTone;
use crate::util::units::show_duration;

/// A word, how the rest is meant, and the rest.
type Fact = (&'static str, LineTone, String);

/// What there is to say about the run as a whole.
pub fn facts(report: &BenchReport) -> Vec<Fact> {
    let plan = &report.plan;
    let mut facts = vec![("load", LineTone::Plain, formatting::load(plan))];
    if let Some(sharing) = formatting::sharing(report) {
        facts.push(("sharing", LineTone::Plain, sharing));
    }
    facts.push(bound(report));
    facts.push(("warm-up", LineTone::Plain, formatting::warm_up(report)));
    if let Some(ending) = formatting::ending(report) {
        facts.push(("ended", LineTone::Warning, ending));
    }
    facts.extend(generator(report));
    if let Some(time) = report.generator.cpu {
        let text = format!("toolhost itself used {} of processor time", show_duration(time));
        facts.push(("cost", LineTone::Plain, text));
    }
    facts
}

fn bound(report: &BenchReport) -> Fact {
    let mut bounds = formatting::bounds(&report.plan);
    match report.plan.sharing {
        Sharing::Interleaved { .. } => bounds.push_str(" for each"),
        Sharing::Steps { .. } => bounds.push_str(" for each step"),
        Sharing::Single => {}
    }
    let default_limits =
        RunLimits { requests: Some(DEFAULT_REQUESTS), duration: Some(DEFAULT_DURATION) };
    let text = if report.plan.limits == default_limits {
        format!("{bounds} (default; set with -n and --duration)")
    } else {
        bounds
    };
    ("bounded by", LineTone::Plain, text)
}

/// Whether the load was made as it was meant, which is what an open load is believed for.
fn generator(report: &BenchReport) -> Vec<Fact> {
    let peak: u64 = report.total(|target| target.peak_in_flight);
    let dropped: u64 = report.total(|target| target.dropped);
    let plan = &report.plan;
    let LoadModel::Open { arrivals, .. } = &plan.model else {
        return Vec::new();
    };
    let sent: u64 = report.total(|target| target.requests);
    let achieved = throughput(sent, report.elapsed);
    let mut made = format!(
        "{}/s of {}; {peak} in flight at most",
        formatting::per_second(achieved),
        formatting::arrivals(*arrivals)
    );
    if dropped > 0 {
        made = format!("{made}; {dropped} {}", formatting::dropped_reason(&plan.model));
    }
    if report.generator.queued > 0 {
        made = format!("{made}; {} had to wait", report.generator.queued);
    }
    let lag = &report.generator.lag;
    let mut facts = vec![("made", LineTone::Plain, made)];
    if let (Some(median), Some(high)) = (lag.quantile(0.5), lag.quantile(0.99)) {
        let text = format!(
            "p50 {}, p99 {} after it could be sent; {} of {} more than 1 ms late",
            show_duration(median),
            show_duration(high),
            report.generator.late,
            lag.count()
        );
        facts.push(("sent", LineTone::Plain, text));
    }
    facts
}

/// The machine, the program and the servers.
pub fn machine(environment: &BenchEnvironment) -> Vec<Fact> {
    let mut machine = vec![environment.os.clone()];
    machine.extend(environment.kernel.clone());
    machine.push(environment.architecture.clone());
    if let Some(cpus) = environment.cpus {
        let cpu = environment.cpu.as_deref().map_or_else(String::new, |cpu| format!(" ({cpu})"));
        machine.push(format!("{cpus} cpu{cpu}"));
    }
    let mut facts = vec![
        ("machine", LineTone::Dim, machine.join(", ")),
        ("toolhost", LineTone::Dim, environment.toolhost.clone()),
    ];
    if let Some([load, ..]) = environment.load_before {
        let after = environment
            .load_after
            .map_or_else(String::new, |[after, ..]| format!(", {after:.1} after"));
        facts.push(("load average", LineTone::Dim, format!("{load:.1} before{after}")));
    }
    for server in &environment.servers {
        let names: Vec<&str> =
            [&server.name, &server.version].into_iter().flatten().map(String::as_str).collect();
        let mut text = names.join(" ");
        if let Some(protocol) = &server.protocol {
            let comma = if text.is_empty() { "" } else { ", " };
            text = format!("{text}{comma}protocol {protocol}");
        }
        if let Some(time) = server.cpu {
            let comma = if text.is_empty() { "" } else { ", " };
            text = format!("{text}{comma}{} of processor time", show_duration(time));
        }
        let fact = ("server", LineTone::Dim, text);
        if !fact.2.is_empty() && !facts.contains(&fact) {
            facts.push(fact);
        }
    }
    facts
}
