//! Which files to load: flags, variables, project, user, embedded default.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::environment::Environment;
use super::read;
use crate::model::{Diagnostic, Layer};

/// The tutorial files at the top of the repository, used when nothing else is found.
pub const EMBEDDED_TOOLS: &str = include_str!("../../tools.yaml");
/// The servers of the tutorial, used when no file declares servers.
pub const EMBEDDED_SERVERS: &str = include_str!("../../mcp.yaml");

/// Where editors keep the servers of a project, relative to its directory. The first that has a
/// name wins.
pub const EDITOR_FILES: [&str; 3] = [".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json"];

/// The names of the files, without their extension.
const STEMS: [(FileRole, &str); 2] = [(FileRole::Tools, "tools"), (FileRole::Servers, "mcp")];
/// The extensions. The first one found takes precedence.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// Maximum number of files in a `discover:` directory.
const MAX_DIRECTORY_FILES: usize = 1_000;

/// What the user asked to load.
#[derive(Debug, Clone, Default)]
pub struct LoadRequest {
    /// Files named with `--tools`, in the order given.
    pub tools: Vec<PathBuf>,
    /// Files named with `--mcp`, in the order given.
    pub servers: Vec<PathBuf>,
    /// Files of tools named with `--host-tools`, which add to what is found without them.
    pub added_tools: Vec<PathBuf>,
    /// The same of files that are not on disk, as in `inline_tools`.
    pub added_inline_tools: Vec<(PathBuf, String)>,
    /// Files of tools that are not on disk: a name for messages, and the text. A front end created
    /// them from the command line, so they count as named there. Relative paths in them
    /// are relative to the working directory.
    pub inline_tools: Vec<(PathBuf, String)>,
    /// Files of servers that are not on disk, in the same form.
    pub inline_servers: Vec<(PathBuf, String)>,
    /// The command-line arguments that name the only one of them again, if they came from there.
    pub command_end: Option<String>,
    /// `--trust`, `TOOLHOST_TRUST=1`: a project's files may start what they name, for this run.
    pub trust_all: bool,
    /// Whether a person reviews the project: code that entries load by themselves, which is
    /// otherwise compared when it is loaded, is compared now.
    pub reviews_code: bool,
    /// Look for the project in this directory alone; `None` looks from the working directory
    /// upwards.
    pub project: Option<PathBuf>,
}

/// Which of the two file formats a file uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileRole {
    /// Internal tools, as in `tools.yaml`.
    Tools,
    /// MCP servers, as in `mcp.yaml`.
    Servers,
}

/// A file that the search found and that will be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFileCandidate {
    /// Its path; the embedded default has a fictitious one.
    pub path: PathBuf,
    pub role: FileRole,
    /// Which step of the search found the file; earlier layers take precedence.
    pub layer: Layer,
    /// The text, if it is not on disk: that of the embedded default, or one given directly.
    pub inline_text: Option<Arc<str>>,
}

impl ConfigFileCandidate {
    /// Whether an editor keeps its servers in a file of this name.
    pub fn is_editors(&self) -> bool {
        self.role == FileRole::Servers && EDITOR_FILES.iter().any(|name| self.path.ends_with(name))
    }

    /// The directory that relative paths in it are relative to: its own or, for an editor's file,
    /// the one that the editor was opened for.
    pub fn directory(&self) -> Option<&Path> {
        if self.is_editors() { directory_of(&self.path) } else { self.path.parent() }
    }
}

#[derive(Debug, Default)]
pub struct DiscoveredFiles {
    /// Files to read, highest precedence first.
    pub files: Vec<ConfigFileCandidate>,
    /// Every place that was searched, in order.
    pub searched: Vec<PathBuf>,
    /// Warnings about the search itself.
    pub diagnostics: Vec<Diagnostic>,
}

impl DiscoveredFiles {
    fn add(&mut self, path: PathBuf, role: FileRole, layer: Layer) {
        self.searched.push(path.clone());
        if !self.files.iter().any(|c| c.path == path && c.role == role) {
            self.files.push(ConfigFileCandidate { path, role, layer, inline_text: None });
        }
    }

