//! The tabs of a tool's details, and the text of two of them.

use crate::catalogue::fingerprint;
use crate::model::{ToolDefinition, ToolStatus};
use crate::tui::calls::ConsoleCalls;
use crate::tui::event::ConsoleCallId;
use crate::tui::prelude::*;
use crate::tui::views::tools::list::ToolRow;
use crate::tui::views::{form, tools};
use crate::tui::widgets::scroll_text::TextLimits;

const LIMITS: TextLimits = TextLimits::of_lines(100_000, "The rest is not shown.");

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, strum::IntoStaticStr, strum::VariantArray)]
pub enum DetailTab {
    /// Its arguments, as they would be filled in.
    #[default]
    Form,
    Docs,
    /// The definition as the source sent it.
    Schema,
}

#[derive(Debug, Default)]
pub struct ToolDetail {
    pub tab: DetailTab,
    pub text: ScrollText,
    pub position: ScrollPosition,
    /// The form that Enter opens; `None` for what cannot be called, of which the documentation says
    /// why.
    pub preview: Option<SchemaForm>,
    source: Option<(Arc<ToolDefinition>, DetailTab, Option<ConsoleCallId>)>,
}

impl ToolDetail {
    /// Scrolls by this many rows; negative moves up.
    pub fn scroll(&mut self, by: isize) {
        match self.tab {
            DetailTab::Form | DetailTab::Docs => self.position.scroll(by),
            DetailTab::Schema => self.text.scroll(by),
        }
    }

    pub fn scroll_to_top(&mut self) {
        self.position.reset();
        self.text.position.reset();
    }

    /// Takes in which tool is chosen; its form begins with the arguments of its newest call.
    pub fn refresh(&mut self, tool: Option<&Arc<ToolDefinition>>, calls: &ConsoleCalls) {
        let newest = tool.and_then(|tool| calls.newest_of(&tool.name.full())).map(|call| call.run);
        let same = match (&self.source, tool) {
            (Some((made_of, side, call)), Some(tool)) => {
                Arc::ptr_eq(made_of, tool) && *side == self.tab && *call == newest
            }
            (None, None) => true,
            _ => false,
        };
        if same {
            return;
        }
        self.source = tool.map(|tool| (Arc::clone(tool), self.tab, newest));
        (self.text, self.preview) = (ScrollText::default(), None);
        match (tool, self.tab) {
            (None, _) | (_, DetailTab::Docs) => {}
            (Some(tool), DetailTab::Form) => {
                let is_callable =
                    tool.unavailable_reason.is_none() && tool.status != ToolStatus::Untrusted;
                let earlier = calls.arguments_of(&tool.name.full());
                self.preview = is_callable.then(|| SchemaForm::of(tool, earlier));
            }
            (Some(tool), DetailTab::Schema) => self.text = definition(tool),
        }
    }
}

fn definition(tool: &ToolDefinition) -> ScrollText {
    let mut page = ScrollText::with_limits(LIMITS);
    page.json(&tool.raw_value().unwrap_or_else(|| fingerprint::content(tool)));
    page
}

