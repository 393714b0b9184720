//! `demo://uptime`: a resource that changes by itself, for trying subscriptions.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{Resource, ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{Peer, SubscriptionContext};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The address of the resource.
pub(super) const URI: &str = "demo://uptime";
/// How often subscribers hear of a change.
const TICK_INTERVAL: Duration = Duration::from_secs(1);

pub(super) fn resource() -> Resource {
    Resource::new(URI, "uptime")
        .with_title("How long this server runs")
        .with_description("Changes once a second; watch it")
        .with_mime_type("text/plain")
}

/// The text of the resource: whole seconds since the start.
pub(super) fn text(started: Instant) -> String {
    format!("up for {} s\n", started.elapsed().as_secs())
}

/// The part of a filter that this server accepts: changes of this one resource.
pub(super) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let is_accepted = requested.resource_subscriptions.iter().flatten().any(|uri| uri == URI);
    let mut accepted = SubscriptionFilter::new();
    accepted.resource_subscriptions = is_accepted.then(|| vec![URI.to_owned()]);
    accepted
}

/// Notifies a subscriber of the modern era until the subscription ends.
pub(super) async fn notify_subscriber(
    context: &SubscriptionContext,
    disconnected: &CancellationToken,
) {
    let mut ticks = tokio::time::interval_at(Instant::now() + TICK_INTERVAL, TICK_INTERVAL);
    loop {
        tokio::select! {
            () = context.cancelled() => return,
            () = disconnected.cancelled() => return,
            _ = ticks.tick() => {
                if context.sink().notify_resource_updated(URI).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Notifies a subscriber of the older era until `stop` fires.
pub(super) async fn notify_legacy_client(peer: Peer<RoleServer>, stop: CancellationToken) {
    let mut ticks = tokio::time::interval_at(Instant::now() + TICK_INTERVAL, TICK_INTERVAL);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {
                let update = ResourceUpdatedNotificationParam::new(URI);
                if peer.notify_resource_updated(update).await.is_err() {
                    return;
                }
            }
        }
    }
}
