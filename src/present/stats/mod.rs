//! `stats`: tables and lines.

pub mod detail;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::present::{Line, Page, Role, Table, TableColumn, plural};
use crate::stats::comparison::ExceededSpeed;
use crate::stats::count::{CallCounts, ToolKey};
use crate::stats::{Summary, Usage};
use crate::util::histogram::Durations;
use crate::util::timestamp::local_time;
use crate::util::units::{show_count, show_duration};

/// The reported percentiles, with their names.
pub(crate) const QUANTILES: [(&str, f64); 4] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)];

pub(crate) fn seconds(millis: u64) -> f64 {
    crate::util::units::float(millis) / 1e3
}

const UNSURE: char = '?';

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatsRows {
    Tools,
    Servers,
}

/// A table of tools or servers. `width` is that of the screen.
pub fn table(usages: &[Usage], rows: StatsRows, width: Option<usize>) -> Page {
    let first = match rows {
        StatsRows::Tools => TableColumn::new("TOOL").shrinks_to(10),
        StatsRows::Servers => TableColumn::new("SERVER").shrinks_to(10),
    };
    let number = |title: &str| TableColumn::new(title).right();
    let shared = shared_names(usages.iter().map(|usage| &usage.tool));
    let projects: BTreeSet<&Option<String>> =
        usages.iter().map(|usage| &usage.tool.place.project).collect();
    let mut table = Table::new([
        first,
        TableColumn::new("PROJECT").shrinks_to(10),
        TableColumn::new("SERVER").shrinks_to(8).droppable(8),
        number("CALLS"),
        number("OK%"),
        number("ERRORS").droppable(2),
        number("MEAN").droppable(6),
        number("P50").droppable(3),
        number("P95"),
        number("P99").droppable(4),
        number("MAX").droppable(7),
        TableColumn::new("LAST USED").droppable(5),
        TableColumn::new("FAILURES").shrinks_to(10).droppable(9),
    ]);
    for usage in usages {
        let (counts, durations) = (&usage.counts, &usage.counts.durations);
        let server = match rows {
            StatsRows::Tools => usage.tool.server.as_deref(),
            StatsRows::Servers => None,
        };
        let errors = match counts.failed() {
            0 => Line::styled(Role::Dim, "0"),
            failed => Line::styled(Role::Error, failed.to_string()),
        };
        // A single project is not worth a column; empty columns are omitted.
        let project = usage.tool.place.project.as_deref().filter(|_| projects.len() > 1);
        table.row([
            name_cell(&usage.tool, rows, &shared),
            Line::plain(project.unwrap_or_default()),
            Line::plain(server.unwrap_or_default()),
            Line::plain(counts.calls().to_string()),
            share(counts),
            errors,
            Line::plain(time(durations.mean())),
            quantile(durations, 0.5),
            quantile(durations, 0.95),
            quantile(durations, 0.99),
            Line::plain(time(durations.max())),
            Line::styled(Role::Dim, local_time(seconds(usage.period.last))),
            Line::styled(Role::Error, counts.failures_text()),
        ]);
    }
    table.layout(width)
}

fn shared_names<'u>(tools: impl Iterator<Item = &'u ToolKey>) -> BTreeSet<&'u ToolKey> {
    let mut programs: BTreeMap<_, BTreeSet<&ToolKey>> = BTreeMap::new();
    for tool in tools {
        let name = (&tool.name, &tool.server, &tool.place.project);
        programs.entry(name).or_default().insert(tool);
    }
    programs.into_values().filter(|keys| keys.len() > 1).flatten().collect()
}

/// The first column: the name, and the program if several share the name.
fn name_cell(tool: &ToolKey, rows: StatsRows, shared: &BTreeSet<&ToolKey>) -> Line {
    let name = match rows {
        StatsRows::Tools => tool.name.as_str(),
        StatsRows::Servers => tool.server.as_deref().unwrap_or("(internal)"),
    };
    let mut cell = Line::styled(Role::Name, name);
    if let (true, Some(program)) = (shared.contains(tool), &tool.place.program) {
        cell.push(Role::Dim, format!(" @{program}"));
    }
    cell
}

