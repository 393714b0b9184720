//! Output settings from options and environment: format, colour, width, character set.

use clap::ValueEnum;

use crate::config::environment::Environment;
use crate::model::impl_as_str;

/// The form a result is printed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// JSON: indented on a terminal, one line otherwise.
    Json,
    /// YAML.
    Yaml,
    /// Rows and columns.
    Table,
    /// The bytes of the result; unchanged when stdout is not a terminal.
    Raw,
    /// One name on each line.
    Names,
    /// Comma-separated values.
    Csv,
    /// A table in Markdown.
    #[value(alias = "md")]
    Markdown,
}

impl_as_str!(Format);

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ColourChoice {
    /// On a terminal that supports it.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Whether a stream gets colour. A flag takes precedence over `NO_COLOR`, that over
/// `CLICOLOR_FORCE`, and that over the kind of terminal.
pub fn wants_colour(choice: ColourChoice, terminal: bool, environment: &dyn Environment) -> bool {
    let set = |name: &'static str| environment.var(name).filter(|value| !value.is_empty());
    match choice {
        ColourChoice::Always => true,
        ColourChoice::Never => false,
        ColourChoice::Auto if set("NO_COLOR").is_some() => false,
        ColourChoice::Auto if set("CLICOLOR_FORCE").is_some_and(|v| v != "0") => true,
        ColourChoice::Auto => {
            terminal && !is_dumb(environment) && set("CLICOLOR").is_none_or(|v| v != "0")
        }
    }
}

/// Whether the terminal can only print (`TERM=dumb`, or no `TERM` at all).
pub fn is_dumb(environment: &dyn Environment) -> bool {
    environment.var("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

/// Whether the locale says that only ASCII can be shown. Follows the precedence of `setlocale`.
pub fn is_ascii_locale(environment: &dyn Environment) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| environment.var(name).filter(|value| !value.is_empty()));
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        !(locale.contains("utf-8") || locale.contains("utf8"))
    })
}

/// The layout width: that of the terminal, 80 if it is unknown, none for pipes
/// and files.
pub fn width(terminal: bool, columns: Option<u16>) -> Option<usize> {
    terminal.then(|| columns.filter(|c| *c > 0).map_or(80, |c| usize::from(c).max(20)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::environment::FixedEnvironment;

    fn environment(vars: &[(&str, &str)]) -> FixedEnvironment {
        let vars = vars.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        FixedEnvironment { vars, ..FixedEnvironment::default() }
    }

    #[test]
    fn colour_follows_flag_then_variables_then_terminal() {
        use ColourChoice::{Always, Auto, Never};
        type Vars = &'static [(&'static str, &'static str)];
        let cases: [(ColourChoice, bool, Vars, bool); 10] = [
            (Auto, true, &[("TERM", "xterm")], true),
            (Auto, false, &[("TERM", "xterm")], false),
            (Auto, true, &[("TERM", "dumb")], false),
            (Auto, true, &[], false),
            (Auto, true, &[("TERM", "xterm"), ("NO_COLOR", "1")], false),
            (Auto, true, &[("TERM", "xterm"), ("NO_COLOR", "")], true),
            (Auto, false, &[("CLICOLOR_FORCE", "1")], true),
            (Auto, true, &[("TERM", "xterm"), ("CLICOLOR", "0")], false),
            (Always, false, &[("NO_COLOR", "1")], true),
            (Never, true, &[("TERM", "xterm"), ("CLICOLOR_FORCE", "1")], false),
        ];
        for (choice, terminal, vars, expected) in cases {
            assert_eq!(wants_colour(choice, terminal, &environment(vars)), expected, "{vars:?}");
        }
    }

    #[test]
    fn the_alphabet_follows_the_locale() {
        assert!(is_ascii_locale(&environment(&[])));
        assert!(is_ascii_locale(&environment(&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")])));
        assert!(!is_ascii_locale(&environment(&[("LANG", "de_DE.utf8")])));
        assert!(!is_ascii_locale(&environment(&[("LC_ALL", ""), ("LANG", "C.UTF-8")])));
    }

    #[test]
    fn only_terminals_have_a_width() {
        assert_eq!(width(false, Some(120)), None);
        assert_eq!(width(true, Some(120)), Some(120));
        assert_eq!(width(true, Some(0)), Some(80));
        assert_eq!(width(true, None), Some(80));
        assert_eq!(width(true, Some(3)), Some(20));
    }
}
