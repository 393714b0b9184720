//! The `sandbox` key, the same for tools that start programs and for servers.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use super::node::ConfigNode;
use super::typed::{self, ByteSize, Either, Located, Texts, Timespan, UNBOUNDED};
use crate::model::{Diagnostic, Diagnostics, SourceLocation, impl_as_str};
use crate::util::confine::ResourceLimits;

/// The mechanism that confines a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename = "Sandbox", rename_all = "lowercase")]
#[schemars(transform = typed::words::<Self>)]
pub enum SandboxLevel {
    /// Nothing: the program runs with the user's rights.
    #[serde(alias = "false")]
    None,
    /// The strongest mechanism of this system that confines files and network.
    #[serde(alias = "true")]
    Auto,
    /// Resource limits only; files and network stay open.
    Limits,
    Landlock,
    /// Bubblewrap, which must be installed.
    Bwrap,
}

impl_as_str!(SandboxLevel);

/// The sandbox settings of an entry; unset ones are `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxSpec {
    /// The mechanism that confines the program.
    pub level: SandboxLevel,
    pub read: Option<Vec<PathBuf>>,
    pub write: Vec<PathBuf>,
    pub network: Option<bool>,
    /// Whether the metadata of files can be changed where only a filter could prevent it; see
    /// [`Confinement::metadata`](crate::util::confine::Confinement::metadata).
    pub metadata: Option<bool>,
    pub limits: ResourceLimits,
    /// The position of `sandbox` in the file, for messages.
    pub location: SourceLocation,
}

impl SandboxSpec {
    pub fn plain(level: SandboxLevel, location: SourceLocation) -> Self {
        Self {
            level,
            read: None,
            write: Vec::new(),
            network: None,
            metadata: None,
            limits: ResourceLimits::default(),
            location,
        }
    }

    pub fn without_network(location: SourceLocation) -> Self {
        let everything = || vec![PathBuf::from("/")];
        Self {
            read: Some(everything()),
            write: everything(),
            network: Some(false),
            metadata: Some(true),
            ..Self::plain(SandboxLevel::Auto, location)
        }
    }

    /// All settings, as lines that the user reads before allowing it.
    pub fn lines(&self) -> Vec<String> {
        let mut parts = vec![self.level.as_str().to_owned()];
        let list = |paths: &[PathBuf]| {
            let shown: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            if shown.is_empty() { "nothing more".to_owned() } else { shown.join(", ") }
        };
        parts.extend(self.read.as_deref().map(|paths| format!("reads {}", list(paths))));
        if !self.write.is_empty() {
            parts.push(format!("writes {}", list(&self.write)));
        }
        parts.extend(self.network.map(|on| if on { "network" } else { "no network" }.to_owned()));
        if self.metadata == Some(true) {
            parts.push("may change permissions, owners and times of your files".to_owned());
        }
        parts.extend(self.limits.describe());
        vec![format!("sandbox: {}", parts.join("; "))]
    }
}

/// What the program may access, in detail.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "sandbox", transform = typed::object::<Self>)]
pub struct SandboxKeys {
    /// The mechanism: resource limits only, Landlock, or bubblewrap; auto takes bubblewrap where it
    /// works, else Landlock. Default: limits if only resource limits are set, else auto.
    level: Option<SandboxLevel>,
    /// Paths the program may read, besides the system and the program itself.
    read: Option<Located<Texts>>,
    /// Paths the program may write, besides its own temporary directory.
    write: Option<Located<Texts>>,
    /// Whether the program may use the network.
    network: Option<bool>,
    /// landlock: whether the program may change permissions, owners, times and attributes of your
    /// files.
    metadata: Option<bool>,
    /// Memory limit for each process, such as 256MiB.
    memory: Option<ByteSize<UNBOUNDED>>,
    /// CPU time limit for each process, in whole seconds.
    cpu: Option<Located<Timespan>>,
    /// How many processes may be added to those the user already has.
    processes: Option<NonZeroU64>,
    /// The largest file that may be written.
    file_size: Option<ByteSize<UNBOUNDED>>,
    /// The maximum number of open files.
    open_files: Option<NonZeroU64>,
}

/// The value of `sandbox`: a level, or the details.
pub type SandboxValue = Either<SandboxLevel, SandboxKeys>;

