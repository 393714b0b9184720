//! What the console hears, and what it wants done.
//!
//! Owns: the words that pass between the state and everything else. What concerns one view only
//! stands in a module of its own: what the view wants done (`ToolsEffect`), and what came of it (`ToolsEvent`).

pub mod bench;
pub mod captured_traffic;
pub mod history;
pub mod offerings;
pub mod persistence;
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
    CallId, Error, JsonObject, Question, QuestionReply, ServerStatus, Signal, ToolDefinition,
};

use super::external_editor::{EditorDraft, EditorError};
use super::keys::KeyPress;
use bench::TargetSide;

/// Something that happened, from any side.
#[derive(Debug)]
pub enum AppEvent {
    /// A person did something.
    Input(UserInput),
    /// It is so late (since the Unix epoch).
    Tick(Duration),
    /// The host tells what happens.
    Host(crate::model::HostEvent),
    /// Something crossed the wire of a server.
    Traffic(Box<captured_traffic::CapturedTraffic>),
    /// So many events were lost until now, because more came than could be taken in.
    EventsDropped(u64),
    /// A list was asked for and came: of everything local and declared, or of these servers.
    ToolsListed {
        /// The servers that were asked; none for what is known without asking.
        servers: Vec<String>,
        /// What they offer.
        catalogue: Box<Catalogue>,
    },
    /// How the servers are.
    ServerStatuses(Vec<ServerStatus>),
    /// A call is made now; this is what the host calls it.
    CallStarted {
        /// Which one.
        run: ConsoleCallId,
        /// Its identity in records and in what the host tells.
        call: CallId,
    },
    /// A call ended.
    CallFinished {
        /// Which one.
        run: ConsoleCallId,
        /// How; `Err` when it was never made.
        outcome: Box<Result<CallOutcome, Error>>,
    },
    /// A person is asked whether a call may be made.
    Approval {
        /// To be named in the answer.
        id: AskId,
        /// What is asked.
        prompt: Box<ApprovalPrompt>,
    },
    /// A server asks something.
    Question {
        /// To be named in the answer.
        id: AskId,
        /// What is asked.
        question: Box<Question>,
    },
    /// Nobody waits for this answer any more.
    QuestionWithdrawn(AskId),
    /// What came of a wish of the tools.
    Tools(Box<tools::ToolsEvent>),
    /// What a person set and what was remembered.
    Persistence(Box<persistence::PersistenceEvent>),
    /// What was found wrong with an object that was to be checked.
    ArgumentsChecked {
        /// What it was checked against.
        schema: Arc<Value>,
        /// What was checked.
        arguments: JsonObject,
        /// What does not fit; nothing when all does.
        problems: Vec<Violation>,
    },
    /// What a person wrote in their own editor, or why there is nothing.
    Edited(Result<String, EditorError>),
    /// What came of a wish of the statistics.
    Stats(stats::StatsEvent),
    /// What came of a wish of the benchmark.
    Bench(bench::BenchEvent),
    /// What came of a wish of the history.
    History(history::HistoryEvent),
    /// What came of a wish of the resources and prompts.
    Offerings(offerings::OfferingsEvent),
    /// What came of a wish about trust in the project.
    Trust(trust::TrustEvent),
    /// Something that was done in silence is worth a word.
    StatusText {
        /// What.
        text: String,
        /// Whether it went wrong.
        is_bad: bool,
    },
    /// The console is to end.
    Signal(Signal),
}

/// What a person did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserInput {
    /// Pressed a key.
    Key(KeyPress),
    /// Pasted a text.
    Paste(String),
    /// Changed the size of the terminal.
    Resize {
        /// Columns.
        width: u16,
        /// Rows.
        height: u16,
    },
    /// Pressed the button of the mouse.
    Click {
        /// The column, from 0.
        x: u16,
        /// The row, from 0.
        y: u16,
    },
    /// Turned the wheel of the mouse.
    Wheel {
        /// The column, from 0.
        x: u16,
        /// The row, from 0.
        y: u16,
        /// So many steps down; up when negative.
        by: isize,
    },
}

/// A call made from the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConsoleCallId(pub u64);

/// A question that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub u64);

/// What a person is asked to approve.
#[derive(Debug, Clone)]
pub struct ApprovalPrompt {
    /// The tool.
    pub tool: ToolDefinition,
    /// The arguments; secrets masked.
    pub arguments: JsonObject,
    /// Why a person is asked.
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
    /// List what is known without asking anybody.
    ListDeclared,
    /// Ask this server for its tools.
    ListServer(String),
    /// Look how the servers are, without asking them.
    RefreshServers,
    /// Ask a server for a sign of life.
    PingServer(String),
    /// Make a call.
    Call {
        /// Its number.
        run: ConsoleCallId,
        /// The tool's full name.
        tool: String,
        /// Its arguments.
        arguments: JsonObject,
    },
    /// Stop a call.
    Cancel(ConsoleCallId),
    /// Say whether a call may be made.
    AnswerApproval(AskId, Approval),
    /// Answer a server.
    AnswerQuestion(AskId, Arc<QuestionReply>),
    /// What the tools want done.
    Tools(tools::ToolsEffect),
    /// What is wanted of settings and memory.
    Persistence(persistence::PersistenceEffect),
    /// Check an object against a schema.
    ValidateArguments {
        /// What it has to fit.
        schema: Arc<Value>,
        /// The object.
        arguments: JsonObject,
    },
    /// Let a person write this in their own editor.
    OpenEditor(EditorDraft),
    /// What the statistics want done.
    Stats(stats::StatsEffect),
    /// What the benchmark wants done.
    Bench(bench::BenchEffect),
    /// What the history wants done.
    History(history::HistoryEffect),
    /// What the resources and prompts want done.
    Offerings(offerings::OfferingsEffect),
    /// What the servers' view wants done.
    Servers(servers::ServersEffect),
    /// What the trace wants done.
    Trace(trace::TraceEffect),
    /// What is wanted of trust in the project.
    Trust(trust::TrustEffect),
    /// Write a file that was not there before; relative to where the console was opened.
    WriteFile {
        /// Its name.
        path: std::path::PathBuf,
        /// What is in it.
        text: String,
    },
    /// Something another view does. Never leaves the state.
    Navigate(Navigation),
    /// Put a text on the clipboard.
    Copy(String),
    /// Draw everything anew.
    Redraw,
    /// Give the terminal back for a while.
    Suspend,
    /// End the console.
    Quit(Option<Signal>),
}

/// What one view asks of another.
#[derive(Debug, Clone, PartialEq)]
pub enum Navigation {
    /// Fill in the arguments of a tool, beginning with these.
    FillArguments {
        /// The tool's full name.
        tool: String,
        /// What is known of its arguments.
        arguments: Option<JsonObject>,
    },
    /// Call a tool at once, and show what it gives.
    Call {
        /// The tool's full name.
        tool: String,
        /// Its arguments.
        arguments: JsonObject,
    },
    /// Benchmark a tool.
    Bench {
        /// The tool's full name.
        tool: String,
        /// Its arguments, when they are known.
        arguments: Option<JsonObject>,
    },
    /// Choose a tool that is to be benchmarked on this side.
    PickBenchTarget(TargetSide),
    /// Benchmark the tool on this side.
    SetBenchTarget {
        /// Which side.
        side: TargetSide,
        /// The tool's full name.
        tool: String,
    },
    /// Show a tool.
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
