//! `stats NAME`: all statistics of one tool.

use std::time::Duration;

use super::{QUANTILES, seconds};
use crate::present::stats::{quantile, share, time};
use crate::present::{Line, Page, Role, chart};
use crate::stats::Usage;
use crate::stats::summary::TimeSlice;
use crate::util::timestamp::local_time;
use crate::util::units::{float, show_count, show_size};

const COLUMN: usize = 15;

/// How many time slices fit next to their labels.
pub fn slices_in(width: Option<usize>) -> usize {
    width.map_or(60, |width| width.saturating_sub(20).clamp(10, 60))
}

pub fn page(usage: &Usage, slices: &[TimeSlice], width: Option<usize>) -> Page {
    let (counts, durations) = (&usage.counts, &usage.counts.durations);
    let mut page = Page::from(Line::styled(Role::Name, &usage.tool.name));
    let mut calls = Line::plain(counts.calls().to_string());
    calls.push(Role::Plain, ", ");
    calls.append(share(counts));
    calls.push(Role::Plain, "% ok");
    fact(&mut page, "calls", calls);
    let mut text = |key: &str, value: &str| page.field(key, Role::Plain, value, width);
    text("server", usage.tool.server.as_deref().unwrap_or_default());
    text("first used", &local_time(seconds(usage.period.first)));
    text("last used", &local_time(seconds(usage.period.last)));
    if counts.retries() > 0 {
        let retries = format!("{}, {} succeeded after a retry", counts.retries(), counts.recovered);
        text("retries", &retries);
    }
    text("results", &show_size(counts.bytes));
    if durations.count() > 0 {
        page.heading(&format!("Durations of {} successful calls", show_count(durations.count())));
        fact(&mut page, "mean", Line::plain(time(durations.mean())));
        fact(&mut page, "deviation", Line::plain(time(durations.stddev())));
        for (name, share) in QUANTILES {
            fact(&mut page, name, quantile(durations, share));
        }
        let ends = format!("{} to {}", time(durations.min()), time(durations.max()));
        fact(&mut page, "range", Line::plain(ends));
        page.blank_line();
        page.append(chart::histogram(durations, width));
    }
    if counts.failed() > 0 {
        page.heading("Failures");
        for (kind, count) in counts.failures_by_count() {
            fact(&mut page, kind, Line::styled(Role::Error, count.to_string()));
        }
    }
    trend(&mut page, slices);
    page
}

fn fact(page: &mut Page, key: &str, value: Line) {
    page.fact(COLUMN, key, value);
}

/// Calls, failures and the 95th percentile in the slices of time.
fn trend(page: &mut Page, slices: &[TimeSlice]) {
    let (Some(first), Some(last)) = (slices.first(), slices.last()) else { return };
    if slices.len() < 2 {
        return;
    }
    page.heading(&format!("Over time, {} per character", span(first.length)));
    let line = |value: &dyn Fn(&TimeSlice) -> f64| {
        let numbers: Vec<f64> = slices.iter().map(value).collect();
        chart::sparkline(&numbers, numbers.len())
    };
    let p95 = |slice: &TimeSlice| {
        slice.counts.durations.quantile(0.95).map_or(0.0, |p95| p95.as_secs_f64())
    };
    let most = |value: &dyn Fn(&TimeSlice) -> u64| slices.iter().map(value).max().unwrap_or(0);
    fact(page, "calls", Line::styled(Role::Success, line(&|slice| float(slice.counts.calls()))));
    if most(&|slice| slice.counts.failed()) > 0 {
        fact(
            page,
            "failures",
            Line::styled(Role::Error, line(&|slice| float(slice.counts.failed()))),
        );
    }
    fact(page, "p95", Line::plain(line(&p95)));
    let end = last.from + last.length;
    let text =
        format!("{} to {}", local_time(first.from.as_secs_f64()), local_time(end.as_secs_f64()));
    fact(page, "", Line::styled(Role::Dim, text));
}

pub fn span(length: Duration) -> String {
    let seconds = length.as_secs();
    for (unit, name) in [(86_400, "day"), (3_600, "hour"), (60, "minute")] {
        if seconds >= unit && seconds.is_multiple_of(unit) {
            let count = seconds / unit;
            let plural = if count == 1 { "" } else { "s" };
            return format!("{count} {name}{plural}");
        }
    }
    format!("{seconds} seconds")
}

#[cfg(test)]
mod tests {
    use crate::cli::json::stats::StatsJson;
    use crate::present::{
        page::LineRenderer,
        stats::detail::*,
        stats::tests::{shown, usage},
    };
    use crate::stats::Summary;
    use crate::stats::count::CallCounts;

    fn slices() -> Vec<TimeSlice> {
        let slice = |index: u64| {
            let mut counts = CallCounts { ok: index, ..CallCounts::default() };
            counts.durations.record_many(Duration::from_millis(index * 10), index);
            if index == 3 {
                counts.add_failures("tool", 2);
            }
            TimeSlice {
                from: Duration::from_secs(index * 3_600),
                length: Duration::from_hours(1),
                counts,
            }
        };
        (0..6).map(slice).collect()
    }

    #[test]
    fn one_tool_is_shown_whole() {
        let mut usage = usage("web-search", Some("web"), 300);
        usage.counts.add_failures("timeout", 2);
        usage.counts.add_failures("tool", 30);
        usage.counts.attempts += 40;
        let page = page(&usage, &slices(), Some(60));
        assert!(page.lines().iter().all(|line| line.width() <= 60));
        let text = shown(&page);
        for part in [
            "332, 90.4% ok",
            "web",
            "Durations of 300 successful calls",
            "timeout      2\n",
            "tool         30\n  timeout",
            "Over time, 1 hour per character",
            "calls         ▂▃█▆█\n",
            "failures        █\n",
            "1970-01-01 ",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        let ascii = LineRenderer { colour: false, ascii: true }.page(&page);
        assert!(ascii.is_ascii(), "{ascii}");
        let summary = Summary { tools: vec![usage], ..Summary::default() };
        let value = StatsJson::from((&summary, Some(&slices()[..])));
        let value = serde_json::to_value(value).unwrap()["tools"][0].take();
        assert_eq!(value["course"].as_array().unwrap().len(), 6);
        let calls = value["histogram"].as_array().unwrap().iter().map(|c| c["calls"].as_u64());
        assert_eq!(calls.map(Option::unwrap).sum::<u64>(), 300);
    }
}
