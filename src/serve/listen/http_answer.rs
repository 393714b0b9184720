//! HTTP responses.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};

pub(super) type HttpAnswer = Response<BoxBody<Bytes, Infallible>>;

/// A response that contains only `words`.
pub(super) fn text(status: StatusCode, message: &str) -> HttpAnswer {
    let mut answer = Response::new(Full::new(Bytes::from(format!("{message}\n"))).boxed());
    *answer.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(header::CONTENT_TYPE, plain);
    answer
}
