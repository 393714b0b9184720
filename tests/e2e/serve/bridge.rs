//! What servers say and ask during requests of clients, across the protocol's eras.

use serde_json::{Value, json};

use super::client::{
    Lines, Served, TOKEN, Wire, ask_stateless, outcome, outcome_in, post_with_meta, stateless_meta,
    stream_stateless,
};
use crate::support::{Fixture, Place, Sandbox, log_events};

const ERAS: [&str; 2] = ["legacy", "modern"];

/// A server of this era behind `toolhost serve`, and where its clients find it.
struct Gateway {
    served: Served,
    socket: String,
    http: String,
    _room: Sandbox,
}

impl Gateway {
    fn start(era: &str) -> Self {
        let room = Sandbox::new();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance/server.py");
        let entry = json!({ "command": "python3", "args": [script, era] });
        let file = room.path("home/fixture.json").display().to_string();
        std::fs::write(&file, json!({ "mcp_servers": { "fixture": entry } }).to_string()).unwrap();
        let socket = room.path("run/s").display().to_string();
        let words = ["--mcp", &file, "--unix", &socket, "--http", "127.0.0.1:0", "--bare-names"];
        let mut served = Served::start(&room, &words);
        assert_eq!(served.address(), socket);
        let http = served.address();
        Self { served, socket, http, _room: room }
    }

    fn client(&self, capabilities: Value) -> impl Wire {
        let mut client = Lines::connect(&self.socket);
        client.initialize(capabilities);
        client
    }

    fn end(self) {
        assert_eq!(self.served.end(), Some(143));
    }
}

fn send(client: &mut impl Wire, id: u64, method: &str, params: &Value) {
    client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
}

/// The messages up to the response with this id, which is the last.
fn until_response(client: &mut impl Wire, id: u64) -> Vec<Value> {
    let mut said = Vec::new();
    loop {
        said.push(client.next().expect("the server hung up"));
        if said.last().is_some_and(|m| m["id"] == id && m.get("method").is_none()) {
            return said;
        }
    }
}

/// Waits for a question, and answers it.
fn answer(client: &mut impl Wire, method: &str, result: &Value) -> Value {
    let question =
        std::iter::from_fn(|| client.next()).find(|message| message["method"] == method).unwrap();
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }));
    question
}

fn lines(said: &[Value]) -> Vec<&str> {
    let logged = said.iter().filter(|message| message["method"] == "notifications/message");
    logged.map(|line| line["params"]["data"].as_str().unwrap()).collect()
}

const LOGGED: [&str; 3] =
    ["Tool execution started", "Tool processing data", "Tool execution completed"];

#[test]
fn log_lines_of_a_call_reach_its_client_alone_at_the_level_it_chose() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    for era in ERAS {
        let gateway = Gateway::start(era);
        let mut caller = gateway.client(json!({}));
        let mut other = gateway.client(json!({}));
        let call = json!({ "name": "test_tool_with_logging", "arguments": {} });
        for (id, level, heard) in
            [(1, "info", &LOGGED[..]), (3, "error", &[]), (5, "debug", &LOGGED)]
        {
            caller.ask(id, "logging/setLevel", json!({ "level": level }));
            send(&mut caller, id + 1, "tools/call", &call);
            let said = until_response(&mut caller, id + 1);
            assert_eq!(lines(&said), heard, "{era} {level} {said:?}");
        }
        send(&mut other, 1, "ping", &json!({}));
        assert_eq!(lines(&until_response(&mut other, 1)), [""; 0], "{era}");
        // On the stream of the request, and only when it asks for lines.
        for (level, heard) in [(None, &[][..]), (Some("info"), &LOGGED), (Some("alert"), &[])] {
            let said =
                stream_stateless(&gateway.http, "tools/call", call.clone(), &json!({}), level);
            assert_eq!(lines(&said), heard, "{era} {level:?} {said:?}");
            assert_eq!(outcome(said.last().unwrap())["content"][0]["text"], "logged");
        }
        drop((caller, other));
        gateway.end();
    }
}

