//! Handles in files, and the entries that name them.

use std::collections::BTreeMap;

use secrecy::ExposeSecret as _;

use crate::config::LoadRequest;
use crate::config::environment::FixedEnvironment;
use crate::config::load::load;
use crate::config::spec::{AuthSpec, Configuration, Endpoint, OAuthGrant, OAuthSpec};

const SECRET: &str = "hunter2-hunter2";

/// A file of servers that holds this, with `SECRET` in the environment.
fn loaded(text: &str) -> Configuration {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mcp.yaml");
    std::fs::write(dir.path().join("token"), format!("{SECRET}\n")).unwrap();
    std::fs::write(&file, text).unwrap();
    let environment = FixedEnvironment {
        vars: BTreeMap::from([
            ("SECRET".to_owned(), SECRET.to_owned()),
            ("OTHER".to_owned(), "other-value".to_owned()),
        ]),
        ..FixedEnvironment::default()
    };
    let request = LoadRequest { servers: vec![file], ..LoadRequest::default() };
    load(&request, &[], &environment)
}

fn diagnostic_lines(configuration: &Configuration) -> Vec<String> {
    let line = |diagnostic: &crate::model::Diagnostic| {
        let place = diagnostic.location.as_ref().unwrap();
        let hint = diagnostic.hint.as_deref().unwrap_or_default();
        format!("{}:{} {} ({hint})", place.line, place.column, diagnostic.message)
    };
    configuration.diagnostics.iter().map(line).collect()
}

const HANDLES: &str = "credentials:\n  github: { type: bearer, value: \"${SECRET}\", variable: GH_TOKEN }\n  maps: { type: api_key, value: \"${file:token}\" }\n  team: { type: header, header: X-Team-Pass, value: \"${SECRET}\" }\n  db: { type: env, variable: DB_PASSWORD, value: \"${SECRET}\" }\n  corp: { type: oauth, client_id: me, scopes: [a] }\n  unused: { type: bearer, value: \"${NOT_SET}\" }\nmcp_servers:\n";

#[test]
fn a_server_gets_the_credentials_that_it_names_and_no_other() {
    let configuration = loaded(&format!(
        "{HANDLES}  web: {{ url: https://a.example/, credentials: [github, maps, team] }}\n  program: {{ command: x, credentials: [db, github] }}\n  corp: {{ url: https://b.example/, credentials: corp }}\n  none: {{ url: https://c.example/ }}\n"
    ));
    assert_eq!(diagnostic_lines(&configuration), [""; 0]);
    let server = |name: &str| configuration.servers.iter().find(|s| s.name == name).unwrap();
    let Endpoint::Http { headers, auth, .. } = &server("web").endpoint else { panic!() };
    assert!(
        matches!(&**auth, AuthSpec::Bearer { token, .. } if token.expose_secret() == SECRET),
        "{auth:?}"
    );
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (name.as_str(), value.expose_secret())).collect();
    assert_eq!(headers, [("X-API-Key", SECRET), ("X-Team-Pass", SECRET)]);
    let handles: Vec<String> = server("web").credentials.iter().map(ToString::to_string).collect();
    assert_eq!(handles, ["github (bearer)", "maps (api_key)", "team (header)"]);
    let Endpoint::Stdio { env, .. } = &server("program").endpoint else { panic!() };
    let env: Vec<(&str, &str)> =
        env.iter().map(|(name, value)| (name.as_str(), value.expose_secret())).collect();
    assert_eq!(env, [("DB_PASSWORD", SECRET), ("GH_TOKEN", SECRET)]);
    let Endpoint::Http { auth, .. } = &server("corp").endpoint else { panic!() };
    assert!(
        matches!(&**auth, AuthSpec::OAuth(OAuthSpec {
            grant: OAuthGrant::Login { client_id: Some(id), .. },
            ..
        }) if id == "me"),
        "{auth:?}"
    );
    let Endpoint::Http { headers, auth, .. } = &server("none").endpoint else { panic!() };
    assert!(headers.is_empty() && matches!(**auth, AuthSpec::Unset));
    assert!(!format!("{:?}", configuration.servers).contains("hunter2"));
}

#[test]
fn what_does_not_fit_is_told_where_the_handle_is_named() {
    for (entry, text) in [
        ("{ url: https://a.example/, credentials: [gihub] }", "did you mean 'github'"),
        ("{ url: https://a.example/, credentials: [nobody] }", "known credentials: corp, db, "),
        ("{ url: https://a.example/, credentials: [db] }", "it cannot be sent with a request"),
        ("{ url: https://a.example/, credentials: [unused] }", "the variable NOT_SET is not set"),
        ("{ command: x, credentials: [corp] }", "a program gets variables"),
        ("{ command: x, credentials: [maps] }", "'variable'"),
        ("{ command: x, env: { DB_PASSWORD: y }, credentials: [db] }", "is set twice"),
        (
            "{ url: https://a.example/, auth: { type: none }, credentials: [github] }",
            "authentication twice",
        ),
        ("{ url: https://a.example/, credentials: [corp, github] }", "authentication twice"),
        ("{ url: https://a.example/, credentials: 7 }", "expected a list of texts"),
        ("{ url: https://a.example/, credentials: { a: b } }", "expected a list of texts"),
        ("{ url: https://a.example/, credentials: [[a]] }", "expected"),
        ("{ url: http://a.example/, credentials: [github] }", "unencrypted"),
        (
            "{ command: x, credentials: [db], permissions: { credentials: [bearer] } }",
            "a type that is not permitted",
        ),
    ] {
        let configuration = loaded(&format!("{HANDLES}  server: {entry}\n"));
        let lines = diagnostic_lines(&configuration);
        assert_eq!(lines.len(), 1, "{entry}: {lines:?}");
        assert!(lines[0].contains(text), "{entry}: {lines:?}");
        assert!(lines[0].starts_with("9:"), "{entry}: {lines:?}");
        assert!(configuration.servers.is_empty() && !lines[0].contains("hunter2"));
    }
}