pub fn remarks(summary: &Summary, usages: &[Usage]) -> Vec<Line> {
    let mut lines = Vec::new();
    if !shared_names(usages.iter().map(|usage| &usage.tool)).is_empty() {
        let notice =
            "@ marks programs with the same name; 'toolhost inspect NAME' shows the current one";
        lines.push(Line::styled(Role::Dim, notice));
    }
    let few = |usage: &Usage| {
        let durations = &usage.counts.durations;
        durations.count() > 0 && !durations.is_reliable_at(0.99)
    };
    if usages.iter().any(few) {
        let notice = format!("{UNSURE} too few calls for a reliable percentile");
        lines.push(Line::styled(Role::Dim, notice));
    }
    for usage in summary.future_dated() {
        let notice = format!(
            "'{}' has calls dated {}, in the future: the clock was changed",
            usage.tool.name,
            local_time(seconds(usage.period.last))
        );
        lines.push(Line::styled(Role::Warning, notice));
    }
    if summary.is_behind {
        let notice = "more calls are in the spool; 'toolhost stats' counts them";
        lines.push(Line::styled(Role::Dim, notice));
    }
    if summary.damaged_lines > 0 {
        let lines_of_spool = usize::try_from(summary.damaged_lines).unwrap_or(usize::MAX);
        let damaged = plural(lines_of_spool, "damaged spool line was", "damaged spool lines were");
        lines.push(Line::styled(Role::Dim, format!("{damaged} skipped")));
    }
    lines
}

/// One line about a tool, for `inspect`.
pub fn summary_line(usage: &Usage) -> Line {
    let (counts, durations) = (&usage.counts, &usage.counts.durations);
    let least = if usage.is_partial { "at least " } else { "" };
    let mut line = Line::plain(format!("{least}{}", plural(counts.calls(), "call", "calls")));
    line = line.then(Role::Plain, ", ");
    line.append(share(counts));
    line.push(Role::Plain, "% ok");
    if counts.failed() > 0 {
        line.push(Role::Plain, " (");
        line.push(Role::Error, counts.failures_text());
        line.push(Role::Plain, ")");
    }
    if counts.cancelled > 0 {
        line.push(Role::Plain, format!(", {} cancelled", show_count(counts.cancelled)));
    }
    if durations.count() > 0 {
        for (name, share) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
            line.push(Role::Plain, format!(", {name} "));
            line.append(quantile(durations, share));
        }
    }
    line.then(Role::Plain, ", last used ").then(Role::Plain, local_time(seconds(usage.period.last)))
}

pub fn slower_line(slower: &ExceededSpeed) -> Line {
    let (speed, limit) = (slower.speed.as_str(), slower.speed.default_timeout());
    let (p95, limit) = (show_duration(slower.p95), show_duration(limit));
    let text = format!("slower than declared: p95 {p95}, {speed} is up to {limit}");
    Line::styled(Role::Warning, text)
}

/// The percentage of calls that succeeded.
pub fn share(counts: &CallCounts) -> Line {
    let Some(share) = counts.success_rate() else { return Line::default() };
    let percent = share * 100.0;
    // Only a full share is shown as 100 %.
    let shown = if counts.failed() > 0 { percent.min(99.9) } else { percent };
    let label = if counts.failed() == 0 { Role::Success } else { Role::Warning };
    Line::styled(label, format!("{shown:.1}"))
}

pub fn quantile(durations: &Durations, share: f64) -> Line {
    let Some(value) = durations.quantile(share) else { return Line::default() };
    if durations.is_reliable_at(share) {
        return Line::plain(show_duration(value));
    }
    Line::styled(Role::Dim, format!("{}{UNSURE}", show_duration(value)))
}

