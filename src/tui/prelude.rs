//! What nearly every view works with.

pub use std::sync::Arc;
pub use std::time::Duration;

pub use ratatui::layout::Rect;
pub use ratatui::text::{Line, Span};
pub use strum::VariantArray as _;

pub use crate::model::{Error, JsonObject};
pub(crate) use crate::present;
pub use crate::present::{Page, plural};
pub use crate::tui::app::{AppState, View};
pub use crate::tui::context::{AppContext, Overlay};
pub use crate::tui::event::{AppEffect, AppEvent, Effects, Navigation};
pub use crate::tui::keys::{ANYWHERE, Action, KeyContext, KeyTable, PANE, on_row, row};
pub use crate::tui::layout::{Pane, ViewId, bottom, cells, top};
pub use crate::tui::tasks::{Task, TaskContext};
pub use crate::tui::theme::Role;
pub use crate::tui::views::form::SchemaForm;
pub use crate::tui::widgets::filter::ListFilter;
pub use crate::tui::widgets::input::TextInput;
pub use crate::tui::widgets::list::{ListCursor, after, shown_of, tabs};
pub use crate::tui::widgets::page::wrap;
pub use crate::tui::widgets::pane::{self, NO_MATCHES, Pen, Styler};
pub use crate::tui::widgets::scroll_text::{ScrollPosition, ScrollText};
pub use crate::tui::widgets::{chart, table};
pub use crate::util::text::{self, shorten};
pub use crate::util::units::{float, show_count, show_duration, show_size};
