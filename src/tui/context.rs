//! State shared by all views: screen size, focus, status message, and the calls made here.

use std::collections::BTreeMap;

use crate::host::breakpoints::Breakpoint;
use crate::tui::calls::ConsoleCalls;
use crate::tui::event::AskId;
use crate::tui::keys::Keymap;
use crate::tui::layout::{self, FormRoom, PaneShares, SizeClass};
use crate::tui::prelude::*;
use crate::tui::theme::{Appearance, ColourDepth, ColourScheme};
use crate::tui::views::overlays::SaveCallWindow;
use crate::tui::views::overlays::help::HelpWindow;
use crate::tui::views::overlays::palette::PaletteEntry;
use crate::tui::widgets::filter::Picker;
use crate::tui::widgets::list::step_around;
use crate::tui::widgets::picture::PictureBox;

/// How long a question must be on the screen before a key answers it: keys that come sooner were
/// typed for something else.
pub const MIN_VISIBLE_TIME: Duration = Duration::from_millis(300);

const MAX_COLUMNS: u16 = 160;
const MAX_ROWS: u16 = 60;

/// Something that lies over everything else and has all keys.
#[derive(Debug, Clone, PartialEq)]
pub enum Overlay {
    /// What the keys do.
    Help(Box<HelpWindow>),
    /// Whether to leave although calls run.
    ConfirmQuit,
    /// Everything that can be done, to choose from.
    Palette(Box<Picker<PaletteEntry>>),
    /// The calls that run, to stop one of them.
    Running(ListCursor),
    Problems,
    Pin,
    SaveCall(Box<SaveCallWindow>),
    /// What a server asks during a call that somebody waits for.
    Question(AskId),
}

/// Whose calls the statistics and the history show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ShownProjects {
    /// There is no project here: calls of all projects.
    #[default]
    NoProject,
    Own,
    /// Those of all projects, because the user chose so.
    All,
}

