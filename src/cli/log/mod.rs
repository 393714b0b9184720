//! toolhost's own log: what is logged (`info`, `warn,mcp=debug`, `off,host=trace`), how, and where to: stderr,
//! or a private file.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::Registry;

use super::context::CommandContext;
use super::options::LogFormat;
use super::output::Output;
use crate::model::Error;
use crate::util::append::{AppendError, RecordLocation};
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::json::escape_invisible;
use crate::util::segments::{SegmentRetention, SegmentedLog};
use crate::util::spelling::nearest;
use crate::util::{text, timestamp};

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
    let filter = parse(&directives, source)?;
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

const CRATE: &str = "toolhost";

const ROOMS: [&str; 7] = ["assembly", "config", "host", "mcp", "providers", "run", "util"];

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Parses directives; of two for the same part, the later applies. `source` is the option or variable
/// that holds them.
fn parse(text: &str, source: &str) -> Result<Targets, Error> {
    let wrong = |column: usize, what: String, hint: String| {
        Err(Error::usage(format!("{source}, character {column}: {what}")).with_hint(hint))
    };
    let mut targets = Targets::new();
    let mut column = 1;
    for directive in text.split(',') {
        let at = column + directive.chars().take_while(|c| c.is_whitespace()).count();
        column += directive.chars().count() + 1;
        let directive = directive.trim();
        if directive.is_empty() {
            return wrong(at, "a directive is empty".into(), "write LEVEL or PART=LEVEL".into());
        }
        let (part, name) = directive.split_once('=').unwrap_or((CRATE, directive));
        let (part, name) = (part.trim(), name.trim());
        let is_level = |level: &&str| level.eq_ignore_ascii_case(name);
        let level = LEVELS.into_iter().find(is_level).and_then(|level| level.parse().ok());
        let Some(level): Option<LevelFilter> = level else {
            let offset = directive.split_once('=').map_or(0, |(part, _)| part.chars().count() + 1);
            let hint = format!("the levels are {}", LEVELS.join(", "));
            return wrong(at + offset, format!("'{name}' is not a level"), hint);
        };
        let inner = part.strip_prefix("toolhost::").unwrap_or(part);
        let room = inner.split("::").next().unwrap_or_default();
        let target = match part {
            CRATE => CRATE.to_owned(),
            _ if ROOMS.contains(&room) => format!("{CRATE}::{inner}"),
            _ => {
                let near = nearest(part, ROOMS).map(|near| format!("did you mean '{near}'? "));
                let hint =
                    format!("{}the parts are {}", near.unwrap_or_default(), ROOMS.join(", "));
                return wrong(at, format!("'{part}' is not a part of toolhost"), hint);
            }
        };
        targets = targets.with_target(target, level);
    }
    Ok(targets)
}

/// Maximum total size of the rotated files of one log, not counting the current one of 16 MiB.
const MAX_OLD_BYTES: u64 = 64 << 20;

struct LogWriter {
    output: Arc<Output>,
    /// Where lines go in place of stderr.
    file: Option<SegmentedLog>,
    format: LogFormat,
    /// The failure of the file was reported, or must not be.
    has_failed: AtomicBool,
}

impl LogWriter {
    /// Opens the file, if there is one, so that a run whose log cannot be written does not start. A
    /// later failure of it is reported on stderr, unless the console is active.
    fn open(
        output: Arc<Output>,
        location: Option<RecordLocation>,
        format: LogFormat,
        is_console: bool,
    ) -> Result<Self, Error> {
        let retention =
            SegmentRetention { max_total_bytes: MAX_OLD_BYTES, ..SegmentRetention::default() };
        let file = location.map(|location| SegmentedLog::new(location, false, retention));
        if let Some(file) = &file {
            file.open(SystemClock.unix()).map_err(|error| match error {
                AppendError::Unsafe(why) => Error::denied(format!("cannot write the log: {why}")),
                AppendError::Failed(why) => Error::internal(format!("cannot write the log: {why}"))
                    .with_hint("name another file with --log-file"),
            })?;
        }
        Ok(Self { output, file, format, has_failed: AtomicBool::new(is_console) })
    }

    fn line(&self, line: &str) {
        let line = self.output.masked_log_line(line);
        let line = match self.format {
            LogFormat::Text => text::safe_line(&line),
            LogFormat::Json => escape_invisible(&line),
        };
        let Some(file) = &self.file else { return self.output.log_line(&line) };
        if let Err(error) = file.append(SystemClock.unix(), &line)
            && !self.has_failed.swap(true, Ordering::Relaxed)
        {
            self.output.warn(&format!("the log is incomplete: {error}"));
        }
    }
}

/// Writes one event, which the formatter passes in one piece.
struct LogLine<'w>(&'w LogWriter);

impl Write for LogLine<'_> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        self.0.line(text.trim_end_matches('\n'));
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'w> MakeWriter<'w> for LogWriter {
    type Writer = LogLine<'w>;

    fn make_writer(&'w self) -> Self::Writer {
        LogLine(self)
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn the_most_precise_directive_counts() {
        let targets = parse("warn, mcp=debug,toolhost::mcp::session=TRACE,host=off", "").unwrap();
        for (target, level, enabled) in [
            ("toolhost::config::load", Level::WARN, true),
            ("toolhost::config::load", Level::INFO, false),
            ("toolhost::mcp::connection", Level::DEBUG, true),
            ("toolhost::mcp::connection", Level::TRACE, false),
            ("toolhost::mcp::session", Level::TRACE, true),
            ("toolhost::host::dispatch", Level::ERROR, false),
            ("rmcp::service", Level::ERROR, false),
        ] {
            assert_eq!(targets.would_enable(target, &level), enabled, "{target} {level}");
        }
    }

    #[test]
    fn what_is_wrong_has_a_place_and_a_way_out() {
        for (text, message, hint) in [
            (
                "loud",
                "--log-filter, character 1: 'loud' is not a level",
                "the levels are off, error",
            ),
            (
                "info,mcp=loud",
                "--log-filter, character 10: 'loud' is not a level",
                "the levels are",
            ),
            (
                "info, mpc=debug",
                "--log-filter, character 7: 'mpc' is not a part of toolhost",
                "did you mean 'mcp'?",
            ),
            (
                "rmcp=trace",
                "--log-filter, character 1: 'rmcp' is not a part of toolhost",
                "the parts are",
            ),
            (
                "info,",
                "--log-filter, character 6: a directive is empty",
                "write LEVEL or PART=LEVEL",
            ),
            ("ünï,mcp", "--log-filter, character 1: 'ünï' is not a level", "the levels are"),
        ] {
            let error = parse(text, "--log-filter").unwrap_err();
            assert_eq!(error.message(), message);
            assert!(error.hint().unwrap().contains(hint), "{:?}", error.hint());
        }
    }
}
