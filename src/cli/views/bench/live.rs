//! A run while it goes on, in a few lines or in one.
//!
//! Owns: what is looked at ([`Seen`]) and how it is drawn. Looking holds the lock of each meter for
//! a moment; drawing holds none.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::shape::{self, Spread};
use super::{target, words};
use crate::bench::meter::Meter;
use crate::bench::plan::{Bounds, Plan, Sharing};
use crate::bench::watch::{Phase, Watch};
use crate::cli::output::{Label, Line, Page};
use crate::util::units::show_duration;

/// The widest it gets: longer lines are not read faster.
const WIDEST: usize = 100;
/// Cells of the name in front of the figures of one of several tools.
const NAME: usize = 16;
/// From this width on things stand beside each other.
const WIDE: usize = 60;
/// The most cells that show the rate over time.
const LONGEST_COURSE: usize = 40;
/// Cells that show how the times are spread.
const SHAPE: usize = 24;
/// Kinds of failures that are told apart while it runs.
const KINDS: usize = 3;

/// What is seen of a run at one moment.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Where it is.
    pub phase: Phase,
    /// Since the first call that counts.
    pub elapsed: Duration,
    /// How much of it is done, as far as it is known, from 0 to 1.
    pub share: Option<f64>,
    /// The round that runs, and how many there are.
    pub round: Option<(u32, u32)>,
    /// What became of the calls of each tool so far.
    pub targets: Vec<SeenTarget>,
}

/// What is seen of one tool.
#[derive(Debug, Clone, Default)]
pub struct SeenTarget {
    name: String,
    warm_up: u64,
    requests: u64,
    ok: u64,
    failed: u64,
    dropped: u64,
    in_flight: u64,
    kinds: Vec<(String, u64)>,
    times: Option<[Duration; 3]>,
    rates: Vec<f64>,
    spread: String,
    ends: Option<(Duration, Duration)>,
}

impl Seen {
    /// Looks at a run.
    pub fn of(watch: &Watch, plan: &Plan, now: Instant) -> Self {
        let stage = watch.stage();
        let (phase, round, since) = (stage.phase, stage.round, stage.began);
        let meters = stage.targets.clone();
        drop(stage);
        let mut targets = Vec::new();
        // In turns the stage knows the beginning of this turn; the run began with the first one.
        let mut began = None;
        for (name, meter) in meters {
            let meter = meter.lock().unwrap_or_else(PoisonError::into_inner);
            began = meter.began.into_iter().chain(began).min();
            let elapsed =
                meter.began.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
            targets.push(SeenTarget::of(name, &meter, elapsed));
        }
        let began = began.or(since);
        let elapsed = began.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        let made = targets.iter().map(|target| target.requests + target.dropped).sum();
        let share = began.and_then(|_| share(&bounds(plan, targets.len()), elapsed, made));
        Self { phase, elapsed, share, round, targets }
    }

    fn answered(&self) -> u64 {
        self.targets.iter().map(|target| target.ok).sum()
    }

    fn failed(&self) -> u64 {
        self.targets.iter().map(|target| target.failed).sum()
    }

    fn in_flight(&self) -> u64 {
        self.targets.iter().map(|target| target.in_flight).sum()
    }

    fn rate(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "counts of calls")]
        let answered = self.answered() as f64;
        if seconds > 0.0 { answered / seconds } else { 0.0 }
    }
}

/// What bounds the whole run: in turns each target has the whole plan.
fn bounds(plan: &Plan, targets: usize) -> Bounds {
    let times = match plan.sharing {
        Sharing::Turns { .. } => u32::try_from(targets.max(1)).unwrap_or(1),
        Sharing::Mixed => 1,
    };
    Bounds {
        requests: plan.until.requests.map(|all| all.saturating_mul(times.into())),
        duration: plan.until.duration.map(|all| all.saturating_mul(times)),
    }
}

