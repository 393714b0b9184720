//! Tests of what lies inside a root, and what only seems to.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const PROJECT: &str = "file:///srv/project";

fn roots(all: &[&str]) -> Vec<Root> {
    all.iter().map(|root| Root::from(*root)).collect()
}

fn is_inside(uri: &str, root: &str) -> bool {
    check(uri, &roots(&[root])).is_ok()
}

#[test]
fn without_roots_everything_is_allowed() {
    assert!(check("anything at all\n", &[]).is_ok());
    assert!(check_arguments(&json!({}), &JsonObject::new(), &[]).is_ok());
}

#[test]
fn a_root_holds_itself_and_what_is_below_it() {
    for uri in [
        "file:///srv/project",
        "file:///srv/project/",
        "file:///srv/project/a/b.txt",
        "FILE:///srv/project/a",
        "file://localhost/srv/project/a",
        "file:///srv/./project/a/../b",
        "file:///srv//project/a",
        "file:///srv/%70roject/a%20b",
        "file:///srv/project/a?x=../../..#/etc",
        "file:///srv/project/..a/...",
        "file:/srv/project/a",
    ] {
        assert!(is_inside(uri, PROJECT), "{uri}");
        assert!(is_inside(uri, "file:///srv/project/"), "{uri}");
        assert!(is_inside(uri, "file:///"), "{uri}");
    }
}

#[test]
fn what_is_beside_above_or_elsewhere_is_outside() {
    for uri in [
        "file:///srv/projects",
        "file:///srv/project2/a",
        "file:///srv",
        "file:///etc/passwd",
        "file:///srv/project/../../etc/passwd",
        "file:///srv/project/%2e%2e/%2E%2E/etc/passwd",
        "file:///srv/project/..%2f..%2fetc/passwd",
        "file:///srv/project/%252e%252e/%252e%252e/etc",
        "file:///srv/project/%25252e%25252e/etc",
        "file:///srv/project/..\\..\\etc",
        "file:///srv/project/%5c..%5c..",
        "file:///srv/project//..//../etc",
        "file:///srv/project/a\n/../../etc",
        "file:///srv/project/.\t./.\t./etc",
        "file:///srv/project/%00",
        "file:///srv/project/%zz",
        "file:///srv/project/\u{202e}x",
        "file://evil.example/srv/project/a",
        "file:srv/project/a",
        "file:///SRV/project/a",
        "https://localhost/srv/project/a",
        "data:text/plain,x",
        "javascript:alert(1)",
        "/srv/project/a",
        "srv/project/a",
        "",
        " file:///srv/project/a",
    ] {
        assert!(!is_inside(uri, PROJECT), "{uri:?}");
    }
}

#[test]
fn a_host_has_several_spellings_and_no_users() {
    let root = "https://docs.example/api";
    for uri in
        ["https://DOCS.example:443/api/x", "HTTPS://docs.example./api", "https://docs.example/api/"]
    {
        assert!(is_inside(uri, root), "{uri}");
    }
    for uri in [
        "http://docs.example/api/x",
        "https://docs.example:8443/api/x",
        "https://docs.example@evil.example/api/x",
        "https://user@docs.example/api/x",
        "https://docs.example.evil.example/api",
        "https:/docs.example/api",
        "https:///docs.example/api",
        "https://docs.example/apis",
    ] {
        assert!(!is_inside(uri, root), "{uri}");
    }
    assert!(is_inside("notes://box/1", "notes://box"));
    assert!(!is_inside("notes://boxes/1", "notes://box"));
    assert!(is_inside("urn:isbn:1", "urn:isbn:1"));
}

#[test]
fn a_root_of_a_scheme_alone_holds_all_of_the_scheme() {
    for root in ["weather:", "weather://", "weather:///"] {
        for uri in ["weather://forecast", "weather://forecast/oslo", "weather:///x", "weather:x"] {
            assert!(is_inside(uri, root), "{uri} in {root}");
        }
        for uri in ["weather2://forecast", "file:///forecast", "weather", "//forecast"] {
            assert!(!is_inside(uri, root), "{uri} in {root}");
        }
    }
    assert!(!is_inside("weather://forecast", "weather://alerts"));
    assert!(!is_inside("weather://forecast", "weather:alerts"));
    assert!(!is_inside("weather://forecast", "weather:///alerts"));
    assert!(!is_inside("file://other.example/srv", "file:///"));
}

#[test]
fn one_of_several_roots_is_enough() {
    let both = roots(&[PROJECT, "https://docs.example"]);
    assert!(check("https://docs.example/x", &both).is_ok());
    let error = check("file:///etc/passwd", &both).unwrap_err();
    assert_eq!(error.kind().exit_code(), 6);
    assert_eq!(error.details().len(), 2);
}

fn arguments(schema: &Value, arguments: &Value) -> Result<(), Error> {
    let object = arguments.as_object().unwrap();
    check_arguments(schema, object, &roots(&[PROJECT]))
}

