//! Tests of where each argument ends up in a request.

use serde_json::json;

use super::*;

#[tokio::test]
async fn arguments_go_where_the_method_puts_them() {
    let schema = "parameters_schema: { properties: { a: {}, b: {} } }";
    let get = sent(
        &format!("endpoint_url: URL/x?z=1\n{schema}"),
        json!({ "a": "é &", "b": [1, "y"], "c": null }),
    )
    .await;
    assert_eq!(get.line(), "GET /x?z=1&a=%C3%A9%20%26&b=1&b=y");
    assert_eq!(get.body, "");
    let post = sent(
        &format!("endpoint_url: URL/x\nmethod: post\n{schema}"),
        json!({ "a": 1, "b": { "c": [true] } }),
    )
    .await;
    assert_eq!(post.line(), "POST /x");
    assert_eq!(post.body, r#"{"a":1,"b":{"c":[true]}}"#);
    assert_eq!(post.header("content-type"), Some("application/json"));
    let nothing = sent("endpoint_url: URL/x\nmethod: POST", json!({})).await;
    assert_eq!((nothing.body.as_str(), nothing.header("content-type")), ("", None));
}

#[tokio::test]
async fn params_place_arguments_and_rename_them() {
    let keys = "endpoint_url: URL/v1/{city}\n\
                method: PUT\n\
                params: { city: path, units: query, lang: { in: header, name: X-Lang }, \
                          note: body, q: { in: query, name: search } }";
    let arguments =
        json!({ "city": "a/../b", "units": "metric", "lang": "de", "note": 3, "q": "x?y#z" });
    let request = sent(keys, arguments).await;
    assert_eq!(request.line(), "PUT /v1/a%2F..%2Fb?units=metric&search=x%3Fy%23z");
    assert_eq!(request.header("x-lang"), Some("de"));
    assert_eq!(request.body, r#"{"note":3}"#);
}

#[tokio::test]
async fn texts_are_filled_and_absent_parts_left_out() {
    let keys = "endpoint_url: URL/x?fixed={f}&gone={gone}\n\
                headers: { X-Team: \"${TEAM}-{f}\", X-Gone: \"{gone}\", X-In: \"{context.session_id}\" }\n\
                query: { page: 1, tag: [a, \"{f}\"], none: \"{gone}\" }\n\
                body: { n: \"{n}\", text: \"n is {n}\", list: [\"{n}\", \"{gone}\"], gone: \"{gone}\", \
                        fixed: { k: [1, null] }, who: \"{context.environment.WHO}\", brace: \"{{x}}\" }";
    let peer = agreeable().await;
    let harness = tool(&peer, keys);
    let mut context = harness.context();
    context.environment.insert("WHO".to_owned(), "me".to_owned());
    harness.call_in(&context, "t", json!({ "f": "é", "n": 3 })).await.unwrap();
    let request = peer.requests().pop().unwrap();
    assert_eq!(request.line(), "POST /x?fixed=%C3%A9&page=1&tag=a&tag=%C3%A9");
    assert_eq!(request.header("x-team"), Some("blue-é"));
    assert_eq!((request.header("x-in"), request.header("x-gone")), (Some("session-1"), None));
    assert_eq!(
        serde_json::from_str::<Value>(&request.body).unwrap(),
        json!({ "n": 3, "text": "n is 3", "list": [3], "fixed": { "k": [1, null] }, "who": "me",
                "brace": "{x}" })
    );
}

#[tokio::test]
async fn a_body_may_be_a_form_or_text() {
    let form = "endpoint_url: URL/x\nbody_type: form\nbody: { a: \"{a}\", b: [1, 2] }";
    let request = sent(form, json!({ "a": "x y" })).await;
    assert_eq!(request.body, "a=x+y&b=1&b=2");
    assert_eq!(request.header("content-type"), Some("application/x-www-form-urlencoded"));
    let text = "endpoint_url: URL/x\nbody: \"<a>{a}</a>\"\nheaders: { Content-Type: text/xml }";
    let request = sent(text, json!({ "a": 1 })).await;
    assert_eq!((request.method.as_str(), request.body.as_str()), ("POST", "<a>1</a>"));
    assert_eq!(request.header("content-type"), Some("text/xml"));
    let whole = "endpoint_url: URL/x\nbody: \"{rows}\"";
    assert_eq!(sent(whole, json!({ "rows": [1, { "a": 2 }] })).await.body, r#"[1,{"a":2}]"#);
}

#[tokio::test]
async fn arguments_join_the_object_of_a_template() {
    let keys = "endpoint_url: URL/x\nbody: { fixed: 1, a: \"{a}\" }\n\
                parameters_schema: { properties: { a: {}, b: { default: 7 } } }";
    assert_eq!(sent(keys, json!({ "a": "x" })).await.body, r#"{"fixed":1,"a":"x","b":7}"#);
}

#[tokio::test]
async fn credentials_travel_in_their_header() {
    for (auth, header, value) in [
        ("{ type: bearer, token_env_var: API_TOKEN }", "authorization", "Bearer hunter2hunter2"),
        ("{ token: \"${file:token}\" }", "authorization", "Bearer from-a-file"),
        (
            "{ type: basic, username: me, password_env_var: API_TOKEN }",
            "authorization",
            "Basic bWU6aHVudGVyMmh1bnRlcjI=",
        ),
        ("{ type: header, name: X-Key, value: \"${API_TOKEN}\" }", "x-key", "hunter2hunter2"),
    ] {
        let request = sent(&format!("endpoint_url: URL/x\nauth: {auth}"), json!({})).await;
        assert_eq!(request.header(header), Some(value), "{auth}");
    }
}

#[tokio::test]
async fn a_line_break_never_gets_into_a_header() {
    let peer = agreeable().await;
    let harness =
        tool(&peer, "endpoint_url: URL/x\nheaders: { X-A: \"a {a}\" }\nparams: { b: header }");
    for arguments in [
        json!({ "a": "1\r\nX-Evil: 1" }),
        json!({ "a": "1\n" }),
        json!({ "a": "1", "b": "\0" }),
        json!({ "a": "1", "b": ["\u{7f}", "\r"], "c": 1 }),
    ] {
        let outcome = harness.call("t", arguments.clone()).await;
        if arguments.get("c").is_none() {
            failed(outcome, ErrorKind::Usage, "contains a control character");
        }
    }
    for request in peer.requests() {
        assert!(request.header("x-evil").is_none());
    }
}

#[tokio::test]
async fn a_preview_is_the_request_without_secrets() {
    let harness = harness(
        "https://api.example.com",
        "endpoint_url: URL/v1/{city}?key=${API_TOKEN}\n\
         method: POST\n\
         headers: { Authorization: \"Bearer ${API_TOKEN}\", X-Key: literal-secret, X-Session: \"{context.session_id}\" }\n\
         body: { city: \"{city}\", token: \"${API_TOKEN}\" }",
    );
    let provider = &harness.providers[0];
    let name = harness.definition("t").name;
    let Value::Object(arguments) = json!({ "city": "Bern" }) else { unreachable!() };
    let preview = provider.preview(&crate::model::ToolCall { name, arguments }).await.unwrap();
    insta::assert_snapshot!(format!("{}\n{:#}", preview.summary, preview.request), @r#"
    sends POST https://api.example.com/v1/Bern?key=***(API_TOKEN)
    {
      "method": "POST",
      "url": "https://api.example.com/v1/Bern?key=***(API_TOKEN)",
      "headers": {
        "accept": "application/json, text/*;q=0.9, */*;q=0.5",
        "authorization": "Bearer ***(API_TOKEN)",
        "x-key": "***",
        "x-session": "{context.session_id}",
        "content-type": "application/json"
      },
      "body": {
        "city": "Bern",
        "token": "***(API_TOKEN)"
      }
    }
    "#);
}

#[tokio::test]
async fn connections_are_kept() {
    let peer = agreeable().await;
    let harness = tool(&peer, "endpoint_url: URL/x");
    for _ in 0..3 {
        harness.call("t", json!({})).await.unwrap();
    }
    let connections: Vec<usize> =
        peer.requests().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0, 0, 0]);
}

#[tokio::test]
async fn redirects_stay_within_the_origin() {
    let canary = agreeable().await;
    let elsewhere = format!("Location: {}", canary.url("/stolen"));
    let peer = TestServer::start(move |_, request| match request.path.as_str() {
        "/kept" => TestResponse::full("307 Temporary Redirect", &["Location: /there"], ""),
        "/moved" => TestResponse::full("302 Found", &["Location: /there"], ""),
        "/loop" => TestResponse::full("308 Permanent Redirect", &["Location: /loop"], ""),
        "/away" => TestResponse::full("307 Temporary Redirect", &[elsewhere.as_str()], ""),
        "/user" => TestResponse::full("302 Found", &["Location: //me:you@127.0.0.1/"], ""),
        _ => TestResponse::json("1"),
    })
    .await;
    let call = |path: &'static str, more: &'static str| {
        let keys = format!("endpoint_url: URL{path}\nauth: {{ token_env_var: API_TOKEN }}\n{more}");
        let harness = tool(&peer, &keys);
        async move { harness.call("t", json!({})).await }
    };
    assert!(call("/kept", "").await.unwrap().success);
    assert!(call("/moved", "").await.unwrap().success);
    assert!(call("/kept", "method: POST\nbody: { a: 1 }").await.unwrap().success);
    let last = peer.requests().pop().unwrap();
    assert_eq!((last.line(), last.body), ("POST /there".to_owned(), r#"{"a":1}"#.to_owned()));
    failed(call("/moved", "method: POST").await, ErrorKind::Denied, "redirects to");
    failed(call("/away", "").await, ErrorKind::Denied, "/stolen");
    failed(call("/user", "").await, ErrorKind::Denied, "redirects to");
    failed(call("/loop", "").await, ErrorKind::Protocol, "in a circle");
    assert_eq!(canary.requests().len(), 0, "the other origin must not be asked");
}
