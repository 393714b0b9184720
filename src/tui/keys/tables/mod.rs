//! The default key bindings: one table for each view or mode.

mod bench;
mod common;
mod form;
mod history;
mod inbox;
mod offerings;
mod servers;
mod stats;
mod tools;
mod trace;

use super::{Action, KeyContext, KeyPress};

/// One key in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    pub key: KeyPress,
    pub action: Action,
    /// How the footer calls it; without a word it is in the help only.
    pub label: Option<&'static str>,
    /// What it does, for the help; empty for a second key of the same action.
    pub about: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub struct KeyTable {
    pub context: KeyContext,
    /// The heading in the help.
    pub title: &'static str,
    /// What holds there, the most important first; of two for one key the first counts.
    pub bindings: &'static [Binding],
}

const fn footer_binding(
    key: KeyPress,
    action: Action,
    word: &'static str,
    about: &'static str,
) -> Binding {
    Binding { key, action, label: Some(word), about }
}

/// A key that only the help shows.
const fn help_binding(key: KeyPress, action: Action, about: &'static str) -> Binding {
    Binding { key, action, label: None, about }
}

const fn alias_binding(key: KeyPress, action: Action) -> Binding {
    Binding { key, action, label: None, about: "" }
}

/// All places, as the help shows them.
pub const KEY_TABLES: &[KeyTable] = &[
    tools::TOOL_TREE,
    tools::TOOLS,
    tools::RESULT,
    tools::RESULT_TABLE,
    servers::SERVERS,
    trace::TRACE,
    stats::STATS,
    bench::BENCH,
    history::HISTORY,
    offerings::OFFERINGS,
    offerings::OFFERING_FORM,
    inbox::INBOX,
    form::FORM_LAST,
    form::FORM,
    form::FORM_ITEMS,
    form::FIELD_LINES,
    form::CHOICE,
    form::LINES,
    inbox::ANSWER,
    inbox::APPROVAL,
    inbox::TRUST,
    common::TEXT,
    common::PICKER,
    common::PALETTE,
    common::SAVE_CALL,
    common::RUNNING,
    common::PROBLEMS,
    common::PIN_REVIEW,
    common::OVERLAY,
    common::PANE,
    common::ANYWHERE,
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_key_has_two_meanings_in_one_place() {
        for place in KEY_TABLES {
            let mut seen = HashSet::new();
            for binding in place.bindings {
                assert!(seen.insert(binding.key), "{:?}: {binding:?}", place.context);
            }
        }
    }

    #[test]
    fn what_a_key_does_is_said_once_for_each_action() {
        for place in KEY_TABLES {
            for binding in place.bindings {
                let text = place
                    .bindings
                    .iter()
                    .filter(|other| other.action == binding.action && !other.about.is_empty());
                assert_eq!(text.count(), 1, "{:?}: {binding:?}", place.context);
            }
        }
    }
}
