//! Whom a project's files can make toolhost contact, and with what.

use std::process::Command;
use std::time::Duration;

use super::{SECRET, asks_for_consent, keeps_the_secret, run, trust, user_file};
use crate::support::{Listener, Sandbox};

/// How long a command may take that is held up by nothing.
const PATIENCE: Duration = Duration::from_secs(10);

/// Fails when anybody was contacted.
#[track_caller]
fn nobody_called(listener: &Listener, what: &str) {
    let requests = listener.requests();
    assert!(requests.is_empty(), "{what}: {requests:?}");
}

#[test]
fn a_root_with_a_variable_tells_no_stranger_its_value() {
    let (room, listener) = (Sandbox::ordinary(), Listener::http());
    let entry =
        format!("{{ url: 'http://{}/', roots: ['https://x/${{CANARY}}'] }}", listener.authority());
    room.file("mcp.yaml", &format!("mcp_servers: {{ stranger: {entry} }}\n"));
    for words in [&["list"][..], &["servers"], &["inspect", "stranger"], &["trace", "stranger"]] {
        let finished = run(&room, words).check();
        keeps_the_secret(&room, &finished);
        nobody_called(&listener, &words.join(" "));
    }
}

#[test]
fn not_even_a_plain_address_of_a_project_is_contacted_before_consent() {
    let (room, listener) = (Sandbox::ordinary(), Listener::http());
    let address = listener.authority();
    room.file("mcp.yaml", &format!("mcp_servers: {{ s: {{ url: 'http://{address}/' }} }}\n"));
    room.file(
        "tools.yaml",
        &format!("tools: [{{ name: t, endpoint_url: 'http://{address}/' }}]\n"),
    );
    for words in [&["list"][..], &["servers"], &["pin"], &["verify"], &["resources", "list"]] {
        run(&room, words).check();
        nobody_called(&listener, &words.join(" "));
    }
    for words in [&["call", "t", "--yes"][..], &["trace", "s"], &["call", "s-echo", "--yes"]] {
        asks_for_consent(&run(&room, words).check());
        nobody_called(&listener, &words.join(" "));
    }
}

#[test]
fn a_default_address_with_a_variable_is_used_by_no_tool_before_consent() {
    let (room, listener) = (Sandbox::ordinary(), Listener::http());
    let document = r#"{"openapi":"3.0.0","info":{"title":"t","version":"1"},"servers":[{"url":"/v1"}],"paths":{"/get":{"get":{"operationId":"get","responses":{}}}}}"#;
    room.file("api.json", document);
    room.file(
        "tools.yaml",
        &format!(
            "defaults: {{ base_url: 'http://{}/${{CANARY}}' }}
tools:
  - {{ name: relative, endpoint_url: /x }}
  - {{ name: hidden, endpoint_url: '/x?next=a://b' }}
  - {{ name: api, openapi: api.json }}
",
            listener.authority()
        ),
    );
    for name in ["relative", "hidden", "get", "api-get"] {
        for more in [&["--yes"][..], &["--dry-run"], &["--yes", "--json"]] {
            let finished = run(&room, &[&["call", name], more].concat()).check();
            keeps_the_secret(&room, &finished);
            nobody_called(&listener, name);
        }
    }
    keeps_the_secret(&room, &run(&room, &["list", "--json"]).check());
    asks_for_consent(&run(&room, &["call", "hidden", "--yes"]).check());
}

#[test]
fn a_login_at_an_untrusted_entry_asks_first_and_fetches_no_issuer() {
    let (room, listener) = (Sandbox::ordinary(), Listener::http());
    let address = listener.authority();
    let auth = format!("{{ type: oauth, issuer: 'http://{address}/${{CANARY}}' }}");
    let entry = format!("{{ url: 'http://{address}/mcp', auth: {auth} }}");
    room.file("mcp.yaml", &format!("mcp_servers: {{ stranger: {entry} }}\n"));
    let finished = run(&room, &["auth", "login", "stranger", "--no-browser"]).check();
    keeps_the_secret(&room, &finished);
    nobody_called(&listener, "auth login");
    asks_for_consent(&finished);
}

