//! The actions that keys can be bound to.

use crate::tui::layout::ViewId;

/// Something a person can do. What it does in a place is said where it is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    Show(ViewId),
    NextPane,
    PreviousPane,
    /// Let the focused pane fill the screen, or give that back.
    Zoom,
    NarrowPane,
    WidenPane,
    ShrinkPane,
    GrowPane,
    ResetPanes,
    /// Show everything that can be done, to choose from.
    Palette,
    Filter,
    NextMatch,
    /// Go to the match before.
    PreviousMatch,
    /// Write a jq filter that the result is shown through.
    Query,
    CopyPath,
    /// Choose the next order of the list.
    Sort,
    /// Puts tools under other headings.
    Group,
    Wire,
    Down,
    /// Move up by one line.
    Up,
    PageDown,
    PageUp,
    /// Go to the first line of the list or text.
    Top,
    /// Go to the last line of the list or text.
    Bottom,
    Open,
    Fill,
    Run,
    /// Check it, and do nothing.
    Validate,
    PreviousField,
    NextField,
    PreviousChoice,
    NextChoice,
    PreviousColumn,
    NextColumn,
    /// Leave the field out of the arguments.
    Unset,
    /// Send `null` for the field.
    Null,
    Add,
    Remove,
    NewLine,
    Editor,
    SwitchForm,
    Copy,
    CopyCommand,
    /// Write what is shown to a file.
    Export,
    SaveCall,
    ChangeFormat,
    /// Switch the tool's tab: details, schema, raw.
    Detail,
    /// Show the calls that run, to stop one of them.
    Running,
    Pause,
    /// Stay at the end, or not.
    Follow,
    /// Another scale: equal lengths, or equal ratios.
    Scale,
    Window,
    AllProjects,
    /// Count from now on, or clear what was collected.
    Reset,
    Bench,
    /// Choose the tool that is measured.
    TargetA,
    /// Choose the tool to compare with.
    TargetB,
    Stop,
    /// Repeat a past call with the same arguments.
    Rerun,
    /// Call again after a look at the arguments.
    RerunEdited,
    Mark,
    Diff,
    /// Ask again: the list, the server.
    Refresh,
    Connect,
    /// End the connection and start it again.
    Restart,
    Log,
    Level,
    ShowTools,
    ShowTrace,
    /// Show its calls of the past.
    ShowHistory,
    /// Watch or unwatch the selected resource.
    Subscribe,
    /// Allow this one call, or trust the project.
    Yes,
    YesForSession,
    /// Say yes as the author: code may change without asking again.
    YesAsAuthor,
    /// Deny the call, refuse the project or decline the question.
    No,
    /// Cancel the question of a server without an answer.
    CancelQuestion,
    Trust,
    /// Use the background host of the configuration.
    Attach,
    /// Read the configuration files again.
    Reload,
    /// Show what is wrong with the configuration files.
    Problems,
    Pin,
    /// Show the keys of the view and everywhere.
    Help,
    Back,
    /// Stop the newest call, or leave the console.
    Cancel,
    /// Clear the terminal and draw the screen again.
    Redraw,
    /// Give the terminal back to the shell for a while.
    Suspend,
    /// Quit, after a question when something is running.
    Quit,
}

impl Action {
    /// The name in `console.yaml` and in the list of commands, in kebab-case. It is a contract: a
    /// variant may be renamed, its name may not.
    pub fn name(self) -> String {
        let name = match self {
            Self::Show(view) => return format!("view-{}", view.name()),
            Self::NextPane => "next-pane",
            Self::PreviousPane => "previous-pane",
            Self::Zoom => "zoom",
            Self::NarrowPane => "narrow-pane",
            Self::WidenPane => "widen-pane",
            Self::ShrinkPane => "shrink-pane",
            Self::GrowPane => "grow-pane",
            Self::ResetPanes => "reset-panes",
            Self::Palette => "palette",
            Self::Filter => "filter",
            Self::NextMatch => "next-match",
            Self::PreviousMatch => "previous-match",
            Self::Query => "query",
            Self::CopyPath => "copy-path",
            Self::Sort => "sort",
            Self::Group => "group",
            Self::Wire => "wire",
            Self::Down => "down",
            Self::Up => "up",
            Self::PageDown => "page-down",
            Self::PageUp => "page-up",
            Self::Top => "top",
            Self::Bottom => "bottom",
            Self::Open => "open",
            Self::Fill => "fill",
            Self::Run => "run",
            Self::Validate => "validate",
            Self::PreviousField => "previous-field",
            Self::NextField => "next-field",
            Self::PreviousChoice => "previous-choice",
            Self::NextChoice => "next-choice",
            Self::PreviousColumn => "previous-column",
            Self::NextColumn => "next-column",
            Self::Unset => "unset",
            Self::Null => "null",
            Self::Add => "add",
            Self::Remove => "remove",
            Self::NewLine => "new-line",
            Self::Editor => "editor",
            Self::SwitchForm => "switch-form",
            Self::Copy => "copy",
            Self::CopyCommand => "copy-command",
            Self::Export => "export",
            Self::SaveCall => "save-call",
            Self::ChangeFormat => "change-format",
            Self::Detail => "detail",
            Self::Running => "running",
            Self::Pause => "pause",
            Self::Follow => "follow",
            Self::Scale => "scale",
            Self::Window => "window",
            Self::AllProjects => "all-projects",
            Self::Reset => "reset",
            Self::Bench => "bench",
            Self::TargetA => "target-a",
            Self::TargetB => "target-b",
            Self::Stop => "stop",
            Self::Rerun => "rerun",
            Self::RerunEdited => "rerun-edited",
            Self::Mark => "mark",
            Self::Diff => "diff",
            Self::Refresh => "refresh",
            Self::Connect => "connect",
            Self::Restart => "restart",
            Self::Log => "log",
            Self::Level => "level",
            Self::ShowTools => "show-tools",
            Self::ShowTrace => "show-trace",
            Self::ShowHistory => "show-history",
            Self::Subscribe => "subscribe",
            Self::Yes => "yes",
            Self::YesForSession => "yes-for-session",
            Self::YesAsAuthor => "yes-as-author",
            Self::No => "no",
            Self::CancelQuestion => "cancel-question",
            Self::Trust => "trust",
            Self::Attach => "attach",
            Self::Reload => "reload",
            Self::Problems => "problems",
            Self::Pin => "pin",
            Self::Help => "help",
            Self::Back => "back",
            Self::Cancel => "cancel",
            Self::Redraw => "redraw",
            Self::Suspend => "suspend",
            Self::Quit => "quit",
        };
        name.to_owned()
    }
}
