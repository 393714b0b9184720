//! The views and their panes.

/// One of the views.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ViewId {
    /// The catalogue, a tool, its arguments and results.
    #[default]
    Tools,
    /// The servers.
    Servers,
    /// What crosses the wires.
    Trace,
    /// Statistics.
    Stats,
    /// The benchmark.
    Bench,
    /// The calls of the past.
    History,
    /// What servers offer beside tools: resources and prompts.
    Offerings,
    /// What a person is asked.
    Inbox,
}

impl ViewId {
    /// All of them, in the order of their keys.
    pub const ALL: [Self; 8] = [
        Self::Tools,
        Self::Servers,
        Self::Trace,
        Self::Stats,
        Self::Bench,
        Self::History,
        Self::Offerings,
        Self::Inbox,
    ];

    /// What it is called.
    pub fn title(self) -> &'static str {
        match self {
            Self::Tools => "Tools",
            Self::Servers => "Servers",
            Self::Trace => "Trace",
            Self::Stats => "Stats",
            Self::Bench => "Bench",
            Self::History => "History",
            Self::Offerings => "Resources",
            Self::Inbox => "Inbox",
        }
    }

    /// What it is called in settings.
    pub fn name(self) -> String {
        self.title().to_lowercase()
    }

    /// The one of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|view| view.name() == name)
    }

    /// What it is called where there is little room.
    pub fn short(self) -> &'static str {
        match self {
            Self::Tools => "Tools",
            Self::Servers => "Srv",
            Self::Trace => "Trc",
            Self::Stats => "Sta",
            Self::Bench => "Bch",
            Self::History => "His",
            Self::Offerings => "Res",
            Self::Inbox => "Inb",
        }
    }

    /// Its panes, in the order in which the focus goes through them.
    pub fn panes(self) -> &'static [Pane] {
        match self {
            Self::Tools => &[Pane::Catalogue, Pane::Detail, Pane::Result],
            Self::Servers => &[Pane::Servers, Pane::Health],
            Self::Trace => &[Pane::Wire, Pane::Frame],
            Self::Stats => &[Pane::Usage, Pane::Latency],
            Self::Bench => &[Pane::Plan, Pane::Run, Pane::Verdict],
            Self::History => &[Pane::Past, Pane::Entry],
            Self::Offerings => &[Pane::Offered, Pane::Content],
            Self::Inbox => &[Pane::Questions, Pane::Question],
        }
    }
}

/// A part of a view that can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pane {
    /// The list of tools.
    Catalogue,
    /// The chosen tool, or its arguments while they are filled in.
    Detail,
    /// What calls of it gave.
    Result,
    /// The list of servers.
    Servers,
    /// How the chosen server is.
    Health,
    /// What crossed the wires, a line each.
    Wire,
    /// One frame of that, whole.
    Frame,
    /// The tools by their use.
    Usage,
    /// How long the chosen one took, and when it was called.
    Latency,
    /// What is to be run.
    Plan,
    /// The run.
    Run,
    /// What the run showed.
    Verdict,
    /// The calls of the past.
    Past,
    /// One of them, whole.
    Entry,
    /// Resources and prompts, by server.
    Offered,
    /// What one of them holds.
    Content,
    /// What is asked.
    Questions,
    /// One of the questions, and its answer.
    Question,
}
