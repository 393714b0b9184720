//! HTML export of a run: one page with its results and charts.

mod plots;
mod scale;

use std::fmt::Write as _;

use crate::bench::environment::BenchEnvironment;
use crate::bench::findings::BenchFindings;
use crate::bench::json;
use crate::bench::report::BenchReport;
use crate::bench::summary::summarize;
use crate::present::{Page, Role};
use crate::util::text::safe_line;

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

#[cfg(test)]
mod tests;
