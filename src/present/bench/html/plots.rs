//! The plots of the page: SVG that needs nothing from elsewhere and takes its colours from the page.

use std::fmt::Write as _;
use std::time::Duration;

use super::{AxisScale, escaped};
use crate::bench::compare::letter;
use crate::bench::formatting::per_second;
use crate::bench::report::{BenchReport, TargetReport, TimelineSlice};
use crate::bench::snapshot::rates;
use crate::util::histogram::{Durations, logarithmic};
use crate::util::units::{float, float_len, show_duration};

/// Maximum number of targets drawn; more lines could not be told apart.
const MAX_TARGETS: usize = 4;
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 356.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 928.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 304.0;
const CLASSES: usize = 72;
const CALLS_PER_POINT: u64 = 60;
const PERCENTILES: u32 = 80;
/// One call in so many, and the percentile that it is beyond.
const ODDS: [(f64, &str); 8] = [
    (2.0, "50%"),
    (4.0, "75%"),
    (10.0, "90%"),
    (20.0, "95%"),
    (100.0, "99%"),
    (1_000.0, "99.9%"),
    (10_000.0, "99.99%"),
    (100_000.0, "99.999%"),
];

type Points = Vec<(f64, f64)>;

struct Curve {
    target: usize,
    class: &'static str,
    points: Points,
}

struct Plot {
    title: &'static str,
    unit: &'static str,
    x: AxisScale,
    marks: Vec<(f64, String)>,
    is_logarithmic: bool,
    show: fn(f64) -> String,
    curves: Vec<Curve>,
}

pub(super) fn all(report: &BenchReport) -> [String; 4] {
    let targets: Vec<&TargetReport> = report.targets.iter().take(MAX_TARGETS).collect();
    let several = targets.len();
    [latencies(report, &targets), calls(report, &targets), classes(&targets), percentiles(&targets)]
        .map(|plot| plot.draw(several))
}

/// The median, and the area from it up to p99.
fn latencies(report: &BenchReport, targets: &[&TargetReport]) -> Plot {
    let end = horizon(report);
    let mut curves = Vec::new();
    for (target, of) in targets.iter().enumerate() {
        let stretches = stretches(&of.timeline);
        let line = |share: f64| -> Points {
            let point = |(middle, response): &(Duration, Durations)| {
                Some(((*middle).min(end).as_secs_f64(), seconds(response, share)?))
            };
            stretches.iter().filter_map(point).collect()
        };
        let area = line(0.5).into_iter().chain(line(0.99).into_iter().rev()).collect();
        curves.push(Curve { target, class: "area", points: area });
        curves.push(Curve { target, class: "line", points: line(0.5) });
    }
    over_time(report, "Latency over time: the median, shaded up to p99", true, shown, curves)
}

fn calls(report: &BenchReport, targets: &[&TargetReport]) -> Plot {
    let end = horizon(report);
    let mut curves = Vec::new();
    for (target, of) in targets.iter().enumerate() {
        let middle =
            |slice: &TimelineSlice| (slice.from + slice.lasting / 2).min(end).as_secs_f64();
        let answered = of.timeline.iter().map(middle).zip(rates(of));
        curves.push(Curve { target, class: "line", points: answered.collect() });
        let failed = |slice: &TimelineSlice| {
            (middle(slice), float(slice.failed) / slice.lasting.as_secs_f64().max(1e-9))
        };
        if of.timeline.iter().any(|slice| slice.failed > 0) {
            let points = of.timeline.iter().map(failed).collect();
            curves.push(Curve { target, class: "line failed", points });
        }
    }
    over_time(report, "Calls per second over time; red: failed", false, per_second, curves)
}

fn over_time(
    report: &BenchReport,
    title: &'static str,
    is_logarithmic: bool,
    show: fn(f64) -> String,
    curves: Vec<Curve>,
) -> Plot {
    let x = AxisScale::linear(horizon(report).as_secs_f64(), LEFT, RIGHT);
    let marks = x.ticks().into_iter().map(|mark| (mark, shown(mark))).collect();
    let unit = if report.rounds.is_empty() {
        "since the first counted call"
    } else {
        "each tool's own rounds, one after the other"
    };
    Plot { title, unit, x, marks, is_logarithmic, show, curves }
}