#[test]
fn arguments_that_are_addresses_are_found_at_any_depth() {
    let uri = json!({ "type": "string", "format": "uri" });
    let schemas = [
        json!({ "properties": { "a": uri } }),
        json!({ "properties": { "a": { "anyOf": [{ "type": "null" }, uri] } } }),
        json!({ "properties": { "a": { "$ref": "#/$defs/u" } }, "$defs": { "u": uri } }),
        json!({ "allOf": [{ "$ref": "#/$defs/o" }], "$defs": { "o": { "properties": { "a": uri } } } }),
        json!({ "additionalProperties": uri }),
        json!({ "patternProperties": { "^a$": uri } }),
        json!({ "patternProperties": { "(": uri } }),
        json!({ "then": { "properties": { "a": uri } } }),
        json!({ "properties": { "a": { "allOf": [{ "$ref": "#/properties/a" }, uri] } } }),
    ];
    for schema in &schemas {
        assert!(arguments(schema, &json!({ "a": "file:///srv/project/x" })).is_ok(), "{schema}");
        let error = arguments(schema, &json!({ "a": "file:///etc/passwd" })).unwrap_err();
        assert!(error.message().contains("file:///etc/passwd"), "{error}");
        assert!(error.to_string().contains("argument a"), "{error}");
    }
    let deep = json!({ "properties": { "list": { "items": { "properties": { "u": uri } } } } });
    let bad = json!({ "list": [{ "u": "file:///srv/project" }, { "u": "file:///srv" }] });
    let error = arguments(&deep, &bad).unwrap_err();
    assert!(error.to_string().contains("list[1].u"), "{error}");
}

#[test]
fn other_text_is_nobodys_business() {
    let schema = json!({ "properties": { "a": { "type": "string" }, "b": { "format": "date" } } });
    assert!(arguments(&schema, &json!({ "a": "file:///etc/passwd", "b": "/etc", "c": 1 })).is_ok());
    let choice = json!({ "properties": { "a": { "anyOf": [
        { "format": "uri", "type": "string" }, { "enum": ["none"] },
    ] } } });
    assert!(arguments(&choice, &json!({ "a": "none" })).is_ok());
    assert!(arguments(&choice, &json!({ "a": "etc" })).is_err());
    assert!(arguments(&choice, &json!({ "a": "file:///etc" })).is_err());
}

#[test]
fn a_relative_reference_is_read_from_the_root() {
    let schema = json!({ "properties": { "a": { "format": "uri-reference" } } });
    assert!(arguments(&schema, &json!({ "a": "docs/a.md" })).is_ok());
    for bad in ["../x", "/etc/passwd", "//evil/x", "docs/%2e%2e/%2e%2e/x", "file:///etc"] {
        assert!(arguments(&schema, &json!({ "a": bad })).is_err(), "{bad}");
    }
    let absolute = json!({ "properties": { "a": { "format": "uri" } } });
    assert!(arguments(&absolute, &json!({ "a": "docs/a.md" })).is_err());
}

#[test]
fn schemas_that_never_end_do() {
    let many: Vec<Value> = (0..20).map(|_| json!({ "$ref": "#" })).collect();
    let schema = json!({
        "allOf": many, "anyOf": many,
        "properties": { "a": { "$ref": "#" } },
        "additionalProperties": { "$ref": "#" },
    });
    let mut value = json!("file:///etc");
    for _ in 0..50 {
        value = json!({ "a": value });
    }
    assert!(arguments(&schema, &json!({ "a": value })).is_ok());
}

proptest! {
    #[test]
    fn a_path_of_plain_names_below_a_root_is_inside(names in proptest::collection::vec("[a-z0-9_ ]{1,8}", 0..6)) {
        let uri = format!("{PROJECT}/{}", names.join("/").replace(' ', "%20"));
        prop_assert!(is_inside(&uri, PROJECT));
    }

    /// Whatever is made of dots, slashes and escapes: what is let through stays below the root when
    /// it is decoded once and followed as a file system does.
    #[test]
    fn nothing_that_leaves_the_root_is_let_through(
        parts in proptest::collection::vec(prop_oneof![
            Just("/"), Just("//"), Just(".."), Just("."), Just("%2e"), Just("%2E%2e"), Just("%2f"),
            Just("%5c"), Just("\\"), Just("%252e%252e"), Just("a"), Just("etc"), Just("?"), Just("#"),
        ], 0..14),
    ) {
        let uri = format!("{PROJECT}/{}", parts.concat());
        if is_inside(&uri, PROJECT) {
            let path = uri.strip_prefix("file://").unwrap().split(['?', '#']).next().unwrap();
            for rounds in 0..3 {
                let mut text = path.to_owned();
                for _ in 0..rounds {
                    text = text.replace("%25", "\u{1}").replace("%2e", ".").replace("%2E", ".")
                        .replace("%2f", "/").replace("%5c", "/").replace('\u{1}', "%");
                }
                let mut at: Vec<&str> = Vec::new();
                for segment in text.split(['/', '\\']) {
                    match segment {
                        "" | "." => {}
                        ".." => drop(at.pop()),
                        name => at.push(name),
                    }
                }
                prop_assert!(at.starts_with(&["srv", "project"]), "{uri}: {text}");
            }
        }
    }

    #[test]
    fn any_text_is_judged(uri in any::<String>()) {
        let _judged = check(&uri, &roots(&[PROJECT]));
        let _judged = check(&format!("{PROJECT}/{uri}"), &roots(&[PROJECT]));
    }
}
