//! Draws the trace view: one line for each frame, and the selected frame.

use crate::model::traffic::{Direction, MessageInfo, TrafficKind};
use crate::present::traffic::shown_id;
use crate::tui::prelude::*;
use crate::tui::views::trace::frame::FrameScope;
use crate::tui::views::trace::item::TraceItem;
use crate::util::timestamp;

pub fn draw(pen: &mut Pen<'_>, state: &AppState, shown: Pane, area: Rect) {
    match shown {
        Pane::TraceList => lines(pen, state, area),
        _ => whole(pen, state, area),
    }
}

pub fn newest_line(styler: Styler, state: &AppState, width: u16) -> Line<'static> {
    let key = state.context.keys.key_of(Action::Wire, &state.view_key_contexts());
    let way = key.map(|key| format!("{key} opens  ")).unwrap_or_default();
    let room = usize::from(width).saturating_sub(way.len() + 8);
    let columns = TraceColumns::of(room + 2, state);
    let newest = state.trace.newest(1).next();
    let Some(item) = newest.filter(|_| width >= 60) else { return Line::default() };
    let line = row(styler, item, columns);
    let head = styler.dim(" trace ");
    let tail = styler.dim(format!(" {way}"));
    Line::from([vec![head], line.spans, vec![tail]].concat())
}

pub fn newest(pen: &mut Pen<'_>, state: &AppState, area: Rect) {
    let inner = pen.open(area, &format!("{}  (3)", title(state)));
    if state.trace.counts().1 == 0 {
        let text = "Messages to and from servers appear here.";
        return pen.put(pen.line(Role::Dim, text), inner);
    }
    let columns = TraceColumns::of(usize::from(inner.width), state);
    for (item, place) in state.trace.newest(inner.height.into()).zip(inner.rows()) {
        let line = row(pen.styler, item, columns);
        pen.put(pane::pointed(pen.styler, line, None, place.width), place);
    }
}

fn lines(pen: &mut Pen<'_>, state: &AppState, area: Rect) {
    let trace = &state.trace;
    let inner = pen.open(area, &title(state));
    let inner = pen.filter(inner, &trace.filter, None);
    let (all, shown) = trace.counts();
    if shown == 0 {
        let text = if all == 0 { "No messages yet." } else { NO_MATCHES };
        return pen.put(pen.line(Role::Dim, text), inner);
    }
    let columns = TraceColumns::of(usize::from(inner.width), state);
    pen.selectable(inner, trace.list(), shown);
    for ((is_chosen, item), place) in trace.window(inner.height.into()).zip(inner.rows()) {
        let (line, mark) = (row(pen.styler, item, columns), pen.mark(is_chosen));
        pen.put(pane::pointed(pen.styler, line, mark, place.width), place);
    }
}

fn title(state: &AppState) -> String {
    let trace = &state.trace;
    let (all, shown) = trace.counts();
    let count = shown_of(shown, all);
    let still = match trace.paused_count() {
        Some(waiting) => format!("  PAUSED, {} new", show_count(waiting)),
        None if !trace.is_still => "  following".to_owned(),
        None => String::new(),
    };
    let lost = state.context.lost;
    let lost = if lost > 0 { format!("  dropped {}", show_count(lost)) } else { String::new() };
    format!("Trace {count}{still}{lost}")
}

fn whole(pen: &mut Pen<'_>, state: &AppState, area: Rect) {
    let trace = &state.trace;
    let Some(item) = trace.chosen() else {
        pen.open(area, "Frame");
        return;
    };
    let title = match item.glance().and_then(shown_id) {
        Some(number) => format!("Frame #{number}  {}", item.traffic.server),
        None => format!("Frame  {}", item.traffic.server),
    };
    let shown = match trace.scope {
        FrameScope::Chosen if item.is_request() => FrameScope::Request,
        FrameScope::Chosen => FrameScope::Answer,
        other => other,
    };
    let sides = [
        ("request", shown == FrameScope::Request),
        ("response", shown == FrameScope::Answer),
        ("both", shown == FrameScope::Both),
    ];
    let sides = if item.pair.is_some() { &sides[..] } else { &[] };
    let inner = pen.open_tabs(area, &title, sides);
    pen.text(&trace.frame, inner);
}

#[derive(Debug, Clone, Copy)]
pub struct TraceColumns {
    width: usize,
    server: usize,
}

/// The cells of a latency such as `1.25 ms`.
const LATENCY: usize = 8;
/// The cells of a size such as `1023.9 KiB`.
const SIZE: usize = 11;

