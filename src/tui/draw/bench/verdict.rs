//! What the run showed: whether it failed what was asked of it, how the tools compare, what limits
//! it, and what to know before believing it.

use ratatui::text::Line;

use crate::bench::account::Account;
use crate::bench::baseline::Change;
use crate::bench::compare::{Comparison, Ratio, Verdict, letter};
use crate::bench::report::Ending;
use crate::model::Fault;
use crate::tui::draw::columns;
use crate::tui::draw::words::Words;
use crate::tui::state::bench::{Bench, Entry};
use crate::tui::theme::Meaning;
use crate::util::units::show_duration;

/// Below this width the interval of a ratio is left out.
const ROOM_FOR_INTERVALS: u16 = 72;
/// Below this width the two figures that it is made of are, too.
const ROOM_FOR_BOTH: u16 = 56;

pub(super) fn title(bench: &Bench) -> String {
    let end = bench.run.as_ref().and_then(|run| Some((run.number, run.end.as_ref()?)));
    match end {
        None => "Verdict".to_owned(),
        Some((number, Err(_))) => format!("Verdict {number}  no run"),
        Some((number, Ok(account))) => {
            let findings = &account.findings;
            let judged = findings.baseline.as_ref().is_some_and(|one| one.max_regression.is_some());
            let word = match (account.fault(), account.report.ending) {
                (Some(_), _) => "FAIL",
                (None, Ending::Complete) if judged || !findings.thresholds.is_empty() => "PASS",
                (None, Ending::Complete) => "done",
                (None, _) => "not complete",
            };
            format!("Verdict {number}  {word}")
        }
    }
}

