//! Attacks through modules below the root.

use super::*;
use crate::config::environment::{Environment as _, ProcessEnvironment};

const RUN: &str = "def run():\n    import helper\n    return helper.value\n";

fn plain(dir: &Path) {
    write(dir, "main.py", RUN);
    write(dir, "helper.py", "value = 1\n");
    write(dir, "pack/__init__.py", "value = 1\n");
}

fn package(dir: &Path) {
    write(dir, "main.py", "def run():\n    import pack.part\n    return pack.part.value\n");
    write(dir, "pack/__init__.py", "");
    write(dir, "pack/part.py", "value = 1\n");
}

#[tokio::test]
async fn code_that_changed_after_it_was_trusted_does_not_run() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let canary = |name: &'static str| move |dir: &Path| write(dir, name, CANARY);
    attack("a sibling", "/helper.py' changed", plain, canary("helper.py")).await;
    attack("the module itself", "/main.py' changed", plain, canary("main.py")).await;
    attack("a package", "/pack/__init__.py' changed", package, canary("pack/__init__.py")).await;
    attack("a part of a package", "/pack/part.py' changed", package, canary("pack/part.py")).await;
    let link = |dir: &Path| {
        write(dir, "elsewhere", CANARY);
        std::fs::remove_file(dir.join("helper.py")).unwrap();
        std::os::unix::fs::symlink("elsewhere", dir.join("helper.py")).unwrap();
    };
    attack("a link in its place", "/elsewhere' is not part", plain, link).await;
}

#[tokio::test]
async fn code_that_was_added_does_not_run() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let beside = |dir: &Path| extension(&dir.join("helper.so"), "helper");
    attack("an extension beside the source", "/helper.so' is not part", plain, beside).await;
    let package = |dir: &Path| write(dir, "helper/__init__.py", CANARY);
    attack("a package beside the source", "/helper/__init__.py' is not part", plain, package).await;
    let standard = |dir: &Path| {
        write(dir, "main.py", "def run():\n    import colorsys\n    return 1\n");
    };
    let shadow = |dir: &Path| write(dir, "colorsys.py", CANARY);
    attack("a standard name", "/colorsys.py' is not part", standard, shadow).await;
    let ours = |dir: &Path| write(dir, "traceback.py", CANARY);
    let raises = |dir: &Path| write(dir, "main.py", "def run():\n    raise ValueError\n");
    attack("a standard name that the worker uses", "/traceback.py'", raises, ours).await;
}

#[tokio::test]
async fn nothing_is_imported_from_an_archive() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let main = "import sys
sys.path.insert(0, 'code.zip/deep')
def run():
    import packed
";
    let harness = harness(TOOL, true, |dir, _| write(dir, "main.py", main));
    let dir = harness.dir.path();
    write(dir, "deep/packed.py", CANARY);
    let script = "import zipfile; zipfile.ZipFile('code.zip', 'w').write('deep/packed.py')";
    let made = Command::new("python3").args(["-c", script]).current_dir(dir).status();
    assert!(made.unwrap().success());
    assert_denied(call(&harness).await, "/code.zip' is an archive", "an archive");
    assert!(!dir.join("ran").exists());
}

#[tokio::test]
async fn code_from_elsewhere_is_refused_with_the_places_it_may_come_from() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let elsewhere = tempfile::tempdir().unwrap();
    write(elsewhere.path(), "extra.py", CANARY);
    let main = format!(
        "import sys\nsys.path.insert(0, '{}')\ndef run():\n    import extra\n",
        elsewhere.path().display()
    );
    let harness = harness(TOOL, true, |dir, _| write(dir, "main.py", &main));
    let result = call(&harness).await;
    let error = result.as_ref().unwrap_err();
    assert!(error.hint().is_some_and(|hint| hint.contains("PYTHONPATH")), "{error:?}");
    assert_denied(result, "/extra.py' is not part", "elsewhere");
    assert!(!harness.dir.path().join("ran").exists());
}

#[tokio::test]
async fn a_confined_worker_compares_code_too() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let yaml = TOOL.replace("function: run", "function: run, sandbox: { read: [.] }");
    let tried = harness(&yaml, false, |dir, _| plain(dir));
    if let Err(error) = call(&tried).await {
        crate::util::skipped::left_out(&format!("nothing is confined here: {error}"));
        return;
    }
    let harness = harness(&yaml, true, |dir, _| plain(dir));
    assert_eq!(call(&harness).await.unwrap(), json!(1));
    harness.providers[0].close().await;
    write(harness.dir.path(), "helper.py", "value = 2\n");
    assert_denied(call(&harness).await, "/helper.py' changed", "a sibling");
}

