//! What a background host's identity was computed from, to tell later that it still holds.
//!
//! Computing an identity means reading all configuration. A run that finds the same files and
//! variables as an earlier one computes the same identity, so it can use the earlier result.
//!
//! Owns: which files and variables those are, and comparing them. Never does: decide consent. The host
//! itself checks the trust store before each call and every program before it starts; evidence only
//! spares a front end from working out which host that is.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::host_identity::{decides_nothing, deciding_variables, words_as_paths};
use super::{AssemblyOptions, LoadedConfiguration, kinds};
use crate::config::consent::ProjectRecord;
use crate::config::consent::store::TrustStore;
use crate::config::environment::Environment;
use crate::config::spec::Configuration;
use crate::config::watched_files::{FileStamp, WatchedFiles};
use crate::model::Layer;

/// The maximum number of code files in a trusted project. Checking more takes longer than it saves.
const MAX_CODE_FILES: usize = 64;

/// The files and variables that an identity was computed from. It is read and checked for every call,
/// so it holds one hash in place of each file's stamp and each variable's value.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostEvidence {
    /// The files, whether they exist or not.
    paths: Vec<String>,
    /// The variables whose values may decide something.
    deciding: Vec<String>,
    /// A keyed hash of what the files and those values were, and of the names of all variables: a new
    /// one may be mentioned in a file.
    state: u64,
}

impl HostEvidence {
    /// The evidence for the identity of a configuration that was read after `read_at`, a time since the
    /// Unix epoch. `None` when it might not be complete: when something was wrong or not trusted, when
    /// values come from anywhere but files and variables, and when a file changed just before.
    pub fn collect(
        loaded: &LoadedConfiguration,
        options: &AssemblyOptions,
        environment: &dyn Environment,
        key: &[u8],
        read_at: Duration,
    ) -> Option<Self> {
        let configuration = &loaded.configuration;
        let is_plain = configuration.diagnostics.is_empty()
            && configuration.disabled.is_empty()
            && configuration.untrusted.is_empty()
            && configuration.trust_request.is_none()
            && configuration.directories.is_empty()
            && configuration.expanded.come_from_environment()
            && options.files.inline_tools.is_empty()
            && options.files.added_inline_tools.is_empty()
            && options.files.inline_servers.is_empty();
        let are_regular = || {
            let mut on_disk = configuration.files.iter().filter(|f| f.layer != Layer::Embedded);
            on_disk.all(|file| file.path.is_file())
        };
        if !is_plain || !are_regular() {
            return None;
        }
        let mut paths: Vec<PathBuf> = environment.executable().into_iter().collect();
        paths.extend(configuration.servers.iter().flat_map(|s| words_as_paths(&s.endpoint)));
        paths.extend(environment.state_dir().map(|state| TrustStore::file(&state)));
        if let Some(record) = &configuration.trust_record {
            paths.extend(consent_paths(record, configuration, environment)?);
        }
        let files = WatchedFiles::of(configuration, paths);
        let mut stamps = files.stamps().filter_map(|(_, stamp)| stamp);
        if !stamps.all(|stamp| stamp.would_differ_after(read_at)) {
            return None;
        }
        let paths = files.stamps().map(|(path, _)| path.to_str().map(str::to_owned));
        let variables = environment.vars();
        let mut deciding: Vec<String> =
            variables.keys().filter(|name| is_own(name)).cloned().collect();
        for (name, _) in deciding_variables(configuration, &variables) {
            if !is_own(name) {
                deciding.push(name.clone());
            }
        }
        let mut evidence = Self { paths: paths.collect::<Option<_>>()?, deciding, state: 0 };
        evidence.state = evidence.state_now(environment, key);
        Some(evidence)
    }

    /// Whether everything is as it was. `key` is the one it was collected with.
    pub fn holds(&self, environment: &dyn Environment, key: &[u8]) -> bool {
        self.state_now(environment, key) == self.state
    }

