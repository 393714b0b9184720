//! Which configuration a run reads, and its options.

use std::path::{Path, PathBuf};

use super::CommandContext;
use crate::assembly::{self, AssemblyOptions};
use crate::config::LoadRequest;
use crate::config::spec::{Configuration, RecordSpec};
use crate::model::Error;
use crate::present::messages;
use crate::util::append::RecordLocation;
use crate::util::regular_file;

impl CommandContext {
    /// Reads the configuration without building a host.
    pub fn load(&self) -> Configuration {
        self.load_as(&self.load_request())
    }

    /// The same for a command that reads a record: `record` picks its settings. Warns when it is
    /// switched off, or when a project's file would set what only the user may.
    pub fn load_for_record(
        &self,
        name: &str,
        record: fn(&Configuration) -> &RecordSpec,
    ) -> Result<Configuration, Error> {
        let configuration = self.load();
        Self::require_usable(&configuration)?;
        let spec = record(&configuration);
        if !spec.enabled {
            self.output.warn(&format!("{name} switched off ('enabled: false' in tools.yaml)"));
        }
        for diagnostic in &spec.ignored {
            self.output.warn(&messages::located(diagnostic));
        }
        Ok(configuration)
    }

    /// The location of a record, as [`CommandContext::load_for_record`]; `key` is the one of its
    /// settings.
    pub fn record_location(
        &self,
        (name, key, file): (&str, &str, &str),
        record: fn(&Configuration) -> &RecordSpec,
    ) -> Result<RecordLocation, Error> {
        let configuration = self.load_for_record(&format!("the {name} is"), record)?;
        let state_dir = self.environment.state_dir();
        assembly::record_location(record(&configuration), file, state_dir.as_deref()).ok_or_else(
            || {
                Error::internal(format!("there is no home directory, so there is no {name}"))
                    .with_hint(format!("set {key}: {{ path: FILE }} in tools.yaml"))
            },
        )
    }

    /// Reads only the configuration of a directory for a review: trust not in the trust store stays an
    /// open question, and all code is compared.
    pub fn load_untrusting(&self, directory: Option<&Path>) -> Result<Configuration, Error> {
        let mut request =
            LoadRequest { trust_all: false, reviews_code: true, ..self.load_request() };
        if let Some(directory) = directory {
            let real = self.directory_of(directory).canonicalize().map_err(|why| {
                let why = regular_file::reason(&why);
                Error::usage(format!("cannot read {}: {why}", directory.display()))
            })?;
            request.project = Some(real);
        }
        Ok(self.load_as(&request))
    }

    /// A directory as named on the command line; for a configuration file, its directory.
    pub fn directory_of(&self, path: &Path) -> PathBuf {
        let cwd = self.environment.cwd();
        let whole = cwd.join(path);
        if whole.is_file() { whole.parent().map_or(cwd, Path::to_path_buf) } else { whole }
    }

    fn load_as(&self, request: &LoadRequest) -> Configuration {
        let (configuration, masker) = assembly::load(request, &*self.environment);
        self.output.set_masker(masker);
        configuration
    }

    pub fn load_request(&self) -> LoadRequest {
        self.global.load_request(self.trusts_all())
    }

    /// Whether this run trusts everything its files would start.
    pub fn trusts_all(&self) -> bool {
        self.global.trust || self.environment.var("TOOLHOST_TRUST").is_some_and(|v| v == "1")
    }

    pub fn options(&self) -> AssemblyOptions {
        self.global.assembly_options(self.trusts_all())
    }
}
