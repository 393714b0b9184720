//! What the console hears, and what it wants done.
//!
//! Owns: the words that pass between the state and everything else. What concerns one view only
//! stands in a module of its own: what the view wants done (`Wish`), and what came of it (`News`).

pub mod bench;
pub mod history;
pub mod memory;
pub mod offers;
pub mod servers;
pub mod stats;
pub mod tools;
pub mod trace;
pub mod trust;
pub mod wire;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::catalogue::Catalogue;
use crate::host::approval::Approval;
use crate::host::request::CallOutcome;
use crate::host::validate::Violation;
use crate::model::{
    CallId, Fault, JsonObject, Question, Reply, ServerStatus, Signal, ToolDefinition,
};

use super::keys::Key;
use super::state::bench::Side;

/// Something that happened, from any side.
#[derive(Debug)]
pub enum Event {
    /// A person did something.
    Input(Input),
    /// It is so late (since the Unix epoch).
    Tick(Duration),
    /// The host tells what happens.
    Host(crate::model::Event),
    /// Something crossed the wire of a server.
    Traffic(Box<wire::Seen>),
    /// So many events were lost until now, because more came than could be taken in.
    Lost(u64),
    /// A list was asked for and came: of everything local and declared, or of these servers.
    Listed {
        /// The servers that were asked; none for what is known without asking.
        servers: Vec<String>,
        /// What they offer.
        catalogue: Box<Catalogue>,
    },
    /// How the servers are.
    Servers(Vec<ServerStatus>),
    /// A call is made now; this is what the host calls it.
    Began {
        /// Which one.
        run: RunId,
        /// Its identity in records and in what the host tells.
        call: CallId,
    },
    /// A call ended.
    Ended {
        /// Which one.
        run: RunId,
        /// How; `Err` when it was never made.
        outcome: Box<Result<CallOutcome, Fault>>,
    },
    /// A person is asked whether a call may be made.
    Approval {
        /// To be named in the answer.
        id: AskId,
        /// What is asked.
        asked: Box<AskedApproval>,
    },
    /// A server asks something.
    Question {
        /// To be named in the answer.
        id: AskId,
        /// What is asked.
        question: Box<Question>,
    },
    /// Nobody waits for this answer any more.
    Withdrawn(AskId),
    /// What came of a wish of the tools.
    Tools(Box<tools::News>),
    /// What a person set and what was remembered.
    Memory(Box<memory::News>),
    /// What was found wrong with an object that was to be checked.
    Checked {
        /// What it was checked against.
        schema: Arc<Value>,
        /// What was checked.
        arguments: JsonObject,
        /// What does not fit; nothing when all does.
        problems: Vec<Violation>,
    },
    /// What a person wrote in their own editor, or why there is nothing.
    Edited(Result<String, String>),
    /// What came of a wish of the statistics.
    Stats(stats::News),
    /// What came of a wish of the benchmark.
    Bench(bench::News),
    /// What came of a wish of the history.
    History(history::News),
    /// What came of a wish of the resources and prompts.
    Offers(offers::News),
    /// What came of a wish about trust in the project.
    Trust(trust::News),
    /// Something that was done in silence is worth a word.
    Said {
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
pub enum Input {
    /// Pressed a key.
    Key(Key),
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
pub struct RunId(pub u64);

/// A question that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub u64);

/// What a person is asked to approve.
#[derive(Debug, Clone)]
pub struct AskedApproval {
    /// The tool.
    pub tool: ToolDefinition,
    /// The arguments; secrets masked.
    pub arguments: JsonObject,
    /// Why a person is asked.
    pub reason: String,
    /// Exactly what would be sent, or why it cannot be shown.
    pub preview: Result<String, String>,
    /// The same for the same call of the same definition, and for nothing else.
    pub identity: String,
    /// The call, when it has a name already.
    pub call: Option<CallId>,
}

/// A text that is to be written elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// What its file is called; editors go by its ending.
    pub name: &'static str,
    /// What is there so far.
    pub text: String,
}

/// Something to be done that the state cannot do itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// List what is known without asking anybody.
    ListDeclared,
    /// Ask this server for its tools.
    ListServer(String),
    /// Look how the servers are, without asking them.
    LookAtServers,
    /// Ask a server for a sign of life.
    CheckServer(String),
    /// Make a call.
    Call {
        /// Its number.
        run: RunId,
        /// The tool's full name.
        tool: String,
        /// Its arguments.
        arguments: JsonObject,
    },
    /// Stop a call.
    Cancel(RunId),
    /// Say whether a call may be made.
    Approve(AskId, Approval),
    /// Answer a server.
    Reply(AskId, Arc<Reply>),
    /// What the tools want done.
    Tools(tools::Wish),
    /// What is wanted of settings and memory.
    Memory(memory::Wish),
    /// Check an object against a schema.
    Check {
        /// What it has to fit.
        schema: Arc<Value>,
        /// The object.
        arguments: JsonObject,
    },
    /// Let a person write this in their own editor.
    Edit(Draft),
    /// What the statistics want done.
    Stats(stats::Wish),
    /// What the benchmark wants done.
    Bench(bench::Wish),
    /// What the history wants done.
    History(history::Wish),
    /// What the resources and prompts want done.
    Offers(offers::Wish),
    /// What the servers' view wants done.
    Servers(servers::Wish),
    /// What the trace wants done.
    Trace(trace::Wish),
    /// What is wanted of trust in the project.
    Trust(trust::Wish),
    /// Write a file that was not there before; relative to where the console was opened.
    Write {
        /// Its name.
        path: std::path::PathBuf,
        /// What is in it.
        text: String,
    },
    /// Something another view does. Never leaves the state.
    Go(Errand),
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
pub enum Errand {
    /// Fill in the arguments of a tool, beginning with these.
    Fill {
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
    ChooseTool(Side),
    /// Benchmark the tool on this side.
    BenchOn {
        /// Which side.
        side: Side,
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
