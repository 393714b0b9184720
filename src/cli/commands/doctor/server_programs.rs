//! Checks of `doctor` for servers that are programs: whether each is found, and which variables it
//! does not receive.

use indexmap::IndexSet;
use secrecy::ExposeSecret as _;

use super::{DoctorCheck, Severity};
use crate::cli::commands::prelude::*;
use crate::config::environment::Environment;
use crate::config::references::PASSED_TO_PROGRAMS;
use crate::config::spec::{Endpoint, ServerSpec};
use crate::util::process::{ResolveError, resolve};
use crate::util::text::variable_name;

const NETWORK: [&str; 8] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];
/// Variables of a family of programs, by prefix of the program's name.
const FAMILIES: [(&[&str], &[&str]); 5] = [
    (
        &["node", "npx", "npm", "bun", "deno", "pnpm", "yarn", "tsx"],
        &["NODE_EXTRA_CA_CERTS", "NODE_PATH", "NPM_CONFIG_REGISTRY", "NPM_CONFIG_PREFIX"],
    ),
    (
        &["python", "uv", "pipx"],
        &[
            "VIRTUAL_ENV",
            "PYTHONPATH",
            "CONDA_PREFIX",
            "UV_INDEX_URL",
            "PIP_INDEX_URL",
            "REQUESTS_CA_BUNDLE",
        ],
    ),
    (&["docker", "podman"], &["DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG"]),
    (&["java"], &["JAVA_HOME"]),
    (&["kubectl", "helm"], &["KUBECONFIG"]),
];
/// Directories below the home that are only in PATH because of shell start-up files.
const SHELL_PLACES: [&str; 8] = [
    ".local/bin",
    ".cargo/bin",
    ".bun/bin",
    ".deno/bin",
    ".volta/bin",
    ".asdf/shims",
    ".pyenv/shims",
    ".nvm/current/bin",
];

/// What stands out about the program of a server; nothing for a server reached over the network.
pub(super) fn checks(server: &ServerSpec, environment: &dyn Environment) -> Vec<DoctorCheck> {
    let Endpoint::Stdio { command, env, env_keys, cwd, .. } = &server.endpoint else {
        return Vec::new();
    };
    let name = format!("server {}", server.name);
    let own_path = env.get("PATH").map(|path| path.expose_secret().to_owned());
    let shell_path = environment.var("PATH");
    let path = own_path.clone().or_else(|| shell_path.clone());
    let program = match resolve(command, path.as_deref(), cwd) {
        Ok(program) => program,
        Err(error) => {
            return vec![missing(&name, command, &error, own_path.is_some(), environment)];
        }
    };
    let mut checks = Vec::new();
    let in_shell = shell_path.as_deref().and_then(|path| resolve(command, Some(path), cwd).ok());
    if own_path.is_some() && in_shell.as_ref().is_some_and(|other| *other != program) {
        let other = in_shell.unwrap_or_default();
        let message =
            format!("starts {}, but your shell would start {}", program.display(), other.display());
        checks.push(
            DoctorCheck::new(&name, Severity::Warning, message)
                .with_hint("the entry's env sets PATH; use a full path to be sure"),
        );
    }
    let is_given = |variable: &str| {
        PASSED_TO_PROGRAMS.contains(&variable)
            || env.contains_key(variable)
            || env_keys.iter().any(|key| key == variable)
    };
    if environment.executable().is_some_and(|own| own == program) {
        return Vec::new();
    }
    let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let family = FAMILIES.iter().find(|(names, _)| names.iter().any(|n| program.starts_with(n)));
    let usual = NETWORK.iter().chain(family.map(|(_, variables)| *variables).unwrap_or_default());
    let own = environment.vars();
    let withheld: IndexSet<String> = usual
        .filter(|variable| own.contains_key(**variable))
        .map(|variable| (*variable).to_owned())
        .chain(named_after(&server.name, own.keys()))
        .filter(|variable| !is_given(variable))
        .collect();
    if !withheld.is_empty() {
        let list = Vec::from_iter(withheld).join(", ");
        let message = format!("does not receive {list}, which your shell has");
        checks.push(
            DoctorCheck::new(&name, Severity::Warning, message)
                .with_hint(format!("if it needs them, add to its entry: env_keys: [{list}]")),
        );
    }
    checks
}

/// Variables with the name of the server as prefix: `GITHUB_TOKEN` for `github`.
fn named_after<'v>(
    server: &str,
    variables: impl Iterator<Item = &'v String>,
) -> impl Iterator<Item = String> {
    let prefix = format!("{}_", variable_name(server));
    variables.filter(move |variable| variable.starts_with(&prefix)).cloned()
}