/// How much is done: of the calls or of the time, whatever ends first.
fn share(until: &Bounds, elapsed: Duration, made: u64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "counts of calls")]
    let calls = until.requests.map(|all| made as f64 / all.max(1) as f64);
    let time = until.duration.map(|all| elapsed.as_secs_f64() / all.as_secs_f64().max(1e-9));
    let most = calls.into_iter().chain(time).fold(f64::NAN, f64::max);
    (!most.is_nan()).then(|| most.clamp(0.0, 1.0))
}

impl SeenTarget {
    fn of(name: String, meter: &Meter, elapsed: Duration) -> Self {
        let times = &meter.response;
        let quantiles = [0.5, 0.9, 0.99].map(|share| times.quantile(share));
        let mut kinds: Vec<(String, u64)> =
            meter.errors_by_kind.iter().map(|(kind, error)| (kind.clone(), error.count)).collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Self {
            name,
            warm_up: meter.warm_up,
            requests: meter.requests,
            ok: meter.ok,
            failed: meter.failures(),
            dropped: meter.dropped,
            in_flight: meter.in_flight,
            kinds,
            times: match quantiles {
                [Some(p50), Some(p90), Some(p99)] => Some([p50, p90, p99]),
                _ => None,
            },
            rates: target::rates(meter.timeline(), elapsed),
            spread: shape::spread(times, SHAPE).as_ref().map(Spread::line).unwrap_or_default(),
            ends: times.min().zip(times.quantile(0.999)),
        }
    }
}

/// The run as a block of lines, for a screen so many cells wide.
pub fn block(seen: &Seen, plan: &Plan, width: usize) -> Page {
    let width = width.min(WIDEST);
    let mut lines = vec![title(seen, plan)];
    if seen.share.is_some() || seen.phase == Phase::Measuring {
        lines.push(progress(seen, plan, width));
        lines.push(sums(seen));
    }
    let several = seen.targets.len() > 1;
    // In a narrow place a name stands above its figures, else beside them.
    let beside = several && width >= WIDE;
    for target in seen.targets.iter().filter(|target| target.ok + target.failed > 0) {
        if several && !beside {
            lines.push(Line::of(Label::Name, &target.name));
        }
        let room = if beside { width - NAME - 1 } else { width };
        let mut figures = vec![times(target), course(target, room)];
        if !target.kinds.is_empty() {
            figures.push(kinds(target));
        }
        for (index, figures) in figures.into_iter().enumerate() {
            let name = if index == 0 { target.name.as_str() } else { "" };
            let mut line = Line::default();
            if beside {
                line = Line::of(Label::Name, name).cut(NAME);
                line.pad_to(NAME + 1);
            }
            line.append(figures);
            lines.push(line);
        }
    }
    let mut page = Page::default();
    for line in lines {
        page.push(line.cut(width));
    }
    page
}

fn title(seen: &Seen, plan: &Plan) -> Line {
    let made: u64 = seen.targets.iter().map(|target| target.warm_up).sum();
    let doing = match seen.phase {
        Phase::Connecting => "connecting".to_owned(),
        Phase::WarmUp => format!("warming up, {} made", words::calls(made)),
        Phase::Measuring => "measuring".to_owned(),
        Phase::Draining => format!("waiting for the last {}", words::calls(seen.in_flight())),
        Phase::Over => "done".to_owned(),
    };
    let mut line = Line::default();
    if let [only] = seen.targets.as_slice() {
        line = Line::of(Label::Name, &only.name).then(Label::Plain, "  ");
    }
    line.push(Label::Heading, doing);
    if let Some((round, rounds)) = seen.round {
        line.push(Label::Plain, format!(", round {round} of {rounds}"));
    }
    let mut of = show_duration(seen.elapsed);
    if let Some(all) = bounds(plan, seen.targets.len()).duration {
        of = format!("{of} of {}", show_duration(all));
    }
    line.then(Label::Dim, format!("  {of}"))
}