#[tokio::test]
async fn a_changed_extension_is_not_loaded() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let harmless = |dir: &Path| {
        write(dir, "main.py", "def run():\n    import fast\n    return fast.value\n");
        write(dir, "fast.so", "not a library yet");
    };
    let changed = |dir: &Path| extension(&dir.join("fast.so"), "fast");
    attack("a changed extension", "/fast.so' changed", harmless, changed).await;
    let harness = harness(TOOL, true, |dir, _| {
        harmless(dir);
        extension(&dir.join("fast.so"), "fast");
    });
    assert_eq!(call(&harness).await.unwrap(), json!(7));
}

/// Bytecode of `CANARY` that claims to need no check, where Python looks for that of `name`.
fn forge(dir: &Path, name: &str) {
    write(dir, "forged.src", CANARY);
    let script = "import importlib.util, py_compile, sys, os
target = importlib.util.cache_from_source(sys.argv[1])
os.makedirs(os.path.dirname(target), exist_ok=True)
py_compile.compile('forged.src', cfile=target, doraise=True,
                   invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)";
    let made = Command::new("python3").args(["-c", script, name]).current_dir(dir).status();
    assert!(made.unwrap().success());
}

#[tokio::test]
async fn forged_bytecode_does_not_run_in_place_of_its_source() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let by_path = "import importlib.util as u
def run():
    spec = u.spec_from_file_location('helper', 'helper.py')
    module = u.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, 'value', 0)
";
    for (main, works_unbound) in [(RUN, false), (by_path, true)] {
        for is_bound in [false, true] {
            let harness = harness(TOOL, is_bound, |dir, _| {
                write(dir, "main.py", main);
                write(dir, "helper.py", "value = 1\n");
            });
            forge(harness.dir.path(), "helper.py");
            let value = call(&harness).await.unwrap();
            let ran = works_unbound && !is_bound;
            assert_eq!(harness.dir.path().join("ran").exists(), ran, "{main}");
            assert_eq!(value, json!(i32::from(!ran)), "{main}");
        }
    }
    // Without a source there is nothing to compare.
    let harness = harness(TOOL, true, |dir, _| write(dir, "main.py", RUN));
    forge(harness.dir.path(), "helper.py");
    let cache = std::fs::read_dir(harness.dir.path().join("__pycache__")).unwrap();
    let bytecode = cache.flatten().next().unwrap().path();
    std::fs::rename(bytecode, harness.dir.path().join("helper.pyc")).unwrap();
    assert_denied(call(&harness).await, "/helper.pyc' is not part", "bytecode alone");
    assert!(!harness.dir.path().join("ran").exists());
}

#[tokio::test]
async fn a_refusal_cannot_be_caught() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    for caught in ["ImportError", "Exception", "BaseException"] {
        let main = format!(
            "def run():\n    try:\n        import helper\n    except {caught}:\n        pass\n    return 'went on'\n"
        );
        let harness = harness(TOOL, true, |dir, _| {
            write(dir, "main.py", &main);
            write(dir, "helper.py", "value = 1\n");
        });
        write(harness.dir.path(), "helper.py", CANARY);
        assert_denied(call(&harness).await, "/helper.py' changed", caught);
        assert!(!harness.dir.path().join("ran").exists());
    }
    let coroutine = "async def run():\n    try:\n        import helper\n    except BaseException:\n        pass\n    return 'went on'\n";
    let harness = harness(TOOL, true, |dir, _| write(dir, "main.py", coroutine));
    write(harness.dir.path(), "helper.py", CANARY);
    assert_denied(call(&harness).await, "/helper.py' is not part", "in a coroutine");
}

#[tokio::test]
async fn code_is_compared_long_after_the_worker_started() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let late = "import importlib\ndef run():\n    import os\n    n = len(os.listdir('.'))\n    name = 'second' if os.path.exists('go') else 'first'\n    return importlib.import_module(name).value\n";
    let harness = harness(TOOL, true, |dir, _| {
        write(dir, "main.py", late);
        write(dir, "first.py", "value = 1\n");
        write(dir, "second.py", "value = 2\n");
    });
    let dir = harness.dir.path();
    assert_eq!(call(&harness).await.unwrap(), json!(1));
    write(dir, "go", "");
    write(dir, "second.py", CANARY);
    assert_denied(call(&harness).await, "/second.py' changed", "after the first call");
    assert!(!dir.join("ran").exists());
    // What is put back is what was trusted.
    write(dir, "second.py", "value = 2\n");
    assert_eq!(call(&harness).await.unwrap(), json!(2));
}

const EVERYTHING: &str = r#"
import asyncio, importlib, importlib.resources, importlib.util, json, concurrent.futures
from pack import part
from pack.deep.deeper import base
from spaces.inner import thing
import linked

class Tool:
    @staticmethod
    async def run():
        await asyncio.sleep(0)
        dynamic = importlib.import_module("pack.dyn")
        spec = importlib.util.spec_from_file_location("by_path", "plugins/one-two.py")
        by_path = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(by_path)
        data = importlib.resources.read_text("pack", "data.txt")
        threaded = await asyncio.to_thread(importlib.import_module, "pack.threaded")
        return [part.value, base, thing.value, linked.value, dynamic.value, by_path.value, data,
                threaded.value, importlib.reload(part).value]
