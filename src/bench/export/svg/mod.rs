//! SVG export of a run: latency over time, failures below it, and a latency histogram.
//!
//! Owns: what is drawn where. Targets differ by colour and by shape, so that they can be told apart
//! without colours. The picture needs nothing from elsewhere and stays below 100 KiB.

pub(super) mod canvas;
mod curves;
mod scale;

use std::time::Duration;

use crate::bench::buckets;
use crate::bench::compare::letter;
use crate::bench::plan::{Arrivals, LoadModel};
use crate::bench::report::{BenchReport, TargetReport, TimelineSlice};
use crate::util::histogram::Durations;
use crate::util::number::{float, float_len};
use crate::util::text;
use crate::util::units::show_duration;
use canvas::{Canvas, escaped};
pub use curves::{percentiles, rate};
use scale::AxisScale;

/// Maximum number of targets drawn; more lines could not be told apart.
const MAX_TARGETS: usize = 4;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 928.0;
/// Of the panel of times.
const TOP: f64 = 112.0;
const BOTTOM: f64 = 372.0;
const ROW: f64 = 26.0;
const HISTOGRAM: f64 = 190.0;
const CLASSES: usize = 72;
const POINTS: usize = 96;
const MIN_POINTS: usize = 24;
const CALLS_PER_POINT: u64 = 60;
const SHAPES: usize = 16;

const STYLE: &str = "<style>\
text{font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#24292f}.paper{fill:#fff}\
.title{font-size:20px;font-weight:600}.sub{font-size:13px;fill:#57606a}\
.head{font-size:14px;font-weight:600}.unit,.tick,.note{font-size:12px;fill:#57606a}\
.end{text-anchor:end}.mid{text-anchor:middle}.cell{font-size:13px}.num{font-size:13px;text-anchor:end}\
.grid{stroke:#e4e7eb;stroke-width:1}.axis{stroke:#8c959f;stroke-width:1}\
.bad{fill:#cf222e}.badtext{font-size:12px;fill:#a40e26}\
.c0{stroke:#0b62a8;fill:#0b62a8}.c1{stroke:#bf4a00;fill:#bf4a00}\
.c2{stroke:#2f7d32;fill:#2f7d32}.c3{stroke:#7a3e9d;fill:#7a3e9d}\
.near{fill-opacity:.2;stroke:none}.far{fill-opacity:.09;stroke:none}.line{fill:none;stroke-width:2}\
.p99{fill:none;stroke-width:.8;stroke-opacity:.55}\
.d1{stroke-dasharray:7 4}.d2{stroke-dasharray:2 3}.d3{stroke-dasharray:9 3 2 3}\
.mark{stroke-width:1.5}.hollow{fill:#fff}\
.bars{fill-opacity:.22;stroke-width:1.4;stroke-linejoin:round}.h1{fill-opacity:.1}\
.stem{stroke-width:1.2}\
</style>";

/// The picture of a run.
pub fn svg(report: &BenchReport) -> String {
    let targets: Vec<&TargetReport> = report.targets.iter().take(MAX_TARGETS).collect();
    let failing = targets.iter().filter(|target| failures(&target.timeline) > 0).count();
    let (rows, lines) = (float_len(failing), float_len(targets.len()));
    let strip = if failing > 0 { rows * ROW + 14.0 } else { 0.0 };
    let histogram = BOTTOM + strip + 92.0;
    let table = histogram + HISTOGRAM + 66.0;
    let height = table + lines * 24.0 + 26.0;
    let title = names(&targets);
    let mut canvas = Canvas::default();
    canvas.raw(&format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n<title>{}</title>\n<desc>{}</desc>\n{STYLE}",
        escaped(&title),
        escaped(&load(report))
    ));
    canvas.rectangle((0.0, 0.0), (WIDTH, height), "paper");
    canvas.text((28.0, 38.0), "title", &text::cut(&text::safe_line(&title), 84));
    canvas.text((28.0, 60.0), "sub", &load(report));
    times(&mut canvas, report, &targets);
    rows_of_failures(&mut canvas, report, &targets);
    distribution(&mut canvas, &targets, histogram);
    figures(&mut canvas, &targets, table);
    canvas.raw("</svg>");
    canvas.finish()
}

fn names(targets: &[&TargetReport]) -> String {
    let mut names: Vec<&str> = targets.iter().map(|target| target.tool.as_str()).collect();
    // The steps of a run are of one tool.
    names.dedup();
    names.join(" vs ")
}

