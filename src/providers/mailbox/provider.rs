//! The provider of one entry's mailboxes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use serde_json::{Value, json};

use super::offers::{self, OFFERS, Operation};
use super::post::Post;
use crate::config::spec::ToolSpec;
use crate::model::{
    Event, Fault, Problem, ToolCall, ToolContext, ToolDefinition, ToolResult, ToolScope,
};
use crate::provider::{Built, KindContext, Preview, ToolProvider};
use crate::providers::engines::choice::{self, Choice, Engines, Limits, Place};
use crate::providers::engines::{Engine, Quota};
use crate::providers::toolkit;
use crate::util::clock::{Clock, SystemClock};

/// What mailboxes may hold when their entry says nothing.
const DEFAULTS: Limits =
    Limits { quota: Quota { keys: 1000, bytes: 64 << 20 }, key: 128, value: 256 << 10 };

/// The spaces of mailboxes, in every engine.
const SPACE: &str = "box";

struct MailboxProvider {
    component: String,
    tools: Vec<(Arc<ToolDefinition>, Operation)>,
    choice: Choice,
    engine: Arc<dyn Engine>,
    clock: Arc<dyn Clock>,
    /// Whether it was said that messages in memory do not last.
    told: AtomicBool,
}

/// Builds one provider for each entry.
pub(super) fn build(specs: &[&ToolSpec], context: &KindContext) -> Built {
    let mut engines = Engines::default();
    Built::each(specs, |spec| mailboxes(spec, context, &mut engines))
}

fn mailboxes(
    spec: &ToolSpec,
    context: &KindContext,
    engines: &mut Engines,
) -> Result<MailboxProvider, Vec<Problem>> {
    let component = toolkit::component(spec).map_err(|problem| vec![problem])?;
    let chosen = toolkit::choose(spec, OFFERS);
    let choice = choice::read(spec, &component, DEFAULTS, true, context);
    let (chosen, choice) = match (chosen, choice) {
        (Ok(chosen), Ok(choice)) => (chosen, choice),
        (chosen, choice) => {
            return Err(chosen.err().into_iter().chain(choice.err()).flatten().collect());
        }
    };
    let define = |tool: &toolkit::Chosen| {
        let definition = offers::define(spec, tool, &choice);
        (Arc::new(definition), Operation::of(tool.offer))
    };
    Ok(MailboxProvider {
        tools: chosen.iter().map(define).collect(),
        engine: engines.at(&choice.place, &component),
        choice,
        component,
        clock: Arc::new(SystemClock),
        told: AtomicBool::new(false),
    })
}

impl MailboxProvider {
    fn tool(&self, call: &ToolCall) -> Result<&(Arc<ToolDefinition>, Operation), Fault> {
        self.tools
            .iter()
            .find(|(definition, _)| definition.name == call.name)
            .ok_or_else(|| Fault::internal(format!("'{}' is no tool of this mailbox", call.name)))
    }

    /// Says once that what is sent in memory is gone with this process.
    fn tell(&self, context: &ToolContext) {
        if matches!(self.choice.place, Place::Memory) && !self.told.swap(true, Ordering::Relaxed) {
            context.events.emit(Event::Notice {
                origin: self.component.clone(),
                text: "keeps messages in memory: they are gone when toolhost ends; \
                       'storage_type: disk' keeps them"
                    .to_owned(),
            });
        }
    }

    /// The time, as RFC 3339 with milliseconds.
    fn time(&self) -> String {
        let millis = i64::try_from(self.clock.unix().as_millis()).unwrap_or_default();
        jiff::Timestamp::from_millisecond(millis).map(|at| at.to_string()).unwrap_or_default()
    }
}

#[async_trait]
impl ToolProvider for MailboxProvider {
    fn component(&self) -> Option<&str> {
        Some(&self.component)
    }

    fn declared(&self) -> Vec<Arc<ToolDefinition>> {
        self.tools.iter().map(|(definition, _)| Arc::clone(definition)).collect()
    }

    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Fault> {
        let (definition, operation) = self.tool(call)?;
        let session = (definition.scope == ToolScope::Session).then_some(&*context.session_id);
        let post = Post {
            engine: self.engine.as_ref(),
            choice: &self.choice,
            space: choice::session_space(SPACE, session),
        };
        match operation {
            Operation::Send => {
                let sent = post.send(&call.arguments, self.time()).await?;
                if sent.success {
                    self.tell(context);
                }
                Ok(sent)
            }
            // It watches for the cancellation itself: what was taken has to be handed out.
            Operation::Receive => post.receive(&call.arguments, &context.cancel).await,
            Operation::List => post.list().await,
        }
    }

    async fn preview(&self, call: &ToolCall) -> Result<Preview, Fault> {
        let (_, operation) = self.tool(call)?;
        let keeps = call.arguments.get("keep").and_then(Value::as_bool).unwrap_or_default();
        let verb = match operation {
            Operation::Send => "leaves a message in a mailbox",
            Operation::Receive if keeps => "reads messages of a mailbox",
            Operation::Receive => "takes messages out of a mailbox",
            Operation::List => "lists the mailboxes",
        };
        let place = self.choice.place.words();
        Ok(Preview {
            summary: format!("{verb} {place}"),
            request: json!({
                "operation": verb,
                "mailboxes": place,
                "arguments": Value::Object(call.arguments.clone()),
            }),
        })
    }

    async fn close(&self) {
        self.engine.close().await;
    }
}
