//! Draws the top bar, the status line and the footer.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::styler::Styler;
use crate::tui::keys::{Action, Binding, KeyContext, KeyPress};
use crate::tui::layout::MIN_SIZE;
use crate::tui::state::{AppState, ViewId};
use crate::tui::theme::StyleRole;
use crate::util::timestamp;

/// The bar at the top: counts of tools and servers, and the views.
pub(super) fn top(frame: &mut Frame<'_>, words: &Styler<'_>, state: &AppState, area: Rect) {
    let waiting = state.inbox.len();
    // What waits for an answer must be seen, where there is not room for all.
    let is_tight = waiting > 0 && area.width < 110;
    let mut spans = Vec::new();
    // Who opened it knows its name; the names of the views are worth more.
    if !is_tight && (area.width >= 100 || area.width < 60) {
        spans.push(words.span(StyleRole::Title, " toolhost "));
    }
    let wide = area.width >= 60 && !is_tight;
    if wide {
        let servers = &state.servers;
        let (tools, ready, all) =
            (state.tools.catalogue.len(), servers.ready(), servers.rows.len());
        spans.push(words.span(StyleRole::Plain, format!(" {tools} tools  {ready}/{all} up  ")));
    }
    let mut tabs = Vec::new();
    for (number, view) in ViewId::ALL.into_iter().enumerate() {
        let title = if area.width >= 110 { view.title() } else { view.short() };
        // When not all titles fit, the others are shown as numbers.
        let title = match area.width {
            80.. => format!("{} {title}", number + 1),
            _ if view == state.context.view => format!("{} {}", number + 1, view.title()),
            _ => (number + 1).to_string(),
        };
        let title = match view {
            ViewId::Inbox if waiting > 0 => format!("{title}({waiting})"),
            _ => title,
        };
        let from = spans.iter().map(Span::width).sum();
        let tab = if view == state.context.view {
            words.span(StyleRole::Selected, format!("[{title}]"))
        } else {
            words.span(StyleRole::Plain, format!(" {title} "))
        };
        let column = |at: usize| area.x.saturating_add(u16::try_from(at).unwrap_or(u16::MAX));
        tabs.push((column(from)..column(from + tab.width()), view));
        spans.push(tab);
    }
    state.context.tabs.replace(tabs);
    let used = spans.iter().map(Span::width).sum::<usize>();
    frame.render_widget(Line::from(spans), area);
    clock(frame, words, state, area, used);
}

/// The time of day at the right end of the bar, where there is room behind what is used.
fn clock(frame: &mut Frame<'_>, words: &Styler<'_>, state: &AppState, area: Rect, used: usize) {
    let appearance = &state.context.appearance;
    if !appearance.clock || state.context.now.is_zero() {
        return;
    }
    let said = words.line(StyleRole::Dim, timestamp::minute_of_day(state.context.now));
    if usize::from(area.width) > used + said.width() + 1 {
        frame.render_widget(said.right_aligned(), area);
    }
}

/// The right end of the status line: running calls, approvals, `LIVE` or `PAUSED`.
fn motion(words: &Styler<'_>, state: &AppState) -> Line<'static> {
    let mut spans = Vec::new();
    let mut say = |meaning, said: String| spans.push(words.span(meaning, format!("  {said}")));
    let running = state.context.calls.running().count() + state.others.running().count();
    if running > 0 {
        say(StyleRole::Warning, format!("{running} running"));
    }
    if let Some(pid) = state.context.attached_host {
        say(StyleRole::Dim, format!("host {pid}"));
    }
    let problems = &state.configuration_problems;
    if !problems.is_empty() {
        let key = state.context.keys.key_of(Action::Problems, &state.view_key_contexts());
        let key = key.map(|key| format!(" ({key})")).unwrap_or_default();
        let role = if problems.has_errors() { StyleRole::Error } else { StyleRole::Warning };
        say(role, format!("{}{key}", problems.summary()));
    }
    if let [first, more @ ..] = state.trust.changed_files() {
        let key = state.context.keys.key_of(Action::Reload, &[KeyContext::Anywhere]);
        let way = key.map(|key| format!(" ({key} reloads)")).unwrap_or_default();
        let more =
            if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        say(StyleRole::Warning, format!("{first}{more} changed{way}"));
    }
    let asked = state.inbox.approvals.len();
    if asked > 0 {
        say(StyleRole::Warning, format!("{asked} to approve"));
    }
    if state.is_paused() {
        say(StyleRole::Warning, "PAUSED".to_owned());
    } else if state.is_moving() {
        say(StyleRole::Success, "LIVE".to_owned());
    }
    Line::from(spans)
}

/// The newest message, or what is being searched for.
pub(super) fn status(frame: &mut Frame<'_>, words: &Styler<'_>, state: &AppState, area: Rect) {
    let motion = motion(words, state);
    let width = u16::try_from(motion.width()).unwrap_or(area.width).min(area.width);
    let right = Rect { x: area.right() - width, width, ..area };
    frame.render_widget(motion, right);
    let area = Rect { width: area.width - width, ..area };
    let Some(message) = &state.context.message else { return };
    let meaning = if message.is_error { StyleRole::Error } else { StyleRole::Plain };
    frame.render_widget(words.line(meaning, format!(" {}", message.text)), area);
}

/// The most keys that the footer shows.
const KEYS: usize = 7;

/// The footer: the keys of this context, as many as fit, the most useful ones.
pub(super) fn keys(frame: &mut Frame<'_>, words: &Styler<'_>, state: &AppState, area: Rect) {
    let places = state.key_contexts();
    let mut here: Vec<&Binding> = Vec::new();
    for binding in places.iter().flat_map(|place| state.context.keys.bindings(*place)) {
        // Skips bindings whose key is taken by a nearer context.
        let happens = state.context.keys.action(binding.key, &places) == Some(binding.action);
        let is_told =
            here.iter().any(|told| told.key == binding.key || told.action == binding.action);
        if binding.label.is_some() && happens && !is_told && !state.is_unavailable(binding.action) {
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
    let mut spans = Vec::new();
    // What one may want most in this state stands first.
    let restore = || Some((state.context.keys.key_of(Action::Zoom, &places)?, "restore"));
    let state_key = match &state.context {
        _ if state.has_overlay() => None,
        context if context.calls.running().next().is_some() => {
            Some((KeyPress::Ctrl('c'), "cancel"))
        }
        context if context.is_zoomed => restore(),
        _ => None,
    };
    if let Some((key, word)) = state_key {
        spans.push(words.span(StyleRole::Key, format!(" {key}")));
        spans.push(words.span(StyleRole::Plain, format!(" {word} ")));
    }
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
        spans.push(words.span(StyleRole::Key, format!(" {}", binding.key)));
        spans
            .push(words.span(StyleRole::Plain, format!(" {} ", binding.label.unwrap_or_default())));
    }
    frame.render_widget(Line::from(spans), area);
}

/// How many cells a key and its word take.
fn width(binding: &Binding) -> usize {
    binding.key.to_string().len() + binding.label.unwrap_or_default().len() + 3
}

pub(super) fn too_small(frame: &mut Frame<'_>, words: &Styler<'_>, area: Rect) {
    let (width, height) = MIN_SIZE;
    let said =
        format!("terminal too small ({}x{}), need {width}x{height}", area.width, area.height);
    frame.render_widget(words.line(StyleRole::Plain, said), area);
}
