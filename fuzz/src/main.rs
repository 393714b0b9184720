//! Gives what libFuzzer makes up to one of toolhost's readers, named by `TOOLHOST_FUZZ`.
#![no_main]

use std::sync::LazyLock;

use toolhost::fuzzing::Target;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("TOOLHOST_FUZZ").unwrap_or_default();
    let target = toolhost::fuzzing::TARGETS.iter().find(|target| target.name == name);
    target.unwrap_or_else(|| {
        let names = toolhost::fuzzing::TARGETS.iter().map(|target| target.name);
        panic!("TOOLHOST_FUZZ names none of {}", names.collect::<Vec<_>>().join(" "));
    })
});

libfuzzer_sys::fuzz_target!(
    init: {
        // A panic of a library's engine on a thread of its own costs a query or a check, by design.
        let abort = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| match std::thread::current().name() {
            Some("jq" | "schema") => {}
            _ => abort(info),
        }));
    },
    |data: &[u8]| (TARGET.run)(data)
);