pub fn time(value: Option<Duration>) -> String {
    value.map(show_duration).unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::present::page::LineRenderer;
    use crate::stats::count::UsagePeriod;

    const LAST: u64 = 1_795_304_776_500;

    pub(in crate::present::stats) fn usage(name: &str, server: Option<&str>, calls: u64) -> Usage {
        let mut counts =
            CallCounts { ok: calls, attempts: calls, bytes: 10, ..CallCounts::default() };
        for call in 1..=calls {
            counts.durations.record(Duration::from_micros(call * 1_000));
        }
        let server = server.map(str::to_owned);
        let tool = ToolKey { name: name.into(), server, ..ToolKey::default() };
        Usage {
            tool,
            counts,
            period: UsagePeriod { first: LAST - 500, last: LAST },
            is_partial: false,
        }
    }

    pub(crate) fn summary() -> Summary {
        let mut failing = usage("web-search\u{1b}[2J", Some("web"), 31);
        failing.counts.add_failures("timeout", 4);
        failing.counts.add_failures("tool", 2);
        failing.counts.add_failures("unreachable", 1);
        failing.counts.attempts = 50;
        let mut never = usage("web-fail", Some("web"), 0);
        never.counts.add_failures("tool", 1);
        Summary {
            now: Duration::from_millis(LAST),
            tools: vec![usage("calculator", None, 2_000), never, failing],
            ..Summary::default()
        }
    }

    pub(in crate::present::stats) fn shown(page: &Page) -> String {
        let time = local_time(seconds(LAST));
        LineRenderer::default().page(page).replace(&time, "2026-11-21 23:46:16")
    }

    #[test]
    fn a_table_fits_every_terminal() {
        let summary = summary();
        let page = |width| shown(&table(&summary.tools, StatsRows::Tools, width));
        let wide = page(None);
        let head: Vec<&str> = wide.lines().next().unwrap().split_whitespace().collect();
        let columns = "TOOL SERVER CALLS OK% ERRORS MEAN P50 P95 P99 MAX LAST USED FAILURES";
        assert_eq!(head.join(" "), columns);
        let row = |name: &str| wide.lines().find(|line| line.starts_with(name)).unwrap();
        // A name of others that was cut holds no half of an escape sequence.
        for (name, parts) in [
            ("calculator", ["2000", "100.0", "2026-11-21 23:46:16"]),
            ("web-search␛[2J", ["38", "81.6", "timeout 4, tool 2, unreachable 1"]),
            ("web-fail", ["0.0", "web", "2026-11-21 23:46:16"]),
        ] {
            for part in parts {
                assert!(row(name).contains(part), "{part}: {}", row(name));
            }
        }
        let narrow = table(&summary.tools, StatsRows::Tools, Some(40));
        assert!(narrow.lines().iter().all(|line| line.width() <= 40), "{}", shown(&narrow));
        let narrow = shown(&narrow);
        for part in ["TOOL", "CALLS", "OK%", "P95", "calculator", "81.6"] {
            assert!(narrow.contains(part), "{part}:\n{narrow}");
        }
        let servers = shown(&table(&summary.servers(), StatsRows::Servers, Some(60)));
        assert!(servers.contains("(internal)") && servers.contains("web "), "{servers}");
        let remarks = remarks(&summary, &summary.tools);
        assert_eq!(remarks.len(), 1, "{remarks:?}");
    }

    #[test]
    fn one_line_says_the_most_important() {
        let line = |usage: &Usage| shown(&Page::from(summary_line(usage)));
        let summary = summary();
        let used = line(&summary.tools[0]);
        assert!(used.starts_with("2,000 calls, 100.0% ok, p50 1 s, p95 1.9"), "{used}");
        assert!(used.ends_with(", last used 2026-11-21 23:46:16\n"), "{used}");
        let failed = line(&summary.tools[1]);
        assert_eq!(failed, "1 call, 0.0% ok (tool 1), last used 2026-11-21 23:46:16\n");
    }
}
