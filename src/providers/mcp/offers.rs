//! What a server offers beside tools.
//!
//! Owns: what of it the entry lets through, how many of each there are, and beginning a
//! subscription again when it ended. Never does: keep a list — each is asked for when it is wanted.

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::patience::Patience;
use super::{McpProvider, roots};
use crate::mcp::connection::{Connection, RequestOptions};
use crate::mcp::listing::{self, Item};
use crate::mcp::offering;
use crate::mcp::subscription::{Ended, Subscription};
use crate::model::{
    Change, Completion, CompletionQuery, Era, Fault, JsonObject, Offered, Phase, Prompt,
    PromptMessages, Resource, ResourceContents, ResourceTemplate, Wanted,
};
use crate::provider::Offers;
use crate::util::{pattern, uri_template};

/// Bounds a request in all; progress or not.
const TOTAL: Duration = Duration::from_mins(5);
/// How long choosing a level of log lines may take.
const SET_LEVEL: Duration = Duration::from_secs(5);

/// How many there were when they were listed last.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Counts {
    pub(super) resources: Option<usize>,
    pub(super) prompts: Option<usize>,
}

#[async_trait]
impl Offers for McpProvider {
    async fn prompts(&self) -> Result<Offered<Prompt>, Fault> {
        let mut offered: Offered<Prompt> = self.offered().await?;
        offered.items.retain(|prompt| self.offers(prompt.name.tool()));
        self.known().counts.prompts = Some(offered.items.len());
        Ok(offered)
    }

    async fn resources(&self) -> Result<Offered<Resource>, Fault> {
        let mut offered: Offered<Resource> = self.offered().await?;
        offered.items.retain(|resource| self.lets_through(&[&resource.uri, &resource.name]));
        self.known().counts.resources = Some(offered.items.len());
        Ok(offered)
    }

    async fn templates(&self) -> Result<Offered<ResourceTemplate>, Fault> {
        let mut offered: Offered<ResourceTemplate> = self.offered().await?;
        offered.items.retain(|template| self.lets_through(&[&template.template, &template.name]));
        Ok(offered)
    }

    async fn read(&self, uri: &str, cancel: &CancellationToken) -> Result<ResourceContents, Fault> {
        self.keep_inside(uri)?;
        let connection = self.connection().await?;
        if !connection.declares("resources") {
            return Err(self.lacks("resources"));
        }
        self.admit(&connection, uri).await?;
        let options = self.options(cancel);
        offering::read(&connection, &self.spec.name, uri, &options).await
    }

    async fn prompt(
        &self,
        name: &str,
        arguments: &JsonObject,
        cancel: &CancellationToken,
    ) -> Result<PromptMessages, Fault> {
        let connection = self.connection().await?;
        if !connection.declares("prompts") {
            return Err(self.lacks("prompts"));
        }
        if !self.offers(name) {
            return Err(self.excluded("prompt", name));
        }
        let options = self.options(cancel);
        offering::prompt(&connection, &self.spec.name, name, arguments, &options).await
    }

    async fn complete(
        &self,
        query: &CompletionQuery,
        cancel: &CancellationToken,
    ) -> Result<Completion, Fault> {
        let connection = self.connection().await?;
        // Before 2025-03-26 there was no capability to declare.
        let old = connection.agreement.version.as_str() < "2025-03-26";
        if !connection.declares("completions") && !old {
            return Err(self.lacks("completions"));
        }
        let options = self.options(cancel);
        offering::complete(&connection, &self.spec.name, query, &options).await
    }