#[test]
fn what_a_server_asks_for_a_prompt_reaches_the_client_that_wants_it() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    for era in ERAS {
        let gateway = Gateway::start(era);
        let get = json!({ "name": "fixture-test_input_required_result_prompt" });
        let accept = json!({ "action": "accept", "content": { "context": "a test" } });
        let mut client = gateway.client(json!({ "elicitation": {} }));
        send(&mut client, 1, "prompts/get", &get);
        let question = answer(&mut client, "elicitation/create", &accept);
        assert_eq!(question["params"]["message"], "What context?", "{era}");
        let filled = client.response(1);
        assert_eq!(filled["result"]["messages"][0]["content"]["text"], "with context", "{filled}");

        let asked = ask_stateless(&gateway.http, "prompts/get", get.clone());
        assert_eq!(asked["resultType"], "input_required", "{era} {asked}");
        let (key, request) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert_eq!(request["params"]["message"], "What context?", "{asked}");
        let mut retry = get.clone();
        retry["requestState"] = asked["requestState"].clone();
        retry["inputResponses"] = json!({ key: accept });
        // The state belongs to this prompt, and to no tool of the same name.
        let stolen = ask_stateless(&gateway.http, "tools/call", retry.clone());
        assert_eq!(stolen["code"], -32602, "{stolen}");
        let filled = ask_stateless(&gateway.http, "prompts/get", retry);
        assert_eq!(filled["messages"][0]["content"]["text"], "with context", "{era} {filled}");
        drop(client);
        gateway.end();
    }
}

#[test]
fn the_roots_of_a_client_answer_the_servers_of_its_own_calls() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    for era in ERAS {
        let gateway = Gateway::start(era);
        let call = json!({ "name": "test_input_required_result_list_roots", "arguments": {} });
        let roots = json!({ "roots": [{ "uri": "file:///home/ada/work", "name": "work" }] });
        let mut client = gateway.client(json!({ "roots": {} }));
        send(&mut client, 1, "tools/call", &call);
        answer(&mut client, "roots/list", &roots);
        let told = client.response(1);
        assert!(told.to_string().contains("file:///home/ada/work"), "{era} {told}");

        // One that has none is not asked, and what another one has is none of its business.
        let mut rootless = gateway.client(json!({}));
        send(&mut rootless, 1, "tools/call", &call);
        let said = until_response(&mut rootless, 1);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(!said[0].to_string().contains("ada"), "{era} {said:?}");

        let asked = |params: Value| {
            let said = stream_stateless(
                &gateway.http,
                "tools/call",
                params,
                &json!({ "roots": {} }),
                None,
            );
            outcome(said.last().unwrap())
        };
        let first = asked(call.clone());
        let (key, request) = first["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert_eq!(request["method"], "roots/list", "{era} {first}");
        let mut retry = call.clone();
        retry["requestState"] = first["requestState"].clone();
        retry["inputResponses"] = json!({ key: roots });
        let told = asked(retry);
        assert!(told.to_string().contains("file:///home/ada/work"), "{era} {told}");
        drop((client, rootless));
        gateway.end();
    }
}

#[test]
fn a_server_is_told_what_the_client_behind_a_call_can_answer() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let gateway = Gateway::start("modern");
    let ask = |name: &str, capabilities: Value| {
        let call = json!({ "name": name, "arguments": {} });
        let said = stream_stateless(&gateway.http, "tools/call", call, &capabilities, None);
        outcome(said.last().unwrap())
    };
    let refused = ask("test_missing_capability", json!({ "elicitation": {} }));
    assert_eq!(refused["code"], -32021, "{refused}");
    assert_eq!(refused["data"]["requiredCapabilities"], json!({ "sampling": {} }), "{refused}");
    let done = ask("test_missing_capability", json!({ "sampling": {} }));
    assert_eq!(done["content"][0]["text"], "ok", "{done}");
    let methods = |asked: &Value| -> Vec<String> {
        let requests = asked["inputRequests"].as_object().unwrap().values();
        requests.map(|request| request["method"].as_str().unwrap().to_owned()).collect()
    };
    let name = "test_input_required_result_capabilities";
    assert_eq!(methods(&ask(name, json!({ "sampling": {} }))), ["sampling/createMessage"]);
    assert_eq!(methods(&ask(name, json!({ "elicitation": {} }))), ["elicitation/create"]);
    gateway.end();
}

#[test]
fn answers_that_come_without_a_state_are_taken_for_the_questions_of_their_names() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let gateway = Gateway::start("modern");
    let call = |answer: Value| {
        let name = "test_input_required_result_elicitation";
        let answers = json!({ "user_name": answer, "unknown": { "action": "accept" } });
        let call = json!({ "name": name, "arguments": {}, "inputResponses": answers });
        ask_stateless(&gateway.http, "tools/call", call)
    };
    let done = call(json!({ "action": "accept", "content": { "name": "Ada" } }));
    assert!(done["content"][0]["text"].as_str().unwrap().contains("Ada"), "{done}");
    // What is no answer is asked for again.
    let again = call(json!(12345));
    assert!(again["code"] == -32602 || again["resultType"] == "input_required", "{again}");
    gateway.end();
}