impl ShownProjects {
    /// What titles say; nothing without a project.
    pub fn title(self) -> Option<&'static str> {
        match self {
            Self::NoProject => None,
            Self::Own => Some("this project"),
            Self::All => Some("all projects"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusMessage {
    pub text: String,
    pub is_error: bool,
}

#[derive(Debug, Default)]
pub struct AppContext {
    pub size: (u16, u16),
    pub view: ViewId,
    pub focus: Pane,
    /// What was shown before the inbox: one goes back there from the last question.
    pub before_inbox: (ViewId, Pane),
    pub has_wire: bool,
    /// The name of the project; `None` without one.
    pub project: Option<String>,
    pub is_zoomed: bool,
    /// The window over the views; `None` when there is none.
    pub overlay: Option<Overlay>,
    pub problems: Vec<String>,
    /// The words at the end of a command line that name the server, with a blank before them; empty
    /// where servers stand in files.
    pub command_end: String,
    /// The message in the status line, until the next action.
    pub message: Option<StatusMessage>,
    /// The time since the Unix epoch, as of the last tick.
    pub now: Duration,
    /// How many events were lost because more came than could be taken in.
    pub lost: u64,
    /// The colours, the characters and whether things move.
    pub appearance: Appearance,
    /// The keys, with those remapped in `console.yaml`.
    pub keys: Keymap,
    pub calls: ConsoleCalls,
    /// What is to be done outside of the state, as soon as it has taken in what happened.
    pub effects: Effects,
    pub pane_shares: BTreeMap<ViewId, PaneShares>,
    /// What the form of the tools view needs.
    pub form_room: Option<FormRoom>,
    /// Whose calls the statistics and the history show.
    pub shown_projects: ShownProjects,
    /// The process of the background host that answers in place of the console's own; `None` without.
    pub attached_host: Option<u32>,
    /// The rules of that host that stop calls.
    pub breakpoints: Vec<Breakpoint>,
}

impl AppContext {
    pub fn new(size: (u16, u16)) -> Self {
        Self { size, ..Self::default() }
    }

    /// Between the calls of the project and those of all; without a project says why not.
    pub fn switch_projects(&mut self) {
        self.shown_projects = match self.shown_projects {
            ShownProjects::NoProject => {
                return self.show_status("no project here: showing calls of all projects");
            }
            ShownProjects::Own => ShownProjects::All,
            ShownProjects::All => ShownProjects::Own,
        };
        self.show_status(format!("showing {}", self.shown_projects.title().unwrap_or_default()));
    }

    pub fn room(&self) -> SizeClass {
        SizeClass::for_area(Rect::new(0, 0, self.size.0, self.size.1))
    }

    /// What is between the header and the lines at the bottom.
    fn middle(&self) -> Rect {
        let [_, middle, _, _] = layout::frame(Rect::new(0, 0, self.size.0, self.size.1));
        middle
    }

    pub fn panes_shown(&self) -> Vec<(Pane, Rect)> {
        let room = self.room();
        if room == SizeClass::None {
            return Vec::new();
        }
        if self.is_zoomed || room <= SizeClass::Compact {
            return vec![(self.focus, self.middle())];
        }
        let shares = self.pane_shares.get(&self.view).copied().unwrap_or_default();
        layout::panes(self.view, room, self.middle(), shares, self.form_room, self.has_wire)
    }

    /// Where a pane is; `None` where it is not seen.
    pub fn area_of(&self, pane: Pane) -> Option<Rect> {
        self.panes_shown().into_iter().find(|(shown, _)| *shown == pane).map(|(_, area)| area)
    }

    pub fn pane_at(&self, x: u16, y: u16) -> Option<Pane> {
        let mut panes = self.panes_shown().into_iter();
        panes.find(|(_, area)| area.contains((x, y).into())).map(|(pane, _)| pane)
    }

    /// Whether a pane is seen: on small terminals only the focused one is.
    pub fn is_pane_shown(&self, pane: Pane) -> bool {
        self.area_of(pane).is_some()
    }

    pub fn resize_pane(&mut self, action: Action) {
        let (view, room) = (self.view, self.room());
        let height = self.middle().height.max(1);
        let is_height = matches!(action, Action::GrowPane | Action::ShrinkPane);
        let upper = self.area_of(Pane::Detail).filter(|_| view == ViewId::Tools && is_height);
        let shares = self.pane_shares.entry(view).or_default();
        // It goes on from where it is.
        if let (None, Some(upper)) = (shares.upper, upper) {
            shares.upper = Some(upper.height.saturating_mul(100) / height);
        }
        shares.resize(action, view, room);
    }

    pub fn wire_shown(&self) -> Option<Rect> {
        let (_, below) = layout::wire_below(self.view, self.room(), self.middle(), self.has_wire);
        below.filter(|_| !self.is_zoomed)
    }

    /// What is inside the frame of a pane; on a narrow screen only a title takes room.
    pub fn inside(&self, pane: Rect) -> Rect {
        layout::inside(pane, self.room())
    }

    /// The room for a picture in a pane; `None` where none is shown: without colours, in ASCII, or
    /// because a person wants none.
    pub fn picture_box(&self, pane: Pane) -> Option<PictureBox> {
        let look = &self.appearance;
        if !look.images || look.ascii || look.theme().palette == ColourScheme::Mono {
            return None;
        }
        let area = self.inside(self.area_of(pane)?);
        // The row above tells what it is, and the last one how much is below.
        let (columns, rows) = (area.width.min(MAX_COLUMNS), area.height.saturating_sub(2));
        let rows = rows.min(MAX_ROWS);
        let is_seen = columns >= 2 && rows >= 2;
        let has_true_colour = look.depth == ColourDepth::True;
        is_seen.then_some(PictureBox { columns, rows, has_true_colour })
    }

    pub fn page_height(&self) -> usize {
        self.area_of(self.focus).map_or(0, |area| usize::from(self.inside(area).height))
    }

    /// Has something done outside of the state.
    pub fn emit(&mut self, effect: impl Into<AppEffect>) {
        self.effects.push(effect.into());
    }

    /// Copies a text, and says what was copied and how large it is.
    pub fn copy(&mut self, what: &str, text: String) {
        let size = show_size(u64::try_from(text.len()).unwrap_or(u64::MAX));
        self.show_status(format!("copied {what} ({size})"));
        self.emit(AppEffect::Copy(text));
    }

    pub fn show_status(&mut self, text: impl Into<String>) {
        self.message = Some(StatusMessage { text: text.into(), is_error: false });
    }

    /// Takes back a message that says what goes on (`…`), because it does not any more.
    pub fn end_progress(&mut self) {
        self.message.take_if(|message| message.text.ends_with('…'));
    }

    pub fn show_error(&mut self, text: impl Into<String>) {
        self.message = Some(StatusMessage { text: text.into(), is_error: true });
    }

    /// Gives the focus to the next pane, or to one before.
    pub fn step_pane(&mut self, by: isize) {
        let panes = self.view.panes();
        let at = panes.iter().position(|pane| *pane == self.focus).unwrap_or(0);
        self.focus = panes[step_around(at, by, panes.len())];
    }
}
