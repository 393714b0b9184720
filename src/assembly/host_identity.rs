//! Determines which background host belongs to a configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::{AssemblyOptions, LoadedConfiguration};
use crate::config::environment::Environment;
use crate::config::spec::{Configuration, Endpoint};
use crate::model::Layer;
use crate::util::hex::hex;
use crate::util::part_digest::PartDigest;

/// Variables of a login, which have no effect unless a file refers to them. The caller's identity is
/// sent with each call.
const OF_A_LOGIN: [&str; 3] = ["XDG_SEAT", "XDG_SESSION_ID", "XDG_VTNR"];
/// Variables that programs see, or that affect how they are reached, regardless of the files.
const ALWAYS: [&str; 17] = [
    "ALL_PROXY",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "NO_PROXY",
    "PATH",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
    "TZ",
    "USER",
    "all_proxy",
    "https_proxy",
    "no_proxy",
];

/// The digest as 32 lower-case hexadecimal digits. `key` is random and stored by the user, so that
/// the digest reveals nothing about the values in it.
pub fn host_identity(
    loaded: &LoadedConfiguration,
    options: &AssemblyOptions,
    environment: &dyn Environment,
    key: &[u8],
) -> String {
    let configuration = &loaded.configuration;
    let mut digest = PartDigest::default();
    digest.part(key);
    digest.text(env!("CARGO_PKG_VERSION"));
    if let Some(program) = environment.executable() {
        file_stamp(&mut digest, &program);
    }
    add_options(&mut digest, options);
    add_files(&mut digest, configuration, options);
    if has_no_directory(configuration, options) {
        digest.text(&environment.cwd().to_string_lossy());
    }
    add_trust(&mut digest, configuration);
    add_programs(&mut digest, configuration);
    add_values(&mut digest, configuration, environment);
    hex(&digest.finish()[..16])
}

/// The directory that a host is started for: the project's, or that of the run.
pub fn host_directory(configuration: &Configuration, cwd: PathBuf) -> PathBuf {
    let request = configuration.trust_request.as_ref();
    let root = configuration.trusted_root().or(request.map(|request| request.root.as_path()));
    root.map(Path::to_path_buf)
        .or_else(|| {
            let named = |layer: Layer| layer < Layer::User;
            let file = configuration.files.iter().find(|file| named(file.layer))?;
            let parent = file.path.parent().filter(|parent| !parent.as_os_str().is_empty())?;
            cwd.join(parent).canonicalize().ok()
        })
        .unwrap_or(cwd)
}

fn add_options(digest: &mut PartDigest, options: &AssemblyOptions) {
    let AssemblyOptions { files, profile, insecure, require_record, ask_all, log_level: _ } =
        options;
    digest.text(profile.as_deref().unwrap_or("\0"));
    let flags = [*insecure, *require_record, *ask_all, files.trust_all];
    digest.part(&flags.map(u8::from));
}

fn add_files(digest: &mut PartDigest, configuration: &Configuration, options: &AssemblyOptions) {
    let files = &options.files;
    let inline = files.inline_tools.iter().chain(&files.added_inline_tools);
    for (path, text) in inline.chain(&files.inline_servers) {
        digest.text(&path.to_string_lossy());
        digest.text(text);
    }
    for file in &configuration.files {
        digest.text(&format!("{:?} {:?} {}", file.layer, file.role, file.path.display()));
        digest.text(file.text.as_str());
    }
    for (name, path) in &configuration.scopes {
        digest.text(name);
        digest.text(&path.to_string_lossy());
    }
}

/// The words in the files that are names of variables: any of them may refer to one. A one-letter
/// name does not count; `_` differs for each command of a shell.
fn mentioned<'a>(
    configuration: &'a Configuration,
    variables: &BTreeMap<String, String>,
) -> BTreeSet<&'a str> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let texts = configuration.files.iter().map(|file| file.text.as_str().as_bytes());
    let names = texts.flat_map(|text| text.split(move |byte| !is_part(byte)));
    let names = names.filter_map(|word| std::str::from_utf8(word).ok());
    names.filter(|word| word.len() > 1 && variables.contains_key(*word)).collect()
}

fn deciding_variables<'a>(
    configuration: &Configuration,
    variables: &'a BTreeMap<String, String>,
) -> Vec<(&'a String, &'a String)> {
    let mentioned = mentioned(configuration, variables);
    let decides = |name: &str| {
        mentioned.contains(name)
            || ALWAYS.contains(&name)
            || (name.starts_with("XDG_") && !OF_A_LOGIN.contains(&name))
    };
    variables.iter().filter(|(name, _)| decides(name)).collect()
}

fn has_no_directory(configuration: &Configuration, options: &AssemblyOptions) -> bool {
    !options.files.inline_tools.is_empty()
        || !options.files.added_inline_tools.is_empty()
        || configuration.files.iter().any(|file| file.layer == Layer::Embedded)
}