/// The verdict in lines.
pub(super) fn lines(words: &Words<'_>, bench: &Bench, width: u16) -> Vec<Line<'static>> {
    let Some(run) = &bench.run else {
        let said = "what the run shows stands here when it is over";
        return vec![words.line(Meaning::Dim, said)];
    };
    match &run.end {
        None => {
            let mut lines = vec![words.line(Meaning::Dim, "it stands here when the run is over")];
            for threshold in &run.order.thresholds {
                lines.push(words.line(Meaning::Plain, format!("fails if {}", threshold.text)));
            }
            if run.order.baseline.is_some() {
                let file = bench.form.text(Entry::Baseline);
                lines.push(words.line(Meaning::Plain, format!("is compared with {file}")));
            }
            lines
        }
        Some(Err(fault)) => failed(words, fault),
        Some(Ok(account)) => of_account(words, account, &run.command_line, width),
    }
}

pub(super) fn failed(words: &Words<'_>, fault: &Fault) -> Vec<Line<'static>> {
    let mut lines = vec![words.line(Meaning::Bad, fault.message())];
    lines.extend(fault.detail_lines().iter().map(|said| words.line(Meaning::Plain, said)));
    if let Some(hint) = fault.hint_text() {
        // What is an option there is an entry of the plan here.
        let hint = hint.replace("--allow-writes", "'writes' of the plan (--allow-writes)");
        lines.push(words.line(Meaning::Dim, format!("hint: {hint}")));
    }
    lines
}

fn of_account(
    words: &Words<'_>,
    account: &Account,
    command_line: &str,
    width: u16,
) -> Vec<Line<'static>> {
    let (report, findings) = (&account.report, &account.findings);
    let mut lines = vec![ending(words, account)];
    if report.ending != Ending::Complete {
        let said = "ended before it was complete: the figures are of what was made";
        lines.push(words.line(Meaning::Doubt, said));
    }
    for compared in &findings.comparisons {
        lines.extend(comparison(words, compared, width));
    }
    for line in findings.thresholds.iter().flat_map(|judged| &judged.lines) {
        let (word, meaning) = match (line.failed, line.unsure) {
            (true, _) => ("FAIL  ", Meaning::Bad),
            (false, true) => ("PASS? ", Meaning::Doubt),
            (false, false) => ("PASS  ", Meaning::Good),
        };
        // The word stands in front here.
        let said = line.text.replacen(": pass", "", 1).replacen(": FAIL", "", 1);
        lines.push(Line::from(vec![words.span(meaning, word), words.span(Meaning::Plain, said)]));
    }
    if let Some(baseline) = &findings.baseline {
        let began =
            baseline.began.as_deref().map(|began| format!(" of {began}")).unwrap_or_default();
        lines.push(words.line(Meaning::Title, format!("compared with {}{began}", baseline.file)));
        for line in baseline.targets.iter().flat_map(Change::lines) {
            let meaning = if line.ends_with("FAIL") { Meaning::Bad } else { Meaning::Plain };
            lines.push(words.line(meaning, line));
        }
        if baseline.targets.iter().all(|change| change.ratios.is_empty()) {
            lines.push(words.line(Meaning::Bad, "nothing in it can be compared with this run"));
        }
    }
    for (at, target) in report.targets.iter().enumerate() {
        for (kind, error) in &target.errors_by_kind {
            let first = show_duration(error.first_seen);
            let said = format!(
                "{} {kind} {} times, first after {first}: {}",
                letter(at),
                error.count,
                error.sample
            );
            lines.push(words.line(Meaning::Bad, said));
        }
    }
    lines.extend(findings.reading.iter().map(|said| words.line(Meaning::Plain, said)));
    let warnings = findings.warnings.iter();
    lines.extend(warnings.map(|said| words.line(Meaning::Doubt, format!("! {said}"))));
    lines.push(words.line(Meaning::Dim, command_line));
    lines.extend(machine(words, account));
    lines
}

/// The exit code that the command line would have.
fn ending(words: &Words<'_>, account: &Account) -> Line<'static> {
    match account.fault() {
        None => words.line(Meaning::Good, "exit code 0"),
        Some(fault) => {
            let code = fault.kind().exit_code();
            words.line(Meaning::Bad, format!("exit code {code}: {}", fault.message()))
        }
    }
}

fn machine(words: &Words<'_>, account: &Account) -> Option<Line<'static>> {
    let environment = &account.environment;
    let cpus = environment.cpus.map(|cpus| format!("{cpus} processors"));
    let load = environment.load_before.map(|[load, ..]| format!("load {load:.2} before"));
    let all = [Some(environment.os.clone()), environment.kernel.clone(), cpus, load];
    let said: Vec<String> = all.into_iter().flatten().filter(|said| !said.is_empty()).collect();
    (!said.is_empty()).then(|| words.line(Meaning::Dim, said.join(", ")))
}

fn comparison(words: &Words<'_>, compared: &Comparison, width: u16) -> Vec<Line<'static>> {
    let meaning = compared.headline().map_or(Meaning::Doubt, |ratio| of(ratio.verdict));
    let mut lines = vec![words.line(meaning, compared.sentence())];
    let letter = compared.letter;
    let both =
        if width >= ROOM_FOR_BOTH { format!("{:>9} {letter:>9}", "A") } else { String::new() };
    let between = if width >= ROOM_FOR_INTERVALS { "  between" } else { "" };
    let ratio = format!("{letter}/A");
    let head = format!("{:<11}{both}{ratio:>9}{between}", "");
    lines.push(words.line(Meaning::Dim, head));
    lines.extend(compared.ratios.iter().map(|ratio| row(words, ratio, width)));
    lines
}

fn row(words: &Words<'_>, ratio: &Ratio, width: u16) -> Line<'static> {
    let statistic = ratio.statistic;
    let mut said = columns::left(statistic.name(), 11);
    if width >= ROOM_FOR_BOTH {
        said.push_str(&columns::right(&statistic.show(ratio.reference), 9));
        said.push_str(&columns::right(&statistic.show(ratio.other), 10));
    }
    said.push_str(&columns::right(&format!("{:.2}x", ratio.value), 9));
    let interval = ratio.interval.filter(|_| width >= ROOM_FOR_INTERVALS);
    let interval = interval.map(|(low, high)| format!("{low:.2} to {high:.2}"));
    if width >= ROOM_FOR_INTERVALS {
        said.push_str(&columns::left(&format!("  {}", interval.unwrap_or_default()), 17));
    }
    Line::from(vec![
        words.span(Meaning::Plain, said),
        words.span(of(ratio.verdict), format!(" {}", ratio.verdict.word())),
    ])
}

fn of(verdict: Verdict) -> Meaning {
    match verdict {
        Verdict::Slower => Meaning::Doubt,
        Verdict::Faster => Meaning::Good,
        Verdict::NotEstablished(_) => Meaning::Dim,
    }
}
