//! What of the environment the entries of one file may use.

use std::path::Path;

use super::expander::Expander;
use super::grant::Grant;
use crate::config::environment::Environment;
use crate::config::expanded::ExpandedValues;

/// Access to the environment for the entries of one file: none without a grant.
#[derive(Clone)]
pub struct EnvironmentAccess<'a> {
    environment: &'a dyn Environment,
    grant: Option<Grant>,
    expanded: ExpandedValues,
}

impl<'a> EnvironmentAccess<'a> {
    /// The access of a file with or without a grant.
    pub(in crate::config) fn new(
        environment: &'a dyn Environment,
        grant: Option<Grant>,
        expanded: ExpandedValues,
    ) -> Self {
        Self { environment, grant, expanded }
    }

    pub fn grant(&self) -> Option<&Grant> {
        self.grant.as_ref()
    }

    pub(in crate::config) fn record_credential(&self, handle: &str, value: &str) {
        self.expanded.credential(handle, value);
    }

    /// The expander for a file in `base_dir`; `None` while the file is untrusted.
    pub fn expander<'s>(&'s self, base_dir: &'s Path) -> Option<Expander<'s>> {
        Some(Expander::new(self.grant.as_ref()?, self.environment, base_dir, &self.expanded))
    }
}