/// Reads the value of `sandbox`, with paths relative to `base_dir`. All diagnostics are appended;
/// unknown keys are warnings.
///
/// A mapping without a level means `auto`; but if it only sets resource limits, it means `limits`,
/// so that limiting memory does not block access to files. `is_promised` says that the entry
/// promises more elsewhere (`safety: sandboxed`); then limits are part of that.
pub fn read(
    node: &ConfigNode,
    base_dir: &Path,
    is_promised: bool,
    diagnostics: &Diagnostics,
) -> Option<SandboxSpec> {
    let before = diagnostics.errors();
    let level = node.get("level").unwrap_or(node);
    if matches!(level.as_text(), Ok("namespaces")) {
        let message = "the sandbox level 'namespaces' no longer exists";
        let hint = "use bwrap, which needs bubblewrap, or landlock; auto takes what works";
        diagnostics.push(level.error(message).with_hint(hint));
        return None;
    }
    let spec = match typed::read::<SandboxValue>(node, diagnostics)? {
        Either::Short(level) => SandboxSpec::plain(level, node.location()),
        Either::Nested(keys) => {
            let level = keys.level.unwrap_or_else(|| keys.implied_level(is_promised));
            diagnostics.extend(keys.contradictions(node, level));
            keys.spec(level, node.location(), base_dir, diagnostics)
        }
    };
    (diagnostics.errors() == before).then_some(spec)
}

impl SandboxKeys {
    fn limits(&self) -> ResourceLimits {
        ResourceLimits {
            memory: self.memory.map(|size| size.0),
            cpu: self.cpu.as_ref().map(|time| time.0),
            processes: self.processes.map(NonZeroU64::get),
            file_size: self.file_size.map(|size| size.0),
            open_files: self.open_files.map(NonZeroU64::get),
        }
    }

    fn implied_level(&self, is_promised: bool) -> SandboxLevel {
        let closes = self.read.is_some()
            || self.write.is_some()
            || self.network.is_some()
            || self.metadata.is_some();
        let limits = self.limits() != ResourceLimits::default();
        if limits && !closes && !is_promised { SandboxLevel::Limits } else { SandboxLevel::Auto }
    }

    /// `limits` does not confine files or the network, and `none` confines nothing: requesting more
    /// with such a level would silently give less.
    fn contradictions(&self, node: &ConfigNode, level: SandboxLevel) -> Vec<Diagnostic> {
        // Allowing what is allowed anyway is fine.
        let closes = [
            ("read", self.read.is_some()),
            ("write", self.write.is_some()),
            ("network", self.network == Some(false)),
            ("metadata", self.metadata == Some(false)),
        ];
        let closing = closes.into_iter().filter_map(|(key, is_set)| is_set.then_some(key));
        let limits = ["memory", "cpu", "processes", "file_size", "open_files"];
        let beyond: Vec<_> = match level {
            SandboxLevel::None => closing.chain(limits).collect(),
            SandboxLevel::Limits => closing.collect(),
            SandboxLevel::Auto | SandboxLevel::Landlock | SandboxLevel::Bwrap => Vec::new(),
        };
        let keys = beyond.into_iter().filter_map(|key| node.key(key));
        keys.filter(|key| node.get(&key.text).is_some_and(|value| !value.is_null()))
            .map(|key| {
                let message =
                    format!("'{}' has no effect at the level '{}'", key.text, level.as_str());
                Diagnostic::error(message)
                    .with_hint("use the level auto, landlock or bwrap")
                    .with_location(node.location_of(key))
            })
            .collect()
    }