    /// The hash of what the files and variables are now.
    fn state_now(&self, environment: &dyn Environment, key: &[u8]) -> u64 {
        let mut keyed = DefaultHasher::new();
        keyed.write(key);
        let hash_of = |part: &dyn Fn(&mut DefaultHasher)| {
            let mut hasher = keyed.clone();
            part(&mut hasher);
            hasher.finish()
        };
        // A sum, because variables come in any order.
        let mut state = 0_u64;
        environment.visit_vars(&mut |name, value| {
            if !decides_nothing(name) {
                let value = self.deciding.iter().any(|known| known == name).then_some(value);
                state = state.wrapping_add(hash_of(&|hasher| (name, value).hash(hasher)));
            }
        });
        for path in &self.paths {
            let stamp = FileStamp::of(Path::new(path));
            state = state.wrapping_add(hash_of(&|hasher| (path, stamp).hash(hasher)));
        }
        state
    }
}

/// Whether toolhost itself reads the variable to find out what to load.
fn is_own(name: &str) -> bool {
    name.starts_with("TOOLHOST_")
}

/// What has to be unchanged for a trusted project to be what was trusted. `None` when that cannot be
/// told from a few files.
fn consent_paths(
    record: &ProjectRecord,
    configuration: &Configuration,
    environment: &dyn Environment,
) -> Option<Vec<PathBuf>> {
    let finds_code =
        |kind: &str| kinds().iter().any(|k| k.words.key == kind && k.words.code.is_some());
    let bundle = &record.bundle;
    let has_own_path = configuration.files.iter().any(|file| mentions_path(file.text.as_str()));
    if has_own_path
        || bundle.code.len() > MAX_CODE_FILES
        || configuration.tools.iter().any(|tool| finds_code(tool.kind))
    {
        return None;
    }
    let mut paths: Vec<PathBuf> = bundle.files.keys().map(|file| record.root.join(file)).collect();
    for (path, file) in &bundle.code {
        // A script may import a new file beside it.
        paths.extend(file.resolved.parent().map(PathBuf::from));
        paths.extend([record.root.join(path), file.resolved.clone()]);
    }
    paths.extend(bundle.resolved_paths.values().cloned());
    // A program of the same name may appear in an earlier directory.
    let (search_path, cwd) = (environment.var("PATH").unwrap_or_default(), environment.cwd());
    paths.extend(std::env::split_paths(&search_path).map(|directory| cwd.join(directory)));
    Some(paths)
}