    async fn watch(
        &self,
        wanted: &Wanted,
        changes: &mpsc::Sender<Change>,
        cancel: &CancellationToken,
    ) -> Result<(), Fault> {
        for uri in &wanted.uris {
            self.keep_inside(uri)?;
        }
        let mut patience = Patience::default();
        loop {
            let ended = self.follow(wanted, changes, cancel, &mut patience).await;
            let (fault, gracefully) = match ended {
                Ended::Cancelled => return Ok(()),
                Ended::Refused(fault) => return Err(fault),
                // Whoever never agreed is not asked again and again.
                Ended::Broken(fault) if !patience.ever_agreed() => return Err(fault),
                Ended::Broken(fault) => (fault, false),
                Ended::Gracefully => {
                    let text = "the server ended the subscription";
                    (Fault::unreachable(text).server(&self.spec.name), true)
                }
            };
            let Some(wait) = patience.next(gracefully) else {
                return Err(fault.detail("it was begun again often enough"));
            };
            let waited = async {
                let told = changes.send(Change::Interrupted(fault)).await;
                tokio::time::sleep(wait).await;
                told.is_ok()
            };
            let wanted_still = tokio::select! {
                biased;
                () = cancel.cancelled() => false,
                told = waited => told,
            };
            if !wanted_still {
                return Ok(());
            }
        }
    }

    async fn set_log_level(&self, level: &'static str) -> Result<(), Fault> {
        let connection = {
            let mut known = self.known();
            known.log_level = Some(level);
            known.connection.clone()
        };
        match connection.filter(|connection| connection.closed().is_none()) {
            Some(connection) => self.ask_for_logs(&connection).await,
            None => Ok(()),
        }
    }
}

impl McpProvider {
    /// Refuses an address outside of the server's roots.
    fn keep_inside(&self, uri: &str) -> Result<(), Fault> {
        roots::check(uri, &self.spec.roots)
            .map_err(|fault| fault.server(&self.spec.name).phase(Phase::Call))
    }