    fn spec(
        self,
        level: SandboxLevel,
        location: SourceLocation,
        base_dir: &Path,
        diagnostics: &Diagnostics,
    ) -> SandboxSpec {
        let paths = |texts: Located<Texts>| -> Vec<PathBuf> {
            if texts.0.iter().any(|text| text.is_empty() || text.contains('\0')) {
                diagnostics.push(texts.error("expected paths"));
            }
            // Without `.`; `..` stays, since it may cross a link.
            texts.0.iter().map(|text| base_dir.join(text).components().collect()).collect()
        };
        let limits = self.limits();
        let (read, write) = (self.read.map(&paths), self.write.map(&paths));
        if let Some(time) = &self.cpu
            && (time.0.is_zero() || time.0.subsec_nanos() != 0)
        {
            // The kernel counts whole seconds; rounding would give more or less than requested.
            diagnostics
                .push(time.error("a CPU time limit must be a whole number of seconds, at least 1"));
        }
        SandboxSpec {
            level,
            read,
            write: write.unwrap_or_default(),
            network: self.network,
            metadata: self.metadata,
            limits,
            location,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::node::SourceText;
    use crate::config::parse::parse;

    fn of(yaml: &str) -> (Option<SandboxSpec>, Vec<String>) {
        let text = format!("sandbox: {yaml}");
        let node = parse(&SourceText::new("tools.yaml", &text), &text).unwrap();
        let diagnostics = Diagnostics::default();
        let spec = read(node.get("sandbox").unwrap(), Path::new("/srv"), false, &diagnostics);
        let shown = |p: &Diagnostic| match &p.hint {
            Some(hint) => format!("{} ({hint})", p.message),
            None => p.message.clone(),
        };
        (spec, diagnostics.take().iter().map(shown).collect())
    }

    #[test]
    fn a_word_or_a_mapping() {
        let level = |yaml| of(yaml).0.unwrap().level;
        assert_eq!(level("none"), SandboxLevel::None);
        assert_eq!(level("false"), SandboxLevel::None);
        assert_eq!(level("true"), SandboxLevel::Auto);
        assert_eq!(level("bwrap"), SandboxLevel::Bwrap);
        assert_eq!(level("{ level: limits, memory: 1MiB, network: true }"), SandboxLevel::Limits);
        let (spec, diagnostics) = of(
            "{ read: [./a, /b], write: out, network: false, metadata: true, memory: 256MiB, cpu: 5s, processes: 64, file_size: 64MiB, open_files: 9 }",
        );
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        assert_eq!(
            spec.unwrap().lines(),
            [
                "sandbox: auto; reads /srv/a, /b; writes /srv/out; no network; may change permissions, owners and times of your files; memory 256 MiB; cpu 5 s; 64 more processes; files up to 64 MiB; 9 open files"
            ]
        );
    }

    #[test]
    fn limits_alone_close_no_files() {
        let level = |yaml| of(yaml).0.unwrap().level;
        assert_eq!(level("{ memory: 1MiB }"), SandboxLevel::Limits);
        assert_eq!(level("{ cpu: 5s, open_files: 9, read: null }"), SandboxLevel::Limits);
        for more in ["network: false", "read: [.]", "write: [.]", "level: auto", "metadata: false"]
        {
            let yaml = format!("{{ memory: 1MiB, {more} }}");
            assert_eq!(of(&yaml).0.unwrap().level, SandboxLevel::Auto, "{more}");
        }
        assert_eq!(level("{}"), SandboxLevel::Auto);
        let text = "sandbox: { memory: 1MiB }";
        let node = parse(&SourceText::new("t", text), text).unwrap();
        let node = node.get("sandbox").unwrap();
        let promised = read(node, Path::new("/srv"), true, &Diagnostics::default()).unwrap();
        assert_eq!(promised.level, SandboxLevel::Auto, "'safety: sandboxed' is more than limits");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let diagnostics = |yaml| of(yaml).1.join("\n");
        assert_eq!(
            diagnostics("landlok"),
            "unknown sandbox 'landlok'; expected one of none, auto, limits, landlock, bwrap (did you mean 'landlock'?)"
        );
        for level in ["namespaces", "{ level: namespaces, network: false }"] {
            assert_eq!(
                diagnostics(level),
                "the sandbox level 'namespaces' no longer exists (use bwrap, which needs bubblewrap, or landlock; auto takes what works)"
            );
        }
        assert_eq!(diagnostics("{ memry: 1MiB }"), "unknown key 'memry' (did you mean 'memory'?)");
        assert_eq!(
            diagnostics("{ cpu: 500ms }"),
            "a CPU time limit must be a whole number of seconds, at least 1"
        );
        assert_eq!(diagnostics("{ memory: lots }"), "expected a size such as 256MiB, found text");
        assert_eq!(
            diagnostics("{ processes: 0 }"),
            "expected a whole number, 1 or more, found a number"
        );
        assert_eq!(
            diagnostics("3"),
            "unknown sandbox '3'; expected one of none, auto, limits, landlock, bwrap"
        );
        assert!(
            diagnostics("{ level: limits, network: false }")
                .contains("'network' has no effect at the level 'limits'")
        );
        assert!(
            diagnostics("{ level: none, metadata: false }").contains("'metadata' has no effect")
        );
        assert!(diagnostics("{ level: none, memory: 1 }").contains("'memory' has no effect"));
    }
}
