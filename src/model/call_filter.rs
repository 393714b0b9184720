//! The filter for recorded calls.

use std::time::Duration;

use crate::util::pattern;

/// A search from newest to oldest ends at records that are older than requested by more than this,
/// in seconds. A clock that was set back by less does not hide newer records behind them.
const CLOCK_SLACK: f64 = 86_400.0;

/// A choice among recorded calls; the default is all of them. The statistics count calls without
/// keeping them, so that only the time and the tools choose among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallFilter {
    /// Not before this, as time since the Unix epoch.
    pub since: Option<Duration>,
    /// Only before this, as time since the Unix epoch.
    pub until: Option<Duration>,
    /// Only tools whose full name matches one of these patterns; `None` is all.
    pub tools: Option<Vec<String>>,
    pub failed: Option<bool>,
    /// Only calls of the project with this root directory; `None` is all.
    pub project: Option<String>,
    pub session: Option<String>,
    pub decision: Option<String>,
}

#[derive(Debug, Clone, Copy)]
pub struct CallFacts<'a> {
    /// When it started, in seconds since the Unix epoch.
    pub at: f64,
    pub tool: &'a str,
    pub failed: bool,
    /// The root directory of the project it was made for, if recorded.
    pub project: Option<&'a str>,
    /// The session it was made in, if recorded.
    pub session: Option<&'a str>,
    pub decision: &'a str,
}

impl CallFilter {
    pub fn matches(&self, call: &CallFacts<'_>) -> bool {
        let session = self.session.as_deref();
        self.since.is_none_or(|since| call.at >= since.as_secs_f64())
            && self.until.is_none_or(|until| call.at < until.as_secs_f64())
            && self.matches_tool(call.tool)
            && self.matches_project(call.project)
            && self.failed.is_none_or(|failed| failed == call.failed)
            && session.is_none_or(|session| call.session == Some(session))
            && self.decision.as_ref().is_none_or(|text| call.decision.contains(text.as_str()))
    }

    pub fn matches_tool(&self, tool: &str) -> bool {
        let is_one = |patterns: &Vec<String>| patterns.iter().any(|p| pattern::matches(p, tool));
        self.tools.as_ref().is_none_or(is_one)
    }

    pub fn matches_project(&self, project: Option<&str>) -> bool {
        self.project.is_none() || self.project.as_deref() == project
    }

    /// Whether a record with this time, in seconds since the Unix epoch, and all earlier ones are
    /// too old.
    pub fn ends_at(&self, at: f64) -> bool {
        self.since.is_some_and(|since| at < since.as_secs_f64() - CLOCK_SLACK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: CallFacts<'_> = CallFacts {
        at: 100_000.0,
        tool: "notes-read",
        failed: false,
        project: Some("/p"),
        session: Some("s"),
        decision: "allowed",
    };

    #[test]
    fn every_part_has_to_match() {
        let at = |seconds| Some(Duration::from_secs(seconds));
        let tools = |pattern: &str| Some(vec!["x".to_owned(), pattern.to_owned()]);
        let all = CallFilter {
            since: at(100_000),
            until: at(100_001),
            tools: tools("notes-*"),
            failed: Some(false),
            project: Some("/p".into()),
            session: Some("s".into()),
            decision: Some("allow".into()),
        };
        assert!(all.matches(&CALL) && CallFilter::default().matches(&CALL));
        for other in [
            CallFilter { since: at(100_001), ..all.clone() },
            CallFilter { until: at(100_000), ..all.clone() },
            CallFilter { tools: tools("notes"), ..all.clone() },
            CallFilter { failed: Some(true), ..all.clone() },
            CallFilter { project: Some("/q".into()), ..all.clone() },
            CallFilter { session: Some("t".into()), ..all.clone() },
            CallFilter { decision: Some("refused".into()), ..all.clone() },
        ] {
            assert!(!other.matches(&CALL), "{other:?}");
        }
        assert!(all.ends_at(13_599.0) && !all.ends_at(13_600.0));
    }
}
