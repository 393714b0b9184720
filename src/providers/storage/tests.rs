//! Tests of stores at the provider, without a host.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::model::{Error, ErrorKind, ToolContext, ToolName, ToolResult};
use crate::providers::harness::KindHarness;

fn harness(entry: &str) -> KindHarness {
    KindHarness::new(&super::kind(), &format!("components:\n  - {{ {entry} }}\n"))
}

fn names(harness: &KindHarness) -> Vec<String> {
    harness.definitions().iter().map(|tool| tool.name.full()).collect()
}

fn no(outcome: Result<ToolResult, Error>) -> (String, String) {
    let result = outcome.unwrap();
    assert!(!result.success, "{result:?}");
    let error = result.error.unwrap();
    assert_eq!(error.kind(), ErrorKind::Tool);
    (error.message().to_owned(), error.hint().unwrap_or_default().to_owned())
}

async fn output(harness: &KindHarness, tool: &str, arguments: Value) -> Value {
    let result = harness.call(tool, arguments).await.unwrap();
    assert!(result.success, "{result:?}");
    result.output
}

#[test]
fn entries_become_tools() {
    for (entry, expected) in [
        ("name: n, type: storage", &["n-read", "n-write", "n-list", "n-delete"][..]),
        ("name: n, storage_type: memory", &["n-read", "n-write", "n-list", "n-delete"]),
        ("name: x, component: n, tools: [put, get]", &["n-put", "n-get"]),
        ("name: n, type: storage, access: read", &["n-read", "n-list"]),
        ("name: n, type: storage, tools: [clear, get]", &["n-clear", "n-get"]),
        ("name: wipe, type: storage, component: n, original_tool_name: clear", &["wipe"]),
    ] {
        let harness = harness(entry);
        assert_eq!(names(&harness), expected, "{entry}: {:?}", harness.messages());
    }
}

