//! Keys as data: which key does what, where.
//!
//! Owns: the table. The footer and the help are made from it, so they cannot be wrong.

mod key;
mod table;

pub use key::Key;
pub use table::{Binding, TABLE};

use super::state::View;

/// Something a person can do. Each has a key and a line in the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Show another view.
    Show(View),
    /// Focus the next pane.
    NextPane,
    /// Focus the one before.
    PreviousPane,
    /// Let the focused pane fill the screen, or give that back.
    Zoom,
    /// Write a filter.
    Filter,
    /// Choose the next order of the list.
    Sort,
    /// One line down.
    Down,
    /// One line up.
    Up,
    /// A page down.
    PageDown,
    /// A page up.
    PageUp,
    /// To the beginning.
    Top,
    /// To the end.
    Bottom,
    /// Fill in the arguments of the chosen tool.
    Fill,
    /// Make the call.
    Run,
    /// The field before.
    PreviousField,
    /// The next field.
    NextField,
    /// The choice before.
    PreviousChoice,
    /// The next choice.
    NextChoice,
    /// Leave the field out.
    Unset,
    /// Send `null` for the field.
    Null,
    /// Copy what is shown.
    Copy,
    /// Copy the call as a command line.
    CopyCommand,
    /// Ask again: the list, the server.
    Refresh,
    /// Say yes, once.
    Yes,
    /// Say no.
    No,
    /// What the keys do.
    Help,
    /// Close, leave, go back.
    Back,
    /// Stop the newest call, or leave the console.
    Cancel,
    /// Draw the screen anew.
    Redraw,
    /// Give the terminal back to the shell for a while.
    Suspend,
    /// Leave the console.
    Quit,
}

/// Where a binding holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum When {
    /// Everywhere, unless something nearer has the key.
    Anywhere,
    /// In lists and texts that scroll.
    Pane,
    /// In a list of tools, and beside it.
    Tools,
    /// In the list of servers.
    Servers,
    /// While arguments are filled in.
    Form,
    /// While a line of text is written.
    Text,
    /// While a person is asked for approval.
    Approval,
    /// While something lies over the screen.
    Overlay,
}

/// What the key does in these places, the nearest first.
pub fn action(key: Key, places: &[When]) -> Option<Action> {
    places.iter().find_map(|place| {
        TABLE.iter().find(|binding| binding.when == *place && binding.key == key).map(|b| b.action)
    })
}

/// The key of an action in these places, the nearest first.
pub fn key_of(action: Action, places: &[When]) -> Option<Key> {
    places.iter().find_map(|place| {
        TABLE.iter().find(|b| b.when == *place && b.action == action).map(|b| b.key)
    })
}
