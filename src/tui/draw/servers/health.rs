//! How the chosen server is: its facts, its log, its tools as declared and as advertised; beside
//! it, where there is room, what crossed its wire.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use serde_json::Value;

use super::{clock, state_of};
use crate::model::{Circuit, Era, Fault, ServerStatus};
use crate::tui::draw::trace::{Columns, row};
use crate::tui::draw::words::Words;
use crate::tui::draw::{pages, pane};
use crate::tui::state::{Advertised, DriftLine, Facet, Pane, Past, State};
use crate::tui::theme::Meaning;
use crate::util::moment;
use crate::util::text::shorten;
use crate::util::units::{show_duration, show_size};

/// The most characters of instructions.
const INSTRUCTIONS: usize = 2_000;
/// How much of a log stands among the facts, in lines.
const TAIL: usize = 6;
/// How many lines of the trace are looked through for those of one server.
const LOOKED_THROUGH: usize = 2_000;
/// From this width on the wire stands beside the facts.
const WIDE: u16 = 100;
/// How wide the history of pings is drawn at most.
const SPARKS: usize = 30;

pub(in crate::tui::draw) fn health(
    frame: &mut Frame<'_>,
    words: &Words<'_>,
    state: &State,
    area: Rect,
) {
    let focused = state.shell.focus == Pane::Health;
    let servers = &state.servers;
    let Some(server) = servers.chosen() else {
        pane::open(frame, words, area, "Server", focused);
        return;
    };
    let (left, right) = if area.width >= WIDE {
        let share = [Constraint::Percentage(45), Constraint::Fill(1)];
        let [left, right] = Layout::horizontal(share).areas(area);
        (left, Some(right))
    } else {
        (area, None)
    };
    let facet = match servers.facet {
        Facet::Health => "health",
        Facet::Log => "log, the newest first",
        Facet::Drift => "declared tools against advertised",
    };
    let inner = pane::open(frame, words, left, &format!("{}  {facet}", server.name), focused);
    let past = servers.past(&server.name);
    if servers.facet == Facet::Log {
        log(frame, words, server, past, servers.scroll, inner);
    } else {
        let advertised = servers.advertised(&server.name);
        let lines = match servers.facet {
            Facet::Drift => drift(words, advertised),
            _ => facts(words, state, server, past, advertised),
        };
        let line = |at: usize| lines.get(at).cloned().unwrap_or_default();
        pages::draw(frame, words, inner, lines.len(), servers.scroll, line);
    }
    if let Some(right) = right {
        wire(frame, words, state, server, right);
    }
}

/// What crossed its wire, the newest at the bottom.
fn wire(
    frame: &mut Frame<'_>,
    words: &Words<'_>,
    state: &State,
    server: &ServerStatus,
    area: Rect,
) {
    let inner = pane::open(frame, words, area, &format!("Trace  {}  (T)", server.name), false);
    let columns = Columns::of(usize::from(inner.width)).without_server();
    let newest = state.trace.newest_of(&server.name, LOOKED_THROUGH);
    let lines: Vec<Line<'static>> = newest
        .take(usize::from(inner.height))
        .map(|item| row(words, item, columns, None))
        .collect();
    for (y, line) in (inner.y..inner.bottom()).zip(lines.into_iter().rev()) {
        frame.render_widget(line, Rect { y, height: 1, ..inner });
    }
}

/// What it logged, and what it wrote to its standard error; only what is seen is made.
fn log(
    frame: &mut Frame<'_>,
    words: &Words<'_>,
    server: &ServerStatus,
    past: Option<&Past>,
    from: usize,
    area: Rect,
) {
    let told = past.map_or(0, |past| past.log.len());
    let written = &server.stderr_tail;
    if told + written.len() == 0 {
        let said = "it logged nothing, and wrote nothing to its standard error";
        return frame.render_widget(words.line(Meaning::Dim, said), area);
    }
    // A heading stands above each of the two that is there.
    let heads = [usize::from(told > 0), usize::from(!written.is_empty())];
    let length = told + written.len() + heads[0] + heads[1];
    pages::draw(frame, words, area, length, from, |at| {
        if at < told + heads[0] {
            let newest = at.checked_sub(1).and_then(|at| past?.log.iter().rev().nth(at));
            return match newest {
                Some((level, said)) => log_line(words, level, said),
                None => words.line(Meaning::Title, "its log"),
            };
        }
        let newest = (at - told - heads[0]).checked_sub(1);
        match newest.and_then(|at| written.iter().rev().nth(at)) {
            Some(said) => words.line(Meaning::Plain, said),
            None => words.line(Meaning::Title, "its standard error"),
        }
    });
}