fn load(report: &BenchReport) -> String {
    let how = match &report.plan.model {
        _ if report.targets.iter().any(|target| target.step.is_some()) => {
            "closed load, in steps".to_owned()
        }
        LoadModel::Closed { concurrency } => format!("closed load, {concurrency} in flight"),
        LoadModel::Open { arrivals, in_flight, .. } => {
            let rate = match arrivals {
                Arrivals::Constant { rate } => format!("{rate} calls/s"),
                Arrivals::Poisson { rate } => format!("{rate} calls/s at random times"),
            };
            format!(
                "open load, {rate}, at most {in_flight} in flight; timed from the intended start"
            )
        }
    };
    let calls: u64 = report.targets.iter().map(|target| target.requests).sum();
    format!("{calls} calls in {} · {how}", show_duration(report.elapsed))
}

/// When the last of the timelines ends. Targets that take turns have each a time of their own.
fn horizon(report: &BenchReport) -> Duration {
    let ends = report.targets.iter().filter_map(|target| target.timeline.last());
    let last = ends.map(|slice| slice.from + slice.lasting).max().unwrap_or(report.elapsed);
    last.min(report.elapsed)
}

fn axis(report: &BenchReport) -> &'static str {
    if report.rounds.is_empty() {
        "since the first counted call"
    } else {
        "each tool's own rounds, one after the other"
    }
}

/// The panel of times: the median, and bands from it up to p95 and p99.
fn times(canvas: &mut Canvas, report: &BenchReport, targets: &[&TargetReport]) {
    canvas.text((28.0, TOP - 18.0), "head", "Latency over time");
    let drawn: Vec<Durations> = targets
        .iter()
        .flat_map(|target| merged_slices(&target.timeline))
        .map(|(_, response)| response)
        .collect();
    let quantiles = |share: f64| drawn.iter().filter_map(move |response| seconds(response, share));
    let low = quantiles(0.5).fold(f64::INFINITY, f64::min);
    let high = quantiles(0.99).fold(0.0, f64::max);
    let y = AxisScale::logarithmic(low, high, BOTTOM, TOP);
    let x = AxisScale::linear(horizon(report).as_secs_f64(), LEFT, RIGHT);
    for mark in y.ticks() {
        let place = y.place(mark);
        canvas.line((LEFT, place), (RIGHT, place), "grid");
        canvas.text((LEFT - 8.0, place + 4.0), "tick end", &shown(mark));
    }
    let named = (failures_of(targets) == 0).then(|| axis(report));
    time_axis(canvas, &x, BOTTOM, named);
    if drawn.iter().all(|response| response.count() == 0) {
        canvas.text(
            (f64::midpoint(LEFT, RIGHT), f64::midpoint(TOP, BOTTOM)),
            "sub mid",
            "no successful calls",
        );
        return;
    }
    legend(canvas);
    for (at, target) in targets.iter().enumerate() {
        let points = merged_slices(&target.timeline);
        let line = |share: f64| -> Vec<(f64, f64)> {
            let point = |(middle, response): &(Duration, Durations)| {
                let middle = (*middle).min(horizon(report)).as_secs_f64();
                Some((x.place(middle), y.place(seconds(response, share)?)))
            };
            points.iter().filter_map(point).collect()
        };
        let (middle, high, highest) = (line(0.5), line(0.95), line(0.99));
        let band = |from: &[(f64, f64)], to: &[(f64, f64)]| -> Vec<(f64, f64)> {
            from.iter().chain(to.iter().rev()).copied().collect()
        };
        canvas.path(&band(&high, &highest), true, &format!("far c{at}"));
        canvas.path(&band(&middle, &high), true, &format!("near c{at}"));
        canvas.path(&highest, false, &format!("p99 c{at}"));
        canvas.path(&middle, false, &format!("line c{at} d{at}"));
        let each = middle.len().div_ceil(SHAPES).max(1);
        for point in middle.iter().skip(each / 2).step_by(each) {
            shape(canvas, *point, at);
        }
    }
}

/// What the line and the bands are, at the right of the heading.
fn legend(canvas: &mut Canvas) {
    let line = TOP - 22.0;
    let mut from = RIGHT - 254.0;
    canvas.line((from, line), (from + 26.0, line), "line c0");
    canvas.text((from + 32.0, line + 4.0), "tick", "p50");
    from += 72.0;
    for (class, word) in [("near c0", "up to p95"), ("far c0", "up to p99")] {
        canvas.rectangle((from, line - 6.0), (20.0, 12.0), class);
        canvas.text((from + 26.0, line + 4.0), "tick", word);
        from += 94.0;
    }
}

