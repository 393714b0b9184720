//! The `sandbox` key, the same for tools that start programs and for servers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::keys::{self, SANDBOX, canonical};
use super::node::{ConfigNode, NodeValue};
use crate::model::{Diagnostic, SourceLocation};
use crate::util::units;

/// The mechanism that confines a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxLevel {
    /// Nothing: the program runs with the user's rights.
    None,
    /// The strongest mechanism of this system that confines files and network.
    Auto,
    /// Resource limits only; files and network stay open.
    Limits,
    Landlock,
    /// Bubblewrap, which must be installed.
    Bwrap,
}

impl SandboxLevel {
    /// Parses the value used in files.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "none" => Self::None,
            "auto" => Self::Auto,
            "limits" => Self::Limits,
            "landlock" => Self::Landlock,
            "bwrap" => Self::Bwrap,
            _ => return None,
        })
    }

    /// The value used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Auto => "auto",
            Self::Limits => "limits",
            Self::Landlock => "landlock",
            Self::Bwrap => "bwrap",
        }
    }
}

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
    /// Memory of each process, in bytes.
    pub memory: Option<u64>,
    pub cpu: Option<Duration>,
    pub processes: Option<u64>,
    /// The largest file that may be written, in bytes.
    pub file_size: Option<u64>,
    pub open_files: Option<u64>,
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
            memory: None,
            cpu: None,
            processes: None,
            file_size: None,
            open_files: None,
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
        parts.extend(self.memory.map(|bytes| format!("memory {}", units::show_size(bytes))));
        parts.extend(self.cpu.map(|time| format!("cpu {}", units::show_duration(time))));
        parts.extend(self.processes.map(|count| format!("{count} processes")));
        parts.extend(self.file_size.map(|bytes| format!("files of {}", units::show_size(bytes))));
        parts.extend(self.open_files.map(|count| format!("{count} open files")));
        vec![format!("sandbox: {}", parts.join("; "))]
    }
}

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
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<SandboxSpec> {
    let plain = |level| Some(SandboxSpec::plain(level, node.location()));
    match &node.value {
        NodeValue::Null | NodeValue::Bool(false) => plain(SandboxLevel::None),
        NodeValue::Bool(true) => plain(SandboxLevel::Auto),
        NodeValue::Text(_) => ok_or_report(level(node), diagnostics).and_then(plain),
        NodeValue::Map(_) => {
            let default = if !is_promised && says_limits_only(node) {
                SandboxLevel::Limits
            } else {
                SandboxLevel::Auto
            };
            mapping(node, base_dir, default, diagnostics)
        }
        NodeValue::Number(_) | NodeValue::List(_) => {
            let choices = "none, auto, limits, landlock, bwrap, or a mapping";
            diagnostics.push(node.expected(choices));
            None
        }
    }
}

const LIMIT_KEYS: [&str; 5] = ["memory", "cpu", "processes", "file_size", "open_files"];

/// Whether a mapping sets something, and only limits.
fn says_limits_only(node: &ConfigNode) -> bool {
    let mut entries = node
        .entries()
        .iter()
        .filter(|(key, value)| !value.is_null() && canonical(SANDBOX, &key.text).is_some())
        .peekable();
    entries.peek().is_some() && entries.all(|(key, _)| LIMIT_KEYS.contains(&key.text.as_str()))
}

