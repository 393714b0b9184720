//! What an entry allows of its server: `include`, `exclude` and `permissions`.

use super::McpProvider;
use crate::mcp::connection::Connection;
use crate::mcp::listing;
use crate::model::{
    Error, OfferingListing, Resource, ResourceTemplate, ServerPermissions, WithheldItem,
};
use crate::util::{pattern, uri_template};

impl McpProvider {
    pub(super) fn tool_refusal(&self, name: &str) -> Option<Error> {
        self.refusal("tool", &[name], self.spec.permissions.allows_tool(name))
    }

    pub(super) fn prompt_refusal(&self, name: &str) -> Option<Error> {
        self.refusal("prompt", &[name], self.spec.permissions.allows_prompt(name))
    }

    pub(super) fn resource_refusal(&self, names: &[&str]) -> Option<Error> {
        let permissions: &ServerPermissions = &self.spec.permissions;
        self.refusal("resource", names, permissions.allows_resource(names.iter().copied()))
    }

    /// None of the names may be excluded, and one must be included.
    fn refusal(&self, what: &str, names: &[&str], is_permitted: bool) -> Option<Error> {
        let any = |patterns: &[String]| {
            patterns.iter().any(|p| names.iter().any(|name| pattern::matches(p, name)))
        };
        let is_included = !any(&self.spec.exclude)
            && self.spec.include.as_ref().is_none_or(|include| any(include));
        let (verb, keys) = match (is_included, is_permitted) {
            (true, true) => return None,
            (false, _) => ("is excluded by", "'exclude' and 'include'"),
            (true, false) => ("is not permitted by", "'permissions'"),
        };
        let name = names.first().copied().unwrap_or_default();
        let error = Error::denied(format!("the {what} '{name}' {verb} the server's entry"));
        let file = self.spec.location.file.display();
        let hint = format!("see {keys} of '{}' in {file}", self.spec.name);
        Some(error.with_server(&self.spec.name).with_hint(hint))
    }

    /// Takes what the entry keeps back out of a list.
    pub(super) fn withhold<T>(
        items: &mut Vec<T>,
        mut refusal: impl FnMut(&T) -> Option<(String, Error)>,
    ) -> Vec<WithheldItem> {
        let mut withheld = Vec::new();
        items.retain(|item| match refusal(item) {
            None => true,
            Some((name, reason)) => {
                withheld.push(WithheldItem { name, reason });
                false
            }
        });
        withheld
    }

    /// Allows a URI that the entry does not withhold, under any name it is listed by.
    pub(super) async fn check_resource(
        &self,
        connection: &Connection,
        uri: &str,
    ) -> Result<(), Error> {
        let filters = !self.spec.exclude.is_empty()
            || self.spec.include.is_some()
            || self.spec.permissions.resources.is_some();
        if !filters {
            return Ok(());
        }
        let idle = self.idle();
        let resources: OfferingListing<Resource> = listing::all(connection, idle).await?;
        let templates: OfferingListing<ResourceTemplate> = listing::all(connection, idle).await?;
        let listed = resources.items.iter().find(|resource| resource.uri == uri);
        let made = templates.items.iter().filter(|t| uri_template::matches(&t.template, uri));
        let mut names = vec![uri];
        names.extend(listed.map(|resource| resource.name.as_str()));
        names.extend(made.flat_map(|template| [template.template.as_str(), &template.name]));
        self.resource_refusal(&names).map_or(Ok(()), Err)
    }
}
