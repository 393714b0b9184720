//! The files of `deploy/`: what they start is a command line that works.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::serve::client::{Served, post_stateless};
use crate::support::Sandbox;

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// The values of a unit by section and key; a key may stand several times.
fn unit(text: &str) -> BTreeMap<(String, String), Vec<String>> {
    let (mut section, mut values) = (String::new(), BTreeMap::new());
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            name.trim_end_matches(']').clone_into(&mut section);
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or_else(|| panic!("{line}"));
        let place: &mut Vec<String> = values.entry((section.clone(), key.to_owned())).or_default();
        place.push(value.to_owned());
    }
    values
}

/// Serves by a command line of `deploy/`, with its files in the sandbox and any free port.
fn serve(room: &Sandbox, words: &[String]) {
    room.file("tools.yaml", &read("tools.yaml")).file("token", "from a file\n");
    let words: Vec<String> = words
        .iter()
        .map(|word| {
            word.replace("/etc/toolhost/tools.yaml", "tools.yaml")
                .replace("${CREDENTIALS_DIRECTORY}/token", "token")
                .replace("/run/secrets/token", "token")
                .replace(":8080", ":0")
        })
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut served = Served::start_line(room, &words);
    let port = served.address().rsplit(':').next().unwrap().to_owned();
    let call = json!({ "name": "calculator", "arguments": { "expression": "6*7" } });
    let http = format!("127.0.0.1:{port}");
    let (status, answer) = post_stateless(&http, "from a file", "tools/call", call);
    assert!(status == 200 && answer.contains("42"), "{answer}");
    assert_eq!(served.end(), Some(143));
}

#[test]
fn the_unit_starts_a_server_that_answers() {
    let text = read("toolhost.service");
    let unit = unit(&text);
    let value = |key: &str| {
        let all = unit.get(&("Service".to_owned(), key.to_owned()));
        all.and_then(|all| all.last()).unwrap_or_else(|| panic!("no {key}")).as_str()
    };
    let words: Vec<String> = value("ExecStart").split(' ').map(str::to_owned).collect();
    assert_eq!(words[0], "/usr/local/bin/toolhost");
    serve(&Sandbox::new(), &words[1..]);
    for key in ["NoNewPrivileges", "ProtectHome", "PrivateTmp", "LockPersonality"] {
        assert_eq!(value(key), "yes", "{key}");
    }
    assert_eq!((value("ProtectSystem"), value("CapabilityBoundingSet")), ("strict", ""));
}

#[test]
fn systemd_takes_the_unit() {
    let room = Sandbox::new();
    // The program and its user need not be installed here.
    let text = read("toolhost.service")
        .replace("/usr/local/bin/toolhost", env!("CARGO_BIN_EXE_toolhost"))
        .replace("User=toolhost\nGroup=toolhost\n", "");
    room.file("toolhost.service", &text);
    let verify = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .arg(room.path("work/toolhost.service"))
        .output();
    match verify {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("systemd is not installed here");
        }
        verify => {
            let verify = verify.unwrap();
            let said = String::from_utf8_lossy(&verify.stderr);
            assert!(!said.contains("toolhost.service"), "{said}");
        }
    }
}

#[test]
fn the_compose_file_starts_a_server_that_answers() {
    let compose: Value = serde_yaml::from_str(&read("compose.yaml")).unwrap();
    let service = &compose["services"]["toolhost"];
    let strings = |value: &Value| -> Vec<String> {
        let all = value.as_array().unwrap().iter();
        all.map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let words = strings(&service["command"]);
    let mounted = strings(&service["volumes"]);
    assert!(mounted.iter().any(|mount| mount.starts_with("./tools.yaml:/etc/toolhost/")));
    serve(&Sandbox::new(), &words);
    // What the service names is there.
    assert!(service["depends_on"]["redis"].is_object());
    assert_eq!(compose["services"]["redis"]["command"][0], "redis-server");
    for secret in strings(&service["secrets"]) {
        assert!(compose["secrets"][&secret].is_object(), "{secret}");
    }
    for port in strings(&service["ports"]) {
        assert!(port.starts_with("127.0.0.1:"), "{port} is open to other machines");
    }
    let dockerfile = service["build"]["dockerfile"].as_str().unwrap();
    assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(dockerfile).is_file());
}