/// How the latencies are spread, as shares, so that runs of different lengths can be compared.
fn classes(targets: &[&TargetReport]) -> Plot {
    let mut curves = Vec::new();
    for (target, of) in targets.iter().enumerate() {
        let Some(spread) = logarithmic(&of.response, CLASSES) else { continue };
        let mut from = spread.from.as_secs_f64();
        let mut points = vec![(from, 0.0)];
        for (limit, count) in spread.classes {
            let share = float(count) / float(of.response.count()) * 100.0;
            points.extend([(from, share), (limit.as_secs_f64(), share)]);
            from = limit.as_secs_f64();
        }
        points.push((from, 0.0));
        curves.push(Curve { target, class: "area", points: points.clone() });
        curves.push(Curve { target, class: "line", points });
    }
    let (low, high) = range(curves.iter().flat_map(|curve| &curve.points).map(|(time, _)| *time));
    let x = AxisScale::logarithmic(low, high, LEFT, RIGHT);
    let marks = x.ticks().into_iter().map(|mark| (mark, shown(mark))).collect();
    let unit = "latency (logarithmic); share of each tool's successful calls";
    let show = |share: f64| format!("{}%", per_second(share));
    Plot { title: "Latency distribution", unit, x, marks, is_logarithmic: false, show, curves }
}

/// The latency that a share of the calls stays below; the axis stretches the slowest ones.
fn percentiles(targets: &[&TargetReport]) -> Plot {
    let calls = targets.iter().map(|target| target.response.count()).max().unwrap_or(0);
    let highest = float(calls).clamp(10.0, 100_000.0);
    let curve = |(target, of): (usize, &&TargetReport)| {
        let own = float(of.response.count()).max(1.0);
        let point = |step: u32| {
            let odds = highest.powf(f64::from(step) / f64::from(PERCENTILES));
            // Beyond the last call of a short run there is nothing to draw.
            let time = seconds(&of.response, 1.0 - 1.0 / odds).filter(|_| odds <= own)?;
            Some((odds, time))
        };
        let points = (1..=PERCENTILES).filter_map(point).collect();
        Curve { target, class: "line", points }
    };
    let marks = ODDS.iter().filter(|(odds, _)| *odds <= highest);
    Plot {
        title: "Latency by percentile",
        unit: "share of successful calls at least as fast",
        x: AxisScale::logarithmic(1.1, highest / 1.1, LEFT, RIGHT),
        marks: marks.map(|(odds, name)| (*odds, (*name).to_owned())).collect(),
        is_logarithmic: true,
        show: shown,
        curves: targets.iter().enumerate().map(curve).collect(),
    }
}

impl Plot {
    fn draw(&self, targets: usize) -> String {
        let values = self.curves.iter().flat_map(|curve| &curve.points).map(|(_, value)| *value);
        let (low, high) = range(values);
        let y = if self.is_logarithmic {
            AxisScale::logarithmic(low, high, BOTTOM, TOP)
        } else {
            AxisScale::linear(high * 1.08, BOTTOM, TOP)
        };
        let title = escaped(self.title);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\">\n<title>{title}</title>\n"
        );
        text(&mut svg, (28.0, TOP - 18.0), "head", self.title);
        for mark in y.ticks() {
            path(&mut svg, &[(LEFT, y.place(mark)), (RIGHT, y.place(mark))], "grid");
            text(&mut svg, (LEFT - 8.0, y.place(mark) + 4.0), "end", &(self.show)(mark));
        }
        path(&mut svg, &[(LEFT, BOTTOM), (RIGHT, BOTTOM)], "axis");
        for (value, name) in &self.marks {
            let place = self.x.place(*value);
            path(&mut svg, &[(place, BOTTOM), (place, BOTTOM + 5.0)], "axis");
            text(&mut svg, (place, BOTTOM + 19.0), "mid", name);
        }
        let middle = f64::midpoint(LEFT, RIGHT);
        text(&mut svg, (middle, BOTTOM + 37.0), "mid", self.unit);
        if self.curves.iter().all(|curve| curve.points.is_empty()) {
            text(&mut svg, (middle, f64::midpoint(TOP, BOTTOM)), "mid", "no successful calls");
        }
        for Curve { target, class, points } in &self.curves {
            let points: Points =
                points.iter().map(|(x, value)| (self.x.place(*x), y.place(*value))).collect();
            path(&mut svg, &points, &format!("{class} c{target}"));
        }
        // One target needs no key; several differ by their dashes, too.
        for target in (0..targets).filter(|_| targets > 1) {
            let place = RIGHT - 60.0 * float_len(targets - target);
            path(
                &mut svg,
                &[(place, TOP - 22.0), (place + 32.0, TOP - 22.0)],
                &format!("line c{target}"),
            );
            text(&mut svg, (place + 38.0, TOP - 18.0), "", &letter(target).to_string());
        }
        svg + "</svg>\n"
    }
}

