//! Draws the console from its state.
//!
//! Owns: where everything is written. Reads the state and nothing else; what comes from tools and
//! servers is made safe here, before it is laid out, so that it takes the room it seems to take.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Position;

use crate::model::ServerState;
use crate::tui::keys::{Binding, KeyPress};
use crate::tui::layout::{self, MIN_SIZE, SizeClass};
use crate::tui::prelude::*;
use crate::tui::theme::Theme;
use crate::tui::views::tools::{self, detail};
use crate::tui::views::{
    bench, history, inbox, offerings, overlays, result, servers, stats, trace,
};
use crate::tui::widgets::pane::ListRows;
use crate::util::timestamp;

/// Draws everything; gives the place of the cursor, if there is one.
pub fn console(buffer: &mut Buffer, state: &AppState, theme: Theme) -> Option<Position> {
    let area = buffer.area;
    let mut pen = Pen::new(buffer, theme);
    screen(&mut pen, state, area);
    pen.cursor
}

/// The lists on the screen.
pub fn lists(state: &AppState) -> Vec<ListRows> {
    let (width, height) = state.context.size;
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    let area = buffer.area;
    let mut pen = Pen::new(&mut buffer, state.context.appearance.theme());
    screen(&mut pen, state, area);
    pen.lists
}

fn screen(pen: &mut Pen<'_>, state: &AppState, area: Rect) {
    let room = SizeClass::for_area(area);
    if room == SizeClass::None {
        return too_small(pen, area);
    }
    let [top, _, status, keys] = layout::frame(area);
    top_bar(pen, state, top);
    status_bar(pen, state, status);
    footer(pen, state, keys);
    pen.styler.frames = layout::has_frames(room);
    pen.zoomed = state.context.is_zoomed;
    for (shown, place) in state.context.panes_shown() {
        pen.focused = state.context.focus == shown;
        pane(pen, state, shown, place);
    }
    pen.focused = false;
    if let Some(place) = state.context.wire_shown() {
        trace::draw::newest(pen, state, place);
    }
    if state.has_overlay() {
        pen.dim_all();
    }
    (pen.styler.frames, pen.focused, pen.zoomed) = (true, true, false);
    overlays::draw(pen, state, area);
}

fn pane(pen: &mut Pen<'_>, state: &AppState, pane: Pane, area: Rect) {
    match pane {
        Pane::Catalogue => tools::draw::draw(pen, state, area),
        Pane::Detail => detail::draw(pen, state, area),
        Pane::Result => result::draw::draw(pen, state, area),
        Pane::Servers => servers::draw::list(pen, state, area),
        Pane::Health => servers::draw::health(pen, state, area),
        Pane::TraceList | Pane::Frame => trace::draw::draw(pen, state, pane, area),
        Pane::Usage | Pane::Latency => stats::draw::draw(pen, state, pane, area),
        Pane::Plan | Pane::Run | Pane::Verdict => bench::draw::draw(pen, state, pane, area),
        Pane::HistoryList | Pane::Entry => history::draw::draw(pen, state, pane, area),
        Pane::OfferingList | Pane::Content => offerings::draw::draw(pen, state, pane, area),
        Pane::Questions | Pane::Question => inbox::draw::draw(pen, state, pane, area),
    }
}

/// The bar at the top: what there is, and the views, which have a line of their own where there is
/// room for one.
pub fn top_bar(pen: &mut Pen<'_>, state: &AppState, area: Rect) {
    let row = |at: u16| Rect { y: area.y + at, height: 1, ..area };
    let used = if area.height > 1 {
        let used = summary(pen, state, row(0));
        tabs(pen, state, row(1), true);
        used
    } else {
        tabs(pen, state, area, false)
    };
    clock(pen, state, row(0), used);
}

