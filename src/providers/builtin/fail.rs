//! `builtin.fail`: fails on purpose, so that scripts and alerts can be tried.

use serde_json::json;

use super::{BuiltinFunction, FunctionBody, input};
use crate::model::Error;
use crate::providers::arguments::text;

const DEFAULT_MESSAGE: &str = "failed on purpose";
/// Each with its default first.
const MODES: [&str; 2] = ["tool", "error"];
const KINDS: [&str; 3] = ["unreachable", "timeout", "protocol"];

pub(super) const FAIL: BuiltinFunction = BuiltinFunction {
    module: "builtin.fail",
    name: "fail",
    aliases: &[],
    title: "Fail",
    description: "Fails on purpose: with a failed result (mode tool), or with an error of kind \
                  unreachable, timeout or protocol, as if no response had arrived.",
    input: || {
        let mut message = text("The message");
        message["default"] = DEFAULT_MESSAGE.into();
        let mut mode = text("tool: the tool reports a failure; error: no usable response arrives");
        (mode["enum"], mode["default"]) = (json!(MODES), MODES[0].into());
        let mut kind = text("The kind of error in mode error");
        (kind["enum"], kind["default"]) = (json!(KINDS), KINDS[0].into());
        input(&[("message", message), ("mode", mode), ("kind", kind)], &[])
    },
    output: None,
    idempotent: true,
    run: FunctionBody::Sync(|_, arguments| {
        let message = arguments.optional_text("message")?.unwrap_or(DEFAULT_MESSAGE);
        if arguments.word("mode", &MODES)? == "tool" {
            return Err(Error::tool(message));
        }
        Err(match arguments.word("kind", &KINDS)? {
            "timeout" => Error::timeout(message),
            "protocol" => Error::protocol(message),
            _ => Error::unreachable(message),
        })
    }),
};
