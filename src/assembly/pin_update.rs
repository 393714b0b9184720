//! Writes the accepted results of a pin comparison to a file of pins.

use std::sync::Arc;

use crate::catalogue::Catalogue;
use crate::catalogue::pins::{PinFileContent, PinReport, PinReportState, PinnedEntry};
use crate::host::ToolHost;
use crate::model::{Origin, ToolDefinition, ToolStatus};

/// The result of a comparison to be written.
pub struct PinUpdate<'a> {
    pub host: &'a ToolHost,
    pub report: &'a PinReport,
    pub catalogue: &'a Catalogue,
    /// Whether changes are accepted; new tools are pinned in any case.
    pub accepted: bool,
}

impl PinUpdate<'_> {
    /// Changes the content of a file of pins; `own` says that it is the user's, whose pins apply to
    /// the files that currently contain the entries.
    pub fn apply(&self, book: &mut PinFileContent, own: bool) {
        let host = self.host;
        let pins = host.pins();
        let context = pins.context();
        let is_written = |state: PinReportState| {
            state == PinReportState::New || (self.accepted && state == PinReportState::Changed)
        };
        for compared in self.report.tools.iter().filter(|tool| is_written(tool.state)) {
            let listed = |tool: &&Arc<ToolDefinition>| {
                tool.name.full() == compared.name
                    && !matches!(tool.status, ToolStatus::Unavailable | ToolStatus::Declared)
            };
            let Some(tool) = self.catalogue.tools.iter().find(listed) else { continue };
            let mut pin = host.pin(tool);
            if !own {
                pin.entry = pin.entry.map(PinnedEntry::portable);
            }
            match &tool.origin {
                Origin::Server(server) => {
                    let Some(owner) = context.servers.get(server) else { continue };
                    let group = book.group_mut(Some(server), own.then_some(&owner.file));
                    if group.tools.is_empty() || self.accepted {
                        let entry = owner.entry.clone();
                        group.entry = Some(if own { entry } else { entry.portable() });
                        group.endpoint = Some(owner.endpoint.clone());
                        group.instructions = host.pin_instructions(server);
                    }
                    group.tools.insert(tool.name.tool().to_owned(), pin);
                }
                Origin::File(place) => {
                    let file = own.then(|| context.files.get(&*place.file)).flatten();
                    let group = book.group_mut(None, file.map(String::as_str));
                    group.tools.insert(compared.name.clone(), pin);
                }
                Origin::Program => {}
            }
        }
        if !self.accepted {
            return;
        }
        for missing in self.report.tools.iter().filter(|tool| tool.state == PinReportState::Missing)
        {
            self.forget(book, &missing.name, missing.server.as_deref(), own);
        }
    }

    fn forget(&self, book: &mut PinFileContent, name: &str, server: Option<&str>, own: bool) {
        let pins = self.host.pins();
        let context = pins.context();
        let tool = server.and_then(|server| name.strip_prefix(server)?.strip_prefix('-'));
        let tool = tool.unwrap_or(name);
        let here = |file: &str| match server {
            Some(server) => context.servers.get(server).is_some_and(|owner| owner.file == file),
            None => context.files.values().any(|path| path == file),
        };
        for group in &mut book.groups {
            let same = group.server.as_deref() == server
                && group.file.as_deref().map_or(!own, |file| own && here(file));
            if same {
                group.tools.remove(tool);
            }
        }
    }
}
