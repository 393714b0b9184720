//! HTML export of a run: one page with its results and charts, whose axes have round marks.

use std::fmt::Write as _;

use crate::bench::bench_result::BenchFindings;
use crate::bench::environment::BenchEnvironment;
use crate::bench::json;
use crate::bench::report::BenchReport;
use crate::bench::summary::summarize;
use crate::present::{Page, Role};
use crate::util::text::safe_line;

mod plots;

/// The page may use only its own styles, regardless of its content.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src 'none'";

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1f2328;--dim:#57606a;--rule:#d0d7de;--paper:#fff;\
--good:#1a7f37;--warn:#9a6700;--bad:#cf222e;--c0:#0b62a8;--c1:#bf4a00;--c2:#2f7d32;--c3:#7a3e9d}\
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--dim:#9198a1;--rule:#3d444d;\
--paper:#0d1117;--good:#3fb950;--warn:#d29922;--bad:#f85149;--c0:#58a6ff;--c1:#ffa657;\
--c2:#7ee787;--c3:#d2a8ff}}\
body{margin:0;background:var(--paper);color:var(--ink);\
font:16px/1.5 system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif}\
main{max-width:60rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.5rem;overflow-wrap:anywhere}h2{font-size:1.1rem;margin-top:2rem}\
ul.said{list-style:none;padding:0}ul.said li{border-left:4px solid var(--rule);margin:.3rem 0;\
padding:.1rem .8rem;overflow-wrap:anywhere}\
ul.said .good{border-color:var(--good)}ul.said .warn{border-color:var(--warn)}\
ul.said .bad{border-color:var(--bad);color:var(--bad)}.weak{color:var(--dim)}\
figure{margin:1rem 0;overflow-x:auto}figure svg{max-width:100%;height:auto}\
pre{font-size:.875rem;overflow-x:auto}pre:empty{display:none}.bad{color:var(--bad)}.good{color:var(--good)}.warn{color:var(--warn)}\
svg text{font-size:12px;fill:var(--dim)}svg .head{font-size:14px;font-weight:600;fill:var(--ink)}\
.end{text-anchor:end}.mid{text-anchor:middle}\
svg path{fill:none}.grid{stroke:var(--rule);stroke-opacity:.5}.axis{stroke:var(--dim)}\
.c0{stroke:var(--c0)}.c1{stroke:var(--c1);stroke-dasharray:7 4}\
.c2{stroke:var(--c2);stroke-dasharray:2 3}.c3{stroke:var(--c3);stroke-dasharray:9 3 2 3}\
svg .area{stroke:none;fill-opacity:.15}.area.c0{fill:var(--c0)}.area.c1{fill:var(--c1)}\
.area.c2{fill:var(--c2)}.area.c3{fill:var(--c3)}.line{stroke-width:2}svg .failed{stroke:var(--bad)}";

/// The width of the report, in cells.
const CELLS: usize = 100;

/// A run as a page.
pub(super) fn html(
    report: &BenchReport,
    environment: &BenchEnvironment,
    findings: &BenchFindings,
) -> String {
    let title = format!("Benchmark of {}", report.tools().join(" and "));
    let mut page = String::new();
    let _infallible = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}</h1>\n<p class=\"weak\">{began}</p>\n",
        title = escaped(&title),
        began = escaped(&json::timestamp(report.began).unwrap_or_default()),
    );
    page.push_str("<ul class=\"said\">\n");
    for line in summarize(report, findings) {
        let _infallible = writeln!(page, "<li{}</li>", marked(super::style(line.tone), &line.text));
    }
    page.push_str("</ul>\n");
    for plot in plots::all(report) {
        let _infallible = write!(page, "<figure>\n{plot}</figure>\n");
    }
    text(&mut page, &super::page(report, environment, findings, Some(CELLS)));
    page + "</main>\n</body>\n</html>\n"
}

/// The report as a terminal shows it, its headings as those of the page.
fn text(page: &mut String, report: &Page) {
    page.push_str("<pre>\n");
    for line in report.lines() {
        if let [(Role::Title, heading)] = line.spans() {
            let _infallible = writeln!(page, "</pre>\n<h2>{}</h2>\n<pre>", escaped(heading));
            continue;
        }
        for (role, text) in line.spans() {
            let _infallible = write!(page, "<span{}</span>", marked(*role, text));
        }
        page.push('\n');
    }
    page.push_str("</pre>\n");
}

