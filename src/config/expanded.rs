//! A record of every value that a reference was replaced by.
//!
//! Owns: the collector that reading a variable or a file for an entry has to pass, and which values
//! need not be hidden. Never does: hide them; `audit::mask` does, which is told of each as it comes.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::secrets::names_secret;

/// Values of fewer bytes are found everywhere, so hiding them would hide nothing.
const SHORTEST: usize = 4;

/// Variables that tell where and who, not what is secret.
const PUBLIC: [&str; 7] = ["HOME", "USER", "PATH", "PWD", "LANG", "TMPDIR", "TOOLHOST"];

type ExpansionListener = Box<dyn Fn(&str, &str) + Send + Sync>;

/// Expanded values, each with its reference as a file writes it (`${NAME}`, `${file:PATH}`).
///
/// Clones share what they know. There is no way to print a value out of it.
#[derive(Clone, Default)]
pub struct ExpandedValues(Arc<Mutex<CollectedValues>>);

#[derive(Default)]
struct CollectedValues {
    /// Whether a file of secrets or variables, or the keychain, was read.
    has_other_sources: bool,
    /// Pairs of reference and value, in the order in which they were expanded.
    values: Vec<(String, String)>,
    listeners: Vec<ExpansionListener>,
}

impl ExpandedValues {
    /// Records the value of a variable, unless it is one that need not be hidden.
    pub fn variable(&self, name: &str, value: &str) {
        if PUBLIC.contains(&name) || name.starts_with("XDG_") {
            return;
        }
        // A number is hidden only where its variable says that it is a secret.
        if is_number(value) && !names_secret(name) {
            return;
        }
        self.record(format!("${{{name}}}"), value);
    }

    /// Records the content of a file.
    pub fn file(&self, path: &str, content: &str) {
        self.note_other_source();
        if !is_number(content) {
            self.record(format!("${{file:{path}}}"), content);
        }
    }

    /// Records a variable of a file of variables, under the same rules as one of the environment.
    pub fn file_variable(&self, path: &str, name: &str, value: &str) {
        if !is_number(value) || names_secret(name) {
            self.record(format!("${{{name} of {path}}}"), value);
        }
    }

    /// Records a secret of the keychain. Whatever it looks like, it was put there to be hidden.
    pub fn keychain(&self, name: &str, secret: &str) {
        self.note_other_source();
        self.record(format!("${{keyring:{name}}}"), secret);
    }

    /// Records the value of a credential, whatever it looks like.
    pub fn credential(&self, handle: &str, value: &str) {
        self.record(format!("${{credential:{handle}}}"), value);
    }

    fn record(&self, reference: String, value: &str) {
        if value.len() < SHORTEST {
            return;
        }
        let mut collected = self.collected();
        if collected.values.iter().any(|(r, v)| *r == reference && v == value) {
            return;
        }
        for listener in &collected.listeners {
            listener(&reference, value);
        }
        collected.values.push((reference, value.to_owned()));
    }

    /// Tells `listener` the reference and the value of everything expanded so far, and from now on
    /// of whatever is expanded later. It must not expand anything itself.
    pub fn listen(&self, listener: impl Fn(&str, &str) + Send + Sync + 'static) {
        let mut collected = self.collected();
        for (reference, value) in &collected.values {
            listener(reference, value);
        }
        collected.listeners.push(Box::new(listener));
    }

    /// Notes that something other than the environment was read, whether or not a value came of it.
    pub(super) fn note_other_source(&self) {
        self.collected().has_other_sources = true;
    }

    /// Whether all values come from variables of the environment.
    pub fn come_from_environment(&self) -> bool {
        !self.collected().has_other_sources
    }

    /// Whether a value stands in a text as it is, so that the text should not be kept.
    pub fn occur_in(&self, text: &str) -> bool {
        self.collected().values.iter().any(|(_, value)| text.contains(value.as_str()))
    }

    fn collected(&self) -> MutexGuard<'_, CollectedValues> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ExpandedValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExpandedValues({})", self.collected().values.len())
    }
}

fn is_number(value: &str) -> bool {
    let value = value.trim();
    value.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
        && value.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(values: &ExpandedValues) -> Vec<String> {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&heard);
        values.listen(move |reference, value| {
            log.lock().unwrap().push(format!("{reference}={value}"));
        });
        let heard = heard.lock().unwrap();
        heard.clone()
    }

    #[test]
    fn what_tells_only_where_and_who_is_not_recorded() {
        let values = ExpandedValues::default();
        for name in ["HOME", "USER", "PATH", "PWD", "LANG", "TMPDIR", "XDG_STATE_HOME", "TOOLHOST"]
        {
            values.variable(name, "/home/ada");
        }
        for number in ["8080", "-12345", "3.14159", "1e10"] {
            values.variable("PORT", number);
            values.file("port", number);
        }
        values.variable("SHORT", "abc");
        assert!(recorded(&values).is_empty());
        values.variable("API_KEY", "12345678");
        values.variable("HOST", "infinity");
        values.variable("HOST", "infinity");
        values.file("./token", "four");
        let expected = ["${API_KEY}=12345678", "${HOST}=infinity", "${file:./token}=four"];
        assert_eq!(recorded(&values), expected);
    }

    #[test]
    fn a_listener_hears_of_later_values_and_nothing_prints_one() {
        let values = ExpandedValues::default();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&heard);
        values.variable("A", "before-it");
        values.listen(move |_, value| log.lock().unwrap().push(value.to_owned()));
        values.clone().variable("B", "after-it");
        assert_eq!(*heard.lock().unwrap(), ["before-it", "after-it"]);
        assert_eq!(format!("{values:?}"), "ExpandedValues(2)");
        assert!(values.occur_in("an after-it.") && !values.occur_in("another"));
    }
}
