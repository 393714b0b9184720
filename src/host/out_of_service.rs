//! Entries that are in a file and cannot be used: listed with the reason, and refused with it.

use std::collections::HashSet;

use super::ToolHost;
use super::directory::ToolDirectory;
use super::profiles::ProfileView;
use super::request::ListScope;
use crate::catalogue::build::Contribution;
use crate::catalogue::naming;
use crate::config::spec::{DisabledEntry, FileRole};
use crate::model::{Error, ServerStatus, ToolDefinition};

impl ToolHost {
    /// The servers whose entries cannot be used and of which something may be shown, with the reason
    /// as their state.
    #[doc(hidden)] // for the program's own commands
    pub fn servers_out_of_service(&self) -> Vec<ServerStatus> {
        self.servers_out_of_service_in(&self.profiles.default_view())
    }

    /// The same, as far as a profile may show them.
    pub(super) fn servers_out_of_service_in(&self, view: &ProfileView) -> Vec<ServerStatus> {
        let disabled = self.directory.disabled.get();
        let entries = disabled.iter().filter(|entry| view.may_show_disabled(entry));
        let providers = self.directory.providers();
        let broken = entries.filter(|e| e.role == FileRole::Servers && e.refusal.is_none());
        // A server of that name may be registered since.
        let broken = broken.filter(|entry| providers.server(&entry.name).is_none());
        let status = |entry: &DisabledEntry| {
            self.pipeline.masker.status(ServerStatus::failed(&entry.name, entry.state_error()))
        };
        broken.map(status).collect()
    }
}

impl ToolDirectory {
    /// What entries out of service add to a list: the tools that their files say they have, unless
    /// another entry offers one of that name.
    pub(super) fn out_of_service(
        &self,
        scope: &ListScope,
        local: &[Contribution],
        servers: &[Contribution],
    ) -> (Vec<Contribution>, Vec<Contribution>) {
        let (mut own, mut of_servers) = (Vec::new(), Vec::new());
        let disabled = self.disabled.get();
        if disabled.is_empty() {
            return (own, of_servers);
        }
        let listed = local.iter().chain(servers).flat_map(|part| &part.tools);
        let mut names: HashSet<String> = listed.map(|tool| tool.name.full()).collect();
        for entry in &*disabled {
            let is_listed = entry.role == FileRole::Tools || scope.includes_server(&entry.name);
            let mut tools = entry.unavailable_tools();
            tools.retain(|tool| is_listed && names.insert(tool.name.full()));
            let part = Contribution { tools, ..Contribution::default() };
            match entry.role {
                FileRole::Tools => own.push(part),
                FileRole::Servers => of_servers.push(part),
            }
        }
        (own, of_servers)
    }

    /// The first entry out of service that is meant.
    pub(super) fn disabled_entry(
        &self,
        is_meant: impl Fn(&DisabledEntry) -> bool,
    ) -> Option<DisabledEntry> {
        self.disabled.get().iter().find(|entry| is_meant(entry)).cloned()
    }

    /// The entry a person means is in a file, but something is wrong with it.
    pub(super) fn disabled_entry_error(&self, name: &str) -> Option<Error> {
        let entry = self.disabled_entry(|entry| {
            entry.name == name
                || ((entry.role == FileRole::Servers || entry.refusal.is_some())
                    && naming::after_component(name, &entry.name).is_some())
        });
        entry.map(|entry| entry.error())
    }

    /// What the file says of a tool whose entry is out of service, with the reason.
    pub(super) fn disabled_definition(&self, name: &str) -> Option<ToolDefinition> {
        let disabled = self.disabled.get();
        let tools = disabled.iter().flat_map(DisabledEntry::unavailable_tools);
        let tool = tools.into_iter().find(|tool| tool.name.full() == name)?;
        Some(ToolDefinition::clone(&tool))
    }
}
