//! Secrets of entries: whatever is done with them, they appear nowhere.

use std::path::Path;

use crate::support::Sandbox;

/// What is planted, one for each way into an entry.
const PLANTED: [&str; 5] =
    ["planted-in-env", "planted-by-name", "planted-as-reference", "planted-in-address", "90210777"];

const CODE: &str = r"
import os, sys
def leak(fail: bool = False) -> str:
    text = ' '.join(value for name, value in os.environ.items() if name.startswith('P_'))
    print(text, file=sys.stderr, flush=True)
    if fail:
        raise ValueError(text)
    return text
";

const ENV: &str = "{ P_TOKEN: planted-in-env, P_SECRET: '${OUTER_SECRET}', P_NUMBER_KEY: 90210777, P_URL: 'redis://me:planted-in-address@127.0.0.1:1/0' }";

/// Every file below a directory.
fn files(directory: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

#[test]
fn secrets_of_entries_are_neither_shown_nor_kept() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    room.file("leaking.py", CODE).file(
        "tools.yaml",
        &format!(
            "tools:
  - {{ name: py, module: leaking, function: leak, env: {ENV}, env_keys: [P_API_KEY] }}
  - {{ name: sh, command: [sh, -c, 'env | grep ^P_ | tee /dev/stderr; exit $0', '{{code}}'], env: {ENV}, env_keys: [P_API_KEY], parameters: {{ type: object, properties: {{ code: {{ type: string }} }}, required: [code] }} }}
  - {{ name: web, kind: http, url: 'http://127.0.0.1:1/x', headers: {{ X-Api-Token: '${{OUTER_SECRET}}' }}, parameters: {{ type: object }} }}
  - {{ name: store, kind: storage, storage_type: redis, url: 'redis://me:planted-in-address@127.0.0.1:1/0' }}
"
        ),
    );
    let mut said = String::new();
    let mut masked = 0;
    for words in [
        &["call", "py", "-v"][..],
        &["call", "py", "fail=true", "--json"],
        &["call", "py", "--dry-run"],
        &["call", "sh", "code=0", "-v"],
        &["call", "sh", "code=3"],
        &["call", "sh", "code=0", "--dry-run", "--json"],
        &["call", "web"],
        &["call", "web", "--dry-run"],
        &["list", "-o", "json"],
        &["inspect", "py"],
        &["inspect", "sh", "-o", "json"],
        &["inspect", "web"],
    ] {
        let words = ["--tools", "tools.yaml"].iter().chain(words).copied();
        let run = room.toolhost(words);
        let run = run.env("OUTER_SECRET", PLANTED[2]).env("P_API_KEY", PLANTED[1]).check();
        masked += usize::from(run.out().contains("\u{2039}secret"));
        said += &run.to_string();
    }
    assert!(masked >= 4, "the tools gave away nothing to mask\n{said}");
    let mut kept = Vec::new();
    for place in ["home", "state", "cache"] {
        files(&room.path(place), &mut kept);
    }
    assert!(kept.iter().any(|path| path.ends_with("audit.jsonl")), "{kept:?}");
    for file in kept {
        said.push_str(&String::from_utf8_lossy(&std::fs::read(file).unwrap_or_default()));
    }
    for secret in PLANTED {
        assert!(!said.contains(secret), "{secret}\n{said}");
    }
}
