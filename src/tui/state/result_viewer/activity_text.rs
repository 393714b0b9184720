//! What a call reported while it ran, as text.

use crate::tui::state::{CallActivity, ScrollText};
use crate::tui::theme::StyleRole;
use crate::util::units::show_duration;

/// What was reported while it ran: nested calls and log lines; empty if nothing.
pub(super) fn of(activity: &CallActivity) -> ScrollText {
    let mut page = ScrollText::default();
    if !activity.children.is_empty() {
        page.gap();
        page.line(StyleRole::Title, "nested calls");
        for nested in &activity.children {
            let indent = "  ".repeat(nested.depth);
            let (meaning, text) = match nested.ended {
                Some((true, took)) => (StyleRole::Plain, format!("ok {}", show_duration(took))),
                Some((false, took)) => {
                    (StyleRole::Error, format!("failed {}", show_duration(took)))
                }
                None => (StyleRole::Dim, "end unknown".to_owned()),
            };
            page.line(meaning, format!("{indent}{}  {text}", nested.tool));
        }
    }
    if !activity.log.is_empty() {
        page.gap();
        page.line(StyleRole::Title, "log");
        for (level, text) in &activity.log {
            page.text(StyleRole::Dim, &format!("{level}: {text}"));
        }
    }
    page
}
