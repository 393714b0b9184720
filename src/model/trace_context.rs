//! The place of a call in a distributed trace.

use serde::{Deserialize, Serialize};

use super::Error;

/// Maximum length in bytes of a `traceparent` that is passed on, with room for later versions.
const MAX_TRACEPARENT: usize = 256;

/// Maximum length in bytes of a `tracestate` that is passed on: the minimum that the standard
/// requires.
const MAX_TRACESTATE: usize = 512;

/// The position of a call in a trace, in W3C Trace Context format. Passed on unchanged, because the
/// trace belongs to the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceContext {
    traceparent: String,
    tracestate: Option<String>,
}

impl TraceContext {
    /// Reads a `traceparent` (`00-<32 hex>-<16 hex>-<2 hex>`) and its `tracestate`.
    ///
    /// # Errors
    /// A usage error when one of them does not follow the standard.
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Result<Self, Error> {
        if !is_traceparent(traceparent) {
            return Err(Error::usage("'traceparent' is not a W3C trace parent").with_hint(
                "it is VERSION-TRACE-PARENT-FLAGS in lower-case hex: \
                 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            ));
        }
        let is_state = |state: &str| {
            state.len() <= MAX_TRACESTATE && state.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        };
        if !tracestate.is_none_or(is_state) {
            return Err(Error::usage(format!(
                "'tracestate' must be printable ASCII of at most {MAX_TRACESTATE} bytes"
            )));
        }
        let tracestate = tracestate.filter(|state| !state.is_empty()).map(str::to_owned);
        Ok(Self { traceparent: traceparent.to_owned(), tracestate })
    }

    /// The identity of the trace and of the caller's span.
    pub fn traceparent(&self) -> &str {
        &self.traceparent
    }

    /// What the tracing systems along the way add; `None` if nothing.
    pub fn tracestate(&self) -> Option<&str> {
        self.tracestate.as_deref()
    }
}

fn is_traceparent(text: &str) -> bool {
    let fields: Vec<&str> = text.split('-').collect();
    let [version, trace, parent, flags, rest @ ..] = fields.as_slice() else { return false };
    let is_hex = |field: &str, length: usize| {
        let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        field.len() == length && field.bytes().all(lower)
    };
    let is_set = |field: &str| field.bytes().any(|byte| byte != b'0');
    let known_end = *version != "00" || rest.is_empty();
    text.len() <= MAX_TRACEPARENT
        && is_hex(version, 2)
        && *version != "ff"
        && is_hex(trace, 32)
        && is_hex(parent, 16)
        && is_hex(flags, 2)
        && is_set(trace)
        && is_set(parent)
        && known_end
        && rest.iter().all(|field| field.bytes().all(|byte| byte.is_ascii_graphic()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn what_the_standard_allows_is_passed_on() {
        let trace = TraceContext::parse(PARENT, Some("a=1,b=2")).unwrap();
        assert_eq!((trace.traceparent(), trace.tracestate()), (PARENT, Some("a=1,b=2")));
        let later = format!("{}-what-comes-later", PARENT.replacen("00", "cc", 1));
        assert_eq!(TraceContext::parse(&later, Some("")).unwrap().tracestate(), None);
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            String::new(),
            "00".to_owned(),
            PARENT.to_uppercase(),
            format!("{PARENT}-more"),
            PARENT.replacen("00", "ff", 1),
            PARENT.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            PARENT.replace("b7ad6b7169203331", &"0".repeat(16)),
            format!("{}-{}", PARENT.replacen("00", "cc", 1), "x".repeat(300)),
        ] {
            assert!(TraceContext::parse(&text, None).is_err(), "{text}");
        }
        assert!(TraceContext::parse(PARENT, Some("é")).is_err());
        assert!(TraceContext::parse(PARENT, Some(&"a".repeat(513))).is_err());
    }
}