fn add_trust(digest: &mut PartDigest, configuration: &Configuration) {
    for entry in &configuration.untrusted {
        digest.text(&entry.name);
    }
    digest.part(b"trusted");
    if let Some(root) = configuration.trusted_root() {
        digest.text(&root.to_string_lossy());
    }
    if let Some(record) = &configuration.trust_record {
        digest.text(&record.trusted_at);
        digest.text(&record.bundle.digest());
    }
}

/// The programs and scripts that servers are started with: a new build needs a new host.
fn add_programs(digest: &mut PartDigest, configuration: &Configuration) {
    for server in &configuration.servers {
        digest.text(&server.name);
        for path in words_as_paths(&server.endpoint) {
            file_stamp(digest, &path);
        }
    }
}

/// The words of a command line as paths: any of them may be a program or a script.
fn words_as_paths(endpoint: &Endpoint) -> Vec<PathBuf> {
    let Endpoint::Stdio { command, args, cwd, .. } = endpoint else { return Vec::new() };
    std::iter::once(command).chain(args).map(|word| cwd.join(word)).collect()
}

fn file_stamp(digest: &mut PartDigest, path: &Path) {
    let Ok(meta) = std::fs::metadata(path) else { return };
    if !meta.is_file() {
        return;
    }
    digest.text(&path.to_string_lossy());
    for number in [meta.dev(), meta.ino(), meta.len()] {
        digest.part(&number.to_be_bytes());
    }
    digest.part(&meta.mtime().to_be_bytes());
    digest.part(&meta.mtime_nsec().to_be_bytes());
}

/// The values of the variables that the files may refer to, and of every reference that was
/// expanded.
fn add_values(
    digest: &mut PartDigest,
    configuration: &Configuration,
    environment: &dyn Environment,
) {
    for (name, value) in deciding_variables(configuration, &environment.vars()) {
        digest.text(name);
        digest.text(value);
    }
    let expanded = Arc::new(Mutex::new(BTreeSet::new()));
    let values = Arc::clone(&expanded);
    configuration.expanded.listen(move |reference, value| {
        let mut values = values.lock().unwrap_or_else(PoisonError::into_inner);
        values.insert((reference.to_owned(), value.to_owned()));
    });
    // Values expanded later are not part of it.
    let expanded = std::mem::take(&mut *expanded.lock().unwrap_or_else(PoisonError::into_inner));
    for (reference, value) in &expanded {
        digest.text(reference);
        digest.text(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assembly;
    use crate::config::environment::FixedEnvironment;

    const KEY: &[u8] = b"key";

    fn environment(root: &Path, variables: &[(&str, &str)]) -> FixedEnvironment {
        let vars = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let (vars, root) = (vars.collect(), root.to_owned());
        FixedEnvironment { vars, cwd: root.clone(), root: Some(root) }
    }

    #[test]
    fn it_is_that_of_the_text_which_was_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mcp.json");
        let write = |command: &str| {
            let text = format!(r#"{{"mcp_servers": {{"s": {{"command": "{command}"}}}}}}"#);
            std::fs::write(&file, text).unwrap();
        };
        let mut options = AssemblyOptions::default();
        options.files.servers.push(file.clone());
        let environment = environment(dir.path(), &[]);
        let read = || assembly::read(&options, &environment).unwrap();
        let identity = |loaded| host_identity(loaded, &options, &environment, KEY);

        write("one");
        let (first, again) = (read(), read());
        let before = identity(&first);
        assert_eq!(before, identity(&again));
        write("two");
        assert_eq!(before, identity(&first), "what lies there now was not read");
        assert_ne!(before, identity(&read()));
    }

    #[test]
    fn only_variables_that_may_decide_something_count() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mcp.yaml");
        let text = "mcp_servers: { s: { command: one, args: [_, x], env: { A: '${TOKEN:-}', B: '${PWD:-}' } } }\n";
        std::fs::write(&file, text).unwrap();
        let mut options = AssemblyOptions::default();
        options.files.servers.push(file);
        let identity = |variables: &[(&str, &str)]| {
            let environment = environment(dir.path(), variables);
            let loaded = assembly::read(&options, &environment).unwrap();
            host_identity(&loaded, &options, &environment, KEY)
        };
        let plain = identity(&[]);
        for name in ["TERM", "XDG_SESSION_ID", "OTHER", "_", "x"] {
            assert_eq!(plain, identity(&[(name, "1")]), "{name}");
        }
        for name in ["TOKEN", "PATH", "XDG_CONFIG_HOME", "env", "PWD"] {
            assert_ne!(plain, identity(&[(name, "1")]), "{name}");
        }
    }
}