/// The project, servers with what fails in styler, tools, questions, and the figures of this session;
/// the last go first where there is little room.
fn summary(pen: &mut Pen<'_>, state: &AppState, area: Rect) -> usize {
    let mut parts: Vec<Vec<Span<'static>>> = Vec::new();
    let mut title = vec![pen.span(Role::Name, " toolhost")];
    title.extend(state.context.project.as_ref().map(|p| pen.bold(Role::Plain, format!("  {p}"))));
    parts.push(title);
    parts.extend(servers(pen.styler, state, true));
    let waiting = state.inbox.len();
    if waiting > 0 {
        let text = plural(waiting, "question", "questions");
        parts.push(vec![pen.chip(Role::Question, format!("? {text}"))]);
    }
    parts.push(vec![pen.plain(plural(state.tools.catalogue.rows.len(), "tool", "tools"))]);
    parts.extend(session(pen.styler, state));
    let line = fitting(parts, "   ", usize::from(area.width).saturating_sub(7));
    let used = line.width();
    pen.put(line, area);
    used
}

/// As many of these, from the first, as fit in a line.
pub fn fitting(
    parts: impl IntoIterator<Item = Vec<Span<'static>>>,
    gap: &'static str,
    room: usize,
) -> Line<'static> {
    let mut line = Line::default();
    for part in parts {
        let gap = if line.spans.is_empty() { "" } else { gap };
        let cells: usize = part.iter().map(Span::width).sum();
        if line.width() + gap.len() + cells <= room {
            line.spans.push(Span::raw(gap));
            line.spans.extend(part);
        }
    }
    line
}

/// How many servers are ready, and the names of those that are not, with the word for it.
fn servers(styler: Styler, state: &AppState, has_names: bool) -> Vec<Vec<Span<'static>>> {
    let named = |is_it: fn(&ServerState) -> bool| {
        let those = state.servers.rows.iter().filter(|row| is_it(&row.state));
        those.map(|row| row.name.as_str()).collect::<Vec<_>>()
    };
    let ready = state.servers.ready();
    let failed = named(|state| matches!(state, ServerState::Failed(_)));
    let starting = named(|state| matches!(state, ServerState::Starting)).len();
    let idle = named(|state| {
        matches!(state, ServerState::Idle | ServerState::Closed | ServerState::Untrusted(_))
    });
    let (failures, idle, names) = (failed.len(), idle.len(), failed.join(", "));
    let names = if has_names { format!(": {}", text::cut(&names, 40)) } else { String::new() };
    let servers = styler.plain(plural(ready, "server", "servers"));
    let parts = [
        (ready, vec![styler.span(Role::Success, "● "), servers]),
        (failures, vec![styler.span(Role::Error, format!("✗ {failures} failed{names}"))]),
        (starting, vec![styler.span(Role::Warning, format!("◐ {starting} connecting"))]),
        (idle, vec![styler.dim(format!("○ {idle} not started"))]),
    ];
    parts.into_iter().filter(|(count, _)| *count > 0).map(|(_, part)| part).collect()
}

/// What was called since the console was opened.
fn session(styler: Styler, state: &AppState) -> Option<Vec<Span<'static>>> {
    let calls = &state.live.all.counts;
    if calls.calls() == 0 {
        return None;
    }
    let mut spans = vec![styler.dim(plural(calls.calls(), "call", "calls"))];
    if let Some(half) = calls.durations.quantile(0.5) {
        spans.push(styler.dim(format!(" · p50 {}", show_duration(half))));
    }
    if calls.failed() > 0 {
        let text = format!(" · {}", plural(calls.failed(), "error", "errors"));
        spans.push(styler.span(Role::Error, text));
    }
    Some(spans)
}

