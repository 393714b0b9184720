//! Events that the console receives, and commands that it issues.
//!
//! Owns: the types exchanged between the state and everything else. What takes time for one view is a
//! [`Task`].

use serde_json::Value;

use super::user_program::EditorDraft;
use crate::catalogue::Catalogue;
use crate::host::breakpoints::HeldCall;
use crate::host::policy::{Approval, ApprovalRequest};
use crate::host::request::CallOutcome;
use crate::host::validate::Violation;
use crate::model::{
    CallId, CapturedTraffic, Question, QuestionReply, ServerStatus, Signal, ToolDefinition,
};
use crate::present::{approval, breakpoint};
use crate::tui::keys::KeyPress;
use crate::tui::prelude::*;
use crate::tui::tasks::Outcome;
use crate::tui::views::bench::plan::TargetSide;

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
    ArgumentsChecked {
        schema: Arc<Value>,
        /// The arguments that were checked; a form compares them with its own.
        arguments: JsonObject,
        /// The violations; empty when the arguments are valid.
        problems: Vec<Violation>,
    },
    /// A task is done, or has something to tell.
    Outcome(Outcome),
    /// The console is to end.
    Signal(Signal),
}

impl AppEvent {
    pub fn outcome(change: impl FnOnce(&mut AppState) + Send + 'static) -> Self {
        Self::Outcome(Outcome(Box::new(change)))
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub u64);

#[derive(Debug)]
pub struct ApprovalPrompt {
    pub tool: ToolDefinition,
    pub arguments: JsonObject,
    /// Exactly what would be sent, and why that is asked.
    pub page: Page,
    /// The same for the same call of the same definition, and for nothing else.
    pub identity: String,
    pub call: Option<CallId>,
    /// What it is about when a breakpoint stopped it, and nothing is to be approved.
    pub held: Option<Box<HeldCall>>,
}

impl ApprovalPrompt {
    pub fn of_held(held: HeldCall) -> Self {
        Self {
            tool: held.definition.clone(),
            arguments: held.arguments.clone(),
            page: breakpoint::page(&held),
            identity: String::new(),
            call: Some(held.call.clone()),
            held: Some(Box::new(held)),
        }
    }

    pub fn of(request: &ApprovalRequest<'_>) -> Self {
        let mut page = approval::page(request, false);
        if request.preview.is_ok() {
            approval::arguments(&mut page, &request.arguments);
        }
        Self {
            tool: request.definition.clone().into_owned(),
            arguments: request.arguments.clone().into_owned(),
            page,
            identity: request.identity.clone(),
            call: request.call.clone(),
            held: None,
        }
    }
}

/// Something to be done that the state cannot do itself.
#[derive(Debug, PartialEq)]
pub enum AppEffect {
    /// Work that takes time, for a view.
    Task(Task),
    /// Cancel what is at work in this slot.
    Stop(String),
    /// Go on with what was read last; a host that it replaces is closed.
    SwitchHost,
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
    /// Check an object against a schema.
    ValidateArguments {
        schema: Arc<Value>,
        arguments: JsonObject,
    },
    OpenEditor(EditorDraft),
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

impl From<Navigation> for AppEffect {
    fn from(navigation: Navigation) -> Self {
        Self::Navigate(navigation)
    }
}

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
    Bench(String),
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
    /// Show a question of the inbox, to answer it.
    OpenQuestion(AskId),
    /// Back from the inbox to what was shown before.
    LeaveInbox,
}
