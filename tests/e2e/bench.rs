//! Many calls of a tool, end to end: what is reported, what ends a run, and what is refused.

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Fixture, Place, Pty, Run, Sandbox, log_events};

/// A room with one server called `srv`.
struct House {
    room: Sandbox,
    _fixture: Fixture,
}

impl House {
    fn new(fault: &str) -> Self {
        Self::with(|room| Fixture::fault(Place::Stdio, fault, "legacy", &room.log("srv")))
    }

    /// A fault that begins after so many calls.
    fn after(calls: usize, fault: &str) -> Self {
        Self::with(|room| Fixture::fault_after(calls, fault, &room.log("srv")))
    }

    fn with(fixture: impl FnOnce(&Sandbox) -> Fixture) -> Self {
        let room = Sandbox::new();
        let fixture = fixture(&room);
        room.server("srv", &fixture);
        Self { room, _fixture: fixture }
    }

    /// `toolhost bench srv-echo message=hi …`
    fn bench<'a>(&'a self, words: &[&'a str]) -> Run<'a> {
        self.room.with_servers(["bench", "srv-echo", "message=hi"].iter().chain(words).copied())
    }

    fn report(&self, words: &[&str], code: i32) -> Value {
        let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
        let finished = self.bench(&words).check();
        finished.exits(code);
        finished.json()
    }

    /// How many calls reached the server.
    fn calls(&self) -> usize {
        let messages = log_events(&self.room.log("srv"), "message");
        messages.iter().filter(|message| message["method"] == "tools/call").count()
    }

    fn was_started(&self) -> bool {
        !log_events(&self.room.log("srv"), "start").is_empty()
    }

    /// Waits until so many calls have arrived; the run under test does not end before that.
    #[track_caller]
    fn await_calls(&self, count: usize) {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while self.calls() < count {
            assert!(std::time::Instant::now() < deadline, "no call arrived");
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_benchmarked_call_is_an_ordinary_call() {
    let house = House::new("none");
    house.room.with_servers(["call", "srv-echo", "message=hi"]).check().exits(0);
    house.report(&["-n", "2", "--warmup", "0"], 0);
    let messages = log_events(&house.room.log("srv"), "message");
    let calls: Vec<&Value> =
        messages.iter().filter(|message| message["method"] == "tools/call").collect();
    assert_eq!(calls.len(), 3, "{calls:?}");
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    for call in &calls {
        assert_eq!(call["params"]["arguments"], calls[0]["params"]["arguments"]);
        assert_eq!(keys(&call["params"]["_meta"]), keys(&calls[0]["params"]["_meta"]), "{call}");
    }
    assert_ne!(calls[1]["id"], calls[2]["id"]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_report_says_what_the_run_cost_both_sides() {
    let house = House::new("none");
    let report = house.report(&["-n", "50"], 0);
    assert!(report["generator"]["cpu_s"].is_number(), "{report}");
    assert!(report["environment"]["servers"][0]["cpu_s"].is_number(), "{report}");
    let told = house.bench(&["-n", "50", "-v"]).check();
    assert_eq!(told.exits(0).out().matches("of processor time").count(), 2, "{told}");
}

#[test]
fn every_call_is_made_and_reported() {
    let house = House::new("none");
    let report = house.report(&["-n", "20", "--warmup", "3"], 0);
    assert_eq!(report["tool"], "srv-echo");
    assert_eq!((&report["requests"], &report["ok"]), (&Value::from(20), &Value::from(20)));
    for times in ["latency_ms", "service_ms"] {
        for figure in ["min", "mean", "stddev", "p50", "p90", "p95", "p99", "p999", "max"] {
            assert!(report[times][figure].is_number(), "{times}.{figure}: {report}");
        }
    }
    assert_eq!(house.calls(), 23);
}

#[test]
fn the_text_names_the_load_and_its_bounds() {
    let house = House::new("none");
    let finished = house.bench(&["-n", "20", "-v"]).check();
    let out = finished.exits(0).out();
    for words in ["srv-echo", "20 calls in", "closed load", "p50", "p99", "~", "warm-up"] {
        assert!(out.contains(words), "{words}\n{finished}");
    }
    let finished = house.bench(&["--rate", "400", "-n", "20", "-v"]).check();
    let out = finished.exits(0).out();
    for words in ["open load: 400/s", "response", "service", "after it could be sent"] {
        assert!(out.contains(words), "{words}\n{finished}");
    }
}

#[test]
fn a_run_is_told_in_ten_lines_unless_more_is_asked_for() {
    let house = House::new("none");
    let words = ["-n", "50", "--fail-if", "error_rate>10%", "--save", "first.json"];
    house.bench(&words).check().exits(0);
    let compared = ["-n", "50", "--vs", "srv-add", "--vs-args", "{\"a\": 1, \"b\": 2}"];
    let since = ["-n", "50", "--baseline", "first.json", "--fail-if", "p99>1h"];
    for words in [&words[..4], &compared, &since] {
        let finished = house.bench(words).check();
        let out = finished.exits(0).out();
        let columns = |line: &str| line.chars().count().div_ceil(100).max(1);
        assert!(out.lines().map(columns).sum::<usize>() <= 10, "{finished}");
        assert!(out.contains("50 calls") && out.contains("p95 "), "{finished}");
        finished.says(&["more: -v, --html FILE"]);
    }
}

#[test]
fn a_page_of_a_run_is_shown_by_a_browser_without_network_or_scripts() {
    const BROWSERS: [&str; 3] =
        ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    let Some(browser) = BROWSERS.iter().find(|path| std::path::Path::new(path).is_file()) else {
        return crate::support::left_out("there is no Chromium to open a page with");
    };
    let house = House::new("none");
    house.bench(&["-n", "200", "--save", "first.json"]).check().exits(0);
    for more in [
        &["--fail-if", "error_rate>10%"][..],
        &["--vs", "srv-add", "--vs-args", "{\"a\": 1, \"b\": 2}"],
        &["--baseline", "first.json"],
    ] {
        let words = [&["-n", "200", "--html", "run.html"], more].concat();
        house.bench(&words).check().exits(0).says(&["saved run.html"]);
        let page = format!("file://{}", house.room.path("work/run.html").display());
        let profile = format!("--user-data-dir={}", house.room.path("run/profile").display());
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--no-first-run",
            &profile,
            "--dump-dom",
            &page,
        ];
        let limit = std::time::Duration::from_mins(3);
        let shown = house.room.program(browser, arguments).limit(limit).go();
        assert_eq!(shown.code, Some(0), "{shown}");
        let dom = shown.out();
        for expected in ["<h1>Benchmark of srv-echo", "<svg ", "Latency by percentile", "</html>"] {
            assert!(dom.contains(expected), "{expected}\n{shown}");
        }
        // The parser of a browser finds what the page holds: as many pictures, and no element that
        // runs or fetches something.
        assert_eq!(dom.matches("<svg ").count(), 4, "{shown}");
        assert!(!dom.contains("<script") && !dom.contains("<link"), "{shown}");
    }
}

#[test]
fn other_formats_hold_the_same_run() {
    let house = House::new("none");
    let yaml = house.bench(&["-n", "5", "-o", "yaml"]).check();
    assert!(yaml.exits(0).out().contains("requests: 5\n"), "{yaml}");
    house.bench(&["-n", "5", "-o", "names"]).check().exits(2).says(&["invalid value 'names'"]);
}

#[test]
fn calls_of_a_server_that_goes_wrong_are_told_apart() {
    for (fault, kind) in [("tool-error", "tool"), ("result-and-error", "protocol")] {
        let house = House::after(8, fault);
        let report = house.report(&["-n", "20", "--warmup", "0"], 0);
        assert_eq!((&report["requests"], &report["ok"]), (&Value::from(20), &Value::from(8)));
        assert_eq!(report["errors_by_kind"][kind]["count"], 12, "{fault}: {report}");
    }
}

#[test]
fn a_server_that_dies_costs_the_calls_in_flight_and_no_success() {
    let house = House::after(8, "exit-mid-call");
    let report = house.report(&["-n", "12", "--warmup", "0"], 0);
    assert!(report["ok"].as_u64().unwrap() >= 8, "{report}");
    assert!(report["errors_by_kind"]["unreachable"]["count"].as_u64().unwrap() >= 1, "{report}");
}

#[test]
fn a_server_that_stops_answering_costs_timeouts() {
    let house = House::after(8, "never-answers-call");
    let report = house.report(&["-n", "10", "--warmup", "0", "--timeout", "200ms"], 0);
    assert_eq!((&report["ok"], &report["timeouts"]), (&Value::from(8), &Value::from(2)));
}

#[test]
fn noise_between_the_answers_is_no_failure() {
    for fault in ["banner", "stderr-flood"] {
        let house = House::new(fault);
        let report = house.report(&["-n", "12"], 0);
        assert_eq!(report["ok"], 12, "{fault}: {report}");
    }
}

#[test]
fn without_a_success_the_commonest_failure_is_the_code() {
    for (fault, more, code) in [
        ("tool-error", &["-n", "4"][..], 3),
        ("exit-mid-call", &["-n", "4"], 4),
        ("never-answers-call", &["-n", "2", "--timeout", "200ms"], 7),
        ("result-and-error", &["-n", "4"], 10),
    ] {
        let house = House::new(fault);
        let finished = house.bench(more).check();
        finished.exits(code);
        assert!(finished.out().contains("none succeeded"), "{fault}\n{finished}");
    }
}

#[test]
fn a_run_ends_when_too_much_failed() {
    let house = House::after(5, "tool-error");
    let words = ["-n", "100000", "--warmup", "0", "--stop-after-failures", "7"];
    let finished = house.bench(&words).check();
    assert!(finished.exits(0).out().contains("stopped early (after "), "{finished}");
    assert_eq!(house.calls(), 12);
}

#[test]
fn what_asks_or_writes_is_refused() {
    let house = House::new("none");
    let wipe = |more: &[&'static str]| {
        house
            .room
            .with_servers(["bench", "srv-wipe", "-n", "3"].iter().chain(more).copied())
            .check()
    };
    wipe(&[]).exits(6).says(&["srv-wipe", "--allow-writes"]);
    assert_eq!(house.calls(), 0);
    wipe(&["--allow-writes", "--warmup", "0"]).exits(0);
    assert_eq!(house.calls(), 3);
}

#[test]
fn nothing_is_started_for_a_wrong_command_line() {
    let house = House::new("none");
    house.room.file("odd.jsonl", "{\"message\": \"a\"}\n[1]\n");
    for (words, said) in [
        (&["bench", "srv-echo", "--over", "drop"][..], "--rate"),
        (&["bench", "srv-echo", "--rate", "fast"], "--rate"),
        (&["bench", "srv-echo", "--rate", "10..100:60s"], "--rate"),
        (&["bench", "srv-echo", "-n", "0"], "0"),
        (&["bench", "srv-echo", "--args-lines", "none.jsonl"], "none.jsonl"),
        (&["bench", "srv-echo", "--args-lines", "odd.jsonl"], "line 2"),
        (&["bench", "srv-echo", "a=1", "--args-lines", "odd.jsonl"], "--args-lines"),
        (&["bench", "srv-echo", "--fail-if", "p99>"], "p99>"),
        (&["bench", "srv-echo", "--save", "no/such/dir.json"], "--save"),
        (&["bench", "srv-echo", "--html", "."], "--html"),
        (&["bench", "srv-echo", "--save", "x", "--html", "x"], "--html"),
        (&["bench", "srv-echo", "--export", "x.hgrm"], "FILE.csv"),
        (&["bench", "srv-echo", "--baseline", "odd.jsonl"], "baseline"),
        (&["bench", "srv-echo", "--max-regression", "10%"], "--baseline"),
        (&["bench", "srv-echo", "--vs-args", "{}"], "--vs"),
        (&["bench", "srv-echo", "--fail-if", "p99>A.p95*2"], "p99>A.p95*2"),
    ] {
        // A file that was named and is not there is one of configuration.
        let code = if said == "none.jsonl" { 9 } else { 2 };
        house.room.with_servers(words.iter().copied()).check().exits(code).says(&[said]);
    }
    assert!(!house.was_started());
}

#[test]
fn arguments_come_line_by_line_and_are_checked_before_the_first_call() {
    let house = House::new("none");
    house.room.file("args.jsonl", "{\"message\": \"one\"}\n\n{\"message\": \"two\"}\n");
    let run = |file: &'static str| {
        let words = ["bench", "srv-echo", "--args-lines", file, "-n", "4", "--warmup", "0"];
        house.room.with_servers(words).check()
    };
    run("args.jsonl").exits(0);
    let sent: Vec<Value> = log_events(&house.room.log("srv"), "message")
        .into_iter()
        .filter(|message| message["method"] == "tools/call")
        .map(|message| message["params"]["arguments"]["message"].clone())
        .collect();
    assert_eq!(sent, ["one", "two", "one", "two"]);
    house.room.file("wrong.jsonl", "{\"message\": \"one\"}\n{\"massage\": \"two\"}\n");
    run("wrong.jsonl").exits(2).says(&["message", "row 2 of the arguments"]);
    house.room.file("broken.jsonl", "{\"message\": \"one\"}\n\n{x}\n");
    let broken = run("broken.jsonl");
    broken.exits(2).says(&["broken.jsonl': line 3, column 2 is not valid JSON: "]);
    assert!(!broken.err().contains("at line"), "{broken}");
    assert_eq!(house.calls(), 4);
}

#[test]
fn a_threshold_that_is_true_fails_the_run() {
    let house = House::after(15, "tool-error");
    let words = ["-n", "20", "--warmup", "0", "--fail-if", "error_rate>10%", "--fail-if", "p50>1h"];
    let finished = house.bench(&words).check();
    finished.exits(8).says(&["error_rate", "FAIL"]);
    assert!(finished.out().contains("threshold: error_rate"), "{finished}");
    let words: Vec<&str> = words.iter().copied().chain(["-v"]).collect();
    let whole = house.bench(&words).check();
    assert!(whole.exits(8).out().contains("Thresholds"), "{whole}");
    let house = House::new("none");
    house.bench(&["-n", "20", "--fail-if", "error_rate>10%"]).check().exits(0);
}

#[test]
fn a_run_is_kept_and_compared_with() {
    let house = House::new("none");
    let first = house.bench(&["-n", "30", "--save", "first.json"]).check();
    first.exits(0).says(&["saved first.json"]);
    let words = ["-n", "30", "--baseline", "first.json", "--max-regression", "10000%"];
    let second = house.bench(&words).check();
    let told = second.exits(0).out();
    assert!(told.contains("since first.json: "), "{second}");
    assert!(told.contains("; --max-regression of mean, p95, "), "{second}");
    let words: Vec<&str> = words.iter().copied().chain(["-v"]).collect();
    let whole = house.bench(&words).check();
    assert!(whole.exits(0).out().contains("Compared with first.json"), "{whole}");
    let report = house.report(&["-n", "30", "--baseline", "first.json"], 0);
    assert!(report["baseline"].is_object(), "{report}");
}

#[test]
fn two_tools_take_turns_and_are_compared() {
    let house = House::new("none");
    let words = ["-n", "40", "--vs", "srv-add", "--vs-args", "{\"a\": 1, \"b\": 2}"];
    let report = house.report(&words, 0);
    let tools: Vec<&Value> =
        report["targets"].as_array().unwrap().iter().map(|target| &target["tool"]).collect();
    assert_eq!(tools, ["srv-echo", "srv-add"]);
    for target in report["targets"].as_array().unwrap() {
        assert_eq!(target["ok"], 40, "{report}");
    }
    assert_eq!(report["comparison"].as_array().map(Vec::len), Some(1), "{report}");
    let words: Vec<&str> = words.iter().copied().chain(["-v"]).collect();
    let finished = house.bench(&words).check();
    let out = finished.exits(0).out();
    for said in ["A  srv-echo", "B  srv-add", "B compared with A", "B/A", "alternately, 20 rounds"]
    {
        assert!(out.contains(said), "{said}\n{finished}");
    }
}

#[test]
fn other_programs_get_their_forms() {
    let house = House::new("none");
    let words = ["-n", "20", "--export", "a.csv", "--export", "b.md"];
    house.bench(&words).check().exits(0);
    let file = |name: &str| std::fs::read_to_string(house.room.path("work").join(name)).unwrap();
    assert!(file("a.csv").contains("srv-echo"));
    assert!(file("b.md").contains("| p50 |"));
    for (format, said) in [("csv", "srv-echo"), ("markdown", "| p50 |")] {
        let finished = house.bench(&["-n", "5", "-o", format]).check();
        assert!(finished.exits(0).out().contains(said), "{finished}");
    }
}

#[test]
fn a_plan_for_locust_makes_no_call() {
    let house = House::with(|room| Fixture::fault(Place::Http, "none", "legacy", &room.log("srv")));
    let words = ["-n", "20", "-c", "2", "--export-locust", "plan.py"];
    house.bench(&words).check().exits(0).says(&["saved plan.py"]);
    let text = std::fs::read_to_string(house.room.path("work/plan.py")).unwrap();
    assert!(text.contains("locust") && text.contains("echo"), "{text}");
    assert_eq!(house.calls(), 0);
    let house = House::new("none");
    house.bench(&words).check().exits(2).says(&["--export-locust", "HTTP"]);
}

#[test]
fn an_interruption_ends_the_run_and_keeps_what_there_is() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let house = House::new("none");
        let running = house.bench(&["--duration", "50s", "--warmup", "0"]).start();
        house.await_calls(5);
        running.signal(signal);
        let finished = running.finish();
        finished.hold(&house.room);
        finished.exits(code);
        assert!(
            finished.out().contains("stopped early: the figures cover the calls made so far"),
            "{finished}"
        );
    }
}

#[test]
fn a_second_interruption_waits_for_nothing_and_still_reports() {
    let house = House::after(5, "never-answers-call");
    let running = house.bench(&["--duration", "50s", "--warmup", "0"]).start();
    house.await_calls(6);
    running.signal(Signal::INT);
    running.signal(Signal::INT);
    let finished = running.finish();
    finished.hold(&house.room);
    finished.exits(130);
    assert!(finished.out().contains("6 calls in"), "{finished}");
}

#[test]
fn a_person_sees_the_run_and_may_end_it() {
    let house = House::new("none");
    let words = ["--mcp", "mcp.yaml", "bench", "srv-echo", "message=hi", "--duration", "50s"];
    for columns in [40, 80, 120] {
        let mut pty = Pty::sized(&house.room, env!("CARGO_BIN_EXE_toolhost"), &words, 24, columns);
        pty.expect("measuring").expect("calls/s").type_keys("\u{3}");
        let (status, screen) = pty.finish();
        assert_eq!(status, Some(130), "{screen}");
        // What follows the last frame is the report.
        let report = screen.rsplit("\u{1b}[J").next().unwrap_or_default();
        assert!(report.contains("stopped early"), "{screen}");
        let widest = plain(report).lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= usize::from(columns), "{widest} cells of {columns}\n{report}");
    }
}

#[test]
fn plain_output_repaints_nothing() {
    let house = House::new("none");
    let words = ["--mcp", "mcp.yaml", "--plain", "bench", "srv-echo", "message=hi", "-n", "50"];
    let (status, screen) = Pty::toolhost(&house.room, &words).finish();
    assert_eq!(status, Some(0), "{screen}");
    assert!(!screen.contains('\u{1b}'), "{screen:?}");
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    if crate::support::lacks(&["bash"]) {
        return;
    }
    let house = House::new("none");
    let script = "\"$0\" --mcp mcp.yaml bench srv-echo message=hi -n 5 | true; \
                  test \"${PIPESTATUS[0]}\" = 0";
    let finished =
        house.room.program("bash", ["-c", script, env!("CARGO_BIN_EXE_toolhost")]).check();
    finished.exits(0);
}

/// Text without the sequences that colour it.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        out.push_str(before);
        rest = after
            .trim_start_matches(|c: char| c.is_ascii_digit() || c == ';')
            .get(1..)
            .unwrap_or("");
    }
    out + rest
}

