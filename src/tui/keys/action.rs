//! What a person can do.

use crate::tui::view_id::ViewId;

/// Something a person can do. What it does in a place is said where it is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Show another view.
    Show(ViewId),
    /// Focus the next pane.
    NextPane,
    /// Focus the one before.
    PreviousPane,
    /// Let the focused pane fill the screen, or give that back.
    Zoom,
    /// Put a letter on every pane, and go to the one that is typed.
    Jump,
    /// Show everything that can be done, to choose from.
    Palette,
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
    /// Open what is chosen.
    Open,
    /// Fill in the arguments of the chosen tool.
    Fill,
    /// Make the call, send the answer, start the run.
    Run,
    /// Check it, and do nothing.
    Validate,
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
    /// Add an item.
    Add,
    /// Take the item away.
    Remove,
    /// Write in the person's own editor.
    Editor,
    /// Between the form and its JSON.
    SwitchForm,
    /// Copy what is shown.
    Copy,
    /// Copy the call as a command line.
    CopyCommand,
    /// Write what is shown to a file.
    Export,
    /// Show it another way.
    Turn,
    /// Show the tool from another side: detail, schema, as it was told.
    Detail,
    /// Show the calls that run, to stop one of them.
    Running,
    /// Hold still, or go on.
    Pause,
    /// Stay at the end, or not.
    Follow,
    /// Another scale: equal lengths, or equal ratios.
    Scale,
    /// Another window of time.
    Window,
    /// Begin to count anew.
    Reset,
    /// Benchmark the tool.
    Bench,
    /// Choose the first target.
    TargetA,
    /// Choose the second target.
    TargetB,
    /// Another model of load.
    Model,
    /// What later runs are compared with.
    Baseline,
    /// Stop what runs here.
    Stop,
    /// Call again.
    Replay,
    /// Call again after a look at the arguments.
    ReplayEdited,
    /// Mark it, to be compared.
    Mark,
    /// Show how two things differ.
    Diff,
    /// Take it out of the list.
    Delete,
    /// Ask again: the list, the server.
    Refresh,
    /// Connect, or ask for a sign of life.
    Connect,
    /// End the connection and start it again.
    Restart,
    /// Show the log.
    Log,
    /// Choose the level of the log.
    Level,
    /// Show the tools of it.
    ShowTools,
    /// Show its wire.
    ShowTrace,
    /// Show its calls of the past.
    ShowHistory,
    /// Be told when it changes, or not any more.
    Subscribe,
    /// Say yes, once.
    Yes,
    /// Say yes to exactly this for as long as the console is open.
    YesForSession,
    /// Say yes as the author: code may change without asking again.
    YesAsAuthor,
    /// Say no.
    No,
    /// Give no answer.
    Turnaway,
    /// Ask whether to trust the project.
    Trust,
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

impl Action {
    /// What it is called in settings and in the palette: its own name in kebab-case.
    pub fn name(self) -> String {
        if let Self::Show(view) = self {
            return format!("view-{}", view.name());
        }
        let mut name = String::new();
        for c in format!("{self:?}").chars() {
            if c.is_ascii_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.push(c.to_ascii_lowercase());
        }
        name
    }
}