fn log_line(words: &Words<'_>, level: &str, said: &str) -> Line<'static> {
    Line::from(vec![
        words.span(Meaning::Dim, format!("{level} ")),
        words.span(Meaning::Plain, said),
    ])
}

/// Its tools as they are declared and as they are.
fn drift(words: &Words<'_>, advertised: Option<&Advertised>) -> Vec<Line<'static>> {
    let Some(advertised) = advertised.filter(|advertised| advertised.is_declared()) else {
        let said = "nothing is declared of its tools; provides_tools in mcp.yaml does that";
        return vec![words.line(Meaning::Dim, said)];
    };
    if !advertised.was_told() {
        return vec![words.line(Meaning::Dim, "it did not tell its tools yet; c asks it")];
    }
    let line = |line: DriftLine| match line {
        DriftLine::Same(name) => words.line(Meaning::Dim, format!("= {name}")),
        DriftLine::Extra(name) => words.line(Meaning::Plain, format!("+ {name}  (not declared)")),
        DriftLine::Missing(name) => {
            words.line(Meaning::Bad, format!("- {name}  (declared, not offered)"))
        }
        DriftLine::Changed(name, what) => {
            words.line(Meaning::Doubt, format!("~ {name}  differs in {what}"))
        }
    };
    advertised.lines().into_iter().map(line).collect()
}

fn facts(
    words: &Words<'_>,
    state: &State,
    server: &ServerStatus,
    past: Option<&Past>,
    advertised: Option<&Advertised>,
) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let (word, meaning) = state_of(server);
    let now = state.shell.now;
    let since = server.uptime.filter(|_| !now.is_zero()).map(|up| {
        let then = moment::time(now.saturating_sub(up));
        format!(" since {then} ({})", clock(up))
    });
    lines.push(words.line(meaning, word + since.as_deref().unwrap_or_default()));
    if let Some(fault) = state.servers.fault(server) {
        lines.extend(why(words, fault));
    }
    lines.extend(server.description.as_ref().map(|said| words.line(Meaning::Plain, said)));
    let mut fact = |name: &str, value: Option<String>| {
        lines.extend(value.map(|value| words.fact(name, value)));
    };
    fact("endpoint", Some(format!("{}, {}", server.transport, server.endpoint)));
    let era = server.era.map(Era::as_str).map(|era| format!(" ({era})"));
    let protocol = server.protocol.as_ref();
    fact("protocol", protocol.map(|p| format!("{p}{}", era.unwrap_or_default())));
    fact("server", claimed(server));
    fact("connect", server.connect.map(show_duration));
    let memory = server.memory.map(|bytes| format!(", {}", show_size(bytes)));
    fact("process", server.pid.map(|pid| format!("{pid}{}", memory.unwrap_or_default())));
    fact("offers", offered(server));
    fact("can", server.capabilities.as_ref().map(capabilities));
    fact("restarts", server.starts.checked_sub(2).map(|more| (more + 1).to_string()));
    fact("routing", routing(server));
    fact("ping", pings(past));
    fact("", history(words, past));
    fact("log level", past.and_then(|past| past.level).map(str::to_owned));
    let differs = advertised.filter(|advertised| advertised.count > 0);
    fact(
        "drift",
        differs.map(|a| format!("{} tools are not what was declared or pinned (d)", a.count)),
    );
    for (at, said) in server.confinement.iter().enumerate() {
        fact(if at == 0 { "sandbox" } else { "" }, Some(said.clone()));
    }
    let shown = state.servers.fault(server).map(Fault::message);
    let past_error = server.last_error.as_ref().filter(|past| shown != Some(past.fault.message()));
    fact(
        "failed at",
        past_error.map(|past| format!("{}  {}", moment::time(past.at), past.fault.message())),
    );
    for warning in &server.warnings {
        lines.push(words.line(Meaning::Doubt, format!("! {warning}")));
    }
    tails(words, server, past, &mut lines);
    if let Some(said) = &server.instructions {
        lines.push(words.line(Meaning::Title, "its instructions for models"));
        lines.extend(words.lines(Meaning::Plain, &shorten(said, INSTRUCTIONS)));
    }
    lines
}

fn why(words: &Words<'_>, fault: &Fault) -> Vec<Line<'static>> {
    let said = format!("{}: {}", fault.kind().as_str(), fault.message());
    let mut lines = vec![words.line(Meaning::Bad, said)];
    lines.extend(fault.detail_lines().iter().map(|said| words.line(Meaning::Plain, said)));
    let hint = fault.hint_text().map(|hint| format!("hint: {hint}"));
    lines.extend(hint.map(|hint| words.line(Meaning::Dim, hint)));
    lines
}

/// The end of its log and of its standard error.
fn tails(
    words: &Words<'_>,
    server: &ServerStatus,
    past: Option<&Past>,
    lines: &mut Vec<Line<'static>>,
) {
    let logged = past.map_or(0, |past| past.log.len());
    if let (Some(past), 1..) = (past, logged) {
        lines.push(words.line(Meaning::Title, format!("its log: {logged} (l shows all)")));
        let newest = past.log.iter().skip(logged.saturating_sub(TAIL));
        lines.extend(newest.map(|(level, said)| log_line(words, level, said)));
    }
    let written = server.stderr_tail.len();
    if written > 0 {
        lines.push(
            words.line(Meaning::Title, format!("its standard error: {written} (l shows all)")),
        );
        let newest = server.stderr_tail.iter().skip(written.saturating_sub(TAIL));
        lines.extend(newest.map(|said| words.line(Meaning::Plain, said)));
    }
}

/// What it says it is: a claim.
fn claimed(server: &ServerStatus) -> Option<String> {
    let info = server.server_info.as_ref()?;
    let part = |key| info.get(key).and_then(Value::as_str);
    let name = part("name")?;
    Some(part("version").map_or_else(|| name.to_owned(), |version| format!("{name} {version}")))
}

fn offered(server: &ServerStatus) -> Option<String> {
    let counts =
        [(server.tools, "tools"), (server.resources, "resources"), (server.prompts, "prompts")];
    let said: Vec<String> =
        counts.iter().filter_map(|(count, what)| Some(format!("{} {what}", (*count)?))).collect();
    (!said.is_empty()).then(|| said.join(", "))
}

/// `tools(listChanged) logging`.
fn capabilities(all: &Value) -> String {
    const MOST: usize = 30;
    let one = |(name, value): (&String, &Value)| {
        let parts = value.as_object().into_iter().flatten();
        let on = parts.filter(|(_, value)| **value != Value::Bool(false));
        let on: Vec<&str> = on.map(|(part, _)| part.as_str()).take(MOST).collect();
        if on.is_empty() { name.clone() } else { format!("{name}({})", on.join(" ")) }
    };
    let all = all.as_object().into_iter().flatten().take(MOST);
    shorten(&all.map(one).collect::<Vec<_>>().join(" "), INSTRUCTIONS).into_owned()
}

fn routing(server: &ServerStatus) -> Option<String> {
    let circuit = match server.circuit {
        Circuit::Closed if server.weight.is_none() => return None,
        Circuit::Open { left } => format!("left alone for another {}", show_duration(left)),
        other => format!("circuit {}", other.as_str()),
    };
    let weight = server.weight.map(|weight| format!("weight {weight}, "));
    Some(weight.unwrap_or_default() + &circuit)
}

/// The newest ping, half and most of them.
fn pings(past: Option<&Past>) -> Option<String> {
    let past = past?;
    let newest = show_duration(*past.pings.back()?);
    let (half, most) = (past.ping_within(50)?, past.ping_within(95)?);
    Some(format!("{newest}  p50 {}  p95 {}", show_duration(half), show_duration(most)))
}

/// How the pings went, and how long the longest took; one alone is no history.
fn history(words: &Words<'_>, past: Option<&Past>) -> Option<String> {
    let pings = &past.filter(|past| past.pings.len() > 1)?.pings;
    let longest = *pings.iter().max()?;
    let marks: &[char] = if words.theme.ascii {
        &['.', ':', '|']
    } else {
        &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
    };
    let mark = |took: &Duration| {
        let step = took.as_nanos() * marks.len() as u128 / longest.as_nanos().max(1);
        marks[usize::try_from(step).unwrap_or(0).min(marks.len() - 1)]
    };
    let sparks: String = pings.iter().skip(pings.len().saturating_sub(SPARKS)).map(mark).collect();
    Some(format!("{sparks}  max {}", show_duration(longest)))
}
