//! Turning an entry's `sandbox` into the confinement of one process.
//!
//! Whether a sandbox may have made a program fail: which directory to allow it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use crate::config::consent::EntryEffect;
use crate::config::environment::Environment;
use crate::config::node::ConfigNode;
use crate::config::sandbox::{self, SandboxLevel, SandboxSpec};
use crate::config::spec::{Endpoint, ServerSpec, ToolSpec};
use crate::model::{Diagnostic, Diagnostics, Error, ErrorPhase, Safety};
use crate::util::confine::{
    self, Confinement, ConfinementError, ConfinementLevel, Coverage, HomeDir, ResourceLimits,
};
use crate::util::private_file;
use crate::util::process::{Program, StartError};

const PER_CALL_LIMITS: ResourceLimits = ResourceLimits {
    memory: Some(1 << 30),
    cpu: Some(Duration::from_mins(5)),
    processes: Some(256),
    file_size: Some(1 << 30),
    open_files: Some(1024),
};

/// Those of a program that stays: time on a processor adds up for as long as it lives, so it has
/// no limit of that.
const LONG_LIVED_LIMITS: ResourceLimits = ResourceLimits {
    memory: Some(2 << 30),
    cpu: None,
    processes: Some(512),
    file_size: Some(4 << 30),
    open_files: Some(4096),
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramLifetime {
    PerCall,
    /// Started once for many calls, as a worker is.
    LongLived,
}

#[derive(Debug, Clone)]
pub(crate) struct Sandbox {
    spec: SandboxSpec,
    level: Result<ConfinementLevel, ConfinementError>,
    /// What does not depend on the program and its directory, nor on whether the level works here.
    base: Confinement,
    base_dir: PathBuf,
    /// What the kind of tool needs, regardless of the entry.
    required_paths: Vec<PathBuf>,
    /// The user's home, which is not exposed by exposing a directory that contains it.
    users_home: Option<PathBuf>,
}

/// The sandbox of a tool's entry; `None` if it asks for none, or an error was added to `diagnostics`.
/// `sets_home` says whether the entry itself gives the program a `HOME`.
pub(crate) fn read(
    spec: &ToolSpec,
    life: ProgramLifetime,
    sets_home: bool,
    environment: &dyn Environment,
    diagnostics: &Diagnostics,
) -> Option<Sandbox> {
    let requested =
        requested_sandbox(&spec.entry, spec.definition.safety, &spec.base_dir, diagnostics)?;
    let limits = match life {
        ProgramLifetime::PerCall => PER_CALL_LIMITS,
        ProgramLifetime::LongLived => LONG_LIVED_LIMITS,
    };
    let home = if sets_home { HomeDir::Inherited } else { HomeDir::Temporary };
    Some(Sandbox::new(requested, limits, false, home, &spec.base_dir, environment))
}

fn requested_sandbox(
    entry: &ConfigNode,
    safety: Safety,
    base_dir: &Path,
    diagnostics: &Diagnostics,
) -> Option<SandboxSpec> {
    let promised = safety == Safety::Sandboxed;
    let written = match entry.get("sandbox").filter(|node| !node.is_null()) {
        Some(node) => Some(sandbox::read(node, base_dir, promised, diagnostics)?),
        None => None,
    };
    match written {
        Some(spec)
            if promised && matches!(spec.level, SandboxLevel::None | SandboxLevel::Limits) =>
        {
            let level = spec.level.as_str();
            let message =
                format!("'safety: sandboxed' and the sandbox '{level}' contradict each other");
            let hint = "omit 'sandbox' for the default, or set 'safety: native'";
            let diagnostic = Diagnostic::error(message).with_hint(hint);
            diagnostics.push(diagnostic.with_location(spec.location));
            None
        }
        written @ Some(_) => written.filter(|spec| spec.level != SandboxLevel::None),
        None if promised => {
            let place = entry.get("safety").map_or_else(|| entry.location(), ConfigNode::location);
            Some(SandboxSpec::plain(SandboxLevel::Auto, place))
        }
        None => None,
    }
}

/// The effects of a sandbox for the question about an entry: as the entry writes it, which need not
/// be what this system can enforce.
pub(crate) fn effects(entry: &ConfigNode, base_dir: &Path) -> Vec<EntryEffect> {
    let safety = entry.get("safety").and_then(|node| Safety::parse(node.text()?));
    let diagnostics = Diagnostics::default();
    let spec = requested_sandbox(entry, safety.unwrap_or_default(), base_dir, &diagnostics);
    let wrong = diagnostics.take().into_iter().filter(Diagnostic::is_error);
    let wrong = wrong.map(|diagnostic| format!("sandbox: {}", diagnostic.message));
    spec.iter().flat_map(SandboxSpec::lines).chain(wrong).map(EntryEffect::Other).collect()
}

/// The sandbox of a server; `None` if it has none.
pub(crate) fn of_server(spec: &ServerSpec, environment: &dyn Environment) -> Option<Sandbox> {
    let Endpoint::Stdio { env, .. } = &spec.endpoint else { return None };
    let keeps_network = spec.permissions.network == Some(false);
    let base_dir = spec.location.file.parent().unwrap_or(Path::new("/")).to_path_buf();
    let Some(mut requested) = spec.sandbox.clone() else {
        // Its permissions only deny it the network.
        let requested = SandboxSpec::without_network(spec.location.clone());
        let (limits, home) = (ResourceLimits::default(), HomeDir::Inherited);
        let sandbox = || Sandbox::new(requested, limits, false, home, &base_dir, environment);
        return keeps_network.then(sandbox);
    };
    if keeps_network {
        requested.network = Some(false);
    }
    // Its own persistent home: package runners keep what they fetched there, and none can put
    // code where a program outside of the sandbox would find it.
    let own = environment.cache_dir().map(|cache| cache.join("homes").join(&spec.name));
    let home = match own {
        _ if env.contains_key("HOME") => HomeDir::Inherited,
        Some(own) => HomeDir::At(own),
        None => HomeDir::Temporary,
    };
    Some(Sandbox::new(requested, LONG_LIVED_LIMITS, true, home, &base_dir, environment))
}

impl Sandbox {
    fn new(
        spec: SandboxSpec,
        defaults: ResourceLimits,
        network: bool,
        home: HomeDir,
        base_dir: &Path,
        environment: &dyn Environment,
    ) -> Self {
        let level = match spec.level {
            SandboxLevel::Landlock => Ok(ConfinementLevel::Landlock),
            SandboxLevel::Bwrap => Ok(ConfinementLevel::Bwrap),
            SandboxLevel::Limits | SandboxLevel::None => Ok(ConfinementLevel::Limits),
            SandboxLevel::Auto => confine::available(),
        };
        let limits = ResourceLimits {
            memory: spec.limits.memory.or(defaults.memory),
            cpu: spec.limits.cpu.or(defaults.cpu),
            processes: spec
                .limits
                .processes
                .or(defaults.processes.filter(|_| !confine::is_superuser())),
            file_size: spec.limits.file_size.or(defaults.file_size),
            open_files: spec.limits.open_files.or(defaults.open_files),
        };
        let level = level.and_then(|level| confine::check(level).map(|()| level));
        let temporary = environment.var("TMPDIR").map(PathBuf::from);
        let temporary = temporary.filter(|path| path.is_absolute() && path.is_dir());
        let base = Confinement {
            level: ConfinementLevel::Limits,
            system: true,
            read: spec.read.clone().unwrap_or_default(),
            write: spec.write.clone(),
            network: spec.network.unwrap_or(network),
            metadata: spec.metadata == Some(true),
            limits,
            scratch: temporary.unwrap_or_else(|| "/tmp".into()),
            home,
        };
        Self {
            level: level.and_then(|level| limits.check().map(|()| level)),
            base,
            base_dir: base_dir.to_path_buf(),
            required_paths: Vec::new(),
            users_home: environment.home(),
            spec,
        }
    }

    /// Lets the program read what it cannot work without, even where the entry names what can be
    /// read; not a directory that contains the user's home.
    pub(crate) fn require_readable(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        self.required_paths.extend(paths);
    }

    /// Whether the entry or the policy lets the program read a path: for what a kind needs.
    pub(crate) fn reads(&self, path: &Path) -> bool {
        !self.confines()
            || self.may_expose(path)
            || self
                .spec
                .read
                .iter()
                .flatten()
                .chain(&self.spec.write)
                .any(|named| confine::contains(named, path))
    }

    pub(crate) fn memory_limit(&self) -> Option<String> {
        self.base.limits.memory_limit()
    }

    /// Why the program cannot be confined here, when it cannot.
    pub(crate) fn obstacle(&self) -> Option<Error> {
        self.level.as_ref().err().map(refused)
    }

    pub(crate) fn confines(&self) -> bool {
        self.level.as_ref().map_or(true, |level| level.confines())
    }

    /// What `program`, started in `cwd`, is confined to.
    pub(crate) fn confinement(&self, program: &Path, cwd: &Path) -> Result<Confinement, Error> {
        let level = self.level.clone().map_err(|refusal| refused(&refusal))?;
        if let (HomeDir::At(home), true) = (&self.base.home, level.confines()) {
            private_file::make_own_directory(home).map_err(|why| {
                Error::denied(format!("'{}' cannot be its home: {why}", home.display()))
                    .with_phase(ErrorPhase::Start)
            })?;
        }
        let mut confinement = self.base_confinement(level);
        self.add_unnamed_paths(&mut confinement, Some(cwd));
        confinement.read.extend(confine::program_paths(program, self.users_home.as_deref()));
        Ok(confinement)
    }

    fn add_unnamed_paths(&self, confinement: &mut Confinement, cwd: Option<&Path>) {
        let unnamed = [Some(self.base_dir.as_path()), cwd].into_iter().flatten();
        let unnamed = unnamed.filter(|_| self.spec.read.is_none());
        for path in unnamed.chain(self.required_paths.iter().map(PathBuf::as_path)) {
            let covered = confinement.read.iter().any(|granted| path.starts_with(granted));
            if !covered && self.may_expose(path) {
                confinement.read.push(path.to_path_buf());
            }
        }
    }

    fn base_confinement(&self, level: ConfinementLevel) -> Confinement {
        Confinement { level, ..self.base.clone() }
    }

    /// Whether a directory is exposed without being named: not one that contains the user's home.
    fn may_expose(&self, directory: &Path) -> bool {
        directory != Path::new("/")
            && !self.users_home.as_deref().is_some_and(|home| confine::contains(directory, home))
    }

    /// What the program is confined to, in lines for people. `cwd` is where it works, when that is
    /// always the same.
    pub(crate) fn describe(&self, cwd: Option<&Path>) -> Vec<String> {
        let Ok(level) = self.level.clone() else {
            return vec![format!("asks for a sandbox ({})", self.spec.level.as_str())];
        };
        let mut confinement = self.base_confinement(level);
        let mut own = vec!["the program's own directory"];
        self.add_unnamed_paths(&mut confinement, cwd);
        if self.spec.read.is_none() && cwd.is_none() {
            own.push("the directory it is called from (unless your home is in it)");
        }
        let verb = if level.confines() { "confined by" } else { "bounded by" };
        let mut lines = vec![format!(
            "{verb} {}{}: {}",
            confinement.describe_level(),
            self.choice(level),
            confinement.describe(&own)
        )];
        lines.extend(confine::coverage(&confinement).lines());
        lines
    }

    /// Why `auto` took this level, as a suffix; empty if the entry names the level.
    fn choice(&self, level: ConfinementLevel) -> String {
        if self.spec.level != SandboxLevel::Auto {
            return String::new();
        }
        match confine::check(ConfinementLevel::Bwrap) {
            Err(why) if level != ConfinementLevel::Bwrap => format!(" (auto; {why})"),
            _ => " (auto)".to_owned(),
        }
    }

    /// What it enforces and leaves open on this system; `None` if it cannot be set up.
    pub(crate) fn coverage(&self) -> Option<Coverage> {
        Some(confine::coverage(&self.base_confinement(self.level.clone().ok()?)))
    }
}

pub(crate) fn refused(refusal: &ConfinementError) -> Error {
    let error =
        Error::denied(format!("not started, because its sandbox cannot be set up: {refusal}"))
            .with_phase(ErrorPhase::Start);
    match refusal {
        ConfinementError::Unsupported { remedy, .. } => error.with_hint(remedy.clone()),
        ConfinementError::Path { .. } => {
            error.with_hint("'sandbox' in the entry names it: create it, or leave it out")
        }
        ConfinementError::Failed(_) => error,
    }
}

/// A failed start as an error; `text` formats the system's error.
pub(crate) fn not_started(
    error: &StartError,
    text: impl FnOnce(&std::io::Error) -> String,
) -> Error {
    match error {
        StartError::Confinement(refusal) => refused(refusal),
        StartError::System(error) => Error::unreachable(text(error)).with_phase(ErrorPhase::Start),
    }
}

/// Exit codes by which a shell says that a program could not be started.
const NOT_STARTED: [i32; 2] = [126, 127];
/// The most of the first line of a script that is read, in bytes.
const MAX_LINE_BYTES: u64 = 512;

/// A hint for a program that could not be started within its confinement.
pub(super) fn for_start(program: &Program, confinement: &Confinement) -> Option<String> {
    confinement.level.confines().then(|| hint(closed_path(program, confinement).as_deref()))
}

/// A hint for a program that ended like this: when what it was given lies where it may not look, or
/// if it could not start something itself.
pub(super) fn for_exit(
    program: &Program,
    confinement: &Confinement,
    status: ExitStatus,
) -> Option<String> {
    if status.success() || status.signal().is_some() || !confinement.level.confines() {
        return None;
    }
    let closed = closed_path(program, confinement);
    let may_be_start = status.code().is_some_and(|code| NOT_STARTED.contains(&code));
    (closed.is_some() || may_be_start).then(|| hint(closed.as_deref()))
}

fn hint(closed: Option<&Path>) -> String {
    let way = "'level: limits' of 'sandbox' restricts no files";
    match closed {
        Some(path) => {
            let directory = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
            format!(
                "its sandbox does not let it read '{}': list '{}' under 'read' of 'sandbox'; {way}",
                path.display(),
                directory.display()
            )
        }
        None => format!(
            "its sandbox may be the reason: 'toolhost inspect' shows what it may access, and 'read' \
             and 'write' of 'sandbox' allow more; {way}"
        ),
    }
}

/// The first existing file of a command line that the program may not read: the program, the
/// interpreter in its first line, or a path among its arguments.
fn closed_path(program: &Program, confinement: &Confinement) -> Option<PathBuf> {
    let interpreter = interpreter_of(&program.path);
    let named = program.args.iter().filter(|word| word.contains('/'));
    let named = named.map(|word| program.cwd.join(word));
    let all = std::iter::once(program.path.clone()).chain(interpreter).chain(named);
    all.into_iter().find(|path| path.exists() && !confine::can_read(confinement, path))
}

fn interpreter_of(script: &Path) -> Option<PathBuf> {
    let file = std::fs::File::open(script).ok()?;
    let mut line = Vec::new();
    BufReader::new(file.take(MAX_LINE_BYTES)).read_until(b'\n', &mut line).ok()?;
    let text = std::str::from_utf8(line.strip_prefix(b"#!")?).ok()?;
    text.split_whitespace().next().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_interpreter_of_a_script_is_the_first_word_of_its_first_line() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("run");
        std::fs::write(&script, "#! /opt/x/sh -e\necho\n").unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(interpreter_of(&script), Some("/opt/x/sh".into()));
        std::fs::write(&script, "echo").unwrap();
        assert_eq!(interpreter_of(&script), None);
    }
}