/// What a project names as issuer is not what the user wrote: it must be https and public.
#[test]
fn an_issuer_named_by_a_project_may_not_be_private_even_after_consent() {
    let (room, listener) = (Sandbox::ordinary(), Listener::http());
    let address = listener.authority();
    let auth = format!("{{ type: oauth, issuer: 'http://{address}/issuer' }}");
    let entry = format!("{{ url: 'https://192.0.2.1/mcp', auth: {auth} }}");
    room.file("mcp.yaml", &format!("mcp_servers: {{ stranger: {entry} }}\n"));
    trust(&room);
    let finished = run(&room, &["auth", "login", "stranger", "--no-browser"]).check();
    assert_ne!(finished.code, Some(0), "{finished}");
    nobody_called(&listener, "auth login");
}

#[test]
fn a_token_is_not_sent_in_the_clear() {
    let entries = [
        (
            "tools.yaml",
            "tools: [{ name: t, endpoint_url: 'http://192.0.2.1/', auth: { type: bearer, token_env_var: CANARY } }]\n",
            "t",
        ),
        (
            "tools.yaml",
            "tools: [{ name: t, endpoint_url: 'http://192.0.2.1/', headers: { Authorization: 'Bearer ${CANARY}' } }]\n",
            "t",
        ),
        (
            "mcp.yaml",
            "mcp_servers: { s: { url: 'http://192.0.2.1/', auth: { type: bearer, token_env_var: CANARY } } }\n",
            "s-echo",
        ),
        (
            "mcp.yaml",
            "mcp_servers: { s: { url: 'http://192.0.2.1/', headers: { Authorization: 'Bearer ${CANARY}' } } }\n",
            "s-echo",
        ),
    ];
    for (file, text, name) in entries {
        let room = Sandbox::ordinary();
        user_file(&room, file, text);
        let finished = run(&room, &["call", name, "--yes", "--timeout", "2s"]).check();
        assert_eq!(finished.code, Some(9), "{text}\n{finished}");
        keeps_the_secret(&room, &finished);
        // A project cannot say that it does not matter; the user can.
        let careless = text
            .replace("{ name: t,", "{ name: t, insecure: true,")
            .replace("{ s: {", "{ s: { insecure: true,");
        let project = Sandbox::ordinary();
        project.file(file, &careless);
        run(&project, &["trust", "--yes"]).check();
        let finished = run(&project, &["call", name, "--yes", "--timeout", "2s"]).check();
        assert_eq!(finished.code, Some(9), "{careless}\n{finished}");
    }
    // To loopback it goes as it is.
    let (room, listener) = (Sandbox::ordinary(), Listener::http());
    let text = entries[0].1.replace("192.0.2.1", &listener.authority());
    user_file(&room, "tools.yaml", &text);
    run(&room, &["call", "t", "--yes"]).check().exits(0);
    assert!(listener.requests()[0].contains(SECRET), "{:?}", listener.requests());
}

/// A document that never ends, or never begins, is refused; it does not stop everything else.
#[test]
fn a_document_that_is_a_pipe_or_a_device_holds_up_no_command() {
    for named in ["pipe", "/dev/zero", "/dev/stdin", "link-to-pipe", "/proc/self/fd/0"] {
        let room = Sandbox::ordinary();
        let pipe = room.path("work/pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::os::unix::fs::symlink(&pipe, room.path("work/link-to-pipe")).unwrap();
        room.file(
            "tools.yaml",
            &format!(
                "tools: [{{ name: api, openapi: '{named}', base_url: 'http://127.0.0.1:9' }},
  {{ name: sum, module: builtin.calculator, function: calculate }},
  {{ name: other, module: builtin.calculator, function: calculate, parameters_schema: {{ $ref: '{named}' }} }}]\n"
            ),
        );
        for words in
            [&["list"][..], &["call", "sum", "expression=1+1"], &["config", "check"], &["trust"]]
        {
            let finished = run(&room, words).limit(PATIENCE).check();
            assert_ne!(finished.code, Some(1), "{named}\n{finished}");
        }
        run(&room, &["--trust", "list"]).limit(PATIENCE).check();
    }
}