#[test]
fn what_a_definition_says_is_true() {
    let harness =
        harness("name: n, type: storage, path: data/n.db, tools: [get, put, list, delete, clear]");
    let row = |tool: &crate::model::ToolDefinition| {
        let annotations = &tool.annotations;
        let aliases: Vec<String> = tool.aliases.iter().map(ToolName::full).collect();
        let asks = annotations.destructive == Some(true);
        format!(
            "{} {:?} asks:{asks} {}",
            tool.name,
            annotations.read_only.unwrap(),
            aliases.join(",")
        )
    };
    let rows: Vec<String> = harness.definitions().iter().map(row).collect();
    insta::assert_debug_snapshot!(rows, @r#"
    [
        "n-get true asks:false n-read",
        "n-put false asks:false n-write,n-set",
        "n-list true asks:false n-keys",
        "n-delete false asks:true n-remove",
        "n-clear false asks:true ",
    ]
    "#);
    let touches = harness.definition("n-put").touches.join("; ");
    let path = harness.dir.path().join("data/n.db");
    assert_eq!(
        touches,
        format!("writes {} (each write is flushed to the disk before it returns)", path.display())
    );
    assert_eq!(harness.definition("n-get").touches, [format!("reads {}", path.display())]);
    assert!(!path.exists(), "nothing is opened before a call");
}

#[test]
fn an_entry_may_say_that_deleting_loses_nothing() {
    let harness = harness(
        "name: n, type: storage, annotations: { destructiveHint: false, readOnlyHint: true }",
    );
    assert_eq!(harness.definition("n-delete").annotations.destructive, Some(false));
    // What would be a lie is not taken over.
    assert_eq!(harness.definition("n-write").annotations.read_only, Some(false));
}

#[test]
fn all_that_is_wrong_with_an_entry_is_told_at_once() {
    let harness = harness(
        "name: n, type: storage, storage_type: mongo, access: reed, max_keys: -1, ttl: soon, \
         tools: [reead]",
    );
    insta::assert_debug_snapshot!(harness.messages(), @r#"
    [
        "unknown access 'reed'; expected one of read, read_write, write",
        "unknown storage type 'mongo'; expected one of memory, disk, redis, postgresql",
        "expected a size such as 256MiB, found a number",
        "expected a duration such as 30, 500ms, 30s or 2m, found text",
        "there is no tool 'reead' to select",
    ]
    "#);
    let harness = self::harness("name: n, type: storage, access: read, tools: [get, put]");
    insta::assert_debug_snapshot!(harness.messages(), @r#"
    [
        "'n-put' changes the store, but the entry is read-only",
    ]
    "#);
    for (entry, message) in [
        ("storage_type: redis", "a store in Redis needs a 'url'"),
        (
            "storage_type: redis, url: 'http://x'",
            "expected an address such as redis://127.0.0.1:6379/0",
        ),
        ("path: data/", "expected the path of a file"),
        (
            "sync: always, path: x.db",
            "unknown sync mode 'always'; expected one of full, normal, off",
        ),
    ] {
        let harness = self::harness(&format!("name: n, type: storage, {entry}"));
        assert_eq!(harness.messages(), [message], "{entry}");
    }
}

#[tokio::test]
async fn values_come_back_as_they_were_written() {
    for entry in ["name: n, type: storage", "name: n, type: storage, path: n.db, sync: off"] {
        let harness = harness(entry);
        let values = [
            json!("milk"),
            json!(""),
            json!(null),
            json!({ "a": [1, 2.5, { "b": "\u{0}\u{202e}é" }] }),
            serde_json::from_str("12345678901234567890.10").unwrap(),
        ];
        for value in values {
            let written =
                output(&harness, "n-write", json!({ "key": "a/ö ", "value": value })).await;
            let result = harness.call("n-read", json!({ "key": "a/ö " })).await.unwrap();
            assert_eq!(result.output, value);
            let version = &written["version"];
            assert_eq!(
                result.structured,
                Some(json!({ "key": "a/ö ", "value": value, "version": version }))
            );
        }
    }
}

#[tokio::test]
async fn what_is_missing_is_said_with_what_was_meant() {
    let harness = harness("name: n, type: storage");
    let (message, hint) = no(harness.call("n-read", json!({ "key": "shoping" })).await);
    assert_eq!((&*message, &*hint), ("the store has no key 'shoping'", "it has no keys"));
    output(&harness, "n-write", json!({ "key": "shopping", "value": 1 })).await;
    let (_, hint) = no(harness.call("n-read", json!({ "key": "shoping" })).await);
    assert_eq!(hint, "did you mean 'shopping'?");
}

#[tokio::test]
async fn a_write_can_depend_on_what_is_there() {
    let harness = harness("name: n, type: storage");
    let write = |more: Value| {
        let mut arguments = json!({ "key": "k", "value": 1 });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        harness.call("n-write", arguments)
    };
    let (message, _) = no(write(json!({ "if_version": 1 })).await);
    assert_eq!(message, "conflict: 'k' has no value");
    assert!(write(json!({ "if_absent": true })).await.unwrap().success);
    let (message, _) = no(write(json!({ "if_absent": true })).await);
    assert_eq!(message, "conflict: 'k' is at version 1");
    assert!(write(json!({ "if_version": 1 })).await.unwrap().success);
    let error = write(json!({ "if_version": 2, "if_absent": true })).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    let (message, _) = no(harness.call("n-delete", json!({ "key": "k", "if_version": 1 })).await);
    assert_eq!(message, "conflict: 'k' is at version 2");
    let gone = json!({ "key": "k", "existed": true });
    assert_eq!(output(&harness, "n-delete", json!({ "key": "k", "if_version": 2 })).await, gone);
    let nothing = json!({ "key": "k", "existed": false });
    assert_eq!(output(&harness, "n-delete", json!({ "key": "k" })).await, nothing);
}

#[tokio::test]
async fn what_does_not_fit_is_refused_before_anything_is_stored() {
    let harness = harness(
        "name: n, type: storage, max_keys: 2, max_value_bytes: 20, max_key_bytes: 4, \
         max_total_bytes: 60",
    );
    let write =
        |key: &str, value: &str| harness.call("n-write", json!({ "key": key, "value": value }));
    for (key, value) in [("", "x"), ("a\0b", "x"), ("äää", "x"), ("k", "a value that is too long")]
    {
        let error = write(key, value).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
    assert!(write("a", "1").await.unwrap().success);
    assert!(write("b", "1").await.unwrap().success);
    let (message, hint) = no(write("c", "1").await);
    assert_eq!(message, "quota: the store already has 2 keys, its limit");
    assert!(hint.contains("max_keys"), "{hint}");
    assert!(write("a", "12345678901234567").await.unwrap().success);
    let (message, _) = no(write("b", "12345678901234567890").await.or_else(|error| {
        // Twenty characters and two quotes are too long; one less is over the quota.
        assert_eq!(error.kind(), ErrorKind::Usage);
        Ok::<_, Error>(ToolResult::failure("too long"))
    }));
    assert_eq!(message, "too long");
    let list = output(&harness, "n-list", json!({})).await;
    assert_eq!(list["keys"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn keys_are_listed_page_by_page() {
    let harness = harness("name: n, type: storage, tools: [put, list, clear]");
    for key in ["b/2", "a/1", "b/1", "b/3"] {
        output(&harness, "n-put", json!({ "key": key, "value": [] })).await;
    }
    let mut keys = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let mut arguments = json!({ "prefix": "b/", "limit": 2 });
        if !cursor.is_null() {
            arguments["cursor"] = cursor.clone();
        }
        let page = output(&harness, "n-list", arguments).await;
        keys.extend(page["keys"].as_array().unwrap().iter().map(|key| key["key"].clone()));
        cursor = page["cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(keys, ["b/1", "b/2", "b/3"]);
    assert_eq!(output(&harness, "n-clear", json!({})).await, json!({ "deleted": 4 }));
}

#[tokio::test]
async fn sessions_have_values_of_their_own() {
    for more in ["", ", path: n.db, sync: off"] {
        let harness = harness(&format!("name: n, type: storage, scope: session{more}"));
        let other = ToolContext { session_id: "session-2".into(), ..harness.context() };
        output(&harness, "n-write", json!({ "key": "k", "value": 1 })).await;
        no(harness.call_in(&other, "n-read", json!({ "key": "k" })).await);
        let list = harness.call_in(&other, "n-list", json!({})).await.unwrap().output;
        assert_eq!(list["keys"], json!([]));
        assert_eq!(output(&harness, "n-read", json!({ "key": "k" })).await, json!(1));
    }
}

#[tokio::test]
async fn entries_with_one_component_share_a_store() {
    let yaml = "components:
  - { name: reader, component: n, tools: [get] }
  - { name: writer, component: n, tools: [put] }
  - { name: other, type: storage }
";
    let harness = KindHarness::new(&super::kind(), yaml);
    output(&harness, "n-put", json!({ "key": "k", "value": 1 })).await;
    assert_eq!(output(&harness, "n-get", json!({ "key": "k" })).await, json!(1));
    no(harness.call("other-read", json!({ "key": "k" })).await);
}

#[tokio::test]
async fn values_in_memory_are_said_to_be_lost_once() {
    let harness = harness("name: n, type: storage");
    for _ in 0..2 {
        output(&harness, "n-write", json!({ "key": "k", "value": 1 })).await;
    }
    let events = harness.events();
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].contains("lost when toolhost exits"), "{events:?}");
    assert_eq!(
        harness.definition("n-read").touches,
        ["keeps values in memory while toolhost runs"]
    );
}

#[tokio::test]
async fn a_store_without_a_path_is_kept_in_the_state_directory() {
    let harness = harness("name: n, storage_type: disk");
    output(&harness, "n-write", json!({ "key": "k", "value": 1 })).await;
    let stores = harness.dir.path().join("home/state/stores");
    let names: Vec<String> = std::fs::read_dir(stores)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.iter().any(|name| name.starts_with("n-")), "{names:?}");
}

#[tokio::test]
async fn a_dry_run_touches_nothing() {
    use crate::model::ToolCall;
    let harness = harness("name: n, type: storage, path: n.db");
    let name = harness.definition("n-write").name;
    let arguments = json!({ "key": "k", "value": 1 }).as_object().unwrap().clone();
    let preview = harness.providers[0].preview(&ToolCall { name, arguments }).await.unwrap();
    assert!(preview.summary.starts_with("writes a key of the store in /"), "{}", preview.summary);
    assert!(!harness.dir.path().join("n.db").exists());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_key_is_refused_or_comes_back(key in any::<String>(), value in any::<String>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let harness = harness("name: n, type: storage");
        runtime.block_on(async {
            match harness.call("n-write", json!({ "key": key, "value": value })).await {
                Ok(_) => {
                    assert_eq!(output(&harness, "n-read", json!({ "key": key })).await, json!(value));
                    let list = output(&harness, "n-list", json!({})).await;
                    assert_eq!(list["keys"][0]["key"], json!(key));
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Usage);
                    assert!(key.is_empty() || key.contains('\0') || key.len() > 256);
                }
            }
        });
    }
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn two_hosts_share_a_store_in_redis() {
    use crate::providers::engines::remote::tests::RedisTestServer;
    let Some(server) = RedisTestServer::start() else { return };
    let entry = format!("name: n, type: storage, url: '{}'", server.url());
    let (here, there) = (harness(&entry), harness(&entry));
    output(&here, "n-write", json!({ "key": "k", "value": { "a": "\u{0}é" } })).await;
    assert_eq!(output(&there, "n-read", json!({ "key": "k" })).await, json!({ "a": "\u{0}é" }));
    let (message, _) =
        no(there.call("n-write", json!({ "key": "k", "value": 1, "if_absent": true })).await);
    assert_eq!(message, "conflict: 'k' is at version 1");
    let host = server.url().replace("redis://", "").replace("/0", "");
    assert_eq!(here.definition("n-read").touches, [format!("talks to redis at {host}")]);
    // Another component of the same server is another store.
    let other = harness(&entry.replace("name: n", "name: n, component: m"));
    no(other.call("m-read", json!({ "key": "k" })).await);
}