/// The rest of an element of this role after its name.
fn marked(role: Role, text: &str) -> String {
    let class = match role {
        Role::Dim => "weak",
        Role::Success => "good",
        Role::Warning => "warn",
        Role::Error => "bad",
        _ => return format!(">{}", escaped(text)),
    };
    format!(" class=\"{class}\">{}", escaped(text))
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in safe_line(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// A range of the picture that represents a range of values.
#[derive(Debug, Clone, Copy)]
struct AxisScale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    logarithmic: bool,
}

impl AxisScale {
    fn linear(high: f64, from: f64, to: f64) -> Self {
        let high = if high.is_finite() && high > 0.0 { high } else { 1.0 };
        Self { low: 0.0, high, from, to, logarithmic: false }
    }

    /// Figures from `low` to `high`, both above 0, with a little room; at least a factor 2.
    fn logarithmic(low: f64, high: f64, from: f64, to: f64) -> Self {
        let low = if low.is_finite() && low > 0.0 { low } else { 1e-3 };
        let high = if high.is_finite() && high > low { high } else { low };
        let (mut low, mut high) = (low / 1.1, high * 1.1);
        if high / low < 2.0 {
            let middle = (low * high).sqrt();
            (low, high) = (middle / 1.5, middle * 1.5);
        }
        Self { low, high, from, to, logarithmic: true }
    }

    /// The place of a figure; figures beyond the ends are at the ends.
    fn place(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            value / self.high
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Round figures, about 4 to 9 of them.
    fn ticks(&self) -> Vec<f64> {
        if !self.logarithmic {
            return self.even();
        }
        let decades: [&[f64]; 4] =
            [&[1.0], &[1.0, 3.0], &[1.0, 2.0, 5.0], &[1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0]];
        for steps in decades {
            let marks = self.decades(steps);
            if marks.len() >= 4 {
                return marks;
            }
        }
        self.decades(decades[3])
    }

    fn decades(&self, steps: &[f64]) -> Vec<f64> {
        let mut marks = Vec::new();
        let mut decade = 10_f64.powf(self.low.log10().floor());
        while decade <= self.high && marks.len() < 100 {
            let within = |mark: &f64| *mark >= self.low && *mark <= self.high;
            marks.extend(steps.iter().map(|step| step * decade).filter(within));
            decade *= 10.0;
        }
        marks
    }

    fn even(&self) -> Vec<f64> {
        let rough = self.high / 6.0;
        let decade = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0]
            .into_iter()
            .map(|step| step * decade)
            .find(|step| *step >= rough)
            .unwrap_or(rough);
        let mut marks = Vec::new();
        let mut number = 0.0;
        while number * step <= self.high * 1.000_001 && marks.len() < 100 {
            marks.push(number * step);
            number += 1.0;
        }
        marks
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod scale_tests {
    use super::*;

    #[test]
    fn figures_have_places_and_the_ends_hold_what_is_beyond() {
        let scale = AxisScale::logarithmic(1.0, 100.0, 0.0, 200.0);
        assert!((scale.place(10.0) - 100.0).abs() < 1e-9);
        assert_eq!((scale.place(0.0), scale.place(1e9)), (0.0, 200.0));
        let scale = AxisScale::linear(10.0, 100.0, 0.0);
        assert!((scale.place(2.5) - 75.0).abs() < 1e-9);
    }

    #[test]
    fn marks_are_round_and_neither_few_nor_many() {
        for (low, high) in [(0.001, 0.0012), (0.001, 0.004), (1e-6, 10.0), (0.5, 0.5), (2.0, 2.1)] {
            let marks = AxisScale::logarithmic(low, high, 0.0, 1.0).ticks();
            assert!((2..=12).contains(&marks.len()), "{low} to {high}: {marks:?}");
        }
        for high in [0.3, 1.0, 7.0, 10.0, 12_345.0] {
            let marks = AxisScale::linear(high, 0.0, 1.0).ticks();
            assert!((4..=8).contains(&marks.len()), "{high}: {marks:?}");
        }
    }

    #[test]
    fn nonsense_has_a_scale_too() {
        for (low, high) in [(f64::NAN, f64::NAN), (0.0, 0.0), (-1.0, f64::INFINITY)] {
            let scale = AxisScale::logarithmic(low, high, 0.0, 1.0);
            assert!(scale.place(0.5).is_finite() && !scale.ticks().is_empty(), "{low} {high}");
        }
        assert!(AxisScale::linear(f64::NAN, 0.0, 1.0).place(0.5).is_finite());
    }
}
