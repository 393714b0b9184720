//! The run: how far it is, and for each tool how fast it answers.

use ratatui::text::Line;

use crate::bench::compare::letter;
use crate::bench::plan::{Arrivals, Model};
use crate::bench::seen::{PERCENTILES, Seen, SeenTarget, Times, bounds};
use crate::bench::watch::Phase;
use crate::bench::words::{calls, per_second};
use crate::tui::draw::words::Words;
use crate::tui::draw::wrap::wrap;
use crate::tui::draw::{chart, columns, histogram};
use crate::tui::state::bench::{Bench, PlanForm, Run};
use crate::tui::theme::Meaning;
use crate::util::text;
use crate::util::units::show_duration;

/// From this width on two tools stand beside each other.
const WIDE: usize = 66;
/// Kinds of failures that are told apart.
const KINDS: usize = 3;
/// The widest line of the rate.
const RATE: usize = 60;

pub(super) fn title(bench: &Bench) -> String {
    let Some(run) = &bench.run else { return "Run".to_owned() };
    let phase = match (&run.end, run.seen.as_ref().map(|seen| seen.phase)) {
        (Some(Err(_)), _) => "failed",
        (Some(Ok(_)), _) => "over",
        (None, _) if run.is_stopping => "stopping",
        (None, _) if run.is_paused => "PAUSED",
        (None, None) => "finding the tools",
        (None, Some(Phase::Connecting)) => "connecting",
        (None, Some(Phase::WarmUp)) => "warming up",
        (None, Some(Phase::Measuring)) => "measuring",
        (None, Some(Phase::Draining)) => "waiting for the last answers",
        (None, Some(Phase::Over)) => "drawing conclusions",
    };
    format!("Run {}  {phase}  {}", run.number, PlanForm::load(&run.order.plan))
}

/// The run in lines, as many as there are; those of a histogram fill what is left of the height.
pub(super) fn lines(
    words: &Words<'_>,
    bench: &Bench,
    width: u16,
    height: u16,
) -> Vec<Line<'static>> {
    let (width, height) = (usize::from(width), usize::from(height));
    let Some(run) = &bench.run else {
        let said = [
            "a chooses a tool, b one to compare it with, Enter starts the run",
            "it is shown here while it goes on",
        ];
        return said.into_iter().map(|said| words.line(Meaning::Dim, said)).collect();
    };
    let mut lines: Vec<Line<'static>> =
        run.warnings.iter().map(|said| words.line(Meaning::Doubt, format!("! {said}"))).collect();
    if let Some(Err(fault)) = &run.end {
        lines.extend(super::verdict::failed(words, fault));
    }
    let Some(seen) = run.seen.as_ref().filter(|seen| !seen.targets.is_empty()) else {
        return lines;
    };
    lines.push(progress(words, run, seen, width));
    lines.push(sums(words, seen));
    lines.extend(rate(words, run, seen));
    let is_open = matches!(run.order.plan.model, Model::Open { .. });
    let several = seen.targets.len() > 1;
    // What is above may take more lines than it is.
    let taken: usize = lines.iter().map(|line| wrap(line, width).len()).sum();
    let left = height.saturating_sub(taken);
    let block = |at: usize, target: &SeenTarget, width, height| {
        let name =
            if several { format!("{}  {}", letter(at), target.name) } else { target.name.clone() };
        of_target(words, &name, target, is_open, width, height)
    };
    let targets = seen.targets.iter().enumerate();
    if several && width >= WIDE {
        let half = (width - 2) / 2;
        let mut blocks = targets.map(|(at, target)| block(at, target, half, left));
        let (first, second) =
            (blocks.next().unwrap_or_default(), blocks.next().unwrap_or_default());
        lines.extend(beside(words, first, second, half + 2));
    } else {
        let each = left / seen.targets.len().max(1);
        lines.extend(targets.flat_map(|(at, target)| block(at, target, width, each)));
    }
    lines
}