    fn add_inline(&mut self, role: FileRole, layer: Layer, texts: &[(PathBuf, String)]) {
        self.files.extend(texts.iter().map(|(path, text)| {
            let (path, inline_text) = (path.clone(), Some(Arc::from(text.as_str())));
            ConfigFileCandidate { path, role, layer, inline_text }
        }));
    }

    /// Adds the files in `dir`; returns whether there are any. With `takes_editors` an editor's
    /// files are enough; next to `tools.yaml` they replace a missing `mcp.yaml` anyway.
    fn add_directory(&mut self, dir: &Path, layer: Layer, takes_editors: bool) -> bool {
        let (mut any, mut has_servers) = (false, false);
        for (role, stem) in STEMS {
            let paths = EXTENSIONS.map(|extension| dir.join(format!("{stem}.{extension}")));
            let mut existing = paths.into_iter().filter(|path| is_there(path));
            let Some(path) = existing.next() else { continue };
            self.diagnostics.extend(existing.map(|other| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                Diagnostic::warning(format!("ignored, because {name} is in the same directory"))
                    .with_location(read::file_location(&other))
            }));
            self.add(path, role, layer);
            any = true;
            has_servers |= role == FileRole::Servers;
        }
        if layer == Layer::Project && !has_servers && (any || takes_editors) {
            for path in EDITOR_FILES.map(|name| dir.join(name)) {
                if is_there(&path) {
                    self.add(path, FileRole::Servers, layer);
                    any = true;
                }
            }
        }
        if !any {
            self.searched.push(dir.to_path_buf());
        }
        any
    }
}

/// A link that leads nowhere is there too: that it cannot be read is told, not passed over.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Every file that is read if it is in a searched directory.
pub fn usual_files(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let own = STEMS.into_iter().flat_map(|(_, stem)| {
        EXTENSIONS.into_iter().map(move |extension| format!("{stem}.{extension}"))
    });
    own.chain(EDITOR_FILES.map(str::to_owned)).map(move |name| dir.join(name))
}

/// Searches for the files to read. An explicit flag disables every other place, for both kinds.
pub fn find(request: &LoadRequest, environment: &dyn Environment) -> DiscoveredFiles {
    let mut discovered = DiscoveredFiles::default();
    let cwd = environment.cwd();
    let named = [(FileRole::Tools, &request.tools), (FileRole::Servers, &request.servers)];
    for (role, paths) in named {
        for path in paths {
            discovered.add(cwd.join(path), role, Layer::Flag);
        }
    }
    discovered.add_inline(FileRole::Tools, Layer::Flag, &request.inline_tools);
    discovered.add_inline(FileRole::Servers, Layer::Flag, &request.inline_servers);
    let is_explicit = !discovered.files.is_empty();
    for path in &request.added_tools {
        discovered.add(cwd.join(path), FileRole::Tools, Layer::Flag);
    }
    discovered.add_inline(FileRole::Tools, Layer::Flag, &request.added_inline_tools);
    if is_explicit {
        return discovered;
    }
    for (role, variable) in
        [(FileRole::Tools, "TOOLHOST_TOOLS"), (FileRole::Servers, "TOOLHOST_MCP")]
    {
        let value = environment.var(variable).unwrap_or_default();
        for path in std::env::split_paths(&value).filter(|p| !p.as_os_str().is_empty()) {
            discovered.add(cwd.join(path), role, Layer::Variable);
        }
    }
    let user = environment.config_dir();
    let start = request.project.as_deref().unwrap_or(&cwd);
    for dir in start.ancestors() {
        let is_user = user.as_deref() == Some(dir);
        let layer = if is_user { Layer::User } else { Layer::Project };
        // An editor's files do not apply to the directories below theirs.
        if discovered.add_directory(dir, layer, dir == start) {
            break;
        }
    }
    if let Some(dir) = user
        && !discovered.files.iter().any(|c| c.layer == Layer::User)
    {
        discovered.add_directory(&dir, Layer::User, false);
    }
    if discovered.files.iter().all(|file| file.layer == Layer::Flag) {
        for (role, path, text) in [
            (FileRole::Tools, "embedded/tools.yaml", EMBEDDED_TOOLS),
            (FileRole::Servers, "embedded/mcp.yaml", EMBEDDED_SERVERS),
        ] {
            discovered.add_inline(role, Layer::Embedded, &[(path.into(), text.to_owned())]);
        }
    }
    discovered
}

