//! Every fault of the misbehaving server: what `list` and `call echo` make of it.
//!
//! One row is one test. The codes are the documented ones; where two are defensible, both stand.
//! Each run is held to the invariants, and a healthy neighbour must stay callable.

use std::collections::BTreeSet;

use crate::support::{Fixture, Place, Sandbox};

const LEGACY: &[&str] = &["legacy"];
const MODERN: &[&str] = &["modern"];
const EACH: &[&str] = &["legacy", "modern", "both"];
const STDIO: &[Place] = &[Place::Stdio];
const HTTP: &[Place] = &[Place::Http];
const BOTH: &[Place] = &[Place::Stdio, Place::Http];

macro_rules! faults {
    ($($name:ident: $places:ident, $eras:ident, list $($list:literal)|+, call $($call:literal)|+;)+) => {
        $(
            #[test]
            fn $name() {
                try_fault(stringify!($name), $places, $eras, &[$($list),+], &[$($call),+]);
            }
        )+

        /// The names of those whose tool `echo` is listed all the same.
        pub fn listed() -> BTreeSet<String> {
            [$((stringify!($name), &[$($list),+][..], &[$($call),+][..])),+]
                .into_iter()
                .filter(|(_, list, call): &(&str, &[i32], &[i32])| {
                    list.iter().any(|code| [0, 11].contains(code)) && !call.contains(&2)
                })
                .map(|(name, ..)| name.replace('_', "-"))
                .collect()
        }

        /// The names of the rows and where they apply, as the server spells them.
        pub fn expectations() -> BTreeSet<(String, String)> {
            [$((stringify!($name), $places)),+]
                .into_iter()
                .map(|(name, places)| (name.replace('_', "-"), spelled(places).to_owned()))
                .collect()
        }
    };
}

