//! Servers that did not respond during a search.

use std::fmt::Write as _;
use std::sync::Arc;

use super::listings::RegisteredProvider;
use crate::catalogue::ServerListing;
use crate::model::Error;

const MAX_NAMED: usize = 5;

pub(super) struct SilentServers<'a>(Vec<(&'a str, &'a Error)>);

impl<'a> SilentServers<'a> {
    /// The servers by name, each with its failure. What fails without being a server is listed under
    /// a name that says what it is.
    pub(super) fn new(failures: impl IntoIterator<Item = (&'a str, &'a Error)>) -> Self {
        Self(failures.into_iter().collect())
    }

    /// The providers that did not answer a search, by the names they have in the files.
    pub(super) fn of_providers(
        failures: impl IntoIterator<Item = &'a (Arc<RegisteredProvider>, Error)>,
    ) -> Self {
        Self::new(failures.into_iter().map(|(provider, error)| {
            let component = provider.server.as_deref().or_else(|| provider.inner.component());
            (component.unwrap_or("internal tools"), error)
        }))
    }

    /// The servers that one kind of offering could not be listed of.
    pub(super) fn of_listings(servers: &'a [ServerListing]) -> Self {
        Self::new(servers.iter().filter_map(|s| Some((s.name.as_str(), s.error.as_ref()?))))
    }

    /// How many servers did not answer.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn failure_of(&self, server: &str) -> Option<Error> {
        self.0.iter().find(|(name, _)| *name == server).map(|(_, error)| (*error).clone())
    }

    pub(super) fn decisive_failure(&self) -> Option<Error> {
        let (_, decisive) = self.0.iter().min_by_key(|(_, error)| error.kind().precedence())?;
        let others = self.0.iter().filter(|(_, error)| !std::ptr::eq(*error, *decisive));
        let others: Vec<&str> = others.map(|(name, _)| *name).collect();
        let error = Error::clone(decisive);
        Some(match others.as_slice() {
            [] => error,
            [other] => error.with_detail(format!("'{other}' did not answer either")),
            more => error.with_detail(format!(
                "{} more servers did not answer: {}",
                more.len(),
                named(more)
            )),
        })
    }

    /// One line for all of them: they may have `what` too. `None` if every server responded.
    pub(super) fn note(&self, what: &str) -> Option<String> {
        let names: Vec<&str> = self.0.iter().map(|(name, _)| *name).collect();
        let (servers, why) = match self.0.as_slice() {
            [] => return None,
            [(server, error)] => (format!("server '{server}'"), error.message().to_owned()),
            several => (format!("{} servers", several.len()), named(&names)),
        };
        Some(format!("{servers} did not answer and may offer {what}: {why}"))
    }

    pub(super) fn annotate(&self, error: Error, what: &str) -> Error {
        match self.note(what) {
            Some(line) => error.with_detail(line),
            None => error,
        }
    }
}

fn named(servers: &[&str]) -> String {
    let mut text = servers.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = servers.len().checked_sub(MAX_NAMED) {
        // Writing to a text does not fail.
        let _infallible = write!(text, " and {more} more");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ErrorKind;

    #[test]
    fn all_silent_servers_cost_one_line() {
        let (refused, late) = (Error::unreachable("refused"), Error::timeout("too late"));
        let note =
            |failures: &[(&str, &Error)]| SilentServers::new(failures.iter().copied()).note("'x'");
        assert_eq!(note(&[]), None);
        assert_eq!(
            note(&[("a", &refused)]).unwrap(),
            "server 'a' did not answer and may offer 'x': refused"
        );
        let many: Vec<_> = ["a", "b", "c", "d", "e", "f"].map(|name| (name, &late)).into();
        assert_eq!(
            note(&many).unwrap(),
            "6 servers did not answer and may offer 'x': a, b, c, d, e and 1 more"
        );
    }

    #[test]
    fn the_failure_that_decides_names_the_others() {
        let (refused, late) = (Error::unreachable("refused"), Error::timeout("too late"));
        let silent = SilentServers::new([("a", &refused), ("b", &late)]);
        let error = silent.decisive_failure().unwrap();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert_eq!(error.details(), ["'a' did not answer either"]);
        assert_eq!(silent.failure_of("a").unwrap().message(), "refused");
        assert!(silent.failure_of("c").is_none());
    }
}
