//! Attacks through a project's virtual environment.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::*;

fn packages(dir: &Path) -> PathBuf {
    let library = std::fs::read_dir(dir.join(".venv/lib")).unwrap().flatten().next().unwrap();
    library.path().join("site-packages")
}

fn record(text: &str) -> String {
    format!("sha256={},{}", URL_SAFE_NO_PAD.encode(Sha256::digest(text)), text.len())
}

fn install(dir: &Path, name: &str, text: &str) {
    let place = packages(dir);
    write(&place, &format!("{name}/__init__.py"), text);
    let info = format!("{name}-1.0.dist-info/RECORD");
    let lines = format!("{name}/__init__.py,{}\n{info},,\n", record(text));
    write(&place, &info, &lines);
}

/// An environment with a package, a package that nothing recorded, and a `.pth` file that imports.
fn environment(dir: &Path) {
    let made = Command::new("python3")
        .args(["-m", "venv", "--without-pip", "--symlinks"])
        .arg(dir.join(".venv"))
        .status();
    assert!(made.unwrap().success());
    install(dir, "installed", "value = 'installed'\n");
    let place = packages(dir);
    write(&place, "copied.py", "value = 'copied'\n");
    write(&place, "early.py", "value = 'early'\n");
    write(&place, "early.pth", "import early\n../../../../linked\n");
    write(&place, "sitecustomize.py", "import builtins\nbuiltins.customized = True\n");
    write(dir, "linked/editable.py", "value = 'editable'\n");
    let main = "import sys
def run():
    import copied, editable, installed
    assert 'early' in sys.modules and customized and sys.prefix != sys.base_prefix
    return [installed.value, copied.value, editable.value]
";
    write(dir, "main.py", main);
}

#[tokio::test]
async fn an_environment_works_with_its_code_bound() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let harness = harness(TOOL, true, |dir, _| environment(dir));
    assert_eq!(call(&harness).await.unwrap(), json!(["installed", "copied", "editable"]));
}

#[tokio::test]
async fn what_was_put_into_an_environment_does_not_run() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let in_packages = |name: &'static str| move |dir: &Path| write(&packages(dir), name, CANARY);
    let pth = |dir: &Path| {
        write(&packages(dir), "new.pth", "import os; open(os.environ['CANARY'], 'w')\n");
    };
    attack("a new .pth", "/new.pth' is not part", environment, pth).await;
    let pth = |dir: &Path| {
        write(&packages(dir), "early.pth", "import os; open(os.environ['CANARY'], 'w')\n");
    };
    attack("a changed .pth", "/early.pth' changed", environment, pth).await;
    let early = in_packages("early.py");
    attack("what a .pth imports", "/early.py' changed", environment, early).await;
    let custom = in_packages("sitecustomize.py");
    attack("sitecustomize", "/sitecustomize.py' changed", environment, custom).await;
    let custom = in_packages("usercustomize.py");
    let user = |dir: &Path| {
        environment(dir);
        let settings = dir.join(".venv/pyvenv.cfg");
        let text = std::fs::read_to_string(&settings).unwrap();
        let text = text
            .replace("include-system-site-packages = false", "include-system-site-packages = true");
        std::fs::write(settings, text).unwrap();
    };
    attack("usercustomize", "/usercustomize.py' is not part", user, custom).await;
    let copied = in_packages("copied.py");
    attack("a file that nothing recorded", "/copied.py' changed", environment, copied).await;
    let linked = |dir: &Path| write(dir, "linked/editable.py", CANARY);
    attack("an editable package", "/linked/editable.py' changed", environment, linked).await;
}

