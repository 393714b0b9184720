//! Events that the console receives, and commands that it issues.
//!
//! Owns: the types exchanged between the state and everything else. Those of one view
//! are in their own module: its commands (`ToolsEffect`) and their results (`ToolsEvent`).

pub mod attachment;
pub mod bench;
pub mod history;
pub mod offerings;
pub mod persistence;
pub mod pins;
pub mod servers;
pub mod stats;
pub mod tools;
pub mod trace;
pub mod trust;

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

use super::external_editor::{EditorDraft, EditorError};
use super::keys::KeyPress;
use bench::TargetSide;

/// Something that happened, from any side.
#[derive(Debug)]
pub enum AppEvent {
    /// A key, a paste, the mouse or a resize.
    Input(UserInput),
    /// The current time since the Unix epoch.
    Tick(Duration),
    /// An event of the host.
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
    /// The status of some servers.
    ServerStatuses(Vec<ServerStatus>),
    /// A call is made now; this is what the host calls it.
    CallStarted {
        /// The number the console gave the call.
        run: ConsoleCallId,
        /// The identity in records and events of the host.
        call: CallId,
    },
    /// A call made here has ended, in any way.
    CallFinished {
        /// The number the console gave the call.
        run: ConsoleCallId,
        /// How; `Err` when it was never made.
        outcome: Box<Result<CallOutcome, Error>>,
    },
    /// The user is asked to approve a call.
    Approval {
        /// The ID to answer with.
        id: AskId,
        /// The call with what it would send and why approval is needed.
        prompt: Box<ApprovalPrompt>,
    },
    /// A server asks the user something during a call.
    Question {
        /// The ID to answer with.
        id: AskId,
        /// The question with its kind and its server.
        question: Box<Question>,
    },
    /// Nothing waits for the answer to this question any more.
    QuestionWithdrawn(AskId),
    /// The outcome of an effect of the tools view.
    Tools(Box<tools::ToolsEvent>),
    /// The outcome of an effect about the pin of a tool.
    Pins(Box<pins::PinsEvent>),
    /// The settings and the last arguments of tools.
    Persistence(Box<persistence::PersistenceEvent>),
    /// The result of checking arguments against a schema.
    ArgumentsChecked {
        /// The schema of the check.
        schema: Arc<Value>,
        /// The arguments that were checked; a form compares them with its own.
        arguments: JsonObject,
        /// The violations; empty when the arguments are valid.
        problems: Vec<Violation>,
    },
    /// The text from the editor, or why there is none.
    Edited(Result<String, EditorError>),
    /// The outcome of an effect of the statistics view.
    Stats(stats::StatsEvent),
    /// The outcome of an effect of the benchmark view.
    Bench(bench::BenchEvent),
    /// The outcome of an effect of the history view.
    History(history::HistoryEvent),
    /// The outcome of an effect of the resources view.
    Offerings(offerings::OfferingsEvent),
    /// The outcome of an effect about trust in the project.
    Trust(trust::TrustEvent),
    /// An event about the background host used instead of the console's own.
    Attachment(attachment::AttachmentEvent),
    /// Something that was done in silence is worth a word.
    StatusText {
        /// The text of the status line.
        text: String,
        /// Whether the text reports an error.
        is_bad: bool,
    },
    /// The console is to end.
    Signal(Signal),
}

/// What comes from the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserInput {
    /// A key with its modifiers.
    Key(KeyPress),
    /// Text from a bracketed paste, which is inserted and never read as keys.
    Paste(String),
    /// Changed the size of the terminal.
    Resize {
        /// The new width in columns.
        width: u16,
        /// The new height in rows.
        height: u16,
    },
    /// Pressed the button of the mouse.
    Click {
        /// The column, from 0 at the left edge.
        x: u16,
        /// The row, from 0 at the top edge.
        y: u16,
    },
    /// Turned the wheel of the mouse.
    Wheel {
        /// The column, from 0 at the left edge.
        x: u16,
        /// The row, from 0 at the top edge.
        y: u16,
        /// Steps of the wheel, down when positive.
        by: isize,
    },
}

