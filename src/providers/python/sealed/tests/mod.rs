//! Attacks on code that was trusted, with real interpreters. Each attack is also run without a
//! manifest, to show that it would work.

mod environments;
mod loading;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::manifest_of;
use crate::config::consent::EntrySite;
use crate::config::environment::FixedEnvironment;
use crate::config::spec::ToolSpec;
use crate::model::{Diagnostic, Error, ErrorKind};
use crate::providers::harness::KindHarness;
use crate::providers::python;

/// What an attack runs, if it can: the file says so.
const CANARY: &str = "open(__import__('os').environ['CANARY'], 'w').close()\n";

/// A tool whose function imports while it is called.
const TOOL: &str = "tools:
  - { name: t, kind: python, module: main, function: run, parameters: { type: object }, env: { CANARY: ./ran }, env_keys: [PYTHONPATH] }
";

pub(in crate::providers::python) fn files_of(
    specs: &[ToolSpec],
    environment: &FixedEnvironment,
) -> Result<Vec<PathBuf>, Diagnostic> {
    let spec = &specs[0];
    let scopes = std::collections::BTreeMap::new();
    let site = EntrySite::new(&spec.base_dir, &spec.base_dir, &scopes, None, environment);
    python::code_files(&spec.unexpanded, &site)
}

/// A harness whose code is bound to what `prepare` wrote, or not at all.
fn harness(
    yaml: &str,
    is_bound: bool,
    prepare: impl FnOnce(&Path, &mut FixedEnvironment),
) -> KindHarness {
    KindHarness::adjusted(&python::kind(), yaml, prepare, |specs, environment| {
        if is_bound {
            let files = manifest_of(&files_of(specs, environment).unwrap());
            for spec in specs {
                spec.seal = crate::config::consent::Seal::of_code(std::sync::Arc::clone(&files));
            }
        }
    })
}

fn write(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

async fn call(harness: &KindHarness) -> Result<Value, Error> {
    let result = harness.call("t", json!({})).await?;
    match result.error {
        Some(error) => Err(error),
        None => Ok(result.output),
    }
}

#[track_caller]
fn assert_denied(result: Result<Value, Error>, file: &str, what: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{what}: {error:?}");
    assert!(error.message().contains(file), "{what}: {error:?}");
    assert!(format!("{error:?}").contains("toolhost trust"), "{what}: {error:?}");
}

/// Runs `attack` on what `prepare` wrote: without a manifest it leaves its mark, with one it is
/// refused and `file` is named.
async fn attack(what: &str, file: &str, prepare: impl Fn(&Path), attack: impl Fn(&Path)) {
    for is_bound in [false, true] {
        let harness = harness(TOOL, is_bound, |dir, _| prepare(dir));
        attack(harness.dir.path());
        let result = call(&harness).await;
        assert_eq!(harness.dir.path().join("ran").exists(), !is_bound, "{what}: {result:?}");
        if is_bound {
            assert_denied(result, file, what);
        }
        harness.providers[0].close().await;
    }
}

/// Compiles an extension module that leaves the mark when it is loaded, for the interpreter of the
/// tests.
fn extension(path: &Path, name: &str) {
    let include = Command::new("python3")
        .args(["-c", "import sysconfig; print(sysconfig.get_path('include'), end='')"])
        .output()
        .unwrap();
    let include = String::from_utf8(include.stdout).unwrap();
    let source = path.with_extension("c");
    let text = format!(
        "#include <Python.h>\n#include <stdio.h>\n\
         static struct PyModuleDef def = {{PyModuleDef_HEAD_INIT, \"{name}\", 0, -1, 0}};\n\
         PyMODINIT_FUNC PyInit_{name}(void) {{\n\
         const char *mark = getenv(\"CANARY\"); if (mark) fclose(fopen(mark, \"w\"));\n\
         PyObject *module = PyModule_Create(&def);\n\
         PyModule_AddIntConstant(module, \"value\", 7); return module; }}\n"
    );
    std::fs::write(&source, text).unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-I", &include, "-o"])
        .args([path, &source])
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    std::fs::remove_file(source).unwrap();
}
