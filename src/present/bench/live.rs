//! A running benchmark, as a status page or a single line.

use crate::bench::formatting;
use crate::bench::monitor::RunPhase;
use crate::bench::plan::BenchPlan;
use crate::bench::snapshot::{BenchSnapshot, TargetSnapshot, total_limits};
use crate::present::{Line, Page, Role, chart};
use crate::util::number::float;
use crate::util::units::{show_count, show_duration};

const WIDEST: usize = 100;
/// From this width on, the distribution stands beside the rate.
const WIDE: usize = 60;
const MAX_RATE_CELLS: usize = 40;
const KINDS: usize = 3;

/// The run as a block of lines, for a screen so many cells wide.
pub fn block(snapshot: &BenchSnapshot, plan: &BenchPlan, width: usize) -> Page {
    let width = width.min(WIDEST);
    let mut lines = vec![title(snapshot, plan)];
    if snapshot.progress.is_some() || snapshot.phase == RunPhase::Measuring {
        lines.push(progress(snapshot, plan, width));
        lines.push(totals(snapshot));
    }
    for target in snapshot.targets.iter().filter(|target| target.ok + target.failed > 0) {
        if snapshot.targets.len() > 1 {
            lines.push(Line::styled(Role::Name, &target.name));
        }
        lines.extend([times(target), rate_line(target, width)]);
        lines.extend((!target.kinds.is_empty()).then(|| kinds(target)));
    }
    Page::from_iter(lines).truncate(width)
}

fn title(snapshot: &BenchSnapshot, plan: &BenchPlan) -> Line {
    let made: u64 = snapshot.targets.iter().map(|target| target.warm_up).sum();
    let doing = match snapshot.phase {
        RunPhase::Connecting => "connecting".to_owned(),
        RunPhase::WarmUp => format!("warming up, {} made", formatting::calls(made)),
        RunPhase::Measuring => "measuring".to_owned(),
        RunPhase::Draining => {
            format!("waiting for the last {}", formatting::calls(snapshot.in_flight()))
        }
        RunPhase::Done => "done".to_owned(),
    };
    let mut line = Line::default();
    if let [only] = snapshot.targets.as_slice() {
        line = Line::styled(Role::Name, &only.name).then(Role::Plain, "  ");
    }
    line.push(Role::Title, doing);
    if let Some((round, rounds)) = snapshot.round {
        let word = plan.sharing.part();
        line.push(Role::Plain, format!(", {word} {round} of {rounds}"));
    }
    let mut of = show_duration(snapshot.elapsed);
    if let Some(all) = total_limits(plan, snapshot.targets.len()).duration {
        of = format!("{of} of {}", show_duration(all));
    }
    line.then(Role::Dim, format!("  {of}"))
}

fn progress(snapshot: &BenchSnapshot, plan: &BenchPlan, width: usize) -> Line {
    let made: u64 = snapshot.targets.iter().map(|target| target.requests + target.dropped).sum();
    let of = match total_limits(plan, snapshot.targets.len()).requests {
        Some(all) => format!("{} of {}", show_count(made), formatting::calls(all)),
        None => formatting::calls(made),
    };
    let Some(share) = snapshot.progress else { return Line::plain(of) };
    let room = width.saturating_sub(of.len() + " 100 %  [] ".len());
    if room < 8 {
        return Line::plain(format!("{:.0} %  {of}", share * 100.0));
    }
    chart::progress(share, room).then(Role::Plain, format!("  {of}"))
}

fn totals(snapshot: &BenchSnapshot) -> Line {
    let mut line = Line::plain(format!("{} calls/s", formatting::per_second(snapshot.rate())));
    line.push(Role::Dim, format!("  {} in flight", snapshot.in_flight()));
    let failed = snapshot.failed();
    let label = if failed > 0 { Role::Error } else { Role::Dim };
    line.push(label, format!("  {failed} failed"));
    let dropped = snapshot.dropped();
    if dropped > 0 {
        line.push(Role::Warning, format!("  {dropped} dropped"));
    }
    line
}

fn times(target: &TargetSnapshot) -> Line {
    let Some(times) = target.response else {
        return Line::styled(Role::Dim, "no response yet");
    };
    let mut line = Line::default();
    let [(p50, _), (p90, _), _, (p99, _)] = times.quantiles;
    for (name, time) in [("p50", p50), ("p90", p90), ("p99", p99)] {
        line.push(Role::Dim, format!("{name} "));
        line.push(Role::Plain, format!("{:<9}", show_duration(time)));
    }
    line
}

fn rate_line(target: &TargetSnapshot, width: usize) -> Line {
    let shape = target.range.filter(|_| width >= WIDE).map(|(from, to)| {
        Line::styled(Role::Dim, format!("{} ", show_duration(from)))
            .then(Role::Success, distribution_marks(target))
            .then(Role::Dim, format!(" {}", show_duration(to)))
    });
    let beside = shape.as_ref().map_or(0, |shape| shape.width() + 3);
    let mut line = Line::styled(Role::Dim, "rate ");
    let room = width.saturating_sub(line.width() + beside).min(MAX_RATE_CELLS);
    line.push(Role::Success, chart::sparkline(&target.rates, room));
    if let Some(shape) = shape {
        line.push(Role::Plain, "   ");
        line.append(shape);
    }
    line
}

fn distribution_marks(target: &TargetSnapshot) -> String {
    let Some(spread) = &target.distribution else { return String::new() };
    let counts: Vec<f64> = spread.classes.iter().map(|(_, count)| float(*count)).collect();
    chart::sparkline(&counts, counts.len())
}

