//! Tests of which files are listed, and of system files as an ordinary user sees them.

use std::os::unix::fs::{chown, symlink};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use serde_json::json;

use super::*;
use crate::config::environment::{Environment as _, ProcessEnvironment};
use crate::model::ErrorKind;
use crate::providers::harness::KindHarness;
use crate::providers::python;
use crate::providers::python::sealed::manifest_of;
use crate::providers::python::sealed::tests::files_of;

const TOOL: &str = "tools: [{ name: t, kind: python, module: m, function: f }]\n";

fn write(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// The files of an entry in a directory that `prepare` fills, as paths below it.
fn listed(yaml: &str, prepare: impl FnOnce(&Path)) -> Result<Vec<String>, Diagnostic> {
    let mut files = Ok(Vec::new());
    let harness = KindHarness::adjusted(
        &python::kind(),
        yaml,
        |dir, _| prepare(dir),
        |specs, environment| files = files_of(specs, environment),
    );
    let dir = harness.dir.path().canonicalize().unwrap();
    let below = |path: &PathBuf| path.strip_prefix(&dir).unwrap_or(path).display().to_string();
    files.map(|files| files.iter().map(below).collect())
}

#[test]
fn everything_that_can_be_imported_is_listed_and_nothing_else() {
    let names = [
        "m.py",
        "fast.so",
        "fast.abi3.so",
        "fast.cpython-311-x86_64-linux-gnu.so",
        "m.pyi",
        "m.pyc",
        "pack/__init__.py",
        "pack/deep/er/x.py",
        "plugins/one-two.py",
        "tests/test_m.py",
        "test/__init__.py",
        "http/client.py",
        "data.txt",
        "__pycache__/m.cpython-311.pyc",
        ".git/hooks/x.py",
        "other/pyvenv.cfg",
        "other/lib/x.py",
        "target/CACHEDIR.TAG",
        "target/x.py",
        "node_modules/x.py",
    ];
    let files = listed(TOOL, |dir| {
        for name in names {
            write(dir, name, "");
        }
        write(dir, ".real/linked.py", "");
        symlink("../.real/linked.py", dir.join("pack/alias.py")).unwrap();
        symlink("../pack", dir.join("pack/again")).unwrap();
        symlink("nowhere", dir.join("broken.py")).unwrap();
    });
    insta::assert_debug_snapshot!(files.unwrap(), @r#"
    [
        ".real/linked.py",
        "fast.abi3.so",
        "fast.cpython-311-x86_64-linux-gnu.so",
        "fast.so",
        "http/client.py",
        "m.py",
        "pack/__init__.py",
        "pack/deep/er/x.py",
        "plugins/one-two.py",
        "test/__init__.py",
        "tests/test_m.py",
    ]
    "#);
}

#[test]
fn a_module_with_a_name_of_the_standard_library_is_refused() {
    let names = ["json.py", "secrets.so", "email/__init__.py", "queue.cpython-312-darwin.so"];
    for name in names {
        let diagnostic = listed(TOOL, |dir| write(dir, name, "")).unwrap_err();
        let first = name.split('/').next().unwrap();
        assert!(
            diagnostic.message.starts_with(&format!("'{first}' in ")),
            "{}",
            diagnostic.message
        );
        assert!(diagnostic.message.contains("standard library"), "{}", diagnostic.message);
    }
    let path =
        "tools: [{ name: t, kind: python, module: m, function: f, env: { PYTHONPATH: lib } }]\n";
    assert!(listed(path, |dir| write(dir, "lib/json.py", "")).is_err());
    // Below the root they have another name.
    assert!(listed(TOOL, |dir| write(dir, "pack/json.py", "")).is_ok());
}

#[test]
fn a_root_that_is_too_wide_or_unknown_is_refused() {
    let many = |count: usize| {
        move |dir: &Path| {
            for at in 0..count {
                std::fs::write(dir.join(format!("m{at}.py")), "").unwrap();
            }
        }
    };
    assert_eq!(listed(TOOL, many(MAX_FILES)).unwrap().len(), MAX_FILES);
    let diagnostic = listed(TOOL, many(MAX_FILES + 1)).unwrap_err();
    assert!(diagnostic.message.starts_with("more than 10000 files"), "{}", diagnostic.message);
    assert!(diagnostic.hint.unwrap().contains("narrower"));
}

#[test]
fn an_editable_package_is_part_of_the_code() {
    let files = listed(TOOL, |dir| {
        write(dir, ".elsewhere/pack/__init__.py", "");
        write(dir, ".elsewhere/single.py", "");
        write(dir, ".venv/pyvenv.cfg", "");
        write(dir, ".venv/bin/python", "");
        std::fs::set_permissions(
            dir.join(".venv/bin/python"),
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )
        .unwrap();
        let there = dir.join(".elsewhere");
        let there = there.display();
        write(
            dir,
            ".venv/lib/python3.11/site-packages/__editable___x_finder.py",
            &format!(
                "MAPPING: dict[str, str] = {{'pack': '{there}/pack', 'single': '{there}/single'}}\n"
            ),
        );
    });
    let files = files.unwrap();
    for expected in [".elsewhere/pack/__init__.py", ".elsewhere/single.py", ".venv/bin/python"] {
        assert!(files.iter().any(|file| file == expected), "{expected}: {files:?}");
    }
}

fn of_the_system() -> Option<PathBuf> {
    let names = std::fs::read_dir("/usr/lib").ok()?.flatten().map(|name| name.path());
    names.map(|path| path.join("colorsys.py")).find(|file| file.is_file())
}

/// Set in the process that runs [`in_the_eyes_of_an_ordinary_user`] without privileges.
const UNPRIVILEGED: &str = "TOOLHOST_TEST_UNPRIVILEGED";

/// The id of a user without privileges.
const UNPRIVILEGED_USER: u32 = 65534;

#[test]
fn files_of_the_system_are_told_apart_by_an_ordinary_user() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        crate::util::skipped::left_out(
            "only root can make files of root and then be somebody else",
        );
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    chown(dir.path(), Some(UNPRIVILEGED_USER), Some(UNPRIVILEGED_USER)).unwrap();
    // Root's, but in a directory where its owner may put another in its place.
    write(dir.path(), "roots.py", "");
    let test = "providers::python::code::tests::in_the_eyes_of_an_ordinary_user";
    let run = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env(UNPRIVILEGED, dir.path())
        .uid(UNPRIVILEGED_USER)
        .gid(UNPRIVILEGED_USER)
        .current_dir("/")
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&run.stdout);
    let err = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && out.contains("1 passed"), "{out}\n{err}");
}

