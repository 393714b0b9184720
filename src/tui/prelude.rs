//! What nearly every view works with.

pub use ratatui::layout::{Constraint, Layout, Rect};
pub use ratatui::text::{Line, Span};

pub use crate::tui::app::{AppState, View};
pub use crate::tui::context::{AppContext, Overlay};
pub use crate::tui::event::{AppEffect, Effects, Navigation};
pub use crate::tui::keys::{Action, KeyContext, KeyTable, row};
pub use crate::tui::layout::{Pane, ViewId};
pub use crate::tui::tasks::{Task, TaskContext};
pub use crate::tui::theme::Role;
pub use crate::tui::widgets::filter::ListFilter;
pub use crate::tui::widgets::input::LineInput;
pub use crate::tui::widgets::list::ListCursor;
pub use crate::tui::widgets::pane::{Pen, Styler};
pub use crate::tui::widgets::scroll_text::{ScrollPosition, ScrollText};