/// A call made from the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConsoleCallId(pub u64);

/// A question that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub u64);

/// A call that needs approval, as the window shows it.
#[derive(Debug, Clone)]
pub struct ApprovalPrompt {
    /// The definition of the tool that would be called.
    pub tool: ToolDefinition,
    /// The arguments of the call, with secrets masked.
    pub arguments: JsonObject,
    /// The rule that requires approval.
    pub reason: String,
    /// Exactly what would be sent, or why it cannot be shown.
    pub preview: Result<String, Error>,
    /// The same for the same call of the same definition, and for nothing else.
    pub identity: String,
    /// The call, when it has a name already.
    pub call: Option<CallId>,
}

/// Something to be done that the state cannot do itself.
#[derive(Debug, Clone, PartialEq)]
pub enum AppEffect {
    /// List local and declared tools, without asking a server.
    ListDeclared,
    /// Ask this server for its tools.
    ListServer(String),
    /// Look how the servers are, without asking them.
    RefreshServers,
    /// Ask a server for a sign of life.
    PingServer(String),
    /// Call a tool through the host.
    Call {
        /// The number of the call, which its events carry.
        run: ConsoleCallId,
        /// The full name of the tool, with the component in front.
        tool: String,
        /// The arguments as the person filled them in, secrets included.
        arguments: JsonObject,
    },
    /// Cancel a running call; its end still comes as an event.
    Cancel(ConsoleCallId),
    /// Say whether a call may be made.
    AnswerApproval(AskId, Approval),
    /// Send the answer to the question of a server.
    AnswerQuestion(AskId, Arc<QuestionReply>),
    /// An effect of the tools view.
    Tools(tools::ToolsEffect),
    /// An effect about the pin of a tool.
    Pins(pins::PinsEffect),
    /// An effect about settings and saved state.
    Persistence(persistence::PersistenceEffect),
    /// Check an object against a schema.
    ValidateArguments {
        /// The schema to check against.
        schema: Arc<Value>,
        /// The arguments to check against the schema.
        arguments: JsonObject,
    },
    /// Open this in the user's editor.
    OpenEditor(EditorDraft),
    /// An effect of the statistics view.
    Stats(stats::StatsEffect),
    /// An effect of the benchmark view.
    Bench(bench::BenchEffect),
    /// An effect of the history view.
    History(history::HistoryEffect),
    /// An effect of the resources view.
    Offerings(offerings::OfferingsEffect),
    /// An effect of the servers view.
    Servers(servers::ServersEffect),
    /// An effect of the trace view.
    Trace(trace::TraceEffect),
    /// An effect about trust in the project.
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

/// A request of one view to another.
#[derive(Debug, Clone, PartialEq)]
pub enum Navigation {
    /// Fill in the arguments of a tool, starting with these.
    FillArguments {
        /// The full name of the tool, with the component in front.
        tool: String,
        /// The arguments to fill in, as far as they are known.
        arguments: Option<JsonObject>,
    },
    /// Call a tool at once, and show what it gives.
    Call {
        /// The full name of the tool, with the component in front.
        tool: String,
        /// The arguments as the person filled them in, secrets included.
        arguments: JsonObject,
    },
    /// Open the benchmark view with this tool as target.
    Bench {
        /// The full name of the tool, with the component in front.
        tool: String,
        /// The arguments, when they are known.
        arguments: Option<JsonObject>,
    },
    /// Choose a tool that is to be benchmarked on this side.
    PickBenchTarget(TargetSide),
    /// Benchmark the tool on this side.
    SetBenchTarget {
        /// Whether the tool is measured or compared with.
        side: TargetSide,
        /// The full name of the tool, with the component in front.
        tool: String,
    },
    /// Show the tool with this full name in the tools view.
    ShowTool(String),
    /// Show the tools of a server.
    ShowTools(String),
    /// Show the wire of a server.
    ShowTrace(String),
    /// Show what crossed the wires for a call.
    ShowCall(CallId),
    /// Show the calls of the past of a tool.
    ShowHistory(String),
    /// Ask whether to trust the project.
    AskTrust,
}
