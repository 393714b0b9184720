//! The `toolhost` program: arguments in, exit code out.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Most of what a call costs in this process is asking for memory and giving it back: a sixth less in
/// all than with the allocator of the C library.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    toolhost::run::run(std::env::args_os())
}
