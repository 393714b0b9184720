//! HTTP responses.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};

pub(super) type HttpAnswer = Response<BoxBody<Bytes, Infallible>>;

/// Why a request is refused: the status of the answer, and its text.
pub(super) type HttpRefusal = (StatusCode, String);

pub(super) fn text(status: StatusCode, message: &str) -> HttpAnswer {
    answer(status, HeaderValue::from_static("text/plain; charset=utf-8"), message)
}

pub(super) fn json(status: StatusCode, document: &str) -> HttpAnswer {
    answer(status, HeaderValue::from_static("application/json"), document)
}

fn answer(status: StatusCode, content_type: HeaderValue, content: &str) -> HttpAnswer {
    let mut answer = Response::new(Full::new(Bytes::from(format!("{content}\n"))).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, content_type);
    answer
}
