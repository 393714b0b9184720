//! The layout of panes for each terminal size.

use ratatui::layout::{Constraint, Layout, Rect};

use crate::tui::keys::Action;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SizeClass {
    /// Not even for one pane.
    None,
    /// One pane, without a frame around it.
    Tiny,
    /// Room for one pane with a border.
    Compact,
    /// Room for panes in two columns.
    Medium,
    /// Room for panes in three columns.
    Full,
}

pub const MIN_SIZE: (u16, u16) = (20, 5);

impl SizeClass {
    pub fn for_area(area: Rect) -> Self {
        match (area.width, area.height) {
            (width, height) if width < MIN_SIZE.0 || height < MIN_SIZE.1 => Self::None,
            (110.., 32..) => Self::Full,
            (80.., 20..) => Self::Medium,
            (60.., 16..) => Self::Compact,
            _ => Self::Tiny,
        }
    }
}

/// Whether the views have a line of their own below the one at the top.
pub fn has_tabs(area: Rect) -> bool {
    area.width >= 80 && area.height >= 28
}

/// The top bar, the body, and the two lines at the bottom.
pub fn frame(area: Rect) -> [Rect; 4] {
    Layout::vertical([
        Constraint::Length(if has_tabs(area) { 2 } else { 1 }),
        Constraint::Fill(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(area)
}

/// So many rows at the top of an area, and what is left below them.
pub fn top(area: Rect, rows: usize) -> [Rect; 2] {
    Layout::vertical([Constraint::Length(cells(rows)), Constraint::Fill(1)]).areas(area)
}

/// What is left above so many rows at the bottom of an area, and those.
pub fn bottom(area: Rect, rows: usize) -> [Rect; 2] {
    Layout::vertical([Constraint::Fill(1), Constraint::Length(cells(rows))]).areas(area)
}

/// So many cells or rows, as far as a screen can have them.
pub fn cells(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

/// The minimum and maximum share of a pane, in percent.
const SHARES: (u16, u16) = (15, 85);

/// The pane sizes of a view, as changed by the user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PaneShares {
    /// The share of the pane on the left, in percent of the width; `None` for the usual one.
    pub left: Option<u16>,
    /// The share of the upper pane, in percent of the height; `None` for the usual one.
    pub upper: Option<u16>,
}

/// How far a key moves the line between two panes, in percent of the view.
const STEP: i16 = 5;

impl PaneShares {
    fn left(self, room: SizeClass) -> u16 {
        self.left.unwrap_or(if room == SizeClass::Full { 36 } else { 43 }).clamp(SHARES.0, SHARES.1)
    }

    fn upper(self, view: ViewId) -> u16 {
        let usual = match view {
            // The result has at least half.
            ViewId::Tools => 45,
            ViewId::Bench => 55,
            ViewId::Servers => 35,
            _ => 50,
        };
        self.upper.unwrap_or(usual).clamp(SHARES.0, SHARES.1)
    }

    /// Moves the line between two panes: that at the left one, or else that below the upper one.
    pub fn resize(&mut self, action: Action, view: ViewId, room: SizeClass) {
        let is_less = matches!(action, Action::NarrowPane | Action::ShrinkPane);
        let by = if is_less { -STEP } else { STEP };
        let moved = |share: u16| Some(share.saturating_add_signed(by).clamp(SHARES.0, SHARES.1));
        match action {
            Action::NarrowPane | Action::WidenPane => self.left = moved(self.left(room)),
            _ => self.upper = moved(self.upper(view)),
        }
    }
}

/// How many lines the wire has below the tools, where it is open.
const WIRE_HEIGHT: usize = 8;

/// What a view is drawn in, and what is left below it for the newest lines of the wire, where there
/// is room for both.
pub fn wire_below(
    view: ViewId,
    room: SizeClass,
    area: Rect,
    is_open: bool,
) -> (Rect, Option<Rect>) {
    if view != ViewId::Tools || room < SizeClass::Medium || !is_open {
        return (area, None);
    }
    let [above, below] = bottom(area, WIRE_HEIGHT);
    (above, Some(below))
}

/// What the form of the tools view needs.
#[derive(Debug, Clone, Copy)]
pub struct FormRoom {
    /// With its frame.
    pub rows: u16,
    /// Whether there is a result below it, which then has at least half.
    pub has_result: bool,
}

/// The rows of the pane of a result that says that there is none, and how to get one.
const NO_RESULT_ROWS: u16 = 8;

/// Where the panes of a view are, where there is room for more than one. A form takes no more than it
/// needs of the tools view, so that the result gets the rest.
pub fn panes(
    view: ViewId,
    room: SizeClass,
    area: Rect,
    shares: PaneShares,
    form: Option<FormRoom>,
    has_wire: bool,
) -> Vec<(Pane, Rect)> {
    let (area, _) = wire_below(view, room, area, has_wire);
    let upper = Constraint::Percentage(shares.upper(view));
    let rows = |area| Layout::vertical([upper, Constraint::Fill(1)]).areas(area);
    let left = Constraint::Percentage(shares.left(room));
    let columns: [Rect; 2] = Layout::horizontal([left, Constraint::Fill(1)]).areas(area);
    let [left, right] = columns;
    let areas = match view {
        ViewId::Tools => {
            let form = form.filter(|_| shares.upper.is_none());
            let [above, _] = rows(right);
            let usual = match form {
                Some(form) if !form.has_result => {
                    above.height.max(right.height.saturating_sub(NO_RESULT_ROWS))
                }
                _ => above.height,
            };
            let [above, below] = detail_rows(right, usual, form.map(|form| form.rows));
            vec![left, above, below]
        }
        ViewId::Bench => [&[left][..], &rows(right)].concat(),
        ViewId::Servers | ViewId::Trace | ViewId::Stats | ViewId::History => rows(area).to_vec(),
        ViewId::Offerings | ViewId::Inbox => columns.to_vec(),
    };
    view.panes().iter().copied().zip(areas).collect()
}

const LEAST_ROWS: u16 = 3;

/// The detail of a tool, or its form, and what is below it: the result, which keeps some rows
/// whatever the share.
fn detail_rows(area: Rect, usual: u16, form_rows: Option<u16>) -> [Rect; 2] {
    let most = area.height.saturating_sub(LEAST_ROWS).max(LEAST_ROWS);
    let height = usual.min(form_rows.unwrap_or(u16::MAX)).clamp(LEAST_ROWS, most);
    top(area, usize::from(height))
}

/// Whether panes have frames: a narrow screen has no lines to spare for them.
pub fn has_frames(room: SizeClass) -> bool {
    room > SizeClass::Tiny
}

pub fn inside(pane: Rect, room: SizeClass) -> Rect {
    if has_frames(room) {
        return pane.inner(ratatui::layout::Margin::new(2, 1));
    }
    let title = pane.height.min(1);
    Rect { y: pane.y + title, height: pane.height - title, ..pane }
}

/// The size of a window for a text of any length.
pub fn page_size(area: Rect) -> (u16, u16) {
    let margin = if area.height < 20 { 2 } else { 4 };
    (100, area.height.saturating_sub(margin).max(5))
}

pub fn window(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    let (x, y) = (area.x + (area.width - width) / 2, area.y + (area.height - height) / 2);
    Rect { x, y, width, height }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_its_room() {
        let room = |width, height| SizeClass::for_area(Rect::new(0, 0, width, height));
        assert_eq!(room(120, 40), SizeClass::Full);
        assert_eq!(room(80, 24), SizeClass::Medium);
        assert_eq!(room(60, 16), SizeClass::Compact);
        assert_eq!(room(40, 10), SizeClass::Tiny);
        assert_eq!(room(19, 40), SizeClass::None);
        assert_eq!(room(1, 1), SizeClass::None);
    }

    #[test]
    fn a_pane_that_is_made_smaller_stays_usable() {
        let area = Rect::new(0, 1, 100, 29);
        let mut shares = PaneShares::default();
        let form = |rows, has_result| Some(FormRoom { rows, has_result });
        let panes =
            |shares, form| panes(ViewId::Tools, SizeClass::Medium, area, shares, form, false);
        let shown = |shares| panes(shares, form(5, true));
        assert_eq!(shown(shares)[1].1.height, 5, "a form takes what it needs");
        let heights = [true, false].map(|result| panes(shares, form(40, result))[1].1.height);
        assert_eq!(heights, [13, 21], "and more of it while there is no result");
        let less = [Action::NarrowPane, Action::ShrinkPane];
        for action in [less, [Action::WidenPane, Action::GrowPane]].concat() {
            (0..80).for_each(|_| shares.resize(action, ViewId::Tools, SizeClass::Medium));
            assert!(shown(shares).iter().all(|(_, area)| area.width >= 10 && area.height >= 3));
        }
        assert_eq!(shares.left, Some(SHARES.1));
    }

    #[test]
    fn a_window_never_leaves_the_screen() {
        for (width, height) in [(1, 1), (20, 5), (500, 200)] {
            let area = Rect::new(0, 0, width, height);
            assert_eq!(window(area, 60, 20).intersection(area), window(area, 60, 20));
        }
    }
}

/// The views, in the order of their keys.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, strum::VariantArray,
)]
pub enum ViewId {
    #[default]
    Tools,
    Servers,
    /// The messages to and from servers.
    Trace,
    /// The statistics of past calls by tool or server.
    Stats,
    Bench,
    /// The calls of the past.
    History,
    /// What servers offer beside tools: resources and prompts.
    Offerings,
    /// Questions from servers and approvals.
    Inbox,
}

impl ViewId {
    /// The title, what is left of it where there is little room, and the panes.
    fn facts(self) -> (&'static str, &'static str, &'static [Pane]) {
        match self {
            Self::Tools => ("Tools", "Tools", &[Pane::Catalogue, Pane::Detail, Pane::Result]),
            Self::Servers => ("Servers", "Srv", &[Pane::Servers, Pane::Health]),
            Self::Trace => ("Trace", "Trc", &[Pane::TraceList, Pane::Frame]),
            Self::Stats => ("Stats", "Sta", &[Pane::Usage, Pane::Latency]),
            Self::Bench => ("Bench", "Bch", &[Pane::Plan, Pane::Run, Pane::Verdict]),
            Self::History => ("History", "His", &[Pane::HistoryList, Pane::Entry]),
            Self::Offerings => ("Resources", "Res", &[Pane::OfferingList, Pane::Content]),
            Self::Inbox => ("Inbox", "Inb", &[Pane::Questions, Pane::Question]),
        }
    }

    pub fn title(self) -> &'static str {
        self.facts().0
    }

    pub fn name(self) -> String {
        self.title().to_lowercase()
    }

    pub fn short(self) -> &'static str {
        self.facts().1
    }

    pub fn panes(self) -> &'static [Pane] {
        self.facts().2
    }
}

/// A part of a view that can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Pane {
    /// The tool list with its filter.
    #[default]
    Catalogue,
    /// The chosen tool, or its arguments while they are filled in.
    Detail,
    Result,
    Servers,
    Health,
    /// The messages to and from servers, one a line.
    TraceList,
    /// The chosen message in full.
    Frame,
    Usage,
    /// How long the chosen one took, and when it was called.
    Latency,
    Plan,
    Run,
    /// The comparison and the judgement of the last run.
    Verdict,
    /// The calls of the past.
    HistoryList,
    /// The chosen past call, or a diff of two.
    Entry,
    /// Resources and prompts, by server.
    OfferingList,
    Content,
    Questions,
    Question,
}