fn missing(
    name: &str,
    command: &str,
    error: &ResolveError,
    has_own_path: bool,
    environment: &dyn Environment,
) -> DoctorCheck {
    let check = DoctorCheck::new(name, Severity::Error, error.to_string());
    if command.contains('/') {
        return check.with_hint("a relative path starts at the cwd of the entry");
    }
    let in_shell = environment.var("PATH").filter(|_| has_own_path);
    let in_shell = in_shell.and_then(|path| resolve(command, Some(&path), Path::new("/")).ok());
    if let Some(program) = in_shell {
        return check.with_hint(format!(
            "your shell has {}: remove PATH from the entry's env, or write the full path",
            program.display()
        ));
    }
    let places = environment.home().into_iter().flat_map(|home| {
        SHELL_PLACES.map(|place| home.join(place)).into_iter().collect::<Vec<PathBuf>>()
    });
    match places.map(|place| place.join(command)).find(|path| path.is_file()) {
        Some(found) => check.with_hint(format!(
            "found {}: use that path, or add its directory to PATH",
            found.display()
        )),
        None => check.with_hint("install it, or write its full path"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::config::LoadRequest;
    use crate::config::environment::FixedEnvironment;

    fn found(entry: &str, home: &Path, variables: &[(&str, &str)]) -> Vec<DoctorCheck> {
        found_for("github", entry, home, variables)
    }

    fn found_for(
        name: &str,
        entry: &str,
        home: &Path,
        variables: &[(&str, &str)],
    ) -> Vec<DoctorCheck> {
        let mut environment = FixedEnvironment {
            cwd: home.to_path_buf(),
            root: Some(home.to_path_buf()),
            ..FixedEnvironment::default()
        };
        for (name, value) in variables {
            environment.vars.insert((*name).to_owned(), (*value).to_owned());
        }
        let text = format!("mcp_servers:\n  {name}: {entry}\n");
        let request =
            LoadRequest { inline_servers: vec![("test".into(), text)], ..LoadRequest::default() };
        let configuration = crate::config::load(&request, &[], &environment);
        configuration.servers.iter().flat_map(|s| checks(s, &environment)).collect()
    }

    fn program(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_variable_that_a_server_is_not_given_is_named_with_the_key_that_passes_it_on() {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("bin");
        program(&bin.join("npx"));
        let path = bin.display().to_string();
        let variables =
            [("PATH", path.as_str()), ("HTTPS_PROXY", "http://p"), ("GITHUB_TOKEN", "hunter22")];
        let checks = found("{ command: npx }", dir.path(), &variables);
        assert_eq!(checks.len(), 1, "{checks:?}");
        let hint = checks[0].hint.as_deref().unwrap();
        assert!(hint.ends_with("env_keys: [HTTPS_PROXY, GITHUB_TOKEN]"), "{hint}");
        assert!(!format!("{checks:?}").contains("hunter22"));
        let given =
            "{ command: npx, env_keys: [HTTPS_PROXY], env: { GITHUB_TOKEN: \"${GITHUB_TOKEN}\" } }";
        assert_eq!(found(given, dir.path(), &variables), []);
    }

    #[test]
    fn a_variable_that_is_usual_and_named_after_the_server_is_named_once() {
        let dir = tempfile::tempdir().unwrap();
        program(&dir.path().join("bin/docker-mcp"));
        let path = dir.path().join("bin").display().to_string();
        let variables = [
            ("PATH", path.as_str()),
            ("DOCKER_HOST", "unix:///d"),
            ("DOCKER_CONTEXT", "c"),
            ("GITHUB_DOCKER", "x"),
        ];
        let checks = found_for("docker", "{ command: docker-mcp }", dir.path(), &variables);
        let hint = checks[0].hint.as_deref().unwrap();
        assert!(hint.ends_with("env_keys: [DOCKER_HOST, DOCKER_CONTEXT]"), "{hint}");
    }

    #[test]
    fn a_program_that_only_a_shell_finds_is_found_for_the_hint() {
        let dir = tempfile::tempdir().unwrap();
        let environment = FixedEnvironment {
            root: Some(dir.path().to_path_buf()),
            ..FixedEnvironment::default()
        };
        program(&environment.home().unwrap().join(".local/bin/uvx"));
        let checks = found("{ command: uvx }", dir.path(), &[("PATH", "/nowhere")]);
        assert_eq!(checks[0].severity, Severity::Error);
        assert!(checks[0].hint.as_deref().unwrap().contains(".local/bin/uvx"), "{checks:?}");
        // Found with the user's PATH, and not with the entry's.
        let bin = dir.path().join("bin");
        program(&bin.join("uvx"));
        let entry = "{ command: uvx, env: { PATH: /nowhere } }";
        let checks = found(entry, dir.path(), &[("PATH", &bin.display().to_string())]);
        assert!(checks[0].hint.as_deref().unwrap().contains("remove PATH"), "{checks:?}");
    }
}