fn progress(seen: &Seen, plan: &Plan, width: usize) -> Line {
    let made: u64 = seen.targets.iter().map(|target| target.requests + target.dropped).sum();
    let of = match bounds(plan, seen.targets.len()).requests {
        Some(all) => format!("{made} of {}", words::calls(all)),
        None => words::calls(made),
    };
    let Some(share) = seen.share else { return Line::plain(of) };
    let tail = format!(" {:>3.0} %  {of}", share * 100.0);
    let room = width.saturating_sub(tail.len() + 3);
    if room < 8 {
        return Line::plain(tail.trim_start());
    }
    let full = shape::filled(share, room);
    Line::of(Label::Good, format!("[{}", "#".repeat(full)))
        .then(Label::Dim, ".".repeat(room - full))
        .then(Label::Good, "]")
        .then(Label::Plain, tail)
}

fn sums(seen: &Seen) -> Line {
    let mut line = Line::plain(format!("{}/s answered", words::per_second(seen.rate())));
    line.push(Label::Dim, format!("  {} in flight", seen.in_flight()));
    let failed = seen.failed();
    let label = if failed > 0 { Label::Error } else { Label::Dim };
    line.push(label, format!("  {failed} failed"));
    let dropped: u64 = seen.targets.iter().map(|target| target.dropped).sum();
    if dropped > 0 {
        line.push(Label::Warning, format!("  {dropped} dropped"));
    }
    line
}

fn times(target: &SeenTarget) -> Line {
    let Some(times) = target.times else { return Line::of(Label::Dim, "no answer yet") };
    let mut line = Line::default();
    for (name, time) in ["p50", "p90", "p99"].into_iter().zip(times) {
        line.push(Label::Dim, format!("{name} "));
        line.push(Label::Plain, format!("{:<9}", show_duration(time)));
    }
    line
}

/// The rate over time, and the shape of the times beside it when there is room.
fn course(target: &SeenTarget, width: usize) -> Line {
    let shape = target.ends.filter(|_| width >= WIDE).map(|(from, to)| {
        Line::of(Label::Dim, format!("{} ", show_duration(from)))
            .then(Label::Good, &target.spread)
            .then(Label::Dim, format!(" {}", show_duration(to)))
    });
    let beside = shape.as_ref().map_or(0, |shape| shape.width() + 3);
    let mut line = Line::of(Label::Dim, "rate ");
    let room = width.saturating_sub(line.width() + beside).min(LONGEST_COURSE);
    line.push(Label::Good, shape::sparkline(&target.rates, room));
    if let Some(shape) = shape {
        line.push(Label::Plain, "   ");
        line.append(shape);
    }
    line
}

fn kinds(target: &SeenTarget) -> Line {
    let shown = target.kinds.iter().take(KINDS);
    let words: Vec<String> = shown.map(|(kind, count)| format!("{kind} {count}")).collect();
    Line::of(Label::Error, words.join("  "))
}

