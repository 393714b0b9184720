//! Component types, and the components a program creates from them while the host runs.

use std::sync::Arc;

use super::RegistrationError;
use crate::host::ToolHost;
use crate::host::listings::RegisteredProvider;
use crate::model::{ToolName, check_name};
use crate::provider::{ComponentConfig, ComponentFactory};

impl ToolHost {
    /// Adds a component type under a type key. Components of this type can be registered from now
    /// on.
    ///
    /// # Errors
    /// An invalid key, or one that another factory has.
    pub fn register_kind(
        &self,
        key: &str,
        factory: impl ComponentFactory + 'static,
    ) -> Result<(), RegistrationError> {
        check_name(key)?;
        let mut roster = self.directory.roster();
        if roster.factories.contains_key(key) {
            let owner = "a component type that is already registered".to_owned();
            return Err(RegistrationError::NameTaken { name: key.to_owned(), owner });
        }
        roster.factories.insert(key.to_owned(), Arc::new(factory));
        Ok(())
    }

    /// Removes a component type. Existing components of this type stay.
    ///
    /// # Errors
    /// A key that is not registered.
    pub fn unregister_kind(&self, key: &str) -> Result<(), RegistrationError> {
        match self.directory.roster().factories.remove(key) {
            Some(_) => Ok(()),
            None => Err(RegistrationError::NotRegistered {
                name: key.to_owned(),
                sort: "component type",
                other: None,
            }),
        }
    }

    /// The type keys of components that can be registered, sorted.
    pub fn kinds(&self) -> Vec<String> {
        self.directory.roster().factories.keys().cloned().collect()
    }

    /// Adds a component: the factory of its type creates a provider from the configuration. Its
    /// tools are named `{component}-{tool}`; a single tool may have the component's name. Starts
    /// and contacts nothing.
    ///
    /// # Errors
    /// A type key that is not registered, settings that the factory refuses, a tool that is not
    /// named after the component, and as for [`ToolHost::register_provider`].
    pub fn register_component(
        &self,
        key: &str,
        component: &ComponentConfig,
    ) -> Result<(), RegistrationError> {
        let factory = self.factory(key)?;
        check_name(&component.name)?;
        // Not under the lock: it is the program's code, and may read files.
        let provider = factory.build(component).map_err(RegistrationError::Invalid)?;
        let mut new = RegisteredProvider::new(provider, Arc::default());
        new.source = Some(component.name.clone());
        new.component_type = Some(key.to_owned());
        let declared = new.declared();
        let is_own = |name: &ToolName| match name.component() {
            Some(named_after) => named_after == component.name,
            None => name.tool() == component.name,
        };
        if let Some(tool) = declared.tools.iter().find(|tool| !is_own(&tool.definition.name)) {
            return Err(RegistrationError::ForeignTool {
                component: component.name.clone(),
                tool: tool.definition.name.full(),
            });
        }
        self.insert_provider(new)
    }

    /// Adds an MCP server. It is started or contacted when it is first needed.
    ///
    /// # Errors
    /// Settings that are not a server entry, a host without MCP servers, and as for
    /// [`ToolHost::register_provider`].
    pub fn register_client(&self, server: &ComponentConfig) -> Result<(), RegistrationError> {
        let factory = self.directory.roster().client_factory.clone();
        let factory = factory.ok_or(RegistrationError::NoClients)?;
        check_name(&server.name)?;
        let provider = factory.build(server).map_err(RegistrationError::Invalid)?;
        self.insert_provider(RegisteredProvider::new(provider, Arc::default()))
    }

    fn factory(&self, key: &str) -> Result<Arc<dyn ComponentFactory>, RegistrationError> {
        let roster = self.directory.roster();
        roster.factories.get(key).cloned().ok_or_else(|| {
            let known = roster.factories.keys().cloned().collect();
            RegistrationError::UnknownType { key: key.to_owned(), known }
        })
    }
}
