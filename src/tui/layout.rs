//! The layout of panes for each terminal size.
//!
//! Owns: arithmetic on rectangles. Never does: draw.

use ratatui::layout::{Constraint, Layout, Rect};

use super::view_id::{Pane, ViewId};

/// The size class of the terminal.
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

/// The least size that anything is drawn in.
pub const MIN_SIZE: (u16, u16) = (20, 5);

impl SizeClass {
    /// The size class of a terminal of this size.
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

/// The bar above, what is between, and the two lines below.
pub fn frame(area: Rect) -> [Rect; 4] {
    Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(area)
}

/// A list and the pane beside it.
pub fn columns(area: Rect, room: SizeClass) -> (Rect, Rect) {
    let share = if room == SizeClass::Full { 36 } else { 43 };
    let [left, right] =
        Layout::horizontal([Constraint::Percentage(share), Constraint::Fill(1)]).areas(area);
    (left, right)
}

/// How many lines the wire has below the tools.
const WIRE_HEIGHT: u16 = 8;

/// What a view is drawn in, and what is left below it for the newest lines of the wire, where there
/// is room for both.
pub fn wire_below(view: ViewId, room: SizeClass, area: Rect) -> (Rect, Option<Rect>) {
    if view != ViewId::Tools || room != SizeClass::Full {
        return (area, None);
    }
    let [above, below] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(WIRE_HEIGHT)]).areas(area);
    (above, Some(below))
}

/// How many lines the calls of a tool have below its result, the frame included.
const LIVE_HEIGHT: u16 = 4;

/// Where the calls of the chosen tool are shown as they end, where there is room: from 100x30 up.
pub fn live_below(view: ViewId, room: SizeClass, area: Rect) -> Option<Rect> {
    // The bar above and the two lines below belong to the 30.
    if view != ViewId::Tools || room < SizeClass::Medium || area.width < 100 || area.height < 27 {
        return None;
    }
    let (area, _) = wire_below(view, room, area);
    let (_, right) = columns(area, room);
    Some(Rect { y: right.bottom() - LIVE_HEIGHT, height: LIVE_HEIGHT, ..right })
}

/// Where the panes of a view are, where there is room for more than one. A form of `form_rows` rows,
/// its frame included, takes no more than those of the tools view, so that the result gets the rest.
pub fn panes(
    view: ViewId,
    room: SizeClass,
    area: Rect,
    form_rows: Option<u16>,
) -> Vec<(Pane, Rect)> {
    let all = view.panes();
    let live = live_below(view, room, area);
    let (area, _) = wire_below(view, room, area);
    match view {
        ViewId::Tools => {
            let (left, right) = columns(area, room);
            let (above, below) = detail_rows(right, room, form_rows);
            let height = below.height - live.map_or(0, |live| live.height);
            vec![(all[0], left), (all[1], above), (all[2], Rect { height, ..below })]
        }
        ViewId::Bench => {
            let (left, right) = columns(area, room);
            let (above, below) = rows(right, 55);
            vec![(all[0], left), (all[1], above), (all[2], below)]
        }
        ViewId::Servers | ViewId::Trace | ViewId::Stats | ViewId::History => {
            let (above, below) = rows(area, if view == ViewId::Servers { 35 } else { 50 });
            vec![(all[0], above), (all[1], below)]
        }
        ViewId::Offerings | ViewId::Inbox => {
            let (left, right) = columns(area, room);
            vec![(all[0], left), (all[1], right)]
        }
    }
}

/// The detail of a tool, or its form, and the result below it.
fn detail_rows(area: Rect, room: SizeClass, form_rows: Option<u16>) -> (Rect, Rect) {
    let (above, below) = rows(area, if room == SizeClass::Full { 55 } else { 60 });
    match form_rows.filter(|needed| *needed < above.height) {
        None => (above, below),
        Some(needed) => {
            let [above, below] =
                Layout::vertical([Constraint::Length(needed), Constraint::Fill(1)]).areas(area);
            (above, below)
        }
    }
}

/// Whether panes have frames: a narrow screen has no lines to spare for them.
pub fn has_frames(room: SizeClass) -> bool {
    room > SizeClass::Tiny
}

/// The area inside the border of a pane.
pub fn inside(pane: Rect, room: SizeClass) -> Rect {
    if has_frames(room) {
        return pane.inner(ratatui::layout::Margin::new(1, 1));
    }
    let title = pane.height.min(1);
    Rect { y: pane.y + title, height: pane.height - title, ..pane }
}

/// Two panes above each other.
pub fn rows(area: Rect, upper: u16) -> (Rect, Rect) {
    let [above, below] =
        Layout::vertical([Constraint::Percentage(upper), Constraint::Fill(1)]).areas(area);
    (above, below)
}

/// A window in the middle, as large as it may be.
pub fn window(area: Rect, width: u16, height: u16) -> Rect {
    let width = width.min(area.width);
    let height = height.min(area.height);
    Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    }
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
    fn a_window_never_leaves_the_screen() {
        for (width, height) in [(1, 1), (20, 5), (500, 200)] {
            let area = Rect::new(0, 0, width, height);
            assert_eq!(window(area, 60, 20).intersection(area), window(area, 60, 20));
        }
    }
}
