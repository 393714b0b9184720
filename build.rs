//! Links the binary for a quick start on Linux: at a fixed address, with few libraries to load, and
//! with what short runs execute in one place.
//!
//! A position-independent executable has some 18,000 addresses to fix at every start, which costs
//! more than reading the configuration, connecting and calling a tool do. Libraries, heap and
//! stack stay where the kernel puts them at random. Measured over one whole call against a server
//! that does nothing: 4.2 ms before, 3.5 ms after, at their best.

#![expect(clippy::disallowed_methods, reason = "a build script is told by variables")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    let gnu = std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu");
    if linux && gnu {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
    if linux && std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        place_start_first();
        strip_what_is_shipped();
    }
    let native = std::env::var("HOST").ok() == std::env::var("TARGET").ok();
    if linux && gnu && native {
        unwind_from_inside();
    }
}

/// Puts the functions that short runs execute side by side (`.ci/start-order`). Spread over the whole
/// program they need a page each, and mapping those took longer than executing them. Not every linker
/// reads such a script, so that a chosen one is left alone.
fn place_start_first() {
    println!("cargo::rerun-if-changed=src/start_order.ld");
    println!("cargo::rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
    let variable = |name| std::env::var(name).unwrap_or_default();
    let flags = variable("CARGO_ENCODED_RUSTFLAGS");
    let is_chosen = flags.contains("linker=") || flags.contains("fuse-ld=");
    if !is_chosen && variable("RUSTC_LINKER").is_empty() {
        let script = format!("{}/src/start_order.ld", variable("CARGO_MANIFEST_DIR"));
        println!("cargo::rustc-link-arg-bins=-T{script}");
    }
}

/// Takes the symbols out of a build of the profile `dist`. Were that said in the profile, the functions
/// of a build with symbols, which `.ci/start-order` looks at, would have other names.
fn strip_what_is_shipped() {
    println!("cargo::rerun-if-env-changed=TOOLHOST_SYMBOLS");
    let is_dist =
        std::env::var("OUT_DIR").is_ok_and(|path| path.split('/').any(|part| part == "dist"));
    if is_dist && std::env::var_os("TOOLHOST_SYMBOLS").is_none() {
        println!("cargo::rustc-link-arg-bins=-Wl,-s");
    }
}

/// Takes the code that unwinds a panic from the compiler's static library. Without the shared one
/// there is a library less to load, and its constructor, which asks the processor what it can do,
/// is not run; under a hypervisor that alone is 0.1 ms of each start. If there is no such static
/// library the shared one is used as ever.
fn unwind_from_inside() {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut asked = std::process::Command::new(compiler);
    let Ok(answer) = asked.arg("-print-file-name=libgcc_eh.a").output() else { return };
    let path = String::from_utf8(answer.stdout).unwrap_or_default();
    // A library that is not there comes back as its bare name.
    let file = std::path::Path::new(path.trim());
    if let Some(directory) = file.parent().filter(|_| file.is_file()) {
        println!("cargo::rustc-link-search=native={}", directory.display());
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}
