//! Credentials by handle, and what a server's entry permits: only the wire sees a value, and what is
//! not permitted is neither listed nor done.

use serde_json::json;

use crate::support::{Listener, Sandbox};

const VALUE: &str = "s3cr3t-Value-9";

fn config(room: &Sandbox, name: &str, text: &str) {
    std::fs::write(room.path(&format!("config/toolhost/{name}")), text).unwrap();
}

/// The user's handles, of which one is named by nobody.
fn handles() -> String {
    "credentials:\n  api: { type: bearer, value: \"${API_TOKEN}\", variable: TOOL_API_TOKEN }\n  \
     maps: { type: api_key, header: X-Maps, value: \"${API_TOKEN}\" }\n  \
     other: { type: bearer, value: \"${OTHER_TOKEN}\" }\n"
        .to_owned()
}

#[test]
fn a_credential_reaches_the_wire_of_the_entry_that_names_it_and_nothing_else() {
    let (room, listener) = (Sandbox::new(), Listener::http());
    let address = listener.authority();
    room.file(
        "tools.yaml",
        &format!(
            "{}tools:\n  - {{ name: get, kind: http, endpoint_url: 'http://{address}/a', credentials: [api] }}\n  \
             - {{ name: mapped, kind: http, endpoint_url: 'http://{address}/b', credentials: [maps] }}\n  \
             - {{ name: bare, kind: http, endpoint_url: 'http://{address}/c' }}\n  \
             - {{ name: run, command: [sh, -c, 'echo \"got $TOOL_API_TOKEN.\"; env'], credentials: [api] }}\n",
            handles()
        ),
    );
    let run = |words: &[&str]| {
        let words = [&["--tools", "tools.yaml"], words].concat();
        let finished = room.toolhost(words).env("API_TOKEN", VALUE).check();
        let shown = finished.out() + &finished.err();
        assert!(!shown.contains(VALUE), "{finished}");
        finished
    };
    run(&["call", "get"]).exits(0);
    run(&["call", "mapped"]).exits(0);
    run(&["call", "bare"]).exits(0);
    let heard = listener.requests();
    let head = |path: &str| {
        let found = heard.iter().find(|request| request.contains(path)).unwrap();
        found.to_ascii_lowercase()
    };
    let value = VALUE.to_ascii_lowercase();
    assert!(head("/a ").contains(&format!("authorization: bearer {value}")), "{heard:?}");
    assert!(head("/b ").contains(&format!("x-maps: {value}")), "{heard:?}");
    assert!(!head("/c ").contains(&value), "{heard:?}");
    let finished = run(&["call", "run"]);
    let out = finished.exits(0).out();
    assert!(out.contains("got ${") && !out.contains("OTHER"), "{finished}");
    // Whoever looks sees the handle.
    let seen = run(&["inspect", "get", "--json"]).exits(0).json();
    assert_eq!(seen["credentials"], json!([{ "handle": "api", "type": "bearer" }]));
    run(&["inspect", "run"]).exits(0).says(&[]);
    assert!(run(&["inspect", "run"]).out().contains("api (bearer)"));
    assert!(run(&["call", "get", "--dry-run"]).out().contains("***(credential:api)"));
    let shown = run(&["config", "show"]);
    assert!(shown.exits(0).out().contains("credentials.api.value"), "{shown}");
    assert!(shown.out().contains("${API_TOKEN}"), "{shown}");
    for (path, bytes) in room.records() {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(VALUE), "{}", path.display());
    }
}

#[test]
fn a_server_gets_its_credentials_and_shows_their_handles() {
    let room = Sandbox::new();
    let script = room.path("work/server.sh");
    let seen = room.path("work/seen");
    std::fs::write(
        &script,
        format!("env > {}\nexec \"$TOOLHOST_BINARY\" demo-server\n", seen.display()),
    )
    .unwrap();
    room.file(
        "mcp.yaml",
        &format!(
            "{}mcp_servers:\n  with:\n    command: [sh, {}]\n    env: {{ TOOLHOST_BINARY: \"${{TOOLHOST}}\" }}\n    credentials: [api]\n",
            handles(),
            script.display()
        ),
    );
    let run = |words: &[&str]| {
        let finished = room.with_servers(words.iter().copied()).env("API_TOKEN", VALUE).check();
        assert!(!(finished.out() + &finished.err()).contains(VALUE), "{finished}");
        finished
    };
    run(&["call", "with-echo", "message=hi"]).exits(0);
    let environment = std::fs::read_to_string(&seen).unwrap();
    assert!(environment.contains(&format!("TOOL_API_TOKEN={VALUE}\n")), "{environment}");
    assert!(!environment.contains("\nAPI_TOKEN="), "{environment}");
    let servers = run(&["servers", "--json"]).exits(0).json();
    let shown = &servers["servers"][0]["credential_handles"];
    assert_eq!(*shown, json!([{ "handle": "api", "type": "bearer" }]));
    assert!(run(&["inspect", "with"]).exits(0).out().contains("the credential api (bearer)"));
    // What is not there is told with what is.
    room.file(
        "mcp.yaml",
        &format!("{}mcp_servers:\n  with: {{ command: x, credentials: [apl] }}\n", handles()),
    );
    run(&["call", "with-echo"]).exits(9).says(&["unknown credential 'apl'", "did you mean 'api'"]);
}

