//! The `toolhost` program: arguments in, exit code out.

use std::process::ExitCode;

/// musl's own allocator asks the system for memory and gives it back so often that a call takes half
/// as long again. `docs/decisions/21-one-file.md` lists what else was measured.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    toolhost::run(std::env::args_os())
}
