//! Prompts, resources and templates of a server.

use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::backoff::ResubscribeBackoff;
use super::call::call_meta;
use super::{McpProvider, roots};
use crate::mcp::connection::{Connection, RequestOptions};
use crate::mcp::listing::{self, Listable};
use crate::mcp::offering_requests;
use crate::mcp::subscription::{Subscription, SubscriptionEnd};
use crate::model::event::LOG_LEVELS;
use crate::model::{
    Completion, CompletionQuery, Era, Error, ErrorPhase, JsonObject, OfferingListing, Prompt,
    PromptMessages, Resource, ResourceContents, ResourceTemplate, SubscriptionEvent,
    SubscriptionFilter, ToolContext,
};
use crate::provider::OfferingSupport;

/// Bounds a request in all; progress or not.
const TOTAL: Duration = Duration::from_mins(5);
const SET_LEVEL: Duration = Duration::from_secs(5);

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct OfferingCounts {
    pub(super) resources: Option<usize>,
    pub(super) prompts: Option<usize>,
}

#[async_trait]
impl OfferingSupport for McpProvider {
    async fn prompts(&self) -> Result<OfferingListing<Prompt>, Error> {
        let offered = self.list_offerings(|prompt: &Prompt| {
            let name = prompt.name.tool();
            Some((name.to_owned(), self.prompt_refusal(name)?))
        });
        let offered = offered.await?;
        self.cached().counts.prompts = Some(offered.items.len());
        Ok(offered)
    }

    async fn resources(&self) -> Result<OfferingListing<Resource>, Error> {
        let offered = self.list_offerings(|resource: &Resource| {
            let refusal = self.resource_refusal(&[&resource.uri, &resource.name])?;
            Some((resource.uri.clone(), refusal))
        });
        let offered = offered.await?;
        self.cached().counts.resources = Some(offered.items.len());
        Ok(offered)
    }

    async fn templates(&self) -> Result<OfferingListing<ResourceTemplate>, Error> {
        self.list_offerings(|template: &ResourceTemplate| {
            let refusal = self.resource_refusal(&[&template.template, &template.name])?;
            Some((template.template.clone(), refusal))
        })
        .await
    }

    fn context_env(&self) -> &[String] {
        &self.spec.context_env
    }

    async fn read(&self, context: &ToolContext, uri: &str) -> Result<ResourceContents, Error> {
        self.check_resource_root(uri)?;
        let connection = self.connection().await?;
        if !connection.declares("resources") {
            return Err(self.lacks("resources"));
        }
        self.check_resource(&connection, uri).await?;
        let options = self.options(context);
        offering_requests::read(&connection, uri, &options).await
    }

    async fn prompt(
        &self,
        context: &ToolContext,
        name: &str,
        arguments: &JsonObject,
    ) -> Result<PromptMessages, Error> {
        let connection = self.connection().await?;
        if !connection.declares("prompts") {
            return Err(self.lacks("prompts"));
        }
        if let Some(refusal) = self.prompt_refusal(name) {
            return Err(refusal);
        }
        let options = self.options(context);
        offering_requests::prompt(&connection, name, arguments, &options).await
    }

    async fn complete(
        &self,
        context: &ToolContext,
        query: &CompletionQuery,
    ) -> Result<Completion, Error> {
        let connection = self.connection().await?;
        // Before 2025-03-26 there was no capability to declare.
        let old = connection.agreement.version.as_str() < "2025-03-26";
        if !connection.declares("completions") && !old {
            return Err(self.lacks("completions"));
        }
        let options = self.options(context);
        offering_requests::complete(&connection, query, &options).await
    }

    async fn watch(
        &self,
        filter: &SubscriptionFilter,
        changes: &mpsc::Sender<SubscriptionEvent>,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        for uri in &filter.uris {
            self.check_resource_root(uri)?;
        }
        let mut backoff = ResubscribeBackoff::default();
        loop {
            let ended = self.run_subscription(filter, changes, cancel, &mut backoff).await;
            let (error, gracefully) = match ended {
                SubscriptionEnd::Cancelled => return Ok(()),
                SubscriptionEnd::Refused(error) => return Err(error),
                // A server that never agreed is not asked again.
                SubscriptionEnd::Broken(error) if !backoff.was_acknowledged() => return Err(error),
                SubscriptionEnd::Broken(error) => (error, false),
                SubscriptionEnd::Gracefully => {
                    let text = "the server ended the subscription";
                    (Error::unreachable(text).with_server(&self.spec.name), true)
                }
            };
            let Some(wait) = backoff.next_delay(gracefully) else {
                return Err(error.with_detail("it was reopened too many times"));
            };
            let waited = async {
                let sent = changes.send(SubscriptionEvent::Interrupted(error)).await;
                tokio::time::sleep(wait).await;
                sent.is_ok()
            };
            let wanted_still = tokio::select! {
                biased;
                () = cancel.cancelled() => false,
                sent = waited => sent,
            };
            if !wanted_still {
                return Ok(());
            }
        }
    }

    async fn set_log_level(&self, level: &'static str) -> Result<(), Error> {
        let connection = {
            let mut cached = self.cached();
            cached.log_level = Some(level);
            cached.connection.clone()
        };
        match connection.filter(|connection| connection.close_reason().is_none()) {
            Some(connection) => self.send_log_level(&connection).await,
            None => Ok(()),
        }
    }
}