/// The answered calls of a timeline in so few stretches that each has enough for its percentiles,
/// with the middle of each.
fn merged_slices(timeline: &[TimelineSlice]) -> Vec<(Duration, Durations)> {
    let calls: u64 = timeline.iter().map(|slice| slice.ok).sum();
    let points =
        usize::try_from(calls / CALLS_PER_POINT).unwrap_or(POINTS).clamp(MIN_POINTS, POINTS);
    let join = |slices: &[TimelineSlice]| {
        let (first, last) = (slices.first()?, slices.last()?);
        let mut response = Durations::coarse();
        for slice in slices {
            response.merge(&slice.response);
        }
        Some((halfway(first.from, last.from + last.lasting), response))
    };
    timeline.chunks(timeline.len().div_ceil(points).max(1)).filter_map(join).collect()
}

fn halfway(from: Duration, to: Duration) -> Duration {
    (from + to) / 2
}

fn time_axis(canvas: &mut Canvas, x: &AxisScale, bottom: f64, named: Option<&str>) {
    canvas.line((LEFT, bottom), (RIGHT, bottom), "axis");
    for mark in x.ticks() {
        let place = x.place(mark);
        canvas.line((place, bottom), (place, bottom + 5.0), "axis");
        let text = if mark == 0.0 { "0 s".to_owned() } else { shown(mark) };
        canvas.text((place, bottom + 19.0), "tick mid", &text);
    }
    if let Some(name) = named {
        canvas.text((f64::midpoint(LEFT, RIGHT), bottom + 37.0), "unit mid", name);
    }
}

fn rows_of_failures(canvas: &mut Canvas, report: &BenchReport, targets: &[&TargetReport]) {
    let x = AxisScale::linear(horizon(report).as_secs_f64(), LEFT, RIGHT);
    let mut bottom = BOTTOM + 28.0;
    let failing = targets.iter().enumerate().filter(|(_, target)| failures(&target.timeline) > 0);
    for (at, target) in failing {
        bottom += ROW;
        let most = target.timeline.iter().map(|slice| slice.failed).max().unwrap_or(0).max(1);
        let name =
            if targets.len() > 1 { format!("{} failed", letter(at)) } else { "failed".to_owned() };
        canvas.text((LEFT - 8.0, bottom - 4.0), "badtext end", &name);
        canvas.line((LEFT, bottom), (RIGHT, bottom), "axis");
        for slice in target.timeline.iter().filter(|slice| slice.failed > 0) {
            let height = (float(slice.failed) / float(most) * (ROW - 8.0)).max(1.5);
            let from = x.place(slice.from.as_secs_f64());
            let to = x.place((slice.from + slice.lasting).as_secs_f64());
            canvas.rectangle((from, bottom - height), ((to - from).max(1.5), height), "bad");
        }
        let text = format!(
            "{} in total, at most {most} in {}",
            failures(&target.timeline),
            slice_length(target)
        );
        canvas.text((RIGHT, bottom - ROW + 6.0), "badtext end", &text);
    }
    if bottom > BOTTOM + 28.0 {
        let middle = f64::midpoint(LEFT, RIGHT);
        canvas.text((middle, bottom + 16.0), "unit mid", axis(report));
    }
}

fn slice_length(target: &TargetReport) -> String {
    target.timeline.first().map_or_else(String::new, |slice| show_duration(slice.lasting))
}

/// Latency distribution, as shares, so that runs of different lengths can be compared.
fn distribution(canvas: &mut Canvas, targets: &[&TargetReport], top: f64) {
    let bottom = top + HISTOGRAM;
    canvas.text((28.0, top - 18.0), "head", "Latency distribution");
    let low = targets.iter().filter_map(|target| target.response.min()).min();
    let high = targets.iter().filter_map(|target| target.response.max()).max();
    canvas.line((LEFT, bottom), (RIGHT, bottom), "axis");
    let (Some(low), Some(high)) = (low, high) else { return };
    let x = AxisScale::logarithmic(low.as_secs_f64(), high.as_secs_f64(), LEFT, RIGHT);
    let (from, to) = x.range();
    let time = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let classes =
        |target: &TargetReport| buckets::between(&target.response, time(from), time(to), CLASSES);
    let share = |count: u64, target: &TargetReport| {
        float(count) / float(target.response.count().max(1)) * 100.0
    };
    let most = targets
        .iter()
        .flat_map(|target| classes(target).into_iter().map(|class| share(class.count, target)))
        .fold(0.0, f64::max);
    let y = AxisScale::linear(most * 1.08, bottom, top);
    for mark in y.ticks() {
        let place = y.place(mark);
        canvas.line((LEFT, place), (RIGHT, place), "grid");
        canvas.text((LEFT - 8.0, place + 4.0), "tick end", &format!("{}%", short_number(mark)));
    }
    for mark in x.ticks() {
        let place = x.place(mark);
        canvas.line((place, bottom), (place, bottom + 5.0), "axis");
        canvas.text((place, bottom + 19.0), "tick mid", &shown(mark));
    }
    canvas.text(
        (f64::midpoint(LEFT, RIGHT), bottom + 38.0),
        "unit mid",
        "latency (logarithmic); share of each tool's successful calls",
    );
    for (at, target) in targets.iter().enumerate() {
        let mut outline = vec![(LEFT, bottom)];
        for class in classes(target) {
            let place = y.place(share(class.count, target));
            outline.push((x.place(class.from.as_secs_f64()), place));
            outline.push((x.place(class.to.as_secs_f64()), place));
        }
        outline.push((RIGHT, bottom));
        let filled = if at == 0 { "" } else { " h1" };
        canvas.path(&outline, true, &format!("bars c{at} d{at}{filled}"));
    }
    // Above the bars, so that nothing hides where the medians are.
    for (at, target) in targets.iter().enumerate() {
        let Some(middle) = seconds(&target.response, 0.5) else { continue };
        let place = x.place(middle);
        canvas.line((place, top), (place, bottom), &format!("stem c{at} d{at}"));
        shape(canvas, (place, top), at);
    }
    canvas.line((LEFT, bottom), (RIGHT, bottom), "axis");
}