/// The views with the keys that lead to them, and the columns that each takes in a row of this width,
/// which is theirs alone or not.
pub fn tab_columns(
    state: &AppState,
    width: u16,
    has_row: bool,
) -> Vec<(Range<usize>, ViewId, String)> {
    let waiting = state.inbox.len();
    let mut from = usize::from(has_row);
    let tab = |(number, view): (usize, ViewId)| {
        let is_shown = view == state.context.view;
        let title = if width >= 110 || has_row { view.title() } else { view.short() };
        // When not all titles fit, the others are shown as numbers.
        let mut title = match width {
            80.. => format!("{} {title}", number + 1),
            _ if is_shown => format!("{} {}", number + 1, view.title()),
            _ => (number + 1).to_string(),
        };
        if view == ViewId::Inbox && waiting > 0 {
            title = format!("{title}({waiting})");
        }
        let title = if is_shown { format!("[{title}]") } else { format!(" {title} ") };
        let columns = from..from + title.len();
        from = columns.end;
        (columns, view, title)
    };
    ViewId::VARIANTS.iter().copied().enumerate().map(tab).collect()
}

/// Draws the views; how many cells they take.
fn tabs(pen: &mut Pen<'_>, state: &AppState, area: Rect, has_row: bool) -> usize {
    let mut spans = vec![pen.plain(if has_row { " " } else { "" })];
    for (_, view, title) in tab_columns(state, area.width, has_row) {
        let asks = view == ViewId::Inbox && !state.inbox.is_empty();
        spans.push(if view == state.context.view {
            Span::styled(title, pen.theme.chip(Role::Name))
        } else {
            pen.span(if asks { Role::Question } else { Role::Dim }, title)
        });
    }
    let mut used = spans.iter().map(Span::width).sum::<usize>();
    if !has_row {
        // What fails is said on small screens, too.
        let mut parts = servers(pen.styler, state, false);
        parts.sort_by_key(|part| part[0].style != pen.theme.style(Role::Error));
        let parts = fitting(parts, "  ", usize::from(area.width).saturating_sub(used + 8));
        if parts.width() > 0 {
            used += 2 + parts.width();
            spans.push(pen.plain("  "));
            spans.extend(parts.spans);
        }
    }
    pen.put(Line::from(spans), area);
    used
}

/// The time of day at the right end of the bar, where there is room behind what is used.
fn clock(pen: &mut Pen<'_>, state: &AppState, area: Rect, used: usize) {
    let appearance = &state.context.appearance;
    if !appearance.clock || state.context.now.is_zero() {
        return;
    }
    let clock = pen.line(Role::Dim, timestamp::minute_of_day(state.context.now));
    if usize::from(area.width) > used + clock.width() + 1 {
        pen.put(clock.right_aligned(), area);
    }
}

/// The right end of the status line: running calls, approvals, `LIVE`.
fn motion(styler: Styler, state: &AppState) -> Line<'static> {
    let mut spans = Vec::new();
    let mut say = |meaning, text: String| spans.push(styler.span(meaning, format!("  {text}")));
    let running = state.context.calls.running().count() + state.others.running().count();
    if running > 0 {
        say(Role::Warning, format!("{running} running"));
    }
    if let Some(pid) = state.context.attached_host {
        say(Role::Dim, format!("host {pid}"));
    }
    let problems = &state.configuration_problems;
    if !problems.is_empty() {
        let key = state.context.keys.key_of(Action::Problems, &state.view_key_contexts());
        let key = key.map(|key| format!(" ({key})")).unwrap_or_default();
        let role = if problems.has_errors() { Role::Error } else { Role::Warning };
        say(role, format!("{}{key}", problems.summary()));
    }
    if let [first, more @ ..] = state.trust.changed_files.as_slice() {
        let key = state.context.keys.key_of(Action::Reload, &[&ANYWHERE]);
        let way = key.map(|key| format!(" ({key} reloads)")).unwrap_or_default();
        let more =
            if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        say(Role::Warning, format!("{first}{more} changed{way}"));
    }
    let waiting = state.inbox.approvals.iter();
    let stopped = waiting.filter(|pending| pending.prompt.held.is_some()).count();
    if stopped > 0 {
        say(Role::Question, format!("{stopped} stopped"));
    }
    let approvals = state.inbox.approvals.len() - stopped;
    if approvals > 0 {
        say(Role::Warning, format!("{approvals} to approve"));
    }
    if state.is_moving() {
        say(Role::Success, "LIVE".to_owned());
    }
    Line::from(spans)
}