impl McpProvider {
    fn check_resource_root(&self, uri: &str) -> Result<(), Error> {
        roots::check(uri, &self.spec.roots).map_err(|error| self.in_call(error))
    }

    pub(super) fn log_level(&self) -> Option<&'static str> {
        self.cached().log_level.or(self.setup.log_level)
    }

    /// Has a server of the legacy era, which clients share, log what one of them wants as well. What
    /// is more than another wants is left out on the way to that one.
    pub(super) async fn widen_log_level(
        &self,
        connection: &Connection,
        minimum: Option<&'static str>,
    ) {
        let place = |level: &str| LOG_LEVELS.iter().position(|entry| *entry == level);
        let Some(minimum) = minimum.filter(|_| connection.agreement.era == Era::Legacy) else {
            return;
        };
        if self.log_level().is_none_or(|level| place(minimum) < place(level)) {
            // A server that refuses logs what it did before.
            let _refused = Box::pin(self.set_log_level(minimum)).await;
        }
    }

    /// Tells a server of the legacy era which log lines are wanted, if any are.
    pub(super) async fn send_log_level(&self, connection: &Connection) -> Result<(), Error> {
        let Some(level) = self.log_level() else { return Ok(()) };
        let options = RequestOptions::with_timeouts(SET_LEVEL, SET_LEVEL, ErrorPhase::Start);
        offering_requests::set_level(connection, level, &options).await
    }

    /// Counts what the server declares besides tools; what cannot be listed becomes a warning.
    pub(super) async fn count_offerings(&self, connection: &Connection) {
        let (resources, prompts) = tokio::join!(
            async {
                if connection.declares("resources") { self.resources().await.err() } else { None }
            },
            async {
                if connection.declares("prompts") { self.prompts().await.err() } else { None }
            },
        );
        for (list, error) in [("resources", resources), ("prompts", prompts)] {
            if let Some(error) = error {
                let reason = error.message();
                connection.add_warning(&format!("its {list} cannot be listed: {reason}"));
            }
        }
    }

    /// Lists what the server has of a kind, but what the entry keeps back.
    async fn list_offerings<T: Listable>(
        &self,
        refusal: impl FnMut(&T) -> Option<(String, Error)>,
    ) -> Result<OfferingListing<T>, Error> {
        let connection = self.connection().await?;
        let mut offered = listing::all(&connection, self.idle()).await?;
        offered.withheld = Self::withhold(&mut offered.items, refusal);
        Ok(offered)
    }

    fn options(&self, context: &ToolContext) -> RequestOptions {
        RequestOptions {
            cancel: context.cancel.clone(),
            log_level: context.client.log_level.or(self.log_level()),
            questions: context.client.questions,
            meta: Some(call_meta(context)),
            call: Some(context.call_id.clone()),
            ..RequestOptions::with_timeouts(self.idle(), TOTAL, ErrorPhase::Call)
        }
    }

    async fn run_subscription(
        &self,
        filter: &SubscriptionFilter,
        changes: &mpsc::Sender<SubscriptionEvent>,
        cancel: &CancellationToken,
        backoff: &mut ResubscribeBackoff,
    ) -> SubscriptionEnd {
        let connection = tokio::select! {
            biased;
            () = cancel.cancelled() => return SubscriptionEnd::Cancelled,
            connection = self.connection() => match connection {
                Ok(connection) => connection,
                Err(error) => return SubscriptionEnd::Broken(error),
            },
        };
        if let Some(error) = self.unsupported_watch_error(&connection, filter) {
            return SubscriptionEnd::Refused(error);
        }
        for uri in &filter.uris {
            if let Err(error) = self.check_resource(&connection, uri).await {
                return SubscriptionEnd::Refused(error);
            }
        }
        let (acknowledged, stop) = (OnceLock::new(), cancel.child_token());
        let subscription = Subscription {
            connection: &connection,
            filter,
            ack_timeout: self.idle(),
            changes,
            acknowledged: &acknowledged,
            cancel: &stop,
        };
        let mut following = Box::pin(subscription.run());
        let ended = tokio::select! {
            biased;
            ended = &mut following => ended,
            // The subscription is taken back before this ends.
            () = changes.closed() => {
                stop.cancel();
                following.await
            }
        };
        if let Some(at) = acknowledged.get() {
            backoff.mark_acknowledged(*at);
        }
        ended
    }

    fn unsupported_watch_error(
        &self,
        connection: &Connection,
        filter: &SubscriptionFilter,
    ) -> Option<Error> {
        let capabilities = &connection.agreement.capabilities;
        if filter.uris.is_empty() {
            return None;
        }
        if !connection.declares("resources") {
            return Some(self.lacks("resources"));
        }
        // In the modern era the acknowledgement says it for each address.
        let subscribes = capabilities["resources"]["subscribe"] == serde_json::Value::Bool(true);
        (connection.agreement.era == Era::Legacy && !subscribes).then(|| {
            Error::tool("the server does not report changes to resources")
                .with_detail("its capabilities do not include resources.subscribe")
                .with_server(&self.spec.name)
                .with_hint("poll instead: toolhost resources read")
        })
    }

    fn lacks(&self, capability: &str) -> Error {
        Error::tool(format!("the server offers no {capability}"))
            .with_detail(format!("its capabilities do not include {capability}"))
            .with_server(&self.spec.name)
            .with_hint(format!("toolhost inspect {} shows what it offers", self.spec.name))
    }
}