#[test]
fn a_server_s_task_is_waited_for_where_its_client_takes_none() {
    for era in ERAS {
        let room = Sandbox::new();
        let fixture = Fixture::fault(Place::Stdio, "asks-a-person", era, &room.log("srv"));
        room.server_with("srv", &fixture, "");
        let socket = room.path("run/s").display().to_string();
        let words = ["--mcp", "mcp.yaml", "--unix", &socket, "--http", "127.0.0.1:0"];
        let mut served = Served::start(&room, &words);
        served.address();
        let http = served.address();
        let mut client = Lines::connect(&socket);
        client.initialize(json!({ "elicitation": {}, "tasks": { "list": {}, "cancel": {} } }));
        let listed = client.ask(1, "tools/list", json!({}))["result"]["tools"].to_string();
        assert!(listed.contains("srv-task") && !listed.contains("taskSupport"), "{listed}");
        // A client may ask for a task of its own, which a server without them takes for a call.
        let call =
            json!({ "name": "srv-task", "arguments": { "what": "t-1" }, "task": { "ttl": 9 } });
        send(&mut client, 2, "tools/call", &call);
        if era == "modern" {
            let ada = json!({ "action": "accept", "content": { "name": "Ada" } });
            answer(&mut client, "elicitation/create", &ada);
        }
        let said = until_response(&mut client, 2);
        let result = &said.last().unwrap()["result"];
        let expected = if era == "legacy" { "the task is done" } else { "Ada" };
        assert!(result["content"].to_string().contains(expected), "{era}: {result}");
        assert!(result.get("task").is_none(), "{era}: {result}");
        for (id, method, code) in
            [(3, "tasks/get", -32021), (4, "tasks/list", -32601), (5, "tasks/result", -32601)]
        {
            let refused = client.ask(id, method, json!({ "taskId": "t-1" }));
            assert_eq!(refused["error"]["code"], code, "{refused}");
        }
        // A client of the newer era that takes none.
        let forever = json!({ "name": "srv-task", "arguments": { "what": "t-2" } });
        let waited = stream_stateless(&http, "tools/call", forever, &json!({}), None);
        let waited = outcome(waited.last().unwrap());
        assert_ne!(waited["resultType"], "task", "{era}: {waited}");
        // A client that gives up cancels the task behind its call.
        let forever = json!({ "name": "srv-task", "arguments": { "what": "forever" },
                              "_meta": { "progressToken": "p" } });
        send(&mut client, 6, "tools/call", &forever);
        let is_sent = |client: &mut dyn Wire, method: &str| {
            (0..100_000).any(|_| {
                client.ask(7, "ping", json!({}));
                let log = log_events(&room.log("srv"), "message");
                log.iter().any(|message| {
                    message["method"] == method && message["params"]["taskId"] == "forever"
                })
            })
        };
        assert!(is_sent(&mut client, "tasks/get"), "{era}: the task was not begun");
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
                             "params": { "requestId": 6 } }));
        assert!(is_sent(&mut client, "tasks/cancel"), "{era}: the task goes on");
        drop(client);
        assert_eq!(served.end(), Some(143));
    }
}

/// A request of a client that takes tasks and can fill forms.
fn with_tasks(http: &str, token: &str, method: &str, params: Value) -> Value {
    let extensions = json!({ "io.modelcontextprotocol/tasks": {} });
    let meta = stateless_meta(&json!({ "elicitation": {}, "extensions": extensions }));
    outcome_in(&post_with_meta(http, token, method, params, &meta).1)
}

