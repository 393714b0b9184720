//! toolhost's own log: `--log-filter`, `--log-file`, `--log-format`, `TOOLHOST_LOG`.

mod directives;
mod writer;

use std::sync::Arc;

use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::Registry;

use self::writer::LogWriter;
use super::context::CommandContext;
use super::options::LogFormat;
use crate::model::Error;
use crate::util::append::RecordLocation;
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::timestamp;

/// The file below the state directory that the console logs to by default, because it uses the
/// terminal itself.
pub const CONSOLE_FILE: &str = "toolhost.log";

/// The variable with the default of `--log-filter`.
const VARIABLE: &str = "TOOLHOST_LOG";

/// The directives if only a file or a format is given.
const DEFAULT_DIRECTIVES: &str = "info";

/// Starts the log requested by the command line or `TOOLHOST_LOG`, for the rest of the process.
/// Without one nothing is done, and an event costs one comparison.
pub fn start(context: &CommandContext, is_console: bool) -> Result<(), Error> {
    let global = &context.global;
    let variable = context.environment.var(VARIABLE).filter(|value| !value.trim().is_empty());
    let (source, directives) = match (&global.rare.log_filter, variable) {
        (Some(directives), _) => ("--log-filter", directives.clone()),
        (None, Some(directives)) => (VARIABLE, directives),
        (None, None) if global.rare.log_file.is_some() || global.rare.log_format.is_some() => {
            ("--log-filter", DEFAULT_DIRECTIVES.to_owned())
        }
        (None, None) => return Ok(()),
    };
    let filter = directives::parse(&directives, source)?;
    if filter.iter().all(|(_, level)| level == tracing::level_filters::LevelFilter::OFF) {
        return Ok(());
    }
    let format = global.rare.log_format.unwrap_or_default();
    let location = location(context, is_console);
    let writer = LogWriter::open(Arc::clone(&context.output), location, format, is_console)?;
    install(writer, format, filter)
}

fn location(context: &CommandContext, is_console: bool) -> Option<RecordLocation> {
    if let Some(path) = &context.global.rare.log_file {
        return Some(RecordLocation::named(context.environment.cwd().join(path)));
    }
    let is_covered = is_console && context.output.has_stderr_terminal();
    let state = context.environment.state_dir().filter(|_| is_covered)?;
    Some(RecordLocation::own(&state, CONSOLE_FILE))
}

fn install(writer: LogWriter, format: LogFormat, filter: Targets) -> Result<(), Error> {
    let lines =
        tracing_subscriber::fmt::layer().with_writer(writer).with_timer(LogTimer).with_ansi(false);
    let lines = match format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let subscriber = Registry::default().with(lines.with_filter(filter));
    tracing::subscriber::set_global_default(subscriber)
        .map_err(|_| Error::internal("logging is already set up"))
}

/// Times as in all stable output: RFC 3339 with the local offset, to the microsecond.
struct LogTimer;

impl FormatTime for LogTimer {
    fn format_time(&self, w: &mut Writer<'_>) -> std::fmt::Result {
        w.write_str(&timestamp::rfc3339(SystemClock.unix().as_secs_f64()))
    }
}
