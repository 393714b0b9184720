//! Events that the console receives, and commands that it issues.
//!
//! Owns: the types exchanged between the state and everything else. Those of one view
//! are in their own module: its commands (`ToolsEffect`) and their results (`ToolsEvent`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::catalogue::Catalogue;
use crate::host::approval::Approval;
use crate::host::request::CallOutcome;
use crate::host::validate::Violation;
use crate::model::{
    CallId, CapturedTraffic, Error, JsonObject, Question, QuestionReply, ServerStatus, Signal,
    ToolDefinition,
};
use crate::tui::external_editor::{EditorDraft, EditorError};
use crate::tui::keys::KeyPress;
use crate::tui::settings::ConsoleSettings;
use crate::tui::views::bench::tasks::TargetSide;
use crate::tui::views::{bench, history, offerings, pins, servers, stats, tools, trace, trust};

/// Something that happened, from any side.
#[derive(Debug)]
pub enum AppEvent {
    /// A key, a paste, the mouse or a resize.
    Input(UserInput),
    /// The current time since the Unix epoch.
    Tick(Duration),
    Host(crate::model::HostEvent),
    /// Something crossed the wire of a server.
    Traffic(Box<CapturedTraffic>),
    /// So many events were lost until now, because more came than could be taken in.
    EventsDropped(u64),
    /// A list was asked for and came: of everything local and declared, or of these servers.
    ToolsListed {
        /// The servers that were asked; none for what is known without asking.
        servers: Vec<String>,
        /// Their tools, and the errors of servers that could not be asked.
        catalogue: Box<Catalogue>,
    },
    /// The status of all servers, in the order of the configuration: others are gone.
    AllServers(Vec<ServerStatus>),
    ServerStatuses(Vec<ServerStatus>),
    /// A call is made now; this is what the host calls it.
    CallStarted {
        run: ConsoleCallId,
        call: CallId,
    },
    CallFinished {
        run: ConsoleCallId,
        /// How; `Err` when it was never made.
        outcome: Box<Result<CallOutcome, Error>>,
    },
    Approval {
        id: AskId,
        prompt: Box<ApprovalPrompt>,
    },
    /// A server asks the user something during a call.
    Question {
        id: AskId,
        question: Box<Question>,
    },
    QuestionWithdrawn(AskId),
    Tools(Box<tools::tasks::ToolsEvent>),
    Pins(Box<pins::PinsEvent>),
    /// The settings and the last arguments of tools.
    Persistence(Box<PersistenceEvent>),
    ArgumentsChecked {
        schema: Arc<Value>,
        /// The arguments that were checked; a form compares them with its own.
        arguments: JsonObject,
        /// The violations; empty when the arguments are valid.
        problems: Vec<Violation>,
    },
    Edited(Result<String, EditorError>),
    /// The outcome of an effect of the statistics view.
    Stats(stats::tasks::StatsEvent),
    Bench(bench::tasks::BenchEvent),
    History(history::tasks::HistoryEvent),
    /// The outcome of an effect of the resources view.
    Offerings(offerings::tasks::OfferingsEvent),
    Trust(trust::TrustEvent),
    Attachment(AttachmentEvent),
    /// Something that was done in silence is worth a word.
    StatusText {
        text: String,
        /// Whether the text reports an error.
        is_bad: bool,
    },
    /// The console is to end.
    Signal(Signal),
}

impl AppEvent {
    pub fn said(text: impl Into<String>) -> Self {
        Self::StatusText { text: text.into(), is_bad: false }
    }

