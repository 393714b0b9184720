//! Draws the console from its state.
//!
//! Owns: where everything is written. Reads the state and nothing else; what comes from tools and
//! servers is made safe here, before it is laid out, so that it takes the room it seems to take.

mod approval;
mod bars;
mod bench;
mod chart;
mod columns;
mod digits;
mod form;
mod histogram;
mod history;
mod inbox;
mod inline_picture;
mod live_calls;
mod offerings;
mod overlay;
mod palette;
mod pane;
mod result;
mod result_table;
mod running_calls;
mod scroll_text;
mod servers;
mod stats;
mod styler;
mod tool_detail;
mod tool_list;
mod trace;
mod trust;
mod windows;
mod wrap;

#[cfg(test)]
mod pictures;
#[cfg(test)]
pub(super) mod tests;

use ratatui::Frame;
use ratatui::layout::Rect;

use super::layout::{self, SizeClass};
use super::state::{AppState, Pane};
use super::theme::Theme;
use styler::Styler;

pub fn console(frame: &mut Frame<'_>, state: &AppState, theme: Theme) {
    let area = frame.area();
    let room = SizeClass::for_area(area);
    let mut styler = Styler::new(&theme);
    if room == SizeClass::None {
        return bars::too_small(frame, &styler, area);
    }
    let [top, _, status, keys] = layout::frame(area);
    bars::top(frame, &styler, state, top);
    bars::status(frame, &styler, state, status);
    bars::keys(frame, &styler, state, keys);
    styler.frames = layout::has_frames(room);
    measure_form(&styler, state);
    for (shown, place) in state.context.panes_shown() {
        pane(frame, &styler, state, shown, place);
    }
    if let Some(place) = state.context.wire_shown() {
        trace::newest(frame, &styler, state, place);
    }
    if state.has_overlay() {
        pane::dim(frame, theme);
    }
    overlay::draw(frame, &Styler::new(&theme), state, area);
}

/// Tells the layout how many rows the form of a tool needs, before places are given out.
fn measure_form(styler: &Styler<'_>, state: &AppState) {
    let detail = state.context.panes_shown().into_iter().find(|(pane, _)| *pane == Pane::Detail);
    let form = state.tools.form.as_ref();
    state.context.form_rows.set(form.zip(detail).map(|(form, (_, area))| {
        let frame = area.height - state.context.inside(area).height;
        form::rows_needed(styler, form, state.context.inside(area).width) + frame
    }));
}

fn pane(frame: &mut Frame<'_>, styler: &Styler<'_>, state: &AppState, pane: Pane, area: Rect) {
    match pane {
        Pane::Catalogue => tool_list::draw(frame, styler, state, area),
        Pane::Detail => match &state.tools.form {
            Some(form) => form::draw(frame, styler, form, state.context.focus == pane, area),
            None => tool_detail::draw(frame, styler, state, area),
        },
        Pane::Result => result::draw(frame, styler, state, area),
        Pane::Servers => servers::list(frame, styler, state, area),
        Pane::Health => servers::health(frame, styler, state, area),
        Pane::TraceList | Pane::Frame => trace::draw(frame, styler, state, pane, area),
        Pane::Usage | Pane::Latency => stats::draw(frame, styler, state, pane, area),
        Pane::Plan | Pane::Run | Pane::Verdict => bench::draw(frame, styler, state, pane, area),
        Pane::HistoryList | Pane::Entry => history::draw(frame, styler, state, pane, area),
        Pane::OfferingList | Pane::Content => offerings::draw(frame, styler, state, pane, area),
        Pane::Questions | Pane::Question => inbox::draw(frame, styler, state, pane, area),
    }
}
