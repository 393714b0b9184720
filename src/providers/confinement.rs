//! From what an entry says about its sandbox to what one start of its program is confined to.
//!
//! Owns: the policy where an entry leaves things open, contradictions with `safety`, and the words
//! about a sandbox in definitions, statuses and faults. Shared by every kind that starts programs.
//! Never does: confine anything (`util::confine` does), or settle for less than was asked.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::consent::Effect;
use crate::config::environment::Environment;
use crate::config::node::Node;
use crate::config::sandbox::{self, SandboxLevel, SandboxSpec};
use crate::config::spec::{Endpoint, ServerSpec, ToolSpec};
use crate::model::{Fault, Phase, Problem, Safety};
use crate::util::confine::{self, Confinement, Coverage, Home, Level, Limits, Refusal};
use crate::util::private;
use crate::util::process::StartError;

/// The limits of a program that is started for one call, where the entry names no others.
const ONE_CALL: Limits = Limits {
    memory: Some(1 << 30),
    cpu: Some(Duration::from_mins(5)),
    processes: Some(256),
    file_size: Some(1 << 30),
    open_files: Some(1024),
};

/// Those of a program that stays: time on a processor adds up for as long as it lives, so it has
/// no limit of that.
const STAYING: Limits = Limits {
    memory: Some(2 << 30),
    cpu: None,
    processes: Some(512),
    file_size: Some(4 << 30),
    open_files: Some(4096),
};

/// How long a program lives that is to be confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    /// Started for one call.
    Call,
    /// Started once for many calls, as a worker is.
    Worker,
}

/// The sandbox of one entry.
#[derive(Debug, Clone)]
pub(crate) struct Sandbox {
    spec: SandboxSpec,
    /// The level to use, or why none can be.
    level: Result<Level, Refusal>,
    limits: Limits,
    network: bool,
    /// What the entry's file stands in.
    base_dir: PathBuf,
    /// What the kind of tool needs, whatever the entry names.
    needs: Vec<PathBuf>,
    /// The user's home, which is not given away with a directory that holds it.
    users_home: Option<PathBuf>,
    home: Home,
    scratch: PathBuf,
}

/// The sandbox of a tool's entry; nothing when it asks for none. What leaves it usable is added to
/// `doubts`. `sets_home` says whether the entry itself gives the program a `HOME`.
///
/// # Errors
/// The first problem that takes the entry out of service: what `sandbox` says cannot be read, or
/// it contradicts `safety`.
pub(crate) fn read(
    spec: &ToolSpec,
    life: Life,
    sets_home: bool,
    environment: &dyn Environment,
    doubts: &mut Vec<Problem>,
) -> Result<Option<Sandbox>, Problem> {
    let Some(asked) = asked(&spec.entry, spec.definition.safety, &spec.base_dir, doubts)? else {
        return Ok(None);
    };
    let limits = match life {
        Life::Call => ONE_CALL,
        Life::Worker => STAYING,
    };
    let home = if sets_home { Home::Kept } else { Home::Temporary };
    Ok(Some(Sandbox::new(asked, limits, false, home, &spec.base_dir, environment)))
}

/// What an entry asks for.
fn asked(
    entry: &Node,
    safety: Safety,
    base_dir: &Path,
    doubts: &mut Vec<Problem>,
) -> Result<Option<SandboxSpec>, Problem> {
    let written = match entry.get("sandbox") {
        Some(node) if !node.is_null() => {
            let mut problems = Vec::new();
            let spec = sandbox::read(node, base_dir, &mut problems);
            let error = problems.iter().position(Problem::is_error);
            if let Some(index) = error {
                return Err(problems.swap_remove(index));
            }
            doubts.extend(problems);
            spec
        }
        _ => None,
    };
    let promised = safety == Safety::Sandboxed;
    match written {
        Some(spec)
            if promised && matches!(spec.level, SandboxLevel::None | SandboxLevel::Limits) =>
        {
            Err(Problem::error(format!(
                "'safety: sandboxed' and the sandbox '{}' contradict each other",
                spec.level.as_str()
            ))
            .hint("leave 'sandbox' out for the default one, or say 'safety: native'")
            .at(spec.place))
        }
        Some(spec) if spec.level == SandboxLevel::None => Ok(None),
        Some(spec) => Ok(Some(spec)),
        None if promised => {
            let place = entry.get("safety").map_or_else(|| entry.place(), Node::place);
            Ok(Some(SandboxSpec::plain(SandboxLevel::Auto, place)))
        }
        None => Ok(None),
    }
}

