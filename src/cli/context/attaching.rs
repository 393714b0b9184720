//! Using a background host instead of starting servers.

use std::path::PathBuf;
use std::sync::Arc;

use super::{CommandContext, StartScope};
use crate::assembly::host_identity::host_identity;
use crate::assembly::host_locator::{HostLocator, attached_front_end};
use crate::assembly::runtime_directory::RuntimeDirectory;
use crate::assembly::{self, Assembly, FrontEnd, LoadedConfiguration};
use crate::cli::host_sockets;
use crate::config::spec::Configuration;
use crate::host::link::HostLink as _;
use crate::model::Error;
use crate::present::{configuration::out_of_service, plural};
use crate::serve::background::client::{AttachedFrontEnd, HostClient};

const MAX_NAMED: usize = 5;

impl CommandContext {
    /// As [`CommandContext::assemble`]; calls and lists are then passed on to the background host
    /// with the same configuration, when one runs. `command` is how the host's records name this run.
    pub async fn assemble_attached(
        &self,
        starts: StartScope<'_>,
        command: &str,
    ) -> Result<Assembly, Error> {
        let loaded = self.read_for(starts).await?;
        let front_end = self.front_end()?;
        let attached = attached_front_end(&front_end, &loaded.masker);
        let client = self.host_client(&loaded, starts, command, attached).await;
        let assembly = self.assemble_from(loaded, front_end)?;
        if let Some(client) = client {
            if self.output.verbosity() > 0 {
                self.output.note(format!("using the background host (pid {})", client.pid()));
            }
            assembly.host.attach(Arc::new(client));
        }
        Ok(assembly)
    }

    /// As [`CommandContext::assemble`]; with it the process of the background host that would have been
    /// used, when one runs, for a command that starts servers of its own all the same.
    pub async fn assemble_beside_host(
        &self,
        starts: StartScope<'_>,
    ) -> Result<(Assembly, Option<u32>), Error> {
        let loaded = self.read_for(starts).await?;
        let host = match self.host_locator().socket(&loaded) {
            Some(socket) => {
                HostClient::connect(&socket, "toolhost", host_sockets::unattended()).await
            }
            None => None,
        };
        Ok((self.assemble_from(loaded, self.front_end()?)?, host.map(|host| host.pid())))
    }

    /// Reads the configuration and builds the host for another front end, which asks by itself
    /// about what was never allowed. With it the socket of the background host that could answer in
    /// its place, which may not be there.
    pub fn assemble_for(&self, front_end: FrontEnd) -> Result<(Assembly, Option<PathBuf>), Error> {
        let loaded = self.read_usable()?;
        let socket = self.host_locator().socket(&loaded);
        Ok((self.assemble_from(loaded, front_end)?, socket))
    }

    pub fn host_locator(&self) -> HostLocator {
        HostLocator {
            options: self.options(),
            environment: Arc::clone(&self.environment),
            is_fresh: self.global.needs_own_servers(),
        }
    }

    /// The background host of a configuration. Starts one if a required entry asks for it and none
    /// is running.
    async fn host_client(
        &self,
        loaded: &LoadedConfiguration,
        starts: StartScope<'_>,
        command: &str,
        front_end: AttachedFrontEnd,
    ) -> Option<HostClient> {
        if self.global.needs_own_servers() {
            return None;
        }
        let environment = self.environment.as_ref();
        let directory = RuntimeDirectory::of(environment)?;
        let keep = assembly::keep(&loaded.configuration, starts);
        let key = match keep {
            Some(_) => directory.make_key().ok()?,
            None => directory.key()?,
        };
        let identity = self.identity(loaded, &key);
        let socket = directory.socket(&identity);
        let arguments = self.global.host_arguments();
        if let Some(keep) = keep
            && !host_sockets::is_listening(&socket).await
            && let Err(error) =
                host_sockets::start::start(&arguments, environment, &directory, &identity, keep)
                    .await
        {
            self.output.warn(&format!("{error}; this call starts the server itself"));
        }
        HostClient::connect(&socket, command, front_end).await
    }

    pub fn identity(&self, loaded: &LoadedConfiguration, key: &[u8]) -> String {
        host_identity(loaded, &self.options(), self.environment.as_ref(), key)
    }

    /// The identity of the background host of this configuration, which is about to be started.
    /// Warns about entries the host will not serve.
    pub fn require_host_identity(&self, key: &[u8]) -> Result<String, Error> {
        let loaded = self.read_usable()?;
        self.require_flawless(&loaded.configuration)?;
        self.warn_unserved(&loaded.configuration);
        Ok(self.identity(&loaded, key))
    }

    /// The same without warnings; `None` if the configuration cannot be read.
    pub fn host_identity(&self, key: &[u8]) -> Option<String> {
        Some(self.identity(&self.read().ok()?, key))
    }

    /// Warns about entries that a background host of this configuration does not serve.
    pub fn warn_unserved(&self, configuration: &Configuration) {
        if configuration.trust_request.is_some() {
            self.output.warn(
                "this project is not trusted, so entries that need trust are not served; \
                 review them with 'toolhost trust'",
            );
        }
        let errors = configuration.diagnostics.iter().filter(|problem| problem.is_error());
        for problem in errors.take(MAX_NAMED) {
            let name = problem.entry.as_ref().map(|entry| format!("'{entry}' is out of service: "));
            self.output.warn(&format!("{}{}", name.unwrap_or_default(), problem.message));
        }
        let broken = out_of_service(&configuration.diagnostics);
        if broken > 0 {
            let entries = plural(broken, "entry is", "entries are");
            self.output.warn(&format!("{entries} out of service, see 'toolhost config check'"));
        }
    }
}