fn path(svg: &mut String, points: &[(f64, f64)], class: &str) {
    if points.is_empty() {
        return;
    }
    let mut data = String::new();
    for (at, (x, y)) in points.iter().enumerate() {
        let command = if at == 0 { 'M' } else { 'L' };
        let _infallible = write!(data, "{command}{x:.1} {y:.1}");
    }
    let _infallible = writeln!(svg, "<path class=\"{class}\" d=\"{data}\"/>");
}

fn text(svg: &mut String, (x, y): (f64, f64), class: &str, text: &str) {
    let text = escaped(text);
    let _infallible =
        writeln!(svg, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>");
}

/// When the last of the timelines ends. Targets that take turns have each a time of their own.
fn horizon(report: &BenchReport) -> Duration {
    let ends = report.targets.iter().filter_map(|target| target.timeline.last());
    let last = ends.map(|slice| slice.from + slice.lasting).max().unwrap_or(report.elapsed);
    last.min(report.elapsed)
}

/// The answered calls of a timeline in so few stretches that each has enough for its percentiles,
/// with the middle of each.
fn stretches(timeline: &[TimelineSlice]) -> Vec<(Duration, Durations)> {
    let calls: u64 = timeline.iter().map(|slice| slice.ok).sum();
    let points = usize::try_from(calls / CALLS_PER_POINT).unwrap_or(usize::MAX).clamp(24, 96);
    let stretches = timeline.chunks(timeline.len().div_ceil(points).max(1));
    let stretches = stretches.filter_map(TimelineSlice::joined);
    stretches.map(|slice| (slice.from + slice.lasting / 2, slice.response)).collect()
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, 0.0), |(low, high), value| (low.min(value), high.max(value)))
}

fn seconds(durations: &Durations, share: f64) -> Option<f64> {
    durations.quantile(share).map(|value| value.as_secs_f64())
}

fn shown(seconds: f64) -> String {
    show_duration(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fixtures::{noisy, report, rounds, target};

    fn failing(mut of: TargetReport) -> TargetReport {
        for slice in of.timeline.iter_mut().skip(5).step_by(9) {
            slice.failed = slice.ok % 5 + 1;
            of.requests += slice.failed;
            of.errors += slice.failed;
        }
        of
    }

    fn two() -> BenchReport {
        report(vec![
            failing(target("notes-search", noisy(0.004, 2_500, 1))),
            target("memory-search", noisy(0.006, 1_600, 2)),
        ])
    }

    /// The elements are closed and nothing comes from elsewhere.
    #[track_caller]
    fn sound(report: &BenchReport) -> [String; 4] {
        let plots = all(report);
        for plot in &plots {
            assert!(plot.len() <= 50 * 1024, "{} bytes", plot.len());
            assert!(plot.starts_with("<svg ") && plot.ends_with("</svg>\n"));
            for foreign in ["href", "url(", "<script", "<image", "NaN", "inf"] {
                assert!(!plot.contains(foreign), "{foreign}");
            }
            assert_eq!(plot.matches("<text").count(), plot.matches("</text>").count());
        }
        plots
    }

    #[test]
    fn every_target_has_its_line_and_failures_are_drawn() {
        let [latencies, calls, ..] = sound(&two());
        assert!(latencies.contains("class=\"line c1\"") && latencies.contains("class=\"area c1\""));
        assert!(calls.contains("class=\"line failed c0\"") && !calls.contains("failed c1"));
    }

    #[test]
    fn targets_that_took_turns_have_times_of_their_own() {
        let mut report = two();
        assert!(sound(&report)[0].contains("since the first counted call"));
        report.elapsed *= 2;
        report.rounds = rounds(&[4, 6], 5);
        let [plot, ..] = sound(&report);
        assert!(plot.contains("each tool&#39;s own rounds"));
        assert!(plot.contains(">10 s<") && !plot.contains(">20 s<"), "no empty half");
    }

    #[test]
    fn nothing_and_very_little_can_be_drawn() {
        for times in [vec![], vec![Duration::ZERO], vec![Duration::from_millis(3)]] {
            sound(&report(vec![target("a", times)]));
        }
        sound(&report(Vec::new()));
        assert!(sound(&report(vec![target("a", [])]))[0].contains("no successful calls"));
    }

    #[test]
    fn many_targets_stay_below_the_bound() {
        let targets = (0..6).map(|seed| failing(target("long", noisy(0.004, 3_000, seed))));
        sound(&report(targets.collect()));
    }
}