fn mapping(
    node: &ConfigNode,
    base_dir: &Path,
    default: SandboxLevel,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<SandboxSpec> {
    let before = diagnostics.len();
    let mut spec = SandboxSpec::plain(default, node.location());
    for (key, value) in node.entries() {
        let Some(word) = canonical(SANDBOX, &key.text) else {
            if !key.text.starts_with("x-") {
                let unknown = Diagnostic::warning(format!("unknown key '{}'", key.text))
                    .with_suggestion(&key.text, keys::spellings(SANDBOX))
                    .with_location(node.location_of(key));
                diagnostics.push(unknown);
            }
            continue;
        };
        if value.is_null() {
            continue;
        }
        match word {
            "level" => {
                spec.level = ok_or_report(level(value), diagnostics).unwrap_or(default);
            }
            "read" => spec.read = ok_or_report(paths(value, base_dir), diagnostics),
            "write" => {
                spec.write = ok_or_report(paths(value, base_dir), diagnostics).unwrap_or_default();
            }
            "network" => spec.network = ok_or_report(value.as_bool(), diagnostics),
            "metadata" => spec.metadata = ok_or_report(value.as_bool(), diagnostics),
            "memory" => spec.memory = ok_or_report(size(value), diagnostics),
            "cpu" => spec.cpu = ok_or_report(seconds(value), diagnostics),
            "processes" => spec.processes = ok_or_report(count(value), diagnostics),
            "file_size" => spec.file_size = ok_or_report(size(value), diagnostics),
            "open_files" => spec.open_files = ok_or_report(count(value), diagnostics),
            _ => {}
        }
    }
    diagnostics.extend(contradictions(node, &spec));
    let failed = diagnostics.get(before..).unwrap_or_default().iter().any(Diagnostic::is_error);
    (!failed).then_some(spec)
}

/// `limits` does not confine files or the network, and `none` confines nothing: requesting more
/// with such a level would silently give less.
fn contradictions(node: &ConfigNode, spec: &SandboxSpec) -> Vec<Diagnostic> {
    let beyond: &[&str] = match spec.level {
        SandboxLevel::None => &[
            "read",
            "write",
            "network",
            "metadata",
            "memory",
            "cpu",
            "processes",
            "file_size",
            "open_files",
        ],
        SandboxLevel::Limits => &["read", "write", "network", "metadata"],
        SandboxLevel::Auto | SandboxLevel::Landlock | SandboxLevel::Bwrap => &[],
    };
    let entries = node.entries().iter().filter(|(key, value)| {
        beyond.contains(&key.text.as_str())
            && !value.is_null()
            // Allowing what is allowed anyway is fine.
            && !(matches!(key.text.as_str(), "network" | "metadata") && matches!(value.as_bool(), Ok(true)))
    });
    entries
        .map(|(key, _)| {
            let level = spec.level.as_str();
            Diagnostic::error(format!("'{}' has no effect at the level '{level}'", key.text))
                .with_hint("use the level auto, landlock or bwrap")
                .with_location(node.location_of(key))
        })
        .collect()
}

fn ok_or_report<T>(result: Result<T, Diagnostic>, diagnostics: &mut Vec<Diagnostic>) -> Option<T> {
    result.map_err(|diagnostic| diagnostics.push(diagnostic)).ok()
}

fn level(node: &ConfigNode) -> Result<SandboxLevel, Diagnostic> {
    let word = node.as_text()?;
    if word == "namespaces" {
        return Err(Diagnostic::error("the sandbox level 'namespaces' no longer exists")
            .with_hint("use bwrap, which needs bubblewrap, or landlock; auto takes what works")
            .with_location(node.location()));
    }
    SandboxLevel::parse(word).ok_or_else(|| {
        let levels = ["none", "auto", "limits", "landlock", "bwrap"];
        Diagnostic::error(format!(
            "unknown sandbox '{word}'; expected one of {}",
            levels.join(", ")
        ))
        .with_suggestion(word, levels)
        .with_location(node.location())
    })
}

fn paths(node: &ConfigNode, base_dir: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    let texts = node.as_texts()?;
    if texts.iter().any(|text| text.is_empty() || text.contains('\0')) {
        return Err(node.expected("paths"));
    }
    // Without `.`; `..` stays, since it may cross a link.
    Ok(texts.iter().map(|text| base_dir.join(text).components().collect()).collect())
}

fn size(node: &ConfigNode) -> Result<u64, Diagnostic> {
    units::size(&node.as_scalar_text()?)
        .filter(|size| *size > 0)
        .ok_or_else(|| node.expected("a size such as 256MiB"))
}

fn count(node: &ConfigNode) -> Result<u64, Diagnostic> {
    let count = node.as_count()?;
    if count == 0 { Err(node.expected("a whole number, 1 or more")) } else { Ok(count) }
}

/// The kernel counts whole seconds; rounding would give more or less than requested.
fn seconds(node: &ConfigNode) -> Result<Duration, Diagnostic> {
    let time = node.as_duration()?;
    if time.is_zero() || time.subsec_nanos() != 0 {
        return Err(Diagnostic::error(
            "a CPU time limit must be a whole number of seconds, at least 1",
        )
        .with_location(node.location()));
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::node::SourceText;
    use crate::config::parse::parse;

    fn of(yaml: &str) -> (Option<SandboxSpec>, Vec<String>) {
        let text = format!("sandbox: {yaml}");
        let node = parse(&SourceText::new("tools.yaml", &text), &text).unwrap().root;
        let mut diagnostics = Vec::new();
        let spec = read(node.get("sandbox").unwrap(), Path::new("/srv"), false, &mut diagnostics);
        let shown = |p: &Diagnostic| match &p.hint {
            Some(hint) => format!("{} ({hint})", p.message),
            None => p.message.clone(),
        };
        (spec, diagnostics.iter().map(shown).collect())
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
                "sandbox: auto; reads /srv/a, /b; writes /srv/out; no network; may change permissions, owners and times of your files; memory 256.0 MiB; cpu 5 s; 64 processes; files of 64.0 MiB; 9 open files"
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
        let node = parse(&SourceText::new("t", text), text).unwrap().root;
        let node = node.get("sandbox").unwrap();
        let promised = read(node, Path::new("/srv"), true, &mut Vec::new()).unwrap();
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
            "expected none, auto, limits, landlock, bwrap, or a mapping, found a number"
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
