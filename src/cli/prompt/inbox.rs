//! The questions of servers, put to the person at the terminal.
//!
//! Owns: who is said to ask, what has to be typed before anything is sent, and that nothing is sent
//! that was not shown as a whole. Every word of a server is made safe and bounded, and the name of
//! the server stands behind it, where it cannot be pushed out of sight. Never does: open an
//! address.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;

use super::form;
use super::talk::{Talk, Typed};
use crate::cli::output::{Door, Label, Line, Page};
use crate::cli::views::question as view;
use crate::host::questions::sample;
use crate::model::{Ask, Inbox, Question, Reply};

/// How often somebody may type something that decides nothing.
const PATIENCE: usize = 20;
/// The most lines of a reply in a model's place.
const REPLY_LINES: usize = 5_000;

/// Asks on the terminal; where there is none, nobody is asked.
pub struct TerminalInbox {
    door: Arc<Door>,
}

impl TerminalInbox {
    /// Shows its questions through `door`.
    pub fn new(door: Arc<Door>) -> Self {
        Self { door }
    }
}

#[async_trait]
impl Inbox for TerminalInbox {
    async fn ask(&self, question: Question) -> Reply {
        let Some(talk) = Talk::begin(Arc::clone(&self.door)) else { return Reply::Nobody };
        let who = question.server.as_str();
        match &question.ask {
            Ask::Form { message, schema } => {
                talk.show(&view::heading(&question, message));
                form::fill_in(&talk, who, schema).await
            }
            Ask::Open { message, url } => {
                talk.show(&view::heading(&question, message));
                talk.show(&view::address(url));
                visit(&talk, who).await
            }
            Ask::Sample { params } => {
                talk.show(&view::heading(&question, "Write what a model would answer."));
                talk.show(&view::conversation(params));
                write(&talk, who).await
            }
        }
    }
}

/// What a person decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Go,
    Edit,
    Decline,
    Cancel,
}

/// Puts a question whose answers are letters, until one of them is typed. `go` are the words that
/// go on; Enter is one of them when `enter` says so.
pub(super) async fn choose(talk: &Talk, words: &Line, go: &[&str], enter: bool) -> Choice {
    for _ in 0..PATIENCE {
        let Typed::Line(typed) = talk.ask(Page::from(words.clone())).await else {
            return Choice::Cancel;
        };
        match typed.trim().to_lowercase().as_str() {
            "d" | "decline" => return Choice::Decline,
            "c" | "cancel" => return Choice::Cancel,
            "e" | "edit" => return Choice::Edit,
            "" if enter => return Choice::Go,
            word if go.contains(&word) => return Choice::Go,
            _ => {}
        }
    }
    Choice::Cancel
}

/// A question of ours: what it is about, and what may be typed.
pub(super) fn choices(about: &str, rest: &str) -> Line {
    Line::of(Label::Heading, about).then(Label::Plain, format!(" {rest}:"))
}

async fn visit(talk: &Talk, who: &str) -> Reply {
    let words = choices(
        &format!("'{who}' asks to open this page."),
        "toolhost opens nothing: visit it yourself if you trust it. Type done, d to decline, or c to \
         cancel",
    );
    match choose(talk, &words, &["done"], false).await {
        Choice::Go => Reply::Accept(json!({})),
        Choice::Decline => Reply::Decline,
        Choice::Edit | Choice::Cancel => Reply::Cancel,
    }
}

async fn write(talk: &Talk, who: &str) -> Reply {
    let begin = choices(
        &format!("Answer '{who}' in a model's place?"),
        "Enter to write, d to decline, c to cancel",
    );
    match choose(talk, &begin, &[], true).await {
        Choice::Go | Choice::Edit => {}
        Choice::Decline => return Reply::Decline,
        Choice::Cancel => return Reply::Cancel,
    }
    for _ in 0..PATIENCE {
        let text = lines(talk).await;
        if text.is_empty() {
            talk.show(&Page::from(Line::of(Label::Warning, "Nothing was written.")));
        } else {
            let mut page = Page::from(Line::of(Label::Dim, "This will be sent:"));
            page.text(Label::Plain, 2, &text);
            talk.show(&page);
        }
        let send = choices(
            &format!("Send it to '{who}'?"),
            "s to send, e to write it again, d to decline, c to cancel",
        );
        match choose(talk, &send, &["s", "send"], false).await {
            Choice::Go if text.is_empty() => {}
            Choice::Go => return Reply::Accept(sample::reply(&text)),
            Choice::Edit => {}
            Choice::Decline => return Reply::Decline,
            Choice::Cancel => return Reply::Cancel,
        }
    }
    Reply::Cancel
}

/// Lines up to an empty one or the end of input.
async fn lines(talk: &Talk) -> String {
    let mut page = Page::from(Line::of(Label::Dim, "The reply, up to an empty line:"));
    let mut lines = Vec::new();
    while lines.len() < REPLY_LINES {
        match talk.read(std::mem::take(&mut page)).await {
            Typed::Line(line) if !line.is_empty() => lines.push(line),
            Typed::Line(_) | Typed::End => break,
        }
    }
    lines.join("\n")
}
