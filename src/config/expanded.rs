//! A record of every value that replaced a reference.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::secrets::names_secret;

/// Shorter values occur everywhere, so masking them would not protect anything.
const SHORTEST: usize = 4;

/// Variables about location and identity, which are not secret.
const PUBLIC: [&str; 7] = ["HOME", "USER", "PATH", "PWD", "LANG", "TMPDIR", "TOOLHOST"];

type ExpansionListener = Box<dyn Fn(&str, &str) + Send + Sync>;

/// Expanded values, each with its reference as a file writes it (`${NAME}`, `${file:PATH}`).
///
/// Clones share their contents. There is no way to print a value from it.
#[derive(Clone, Default)]
pub struct ExpandedValues(Arc<Mutex<CollectedValues>>);

#[derive(Default)]
struct CollectedValues {
    /// Pairs of reference and value, in order of expansion.
    values: Vec<(String, String)>,
    listeners: Vec<ExpansionListener>,
}

impl ExpandedValues {
    /// Records the value of a variable, unless it need not be masked.
    pub fn variable(&self, name: &str, value: &str) {
        if PUBLIC.contains(&name) || name.starts_with("XDG_") {
            return;
        }
        // A number is masked only if the name of its variable indicates a secret.
        if is_number(value) && !names_secret(name) {
            return;
        }
        self.record(format!("${{{name}}}"), value);
    }

    pub fn file(&self, path: &str, content: &str) {
        if !is_number(content) {
            self.record(format!("${{file:{path}}}"), content);
        }
    }

    pub fn file_variable(&self, path: &str, name: &str, value: &str) {
        if !is_number(value) || names_secret(name) {
            self.record(format!("${{{name} of {path}}}"), value);
        }
    }

    pub fn keychain(&self, name: &str, secret: &str) {
        self.record(format!("${{keyring:{name}}}"), secret);
    }

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

    /// Passes `listener` the reference and value of everything expanded so far, and from now on
    /// of everything expanded later. It must not expand anything itself.
    pub fn listen(&self, listener: impl Fn(&str, &str) + Send + Sync + 'static) {
        let mut collected = self.collected();
        for (reference, value) in &collected.values {
            listener(reference, value);
        }
        collected.listeners.push(Box::new(listener));
    }

    /// Whether a text contains a value verbatim, so that the text should not be stored.
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
        let lines = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&lines);
        values.listen(move |reference, value| {
            log.lock().unwrap().push(format!("{reference}={value}"));
        });
        let lines = lines.lock().unwrap();
        lines.clone()
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
        let recorded = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&recorded);
        values.variable("A", "before-it");
        values.listen(move |_, value| log.lock().unwrap().push(value.to_owned()));
        values.clone().variable("B", "after-it");
        assert_eq!(*recorded.lock().unwrap(), ["before-it", "after-it"]);
        assert_eq!(format!("{values:?}"), "ExpandedValues(2)");
        assert!(values.occur_in("an after-it.") && !values.occur_in("another"));
    }
}
