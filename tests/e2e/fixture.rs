//! The misbehaving server itself: correct when nothing is to go wrong, in each era and place.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::support::{Fixture, Place, Sandbox, example, log_events};

/// A client of a few lines: one request, one answer.
enum Driver {
    Stdio { input: ChildStdin, output: BufReader<ChildStdout>, child: std::process::Child },
    Http { address: String },
}

impl Driver {
    fn new(fixture: &Fixture) -> Self {
        if let Some(url) = fixture.url() {
            let address = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
            return Self::Http { address: address.to_owned() };
        }
        let mut command = fixture.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self::Stdio { input: child.stdin.take().unwrap(), output, child }
    }

    fn ask(&mut self, message: &Value) -> Value {
        match self {
            Self::Stdio { input, output, .. } => {
                writeln!(input, "{message}").unwrap();
                let mut line = String::new();
                output.read_line(&mut line).unwrap();
                serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
            }
            Self::Http { address } => {
                let body = message.to_string();
                let mut stream = TcpStream::connect(address.as_str()).unwrap();
                let length = body.len();
                write!(stream, "POST /mcp HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{body}")
                    .unwrap();
                stream.shutdown(std::net::Shutdown::Write).unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).unwrap();
                let (head, body) = answer.split_once("\r\n\r\n").unwrap();
                assert!(head.starts_with("HTTP/1.1 200"), "{head}");
                serde_json::from_str(body).unwrap()
            }
        }
    }

    fn end(self) {
        if let Self::Stdio { input, mut child, .. } = self {
            drop(input);
            assert_eq!(child.wait().unwrap().code(), Some(0));
        }
    }
}

fn request(id: u64, method: &str, mut params: Value, modern: bool) -> Value {
    if modern {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

#[test]
fn without_a_fault_it_is_a_correct_server_in_each_era_and_place() {
    for place in [Place::Stdio, Place::Http] {
        for (era, modern) in [("legacy", false), ("modern", true), ("both", false), ("both", true)]
        {
            let room = Sandbox::new();
            let log = room.log("server");
            let fixture = Fixture::fault(place, "none", era, &log);
            let mut driver = Driver::new(&fixture);
            let mut id = 0;
            let mut ask = |method: &str, params: Value| {
                id += 1;
                let answer = driver.ask(&request(id, method, params, modern));
                assert_eq!(answer["id"], id);
                assert_eq!(answer["jsonrpc"], "2.0");
                answer
            };
            let opening = if modern {
                ask("server/discover", json!({}))["result"]["supportedVersions"][0].clone()
            } else {
                let client = json!({ "name": "test", "version": "0" });
                let params = json!({
                    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client,
                });
                ask("initialize", params)["result"]["protocolVersion"].clone()
            };
            assert_eq!(opening, if modern { "2026-07-28" } else { "2025-11-25" });
            let tools = ask("tools/list", json!({}))["result"]["tools"].clone();
            assert_eq!(tools.as_array().unwrap().len(), 3);
            let arguments = json!({ "name": "echo", "arguments": { "message": "hi" } });
            let echo = ask("tools/call", arguments)["result"].clone();
            assert_eq!(echo["content"][0]["text"], "hi");
            assert_eq!(echo.get("resultType").is_some(), modern);
            let arguments = json!({ "name": "add", "arguments": { "a": 1, "b": 2.5 } });
            let add = ask("tools/call", arguments)["result"].clone();
            assert_eq!(add["structuredContent"]["sum"], 3.5);
            assert_eq!(ask("nonsense", json!({}))["error"]["code"], -32601);
            driver.end();
            assert_eq!(log_events(&log, "message").len(), 5, "{place:?} {era}");
        }
    }
}

#[test]
fn an_era_refuses_the_words_of_the_other() {
    let room = Sandbox::new();
    for (era, method) in [("legacy", "server/discover"), ("modern", "initialize")] {
        let fixture = Fixture::fault(Place::Stdio, "none", era, &room.log(era));
        let mut driver = Driver::new(&fixture);
        let answer = driver.ask(&request(1, method, json!({}), era == "legacy"));
        assert_eq!(answer["error"]["code"], -32601, "{era}");
        driver.end();
    }
}

#[test]
fn the_faults_that_end_the_process_do_so_with_their_status() {
    let room = Sandbox::new();
    for (fault, code) in
        [("exit-at-once", Some(7)), ("exit-zero", Some(0)), ("abort-at-once", None)]
    {
        let fixture = Fixture::fault(Place::Stdio, fault, "legacy", &room.log(fault));
        let mut command = fixture.command();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        assert_eq!(command.status().unwrap().code(), code, "{fault}");
    }
}

#[test]
fn the_faults_of_answers_change_the_answer() {
    let room = Sandbox::new();
    let answer = |fault: &str, method: &str| {
        let fixture = Fixture::fault(Place::Stdio, fault, "legacy", &room.log(fault));
        let mut driver = Driver::new(&fixture);
        let params = json!({ "name": "echo", "arguments": { "message": "hi" } });
        let answer = driver.ask(&request(1, method, params, false));
        driver.end();
        answer
    };
    assert_eq!(answer("wrong-id", "tools/call")["id"], 987_654_321);
    assert_eq!(answer("string-id", "tools/call")["id"], "1");
    assert_eq!(answer("tool-error", "tools/call")["result"]["isError"], true);
    assert_eq!(answer("rpc-error", "tools/call")["error"]["code"], -32050);
    assert_eq!(
        answer("init-ancient-version", "initialize")["result"]["protocolVersion"],
        "1999-01-01"
    );
    assert_eq!(
        answer("one-bad-tool", "tools/list")["result"]["tools"].as_array().unwrap().len(),
        6
    );
    assert_eq!(answer("cursor-loop", "tools/list")["result"]["nextCursor"], "again");
    let evil = answer("ansi-everywhere", "tools/list")["result"]["tools"][0]["title"].to_string();
    assert!(evil.contains("\\u001b"), "{evil}");
}

#[test]
fn every_fault_has_an_expectation_and_the_other_way_round() {
    let output = std::process::Command::new(example("misbehaving_server"))
        .arg("--list-faults")
        .output()
        .unwrap();
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let listed: BTreeSet<(String, String)> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["name"].as_str().unwrap().into(), row["where"].as_str().unwrap().into()))
        .collect();
    assert_eq!(listed, crate::faults::expectations());
}