faults! {
    none: BOTH, EACH, list 0, call 0;
    asks_a_person: BOTH, EACH, list 0, call 0;

    exit_at_once: STDIO, LEGACY, list 4, call 4;
    exit_zero: STDIO, LEGACY, list 4, call 4;
    abort_at_once: STDIO, LEGACY, list 4, call 4;
    silent: BOTH, LEGACY, list 7, call 7;
    init_error: BOTH, EACH, list 3, call 3;
    init_ancient_version: BOTH, EACH, list 10, call 10;
    init_future_version: BOTH, EACH, list 10, call 10;
    init_empty_result: BOTH, LEGACY, list 10, call 10;
    init_null_result: BOTH, LEGACY, list 10, call 10;
    jsonrpc_one: BOTH, LEGACY, list 10, call 10;
    discover_hang: STDIO, LEGACY, list 0, call 0;
    discover_dies: STDIO, LEGACY, list 0, call 0;
    dies_after_init: STDIO, EACH, list 4, call 4;

    banner: BOTH, EACH, list 0, call 0;
    broken_braces: BOTH, EACH, list 0, call 0;
    nul_bytes: BOTH, EACH, list 0, call 0;
    nul_separated: STDIO, EACH, list 0, call 0;
    nul_inside: STDIO, LEGACY, list 0, call 10;
    nul_flood: STDIO, LEGACY, list 0, call 10;
    ansi_banner: STDIO, LEGACY, list 0, call 0;
    pretty_json: STDIO, LEGACY, list 10, call 10;
    content_length: STDIO, LEGACY, list 10, call 10;
    two_on_one_line: STDIO, LEGACY, list 0, call 0 | 10;
    invalid_utf8: BOTH, LEGACY, list 0, call 0 | 10;
    giant_message: BOTH, LEGACY, list 10, call 10;
    many_values: BOTH, LEGACY, list 0, call 10;
    deep_json: BOTH, LEGACY, list 10, call 10;
    half_answer: BOTH, LEGACY, list 0, call 7;
    byte_order_mark: STDIO, LEGACY, list 0, call 0;
    stderr_flood: STDIO, LEGACY, list 0, call 0;
    stderr_ansi: STDIO, LEGACY, list 0, call 0;

    never_answers_call: BOTH, EACH, list 0, call 7;
    wrong_id: BOTH, LEGACY, list 0, call 10;
    string_id: BOTH, LEGACY, list 0, call 0 | 10;
    result_and_error: BOTH, EACH, list 0, call 10;
    neither_result_nor_error: BOTH, LEGACY, list 0, call 10;
    error_not_an_object: BOTH, LEGACY, list 0, call 10;
    rpc_error: BOTH, EACH, list 0, call 3;
    tool_error: BOTH, EACH, list 0, call 3;
    asks_everything: BOTH, LEGACY, list 0, call 0;
    log_ansi: BOTH, LEGACY, list 0, call 0;
    unknown_result_type: BOTH, MODERN, list 0, call 10;
    unknown_content: BOTH, EACH, list 0, call 10;

    no_tools: BOTH, EACH, list 0, call 2;
    one_bad_tool: BOTH, EACH, list 11, call 0;
    tools_not_a_list: BOTH, LEGACY, list 10, call 10;
    cursor_loop: BOTH, LEGACY, list 11, call 0;
    cursor_empty: BOTH, EACH, list 0, call 0;
    second_page_fails: BOTH, LEGACY, list 11, call 0;
    many_tools: BOTH, LEGACY, list 0, call 0;
    very_many_tools: STDIO, LEGACY, list 0, call 2;
    odd_schemas: BOTH, LEGACY, list 0, call 2;
    output_mismatch: BOTH, EACH, list 0, call 10;
    remote_ref: BOTH, LEGACY, list 0, call 0;
    rug_pull: BOTH, EACH, list 0, call 0;
    rug_pull_announced: STDIO, LEGACY, list 0, call 6;
    addresses: BOTH, EACH, list 0, call 0;
    poisoned: BOTH, EACH, list 0, call 0;

    offers: BOTH, EACH, list 0, call 0;
    offers_bad_items: BOTH, LEGACY, list 0, call 0;
    offers_cursor_loop: BOTH, LEGACY, list 0, call 0;
    offers_second_page_fails: BOTH, LEGACY, list 0, call 0;
    offers_evil: BOTH, LEGACY, list 0, call 0;
    offers_broken_answers: BOTH, LEGACY, list 0, call 0;
    offers_no_subscriptions: BOTH, LEGACY, list 0, call 0;
    offers_shell_words: BOTH, LEGACY, list 0 | 11, call 0;
    offers_subscription_ends: BOTH, MODERN, list 0, call 0;
    offers_subscription_breaks: STDIO, LEGACY, list 0, call 0;

    evil_everywhere: BOTH, EACH, list 11, call 0;
    ansi_everywhere: BOTH, EACH, list 0, call 0;
    secret_echo: BOTH, LEGACY, list 0, call 0;

    http_500: HTTP, LEGACY, list 4, call 4;
    http_html: HTTP, LEGACY, list 10, call 10;
    http_401: HTTP, LEGACY, list 5, call 5;
    http_202: HTTP, LEGACY, list 10, call 10;
    http_redirect_file: HTTP, LEGACY, list 6, call 6;
    http_short_body: HTTP, LEGACY, list 10, call 10;
    http_endless_body: HTTP, LEGACY, list 10, call 10;
    http_not_http: HTTP, LEGACY, list 10, call 10;
    http_sse_cut: HTTP, LEGACY, list 0, call 4;

    exit_mid_call: STDIO, EACH, list 0, call 4;
    exit_after_call: STDIO, LEGACY, list 0, call 0;
    ignores_eof: STDIO, LEGACY, list 0, call 0;
    ignores_term: STDIO, LEGACY, list 0, call 0;
    grandchild: STDIO, LEGACY, list 0, call 0;
    grandchild_escapes: STDIO, LEGACY, list 0, call 0;
    forgets_children: STDIO, LEGACY, list 0, call 7;
    grandchild_holds_pipes: STDIO, LEGACY, list 0, call 4;
}

fn spelled(places: &[Place]) -> &'static str {
    match places {
        [Place::Stdio] => "stdio",
        [Place::Http] => "http",
        _ => "both",
    }
}

/// Runs both commands for each place and era, and reports everything that differs at once.
fn try_fault(name: &str, places: &[Place], eras: &[&str], list: &[i32], call: &[i32]) {
    let fault = name.replace('_', "-");
    // Only who waits for silence wants to wait for a short time.
    let is_silent = list.iter().chain(call).any(|code| *code == 7);
    let limits = if is_silent { "" } else { "timeout: 30s\nstart_timeout: 30s\n" };
    let mut wrong = Vec::new();
    for &place in places {
        for era in eras {
            let room = Sandbox::new();
            let fixture = Fixture::fault(place, &fault, era, &room.log("bad"));
            room.server_with("bad", &fixture, limits);
            let runs = [
                (room.with_servers(["list"]), list),
                (room.with_servers(["call", "bad-echo", "message=hello"]), call),
            ];
            for (run, codes) in runs {
                let finished = run.go();
                let mut found = finished.violations(&room);
                if !finished.code.is_some_and(|code| codes.contains(&code)) {
                    found.push(format!("expected one of {codes:?}"));
                }
                if !found.is_empty() {
                    wrong.push(format!("{place:?} {era}: {}\n{finished}", found.join("; ")));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} runs are wrong\n\n{}", wrong.len(), wrong.join("\n\n"));
}
