//! The `toolhost` program: arguments in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    toolhost::run::run(std::env::args_os())
}