pub fn draw(pen: &mut Pen<'_>, state: &AppState, area: Rect) {
    let Some(row) = state.tools.catalogue.chosen() else {
        let group =
            tools::draw::group_lines(pen.styler, state, usize::from(area.width).saturating_sub(4));
        let (title, lines) = group.unwrap_or_else(|| ("Tool".to_owned(), nothing(pen.styler)));
        let inner = pen.open(area, &title);
        return pen.paragraph(inner, &lines);
    };
    let detail = &state.tools.detail;
    let form = state.tools.shown_form();
    let title = match (&state.tools.form, row.server()) {
        (Some(form), _) => format!("Arguments  {}", form.tool),
        (None, Some(server)) => format!("{server} › {}", row.short_name()),
        (None, None) => row.name.clone(),
    };
    let tab = match form {
        Some(_) => DetailTab::Form,
        // What cannot be called has no form.
        None if detail.tab == DetailTab::Form => DetailTab::Docs,
        None => detail.tab,
    };
    // While it is filled in, nothing else is shown here.
    let tabs = if state.tools.form.is_some() { Vec::new() } else { tabs(tab) };
    let inner = pen.open_tabs(area, &title, &tabs);
    let used = text::width(&title) + tabs.iter().map(|(name, _)| name.len() + 2).sum::<usize>();
    chips(pen, state, row, area, used + 6);
    if let Some(form) = form {
        let about = about(pen.styler, state, &row.tool, inner.width);
        let left =
            inner.height.saturating_sub(form::draw::rows_needed(pen.styler, form, inner.width));
        let [above, below] = top(inner, about.len().min(usize::from(left)));
        pen.put(ratatui::text::Text::from(about), above);
        pen.focused &= state.tools.form.is_some();
        return form::draw::inside(pen, form, below);
    }
    if tab != DetailTab::Docs {
        return pen.text(&detail.text, inner);
    }
    let width = Some(usize::from(inner.width));
    let mut lines = pen.document(&present::tool::about(&row.tool, "", None, width));
    if let Some((usage, window)) = state.stats.usage_of(&row.tool) {
        let mut used = present::Line::styled(Role::Dim, "used      ");
        used.append(present::stats::summary_line(usage));
        used.push(Role::Dim, format!(" ({})", window.title()));
        lines.splice(0..0, pen.document(&used.into()));
    }
    lines.splice(0..0, slower(pen.styler, state, &row.tool));
    pen.page(&lines, &detail.position, inner);
}

/// What stands above a form: what is odd about the tool, and the beginning of what it does.
pub fn about(
    styler: Styler,
    state: &AppState,
    tool: &ToolDefinition,
    width: u16,
) -> Vec<Line<'static>> {
    let mut lines = slower(styler, state, tool);
    if tool.status != ToolStatus::Declared {
        let status = present::tool::status_line(tool).map(Page::from);
        lines.extend(status.into_iter().flat_map(|status| styler.document(&status)));
    }
    let warnings = tool.warnings.iter().map(|text| styler.line(Role::Warning, format!("! {text}")));
    lines.extend(warnings);
    let text = tool.description.as_deref().unwrap_or_default().trim();
    // No more than could be seen is laid out, however long a server made it.
    let first: String = text.lines().next().unwrap_or_default().chars().take(MOST).collect();
    let is_cut = first.len() < text.len();
    let rows = wrap(&styler.line(Role::Plain, first), usize::from(width));
    let is_whole = rows.len() <= ABOUT && !is_cut;
    lines.extend(rows.into_iter().take(ABOUT).filter(|row| row.width() > 0));
    if let Some(last) = lines.last_mut().filter(|_| !is_whole) {
        last.push_span(styler.dim("…"));
        *last = styler.fitted(std::mem::take(last), width.into());
    }
    if !lines.is_empty() {
        lines.push(Line::default());
    }
    lines
}

/// How many rows of a description stand above a form, made of at most so many characters.
const ABOUT: usize = 2;
const MOST: usize = 1_000;

fn slower(styler: Styler, state: &AppState, tool: &ToolDefinition) -> Vec<Line<'static>> {
    let Some(slower) = state.stats.exceeded_speed_of(tool) else { return Vec::new() };
    let mut line = present::Line::styled(Role::Warning, "! ");
    line.append(present::stats::slower_line(&slower));
    styler.document(&line.into())
}

/// What the tool does to the world, at the right end of the frame, where that is not taken.
fn chips(pen: &mut Pen<'_>, state: &AppState, row: &ToolRow, area: Rect, taken: usize) {
    let mut marks = tools::draw::marks(state, row);
    if row.tool.annotations.read_only == Some(true) {
        marks.insert(0, (Role::Success, "RO"));
    }
    if row.tool.annotations.open_world == Some(true) {
        marks.push((Role::Question, "NET"));
    }
    let styler = pen.styler;
    let chip = |(role, word)| [styler.plain(" "), styler.chip(role, word)];
    let line: Line<'_> = marks.into_iter().flat_map(chip).collect();
    let width = cells(line.width());
    if pen.frames && usize::from(area.width) > usize::from(width) + taken {
        pen.put(line, Rect { x: area.right() - width - 2, width, height: 1, ..area });
    }
}

fn nothing(styler: Styler) -> Vec<Line<'static>> {
    let text = "Choose a tool on the left; / finds one by a few letters.\n\
                Enter fills in its arguments and runs it.";
    styler.lines(Role::Dim, text)
}