/// What a person is told before an entry is allowed: as it says it, not as this system keeps it.
pub(crate) fn effects(entry: &Node, base_dir: &Path) -> Vec<Effect> {
    let safety = entry.get("safety").and_then(|node| Safety::parse(node.as_text().ok()?));
    match asked(entry, safety.unwrap_or_default(), base_dir, &mut Vec::new()) {
        Ok(spec) => spec.iter().flat_map(SandboxSpec::lines).map(Effect::Other).collect(),
        Err(problem) => vec![Effect::Other(format!("sandbox: {}", problem.message))],
    }
}

/// The sandbox of a server; nothing when it has none.
pub(crate) fn of_server(spec: &ServerSpec, environment: &dyn Environment) -> Option<Sandbox> {
    let asked = spec.sandbox.clone()?;
    let Endpoint::Stdio { env, .. } = &spec.endpoint else { return None };
    let base_dir = spec.place.file.parent().unwrap_or(Path::new("/")).to_path_buf();
    // A home of its own that stays: package runners keep what they fetched there, and none can put
    // code where a program outside of the sandbox would find it.
    let own = environment.cache_dir().map(|cache| cache.join("homes").join(&spec.name));
    let home = match own {
        _ if env.contains_key("HOME") => Home::Kept,
        Some(own) => Home::At(own),
        None => Home::Temporary,
    };
    Some(Sandbox::new(asked, STAYING, true, home, &base_dir, environment))
}

impl Sandbox {
    fn new(
        spec: SandboxSpec,
        defaults: Limits,
        network: bool,
        home: Home,
        base_dir: &Path,
        environment: &dyn Environment,
    ) -> Self {
        let level = match spec.level {
            SandboxLevel::Landlock => Ok(Level::Landlock),
            SandboxLevel::Namespaces => Ok(Level::Namespaces),
            SandboxLevel::Bwrap => Ok(Level::Bwrap),
            SandboxLevel::Limits | SandboxLevel::None => Ok(Level::Limits),
            SandboxLevel::Auto => confine::available(),
        };
        let limits = Limits {
            memory: spec.memory.or(defaults.memory),
            cpu: spec.cpu.or(defaults.cpu),
            processes: spec.processes.or(defaults.processes.filter(|_| !confine::is_superuser())),
            file_size: spec.file_size.or(defaults.file_size),
            open_files: spec.open_files.or(defaults.open_files),
        };
        let level = level.and_then(|level| confine::check(level).map(|()| level));
        let temporary = environment.var("TMPDIR").map(PathBuf::from);
        let temporary = temporary.filter(|path| path.is_absolute() && path.is_dir());
        Self {
            level: level.and_then(|level| limits.check().map(|()| level)),
            limits,
            network: spec.network.unwrap_or(network),
            base_dir: base_dir.to_path_buf(),
            needs: Vec::new(),
            users_home: environment.home(),
            home,
            scratch: temporary.unwrap_or_else(|| "/tmp".into()),
            spec,
        }
    }

    /// Lets the program read what it cannot work without, even where the entry names what can be
    /// read; not a directory that holds the user's home.
    pub(crate) fn needs(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        self.needs.extend(paths);
    }

    /// Whether the entry or the policy lets the program read a path: for what a kind needs.
    pub(crate) fn reads(&self, path: &Path) -> bool {
        !self.confines()
            || self.gives(path)
            || self
                .spec
                .read
                .iter()
                .flatten()
                .chain(&self.spec.write)
                .any(|named| confine::contains(named, path))
    }

    /// The limit of memory of each of its processes, as an error names it.
    pub(crate) fn memory_limit(&self) -> Option<String> {
        self.limits.memory_limit()
    }

    /// Why the program cannot be confined here, when it cannot.
    pub(crate) fn obstacle(&self) -> Option<Fault> {
        self.level.as_ref().err().map(refused)
    }

