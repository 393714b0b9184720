//! Tests that a plan survives in the locustfile and secrets do not get into it.

use std::time::Duration;

use super::*;
use crate::bench::plan::{Arrivals, OverflowPolicy, RunLimits};

fn target(name: &str) -> LocustTarget {
    let arguments: JsonObject =
        serde_json::from_value(json!({ "message": "hi \"\\ü\u{1f600}" })).unwrap();
    LocustTarget {
        name: name.to_owned(),
        tool: "echo".to_owned(),
        url: "http://127.0.0.1:9/mcp".to_owned(),
        protocol: None,
        headers: Vec::new(),
        arguments: vec![arguments],
    }
}

/// The plan in a file, as Python reads it: the escapes of its one literal undone.
fn plan_of(file: &str) -> Value {
    let start = file.find("PLAN_TEXT = \"\"\"\\\n").unwrap() + 17;
    let end = start + file.get(start..).unwrap().find("\"\"\"\nPLAN = ").unwrap();
    let mut text = String::new();
    let mut signs = file.get(start..end).unwrap().chars();
    while let Some(c) = signs.next() {
        assert!(c == '\n' || (' '..='~').contains(&c), "{c:?} is not ASCII");
        match c {
            '\\' => match signs.next().unwrap() {
                'U' => {
                    let digits: String = signs.by_ref().take(8).collect();
                    text.push(char::from_u32(u32::from_str_radix(&digits, 16).unwrap()).unwrap());
                }
                other => text.push(other),
            },
            c => text.push(c),
        }
    }
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_plan_stands_in_the_file() {
    let plan = BenchPlan {
        model: LoadModel::Closed { concurrency: 7 },
        limits: RunLimits { requests: Some(500), duration: Some(Duration::from_secs(3)) },
        ..BenchPlan::default()
    };
    let file = locust(&plan, &target("null-echo")).unwrap();
    let written = plan_of(&file);
    assert_eq!((&written["users"], &written["rate"]), (&json!(7), &Value::Null));
    assert_eq!(written["arguments"][0]["message"], "hi \"\\ü\u{1f600}");
    assert_eq!((&written["requests"], &written["duration_s"]), (&json!(500), &json!(3.0)));
    assert_eq!((&written["modern"], &written["protocol"]), (&json!(false), &json!("2025-11-25")));
    assert!(!file.contains("PLAN_TEXT = \"{}\""));
}

#[test]
fn a_rate_is_written_with_the_users_that_keep_it() {
    let arrivals = Arrivals::Constant { rate: 20.0 };
    let model = LoadModel::Open { arrivals, in_flight: 4, overflow: OverflowPolicy::Queue };
    let mut modern = target("a");
    modern.protocol = Some(MODERN.to_owned());
    let written = plan_of(&locust(&BenchPlan { model, ..BenchPlan::default() }, &modern).unwrap());
    assert_eq!((&written["users"], &written["rate"]), (&json!(4), &json!(20.0)));
    assert_eq!(written["modern"], true);
}

#[test]
fn no_secret_is_written() {
    let text = |name: &str| LocustHeader {
        name: name.to_owned(),
        value: LocustValue::Text("s3cr3t".to_owned()),
    };
    let mut of = target("a");
    of.headers = ["Authorization", "X-Api-Key", "Cookie"].map(text).to_vec();
    of.headers.push(LocustHeader {
        name: "X-Team".to_owned(),
        value: LocustValue::Text("blue".to_owned()),
    });
    of.headers.push(LocustHeader {
        name: "X-Mine".to_owned(),
        value: LocustValue::Variable { before: "Bearer ".to_owned(), variable: "MINE".to_owned() },
    });
    let file = locust(&BenchPlan::default(), &of).unwrap();
    assert!(!file.contains("s3cr3t"));
    let headers = plan_of(&file)["headers"].clone();
    assert_eq!(headers[1]["variable"], "TOOLHOST_X_API_KEY");
    assert_eq!(headers[3]["text"], "blue");
    assert_eq!(headers[4], json!({ "name": "X-Mine", "before": "Bearer ", "variable": "MINE" }));
}

#[test]
fn more_rows_than_a_file_should_hold_are_refused() {
    let mut many = target("a");
    many.arguments = vec![JsonObject::new(); MOST_ROWS + 1];
    let refused = locust(&BenchPlan::default(), &many).unwrap_err();
    assert!(refused.message().contains("10001 rows"), "{refused}");
}
