//! HTML export of a run: one page with its results and charts.
//!
//! Owns: the order of the page and that it needs nothing else: no script, no font, no address. Text
//! of others is escaped by [`escaped`], in text and in attributes alike.

mod tables;

use std::fmt::Write as _;

use super::svg::{self, canvas::escaped};
use crate::bench::environment::BenchEnvironment;
use crate::bench::findings::BenchFindings;
use crate::bench::report::BenchReport;
use crate::bench::summary::{LineTone, ReportLine, summarize};
use crate::bench::{json, machine_facts, run_facts};

/// The page may use only its own styles, regardless of its content.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src 'none'";

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1f2328;--dim:#57606a;--rule:#d0d7de;--paper:#fff;\
--good:#1a7f37;--warn:#9a6700;--bad:#cf222e}\
body{margin:0;background:var(--paper);color:var(--ink);\
font:16px/1.5 system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif}\
main{max-width:60rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.5rem;overflow-wrap:anywhere}h2{font-size:1.1rem;margin-top:2rem}\
ul.said{list-style:none;padding:0}ul.said li{border-left:4px solid var(--rule);margin:.3rem 0;\
padding:.1rem .8rem;overflow-wrap:anywhere}\
ul.said .good{border-color:var(--good)}ul.said .warn{border-color:var(--warn)}\
ul.said .bad{border-color:var(--bad);color:var(--bad)}.weak{color:var(--dim)}\
figure{margin:1rem 0;overflow-x:auto}figure svg{max-width:100%;height:auto}\
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}\
th,td{padding:.25rem .7rem;border-bottom:1px solid var(--rule);text-align:right;\
white-space:nowrap}th{font-weight:600}\
th:first-child,td:first-child,td.words{text-align:left;white-space:normal;overflow-wrap:anywhere;\
min-width:10rem}td.bad{color:var(--bad)}td.good{color:var(--good)}td.warn{color:var(--warn)}";

/// The pictures are drawn for white paper; these rules come after theirs.
const DARK: &str = "\
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--dim:#9198a1;--rule:#3d444d;\
--paper:#0d1117;--good:#3fb950;--warn:#d29922;--bad:#f85149}\
svg text{fill:#e6edf3}svg .paper{fill:#0d1117}\
svg .sub,svg .unit,svg .tick,svg .note{fill:#9198a1}svg .grid{stroke:#262c36}\
svg .axis{stroke:#656c76}svg .badtext{fill:#ff7b72}svg .bad{fill:#f85149}\
svg .c0{stroke:#58a6ff;fill:#58a6ff}svg .c1{stroke:#ffa657;fill:#ffa657}\
svg .c2{stroke:#7ee787;fill:#7ee787}svg .c3{stroke:#d2a8ff;fill:#d2a8ff}\
svg .line,svg .p99{fill:none}svg .hollow{fill:#0d1117}\
svg .near,svg .far{stroke:none}}";

/// A run as a page.
pub fn html(
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
    lines(&mut page, &summarize(report, findings));
    tables::steps(&mut page, report);
    for picture in [svg::svg(report), svg::rate(report), svg::percentiles(report)] {
        let _infallible = write!(page, "<figure>\n{picture}</figure>\n");
    }
    tables::latencies(&mut page, report);
    tables::failures(&mut page, report);
    tables::comparisons(&mut page, &findings.comparisons);
    tables::baseline(&mut page, findings.baseline.as_ref());
    tables::thresholds(&mut page, &findings.thresholds);
    for (heading, all, tone) in [
        ("Bottlenecks", &findings.bottlenecks, LineTone::Plain),
        ("Caveats", &findings.warnings, LineTone::Warning),
    ] {
        if !all.is_empty() {
            let _infallible = writeln!(page, "<h2>{heading}</h2>");
            let line = |text: &String| ReportLine { tone, text: text.clone() };
            lines(&mut page, &all.iter().map(line).collect::<Vec<_>>());
        }
    }
    tables::facts(
        &mut page,
        run_facts::facts(report).into_iter().chain(machine_facts::facts(environment)),
    );
    let _infallible = write!(page, "</main>\n<style>{DARK}</style>\n</body>\n</html>\n");
    page
}

fn lines(page: &mut String, lines: &[ReportLine]) {
    page.push_str("<ul class=\"said\">\n");
    for line in lines {
        let text = escaped(&line.text);
        let _infallible = writeln!(page, "<li class=\"{}\">{text}</li>", class(line.tone));
    }
    page.push_str("</ul>\n");
}

fn class(tone: LineTone) -> &'static str {
    match tone {
        LineTone::Plain => "plain",
        LineTone::Dim => "weak",
        LineTone::Good => "good",
        LineTone::Warning => "warn",
        LineTone::Bad => "bad",
    }
}

#[cfg(test)]
mod tests;
