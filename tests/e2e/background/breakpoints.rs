//! Breakpoints: calls of agents that wait for a person at the console.

use serde_json::{Value, json};

use super::{call, trusted};
use crate::serve::client::{Served, Wire, outcome};
use crate::support::{Pty, Sandbox};

const F5: &str = "\u{1b}[15~";

fn console(room: &Sandbox) -> Pty {
    let mut pty = Pty::console(room, &[], 45, 160);
    pty.expect_shown("attached to the background host");
    pty
}

/// Begins a session as an agent whose MCP server is `toolhost serve`.
fn greet(agent: &mut impl Wire) {
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "claude-code", "version": "1" } });
    agent.ask(0, "initialize", hello);
    agent.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
}

fn begin_call(agent: &mut impl Wire, id: u64, expression: &str) {
    let params = json!({ "name": "sum", "arguments": { "expression": expression },
        "_meta": { "progressToken": id } });
    agent.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
}

/// Waits for the window; keys that come too soon were typed for something else.
fn stopped<'p>(pty: &'p mut Pty, text: &str) -> &'p mut Pty {
    pty.expect_shown("Stopped at a breakpoint").expect_shown(text).expect_shown("    y go on")
}

fn text(answer: &Value) -> &str {
    answer["content"][0]["text"].as_str().unwrap()
}

fn newest_record(room: &Sandbox) -> Value {
    let records = room.toolhost(["audit", "--json"]).go().json();
    records.as_array().unwrap().last().unwrap().clone()
}

fn quit(room: &Sandbox, pty: Pty) {
    let (code, screen) = pty.finish_with("Tools", "q");
    assert_eq!(code, Some(0), "{screen}");
    room.toolhost(["down"]).check().exits(0);
}

#[test]
fn a_call_of_an_agent_stops_and_goes_on_as_a_person_edited_it() {
    let Some(room) = trusted() else { return };
    let missing = room.toolhost(["break", "sum"]).go();
    missing.exits(4).says(&["no background host is running", "'toolhost up' starts one"]);
    room.toolhost(["break", ""]).go().exits(2).says(&["pattern of a breakpoint is empty"]);
    room.toolhost(["up"]).go().exits(0);
    let set = room.toolhost(["break", "su?", "--client", "Claude", "--limit", "20m"]).go();
    set.exits(0).says(&["stop before they are sent", "no console is attached"]);
    let mut pty = console(&room);
    let listed = room.toolhost(["break", "--list", "--json"]).go().json();
    assert_eq!(listed["consoles"], 1);
    assert_eq!(
        listed["breakpoints"],
        json!([{ "pattern": "su?", "client": "Claude", "on": "call", "limit_s": 1200.0, "then": "refuse" }])
    );
    pty.type_keys("/\u{15}sum\r").expect_shown("Arguments  sum").expect_shown(" BREAK ");
    pty.type_keys("\u{1b}").expect_gone("Arguments");
    let mut served = Served::start(&room, &[]);
    let mut agent = served.streams();
    greet(&mut agent);
    begin_call(&mut agent, 1, "6*7");
    let told = agent.next().unwrap();
    assert_eq!(told["method"], "notifications/progress", "{told}");
    stopped(&mut pty, "6*7").expect_shown("claude-code").expect_shown("is refused in 20 min");
    // Calls of others go on meanwhile.
    assert_eq!(call(&room, &["sum", "expression=1+2"]).json()["output"], "3");
    pty.type_keys("e").expect_shown("Stopped at a breakpoint  sum");
    pty.type_keys("\u{15}2+2").expect_shown("2+2").type_keys(F5);
    pty.expect_shown("sum goes on with the edited arguments");
    let answer = outcome(&agent.response(1));
    assert_eq!(text(&answer), "4", "{answer}");
    let record = newest_record(&room);
    assert_eq!(record["arguments"], json!({ "expression": "2+2" }), "{record}");
    assert_eq!(record["decision"], "allowed; edited at the breakpoint 'su?'");
    let stop = &record["breakpoints"][0];
    assert_eq!((&stop["on"], &stop["outcome"]), (&json!("call"), &json!("edited")));
    assert_eq!(stop["arguments_before"], json!({ "expression": "6*7" }));
    assert!(stop["by"].as_str().unwrap().starts_with("console (pid "), "{stop}");
    // A client of the server reaches no rule.
    for change in [json!({ "Remove": null }), json!({ "Set": { "pattern": "*" } })] {
        let query = json!({ "payload": { "Breakpoints": change } });
        let refused = agent.ask(2, "dev.toolhost/query", query);
        assert_eq!(refused["error"]["code"], -32601, "{refused}");
    }
    begin_call(&mut agent, 3, "1/0");
    stopped(&mut pty, "1/0").type_keys("N").expect_shown("gets this reason");
    pty.type_keys("too risky").type_keys(F5).expect_shown("sum was refused");
    let answer = outcome(&agent.response(3));
    assert!(text(&answer).contains("'sum' was refused at a breakpoint: too risky"), "{answer}");
    // What is left for later waits in the inbox, until its caller gives up.
    begin_call(&mut agent, 4, "5");
    stopped(&mut pty, "= \"5\"").type_keys("\u{1b}").expect_shown("sum still waits in the inbox");
    let cancel = json!({ "requestId": 4 });
    agent.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel }));
    pty.expect_shown("the stopped call waits no more");
    drop(agent);
    served.end();
    quit(&room, pty);
}