/// The newest message, or what is being searched for.
pub fn status_bar(pen: &mut Pen<'_>, state: &AppState, area: Rect) {
    let motion = motion(pen.styler, state);
    let width = cells(motion.width()).min(area.width);
    let right = Rect { x: area.right() - width, width, ..area };
    pen.put(motion, right);
    let area = Rect { width: area.width - width, ..area };
    let Some(message) = &state.context.message else {
        if state.context.view != ViewId::Trace && state.context.wire_shown().is_none() {
            pen.put(trace::draw::newest_line(pen.styler, state, area.width), area);
        }
        return;
    };
    let meaning = if message.is_error { Role::Error } else { Role::Plain };
    let text = pen.cell(&format!(" {}", message.text), usize::from(area.width));
    pen.put(pen.line(meaning, text.trim_end()), area);
}

const KEYS: usize = 7;

/// The footer: the keys of this context, as many as fit, the most useful ones.
pub fn footer(pen: &mut Pen<'_>, state: &AppState, area: Rect) {
    let places = state.key_contexts();
    let mut here: Vec<&Binding> = Vec::new();
    for binding in places.iter().flat_map(|place| state.context.keys.bindings(place)) {
        // Skips bindings whose key is taken by a nearer context.
        let happens = state.context.keys.action(binding.key, &places) == Some(binding.action);
        let is_shown =
            here.iter().any(|shown| shown.key == binding.key || shown.action == binding.action);
        if binding.label.is_some() && happens && !is_shown && !state.is_unavailable(binding) {
            here.push(binding);
        }
    }
    here.sort_by_key(|binding| binding.key != KeyPress::Enter);
    // The keys to leave and to get help always have room.
    let is_vital = |b: &&&Binding| {
        matches!(
            b.action,
            Action::Palette | Action::Help | Action::Quit | Action::Back | Action::Trust
        )
    };
    let word = |key: KeyPress, label: &str| {
        [pen.span(Role::Key, format!(" {key}")), pen.plain(format!(" {label} "))]
    };
    let mut spans = Vec::new();
    // What one may want most in this state stands first.
    let restore = || Some((state.context.keys.key_of(Action::Zoom, &places)?, "restore"));
    let state_key = match &state.context {
        _ if state.has_overlay() => None,
        context if context.calls.is_running() => Some((KeyPress::Ctrl('c'), "cancel call")),
        context if context.is_zoomed => restore(),
        _ => None,
    };
    spans.extend(state_key.into_iter().flat_map(|(key, label)| word(key, label)));
    let used: usize = spans.iter().map(Span::width).sum();
    let vital: usize = here.iter().filter(is_vital).map(|binding| width(binding)).sum();
    let mut left = usize::from(area.width).saturating_sub(vital + used);
    let mut more = KEYS.saturating_sub(here.iter().filter(is_vital).count() + spans.len() / 2);
    for binding in here {
        if !is_vital(&&binding) {
            let rest = left.checked_sub(width(binding)).filter(|_| more > 0);
            let Some(rest) = rest else { continue };
            (left, more) = (rest, more - 1);
        }
        spans.extend(word(binding.key, binding.label.unwrap_or_default()));
    }
    pen.put(Line::from(spans), area);
}

/// How many cells a key and its word take.
fn width(binding: &Binding) -> usize {
    binding.key.to_string().len() + binding.label.unwrap_or_default().len() + 3
}

pub fn too_small(pen: &mut Pen<'_>, area: Rect) {
    let (width, height) = MIN_SIZE;
    let text =
        format!("terminal too small ({}x{}), need {width}x{height}", area.width, area.height);
    pen.put(pen.line(Role::Plain, text), area);
}
