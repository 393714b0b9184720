//! The trust question while it is on the screen.

use ratatui::text::Text;

use crate::config::consent::TrustRequest;
use crate::tui::layout;
use crate::tui::prelude::*;
use crate::tui::widgets::reading::QuestionText;

/// How far the rest of a broken line is indented: more than any line begins with.
const CONTINUED: usize = 8;

/// The question about the project, while it is on the screen.
#[derive(Debug)]
pub struct TrustWindow {
    /// Exactly what a yes would store.
    pub request: Arc<TrustRequest>,
    pub text: QuestionText,
    /// Whether all of it is shown although only a part has changed.
    pub shows_whole: bool,
}

impl TrustWindow {
    /// The question: the difference where the project was trusted before, else the whole.
    pub fn new(request: Arc<TrustRequest>) -> Self {
        let text = QuestionText::new(text(&present::trust::question(&request)));
        Self { request, text, shows_whole: false }
    }

    pub fn toggle_whole(&mut self) {
        self.shows_whole = !self.shows_whole && self.request.previous.is_some();
        let question =
            if self.shows_whole { present::trust::whole } else { present::trust::question };
        self.text.text = text(&question(&self.request));
    }
}

fn text(page: &Page) -> ScrollText {
    let mut text = ScrollText::with_indent(CONTINUED);
    text.page(page);
    text
}

/// The rows of a window that has room for what the keys do; below that the footer has to do.
const KEY_HINTS_MIN_HEIGHT: u16 = 14;

pub fn draw(pen: &mut Pen<'_>, state: &AppState, window: &TrustWindow, area: Rect) {
    let title = match (&window.request.previous, window.shows_whole) {
        (None, _) => "Trust this project?",
        (Some(_), false) => "The project changed",
        (Some(_), true) => "The whole project",
    };
    let inner = pen.ask_over(area, layout::page_size(area), title, Role::Warning);
    let keys =
        if inner.height < KEY_HINTS_MIN_HEIGHT { Vec::new() } else { answers(pen.styler, state) };
    let [above, below] = bottom(inner, keys.len());
    let command = window.request.command();
    window.text.draw(pen, above, state.context.now, |readiness| {
        readiness.line("Trust this project? [y/N]", &command)
    });
    pen.paragraph(below, &keys);
}

fn answers(styler: Styler, state: &AppState) -> Vec<Line<'static>> {
    let shown = state.context.keys.bindings(KeyContext::Trust).iter();
    shown
        .filter(|binding| binding.label.is_some() && !state.is_unavailable(binding.action))
        .map(|binding| styler.answer(binding.key, 3, binding.about))
        .collect()
}

/// What is said below the tools while something is not trusted.
pub fn notice_lines(styler: Styler, state: &AppState, width: u16) -> Vec<Line<'static>> {
    let key = state.context.keys.key_of(Action::Trust, &state.view_key_contexts());
    let line = state.trust.notice(key).map(|text| styler.line(Role::Warning, text));
    line.map(|line| wrap(&line, usize::from(width))).unwrap_or_default()
}

/// Says below the tools what is not trusted; returns the area left above.
pub fn notice(pen: &mut Pen<'_>, state: &AppState, area: Rect) -> Rect {
    let lines = notice_lines(pen.styler, state, area.width);
    // The tools keep a line.
    let most = usize::from(area.height).saturating_sub(1);
    let [above, below] = bottom(area, lines.len().min(most));
    pen.put(Text::from(lines), below);
    above
}