#[test]
fn a_project_that_names_a_credential_of_the_user_is_asked_about() {
    let room = Sandbox::ordinary();
    let seen = room.path("work/seen");
    config(&room, "mcp.yaml", &handles());
    room.file(
        "tools.yaml",
        &format!(
            "tools:\n  - {{ name: run, command: [sh, -c, 'echo \"$TOOL_API_TOKEN\" > {}'], credentials: [api] }}\n  \
             - {{ name: sum, module: builtin.calculator, function: calculate, credentials: [api] }}\n",
            seen.display()
        ),
    );
    let run = |words: &[&str]| room.toolhost(words.iter().copied()).env("API_TOKEN", VALUE).check();
    run(&["call", "run"]).exits(6);
    // It reaches for a secret, whatever its kind is.
    run(&["call", "sum", "expression=1"]).exits(6);
    let question = run(&["trust"]);
    let said = question.out() + &question.err();
    assert!(said.contains("uses your credential 'api' (bearer, ${API_TOKEN})"), "{question}");
    assert!(!seen.exists() && !said.contains(VALUE));
    run(&["trust", "--yes"]).exits(0);
    run(&["call", "run"]).exits(0);
    assert_eq!(std::fs::read_to_string(&seen).unwrap(), format!("{VALUE}\n"));
    run(&["call", "sum", "expression=1"]).exits(9).says(&["this kind of entry takes none"]);
    // Another definition under the same handle is asked about again.
    config(&room, "mcp.yaml", &handles().replace("${API_TOKEN}", "${OTHER_TOKEN}"));
    run(&["call", "run"]).exits(6);
    let question = run(&["trust"]);
    let said = question.out() + &question.err();
    assert!(said.contains("uses your credential 'api' (bearer, ${OTHER_TOKEN})"), "{question}");
}

#[test]
fn an_entry_of_the_user_never_gets_a_credential_of_a_project() {
    let room = Sandbox::ordinary();
    config(
        &room,
        "tools.yaml",
        "tools: [{ name: mine, command: [echo, hi], credentials: [planted] }]\n",
    );
    room.file(
        "tools.yaml",
        "credentials: { planted: { type: env, variable: APP_X, value: planted-by-project } }\ntools: []\n",
    );
    let finished = room.toolhost(["call", "mine"]).env("TOOLHOST_TRUST", "1").check();
    finished.exits(9).says(&["unknown credential 'planted'"]);
}

#[test]
fn what_is_not_permitted_is_neither_listed_nor_done() {
    let room = Sandbox::new();
    let entry = |permissions: &str| {
        let text = format!(
            "mcp_servers:\n  demo: {{ command: \"${{TOOLHOST}}\", args: [demo-server], permissions: {permissions} }}\n"
        );
        room.file("mcp.yaml", &text);
    };
    let run = |words: &[&str]| room.with_servers(words.iter().copied()).check();
    entry("{ tools: [echo, 'ad*'], prompts: [], resources: ['demo://readme'] }");
    let tools = run(&["list", "-o", "names"]);
    assert_eq!(tools.exits(0).out(), "demo-echo\ndemo-add\n", "{tools}");
    run(&["call", "demo-echo", "message=hi"]).exits(0);
    for name in ["demo-fail", "fail"] {
        run(&["call", name]).exits(6).says(&["the tool 'fail' is not permitted", "'permissions'"]);
    }
    run(&["call", "demo-nothing"]).exits(2);
    assert_eq!(run(&["prompts", "list", "--json"]).exits(0).json()["prompts"], json!([]));
    let greet = ["prompts", "get", "demo-greet", "name=Ada"];
    run(&greet).exits(6).says(&["the prompt 'greet' is not permitted"]);
    run(&["resources", "read", "demo://readme"]).exits(0);
    run(&["resources", "read", "demo://uptime"]).exits(6).says(&["is not permitted"]);
    run(&["resources", "read", "demo://uptime", "--server", "demo"]).exits(6);
    run(&["resources", "read", "demo://notes/x", "--server", "demo"]).exits(6);
    let seen = run(&["servers", "--json"]).exits(0).json();
    let permissions = &seen["servers"][0]["permissions"];
    assert_eq!(permissions["tools"], json!(["echo", "ad*"]));
    assert_eq!((&permissions["prompts"], &permissions["network"]), (&json!([]), &json!(null)));
    assert!(run(&["inspect", "demo"]).exits(0).out().contains("tools: echo, ad*"));
    entry("{ tools: [], prompts: [], resources: [] }");
    run(&["list"]).exits(9).says(&["permit nothing", "mcp.yaml:2"]);
}

#[test]
fn a_server_without_the_network_cannot_use_it() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let (room, listener) = (Sandbox::new(), Listener::http());
    let (host, port) = {
        let address = listener.authority();
        let (host, port) = address.split_once(':').unwrap();
        (host.to_owned(), port.to_owned())
    };
    let script = "import socket,os,sys\ntry:\n    socket.create_connection((sys.argv[1], int(sys.argv[2])), 5).close()\n    said = 'reached'\nexcept OSError as error:\n    said = 'kept'\nopen(sys.argv[3], 'w').write(said)\nos.execv(sys.argv[4], [sys.argv[4], 'demo-server'])\n";
    room.file("server.py", script);
    for (permissions, said) in
        [("{}", "reached"), ("{ network: true }", "reached"), ("{ network: false }", "kept")]
    {
        let seen = room.path("work/seen");
        room.file(
            "mcp.yaml",
            &format!(
                "mcp_servers:\n  srv: {{ command: [python3, server.py, '{host}', '{port}', '{}', \"${{TOOLHOST}}\"], permissions: {permissions} }}\n",
                seen.display()
            ),
        );
        // It may still write where it likes: nothing but the network is kept from it.
        room.with_servers(["call", "srv-echo", "message=hi"]).check().exits(0);
        assert_eq!(std::fs::read_to_string(&seen).unwrap(), said, "{permissions}");
    }
    let shown = room.with_servers(["inspect", "srv"]).check();
    assert!(shown.exits(0).out().contains("network: no"), "{shown}");
}