fn progress(words: &Words<'_>, run: &Run, seen: &Seen, width: usize) -> Line<'static> {
    let plan = &run.order.plan;
    let until = bounds(plan, seen.targets.len());
    let made = seen.requests() + seen.dropped();
    let of = match until.requests {
        Some(all) => format!("{made} of {all}"),
        None => calls(made),
    };
    let time = show_duration(seen.elapsed);
    let time = match until.duration {
        Some(all) => format!("{time} of {}", show_duration(all)),
        None => time,
    };
    let is_over = run.end.is_some();
    // What ended by one of its bounds is done, wherever the other one is.
    let share = if is_over && !run.is_stopping { 1.0 } else { seen.share.unwrap_or(0.0) };
    let tail = format!(" {:>3.0} %  {of}  {time}", share * 100.0);
    let room = width.saturating_sub(tail.len()).min(60);
    let bar = if room < 8 { String::new() } else { chart::progress(share, room) };
    Line::from(vec![words.span(Meaning::Good, bar), words.span(Meaning::Plain, tail)])
}

fn sums(words: &Words<'_>, seen: &Seen) -> Line<'static> {
    let warm_up: u64 = seen.targets.iter().map(|target| target.warm_up).sum();
    let failed = seen.failed();
    let mut spans = vec![
        words.span(Meaning::Plain, format!("answered {}", seen.answered())),
        words.span(
            if failed > 0 { Meaning::Bad } else { Meaning::Dim },
            format!("  failed {failed}"),
        ),
        words.span(Meaning::Plain, format!("  in flight {}", seen.in_flight())),
    ];
    if seen.dropped() > 0 {
        spans.push(words.span(Meaning::Doubt, format!("  not made {}", seen.dropped())));
    }
    if let Some((round, rounds)) = seen.round {
        spans.push(words.span(Meaning::Plain, format!("  round {round} of {rounds}")));
    }
    spans.push(words.span(Meaning::Dim, format!("  warm-up {warm_up}")));
    Line::from(spans)
}

/// Of an open load: the rate that is made, and the one that was wanted.
fn rate(words: &Words<'_>, run: &Run, seen: &Seen) -> Option<Line<'static>> {
    let Model::Open { arrivals, .. } = &run.order.plan.model else { return None };
    let takes_turns = seen.round.is_some();
    let rates = seen.targets.iter().map(|target| target.sent);
    let made: f64 = if takes_turns { rates.fold(0.0, f64::max) } else { rates.sum() };
    let is_behind = match arrivals {
        Arrivals::Constant { rate } => made < rate * 0.95 && seen.phase == Phase::Measuring,
        _ => false,
    };
    let wanted = crate::bench::words::arrivals(arrivals);
    let meaning = if is_behind { Meaning::Doubt } else { Meaning::Plain };
    let word = if is_behind { "  behind" } else { "" };
    Some(words.line(meaning, format!("sent {}/s of {wanted}{word}", per_second(made))))
}

fn of_target(
    words: &Words<'_>,
    name: &str,
    target: &SeenTarget,
    is_open: bool,
    width: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let count = format!("  {} calls", target.requests);
    let name = text::cut(name, width.saturating_sub(count.len()));
    let mut lines =
        vec![Line::from(vec![words.span(Meaning::Name, name), words.span(Meaning::Dim, count)])];
    let Some(response) = &target.response else {
        let said = if target.failed > 0 { "no call went well yet" } else { "no answer yet" };
        lines.push(words.line(Meaning::Dim, said));
        lines.extend(kinds(words, target));
        return lines;
    };
    let service = target.service.as_ref().filter(|_| is_open);
    let first = if is_open { "response" } else { "service" };
    lines.extend(times(words, first, response, width));
    lines.extend(service.into_iter().flat_map(|service| times(words, "service", service, width)));
    let (mean, deviation) = (show_duration(response.mean), show_duration(response.deviation));
    let said = format!("mean {mean} +- {deviation}  max {}", show_duration(response.max));
    lines.push(words.line(Meaning::Plain, said));
    lines.extend(kinds(words, target));
    let drawn =
        chart::sparkline(&target.rates, width.saturating_sub(16).min(RATE), words.theme.ascii);
    let now = target.rates.last().copied().unwrap_or_default();
    lines.push(Line::from(vec![
        words.span(Meaning::Dim, "rate "),
        words.span(Meaning::Good, drawn),
        words.span(Meaning::Plain, format!(" {}/s", per_second(now))),
    ]));
    if let Some(spread) = &target.spread {
        let quantiles = PERCENTILES.iter().zip(response.quantiles);
        let mut marks: Vec<_> = quantiles
            .filter(|((name, _), _)| *name != "p90")
            .map(|((name, _), (time, _))| (*name, time))
            .collect();
        // The last one is the most important.
        marks.swap(0, 1);
        let left = height.saturating_sub(lines.len());
        lines.extend(histogram::lines(words, spread, &marks, width, left));
    }
    lines
}

/// Percentiles, in as many lines as they need; those of too few calls are dim, and marked.
fn times(words: &Words<'_>, name: &str, times: &Times, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let mut spans = vec![words.span(Meaning::Dim, format!("{name:<8}"))];
    let mut used = 8;
    for ((name, _), (time, is_sure)) in PERCENTILES.iter().zip(times.quantiles) {
        let (meaning, mark) = if is_sure { (Meaning::Plain, "") } else { (Meaning::Dim, "?") };
        let said = format!("{}{mark}", show_duration(time));
        let own = 5 + text::width(&said);
        if used + own > width && used > 8 {
            lines.push(Line::from(std::mem::take(&mut spans)));
            spans.push(words.span(Meaning::Dim, " ".repeat(8)));
            used = 8;
        }
        spans.push(words.span(Meaning::Dim, format!(" {name} ")));
        spans.push(words.span(meaning, said));
        used += own;
    }
    lines.push(Line::from(spans));
    lines
}

fn kinds(words: &Words<'_>, target: &SeenTarget) -> Option<Line<'static>> {
    let shown = target.kinds.iter().take(KINDS);
    let said: Vec<String> = shown.map(|(kind, count)| format!("{kind} {count}")).collect();
    (!said.is_empty()).then(|| words.line(Meaning::Bad, format!("failed  {}", said.join("  "))))
}

/// Lines on the left and lines on the right, which begin at this cell.
fn beside(
    words: &Words<'_>,
    left: Vec<Line<'static>>,
    right: Vec<Line<'static>>,
    at: usize,
) -> Vec<Line<'static>> {
    let rows = left.len().max(right.len());
    let (mut left, mut right) = (left.into_iter(), right.into_iter());
    let row = |_| {
        let mut spans = left.next().unwrap_or_default().spans;
        let mut used = 0;
        for span in &mut spans {
            let room = (at - 1).saturating_sub(used);
            if span.width() > room {
                let cut = columns::left(&span.content, room);
                span.content = cut.into();
            }
            used += span.width();
        }
        spans.push(words.span(Meaning::Plain, " ".repeat(at.saturating_sub(used))));
        spans.extend(right.next().unwrap_or_default().spans);
        Line::from(spans)
    };
    (0..rows).map(row).collect()
}