/// The root of the project that a named file is for, links resolved: the nearest directory upwards
/// that contains configuration, otherwise the directory of the file. For a text without a file,
/// such as that of a server named only on the command line, the search starts at the working
/// directory and goes upwards. `user` is the directory of the user's own configuration.
pub fn project_of_named(file: &Path, cwd: &Path, user: Option<&Path>) -> Option<PathBuf> {
    let path = cwd.join(file);
    let own = if path.is_file() { directory_of(&path) } else { None };
    let start = own.unwrap_or(cwd);
    let is_root = |dir: &&Path| {
        user != Some(*dir)
            && DiscoveredFiles::default().add_directory(dir, Layer::Project, *dir == start)
    };
    let root = start.ancestors().find(is_root).or(own)?;
    Some(root.canonicalize().unwrap_or_else(|_| root.to_path_buf()))
}

/// The directory that a file applies to: for an editor's file the one above the editor's.
fn directory_of(path: &Path) -> Option<&Path> {
    let editors = EDITOR_FILES.iter().find(|file| path.ends_with(file));
    path.ancestors().nth(editors.map_or(1, |file| Path::new(file).components().count()))
}

/// The files of a `discover:` directory, by name; hidden ones are not among them.
#[derive(Debug, Default)]
pub struct DirectoryListing {
    pub files: Vec<PathBuf>,
    pub left_out: Vec<PathBuf>,
}