#[test]
fn a_task_ends_with_the_connection_of_its_client() {
    let room = Sandbox::new();
    let fixture = Fixture::fault(Place::Stdio, "asks-a-person", "modern", &room.log("srv"));
    room.server_with("srv", &fixture, "");
    let socket = room.path("run/s").display().to_string();
    let mut served = Served::start(&room, &["--mcp", "mcp.yaml", "--unix", &socket]);
    served.address();
    let extensions = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let call = json!({ "name": "srv-task", "arguments": { "what": "forever" },
                       "_meta": stateless_meta(&extensions) });
    let mut client = Lines::connect(&socket);
    let task = client.ask(1, "tools/call", call)["result"].clone();
    assert_eq!(task["resultType"], "task", "{task}");
    drop(client);
    let mut other = Lines::connect(&socket);
    let get = json!({ "taskId": task["taskId"], "_meta": stateless_meta(&extensions) });
    let is_cancelled = (2..100_000).any(|id| {
        let gone = other.ask(id, "tasks/get", get.clone());
        assert_eq!(gone["error"]["code"], -32602, "{gone}");
        log_events(&room.log("srv"), "message").iter().any(|message| {
            message["method"] == "tasks/cancel" && message["params"]["taskId"] == "forever"
        })
    });
    assert!(is_cancelled, "the server's task goes on");
    drop(other);
    assert_eq!(served.end(), Some(143));
}

#[test]
fn a_server_s_task_is_a_task_of_the_client_that_takes_tasks_and_of_no_other() {
    for era in ERAS {
        let room = Sandbox::new();
        let fixture = Fixture::fault(Place::Stdio, "asks-a-person", era, &room.log("srv"));
        room.server_with("srv", &fixture, "");
        let token = ["--mcp", "mcp.yaml", "serve", "token", "issue", "other"];
        let other = room.toolhost(token).go().exits(0).out().trim().to_owned();
        let mut served = Served::start(&room, &["--mcp", "mcp.yaml", "--http", "127.0.0.1:0"]);
        let http = served.address();
        let ask = |method: &str, params: Value| with_tasks(&http, TOKEN, method, params);
        let begin = |what: &str| {
            let call = json!({ "name": "srv-task", "arguments": { "what": what } });
            let task = ask("tools/call", call);
            assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")));
            assert!(task["ttlMs"].as_u64().unwrap() > 0, "{era}: {task}");
            let id = task["taskId"].as_str().unwrap().to_owned();
            assert_ne!(id, what, "the server's own name for it");
            // What the name of the request's header is.
            json!({ "taskId": id, "name": id })
        };
        let until = |task: &Value, status: &str| {
            let mut looks = (0..100_000).map(|_| ask("tasks/get", task.clone()));
            looks.find(|now| now["status"] == status).unwrap()
        };
        let has_cancelled = |what: &str| {
            log_events(&room.log("srv"), "message").iter().any(|message| {
                message["method"] == "tasks/cancel" && message["params"]["taskId"] == what
            })
        };

        let task = begin("t-1");
        // Another client that knows its name cannot read it, answer for it, or end it.
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let mut params = task.clone();
            if method == "tasks/update" {
                params["inputResponses"] = json!({ "input-1": { "action": "decline" } });
            }
            let refused = with_tasks(&http, &other, method, params);
            assert_eq!(refused["code"], -32602, "{era}: {refused}");
        }
        if era == "modern" {
            let waits = until(&task, "input_required");
            let (name, asked) = waits["inputRequests"].as_object().unwrap().iter().next().unwrap();
            assert_eq!(asked["method"], "elicitation/create", "{waits}");
            let ada = json!({ "action": "accept", "content": { "name": "Ada" } });
            let mut answers = task.clone();
            answers["inputResponses"] = json!({ name: ada, "unknown": ada });
            let taken = ask("tasks/update", answers);
            assert_eq!(taken["resultType"], "complete", "{taken}");
        }
        let done = until(&task, "completed");
        let expected = if era == "legacy" { "the task is done" } else { "Ada" };
        assert!(done["result"]["content"].to_string().contains(expected), "{era}: {done}");
        // The result stays.
        assert_eq!(until(&task, "completed")["result"], done["result"]);
        assert!(!has_cancelled("t-1"), "{era}");

        let forever = begin("forever");
        assert_eq!(ask("tasks/get", forever.clone())["status"], "working");
        ask("tasks/cancel", forever.clone());
        until(&forever, "cancelled");
        let mut looks =
            (0..100_000).map(|_| (ask("tasks/get", forever.clone()), has_cancelled("forever")));
        assert!(looks.any(|(_, is_cancelled)| is_cancelled), "{era}: the server's task goes on");

        let unknown = ask("tasks/get", json!({ "taskId": "t-1", "name": "t-1" }));
        assert_eq!(unknown["code"], -32602, "{unknown}");
        assert_eq!(served.end(), Some(143));
    }
}
