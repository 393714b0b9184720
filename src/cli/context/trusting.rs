//! Trust in the project: when a person is asked, and where the answer is stored.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::{CommandContext, StartScope};
use crate::assembly;
use crate::catalogue::query;
use crate::cli::mcp_file::{self, McpFile};
use crate::cli::prompt::{self, DialogueReply};
use crate::config::consent::TrustRequest;
use crate::config::consent::store::TrustStore;
use crate::config::spec::{Configuration, UntrustedEntry};
use crate::model::{Error, Layer};
use crate::util::clock::{Clock as _, SystemClock};

impl CommandContext {
    /// Asks about the project if a person can be asked and has not refused it before; returns
    /// whether it is now trusted.
    pub(super) async fn ask_trust_if_needed(
        &self,
        configuration: &Configuration,
        starts: StartScope<'_>,
    ) -> Result<bool, Error> {
        let Some(request) = &configuration.trust_request else { return Ok(false) };
        let profile = self.global.rare.profile.as_ref().and_then(|p| configuration.profiles.get(p));
        let is_shown = |entry: &&UntrustedEntry| {
            profile.is_none_or(|profile| query::may_show_untrusted(profile, entry))
        };
        let mut needed = assembly::untrusted_entries(configuration, starts);
        needed.retain(is_shown);
        if needed.is_empty() || request.refused_at.is_some() || !prompt::is_possible() {
            return Ok(false);
        }
        // A run that ends anyway asks no question.
        self.require_flawless(configuration)?;
        self.ask_trust(request).await
    }

    /// Asks a person about a project and stores the answer; returns whether it is trusted now.
    pub async fn ask_trust(&self, request: &TrustRequest) -> Result<bool, Error> {
        match prompt::ask_trust(Arc::clone(&self.output), request).await {
            Some(DialogueReply::Yes) => self.trust(request, false).map(|()| true),
            Some(DialogueReply::Author) => self.trust(request, true).map(|()| true),
            Some(DialogueReply::No) => {
                self.trust_store()?.refuse(request, SystemClock.unix()).map(|()| false)
            }
            Some(DialogueReply::Unanswered) | None => Ok(false),
        }
    }

    /// Writes the entries that a command added to a server file. In a project of which everything
    /// else was trusted, what the person just wrote is trusted exactly as written, unless it
    /// replaces an entry of the user's own. Returns the command that trusts the project, where that
    /// is still needed.
    pub fn write_server_file(&self, file: &McpFile) -> Result<Option<String>, Error> {
        let directory = file.path.parent().filter(|_| !file.is_own);
        let before = self.load_untrusting(directory)?;
        file.write()?;
        let after = self.load_untrusting(directory)?;
        let Some(request) = &after.trust_request else { return Ok(None) };
        let texts = |configuration: &Configuration| -> BTreeMap<PathBuf, String> {
            let files = configuration.files.iter().filter(|file| file.layer == Layer::Project);
            files.map(|file| (file.path.clone(), file.text.as_str().to_owned())).collect()
        };
        let mut expected = texts(&before);
        expected.insert(file.path.clone(), file.new.clone());
        if before.trust_request.is_some() || texts(&after) != expected || !request.only_adds() {
            return Ok(Some(request.command()));
        }
        let author = request.previous.as_ref().is_some_and(|record| record.allows_code_changes);
        self.trust(request, author)?;
        Ok(None)
    }

    /// Stores that a person trusts a project as shown in `request`.
    pub fn trust(&self, request: &TrustRequest, author: bool) -> Result<(), Error> {
        self.trust_store()?.trust(request, author, SystemClock.unix())
    }

    pub fn trust_store(&self) -> Result<TrustStore, Error> {
        TrustStore::open(self.environment.state_dir().as_deref()).map_err(mcp_file::error)
    }

    /// Tells a person who wrote a server file that its project has to be trusted first.
    pub fn note_untrusted(&self, trust_command: Option<String>) {
        if let Some(command) = trust_command {
            self.output.note(format!("review and trust the project first: {command}"));
        }
    }
}