#[test]
fn every_wrong_type_of_a_handle_has_its_place() {
    for (credentials, text) in [
        ("[a]", "expected a mapping of handles"),
        ("text", "expected a mapping of handles"),
        ("7", "expected a mapping of handles"),
        ("{ a: text }", "expected"),
        ("{ a: 7 }", "expected"),
        ("{ a: [x] }", "expected"),
        ("{ a: { value: '${SECRET}' } }", "has no 'type'"),
        ("{ a: { type: 7, value: '${SECRET}' } }", "unknown credential kind '7'"),
        ("{ a: { type: bearr, value: '${SECRET}' } }", "unknown credential kind 'bearr'"),
        ("{ a: { type: bearer } }", "needs 'value'"),
        ("{ a: { type: bearer, value: [x] } }", "expected"),
        ("{ a: { type: bearer, value: { a: b } } }", "expected"),
        ("{ a: { type: header, value: '${SECRET}' } }", "needs 'header'"),
        ("{ a: { type: header, value: '${SECRET}', header: 'a b' } }", "invalid header name"),
        ("{ a: { type: header, value: '${SECRET}', header: [x] } }", "expected"),
        ("{ a: { type: env, value: '${SECRET}' } }", "needs 'variable'"),
        (
            "{ a: { type: env, value: '${SECRET}', variable: 'A-B' } }",
            "is not a valid variable name",
        ),
        ("{ a: { type: env, value: '${SECRET}', variable: LD_PRELOAD } }", "cannot be set by"),
        ("{ a: { type: env, value: '${SECRET}', variable: {} } }", "expected"),
        ("{ a: { type: bearer, value: '${SECRET}', header: X } }", "'header' has no effect"),
        ("{ a: { type: oauth, value: '${SECRET}' } }", "'value' has no effect"),
        ("{ a: { type: bearer, value: '${SECRET}', description: [x] } }", "expected"),
        ("{ a: { type: bearer, value: '${SECRET}', vlaue: x } }", "unknown key 'vlaue'"),
        ("{ 'a b': { type: bearer, value: '${SECRET}' } }", "a b"),
        ("{ a: { type: bearer, value: 'hunter2-hunter2' } }", "looks like a hard-coded secret"),
    ] {
        let configuration = loaded(&format!("credentials: {credentials}\nmcp_servers: {{}}\n"));
        let lines = diagnostic_lines(&configuration);
        assert_eq!(lines.len(), 1, "{credentials}: {lines:?}");
        assert!(lines[0].contains(text), "{credentials}: {lines:?}");
        assert!(lines[0].starts_with("1:") && !lines[0].contains("hunter2"), "{lines:?}");
    }
    // An entry that names a broken handle says why, and a login's own mistakes are the entry's.
    let configuration = loaded(
        "credentials: { a: { type: bearer }, b: { type: oauth, redirect_port: x } }\nmcp_servers:\n  s: { url: https://a.example/, credentials: [a] }\n  t: { url: https://a.example/, credentials: [b] }\n",
    );
    let lines = diagnostic_lines(&configuration);
    assert!(lines[2].contains("'a' cannot be used: a credential of the type bearer"), "{lines:?}");
    assert_eq!((lines.len(), configuration.servers.len()), (3, 0), "{lines:?}");
}

#[test]
fn a_server_may_be_called_credentials() {
    let configuration = loaded("credentials: { command: x }\nother: { command: y }\n");
    assert_eq!(configuration.servers.len(), 2, "{:?}", diagnostic_lines(&configuration));
}

#[test]
fn the_first_of_two_files_of_a_layer_has_a_handle() {
    let configuration =
        loaded("credentials:\n  a: { type: bearer, value: \"${SECRET}\" }\nmcp_servers: {}\n");
    assert!(configuration.diagnostics.is_empty());
    let dir = tempfile::tempdir().unwrap();
    let files = ["one.yaml", "two.yaml"].map(|name| dir.path().join(name));
    for file in &files {
        std::fs::write(file, "credentials: { a: { type: oauth } }\nmcp_servers: {}\n").unwrap();
    }
    let request = LoadRequest { servers: files.to_vec(), ..LoadRequest::default() };
    let configuration = load(&request, &[], &FixedEnvironment::default());
    assert!(diagnostic_lines(&configuration)[0].contains("duplicate credential 'a'"));
}