/// The run as one line, for where nothing can be repainted.
pub fn line(seen: &Seen) -> Line {
    if matches!(seen.phase, Phase::Connecting | Phase::WarmUp) {
        return Line::of(Label::Dim, "bench: not measuring yet");
    }
    let mut said = format!(
        "bench: {}, {} answered, {}/s, {} failed, {} in flight",
        show_duration(seen.elapsed),
        seen.answered(),
        words::per_second(seen.rate()),
        seen.failed(),
        seen.in_flight(),
    );
    for target in &seen.targets {
        let Some([p50, _, p99]) = target.times else { continue };
        let name = if seen.targets.len() > 1 { format!(" {}", target.name) } else { String::new() };
        said = format!("{said},{name} p50 {}, p99 {}", show_duration(p50), show_duration(p99));
    }
    Line::of(Label::Dim, said)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::cli::output::Palette;

    fn seen() -> Seen {
        let micros = Duration::from_micros;
        let target = |name: &str, failed| SeenTarget {
            name: name.to_owned(),
            requests: 640,
            ok: 632 - failed,
            failed,
            in_flight: 8,
            kinds: if failed > 0 { vec![("timeout".to_owned(), failed)] } else { Vec::new() },
            times: Some([micros(1_230), micros(2_500), micros(41_000)]),
            rates: (0..60).map(f64::from).collect(),
            spread: "▁▂█▅▃▂▁ ▁".to_owned(),
            ends: Some((micros(800), micros(50_000))),
            ..SeenTarget::default()
        };
        Seen {
            phase: Phase::Measuring,
            elapsed: Duration::from_secs(4),
            share: Some(0.4),
            round: Some((2, 10)),
            targets: vec![target("demo-echo", 0), target("demo-a_tool_with_a_long_name", 3)],
        }
    }

    fn plan() -> Plan {
        let until = Bounds { requests: Some(1_600), duration: Some(Duration::from_secs(10)) };
        Plan { until, ..Plan::default() }
    }

    #[test]
    fn a_block_fits_every_screen() {
        for width in 1..130 {
            let page = block(&seen(), &plan(), width);
            assert!(page.lines().iter().all(|line| line.width() <= width), "{width}: {page:?}");
        }
    }

    #[test]
    fn one_tool_takes_a_few_lines() {
        let mut one = seen();
        one.targets.truncate(1);
        one.round = None;
        let shown = Palette::default().page(&block(&one, &plan(), 80));
        assert_snapshot!(shown, @"
        demo-echo  measuring  4 s of 10 s
        [#####################...............................]  40 %  640 of 1600 calls
        158/s answered  8 in flight  0 failed
        p50 1.23 ms  p90 2.50 ms  p99 41 ms
        rate ▁▁▁▁▂▂▂▂▃▃▃▄▄▄▄▅▅▅▅▆▆▆▇▇▇▇████   800 µs ▁▂█▅▃▂▁ ▁ 50 ms
        ");
        let shown = Palette { ascii: true, colour: false }.page(&block(&one, &plan(), 40));
        assert_snapshot!(shown, @"
        demo-echo  measuring  4 s of 10 s
        [#####.......]  40 %  640 of 1600 calls
        158/s answered  8 in flight  0 failed
        p50 1.23 ms  p90 2.50 ms  p99 41 ms
        rate ____....---::::====+++****####
        ");
    }

    #[test]
    fn several_tools_stand_below_each_other() {
        let shown = Palette::default().page(&block(&seen(), &plan(), 80));
        assert_snapshot!(shown, @"
        measuring, round 2 of 10  4 s of 10 s
        [####################...............................]  40 %  1280 of 1600 calls
        315/s answered  16 in flight  3 failed
        demo-echo        p50 1.23 ms  p90 2.50 ms  p99 41 ms
                         rate ▁▁▁▁▂▂▂▂▃▃▃▄▄▄▄▅▅▅▅▆▆▆▇▇▇▇████   800 µs ▁▂█▅▃▂▁ ▁ 50 ms
        demo-a_tool_wit… p50 1.23 ms  p90 2.50 ms  p99 41 ms
                         rate ▁▁▁▁▂▂▂▂▃▃▃▄▄▄▄▅▅▅▅▆▆▆▇▇▇▇████   800 µs ▁▂█▅▃▂▁ ▁ 50 ms
                         timeout 3
        ");
    }

    #[test]
    fn a_log_gets_one_line() {
        let shown = Palette::default().line(&line(&seen()));
        assert_snapshot!(shown, @"bench: 4 s, 1261 answered, 315/s, 3 failed, 16 in flight, demo-echo p50 1.23 ms, p99 41 ms, demo-a_tool_with_a_long_name p50 1.23 ms, p99 41 ms");
    }

    #[test]
    fn in_turns_each_tool_has_the_whole_plan() {
        let turns = Plan { sharing: Sharing::Turns { rounds: 5 }, ..plan() };
        assert_eq!(bounds(&turns, 2).requests, Some(3_200));
        assert_eq!(bounds(&plan(), 2).requests, Some(1_600));
    }

    #[test]
    fn whatever_ends_first_says_how_much_is_done() {
        let share =
            |elapsed, made| share(&plan().until, Duration::from_secs(elapsed), made).unwrap();
        assert!((share(1, 800) - 0.5).abs() < 1e-9);
        assert!((share(9, 800) - 0.9).abs() < 1e-9);
        assert!((share(99, 800) - 1.0).abs() < 1e-9);
    }
}
