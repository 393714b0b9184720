//! What is logged: `info`, `warn,mcp=debug`, `off,host=trace`.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

use crate::model::Error;
use crate::util::spelling::nearest;

const CRATE: &str = "toolhost";

const ROOMS: [&str; 7] = ["assembly", "config", "host", "mcp", "providers", "run", "util"];

const LEVELS: [(&str, LevelFilter); 6] = [
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DirectiveError {
    /// Its column, starting at 1.
    column: usize,
    cause: DirectiveCause,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum DirectiveCause {
    Empty,
    NoLevel(String),
    NoPart(String),
}

impl DirectiveError {
    /// The usage error; `source` is the option or variable that holds the directives.
    pub(super) fn explain(&self, source: &str) -> Error {
        let names =
            |names: &mut dyn Iterator<Item = &'static str>| names.collect::<Vec<_>>().join(", ");
        let levels = names(&mut LEVELS.iter().map(|(name, _)| *name));
        let (what, hint) = match &self.cause {
            DirectiveCause::Empty => {
                ("a directive is empty".to_owned(), "write LEVEL or PART=LEVEL".to_owned())
            }
            DirectiveCause::NoLevel(word) => {
                (format!("'{word}' is not a level"), format!("the levels are {levels}"))
            }
            DirectiveCause::NoPart(word) => {
                let parts = names(&mut ROOMS.iter().copied());
                let near = nearest(word, ROOMS);
                let near = near.map_or_else(String::new, |near| format!("did you mean '{near}'? "));
                (
                    format!("'{word}' is not a part of toolhost"),
                    format!("{near}the parts are {parts}"),
                )
            }
        };
        Error::usage(format!("{source}, character {}: {what}", self.column)).with_hint(hint)
    }
}

/// Parses directives; of two for the same part, the later applies.
pub(super) fn parse(text: &str) -> Result<Targets, DirectiveError> {
    let mut targets = Targets::new();
    let mut column = 1;
    for directive in text.split(',') {
        let indent = directive.chars().take_while(|c| c.is_whitespace()).count();
        let at = column + indent;
        column += directive.chars().count() + 1;
        let directive = directive.trim();
        if directive.is_empty() {
            return Err(DirectiveError { column: at, cause: DirectiveCause::Empty });
        }
        let (part, name, offset) = match directive.split_once('=') {
            None => (None, directive, 0),
            Some((part, level)) => {
                let offset = part.chars().count() + 1;
                (Some(part.trim()), level.trim(), offset)
            }
        };
        let level = LEVELS.iter().find(|(level, _)| level.eq_ignore_ascii_case(name));
        let Some((_, level)) = level else {
            let cause = DirectiveCause::NoLevel(name.to_owned());
            return Err(DirectiveError { column: at + offset, cause });
        };
        let target = target(part).ok_or_else(|| DirectiveError {
            column: at,
            cause: DirectiveCause::NoPart(part.unwrap_or_default().to_owned()),
        })?;
        targets = targets.with_target(target, *level);
    }
    Ok(targets)
}

/// The prefix of the targets of a part; `None` if there is no such part.
fn target(part: Option<&str>) -> Option<String> {
    let Some(part) = part.filter(|part| *part != CRATE) else { return Some(CRATE.to_owned()) };
    let inner = part.strip_prefix("toolhost::").unwrap_or(part);
    let room = inner.split("::").next().unwrap_or_default();
    ROOMS.contains(&room).then(|| format!("{CRATE}::{inner}"))
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn the_most_precise_directive_counts() {
        let targets = parse("warn, mcp=debug,toolhost::mcp::session=TRACE,host=off").unwrap();
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
            let error = parse(text).unwrap_err().explain("--log-filter");
            assert_eq!(error.message(), message);
            assert!(error.hint().unwrap().contains(hint), "{:?}", error.hint());
        }
    }
}
