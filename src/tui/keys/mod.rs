//! Keys as data: which key triggers which action, and where.
//!
//! Owns: the tables and the map that is made of them. The footer, the help and the palette are made
//! from that map, so they cannot be wrong.

mod action;
mod key_press;
mod keymap;
mod remap;
mod tables;

pub use action::Action;
pub use key_press::KeyPress;
pub use keymap::Keymap;
pub use remap::Remap;
pub use tables::{Binding, KEY_TABLES, KeyTable};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyContext {
    /// Everywhere, unless something nearer has the key.
    Anywhere,
    /// In lists and texts that scroll.
    Pane,
    Tools,
    ToolTree,
    /// In what calls of a tool gave.
    Result,
    ResultTable,
    Servers,
    /// In what crosses the wires.
    Trace,
    /// In the list of statistics and their details.
    Stats,
    Bench,
    /// In the calls of the past.
    History,
    /// In what servers offer beside tools.
    Offerings,
    /// While arguments of templates and prompts are filled in.
    OfferingForm,
    /// In the list of questions from servers.
    Inbox,
    /// While arguments are filled in.
    Form,
    FormLast,
    /// While arguments are filled in, in a line where nothing is typed.
    FormItems,
    FormLines,
    /// While arguments are filled in, in a field whose values are listed.
    FormChoice,
    MultilineText,
    /// While a question is answered.
    Answer,
    Text,
    /// While something is chosen or named that is to be used at once.
    Picker,
    Approval,
    Trust,
    /// In the list of everything that can be done.
    Palette,
    SaveCall,
    /// In the list of calls that run.
    Running,
    Problems,
    PinReview,
    /// While something lies over the screen.
    Overlay,
}