    /// Which log lines are asked for.
    pub(super) fn log_level(&self) -> Option<&'static str> {
        self.known().log_level.or(self.setup.log_level)
    }

    /// Tells a server of the legacy era which log lines are wanted, when somebody wants some.
    pub(super) async fn ask_for_logs(&self, connection: &Connection) -> Result<(), Fault> {
        let Some(level) = self.log_level() else { return Ok(()) };
        let options = RequestOptions::within(SET_LEVEL, SET_LEVEL, Phase::Start);
        offering::set_level(connection, level, &options).await
    }

    /// Counts what the server declares to have beside tools; what cannot be listed is a doubt.
    pub(super) async fn count_offers(&self, connection: &Connection) {
        let (resources, prompts) = tokio::join!(
            async {
                if connection.declares("resources") { self.resources().await.err() } else { None }
            },
            async {
                if connection.declares("prompts") { self.prompts().await.err() } else { None }
            },
        );
        for (what, fault) in [("resources", resources), ("prompts", prompts)] {
            if let Some(fault) = fault {
                connection.doubt(format!("its {what} cannot be listed: {}", fault.message()));
            }
        }
    }

    async fn offered<T: Item>(&self) -> Result<Offered<T>, Fault> {
        let connection = self.connection().await?;
        listing::all(&connection, &self.spec.name, self.idle()).await
    }

    fn options(&self, cancel: &CancellationToken) -> RequestOptions {
        let mut options = RequestOptions::within(self.idle(), TOTAL, Phase::Call);
        options.cancel = cancel.clone();
        options.log_level = self.log_level();
        options
    }

    /// One subscription, from connecting to its end.
    async fn follow(
        &self,
        wanted: &Wanted,
        changes: &mpsc::Sender<Change>,
        cancel: &CancellationToken,
        patience: &mut Patience,
    ) -> Ended {
        let connection = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ended::Cancelled,
            connection = self.connection() => match connection {
                Ok(connection) => connection,
                Err(fault) => return Ended::Broken(fault),
            },
        };
        if let Some(fault) = self.cannot_tell(&connection, wanted) {
            return Ended::Refused(fault);
        }
        for uri in &wanted.uris {
            if let Err(fault) = self.admit(&connection, uri).await {
                return Ended::Refused(fault);
            }
        }
        // What passes through here shows whether the server agreed.
        let (sender, mut passing) = mpsc::channel(1);
        let (limit, stop) = (self.idle(), cancel.child_token());
        let subscription = Subscription {
            connection: &connection,
            wanted,
            limit,
            changes: &sender,
            cancel: &stop,
        };
        let mut following = Box::pin(subscription.follow());
        loop {
            let (change, ended) = tokio::select! {
                biased;
                Some(change) = passing.recv() => (Some(change), None),
                // What was told last may still be on its way.
                ended = &mut following => (passing.try_recv().ok(), Some(ended)),
                () = changes.closed(), if !stop.is_cancelled() => {
                    stop.cancel();
                    continue;
                }
            };
            if matches!(change, Some(Change::Listening { .. })) {
                patience.agreed();
            }
            if let Some(change) = change
                && changes.send(change).await.is_err()
            {
                // The subscription is taken back before this ends.
                stop.cancel();
            }
            if let Some(ended) = ended {
                return ended;
            }
        }
    }

    /// Why the server will not tell what is wanted, as far as its capabilities show it.
    fn cannot_tell(&self, connection: &Connection, wanted: &Wanted) -> Option<Fault> {
        let capabilities = &connection.agreement.capabilities;
        if wanted.uris.is_empty() {
            return None;
        }
        if !connection.declares("resources") {
            return Some(self.lacks("resources"));
        }
        // In the modern era the acknowledgement says it for each address.
        let subscribes = capabilities["resources"]["subscribe"] == serde_json::Value::Bool(true);
        (connection.agreement.era == Era::Legacy && !subscribes).then(|| {
            Fault::tool("the server does not tell when a resource changes")
                .detail("its capabilities do not hold resources.subscribe")
                .server(&self.spec.name)
                .hint("read the resource again now and then: toolhost resources read")
        })
    }

    fn lacks(&self, capability: &str) -> Fault {
        Fault::tool(format!("the server offers no {capability}"))
            .detail(format!("its capabilities do not hold {capability}"))
            .server(&self.spec.name)
            .hint(format!("toolhost inspect {} shows what it offers", self.spec.name))
    }

    fn excluded(&self, what: &str, name: &str) -> Fault {
        Fault::denied(format!("the {what} '{name}' is excluded by the server's entry"))
            .server(&self.spec.name)
            .hint("see 'exclude' and 'include' in mcp.yaml")
    }

    /// Whether the patterns of the entry let something through that is known by several names: none
    /// of them may be excluded, and one has to be included.
    fn lets_through(&self, names: &[&String]) -> bool {
        let any = |patterns: &[String]| {
            patterns.iter().any(|p| names.iter().any(|name| pattern::matches(p, name)))
        };
        !any(&self.spec.exclude) && self.spec.include.as_ref().is_none_or(|include| any(include))
    }

    /// Lets an address through that the entry does not exclude, under whatever name it is listed.
    async fn admit(&self, connection: &Connection, uri: &str) -> Result<(), Fault> {
        if self.spec.exclude.is_empty() && self.spec.include.is_none() {
            return Ok(());
        }
        let (name, idle) = (&self.spec.name, self.idle());
        let resources: Offered<Resource> = listing::all(connection, name, idle).await?;
        let templates: Offered<ResourceTemplate> = listing::all(connection, name, idle).await?;
        let uri_text = uri.to_owned();
        let listed = resources.items.iter().find(|resource| resource.uri == uri);
        let made = templates.items.iter().filter(|t| uri_template::matches(&t.template, uri));
        let mut names = vec![&uri_text];
        names.extend(listed.map(|resource| &resource.name));
        names.extend(made.flat_map(|template| [&template.template, &template.name]));
        if self.lets_through(&names) { Ok(()) } else { Err(self.excluded("resource", uri)) }
    }
}