/// The tool files of a `discover:` directory and what is left out; not its subdirectories' files.
///
/// # Errors
/// When the directory cannot be read or contains more than 1,000 files.
pub fn directory(dir: &Path) -> Result<DirectoryListing, Diagnostic> {
    let failed = |error: io::Error| {
        let why = read::reason(&error);
        Diagnostic::error(format!("cannot read {}: {why}", dir.display()))
    };
    let mut listing = DirectoryListing::default();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let hidden = path.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"."));
        let extension = path.extension().and_then(|e| e.to_str());
        if hidden || path.file_name().is_some_and(|name| name == "__pycache__") {
            continue;
        }
        let is_tools = matches!(extension, Some("yaml" | "yml" | "json" | "jsonc"));
        if listing.files.len() + listing.left_out.len() == MAX_DIRECTORY_FILES {
            let shown = dir.display();
            let message = format!("{shown} contains more than {MAX_DIRECTORY_FILES} files");
            return Err(Diagnostic::error(message));
        }
        if is_tools { &mut listing.files } else { &mut listing.left_out }.push(path);
    }
    listing.files.sort_unstable();
    listing.left_out.sort_unstable();
    Ok(listing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::environment::FixedEnvironment;

    fn sandbox() -> (tempfile::TempDir, FixedEnvironment) {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().join("project/deep/er");
        std::fs::create_dir_all(&cwd).unwrap();
        std::fs::create_dir_all(dir.path().join("root/config")).unwrap();
        let root = Some(dir.path().join("root"));
        (dir, FixedEnvironment { cwd, root, ..FixedEnvironment::default() })
    }

    fn names(discovered: &DiscoveredFiles, base: &Path) -> Vec<(String, Layer)> {
        let name = |p: &Path| p.strip_prefix(base).unwrap_or(p).display().to_string();
        discovered.files.iter().map(|c| (name(&c.path), c.layer)).collect()
    }

    #[test]
    fn nothing_found_means_the_embedded_default() {
        let (dir, environment) = sandbox();
        let discovered = find(&LoadRequest::default(), &environment);
        let layers: Vec<_> = names(&discovered, dir.path()).into_iter().map(|(_, l)| l).collect();
        assert_eq!(layers, [Layer::Embedded, Layer::Embedded]);
        assert!(discovered.searched.contains(&dir.path().join("project")));
    }

    #[test]
    fn a_link_that_leads_nowhere_is_a_file_to_read() {
        let (dir, environment) = sandbox();
        std::os::unix::fs::symlink("moved.yaml", dir.path().join("project/tools.yaml")).unwrap();
        let discovered = find(&LoadRequest::default(), &environment);
        let found = names(&discovered, dir.path());
        assert_eq!(found, [("project/tools.yaml".to_owned(), Layer::Project)]);
    }

    #[test]
    fn the_nearest_directory_wins_and_the_user_fills_in() {
        let (dir, mut environment) = sandbox();
        for file in ["project/tools.yaml", "project/deep/mcp.yml", "root/config/tools.json"] {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        environment.vars.insert("TOOLHOST_MCP".into(), "own.yaml".into());
        let discovered = find(&LoadRequest::default(), &environment);
        assert_eq!(
            names(&discovered, dir.path()),
            [
                ("project/deep/er/own.yaml".to_owned(), Layer::Variable),
                ("project/deep/mcp.yml".to_owned(), Layer::Project),
                ("root/config/tools.json".to_owned(), Layer::User),
            ]
        );
    }

    #[test]
    fn files_of_editors_stand_in_for_servers_and_are_never_searched_upwards() {
        let (dir, environment) = sandbox();
        let project = dir.path().join("project");
        let file_names = || {
            let discovered = find(&LoadRequest::default(), &environment);
            names(&discovered, dir.path()).into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        let write = |name: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        };
        write("project/.mcp.json");
        write("project/.vscode/mcp.json");
        assert_eq!(file_names(), ["embedded/tools.yaml", "embedded/mcp.yaml"]);
        // What the directory has, its editors' files belong to.
        write("project/tools.yaml");
        let both = ["project/tools.yaml", "project/.mcp.json", "project/.vscode/mcp.json"];
        assert_eq!(file_names(), both);
        write("project/deep/er/.cursor/mcp.json");
        assert_eq!(file_names(), ["project/deep/er/.cursor/mcp.json"]);
        let cursor = find(&LoadRequest::default(), &environment).files.remove(0);
        assert_eq!(cursor.directory(), Some(project.join("deep/er").as_path()));
        write("project/deep/er/mcp.yaml");
        assert_eq!(file_names(), ["project/deep/er/mcp.yaml"]);
    }

    #[test]
    fn a_flag_switches_the_look_up_off_for_both_kinds() {
        let (dir, mut environment) = sandbox();
        std::fs::write(dir.path().join("project/mcp.yaml"), "").unwrap();
        environment.vars.insert("TOOLHOST_MCP".into(), "own.yaml".into());
        let request = LoadRequest { tools: vec!["mine.yaml".into()], ..LoadRequest::default() };
        let discovered = find(&request, &environment);
        assert_eq!(
            names(&discovered, dir.path()),
            [("project/deep/er/mine.yaml".to_owned(), Layer::Flag)]
        );
    }

    #[test]
    fn a_second_file_of_the_same_kind_is_named() {
        let (dir, environment) = sandbox();
        for file in ["project/tools.yaml", "project/tools.json"] {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        let discovered = find(&LoadRequest::default(), &environment);
        assert_eq!(discovered.files.len(), 1);
        assert_eq!(
            discovered.diagnostics[0].message,
            "ignored, because tools.yaml is in the same directory"
        );
    }

    #[test]
    fn a_discovered_directory_gives_its_files_by_name() {
        let dir = tempfile::tempdir().unwrap();
        for file in ["b.yaml", "a.yml", ".hidden.yaml", "notes.txt", "greet.py"] {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        let listing = directory(dir.path()).unwrap();
        assert_eq!(listing.files, [dir.path().join("a.yml"), dir.path().join("b.yaml")]);
        assert_eq!(listing.left_out, [dir.path().join("greet.py"), dir.path().join("notes.txt")]);
        let error = directory(&dir.path().join("none")).unwrap_err();
        assert!(error.message.starts_with("cannot read "), "{error:?}");
    }
}
