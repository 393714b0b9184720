//! The stream of a subscription over HTTP.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use rmcp::model::ServerJsonRpcMessage;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::serve::catalogue_server::{self, ServedSubscription};

/// How long a stream is silent before a comment shows that it is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// An event that says nothing.
const COMMENT: &[u8] = b":\n\n";

type StreamedBody = BoxBody<Bytes, Infallible>;

/// How far a stream is.
enum Stage {
    Begins(StreamedBody, oneshot::Receiver<ServedSubscription>),
    Acknowledged(StreamedBody, oneshot::Receiver<ServedSubscription>),
    /// The request was not; it goes on itself.
    Request(StreamedBody),
    Subscription(Box<ServedSubscription>),
    Ended,
}

/// The stream that `request` begins and `subscription` goes on with until its client leaves or `end`
/// fires.
pub(super) fn subscription_body(
    request: StreamedBody,
    subscription: oneshot::Receiver<ServedSubscription>,
    end: CancellationToken,
) -> StreamedBody {
    let begin = (Stage::Begins(request, subscription), end);
    let frames = stream::unfold(begin, |(mut stage, end)| async {
        loop {
            let frame;
            (frame, stage) = next_frame(stage, &end).await;
            match (frame, &stage) {
                (Some(frame), _) => return Some((Ok(frame), (stage, end))),
                (None, Stage::Ended) => return None,
                (None, _) => {}
            }
        }
    });
    StreamBody::new(frames).boxed()
}

async fn next_frame(stage: Stage, end: &CancellationToken) -> (Option<Frame<Bytes>>, Stage) {
    match stage {
        Stage::Begins(mut request, subscription) => match request.frame().await {
            Some(Ok(frame)) => (Some(frame), Stage::Acknowledged(request, subscription)),
            _ => (None, Stage::Ended),
        },
        Stage::Acknowledged(request, subscription) => match subscription.await {
            Ok(subscription) => (None, Stage::Subscription(Box::new(subscription))),
            Err(_not_handed_over) => (None, Stage::Request(request)),
        },
        Stage::Request(mut request) => match request.frame().await {
            Some(Ok(frame)) => (Some(frame), Stage::Request(request)),
            _ => (None, Stage::Ended),
        },
        Stage::Subscription(mut subscription) => {
            let notifications = tokio::select! {
                () = end.cancelled() => Some(None),
                notifications = subscription.next() => Some(notifications),
                () = tokio::time::sleep(KEEP_ALIVE) => None,
            };
            match notifications {
                None => {
                    let comment = Frame::data(Bytes::from_static(COMMENT));
                    (Some(comment), Stage::Subscription(subscription))
                }
                Some(Some(notifications)) => {
                    let messages = notifications
                        .into_iter()
                        .map(|notification| subscription.message(notification));
                    (Some(events(messages)), Stage::Subscription(subscription))
                }
                Some(None) => {
                    let result = subscription.result(catalogue_server::implementation());
                    (Some(events([result])), Stage::Ended)
                }
            }
        }
        Stage::Ended => (None, Stage::Ended),
    }
}

fn events(messages: impl IntoIterator<Item = ServerJsonRpcMessage>) -> Frame<Bytes> {
    let texts = messages.into_iter().filter_map(|message| serde_json::to_string(&message).ok());
    let events: Vec<String> = texts.map(|text| format!("data: {text}\n\n")).collect();
    Frame::data(events.concat().into())
}
