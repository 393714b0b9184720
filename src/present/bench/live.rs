//! A running benchmark, as a status page or a single line.

use crate::bench::control::RunPhase;
use crate::bench::formatting;
use crate::bench::plan::BenchPlan;
use crate::bench::report::TargetReport;
use crate::bench::snapshot::{BenchSnapshot, rates, total_limits};
use crate::present::{Line, Page, Role, chart};
use crate::util::histogram::logarithmic;
use crate::util::units::{float, show_count, show_duration};

const WIDEST: usize = 100;
/// From this width on, the distribution stands beside the rate.
const WIDE: usize = 60;
const MAX_RATE_CELLS: usize = 40;
const KINDS: usize = 3;
const CLASSES: usize = 24;

/// The run as a block of lines, for a screen so many cells wide.
pub fn block(snapshot: &BenchSnapshot, plan: &BenchPlan, width: usize) -> Page {
    let width = width.min(WIDEST);
    let mut lines = vec![title(snapshot, plan)];
    if snapshot.progress.is_some() || snapshot.phase == RunPhase::Measuring {
        lines.push(progress(snapshot, plan, width));
        lines.push(totals(snapshot));
    }
    for target in snapshot.targets.iter().filter(|target| target.ok + target.failures() > 0) {
        if snapshot.targets.len() > 1 {
            lines.push(Line::styled(Role::Name, &target.tool));
        }
        lines.extend([times(target), rate_line(target, width)]);
        lines.extend((target.failures() > 0).then(|| kinds(target)));
    }
    Page::from_iter(lines).truncate(width)
}

fn title(snapshot: &BenchSnapshot, plan: &BenchPlan) -> Line {
    let made = snapshot.total(|target| target.warm_up);
    let doing = match snapshot.phase {
        RunPhase::Connecting => "connecting".to_owned(),
        RunPhase::WarmUp => format!("warming up, {} made", formatting::calls(made)),
        RunPhase::Measuring => "measuring".to_owned(),
        RunPhase::Draining => {
            format!("waiting for the last {}", formatting::calls(snapshot.in_flight))
        }
        RunPhase::Done => "done".to_owned(),
    };
    let mut line = Line::default();
    if let [only] = snapshot.targets.as_slice() {
        line = Line::styled(Role::Name, &only.tool).then(Role::Plain, "  ");
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
    let made = snapshot.total(|target| target.requests + target.dropped);
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
    line.push(Role::Dim, format!("  {} in flight", snapshot.in_flight));
    let failed = snapshot.failed();
    let label = if failed > 0 { Role::Error } else { Role::Dim };
    line.push(label, format!("  {failed} failed"));
    let dropped = snapshot.total(|target| target.dropped);
    if dropped > 0 {
        line.push(Role::Warning, format!("  {dropped} dropped"));
    }
    line
}

fn times(target: &TargetReport) -> Line {
    let mut line = Line::default();
    for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
        let Some(time) = target.response.quantile(share) else {
            return Line::styled(Role::Dim, "no response yet");
        };
        line.push(Role::Dim, format!("{name} "));
        line.push(Role::Plain, format!("{:<9}", show_duration(time)));
    }
    line
}

fn rate_line(target: &TargetReport, width: usize) -> Line {
    let spread = logarithmic(&target.response, CLASSES).filter(|_| width >= WIDE);
    let shape = spread.map(|spread| {
        let counts: Vec<f64> = spread.classes.iter().map(|(_, count)| float(*count)).collect();
        let to = spread.classes.last().map_or(spread.longest, |(to, _)| *to);
        Line::styled(Role::Dim, format!("{} ", show_duration(spread.from)))
            .then(Role::Success, chart::sparkline(&counts, counts.len()))
            .then(Role::Dim, format!(" {}", show_duration(to)))
    });
    let beside = shape.as_ref().map_or(0, |shape| shape.width() + 3);
    let mut line = Line::styled(Role::Dim, "calls/s ");
    let room = width.saturating_sub(line.width() + beside).min(MAX_RATE_CELLS);
    line.push(Role::Success, chart::sparkline(&rates(target), room));
    if let Some(shape) = shape {
        line.push(Role::Plain, "   ");
        line.append(shape);
    }
    line
}

