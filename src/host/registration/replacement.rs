//! Replacing what a host was built with while calls run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::RegistrationError;
use crate::catalogue::pins::Pins;
use crate::config::spec::{DisabledEntry, PolicyRule, ProfileSpec};
use crate::host::ToolHost;
use crate::host::limits::REMOVAL_GRACE_PERIOD;
use crate::host::listings::RegisteredProvider;
use crate::host::profiles::KnownProfiles;
use crate::host::provider_table::ProviderTable;
use crate::provider::ToolProvider;

/// What a host offers and by which rules, without what a program registered itself.
#[doc(hidden)] // for the program's own commands
#[derive(Default)]
pub struct HostContents {
    /// The providers in the order of the catalogue. One that the host has already is kept.
    pub providers: Vec<Arc<dyn ToolProvider>>,
    /// Providers of the contents before these whose entries are all among these, some of them
    /// changed: their calls run to completion.
    pub superseded: Vec<Arc<dyn ToolProvider>>,
    /// The rules about calls; the first that matches counts.
    pub policy: Vec<PolicyRule>,
    /// Entries that are out of service.
    pub disabled: Vec<DisabledEntry>,
    /// What the tools were when a person accepted them.
    pub pins: Pins,
    /// What requests see that name no profile; `None` is everything.
    pub profile: Option<ProfileSpec>,
    /// The profiles that requests may name.
    pub profiles: BTreeMap<String, ProfileSpec>,
}

impl ToolHost {
    /// Offers `contents` from now on, instead of what the host was built with or given here before.
    /// Running calls continue; those of a provider that is not among the new ones are cancelled
    /// after [`REMOVAL_GRACE_PERIOD`] unless it is superseded, and then it is closed. Every
    /// listener is notified that the lists changed. Starts and contacts nothing.
    ///
    /// # Errors
    /// A host that is closed, and the name of something that the program registered itself. Nothing
    /// changed then.
    #[doc(hidden)] // for the program's own commands
    pub fn replace_contents(&self, contents: HostContents) -> Result<(), RegistrationError> {
        let HostContents { providers, superseded, policy, disabled, pins, profile, profiles } =
            contents;
        let mut roster = self.directory.roster();
        if roster.is_closed {
            return Err(RegistrationError::HostClosed);
        }
        let old = self.directory.providers();
        let existing = |provider: &Arc<dyn ToolProvider>| {
            let is_same =
                |existing: &&Arc<RegisteredProvider>| Arc::ptr_eq(&existing.inner, provider);
            old.iter().filter(|existing| existing.is_of_files).find(is_same).cloned()
        };
        let mut table: Vec<Arc<RegisteredProvider>> = providers
            .into_iter()
            .map(|provider| {
                let pins = &self.directory.pins;
                existing(&provider).unwrap_or_else(|| RegisteredProvider::of_files(provider, pins))
            })
            .collect();
        let is_kept = |existing: &RegisteredProvider| {
            table.iter().any(|current| std::ptr::eq(Arc::as_ptr(current), existing))
        };
        let (of_files, own): (Vec<_>, Vec<_>) = old.iter().cloned().partition(|p| p.is_of_files);
        let removed: Vec<_> = of_files.into_iter().filter(|existing| !is_kept(existing)).collect();
        let changed: BTreeSet<String> = table
            .iter()
            .filter(|provider| !old.iter().any(|existing| Arc::ptr_eq(existing, provider)))
            .chain(&removed)
            .filter_map(|provider| provider.server.clone())
            .collect();
        let components: BTreeSet<String> =
            table.iter().flat_map(|provider| provider.components()).collect();
        for registered in &own {
            let names = registered.components().into_iter().chain(registered.source.clone());
            if let Some(name) = names.into_iter().find(|name| components.contains(name)) {
                let owner = registered.describe();
                return Err(RegistrationError::NameTaken { name, owner });
            }
        }
        table.extend(own);
        // The rules come first: no tool is offered under those of another configuration.
        self.profiles.replace(KnownProfiles::new(profile, profiles));
        self.pipeline.policy.replace(policy);
        self.directory.pins.replace(pins);
        self.directory.disabled.replace(disabled);
        for provider in &table {
            provider.forget_lists();
        }
        for provider in &removed {
            Self::mark_removed(&mut roster, provider);
        }
        roster.forget_removed(|name| {
            let declares = |provider: &Arc<RegisteredProvider>| provider.known_tool(name).is_some();
            components.contains(name) || table.iter().any(declares)
        });
        self.directory.table.replace(ProviderTable(table));
        drop(roster);
        for provider in removed {
            let is_superseded = superseded.iter().any(|old| Arc::ptr_eq(old, &provider.inner));
            let grace = (!is_superseded).then_some(REMOVAL_GRACE_PERIOD);
            // Not awaited: its calls may continue for a while.
            drop(self.close_removed(provider, grace));
        }
        self.notify_list_changed();
        for server in &changed {
            self.notify_offerings_changed(server);
        }
        Ok(())
    }
}
