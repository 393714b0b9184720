//! The provider of one entry's mailboxes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use serde_json::{Value, json};

use super::operations::MailboxOperations;
use super::tools::{self, MailboxOperation, TOOLS};
use crate::config::spec::ToolSpec;
use crate::model::{
    Diagnostic, Error, HostEvent, ToolCall, ToolContext, ToolDefinition, ToolResult, ToolScope,
};
use crate::provider::{BuiltProviders, Preview, ProviderDeps, ToolProvider};
use crate::providers::engines::config::{
    self, EngineConfig, EngineLimits, EngineLocation, Engines,
};
use crate::providers::engines::{Engine, Quota};
use crate::providers::toolkit;
use crate::util::clock::{Clock, SystemClock};

/// What mailboxes may hold when their entry says nothing.
const DEFAULTS: EngineLimits = EngineLimits {
    quota: Quota { keys: 1000, bytes: 64 << 20 },
    max_key_bytes: 128,
    max_value_bytes: 256 << 10,
};

/// The spaces of mailboxes, in every engine.
const SPACE: &str = "box";

struct MailboxProvider {
    component: String,
    tools: Vec<(Arc<ToolDefinition>, MailboxOperation)>,
    config: EngineConfig,
    engine: Arc<dyn Engine>,
    clock: Arc<dyn Clock>,
    /// Whether it was said that messages in memory do not last.
    has_warned: AtomicBool,
}

/// Builds one provider for each entry.
pub(super) fn build(specs: &[&ToolSpec], context: &ProviderDeps) -> BuiltProviders {
    let mut engines = Engines::default();
    BuiltProviders::each(specs, |spec| mailboxes(spec, context, &mut engines))
}

fn mailboxes(
    spec: &ToolSpec,
    context: &ProviderDeps,
    engines: &mut Engines,
) -> Result<MailboxProvider, Vec<Diagnostic>> {
    let component = toolkit::component(spec).map_err(|diagnostic| vec![diagnostic])?;
    let chosen = toolkit::choose(spec, TOOLS);
    let config = config::read(spec, &component, DEFAULTS, true, context);
    let (chosen, config) = match (chosen, config) {
        (Ok(chosen), Ok(config)) => (chosen, config),
        (chosen, config) => {
            return Err(chosen.err().into_iter().chain(config.err()).flatten().collect());
        }
    };
    let define = |tool: &toolkit::SelectedTool| {
        let definition = tools::define(spec, tool, &config);
        (Arc::new(definition), MailboxOperation::of(tool.original))
    };
    Ok(MailboxProvider {
        tools: chosen.iter().map(define).collect(),
        engine: engines.get_or_open(&config.location, &component),
        config,
        component,
        clock: Arc::new(SystemClock),
        has_warned: AtomicBool::new(false),
    })
}

impl MailboxProvider {
    fn tool(&self, call: &ToolCall) -> Result<&(Arc<ToolDefinition>, MailboxOperation), Error> {
        self.tools
            .iter()
            .find(|(definition, _)| definition.name == call.name)
            .ok_or_else(|| Error::internal(format!("'{}' is no tool of this mailbox", call.name)))
    }

    /// Says once that what is sent in memory is gone with this process.
    fn warn_if_in_memory(&self, context: &ToolContext) {
        if matches!(self.config.location, EngineLocation::Memory)
            && !self.has_warned.swap(true, Ordering::Relaxed)
        {
            context.events.emit(HostEvent::Notice {
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

    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error> {
        let (definition, operation) = self.tool(call)?;
        let session = (definition.scope == ToolScope::Session).then_some(&*context.session_id);
        let post = MailboxOperations {
            engine: self.engine.as_ref(),
            config: &self.config,
            space: config::session_space(SPACE, session),
        };
        match operation {
            MailboxOperation::Send => {
                let sent = post.send(&call.arguments, self.time()).await?;
                if sent.success {
                    self.warn_if_in_memory(context);
                }
                Ok(sent)
            }
            // It watches for the cancellation itself: what was taken has to be handed out.
            MailboxOperation::Receive => post.receive(&call.arguments, &context.cancel).await,
            MailboxOperation::List => post.list().await,
        }
    }

    async fn preview(&self, call: &ToolCall) -> Result<Preview, Error> {
        let (_, operation) = self.tool(call)?;
        let keeps = call.arguments.get("keep").and_then(Value::as_bool).unwrap_or_default();
        let verb = match operation {
            MailboxOperation::Send => "leaves a message in a mailbox",
            MailboxOperation::Receive if keeps => "reads messages of a mailbox",
            MailboxOperation::Receive => "takes messages out of a mailbox",
            MailboxOperation::List => "lists the mailboxes",
        };
        let place = self.config.location.words();
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
