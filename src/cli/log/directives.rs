//! What is logged: `info`, `warn,mcp=debug`, `off,host=trace`.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

use crate::model::Error;
use crate::util::spelling::nearest;

const CRATE: &str = "toolhost";

const ROOMS: [&str; 7] = ["assembly", "config", "host", "mcp", "providers", "run", "util"];

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Parses directives; of two for the same part, the later applies. `source` is the option or variable
/// that holds them.
pub(super) fn parse(text: &str, source: &str) -> Result<Targets, Error> {
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
