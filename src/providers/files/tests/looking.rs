//! Tests of reading, listing and searching.

use insta::assert_snapshot;
use serde_json::json;

use super::{call, harness, inside, with};

#[tokio::test]
async fn a_file_is_read_whole_or_by_lines() {
    let harness = harness(|d| {
        std::fs::write(d.join("a.txt"), "one\ntwo\r\nthree").unwrap();
        std::fs::write(d.join("empty"), "").unwrap();
    });
    assert_eq!(call(&harness, "read", json!({ "path": "a.txt" })).await, "one\ntwo\r\nthree");
    assert_eq!(call(&harness, "read", json!({ "path": "empty" })).await, "");
    let two = call(&harness, "read", json!({ "path": "a.txt", "offset": 2, "limit": 1 })).await;
    assert_eq!(two, "two\r\n\n[lines 2 to 2 of 14 B; continue with offset=3]");
    let three = call(&harness, "read", json!({ "path": "a.txt", "offset": 3, "limit": 9 })).await;
    assert_eq!(three, "three");
    let none = call(&harness, "read", json!({ "path": "a.txt", "offset": 4 })).await;
    assert_eq!(none, "3: 'a.txt' has only 3 lines");
    let path = inside(&harness).join("a.txt");
    assert_eq!(call(&harness, "read", json!({ "path": path })).await, "one\ntwo\r\nthree");
}

#[tokio::test]
async fn what_does_not_fit_is_cut_and_can_be_read_on_to_the_last_byte() {
    let yaml = "components: [{ name: d, type: files, root_dir: d, max_file_bytes: 10 }]";
    let long = "éa".repeat(10);
    let harness = with(yaml, |d| {
        std::fs::write(d.join("lines"), "123\n456\n789\nabc\n").unwrap();
        std::fs::write(d.join("long"), &long).unwrap();
    });
    let first = call(&harness, "read", json!({ "path": "lines" })).await;
    assert_eq!(first, "123\n456\n\n[lines 1 to 2 of 16 B; continue with offset=3]");
    assert_eq!(call(&harness, "read", json!({ "path": "lines", "offset": 3 })).await, "789\nabc\n");
    for whole in ["1234567890", "12345678\n9", "1234\n6789\n", "123456789\n"] {
        std::fs::write(inside(&harness).join("fits"), whole).unwrap();
        assert_eq!(call(&harness, "read", json!({ "path": "fits" })).await, whole);
    }
    let (mut whole, mut at) = (String::new(), 0);
    loop {
        let arguments = json!({ "path": "long", "byte_offset": at });
        let result = harness.call("d-read", arguments).await.unwrap();
        whole.push_str(result.output.as_str().unwrap());
        let Some(meta) = result.meta else { break };
        at = meta["byte_offset"].as_u64().unwrap();
    }
    assert_eq!(whole, long);
}