"#;

fn everything(dir: &Path) {
    write(dir, "main.py", EVERYTHING);
    write(dir, "pack/__init__.py", "");
    write(
        dir,
        "pack/part.py",
        "from . import dyn\nfrom .deep.deeper import base\nvalue = 'part'\n",
    );
    write(dir, "pack/dyn.py", "value = 'dyn'\n");
    write(dir, "pack/threaded.py", "value = 'threaded'\n");
    write(dir, "pack/data.txt", "data");
    write(dir, "pack/deep/__init__.py", "");
    write(dir, "pack/deep/deeper.py", "from ..dyn import value\nbase = 'deep ' + value\n");
    write(dir, "spaces/inner/thing.py", "value = 'namespace'\n");
    write(dir, "plugins/one-two.py", "value = 'by path'\n");
    write(dir, ".hidden/real.py", "value = 'linked'\n");
    std::os::unix::fs::symlink(".hidden/real.py", dir.join("linked.py")).unwrap();
}

fn interpreters() -> Vec<PathBuf> {
    let home = ProcessEnvironment.var("HOME").map(PathBuf::from).unwrap_or_default();
    let versions = std::fs::read_dir(home.join(".pyenv/versions")).into_iter().flatten().flatten();
    let is_known = |path: &PathBuf| {
        let version = path.file_name().unwrap().to_str().unwrap().to_owned();
        ["3.8", "3.9", "3.10", "3.12", "3.13", "3.14"]
            .iter()
            .any(|prefix| version.starts_with(prefix))
    };
    let mut interpreters: Vec<PathBuf> = versions
        .map(|version| version.path())
        .filter(is_known)
        .map(|version| version.join("bin/python3"))
        .chain([PathBuf::from("/usr/bin/python3")])
        .filter(|program| program.is_file())
        .collect();
    interpreters.push(PathBuf::from("python3"));
    interpreters
}

#[tokio::test]
async fn unchanged_code_works_as_without_a_manifest() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let expected = json!([
        "part",
        "deep dyn",
        "namespace",
        "linked",
        "dyn",
        "by path",
        "data",
        "threaded",
        "part"
    ]);
    for program in interpreters() {
        // `to_thread` came with Python 3.9.
        let yaml = TOOL
            .replace("function: run", "function: Tool.run")
            .replace("module: main", &format!("module: main, python: \"{}\"", program.display()));
        let old = program.to_str().unwrap().contains("/3.8");
        let harness = harness(&yaml, true, |dir, _| {
            everything(dir);
            if old {
                let text = EVERYTHING.replace(
                    "await asyncio.to_thread(",
                    "await asyncio.get_running_loop().run_in_executor(None, ",
                );
                write(dir, "main.py", &text);
            }
        });
        assert_eq!(call(&harness).await.unwrap(), expected, "{}", program.display());
        assert!(!harness.dir.path().join("pack/__pycache__").exists(), "{}", program.display());
        harness.providers[0].close().await;
        write(harness.dir.path(), "pack/deep/deeper.py", CANARY);
        assert_denied(call(&harness).await, "/deeper.py' changed", &program.display().to_string());
        assert!(!harness.dir.path().join("ran").exists());
    }
}

#[tokio::test]
async fn the_path_that_an_entry_sets_is_bound_and_one_of_the_user_is_free() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let set = TOOL.replace("CANARY: ./ran", "CANARY: ./ran, PYTHONPATH: ./lib, PYTHONHOME: ./lib");
    let library = |dir: &Path| {
        write(dir, "main.py", "def run():\n    import extra\n    return extra.value\n");
        write(dir, ".common/extra.py", "value = 3\n");
        std::os::unix::fs::symlink(".common", dir.join("lib")).unwrap();
    };
    let sealed = harness(&set, true, |dir, _| library(dir));
    assert_eq!(call(&sealed).await.unwrap(), json!(3));
    sealed.providers[0].close().await;
    // Python imports this before it runs anything else.
    write(sealed.dir.path(), "lib/encodings/__init__.py", CANARY);
    write(sealed.dir.path(), "lib/extra.py", "value = 4\n");
    assert_denied(call(&sealed).await, "/extra.py' changed", "PYTHONPATH of the entry");
    assert!(!sealed.dir.path().join("ran").exists());

    let users = tempfile::tempdir().unwrap();
    write(users.path(), "extra.py", "value = 5\n");
    let passed = harness(TOOL, true, |dir, environment| {
        write(dir, "main.py", "def run():\n    import extra\n    return extra.value\n");
        let place = users.path().display().to_string();
        environment.vars.insert("PYTHONPATH".to_owned(), place);
    });
    write(users.path(), "extra.py", "value = 6\n");
    assert_eq!(call(&passed).await.unwrap(), json!(6));
}
