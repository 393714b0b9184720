//! The load of a run, its bounds, its end and how well it was kept, as text.

use crate::bench::formatting;
use crate::bench::plan::{DEFAULT_DURATION, DEFAULT_REQUESTS, LoadModel, RunLimits, Sharing};
use crate::bench::report::{BenchReport, RunStatus};
use crate::cli::output::SpanStyle;
use crate::util::number::float;
use crate::util::units::show_duration;

type Fact = (&'static str, SpanStyle, String);

/// What there is to say about the run as a whole.
pub(super) fn facts(report: &BenchReport) -> Vec<Fact> {
    let plan = &report.plan;
    let mut facts = vec![("load", SpanStyle::Plain, formatting::model(&plan.model))];
    if let Some(sharing) = formatting::sharing(report) {
        facts.push(("sharing", SpanStyle::Plain, sharing));
    }
    facts.push(bound(report));
    facts.push(("warm-up", SpanStyle::Plain, formatting::warm_up(report)));
    if let Some(ending) = ending(report) {
        facts.push(ending);
    }
    facts.extend(generator(report));
    facts
}

fn bound(report: &BenchReport) -> Fact {
    let mut bounds = formatting::bounds(&report.plan);
    if report.targets.len() > 1 && matches!(report.plan.sharing, Sharing::Interleaved { .. }) {
        bounds.push_str(" for each");
    }
    let default_limits =
        RunLimits { requests: Some(DEFAULT_REQUESTS), duration: Some(DEFAULT_DURATION) };
    let text = if report.plan.limits == default_limits {
        format!("{bounds} (default; set with -n and --duration)")
    } else {
        bounds
    };
    ("bounded by", SpanStyle::Plain, text)
}

fn ending(report: &BenchReport) -> Option<Fact> {
    let text = match report.status {
        RunStatus::Complete => return None,
        RunStatus::Stopped => "stopped early: the figures cover the calls made so far".to_owned(),
        RunStatus::Aborted if report.plan.stop_rules.is_empty() => {
            "ended by a tool error".to_owned()
        }
        RunStatus::Aborted => {
            let rules: Vec<String> =
                report.plan.stop_rules.iter().map(|rule| formatting::stop_rule(*rule)).collect();
            format!("stopped early (after {})", rules.join(" or "))
        }
    };
    Some(("ended", SpanStyle::Warning, text))
}

/// Whether the load was made as it was meant, which is what an open load is believed for.
fn generator(report: &BenchReport) -> Vec<Fact> {
    let peak: u64 = report.targets.iter().map(|target| target.peak_in_flight).sum();
    let dropped: u64 = report.targets.iter().map(|target| target.dropped).sum();
    let plan = &report.plan;
    let LoadModel::Open { arrivals, .. } = &plan.model else {
        return Vec::new();
    };
    let sent: u64 = report.targets.iter().map(|target| target.requests).sum();
    let seconds = report.elapsed.as_secs_f64();
    let achieved = if seconds > 0.0 { float(sent) / seconds } else { 0.0 };
    let mut made = format!(
        "{}/s of {}; {peak} in flight at most",
        formatting::per_second(achieved),
        formatting::arrivals(arrivals)
    );
    if dropped > 0 {
        made = format!("{made}; {dropped} {}", formatting::dropped_reason(&plan.model));
    }
    if report.generator.queued > 0 {
        made = format!("{made}; {} had to wait", report.generator.queued);
    }
    let lag = &report.generator.lag;
    let mut facts = vec![("made", SpanStyle::Plain, made)];
    if let (Some(median), Some(high)) = (lag.quantile(0.5), lag.quantile(0.99)) {
        let text = format!(
            "p50 {}, p99 {} after the moment when it could be; {} of {} more than 1 ms late",
            show_duration(median),
            show_duration(high),
            report.generator.late,
            lag.count()
        );
        facts.push(("sent", SpanStyle::Plain, text));
    }
    facts
}
