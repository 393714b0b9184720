//! Tests of jq expressions, well-behaved and excessive.

use serde_json::json;

use std::time::Duration;

use super::budget::JqLimits;
use super::{JqError, LONGEST_FILTER, check, query, query_within};

fn results(filter: &str, input: &serde_json::Value) -> String {
    match query(filter, input) {
        Ok(results) => serde_json::to_string(&results).unwrap(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn everyday_filters() {
    let input = json!({ "items": [
        { "name": "a", "size": 1 }, { "name": "b", "size": 5 }, { "name": "c", "size": 9 },
    ] });
    for (filter, expected) in [
        (".items[1].name", r#"["b"]"#),
        (".items[] | select(.size > 3) | .name", r#"["b","c"]"#),
        ("[.items[].size] | add", "[15]"),
        (".items | map({(.name): .size}) | add", r#"[{"a":1,"b":5,"c":9}]"#),
        (".items | length", "[3]"),
        (".missing", "[null]"),
        (".items |= sort_by(-.size) | .items[0].name", r#"["c"]"#),
        ("[.items[] | .size *= 2 | .size]", "[[2,10,18]]"),
        ("del(.items)", "[{}]"),
        ("[paths(numbers)] | length", "[3]"),
        ("path(.items[0].name)", r#"[["items",0,"name"]]"#),
        ("[limit(3; repeat(1))]", "[[1,1,1]]"),
        (
            "[.items[] as {name: $n, size: $s} | \"\\($n)=\\($s)\"] | join(\",\")",
            r#"["a=1,b=5,c=9"]"#,
        ),
        ("\"ab\" * 3", r#"["ababab"]"#),
        ("[(1,2) * (10,20)]", "[[10,20,20,40]]"),
        ("empty", "[]"),
        ("def f(x): x * 2; f(21)", "[42]"),
        ("[.[] | try error(\"x\") catch .]", r#"[["x"]]"#),
        ("reduce range(5) as $i (0; . + $i)", "[10]"),
        ("[foreach range(3) as $i (0; . + $i)]", "[[0,1,3]]"),
        ("label $out | 1, break $out, 2", "[1]"),
        ("\"a1b2\" | [scan(\"[0-9]\")] | map(tonumber)", "[[1,2]]"),
        ("to_entries[0].key", r#"["items"]"#),
        (
            "@base64 \"\\(1)\", @json",
            r#"["MQ==","{\"items\":[{\"name\":\"a\",\"size\":1},{\"name\":\"b\",\"size\":5},{\"name\":\"c\",\"size\":9}]}"]"#,
        ),
        (".items | any(.size > 8), all(.size > 8), (map(.name) | index(\"b\"))", "[true,false,1]"),
        ("[.items[].size] | min, max, (sort | reverse)", "[1,9,[9,5,1]]"),
    ] {
        assert_eq!(results(filter, &input), expected, "{filter}");
    }
}

#[test]
fn numbers_keep_their_digits() {
    let input: serde_json::Value =
        serde_json::from_str("[12345678901234567890123, 1.10, 1e+400]").unwrap();
    assert_eq!(results(".[]", &input), "[12345678901234567890123,1.10,1e+400]");
    assert_eq!(results("nan, infinite", &input), "[null,1.7976931348623157e+308]");
}

#[test]
fn mistakes_are_named() {
    let null = json!(null);
    assert_eq!(results(".a b", &null), "the filter is invalid at column 4: expected nothing");
    assert_eq!(results(".a |", &null), "the filter is invalid at the end: expected term");
    assert_eq!(results("frobnicate(1)", &null), "there is no filter 'frobnicate'");
    assert_eq!(results("$x", &null), "there is no variable '$x'");
    assert_eq!(results(".a", &json!(3)), "cannot index 3 with \"a\"");
    assert!(results(" ", &null).starts_with("the filter is empty"));
}

#[test]
fn a_filter_is_checked_as_it_stands_and_never_run() {
    assert_eq!(
        check("1) | (2").unwrap_err().to_string(),
        "the filter is invalid at column 2: expected token"
    );
    let longest = format!("1{}", " ".repeat(LONGEST_FILTER - 1));
    assert_eq!(check(&longest), Ok(()));
    assert_eq!(check(&format!("{longest} ")), Err(JqError::FilterTooLong));
    for filter in [".a # why", "error(\"x\")", "def f: f; f", "null | keys"] {
        assert_eq!(check(filter), Ok(()), "{filter}");
    }
    for filter in ["", "# why", ".a |", "frobnicate", "1 end else (2"] {
        assert_eq!(check(filter).err(), query(filter, &json!(null)).err(), "{filter}");
        assert!(check(filter).is_err(), "{filter}");
    }
}

#[test]
fn nothing_outside_is_reachable() {
    let null = json!(null);
    for filter in ["env", "$ENV", "input", "halt", "halt_error", "import \"a\" as a; 1", "$__loc__"]
    {
        let result = results(filter, &null);
        assert!(
            result.starts_with("there is no") || result.contains("invalid"),
            "{filter}: {result}"
        );
    }
}

#[test]
fn endless_filters_end() {
    let null = json!(null);
    for filter in [
        "def f: f; f",
        "def f: 1 + f; f",
        "def f: [f]; f",
        "[range(1e12)]",
        "last(range(1e12))",
        "reduce range(1e12) as $i (0; . + 1)",
        "[range(1e12) | try error catch 1]",
        "[(range(1e12) | 1)?]",
        "def f: try f catch f; f",
        "[repeat(1)]",
        "until(false; .)",
        "reduce range(60) as $i (\"x\"; . + .) | length",
        "[limit(1000000000; repeat(1))] | length",
        "isempty(range(1e12) | empty)",
        "first(range(1e12) | select(. < 0))",
        "[range(1000)] as $a | [$a[] as $x | $a[] as $y | $a[] as $z | 1]",
    ] {
        // Few steps and much time, so that a slow machine sees the same limit.
        let limits =
            JqLimits { steps: 20_000, time: Duration::from_hours(1), ..JqLimits::default() };
        let result = query_within(filter, &null, &limits);
        let error = result.err().unwrap_or_else(|| panic!("{filter} came to an end"));
        assert!(
            matches!(error, JqError::TooManySteps(20_000) | JqError::TooDeep),
            "{filter}: {error}"
        );
    }
}

#[test]
fn time_is_a_limit_of_its_own() {
    let limits = JqLimits { time: Duration::ZERO, ..JqLimits::default() };
    let result = query_within("[range(1e12)]", &json!(null), &limits);
    assert_eq!(result, Err(JqError::TooSlow(Duration::ZERO)));
}

#[test]
fn results_are_bounded() {
    let null = json!(null);
    assert!(results("range(10001)", &null).contains("more than 10000 results"));
    assert!(results("reduce range(1000) as $i (0; [.])", &null).contains("128 levels"));
    assert!(results("\"x\" * 100000000", &null).contains("16 MiB"));
    assert!(results("100000000 * \"x\"", &null).contains("16 MiB"));
}

#[test]
fn deep_filters_and_values_do_not_overflow_the_stack() {
    let null = json!(null);
    let deep = format!("{}1{}", "[".repeat(2000), "]".repeat(2000));
    assert!(results(&deep, &null).contains("128 levels"));
    let signs = format!("{}1", "-".repeat(4000));
    assert!(query(&signs, &null).is_ok());
    assert_eq!(results("reduce range(50000) as $i (0; [.]) | 1", &null), "[1]");
}