/// Whether a file may set the variable that programs are found by.
fn mentions_path(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == "PATH")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::assembly;
    use crate::config::environment::FixedEnvironment;
    use crate::util::clock::{Clock as _, SystemClock};

    const KEY: &[u8] = b"key";
    const SERVERS: &str =
        "mcp_servers: { s: { command: ./run, args: [x.py], env: { A: '${TOKEN:-}' } } }\n";

    struct Room {
        dir: tempfile::TempDir,
        options: AssemblyOptions,
    }

    impl Room {
        /// A room with a file of servers that the command line names.
        fn new(text: &str) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let mut options = AssemblyOptions::default();
            options.files.servers.push(dir.path().join("servers.yaml"));
            let room = Self { dir, options };
            room.write("servers.yaml", text);
            room
        }

        fn path(&self) -> &Path {
            self.dir.path()
        }

        fn write(&self, name: &str, text: &str) {
            std::fs::write(self.path().join(name), text).unwrap();
        }

        fn environment(&self, variables: &[(&str, &str)]) -> FixedEnvironment {
            let usual = [("PATH", "/bin"), ("COLOUR", "blue"), ("TOOLHOST_TRUST", "0")];
            let vars = usual.iter().chain(variables).map(|(n, v)| ((*n).into(), (*v).into()));
            let root = self.path().to_owned();
            FixedEnvironment { vars: vars.collect(), cwd: root.clone(), root: Some(root) }
        }

        /// The evidence, if the files had been read so long after they were written.
        fn collect(&self, after: Duration) -> Option<HostEvidence> {
            let environment = self.environment(&[]);
            let loaded = assembly::read(&self.options, &environment).unwrap();
            let read_at = SystemClock.unix() + after;
            HostEvidence::collect(&loaded, &self.options, &environment, KEY, read_at)
        }

        fn settled(&self) -> Option<HostEvidence> {
            self.collect(Duration::from_mins(1))
        }
    }

    #[test]
    fn it_holds_until_a_file_that_was_looked_at_changes() {
        let room = Room::new(SERVERS);
        room.write("x.py", "one");
        let changes: [(&str, &dyn Fn()); 4] = [
            ("the file", &|| room.write("servers.yaml", &format!("{SERVERS}# changed\n"))),
            ("a script", &|| room.write("x.py", "another")),
            ("a program that appears", &|| room.write("run", "#!/bin/sh\n")),
            ("the trust store", &|| {
                std::fs::create_dir_all(room.path().join("state")).unwrap();
                room.write("state/trust.json", "{}");
            }),
        ];
        for (what, change) in changes {
            let evidence = room.settled().unwrap();
            assert!(evidence.holds(&room.environment(&[]), KEY), "before {what}");
            change();
            assert!(!evidence.holds(&room.environment(&[]), KEY), "{what}");
        }
    }

    #[test]
    fn it_holds_until_a_variable_changes_that_may_decide_something() {
        let room = Room::new(SERVERS);
        let evidence = room.settled().unwrap();
        let holds = |variables: &[(&str, &str)]| evidence.holds(&room.environment(variables), KEY);
        assert!(holds(&[("COLOUR", "red")]), "it is in no file");
        assert!(holds(&[("TERM", "xterm"), ("XDG_SESSION_ID", "7")]), "terminals differ in them");
        for variable in ["PATH", "TOKEN", "TOOLHOST_TRUST", "TOOLHOST_MCP", "LANG"] {
            assert!(!holds(&[(variable, "other")]), "{variable}");
        }
        assert!(!holds(&[("NEVER_SEEN", "1")]), "a file may mention it");
        let without = FixedEnvironment { vars: BTreeMap::new(), ..room.environment(&[]) };
        assert!(!evidence.holds(&without, KEY), "a variable is gone");
    }

    #[test]
    fn it_is_the_same_after_it_was_kept_in_a_file() {
        let room = Room::new(SERVERS);
        let evidence = room.settled().unwrap();
        let kept = serde_json::to_vec(&evidence).unwrap();
        assert_eq!(serde_json::from_slice::<HostEvidence>(&kept).unwrap(), evidence);
    }

    #[test]
    fn there_is_none_where_it_might_be_incomplete() {
        let room = Room::new(SERVERS);
        assert!(room.settled().is_some());
        assert_eq!(room.collect(Duration::ZERO), None, "the file changed just now");
        for text in [
            "mcp_servers: { s: { command: a, env: { A: '${file:token}' } } }\n",
            "mcp_servers: { s: { command: a, envFile: token } }\n",
            "mcp_servers: { s: { command: a, unknown_key: 1 } }\n",
        ] {
            let room = Room::new(text);
            room.write("token", "12");
            assert_eq!(room.settled(), None, "{text}");
        }
    }

    #[test]
    fn there_is_none_for_an_untrusted_project() {
        let mut room = Room::new(SERVERS);
        room.write("mcp.yaml", SERVERS);
        room.options = AssemblyOptions::default();
        assert_eq!(room.settled(), None);
        room.options.files.trust_all = true;
        let evidence = room.settled().unwrap();
        assert!(evidence.holds(&room.environment(&[]), KEY));
        room.write("tools.yaml", "");
        assert!(!evidence.holds(&room.environment(&[]), KEY), "a file that would be read too");
    }
}
