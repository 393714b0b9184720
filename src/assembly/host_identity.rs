//! Which background host belongs to a configuration.
//!
//! Owns: the keyed digest over all that decides what a host would do: the build, the files, what of
//! them is trusted, the variables and secrets they refer to, and the options of the run. Equal digests
//! mean that one host can answer for the other. Never does: look for a host.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

use super::{AssemblyOptions, LoadedConfiguration};
use crate::config::environment::Environment;
use crate::config::spec::{Configuration, Endpoint};
use crate::model::Layer;

/// Variables that differ from terminal to terminal and decide nothing. Whose call it is travels with
/// the call.
const OF_A_TERMINAL: [&str; 14] = [
    "COLUMNS",
    "LINES",
    "OLDPWD",
    "PWD",
    "SHELL",
    "SHLVL",
    "SSH_TTY",
    "TERM",
    "TERM_PROGRAM",
    "TOOLHOST_USER",
    "TRACEPARENT",
    "TRACESTATE",
    "TTY",
    "WINDOWID",
];
/// Variables that programs see, or that decide how they are reached, whatever the files say.
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
/// The largest configuration file that is looked through; the loader takes none that is larger.
const MAX_FILE: u64 = 16 << 20;

/// A digest in the making: parts of any length, none of which can be taken for two.
struct PartDigest(Sha256);

impl PartDigest {
    fn part(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }

    fn text(&mut self, text: &str) {
        self.part(text.as_bytes());
    }

    /// The path, and which content is there as far as the system tells without reading.
    fn file_stamp(&mut self, path: &Path) {
        let Ok(meta) = std::fs::metadata(path) else { return };
        if !meta.is_file() {
            return;
        }
        self.text(&path.to_string_lossy());
        for number in [meta.dev(), meta.ino(), meta.len()] {
            self.part(&number.to_be_bytes());
        }
        self.part(&meta.mtime().to_be_bytes());
        self.part(&meta.mtime_nsec().to_be_bytes());
    }
}

/// The digest as 32 lower-case hexadecimal digits. `key` is random and kept by the user, so that the
/// digest tells nothing about the values in it.
pub fn host_identity(
    loaded: &LoadedConfiguration,
    options: &AssemblyOptions,
    environment: &dyn Environment,
    key: &[u8],
) -> String {
    let configuration = &loaded.configuration;
    let mut digest = PartDigest(Sha256::new());
    digest.part(key);
    digest.text(env!("CARGO_PKG_VERSION"));
    if let Some(program) = environment.executable() {
        digest.file_stamp(&program);
    }
    add_options(&mut digest, options);
    let words = add_files(&mut digest, configuration, options);
    if has_no_directory(configuration, options) {
        digest.text(&environment.cwd().to_string_lossy());
    }
    add_trust(&mut digest, configuration);
    add_programs(&mut digest, configuration);
    add_values(&mut digest, configuration, environment, &words);
    let hash = digest.0.finalize();
    let mut identity = String::with_capacity(32);
    for byte in hash.iter().take(16) {
        for digit in [byte >> 4, byte & 15] {
            identity.extend(char::from_digit(u32::from(digit), 16));
        }
    }
    identity
}

/// The directory that a host is started for: the project's, or that of the run.
pub fn host_directory(configuration: &Configuration, cwd: PathBuf) -> PathBuf {
    let request = configuration.trust_request.as_ref();
    let root = configuration.trusted_root.clone().or_else(|| request.map(|r| r.root.clone()));
    root.or_else(|| {
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

/// The files with their contents; the words in them, any of which may be the name of a variable.
fn add_files(
    digest: &mut PartDigest,
    configuration: &Configuration,
    options: &AssemblyOptions,
) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let inline = options.files.inline_tools.iter().chain(&options.files.inline_servers);
    for (path, text) in inline {
        digest.text(&path.to_string_lossy());
        digest.text(text);
    }
    for file in &configuration.files {
        digest.text(&format!("{:?} {:?} {}", file.layer, file.role, file.path.display()));
        let is_small = std::fs::metadata(&file.path)
            .is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_FILE);
        let Some(content) = is_small.then(|| std::fs::read(&file.path).ok()).flatten() else {
            continue;
        };
        digest.part(&content);
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let found = content.split(|byte| !is_part(byte));
        let found = found.filter_map(|word| std::str::from_utf8(word).ok());
        words.extend(found.filter(|word| word.len() > 1).map(str::to_owned));
    }
    for (name, path) in &configuration.scopes {
        digest.text(name);
        digest.text(&path.to_string_lossy());
    }
    words
}

/// Whether relative paths begin at the working directory.
fn has_no_directory(configuration: &Configuration, options: &AssemblyOptions) -> bool {
    !options.files.inline_tools.is_empty()
        || configuration.files.iter().any(|file| file.layer == Layer::Embedded)
}

fn add_trust(digest: &mut PartDigest, configuration: &Configuration) {
    for entry in &configuration.untrusted {
        digest.text(&entry.name);
    }
    digest.part(b"trusted");
    if let Some(root) = &configuration.trusted_root {
        digest.text(&root.to_string_lossy());
    }
    if let Some(record) = &configuration.trust_record {
        digest.text(&record.trusted_at);
        digest.text(&record.bundle.digest());
    }
}

/// The programs and scripts that servers are started with: a new build is another host.
fn add_programs(digest: &mut PartDigest, configuration: &Configuration) {
    for server in &configuration.servers {
        digest.text(&server.name);
        if let Endpoint::Stdio { command, args, cwd, .. } = &server.endpoint {
            for word in std::iter::once(command).chain(args) {
                digest.file_stamp(&cwd.join(word));
            }
        }
    }
}

/// The values of the variables that the files may mean, and of every reference that was expanded.
fn add_values(
    digest: &mut PartDigest,
    configuration: &Configuration,
    environment: &dyn Environment,
    words: &BTreeSet<String>,
) {
    let mut values: BTreeMap<String, String> = environment.vars();
    values.retain(|name, _| {
        !OF_A_TERMINAL.contains(&name.as_str())
            && (ALWAYS.contains(&name.as_str()) || name.starts_with("XDG_") || words.contains(name))
    });
    // The session of a login is part of none of it.
    values.retain(|name, _| name != "XDG_SESSION_ID" && name != "XDG_VTNR" && name != "XDG_SEAT");
    for (name, value) in &values {
        digest.text(name);
        digest.text(value);
    }
    let expanded = Arc::new(Mutex::new(BTreeSet::new()));
    let heard = Arc::clone(&expanded);
    configuration.expanded.listen(move |reference, value| {
        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.insert((reference.to_owned(), value.to_owned()));
    });
    // What is expanded later is not part of it.
    let expanded = std::mem::take(&mut *expanded.lock().unwrap_or_else(PoisonError::into_inner));
    for (reference, value) in &expanded {
        digest.text(reference);
        digest.text(value);
    }
}