    /// Whether files and the network are confined.
    pub(crate) fn confines(&self) -> bool {
        self.level.as_ref().map_or(true, |level| level.confines())
    }

    /// What `program`, started in `cwd`, is confined to.
    ///
    /// # Errors
    /// A fault of kind denied when this system cannot keep what is asked.
    pub(crate) fn confinement(&self, program: &Path, cwd: &Path) -> Result<Confinement, Fault> {
        let level = self.level.clone().map_err(|refusal| refused(&refusal))?;
        if let (Home::At(home), true) = (&self.home, level.confines()) {
            private::own_directory(home).map_err(|why| {
                Fault::denied(format!("'{}' cannot be its home: {why}", home.display()))
                    .phase(Phase::Start)
            })?;
        }
        let mut confinement = self.stated(level);
        self.give(&mut confinement, Some(cwd));
        confinement.read.extend(confine::beside_program(program, self.users_home.as_deref()));
        Ok(confinement)
    }

    /// Adds what can be read without being named.
    fn give(&self, confinement: &mut Confinement, cwd: Option<&Path>) {
        let unnamed = [Some(self.base_dir.as_path()), cwd].into_iter().flatten();
        let unnamed = unnamed.filter(|_| self.spec.read.is_none());
        for path in unnamed.chain(self.needs.iter().map(PathBuf::as_path)) {
            let known = confinement.read.iter().any(|given| path.starts_with(given));
            if !known && self.gives(path) {
                confinement.read.push(path.to_path_buf());
            }
        }
    }

    /// The confinement without what depends on the program and its directory.
    fn stated(&self, level: Level) -> Confinement {
        Confinement {
            level,
            system: true,
            read: self.spec.read.clone().unwrap_or_default(),
            write: self.spec.write.clone(),
            network: self.network,
            metadata: self.spec.metadata == Some(true),
            limits: self.limits,
            scratch: self.scratch.clone(),
            home: self.home.clone(),
        }
    }

    /// Whether a directory is given without being named: not one that holds the user's home.
    fn gives(&self, directory: &Path) -> bool {
        directory != Path::new("/")
            && !self.users_home.as_deref().is_some_and(|home| confine::contains(directory, home))
    }

    /// What the program is confined to, in lines for people. `cwd` is where it works, when that is
    /// always the same.
    pub(crate) fn describe(&self, cwd: Option<&Path>) -> Vec<String> {
        let Ok(level) = self.level.clone() else {
            return vec![format!("asks for a sandbox ({})", self.spec.level.as_str())];
        };
        let mut confinement = self.stated(level);
        let mut own = vec!["the program's own directory"];
        self.give(&mut confinement, cwd);
        if self.spec.read.is_none() && cwd.is_none() {
            own.push("the directory it is called from (unless your home is in it)");
        }
        let verb = if level.confines() { "confined by" } else { "bounded by" };
        let mut lines =
            vec![format!("{verb} {}: {}", confinement.achieved(), confinement.describe(&own))];
        lines.extend(confine::coverage(&confinement).lines());
        lines
    }

    /// What it keeps and leaves open on this system; nothing when it cannot be made.
    pub(crate) fn coverage(&self) -> Option<Coverage> {
        Some(confine::coverage(&self.stated(self.level.clone().ok()?)))
    }
}

/// A refusal as a fault.
pub(crate) fn refused(refusal: &Refusal) -> Fault {
    let fault = Fault::denied(format!("it is not started without its sandbox: {refusal}"))
        .phase(Phase::Start);
    match refusal {
        Refusal::Unsupported { remedy, .. } => fault.hint(remedy.clone()),
        Refusal::Path { .. } => {
            fault.hint("'sandbox' in the entry names it: make it, or leave it out")
        }
        Refusal::Failed(_) => fault,
    }
}

/// A failed start as a fault; `text` words what the system said.
pub(crate) fn not_started(
    error: &StartError,
    text: impl FnOnce(&std::io::Error) -> String,
) -> Fault {
    match error {
        StartError::Refused(refusal) => refused(refusal),
        StartError::System(error) => Fault::unreachable(text(error)).phase(Phase::Start),
    }
}