#[tokio::test]
async fn bytes_that_are_no_text_are_said_and_given_when_asked_for() {
    let harness = harness(|d| {
        std::fs::write(d.join("p.png"), b"\x89PNG\r\n\x1a\n\0\0").unwrap();
        std::fs::write(d.join("latin"), b"caf\xe9").unwrap();
    });
    assert_eq!(
        call(&harness, "read", json!({ "path": "p.png" })).await,
        "3: 'p.png' is not text: image/png, 10 B"
    );
    assert_snapshot!(
        call(&harness, "read", json!({ "path": "p.png", "encoding": "base64" })).await,
        @r#"{"type":"image","mimeType":"image/png","data":"iVBORw0KGgoAAA=="}"#
    );
    assert_snapshot!(
        call(&harness, "read", json!({ "path": "latin", "encoding": "base64" })).await,
        @r#"{"type":"resource","resource":{"uri":"file:///latin","mimeType":"text/plain","blob":"Y2Fm6Q=="}}"#
    );
    assert_snapshot!(call(&harness, "read", json!({ "path": "latin" })).await, @r"
    caf�
    (warning: 'latin' is not all UTF-8: invalid bytes are shown as �; encoding=base64 returns the bytes unchanged)
    ");
}

#[tokio::test]
async fn a_list_is_sorted_bounded_and_structured() {
    let harness = harness(|d| {
        for name in ["b", "a", "c"] {
            std::fs::create_dir(d.join(name)).unwrap();
            std::fs::write(d.join(name).join("x"), "12").unwrap();
        }
        std::os::unix::fs::symlink("a", d.join("link")).unwrap();
    });
    let paths = async |arguments| {
        let result = harness.call("d-list", arguments).await.unwrap();
        let structured = result.structured.unwrap();
        let entries = structured["entries"].as_array().unwrap().clone();
        let shown = |entry: &serde_json::Value| {
            format!("{} {}", entry["path"].as_str().unwrap(), entry["type"].as_str().unwrap())
        };
        let mut shown: Vec<String> = entries.iter().map(shown).collect();
        shown.push(structured["truncated"].to_string());
        shown.join(", ")
    };
    assert_eq!(paths(json!({})).await, "a directory, b directory, c directory, link link, false");
    assert_eq!(paths(json!({ "path": "a" })).await, "a/x file, false");
    assert_eq!(
        paths(json!({ "recursive": true, "limit": 4 })).await,
        "a directory, a/x file, b directory, b/x file, true"
    );
    // The other vocabulary is understood where the host lets it through.
    assert_eq!(paths(json!({ "dir_path": "b" })).await, "b/x file, false");
    assert_eq!(
        call(&harness, "list", json!({ "path": "a/x" })).await,
        "3: cannot list 'a/x': a part of the path is not a directory"
    );
}

#[tokio::test]
async fn a_search_is_by_name_by_text_or_by_both() {
    let harness = harness(|d| {
        std::fs::create_dir_all(d.join("sub/.git")).unwrap();
        std::fs::write(d.join("a.md"), "Milk\nbread\nmilk 2\n").unwrap();
        std::fs::write(d.join("sub/b.md"), "no\n").unwrap();
        std::fs::write(d.join("sub/c.txt"), "milk.\n").unwrap();
        std::fs::write(d.join("sub/.git/d.md"), "milk").unwrap();
        std::fs::write(d.join("bin"), b"milk\0").unwrap();
        std::os::unix::fs::symlink("sub", d.join("way")).unwrap();
        std::os::unix::fs::symlink("a.md", d.join("z.md")).unwrap();
    });
    for (arguments, expected) in [
        (json!({ "glob": "*.md" }), "a.md\nsub/b.md\nz.md\n"),
        (json!({ "glob": "sub/*" }), "sub/b.md\nsub/c.txt\n"),
        (json!({ "glob": "**/*.{md,txt}", "path": "sub" }), "sub/b.md\nsub/c.txt\n"),
        (json!({ "text": "milk" }), "a.md:3: milk 2\nsub/c.txt:1: milk.\n"),
        (json!({ "text": "k.", "regex": false }), "sub/c.txt:1: milk.\n"),
        (json!({ "text": "^MILK$", "regex": true, "ignore_case": true }), "a.md:1: Milk\n"),
        (json!({ "text": "milk", "glob": "*.txt" }), "sub/c.txt:1: milk.\n"),
        (
            json!({ "text": "milk", "limit": 1 }),
            "a.md:3: milk 2\n[only the first 1; 'limit' allows more]\n",
        ),
        (json!({ "text": "milk", "limit": 2 }), "a.md:3: milk 2\nsub/c.txt:1: milk.\n"),
        (json!({ "text": "eggs" }), "nothing found\n"),
        (json!({}), "2: no search criteria"),
        (json!({ "text": "" }), "2: the pattern or text to search for is empty"),
        (
            json!({ "text": "a{99999}{9999}", "regex": true }),
            "2: 'text' is not a regular expression: Compiled regex exceeds size limit of 1048576 bytes.",
        ),
    ] {
        assert_eq!(call(&harness, "search", arguments.clone()).await, expected, "{arguments}");
    }
}

#[tokio::test]
async fn a_long_search_tells_how_far_it_is_and_stops_when_told() {
    let harness = harness(|d| {
        for n in 0..1100 {
            std::fs::write(d.join(format!("{n:04}")), "x").unwrap();
        }
    });
    call(&harness, "search", json!({ "text": "y" })).await;
    let events = harness.events();
    assert_eq!(events.len(), 2, "{events:?}");
    assert!(events[1].contains("1024 entries"), "{events:?}");
    let context = harness.context();
    context.cancel.cancel();
    let error = harness.call_in(&context, "d-search", json!({ "text": "y" })).await.unwrap_err();
    assert_eq!(error.kind().as_str(), "interrupted");
}
