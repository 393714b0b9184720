//! Two more pictures for a page: answered calls per second over time, and latencies by percentile.

use super::{
    BOTTOM, LEFT, MAX_TARGETS, RIGHT, STYLE, TOP, WIDTH, axis, horizon, merged_slices, seconds,
    shape, shown, time_axis,
};
use crate::bench::export::svg::canvas::{Canvas, escaped};
use crate::bench::export::svg::scale::AxisScale;
use crate::bench::formatting::per_second;
use crate::bench::report::{BenchReport, TargetReport, TimelineSlice};
use crate::util::number::{float, float_len};

/// Percentiles that a curve goes through.
const POINTS: u32 = 80;
const HEIGHT: f64 = BOTTOM - TOP + 96.0;
const PANEL: (f64, f64) = (44.0, 44.0 + BOTTOM - TOP);

/// Answered calls per second, from the start to the end of the run.
pub fn rate(report: &BenchReport) -> String {
    let targets = drawn(report);
    let end = horizon(report).as_secs_f64();
    // The last slice ends with the time in which the target was called.
    let active = |target: &TargetReport| {
        let seconds = float(target.ok) / target.throughput;
        if seconds.is_finite() { seconds.min(end) } else { end }
    };
    let lines: Vec<Vec<(f64, f64)>> =
        targets.iter().map(|target| rates(&target.timeline, active(target))).collect();
    let most = lines.iter().flatten().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let mut canvas = begin("Calls per second over time");
    let x = AxisScale::linear(end, LEFT, RIGHT);
    let y = AxisScale::linear(most * 1.08, PANEL.1, PANEL.0);
    for mark in y.ticks() {
        grid(&mut canvas, y.place(mark), &per_second(mark));
    }
    time_axis(&mut canvas, &x, PANEL.1, Some(axis(report)));
    for (at, line) in lines.iter().enumerate() {
        let points: Vec<(f64, f64)> =
            line.iter().map(|(middle, rate)| (x.place(*middle), y.place(*rate))).collect();
        curve(&mut canvas, &points, at);
    }
    finish(canvas)
}

/// The latency that a share of the calls stays below; the axis stretches the slowest ones.
pub fn percentiles(report: &BenchReport) -> String {
    let targets = drawn(report);
    let calls = targets.iter().map(|target| target.response.count()).max().unwrap_or(0);
    let highest = float(calls).clamp(10.0, 100_000.0);
    let x = AxisScale::logarithmic(1.1, highest / 1.1, LEFT, RIGHT);
    let at = |step: u32| highest.powf(f64::from(step) / f64::from(POINTS));
    let lines: Vec<Vec<(f64, f64)>> = targets
        .iter()
        .map(|target| {
            let own = float(target.response.count()).max(1.0);
            let point = |step| {
                let odds = at(step);
                // Beyond the last call of a short run there is nothing to draw.
                let time = seconds(&target.response, 1.0 - 1.0 / odds).filter(|_| odds <= own)?;
                Some((odds, time))
            };
            (1..=POINTS).filter_map(point).collect()
        })
        .collect();
    let times = || lines.iter().flatten().map(|(_, time)| *time);
    let y = AxisScale::logarithmic(
        times().fold(f64::INFINITY, f64::min),
        times().fold(0.0, f64::max),
        PANEL.1,
        PANEL.0,
    );
    let mut canvas = begin("Latency by percentile");
    for mark in y.ticks() {
        grid(&mut canvas, y.place(mark), &shown(mark));
    }
    canvas.line((LEFT, PANEL.1), (RIGHT, PANEL.1), "axis");
    for (odds, name) in [
        (2.0, "50%"),
        (4.0, "75%"),
        (10.0, "90%"),
        (20.0, "95%"),
        (100.0, "99%"),
        (1_000.0, "99.9%"),
        (10_000.0, "99.99%"),
        (100_000.0, "99.999%"),
    ] {
        if odds <= highest {
            let place = x.place(odds);
            canvas.line((place, PANEL.1), (place, PANEL.1 + 5.0), "axis");
            canvas.text((place, PANEL.1 + 19.0), "tick mid", name);
        }
    }
    let name = "share of successful calls at least as fast";
    canvas.text((f64::midpoint(LEFT, RIGHT), PANEL.1 + 37.0), "unit mid", name);
    for (at, line) in lines.iter().enumerate() {
        let points: Vec<(f64, f64)> =
            line.iter().map(|(odds, time)| (x.place(*odds), y.place(*time))).collect();
        curve(&mut canvas, &points, at);
    }
    finish(canvas)
}

fn drawn(report: &BenchReport) -> Vec<&TargetReport> {
    report.targets.iter().take(MAX_TARGETS).collect()
}

/// Rates in as many stretches as the times are drawn in: the middle of each, in seconds, and calls
/// a second.
fn rates(timeline: &[TimelineSlice], end: f64) -> Vec<(f64, f64)> {
    let points = merged_slices(timeline).len().max(1);
    let join = |slices: &[TimelineSlice]| {
        let (first, last) = (slices.first()?, slices.last()?);
        let from = first.from.as_secs_f64();
        let to = (last.from + last.lasting).as_secs_f64().min(end);
        let whole = float_len(slices.len()) * first.lasting.as_secs_f64();
        // What lasted next to nothing has no rate.
        let lasted = (to - from).max(whole / 10.0).max(1e-9);
        let ok: u64 = slices.iter().map(|slice| slice.ok).sum();
        Some((f64::midpoint(from, to.max(from)), float(ok) / lasted))
    };
    timeline.chunks(timeline.len().div_ceil(points).max(1)).filter_map(join).collect()
}

fn begin(title: &str) -> Canvas {
    let mut canvas = Canvas::default();
    canvas.raw(&format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\">\n<title>{}</title>\n{STYLE}",
        escaped(title)
    ));
    canvas.rectangle((0.0, 0.0), (WIDTH, HEIGHT), "paper");
    canvas.text((28.0, PANEL.0 - 18.0), "head", title);
    canvas
}

fn finish(mut canvas: Canvas) -> String {
    canvas.raw("</svg>");
    canvas.finish()
}

fn grid(canvas: &mut Canvas, place: f64, text: &str) {
    canvas.line((LEFT, place), (RIGHT, place), "grid");
    canvas.text((LEFT - 8.0, place + 4.0), "tick end", text);
}

fn curve(canvas: &mut Canvas, points: &[(f64, f64)], target: usize) {
    canvas.path(points, false, &format!("line c{target} d{target}"));
    let each = points.len().div_ceil(super::SHAPES).max(1);
    for point in points.iter().skip(each / 2).step_by(each) {
        shape(canvas, *point, target);
    }
}