fn kinds(target: &TargetSnapshot) -> Line {
    let shown = target.kinds.iter().take(KINDS);
    let kinds: Vec<String> = shown.map(|(kind, count)| format!("{kind} {count}")).collect();
    Line::styled(Role::Error, kinds.join("  "))
}

/// The run as one line, for output that cannot be repainted.
pub fn line(snapshot: &BenchSnapshot) -> Line {
    if matches!(snapshot.phase, RunPhase::Connecting | RunPhase::WarmUp) {
        return Line::styled(Role::Dim, "bench: not measuring yet");
    }
    let mut line = format!(
        "bench: {}, {} ok, {} calls/s, {} failed, {} in flight",
        show_duration(snapshot.elapsed),
        snapshot.answered(),
        formatting::per_second(snapshot.rate()),
        snapshot.failed(),
        snapshot.in_flight(),
    );
    for target in &snapshot.targets {
        let Some(times) = target.response else { continue };
        let [(p50, _), _, _, (p99, _)] = times.quantiles;
        let name =
            if snapshot.targets.len() > 1 { format!(" {}", target.name) } else { String::new() };
        line = format!("{line},{name} p50 {}, p99 {}", show_duration(p50), show_duration(p99));
    }
    Line::styled(Role::Dim, line)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use insta::assert_snapshot;

    use super::*;
    use crate::bench::plan::RunLimits;
    use crate::bench::snapshot::LatencySummary;
    use crate::present::page::LineRenderer;
    use crate::util::distribution::Distribution;

    fn snapshot() -> BenchSnapshot {
        let micros = Duration::from_micros;
        let target = |name: &str, failed| TargetSnapshot {
            name: name.to_owned(),
            requests: 640,
            ok: 632 - failed,
            failed,
            in_flight: 8,
            kinds: if failed > 0 { vec![("timeout".to_owned(), failed)] } else { Vec::new() },
            response: Some(LatencySummary {
                quantiles: [1_230, 2_500, 9_000, 41_000].map(|time| (micros(time), true)),
                ..LatencySummary::default()
            }),
            rates: (0..60).map(f64::from).collect(),
            distribution: Some(Distribution {
                from: micros(800),
                classes: [1, 2, 8, 5, 3, 2, 1, 0, 1].map(|count| (micros(1), count)).into(),
                beyond: 0,
                longest: micros(50_000),
            }),
            range: Some((micros(800), micros(50_000))),
            ..TargetSnapshot::default()
        };
        BenchSnapshot {
            phase: RunPhase::Measuring,
            elapsed: Duration::from_secs(4),
            progress: Some(0.4),
            round: Some((2, 10)),
            targets: vec![target("demo-echo", 0), target("demo-a_tool_with_a_long_name", 3)],
        }
    }

    fn plan() -> BenchPlan {
        let until = RunLimits { requests: Some(1_600), duration: Some(Duration::from_secs(10)) };
        BenchPlan { limits: until, ..BenchPlan::default() }
    }

    #[test]
    fn a_block_fits_every_screen() {
        for width in 1..130 {
            let page = block(&snapshot(), &plan(), width);
            assert!(page.lines().iter().all(|line| line.width() <= width), "{width}: {page:?}");
        }
    }

    #[test]
    fn one_tool_takes_a_few_lines() {
        let mut one = snapshot();
        one.targets.truncate(1);
        one.round = None;
        let shown = LineRenderer::default().page(&block(&one, &plan(), 80));
        assert_snapshot!(shown, @"
        demo-echo  measuring  4 s of 10 s
        [####################...............................]  40 %  640 of 1,600 calls
        158 calls/s  8 in flight  0 failed
        p50 1.23 ms  p90 2.50 ms  p99 41 ms
        rate ▁▁▁▁▂▂▂▂▃▃▃▄▄▄▄▅▅▅▅▆▆▆▇▇▇▇████   800 µs ▁▂█▅▃▂▁ ▁ 50 ms
        ");
        let shown = LineRenderer { ascii: true, colour: false }.page(&block(&one, &plan(), 40));
        assert_snapshot!(shown, @"
        demo-echo  measuring  4 s of 10 s
        [####.......]  40 %  640 of 1,600 calls
        158 calls/s  8 in flight  0 failed
        p50 1.23 ms  p90 2.50 ms  p99 41 ms
        rate ____....---::::====+++****####
        ");
    }

    #[test]
    fn several_tools_stand_below_each_other() {
        let shown = LineRenderer::default().page(&block(&snapshot(), &plan(), 80));
        assert_snapshot!(shown, @"
        measuring, round 2 of 10  4 s of 10 s
        [####################.............................]  40 %  1,280 of 1,600 calls
        315 calls/s  16 in flight  3 failed
        demo-echo
        p50 1.23 ms  p90 2.50 ms  p99 41 ms
        rate ▁▁▁▁▂▂▂▂▃▃▃▄▄▄▄▅▅▅▅▆▆▆▇▇▇▇████   800 µs ▁▂█▅▃▂▁ ▁ 50 ms
        demo-a_tool_with_a_long_name
        p50 1.23 ms  p90 2.50 ms  p99 41 ms
        rate ▁▁▁▁▂▂▂▂▃▃▃▄▄▄▄▅▅▅▅▆▆▆▇▇▇▇████   800 µs ▁▂█▅▃▂▁ ▁ 50 ms
        timeout 3
        ");
    }

    #[test]
    fn a_log_gets_one_line() {
        let shown = LineRenderer::default().line(&line(&snapshot()));
        assert_snapshot!(shown, @"bench: 4 s, 1261 ok, 315 calls/s, 3 failed, 16 in flight, demo-echo p50 1.23 ms, p99 41 ms, demo-a_tool_with_a_long_name p50 1.23 ms, p99 41 ms");
    }
}