#[test]
fn a_person_answers_in_the_tool_s_place_or_changes_what_it_answered() {
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    let mut pty = console(&room);
    pty.type_keys("/\u{15}sum\r").expect_shown("Arguments  sum");
    pty.type_keys("\u{1b}").expect_gone("Arguments");
    pty.type_keys("B").expect_shown("calls of sum stop here from now on").expect_shown(" BREAK ");
    let first = room.toolhost(["call", "sum", "expression=6*7"]).start();
    stopped(&mut pty, "6*7").type_keys("r").expect_shown("gets this JSON");
    pty.type_keys("nonsense").type_keys(F5).expect_shown("this is not JSON");
    pty.type_keys("\u{15}{\"n\": 9}").type_keys(F5).expect_shown("sum was answered by you");
    let answered = first.finish();
    answered.exits(0);
    assert_eq!(answered.json(), json!({ "n": 9 }));
    assert_eq!(newest_record(&room)["attempts"], 0);
    pty.type_keys("B").expect_shown("calls of sum stop no more").expect_gone(" BREAK ");
    room.toolhost(["break", "sum", "--on", "result"]).go().exits(0);
    let second = room.toolhost(["call", "sum", "expression=6*7"]).start();
    stopped(&mut pty, "has a result")
        .expect_shown("42")
        .type_keys("e")
        .expect_shown("gets this text");
    pty.type_keys("\u{15}43").type_keys(F5).expect_shown("sum goes on with the edited result");
    assert_eq!(second.finish().exits(0).out().trim(), "43");
    let stop = newest_record(&room)["breakpoints"][0].clone();
    assert_eq!((&stop["on"], &stop["outcome"]), (&json!("result"), &json!("edited")));
    let third = room.toolhost(["call", "sum", "expression=6*7"]).start();
    stopped(&mut pty, "has a result").type_keys("n").expect_shown("sum was refused");
    third.finish().exits(6).says(&["the result of 'sum' was withheld at a breakpoint"]);
    // What the history has of the same call is where an answer begins.
    room.toolhost(["break", "sum"]).go().exits(0);
    let fourth = room.toolhost(["call", "sum", "expression=6*7"]).start();
    stopped(&mut pty, "6*7").type_keys("r").expect_shown("gets this text");
    pty.type_keys(F5).expect_shown("sum was answered by you");
    assert_eq!(fourth.finish().exits(0).out().trim(), "43");
    room.toolhost(["break", "--remove"]).go().exits(2);
    room.toolhost(["break", "--remove", "other"]).go().exits(2).says(&["no breakpoint has"]);
    room.toolhost(["break", "--remove", "--all"]).go().exits(0).says(&["removed 2 breakpoints"]);
    assert!(call(&room, &["sum", "expression=6*7"]).json()["success"].as_bool().unwrap());
    quit(&room, pty);
}

#[test]
fn without_a_console_nothing_stops_and_without_a_decision_the_rule_decides() {
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    room.toolhost(["break", "sum", "--limit", "1s"]).go().exits(0);
    call(&room, &["sum", "expression=1"]).exits(0);
    let record = newest_record(&room);
    assert_eq!(record["decision"], "allowed; not stopped at the breakpoint 'sum'");
    assert_eq!(record["breakpoints"][0]["by"], "no console is attached");
    let pty = console(&room);
    let refused = call(&room, &["sum", "expression=2"]);
    refused.exits(6).says(&["no person decided: the limit of 1 s has passed"]);
    room.toolhost(["break", "sum", "--limit", "1s", "--then", "continue"]).go().exits(0);
    call(&room, &["sum", "expression=3"]).exits(0);
    let record = newest_record(&room);
    assert_eq!(record["decision"], "allowed; continued at the breakpoint 'sum'");
    quit(&room, pty);
}

#[test]
fn what_is_denied_never_stops_and_what_asks_still_asks() {
    let Some(room) = trusted() else { return };
    room.file(
        "tools.yaml",
        "tools:\n  - { name: sum, module: builtin.calculator, function: calculate }\n\
         policy: [{ match: sum, action: deny }]\n",
    );
    room.toolhost(["trust", "--yes"]).go().exits(0);
    room.toolhost(["up"]).go().exits(0);
    room.toolhost(["break", "*"]).go().exits(0);
    let mut pty = console(&room);
    call(&room, &["sum", "expression=1"]).exits(6).says(&["is refused by the rule"]);
    let mut other = Pty::toolhost(&room, &["call", "counter-erase"]);
    stopped(&mut pty, "counter-erase").type_keys("y").expect_shown("counter-erase goes on");
    other.expect("may destroy").expect("[y/N").type_keys("n\r");
    assert_eq!(other.finish().0, Some(6));
    quit(&room, pty);
}