fn kinds(target: &TargetReport) -> Line {
    let shown = target.commonest_errors().into_iter().take(KINDS);
    let kinds: Vec<String> = shown.map(|(kind, error)| format!("{kind} {}", error.count)).collect();
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
        snapshot.in_flight,
    );
    for target in &snapshot.targets {
        let at = |share| target.response.quantile(share);
        let (Some(p50), Some(p99)) = (at(0.5), at(0.99)) else { continue };
        let name =
            if snapshot.targets.len() > 1 { format!(" {}", target.tool) } else { String::new() };
        line = format!("{line},{name} p50 {}, p99 {}", show_duration(p50), show_duration(p99));
    }
    Line::styled(Role::Dim, line)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use insta::assert_snapshot;

    use super::*;
    use crate::bench::fixtures::{running, timed_out};
    use crate::bench::plan::RunLimits;
    use crate::present::page::LineRenderer;
    use crate::util::histogram::Durations;

    fn snapshot() -> BenchSnapshot {
        let mut response = Durations::default();
        for (micros, calls) in
            [(800, 1), (1_230, 330), (2_500, 240), (9_000, 40), (41_000, 20), (50_000, 1)]
        {
            response.record_many(Duration::from_micros(micros), calls);
        }
        let first = TargetReport { requests: 640, ..running("demo-echo", response, 0..60) };
        let tool = "demo-a_tool_with_a_long_name".to_owned();
        let mut second = TargetReport { tool, ok: first.ok - 3, ..first.clone() };
        timed_out(&mut second, 3);
        BenchSnapshot {
            phase: RunPhase::Measuring,
            elapsed: Duration::from_secs(4),
            progress: Some(0.4),
            round: Some((2, 10)),
            in_flight: 16,
            targets: vec![first, second],
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
        one.in_flight = 8;
        one.round = None;
        let shown = LineRenderer::default().page(&block(&one, &plan(), 80));
        assert_snapshot!(shown, @"
        demo-echo  measuring  4 s of 10 s
        [####################...............................]  40 %  640 of 1,600 calls
        158 calls/s  8 in flight  0 failed
        p50 1.23 ms  p90 2.50 ms  p99 41 ms
        calls/s ▁▁▁▁▁▁▂▂▂▃▃▃▃▄▄▄▄▅▅▅▆▆▆▆▇▇▇▇██   800 µs ▁ █   ▆       ▁       ▁▁ 50 ms
        ");
        let shown = LineRenderer { ascii: true, colour: false }.page(&block(&one, &plan(), 40));
        assert_snapshot!(shown, @"
        demo-echo  measuring  4 s of 10 s
        [####.......]  40 %  640 of 1,600 calls
        158 calls/s  8 in flight  0 failed
        p50 1.23 ms  p90 2.50 ms  p99 41 ms
        calls/s ______...----::::===++++****##
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
        calls/s ▁▁▁▁▁▁▂▂▂▃▃▃▃▄▄▄▄▅▅▅▆▆▆▆▇▇▇▇██   800 µs ▁ █   ▆       ▁       ▁▁ 50 ms
        demo-a_tool_with_a_long_name
        p50 1.23 ms  p90 2.50 ms  p99 41 ms
        calls/s ▁▁▁▁▁▁▂▂▂▃▃▃▃▄▄▄▄▅▅▅▆▆▆▆▇▇▇▇██   800 µs ▁ █   ▆       ▁       ▁▁ 50 ms
        timeout 3
        ");
    }

    #[test]
    fn a_log_gets_one_line() {
        let shown = LineRenderer::default().line(&line(&snapshot()));
        assert_snapshot!(shown, @"bench: 4 s, 1261 ok, 315 calls/s, 3 failed, 16 in flight, demo-echo p50 1.23 ms, p99 41 ms, demo-a_tool_with_a_long_name p50 1.23 ms, p99 41 ms");
    }
}