impl TraceColumns {
    pub fn of(width: usize, state: &AppState) -> Self {
        let names = state.servers.rows.iter().map(|server| text::width(&server.name));
        let most = if width >= 55 { 16 } else { 8 };
        let server = names.max().unwrap_or(0).clamp(8, most) + 1;
        Self { width, server }
    }

    /// Whether there is room for sizes, and for times to the millisecond.
    fn is_wide(self) -> bool {
        self.width >= 76
    }

    pub fn without_server(self) -> Self {
        Self { server: 0, ..self }
    }
}

/// One line, without the pointer before it.
pub fn row(styler: Styler, item: &TraceItem, columns: TraceColumns) -> Line<'static> {
    let (sign, meaning) = direction_mark(styler, item);
    let mut left = Vec::new();
    if columns.width >= 50 {
        let of_day =
            if columns.is_wide() { timestamp::time_of_day_millis } else { timestamp::time_of_day };
        left.push(styler.dim(format!("{} ", of_day(item.traffic.at))));
    }
    left.push(styler.span(meaning, format!("{sign} ")));
    if columns.server > 0 {
        let server = &item.traffic.server;
        let name = styler.cell(server, columns.server - 1) + " ";
        left.push(styler.span(Role::of_server(server), name));
    }
    let right = figures(styler, item, columns);
    let taken = |spans: &[Span<'_>]| spans.iter().map(Span::width).sum::<usize>();
    let room = columns.width.saturating_sub(2 + taken(&left) + taken(&right));
    let client = item.client.as_ref().map(|client| format!("[{client}] ")).unwrap_or_default();
    let role = if item.is_error { Role::Error } else { Role::Plain };
    let text = styler.cell(&format!("{client}{}", what(item)), room.saturating_sub(1)) + " ";
    left.push(styler.span(role, text));
    left.extend(right);
    Line::from(left)
}

/// The arrow for the direction, or the mark of an item that is not a message.
fn direction_mark(styler: Styler, item: &TraceItem) -> (&'static str, Role) {
    let ascii = styler.theme.ascii;
    match &item.traffic.kind {
        TrafficKind::Message { direction, .. } | TrafficKind::HttpHead { direction, .. } => {
            let (sign, role) = match (direction, ascii) {
                (Direction::Sent, true) => ("->", Role::Sent),
                (Direction::Sent, false) => ("↑ ", Role::Sent),
                (Direction::Received, true) => ("<-", Role::Received),
                (Direction::Received, false) => ("↓ ", Role::Received),
            };
            (sign, if item.is_error { Role::Error } else { role })
        }
        TrafficKind::Stderr(_) => ("!!", Role::Warning),
        TrafficKind::NonJsonLine(_) => ("..", Role::Warning),
        TrafficKind::Opened(_) | TrafficKind::Closed(_) => ("**", Role::Title),
    }
}

fn what(item: &TraceItem) -> String {
    let about = &item.about;
    match &item.traffic.kind {
        TrafficKind::Message { info, .. } => {
            let number = shown_id(info).map(|id| format!("#{} ", shorten_name(&id)));
            let number = number.unwrap_or_default();
            let word = shorten_name(info.label());
            let (gap, of) = match info {
                MessageInfo::Response { method: Some(method), .. } => {
                    ("  ", format!(" of {}", shorten_name(method)))
                }
                _ => (" ", String::new()),
            };
            let gap = if about.is_empty() { "" } else { gap };
            format!("{number}{word}{of}{gap}{about}")
        }
        TrafficKind::Stderr(_) => format!("stderr | {about}"),
        TrafficKind::NonJsonLine(_) => match &item.level {
            Some(level) => format!("log {level} | {about}"),
            None => format!("not JSON | {about}"),
        },
        _ => about.clone(),
    }
}

fn shorten_name(name: &str) -> &str {
    name.get(..name.floor_char_boundary(200)).unwrap_or_default()
}

/// How long it took and how large it was, at the right.
fn figures(styler: Styler, item: &TraceItem, columns: TraceColumns) -> Vec<Span<'static>> {
    let latency = item.traffic.kind.latency().map(show_duration).unwrap_or_default();
    let mut spans = Vec::new();
    if columns.is_wide() || !latency.is_empty() {
        spans.push(styler.plain(format!("{latency:>LATENCY$}")));
    }
    if columns.is_wide() {
        let is_message = item.glance().is_some();
        let size = if is_message { show_size(item.size as u64) } else { String::new() };
        spans.push(styler.dim(format!("{size:>SIZE$}")));
    }
    spans
}