    pub fn failed(text: impl Into<String>) -> Self {
        Self::StatusText { text: text.into(), is_bad: true }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserInput {
    Key(KeyPress),
    /// Text from a bracketed paste, which is inserted and never read as keys.
    Paste(String),
    /// Changed the size of the terminal.
    Resize {
        width: u16,
        height: u16,
    },
    /// Pressed the button of the mouse.
    Click {
        /// The column, from 0 at the left edge.
        x: u16,
        /// The row, from 0 at the top edge.
        y: u16,
    },
    Wheel {
        /// The column, from 0 at the left edge.
        x: u16,
        /// The row, from 0 at the top edge.
        y: u16,
        /// Steps of the wheel, down when positive.
        by: isize,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConsoleCallId(pub u64);

/// A question that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub u64);

#[derive(Debug, Clone)]
pub struct ApprovalPrompt {
    pub tool: ToolDefinition,
    pub arguments: JsonObject,
    pub reason: String,
    /// Exactly what would be sent, or why it cannot be shown.
    pub preview: Result<String, Error>,
    /// The same for the same call of the same definition, and for nothing else.
    pub identity: String,
    pub call: Option<CallId>,
}

/// Something to be done that the state cannot do itself.
#[derive(Debug, Clone, PartialEq)]
pub enum AppEffect {
    /// List local and declared tools, without asking a server.
    ListDeclared,
    ListServer(String),
    /// Look how the servers are, without asking them.
    RefreshServers,
    PingServer(String),
    Call {
        run: ConsoleCallId,
        tool: String,
        arguments: JsonObject,
    },
    /// Cancel a running call; its end still comes as an event.
    Cancel(ConsoleCallId),
    AnswerApproval(AskId, Approval),
    AnswerQuestion(AskId, Arc<QuestionReply>),
    Tools(tools::tasks::ToolsEffect),
    Pins(pins::PinsEffect),
    Persistence(PersistenceEffect),
    /// Check an object against a schema.
    ValidateArguments {
        schema: Arc<Value>,
        arguments: JsonObject,
    },
    OpenEditor(EditorDraft),
    Stats(stats::tasks::StatsEffect),
    Bench(bench::tasks::BenchEffect),
    History(history::tasks::HistoryEffect),
    Offerings(offerings::tasks::OfferingsEffect),
    Servers(servers::ServersEffect),
    Trace(trace::TraceEffect),
    Trust(trust::TrustEffect),
    /// Write a file that was not there before; relative to where the console was opened.
    WriteFile {
        /// The path as it was typed; an existing file is not overwritten.
        path: std::path::PathBuf,
        /// The whole content of the file.
        text: String,
    },
    /// Something another view does. Never leaves the state.
    Navigate(Navigation),
    /// Put a text on the clipboard.
    Copy(String),
    /// Clear the terminal and draw the whole screen again.
    Redraw,
    /// Give the terminal back for a while.
    Suspend,
    /// End the console, with the signal that caused it if there was one.
    Quit(Option<Signal>),
}

/// What is to be done, in its order.
pub type Effects = Vec<AppEffect>;

/// A request of one view to another.
#[derive(Debug, Clone, PartialEq)]
pub enum Navigation {
    FillArguments {
        tool: String,
        arguments: Option<JsonObject>,
    },
    Call {
        tool: String,
        arguments: JsonObject,
    },
    Bench {
        tool: String,
        arguments: Option<JsonObject>,
    },
    PickBenchTarget(TargetSide),
    SetBenchTarget {
        /// Whether the tool is measured or compared with.
        side: TargetSide,
        tool: String,
    },
    ShowTool(String),
    ShowTools(String),
    /// Show the wire of a server.
    ShowTrace(String),
    ShowCall(CallId),
    /// Show the calls of the past of a tool.
    ShowHistory(String),
    AskTrust,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachmentEvent {
    /// Everything is passed on to the host with this process id; `None`: the console is its own host.
    Attached(Option<u32>),
    Lost(u32),
}

/// What has to be read for the start of the console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersistenceEffect {
    /// Read `console.yaml` and the newest calls of the history.
    Load,
}

/// What was read, with its problems.
#[derive(Debug, Default)]
pub struct PersistenceEvent {
    /// The settings from `console.yaml`, or the defaults.
    pub settings: ConsoleSettings,
    /// The last arguments of tools by their full names, without what was secret.
    pub arguments: HashMap<String, JsonObject>,
    pub problems: Vec<String>,
}
