//! Identifiers of the views and their panes.

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum ViewId {
    #[default]
    Tools,
    Servers,
    /// The messages to and from servers.
    Trace,
    /// The statistics of past calls by tool or server.
    Stats,
    Bench,
    /// The calls of the past.
    History,
    /// What servers offer beside tools: resources and prompts.
    Offerings,
    /// Questions from servers and approvals.
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

    /// The name in `console.yaml`.
    pub fn name(self) -> String {
        self.title().to_lowercase()
    }

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

    pub fn panes(self) -> &'static [Pane] {
        match self {
            Self::Tools => &[Pane::Catalogue, Pane::Detail, Pane::Result],
            Self::Servers => &[Pane::Servers, Pane::Health],
            Self::Trace => &[Pane::TraceList, Pane::Frame],
            Self::Stats => &[Pane::Usage, Pane::Latency],
            Self::Bench => &[Pane::Plan, Pane::Run, Pane::Verdict],
            Self::History => &[Pane::HistoryList, Pane::Entry],
            Self::Offerings => &[Pane::OfferingList, Pane::Content],
            Self::Inbox => &[Pane::Questions, Pane::Question],
        }
    }
}

/// A part of a view that can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pane {
    /// The tool list with its filter.
    Catalogue,
    /// The chosen tool, or its arguments while they are filled in.
    Detail,
    Result,
    Servers,
    Health,
    /// The messages to and from servers, one a line.
    TraceList,
    /// The chosen message in full.
    Frame,
    Usage,
    /// How long the chosen one took, and when it was called.
    Latency,
    Plan,
    Run,
    /// The comparison and the judgement of the last run.
    Verdict,
    /// The calls of the past.
    HistoryList,
    /// The chosen past call, or a diff of two.
    Entry,
    /// Resources and prompts, by server.
    OfferingList,
    Content,
    Questions,
    Question,
}
