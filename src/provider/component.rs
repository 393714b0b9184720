//! Components that a program configures while a host runs.

use std::sync::Arc;

use super::ToolProvider;
use crate::model::{Error, JsonObject};

/// One component as a program configures it.
#[derive(Debug, Clone, PartialEq)]
pub struct ComponentConfig {
    /// What its tools are named after: `{name}-{tool}`.
    pub name: String,
    /// The keys of its type, as an entry of a file has them; empty takes every default.
    pub settings: JsonObject,
}

impl ComponentConfig {
    /// A component with these settings.
    pub fn new(name: impl Into<String>, settings: JsonObject) -> Self {
        Self { name: name.into(), settings }
    }
}

/// Makes providers of the components of one type. Every function of this shape is one:
/// `Fn(&ComponentConfig) -> Result<Arc<dyn ToolProvider>, Error>`.
pub trait ComponentFactory: Send + Sync {
    /// Makes the provider of one component. All its tools are named `{name}-{tool}`. Starts and
    /// contacts nothing.
    ///
    /// # Errors
    /// What is wrong with the settings; an error of kind config.
    fn build(&self, component: &ComponentConfig) -> Result<Arc<dyn ToolProvider>, Error>;
}

impl<F> ComponentFactory for F
where
    F: Fn(&ComponentConfig) -> Result<Arc<dyn ToolProvider>, Error> + Send + Sync,
{
    fn build(&self, component: &ComponentConfig) -> Result<Arc<dyn ToolProvider>, Error> {
        self(component)
    }
}