#[test]
fn steps_of_calls_in_flight_are_one_table_in_every_form() {
    let house = House::new("none");
    let words = ["-c", "1,4", "-n", "40", "--warmup", "5", "--html", "run.html"];
    let report = house.report(&words, 0);
    let steps = report["steps"].as_array().unwrap();
    let seen: Vec<_> = steps.iter().map(|step| (&step["concurrency"], &step["requests"])).collect();
    assert_eq!(seen, [(&1.into(), &40.into()), (&4.into(), &40.into())]);
    assert!(steps.iter().all(|step| step["failed"] == 0 && step["p95_ms"].as_f64() > Some(0.0)));
    assert_eq!(report["targets"][1]["peak_in_flight"], 4);
    // Each step warms up by itself, and has a line in the audit log.
    assert_eq!(house.calls(), 90);
    let page = std::fs::read_to_string(house.room.path("work/run.html")).unwrap();
    for expected in ["<span>in flight</span>", "srv-echo at 4 in flight"] {
        assert!(page.contains(expected), "{expected}\n{page}");
    }
    let told = house.bench(&["-c", "1,4", "-n", "40", "--fail-if", "B.error_rate>1%"]).check();
    for expected in ["in flight  calls/s", "p95", "80 calls in 2 steps", "1 of 1 hold"] {
        assert!(told.exits(0).out().contains(expected), "{expected}\n{told}");
    }
    assert!(told.out().lines().any(|line| line.trim_start().starts_with("4 ")), "{told}");
}

#[test]
fn a_step_with_too_many_errors_is_the_last_one_only_when_that_was_asked_for() {
    let house = House::after(30, "tool-error");
    let words = ["-c", "1,2,4", "-n", "20", "--warmup", "0"];
    let limited = [&words[..], &["--step-error-limit", "10%"]].concat();
    let report = house.report(&limited, 0);
    let failed: Vec<_> = report["steps"].as_array().unwrap().iter().collect();
    assert_eq!(failed.len(), 2, "{report}");
    assert_eq!((&failed[0]["failed"], &failed[1]["failed"]), (&0.into(), &10.into()));
    assert_eq!(report["ending"], "complete");
    let house = House::after(30, "tool-error");
    assert_eq!(house.report(&words, 0)["steps"].as_array().unwrap().len(), 3);
    let told = house.bench(&limited).check();
    assert!(told.out().contains("stopped: more than 10% of the calls failed"), "{told}");
}
