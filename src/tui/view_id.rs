//! Identifiers of the views and their panes.

/// The views of the console, in the order of their keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum ViewId {
    /// The catalogue, a tool, its arguments and results.
    #[default]
    Tools,
    /// The MCP servers with their health, log and tools.
    Servers,
    /// The messages to and from servers.
    Trace,
    /// The statistics of past calls by tool or server.
    Stats,
    /// The plan, the run and the verdict of a benchmark.
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

    /// The title in the bar at the top.
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

    /// The short title for narrow terminals.
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
    /// The results of calls of the chosen tool.
    Result,
    /// The servers, one a line.
    Servers,
    /// The health, log or tools of the chosen server.
    Health,
    /// The messages to and from servers, one a line.
    TraceList,
    /// The chosen message in full.
    Frame,
    /// The tools by their use.
    Usage,
    /// How long the chosen one took, and when it was called.
    Latency,
    /// The plan of the next benchmark run.
    Plan,
    /// The benchmark run in progress, or the last one.
    Run,
    /// The comparison and the judgement of the last run.
    Verdict,
    /// The calls of the past.
    HistoryList,
    /// The chosen past call, or a diff of two.
    Entry,
    /// Resources and prompts, by server.
    OfferingList,
    /// The content of the chosen resource or prompt.
    Content,
    /// The questions that wait for an answer.
    Questions,
    /// One of the questions, and its answer.
    Question,
}
