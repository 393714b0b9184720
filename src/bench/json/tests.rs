//! Tests that reports match their JSON Schema, and that the schema lists every key of them.

use serde_json::{Value, json};

use super::*;
use crate::bench::baseline::parse;
use crate::bench::bench_result::AcceptanceCriteria;
use crate::bench::environment::ServerIdentity;
use crate::bench::fixtures::{report as of, rounds, target as to};
use crate::bench::plan::{Arrivals, LoadModel, OverflowPolicy, Sharing, WarmUp};
use crate::bench::threshold;

fn even(tool: &str, micros: u64) -> TargetReport {
    to(tool, (1..=1_000).map(move |n| Duration::from_micros(n * micros)))
}

fn environment() -> BenchEnvironment {
    BenchEnvironment {
        toolhost: "1.2.3".to_owned(),
        cpus: Some(2),
        load_before: Some([0.1, 0.2, 0.3]),
        servers: vec![ServerIdentity { tool: "a".to_owned(), ..ServerIdentity::default() }],
        ..BenchEnvironment::default()
    }
}

fn written(report: &BenchReport, demands: &AcceptanceCriteria) -> Value {
    let findings = BenchFindings::conclude(report, &environment(), demands);
    serde_json::to_value(super::RunJson::from((report, &environment(), &findings))).unwrap()
}

/// The schema, told to allow nothing that it does not name.
fn strict() -> Value {
    fn close(value: &mut Value) {
        match value {
            Value::Object(object) => {
                let named = object.get("properties").is_some_and(Value::is_object);
                if named && !object.contains_key("additionalProperties") {
                    object.insert("additionalProperties".to_owned(), false.into());
                }
                object.values_mut().for_each(close);
            }
            Value::Array(values) => values.iter_mut().for_each(close),
            _ => {}
        }
    }
    let mut schema = schemars::generate::SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<RunJson<'_>>()
        .to_value();
    close(&mut schema);
    schema
}

fn check(value: &Value) {
    // As programs get it: written and read again.
    let value: Value = serde_json::from_str(&value.to_string()).unwrap();
    let validator = jsonschema::validator_for(&strict()).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn one_target_stands_flat_and_fits_the_schema() {
    let mut report = of(vec![even("a", 10)]);
    let cause = ErrorReport { count: 2, first_seen: Duration::ZERO, sample: "no".to_owned() };
    report.targets[0].errors_by_kind.insert("tool".to_owned(), cause);
    report.targets[0].error = Some(crate::model::Error::unreachable("it died"));
    report.targets[0].cold.connect = Some(Duration::from_micros(1_500));
    let demands = AcceptanceCriteria {
        thresholds: threshold::parse(&["p99>1ms".to_owned()], 1).unwrap(),
        ..AcceptanceCriteria::default()
    };
    let value = written(&report, &demands);
    check(&value);
    assert_eq!(value["tool"], "a");
    assert!((value["latency_ms"]["p50"].as_f64().unwrap() - 5.0).abs() < 0.005);
    assert_eq!(value["cold_start"]["connect_ms"].as_f64(), Some(1.5));
    assert_eq!(value["fault"], json!({ "kind": "unreachable", "message": "it died" }));
    assert_eq!(value["unsure"], json!(["p999"]));
    assert_eq!(value["thresholds"][0]["failed"], true);
    assert_eq!(value["began"], "2027-01-15T08:00:00Z");
    for key in [
        "tool",
        "requests",
        "ok",
        "tool_errors",
        "errors",
        "timeouts",
        "elapsed_s",
        "throughput",
        "concurrency",
        "rate",
        "latency_ms",
        "service_ms",
        "histogram",
        "bytes_in",
        "bytes_out",
        "errors_by_kind",
    ] {
        assert!(value.get(key).is_some(), "{key} is documented");
    }
}

#[test]
fn several_targets_are_a_list_and_fit_the_schema() {
    let mut report = of(vec![even("a", 10), even("b", 20)]);
    report.rounds = rounds(&[10, 20], 8);
    report.plan.sharing = Sharing::Interleaved { rounds: 8 };
    let value = written(&report, &AcceptanceCriteria::default());
    check(&value);
    assert_eq!((&value["tool"], &value["letter"]), (&"a".into(), &"A".into()));
    for (key, first) in value["targets"][0].as_object().unwrap() {
        assert_eq!(&value[key], first, "{key} of A stands at the top too");
    }
    assert_eq!(value["targets"][1]["letter"], "B");
    assert_eq!(value["targets"][1]["blocks"].as_array().unwrap().len(), 8);
    assert_eq!(value["comparison"][0]["verdict"], "slower");
}

#[test]
fn nothing_measured_and_every_plan_fit_the_schema() {
    check(&written(&of(vec![to("a", [])]), &AcceptanceCriteria::default()));
    for (arrivals, over) in [
        (Arrivals::Constant { rate: 10.0 }, OverflowPolicy::Queue),
        (Arrivals::Poisson { rate: 10.0 }, OverflowPolicy::Drop),
    ] {
        let mut report = of(vec![even("a", 10)]);
        report.plan.model = LoadModel::Open { arrivals, in_flight: 5, overflow: over };
        report.plan.warm_up = WarmUp::Time(Duration::from_secs(1));
        report.plan.stop_after_failures = Some(3);
        report.generator.lag.record(Duration::from_micros(50));
        report.status = RunStatus::Stopped;
        check(&written(&report, &AcceptanceCriteria::default()));
    }
}

#[test]
fn a_comparison_with_a_baseline_fits_the_schema() {
    let report = of(vec![even("a", 10)]);
    let saved =
        parse(&written(&report, &AcceptanceCriteria::default()).to_string(), "f.json").unwrap();
    for max_regression in [None, Some(0.1)] {
        let demands = AcceptanceCriteria {
            baseline: Some(saved.clone()),
            max_regression,
            ..AcceptanceCriteria::default()
        };
        let value = written(&report, &demands);
        check(&value);
        assert_eq!(value["baseline"]["failed"], false);
    }
}

#[test]
fn what_is_no_number_is_null() {
    let mut report = of(vec![even("a", 10)]);
    report.targets[0].throughput = f64::NAN;
    assert_eq!(written(&report, &AcceptanceCriteria::default())["throughput"], Value::Null);
}
