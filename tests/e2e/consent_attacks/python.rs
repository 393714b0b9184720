//! Python code that a trusted module would import: it was shown as part of the project, and a
//! change of any of it asks again.

use super::{asks_for_consent, run, trust};
use crate::support::{Finished, Sandbox, script};

/// Python text that writes down that it ran.
fn planted(room: &Sandbox) -> String {
    format!("open('{}', 'w').close()\n", room.path("run/ran").display())
}

/// What the Python that a room finds prints.
#[track_caller]
fn of_python(room: &Sandbox, words: &[&str]) -> String {
    // One that an ordinary user may run, where there is one: root's own may be closed to others.
    let system = std::path::Path::new("/usr/bin/python3");
    let python = if system.exists() { "/usr/bin/python3" } else { "python3" };
    room.program(python, words.iter().copied()).go().exits(0).out()
}

fn call(room: &Sandbox) -> Finished {
    run(room, &["call", "t"]).check()
}

/// A trusted project with a tool of `mod.py`.
fn project(entry: &str, module: &str, others: &[(&str, &str)]) -> Sandbox {
    let room = Sandbox::ordinary();
    room.file("tools.yaml", &format!("tools: [{{ name: t, module: mod, function: f{entry} }}]\n"));
    room.file("mod.py", module);
    for (name, text) in others {
        room.file(name, text);
    }
    trust(&room);
    call(&room).exits(0);
    room
}

/// Fails when planted code ran, or the change asked nothing.
#[track_caller]
fn asks_again(room: &Sandbox, what: &str) {
    let finished = call(room);
    assert!(!room.path("run/ran").exists(), "{what} ran\n{finished}");
    asks_for_consent(&finished);
}

const IMPORTS: &str = "import helper\ndef f():\n    return helper.VALUE\n";
const PLAIN: &str = "import json\ndef f():\n    return json.dumps(1)\n";

#[test]
fn a_changed_sibling_module_is_asked_about_again() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let others = [("helper.py", "VALUE = 1\n")];
    let room = project("", IMPORTS, &others);
    room.file("helper.py", &(planted(&room) + "VALUE = 2\n"));
    asks_again(&room, "the changed module");
    // Also one that is imported only when it is called, and one inside of a package.
    let lazy = "def f():\n    import pkg.inner\n    return pkg.inner.VALUE\n";
    let others = [("pkg/__init__.py", ""), ("pkg/inner.py", "VALUE = 1\n")];
    let room = project("", lazy, &others);
    room.file("pkg/inner.py", &(planted(&room) + "VALUE = 2\n"));
    asks_again(&room, "the changed module of a package");
}

#[test]
fn a_new_package_that_takes_the_place_of_a_module_is_asked_about() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = project("", IMPORTS, &[("helper.py", "VALUE = 1\n")]);
    room.file("helper/__init__.py", &(planted(&room) + "VALUE = 2\n"));
    asks_again(&room, "the package before the module");
}

#[test]
fn a_changed_function_module_is_asked_about_again() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = project("", PLAIN, &[]);
    room.file("mod.py", &(planted(&room) + PLAIN));
    asks_again(&room, "the changed module");
}

/// A shared object is imported before a `.py` of the same name.
#[test]
fn a_shared_object_beside_a_module_is_asked_about() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = project("", IMPORTS, &[("helper.py", "VALUE = 1\n")]);
    let suffix = of_python(
        &room,
        &["-c", "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'), end='')"],
    );
    // Loading it runs it before Python finds that it is no module. Any content will do: that it is
    // opened at all is what must not happen, and Python says so.
    room.file(&format!("helper{suffix}"), "no shared object");
    let finished = call(&room);
    assert!(!finished.err().contains("ImportError"), "the shared object was loaded\n{finished}");
    asks_for_consent(&finished);
}

#[test]
fn compiled_python_that_does_not_belong_to_its_source_does_not_run() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = project("", IMPORTS, &[("helper.py", "VALUE = 1\n")]);
    // An unchecked cache is taken without a look at the source.
    let evil = room.path("run/evil.py");
    std::fs::write(&evil, planted(&room) + "VALUE = 2\n").unwrap();
    let compile = "import py_compile, sys, importlib.util as u; py_compile.compile(sys.argv[1], \
                   cfile=u.cache_from_source(sys.argv[2]), \
                   invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)";
    let (evil, helper) = (evil.display().to_string(), room.path("work/helper.py"));
    of_python(&room, &["-c", compile, &evil, &helper.display().to_string()]);
    let finished = call(&room);
    assert!(!room.path("run/ran").exists(), "the cache ran\n{finished}");
}

#[test]
fn a_module_named_like_one_of_the_standard_library_does_not_run() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    for name in ["json", "re", "typing", "inspect"] {
        let room = project("", PLAIN, &[]);
        room.file(&format!("{name}.py"), &planted(&room));
        let finished = call(&room);
        assert!(!room.path("run/ran").exists(), "{name}.py ran\n{finished}");
        // Nor does consent help: it is refused by its name.
        let finished = run(&room, &["trust", "--yes"]).check();
        call(&room);
        assert!(!room.path("run/ran").exists(), "{name}.py ran after consent\n{finished}");
    }
}

/// Makes a virtual environment of the project.
fn environment(room: &Sandbox) {
    of_python(room, &["-m", "venv", "--without-pip", ".venv"]);
}

/// A virtual environment in the project, made of links: `pth`, `sitecustomize` and the interpreter
/// run before any module.
#[test]
fn a_virtual_environment_of_the_project_is_part_of_what_was_shown() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let print = "import sys; print('python%d.%d' % sys.version_info[:2], end='')";
    let site =
        format!(".venv/lib/{}/site-packages", of_python(&Sandbox::ordinary(), &["-c", print]));
    let plant: &[(&str, &str)] = &[
        ("evil.pth", "import os; open('RAN', 'w').close()\n"),
        ("sitecustomize.py", "open('RAN', 'w').close()\n"),
        ("usercustomize.py", "open('RAN', 'w').close()\n"),
    ];
    for (name, text) in plant {
        let room = Sandbox::ordinary();
        environment(&room);
        room.file("tools.yaml", "tools: [{ name: t, module: mod, function: f }]\n");
        room.file("mod.py", PLAIN);
        trust(&room);
        call(&room).exits(0);
        let ran = room.path("run/ran").display().to_string();
        room.file(&format!("{site}/{name}"), &text.replace("RAN", &ran));
        // Some systems have modules of these names before those of any environment.
        if *name == "evil.pth" {
            asks_again(&room, name);
        } else {
            let finished = call(&room);
            assert!(!room.path("run/ran").exists(), "{name} ran\n{finished}");
        }
    }
    let room = Sandbox::ordinary();
    environment(&room);
    room.file("tools.yaml", "tools: [{ name: t, module: mod, function: f }]\n")
        .file("mod.py", PLAIN);
    trust(&room);
    let interpreter = room.path("work/.venv/bin/python3");
    std::fs::remove_file(&interpreter).unwrap();
    let text =
        format!("#!/bin/sh\ntouch '{}'\nexec python3 \"$@\"\n", room.path("run/ran").display());
    script(&interpreter, &text);
    asks_again(&room, "the interpreter");
}
