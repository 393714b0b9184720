//! Applying pins to calls and listings.

use std::sync::Arc;

use super::ToolHost;
use crate::catalogue::Catalogue;
use crate::catalogue::pins::content::PinnedText;
use crate::catalogue::pins::{Pin, PinFileContent, PinReport, Pins};
use crate::model::{Error, ToolDefinition};

impl ToolHost {
    /// The pins that calls and listings are compared with.
    #[doc(hidden)] // for the program's own commands
    pub fn pins(&self) -> Arc<Pins> {
        self.directory.pins.get()
    }

    /// Compares calls and listings with these pins from now on. Tools are listed again when they
    /// are asked for next, over the connections there are; calls that run are not disturbed.
    #[doc(hidden)] // for the program's own commands
    pub fn replace_pins(&self, content: PinFileContent) {
        let context = Arc::clone(self.pins().context());
        self.directory.pins.replace(Pins::new(context, content));
        for provider in self.directory.providers().iter() {
            provider.forget_lists();
        }
    }

    #[doc(hidden)] // for the program's own commands
    pub fn compare(&self, pins: &Pins, catalogue: &Catalogue) -> PinReport {
        let mut report = PinReport::new(pins, catalogue, &|server| self.instructions(server));
        let servers = report.servers.iter_mut().flat_map(|server| &mut server.changes);
        let tools = report.tools.iter_mut().flat_map(|tool| &mut tool.changes);
        for change in servers.chain(tools) {
            for side in [&mut change.before, &mut change.after] {
                *side = side.take().map(|text| self.pipeline.masker.text(&text));
            }
        }
        report.failures =
            report.failures.into_iter().map(|f| self.pipeline.masker.error(f)).collect();
        report
    }

    #[doc(hidden)] // for the program's own commands
    pub fn pin(&self, tool: &ToolDefinition) -> Pin {
        Pin::of(tool, &|text| self.pipeline.masker.text(text))
    }

    #[doc(hidden)] // for the program's own commands
    pub fn pin_instructions(&self, server: &str) -> Option<PinnedText> {
        Some(PinnedText::of(&self.instructions(server)?, &|text| self.pipeline.masker.text(text)))
    }

    /// The instructions of a connected server, including any secrets in them.
    fn instructions(&self, server: &str) -> Option<String> {
        let providers = self.directory.providers();
        let provider = providers.server(server)?;
        provider.inner.as_server()?.status().instructions
    }

    /// Whether a tool may be called as far as its pin goes. Gives what to warn about.
    pub(super) fn check_pin(&self, tool: &ToolDefinition) -> Result<Vec<String>, Error> {
        let warnings = self
            .directory
            .pins
            .get()
            .check_call(tool)
            .map_err(|error| self.pipeline.masker.error(error))?;
        Ok(warnings.iter().map(|line| self.pipeline.masker.text(line)).collect())
    }
}