/// The key: each target's shape, name and figures.
fn figures(canvas: &mut Canvas, targets: &[&TargetReport], top: f64) {
    const COLUMNS: [(&str, f64); 6] = [
        ("p50", 496.0),
        ("p95", 580.0),
        ("p99", 664.0),
        ("max", 748.0),
        ("answered/s", 842.0),
        ("failed", 928.0),
    ];
    for (name, right) in COLUMNS {
        canvas.text((right, top), "tick end", name);
    }
    for (at, target) in targets.iter().enumerate() {
        let line = top + 24.0 * (float_len(at) + 1.0);
        canvas.line((30.0, line - 5.0), (58.0, line - 5.0), &format!("line c{at} d{at}"));
        shape(canvas, (44.0, line - 5.0), at);
        let name = match targets.len() {
            1 => target.label(),
            _ => format!("{}  {}", letter(at), target.label()),
        };
        canvas.text((68.0, line), "cell", &text::cut(&text::safe_line(&name), 48));
        let time = |value: Option<Duration>| value.map_or_else(|| "–".to_owned(), show_duration);
        let at = |share: f64| match target.response.quantile(share) {
            Some(value) if !target.response.is_reliable_at(share) => {
                format!("({})", show_duration(value))
            }
            value => time(value),
        };
        let rate = usize::from(target.throughput < 100.0);
        let cells = [
            at(0.5),
            at(0.95),
            at(0.99),
            time(target.response.max()),
            format!("{:.rate$}", target.throughput),
            target.requests.saturating_sub(target.ok).to_string(),
        ];
        for ((_, right), cell) in COLUMNS.into_iter().zip(cells) {
            canvas.text((right, line), "num", &cell);
        }
    }
}

/// The shape of a target: a disc, a hollow square, a triangle, a hollow diamond.
fn shape(canvas: &mut Canvas, (x, y): (f64, f64), target: usize) {
    let class = format!("mark c{target}");
    match target {
        0 => {
            let disc: Vec<(f64, f64)> = (0..12)
                .map(|corner| f64::from(corner) / 12.0 * std::f64::consts::TAU)
                .map(|angle| (x + 3.6 * angle.cos(), y + 3.6 * angle.sin()))
                .collect();
            canvas.path(&disc, true, &class);
        }
        1 => {
            let corners =
                [(x - 3.6, y - 3.6), (x + 3.6, y - 3.6), (x + 3.6, y + 3.6), (x - 3.6, y + 3.6)];
            canvas.path(&corners, true, &format!("{class} hollow"));
        }
        2 => canvas.path(&[(x, y - 4.5), (x + 4.5, y + 3.5), (x - 4.5, y + 3.5)], true, &class),
        _ => {
            let corners = [(x, y - 5.0), (x + 5.0, y), (x, y + 5.0), (x - 5.0, y)];
            canvas.path(&corners, true, &format!("{class} hollow"));
        }
    }
}

fn failures(timeline: &[TimelineSlice]) -> u64 {
    timeline.iter().map(|slice| slice.failed).sum()
}

fn failures_of(targets: &[&TargetReport]) -> u64 {
    targets.iter().map(|target| failures(&target.timeline)).sum()
}

fn seconds(durations: &Durations, share: f64) -> Option<f64> {
    durations.quantile(share).map(|value| value.as_secs_f64())
}

fn shown(seconds: f64) -> String {
    show_duration(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

fn short_number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests;