#[tokio::test]
async fn packages_are_what_their_trusted_record_says() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let file = |dir: &Path| write(&packages(dir), "installed/__init__.py", CANARY);
    attack("a changed file", "/installed/__init__.py' changed", environment, file).await;
    let both = |dir: &Path| install(dir, "installed", CANARY);
    attack("a changed package", "/installed-1.0.dist-info/RECORD' changed", environment, both)
        .await;
    let shadow = |dir: &Path| install(dir, "copied", CANARY);
    attack("a new package", "/copied-1.0.dist-info/RECORD' is not part", environment, shadow).await;
    let beside = |dir: &Path| extension(&packages(dir).join("installed/__init__.so"), "installed");
    attack("a file beside", "/installed/__init__.so' is not part", environment, beside).await;
    // A new RECORD does not speak for files of another one.
    let harness = harness(TOOL, true, |dir, _| environment(dir));
    let place = packages(harness.dir.path());
    write(&place, "installed/__init__.py", CANARY);
    let forged = format!("installed/__init__.py,{}\n", record(CANARY));
    write(&place, "aaa-1.0.dist-info/RECORD", &forged);
    write(&place, "zzz-1.0.dist-info/RECORD", &forged);
    assert_denied(call(&harness).await, "/installed/__init__.py' changed", "another RECORD");
    assert!(!harness.dir.path().join("ran").exists());
}

const MARK: &str = ": > \"$CANARY\"";

/// A program that runs a line of a shell and then is Python.
fn wrapper(path: &Path, first: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    // The link that may be there leads to the user's own Python.
    let _absent = std::fs::remove_file(path);
    let python = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable, end='')"])
        .output()
        .unwrap();
    let python = String::from_utf8(python.stdout).unwrap();
    std::fs::write(path, format!("#!/bin/sh\n{first}\nexec {python} \"$@\"\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn another_interpreter_is_not_started() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let program = |dir: &Path| wrapper(&dir.join(".venv/bin/python"), MARK);
    let plain = |dir: &Path| {
        environment(dir);
        write(dir, "main.py", "def run():\n    return 1\n");
    };
    attack("the interpreter", "/.venv/bin/python' is not part", plain, program).await;
    let harness = harness(TOOL, true, |dir, _| plain(dir));
    let dir = harness.dir.path();
    let settings = std::fs::read_to_string(dir.join(".venv/pyvenv.cfg")).unwrap();
    write(dir, ".venv/pyvenv.cfg", "home = /nowhere\n");
    assert_denied(call(&harness).await, "/.venv/pyvenv.cfg' changed", "pyvenv.cfg");
    write(dir, ".venv/pyvenv.cfg", &settings);
    let real = dir.join(".venv/bin/pybuilddir.txt");
    std::fs::write(&real, "..").unwrap();
    assert_denied(call(&harness).await, "/pybuilddir.txt' is not part", "pybuilddir.txt");
    std::fs::remove_file(real).unwrap();
    assert_eq!(call(&harness).await.unwrap(), json!(1));
}

#[tokio::test]
async fn an_environment_that_appears_later_is_not_used() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let harness = harness(TOOL, true, |dir, _| write(dir, "main.py", "def run():\n    return 1\n"));
    let dir = harness.dir.path();
    std::fs::create_dir_all(dir.join(".venv/bin")).unwrap();
    wrapper(&dir.join(".venv/bin/python"), MARK);
    // The interpreter was looked for when the entry was read; another run finds the new one.
    let files = manifest_of(&[dir.join("main.py").canonicalize().unwrap()]);
    let sealed = super::super::SealedCode::new(files, dir, dir, None, &BTreeMap::new());
    let error = sealed.check_start(&dir.join(".venv/bin/python")).await.unwrap_err();
    assert_denied(Err(error), "/.venv/bin/python' is not part", "a new environment");
}

#[tokio::test]
async fn an_interpreter_that_is_named_by_its_path_is_compared() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let yaml = TOOL.replace("module: main", "module: main, python: ./py");
    let harness = harness(&yaml, true, |dir, _| {
        write(dir, "main.py", "def run():\n    return 1\n");
        wrapper(&dir.join("py"), ":");
    });
    assert_eq!(call(&harness).await.unwrap(), json!(1));
    harness.providers[0].close().await;
    wrapper(&harness.dir.path().join("py"), MARK);
    assert_denied(call(&harness).await, "/py' changed", "an interpreter by path");
    assert!(!harness.dir.path().join("ran").exists());
}
