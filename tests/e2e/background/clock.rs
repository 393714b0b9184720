//! A host whose system clock is set while it runs.

use std::process::Command;

use serde_json::Value;

use super::{count, hosts, pid_of, trusted};
use crate::support::Sandbox;

/// A library that is loaded before the system's and tells a wall time that is off by as many seconds as a
/// file says. The monotonic clock stays as it is, as when a person or NTP sets the clock.
const SHIFTED_CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
    int (*system)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = system(clock, time);
    FILE *file = clock == CLOCK_REALTIME ? fopen(getenv("SHIFT_OF_CLOCK"), "r") : NULL;
    long shift = 0;
    if (file && fscanf(file, "%ld", &shift) == 1) time->tv_sec += shift;
    if (file) fclose(file);
    return failed;
}
"#;
const DAY: i64 = 86_400;

fn shift(room: &Sandbox, seconds: i64) {
    // Written beside and moved, so that it is never read half.
    std::fs::write(room.path("run/shift.new"), seconds.to_string()).unwrap();
    std::fs::rename(room.path("run/shift.new"), room.path("run/shift")).unwrap();
}

/// When calls were recorded, in the order in which they were made.
fn recorded(room: &Sandbox, command: &[&str]) -> Vec<String> {
    let records = room.toolhost(command.iter().copied()).go().json();
    let mut records: Vec<Value> = records.as_array().unwrap().clone();
    // Identities of calls grow.
    let key = if records[0].get("call").is_some() { "call" } else { "id" };
    records.sort_by_key(|record| record[key].as_str().unwrap().to_owned());
    records.iter().map(|record| record["time"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_clock_that_is_set_ends_no_host_early_and_lets_no_record_run_backwards() {
    let Some(room) = trusted() else { return };
    let (source, library) = (room.path("run/clock.c"), room.path("run/clock.so"));
    std::fs::write(&source, SHIFTED_CLOCK).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).args([&library, &source]);
    assert!(compiler.status().unwrap().success());
    shift(&room, 0);
    let up = room.toolhost(["up", "--idle", "10m"]);
    let up = up.env("LD_PRELOAD", library.to_str().unwrap());
    up.env("SHIFT_OF_CLOCK", room.path("run/shift").to_str().unwrap()).go().exits(0);
    let host = pid_of(&hosts(&room)[0]);
    for (calls, days) in [(1, 0), (2, 2), (3, -2), (4, -1)] {
        shift(&room, days * DAY);
        let (_, made, used) = count(&room, &[]);
        assert_eq!((made, used), (calls, Some(host)), "{days} days");
        let told = &hosts(&room)[0];
        let seconds = |key: &str| told[key].as_f64().unwrap();
        assert!((0.0..600.0).contains(&seconds("uptime_s")), "{told}");
        assert!((300.0..=600.0).contains(&seconds("idle_left_s")), "{told}");
    }
    for records in [&["audit", "--json"][..], &["history", "list", "--json"]] {
        let times = recorded(&room, records);
        assert_eq!(times.len(), 4);
        assert!(times.is_sorted(), "{times:?}");
        // The clock was set at all: what came then is two days after the first.
        assert_ne!(times[0][..10], times[1][..10], "{times:?}");
    }
    room.toolhost(["down"]).check().exits(0);
}