/// Runs as part of the test above; by itself it has nothing to look at.
#[tokio::test]
async fn in_the_eyes_of_an_ordinary_user() {
    let Some(dir) = ProcessEnvironment.var(UNPRIVILEGED).map(PathBuf::from) else { return };
    assert!(!rustix::process::geteuid().is_root());
    let system = of_the_system().unwrap();
    assert!(only_root_writes(&system) && only_root_writes(Path::new("/usr/bin/python3")));
    assert!(!only_root_writes(&dir.join("roots.py")) && !only_root_writes(&dir));
    assert!(!only_root_writes(&dir.join("nothing")));

    let main = "def f():\n    import colours, own\n    return own.value\n";
    let yaml = TOOL.replace("function: f", "function: f, parameters: { type: object }");
    let harness = KindHarness::adjusted(
        &python::kind(),
        &yaml,
        |dir, _| {
            write(dir, "m.py", main);
            write(dir, "own.py", "value = 1\n");
            symlink(&system, dir.join("colours.py")).unwrap();
        },
        |specs, environment| {
            let files = files_of(specs, environment).unwrap();
            let names: Vec<_> = files.iter().filter_map(|file| file.file_name()).collect();
            assert_eq!(names, ["m.py", "own.py"]);
            specs[0].seal = crate::config::consent::Seal::of_code(manifest_of(&files));
        },
    );
    assert_eq!(harness.call("t", json!({})).await.unwrap().output, json!(1));
    harness.providers[0].close().await;
    write(harness.dir.path(), "own.py", "value = 2\n");
    let error = harness.call("t", json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
}
