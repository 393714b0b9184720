//! `response_path`: a JSON Pointer (RFC 6901) into a response.

use serde_json::Value;

use crate::model::{Diagnostic, Error};
use crate::util::json;

pub(super) fn check(text: &str) -> Result<String, Diagnostic> {
    let mut tildes = text.split('~').skip(1);
    let (message, meant) = if text.starts_with('$') {
        let path = text.trim_start_matches('$').trim_start_matches('.');
        let path = path.replace(['.', '['], "/").replace(']', "");
        (format!("'{text}' is a JSONPath"), format!("/{}", path.trim_matches('/')))
    } else if !text.is_empty() && !text.starts_with('/') {
        (format!("'{text}' does not start with '/'"), format!("/{}", text.replace('.', "/")))
    } else if tildes.any(|after| !after.starts_with(['0', '1'])) {
        let message = format!("the '~' in '{text}' is followed by neither 0 nor 1");
        (message, "~0 is '~'".to_owned())
    } else {
        return Ok(text.to_owned());
    };
    Err(Diagnostic::error(message).with_hint(format!("write it as a JSON Pointer: {meant}")))
}

/// The part of a document at a pointer; the error says how far the pointer leads.
pub(super) fn follow(document: &Value, pointer: &str) -> Result<Value, Error> {
    if let Some(value) = document.pointer(pointer) {
        return Ok(value.clone());
    }
    let (mut here, mut walked) = (document, String::new());
    for step in pointer.split('/').skip(1) {
        let next = format!("{walked}/{step}");
        match document.pointer(&next) {
            Some(value) => (here, walked) = (value, next),
            None => break,
        }
    }
    let reached = if walked.is_empty() { "the answer" } else { &format!("'{walked}'") };
    let summary = json::summary(here);
    Err(Error::tool(format!("the response has nothing at '{pointer}': {reached} {summary}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn other_spellings_are_refused_with_the_pointer_that_was_meant() {
        let meant = |text| check(text).unwrap_err().hint.unwrap_or_default();
        assert!(meant("$.a.b[0].c").ends_with(": /a/b/0/c"), "{}", meant("$.a.b[0].c"));
        assert!(meant("a.b").ends_with(": /a/b"));
        assert!(check("/a~2").is_err() && check("/a~").is_err());
        for good in ["", "/", "/a/0", "/a~1b~0"] {
            assert!(check(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn a_pointer_that_leads_nowhere_says_how_far_it_came() {
        let document = json!({ "data": { "items": [1, 2], "next": null }, "ok": true });
        assert_eq!(follow(&document, "/data/items/1").unwrap(), json!(2));
        let why = |pointer| follow(&document, pointer).unwrap_err().message().to_owned();
        assert_eq!(why("/date"), "the response has nothing at '/date': the answer has data, ok");
        assert_eq!(
            why("/data/items/2"),
            "the response has nothing at '/data/items/2': '/data/items' is a list of 2"
        );
        assert!(why("/ok/x").ends_with("'/ok' is true"));
    }
}
