//! `--context`: information about a call beside its arguments.

use serde_json::Value;

use crate::host::request::CallRequest;
use crate::model::{Error, TraceContext};

/// Keys that only toolhost sets, and what to use instead.
const RESERVED: [(&str, &str); 3] = [
    ("session_id", "--session ID names the session"),
    ("call_id", "each call gets its own ID"),
    ("cwd", "it is the directory toolhost runs in"),
];

#[derive(Debug, Clone, PartialEq)]
pub enum ContextArg {
    /// `KEY=VALUE`: a variable, or a key that toolhost knows.
    Text(String, String),
    /// `KEY:=JSON`: metadata.
    Json(String, Value),
}

pub fn parse(text: &str) -> Result<ContextArg, String> {
    let no_pair = || "expected KEY=VALUE or KEY:=JSON".to_owned();
    let (key, value) = text.split_once('=').ok_or_else(no_pair)?;
    let word = match key.strip_suffix(':') {
        Some(key) => {
            let value = serde_json::from_str(value).map_err(|e| format!("invalid JSON: {e}"))?;
            ContextArg::Json(key.to_owned(), value)
        }
        None => ContextArg::Text(key.to_owned(), value.to_owned()),
    };
    match &word {
        ContextArg::Text(key, _) | ContextArg::Json(key, _)
            if key.is_empty() || text.contains('\0') =>
        {
            Err(no_pair())
        }
        _ => Ok(word),
    }
}

/// Adds the words to a request. `user_id`, `traceparent` and `tracestate` have their own fields
/// there, whichever syntax is used.
pub fn apply(words: &[ContextArg], request: &mut CallRequest) -> Result<(), Error> {
    let (mut traceparent, mut tracestate) = (None, None);
    for word in words {
        let (ContextArg::Text(key, _) | ContextArg::Json(key, _)) = word;
        if let Some((_, instead)) = RESERVED.iter().find(|(reserved, _)| reserved == key) {
            return Err(Error::usage(format!("--context cannot set '{key}'")).with_hint(*instead));
        }
        match (key.as_str(), word) {
            ("user_id", _) => request.user_id = Some(text(word)?),
            ("traceparent", _) => traceparent = Some(text(word)?),
            ("tracestate", _) => tracestate = Some(text(word)?),
            (_, ContextArg::Text(key, value)) => {
                request.environment.insert(key.clone(), value.clone());
            }
            (_, ContextArg::Json(key, value)) => {
                request.metadata.insert(key.clone(), value.clone());
            }
        }
    }
    match (traceparent, tracestate) {
        (Some(parent), state) => {
            request.trace = Some(TraceContext::parse(&parent, state.as_deref())?);
            Ok(())
        }
        (None, Some(_)) => Err(Error::usage("'tracestate' requires a 'traceparent'")
            .with_hint("set both with --context")),
        (None, None) => Ok(()),
    }
}

fn text(word: &ContextArg) -> Result<String, Error> {
    match word {
        ContextArg::Text(_, text) | ContextArg::Json(_, Value::String(text)) => Ok(text.clone()),
        ContextArg::Json(key, _) => Err(Error::usage(format!("'{key}' must be text"))
            .with_hint(format!("--context {key}=TEXT"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::host::request::CallArguments;
    use crate::model::JsonObject;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn applied(words: &[&str]) -> Result<CallRequest, Error> {
        let words: Vec<ContextArg> = words.iter().map(|word| parse(word).unwrap()).collect();
        let mut request = CallRequest::new("t", CallArguments::Object(JsonObject::new()));
        apply(&words, &mut request).map(|()| request)
    }

    #[test]
    fn known_keys_have_their_places() {
        let (parent, state) = (format!("traceparent={PARENT}"), "tracestate=a=1");
        let request = applied(&["A=b=c", "n:=[1]", "user_id:=\"ada\"", &parent, state]).unwrap();
        assert_eq!(request.environment.get("A").map(String::as_str), Some("b=c"));
        assert_eq!(Value::Object(request.metadata), json!({ "n": [1] }));
        assert_eq!(request.user_id.as_deref(), Some("ada"));
        let trace = request.trace.unwrap();
        assert_eq!((trace.traceparent(), trace.tracestate()), (PARENT, Some("a=1")));
    }

    #[test]
    fn what_cannot_be_set_says_what_can() {
        for (word, told) in [
            ("session_id=x", "cannot set 'session_id'"),
            ("call_id:=1", "cannot set 'call_id'"),
            ("user_id:=1", "'user_id' must be text"),
            ("traceparent=x", "not a W3C trace parent"),
            ("tracestate=a=1", "requires a 'traceparent'"),
        ] {
            let error = applied(&[word]).unwrap_err();
            assert!(error.message().contains(told), "{word}: {error}");
            assert!(error.hint().is_some(), "{word}");
        }
    }
}
