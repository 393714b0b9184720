//! A run while it goes on, in a few lines or in one.
//!
//! Owns: how what is seen of it is drawn.

use super::shape;
use crate::bench::plan::Plan;
use crate::bench::seen::{Seen, SeenTarget, bounds};
use crate::bench::watch::Phase;
use crate::bench::words;
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
/// Kinds of failures that are told apart while it runs.
const KINDS: usize = 3;

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
    let dropped = seen.dropped();
    if dropped > 0 {
        line.push(Label::Warning, format!("  {dropped} dropped"));
    }
    line
}

fn times(target: &SeenTarget) -> Line {
    let Some(times) = target.response else { return Line::of(Label::Dim, "no answer yet") };
    let mut line = Line::default();
    let [(p50, _), (p90, _), _, (p99, _)] = times.quantiles;
    for (name, time) in [("p50", p50), ("p90", p90), ("p99", p99)] {
        line.push(Label::Dim, format!("{name} "));
        line.push(Label::Plain, format!("{:<9}", show_duration(time)));
    }
    line
}

/// The rate over time, and the shape of the times beside it when there is room.
fn course(target: &SeenTarget, width: usize) -> Line {
    let shape = target.ends.filter(|_| width >= WIDE).map(|(from, to)| {
        Line::of(Label::Dim, format!("{} ", show_duration(from)))
            .then(Label::Good, spread(target))
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

/// How the times are spread, as one line of marks.
fn spread(target: &SeenTarget) -> String {
    let Some(spread) = &target.spread else { return String::new() };
    #[expect(clippy::cast_precision_loss, reason = "counts of calls")]
    let counts: Vec<f64> = spread.classes.iter().map(|(_, count)| *count as f64).collect();
    shape::sparkline(&counts, counts.len())
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
        let Some(times) = target.response else { continue };
        let [(p50, _), _, _, (p99, _)] = times.quantiles;
        let name = if seen.targets.len() > 1 { format!(" {}", target.name) } else { String::new() };
        said = format!("{said},{name} p50 {}, p99 {}", show_duration(p50), show_duration(p99));
    }
    Line::of(Label::Dim, said)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use insta::assert_snapshot;

    use super::*;
    use crate::bench::plan::Bounds;
    use crate::bench::seen::Times;
    use crate::bench::spread::Spread;
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
            response: Some(Times {
                quantiles: [1_230, 2_500, 9_000, 41_000].map(|time| (micros(time), true)),
                ..Times::default()
            }),
            rates: (0..60).map(f64::from).collect(),
            spread: Some(Spread {
                from: micros(800),
                classes: [1, 2, 8, 5, 3, 2, 1, 0, 1].map(|count| (micros(1), count)).into(),
                beyond: 0,
            }),
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
}
