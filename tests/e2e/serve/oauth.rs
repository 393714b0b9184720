//! `serve --oauth-issuer`, against an authorization server that signs with a key of its own.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

use super::client::{Served, exchange, outcome_in, post_head, post_stateless};
use crate::support::Sandbox;

const AUDIENCE: &str = "https://tools.example/mcp";

struct SigningKey {
    name: String,
    pair: EcdsaKeyPair,
}

/// An authorization server: its metadata and its keys over HTTP, and tokens as wanted.
struct Issuer {
    url: String,
    published: Arc<Mutex<Value>>,
    requests: Arc<Mutex<Vec<String>>>,
    key: SigningKey,
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl SigningKey {
    fn new(name: &str) -> Self {
        let (kind, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let der = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(kind, der.as_ref(), &random).unwrap();
        Self { name: name.to_owned(), pair }
    }

    fn jwk(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        json!({ "kty": "EC", "crv": "P-256", "kid": self.name,
                "x": encode(&point[1..33]), "y": encode(&point[33..]) })
    }

    fn sign(&self, claims: &Value) -> String {
        let header = json!({ "alg": "ES256", "kid": self.name, "typ": "at+jwt" });
        let text = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
        let signature = self.pair.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
        format!("{text}.{}", encode(signature))
    }
}

impl Issuer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/realm", listener.local_addr().unwrap());
        let key = SigningKey::new("first");
        let published = Arc::new(Mutex::new(json!({ "keys": [key.jwk()] })));
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let (own, keys, seen) = (url.clone(), Arc::clone(&published), Arc::clone(&requests));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut request = String::new();
                let _closed = reader.read_line(&mut request);
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                    line.clear();
                }
                let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                let (status, body) = match path.as_str() {
                    "/realm/.well-known/openid-configuration" => {
                        ("200 OK", json!({ "issuer": own, "jwks_uri": format!("{own}/keys") }))
                    }
                    "/realm/keys" => ("200 OK", keys.lock().unwrap().clone()),
                    _ => ("404 Not Found", Value::Null),
                };
                seen.lock().unwrap().push(path);
                let body = body.to_string();
                let _closed = write!(
                    stream,
                    "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n\
                     Content-Length: {}\r\n\r\n{body}",
                    body.len()
                );
            }
        });
        Self { url, published, requests, key }
    }

    fn token(&self, changes: &Value) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let mut claims = json!({ "iss": self.url, "aud": AUDIENCE, "exp": now + 600, "nbf": now,
                                 "sub": "ada", "client_id": "editor", "scope": "tools:few" });
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        self.key.sign(&claims)
    }

    /// How often its keys were asked for.
    fn key_requests(&self) -> usize {
        self.requests.lock().unwrap().iter().filter(|path| *path == "/realm/keys").count()
    }
}

const TOOLS: &str = "tools:\n  - { name: one, command: [printf, '1'] }\n  \
                     - { name: two, command: [printf, '2'] }\n  \
                     - { name: user, command: [printenv, TOOLHOST_USER] }\n\
                     components:\n  - { name: own, storage_type: memory, scope: session }\n\
                     profiles:\n  few: { include: [one] }\n";

fn serve(room: &Sandbox, issuer: &str) -> (Served, String) {
    room.file("tools.yaml", TOOLS);
    let words = [
        "--http",
        "127.0.0.1:0",
        "--trust",
        "--oauth-issuer",
        issuer,
        "--oauth-audience",
        AUDIENCE,
        "--oauth-scope",
        "tools:few=few",
        "--oauth-scope",
        "tools:all",
    ];
    let mut served = Served::start(room, &words);
    let address = served.address();
    (served, address)
}

#[test]
fn a_token_of_the_issuer_sees_what_its_scopes_allow_and_its_calls_name_it() {
    let (room, issuer) = (Sandbox::new(), Issuer::start());
    let (served, http) = serve(&room, &issuer.url);
    let names = |token: &str| {
        let (status, answer) = post_stateless(&http, token, "tools/list", json!({}));
        assert_eq!(status, 200, "{answer}");
        let listed = outcome_in(&answer);
        let tools = listed["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let few = issuer.token(&json!({}));
    assert_eq!(names(&few), ["one"]);
    let all = names(&issuer.token(&json!({ "scope": "tools:few tools:all" })));
    assert!(["one", "two"].iter().all(|name| all.contains(&(*name).to_owned())), "{all:?}");
    let call = |name: &str| {
        let call = json!({ "name": name, "arguments": {} });
        outcome_in(&post_stateless(&http, &few, "tools/call", call).1)
    };
    assert_eq!(call("one")["content"][0]["text"], "1");
    assert!(call("two")["code"].is_i64());
    assert_eq!(issuer.key_requests(), 1, "the keys are kept");
    assert_eq!(served.end(), Some(143));
    let audit = room.toolhost(["audit", "--json"]).go();
    assert_eq!(audit.exits(0).json()[0]["caller"]["client"], "ada (editor)");
}

#[test]
fn a_client_without_a_token_is_led_to_the_issuer() {
    let (room, issuer) = (Sandbox::new(), Issuer::start());
    let (_served, http) = serve(&room, &issuer.url);
    let (status, head) = post_head(&http, "", "{}");
    assert_eq!(status, 401, "{head}");
    let metadata = "https://tools.example/.well-known/oauth-protected-resource/mcp";
    let challenge =
        head.lines().find(|line| line.starts_with("www-authenticate: Bearer ")).unwrap();
    assert!(challenge.contains(&format!("resource_metadata=\"{metadata}\"")), "{challenge}");
    assert!(challenge.contains("scope=\"tools:few tools:all\""), "{challenge}");
    let path = "/.well-known/oauth-protected-resource/mcp";
    let answer = exchange(&http, "GET", path, "", "");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("content-type: application/json"), "{head}");
    let metadata: Value = serde_json::from_str(body).unwrap();
    assert_eq!(metadata["resource"], AUDIENCE);
    assert_eq!(metadata["authorization_servers"], json!([issuer.url]));
    assert_eq!(issuer.key_requests(), 0, "nothing is asked before a token comes");
}

#[test]
fn tokens_that_are_not_for_this_server_are_refused() {
    let (room, issuer) = (Sandbox::new(), Issuer::start());
    let (_served, http) = serve(&room, &issuer.url);
    let ask = |token: &str| {
        let headers = format!("Authorization: Bearer {token}\r\n");
        post_head(&http, &headers, "{}")
    };
    for changes in [
        json!({ "aud": "https://other.example" }),
        json!({ "iss": "https://other.example" }),
        json!({ "exp": 1_000 }),
        json!({ "nbf": 99_999_999_999_u64 }),
        json!({ "sub": null }),
        json!({ "sub": "" }),
        json!({ "client_id": null }),
    ] {
        let (status, head) = ask(&issuer.token(&changes));
        assert_eq!(status, 401, "{changes}");
        assert!(head.contains("error=\"invalid_token\""), "{head}");
    }
    let (status, head) = ask(&issuer.token(&json!({ "scope": "profile email" })));
    assert_eq!(status, 403);
    assert!(head.contains("error=\"insufficient_scope\"") && head.contains("tools:few"), "{head}");
    let status = post_stateless(&http, "sesame", "tools/list", json!({})).0;
    assert_eq!(status, 200, "the owner's own token is taken beside them");
}

#[test]
fn people_and_programs_with_similar_names_share_nothing() {
    let (room, issuer) = (Sandbox::new(), Issuer::start());
    let (_served, http) = serve(&room, &issuer.url);
    let call = |subject: &str, program: &str, name: &str, arguments: Value| {
        let claims = json!({ "sub": subject, "client_id": program, "scope": "tools:all" });
        let call = json!({ "name": name, "arguments": arguments });
        outcome_in(&post_stateless(&http, &issuer.token(&claims), "tools/call", call).1).to_string()
    };
    let key = json!({ "key": "k" });
    let secret = json!({ "key": "k", "value": "of ada in ed" });
    let written = call("ada", "ed", "own-write", secret);
    assert!(!written.contains("isError"), "{written}");
    assert!(call("ada", "ed", "own-read", key.clone()).contains("of ada in ed"));
    for (subject, program) in
        [("ada (ed)", "ada (ed)"), ("ada", "ada"), ("ada", "(ed)"), ("ed", "ada"), ("adae", "d")]
    {
        let read = call(subject, program, "own-read", key.clone());
        assert!(!read.contains("of ada in ed"), "{subject} {program}: {read}");
    }
    // The user of its calls is who the issuer says.
    assert!(call("ada", "ed", "user", json!({})).contains("ada"));
}

#[test]
fn a_new_key_is_asked_for_once_however_many_tokens_name_unknown_keys() {
    let (room, issuer) = (Sandbox::new(), Issuer::start());
    let (_served, http) = serve(&room, &issuer.url);
    let status = |token: &str| post_stateless(&http, token, "tools/list", json!({})).0;
    let second = SigningKey::new("second");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let claims = json!({ "iss": issuer.url, "aud": AUDIENCE, "exp": now + 600, "sub": "ada",
                         "azp": "editor", "scope": "tools:all" });
    // The first token names a key that is published; it is in the first answer.
    *issuer.published.lock().unwrap() = json!({ "keys": [issuer.key.jwk(), second.jwk()] });
    assert_eq!(status(&second.sign(&claims)), 200);
    for number in 0..20 {
        let unknown = SigningKey::new(&format!("unknown-{number}"));
        assert_eq!(status(&unknown.sign(&claims)), 401);
    }
    assert_eq!(issuer.key_requests(), 1, "twenty unknown keys ask for nothing at once");
}

#[test]
fn an_issuer_that_does_not_answer_is_told_and_other_tokens_work() {
    let room = Sandbox::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let issuer = Issuer { url: gone.clone(), ..Issuer::start() };
    let (_served, http) = serve(&room, &gone);
    assert_eq!(post_stateless(&http, &issuer.token(&json!({})), "tools/list", json!({})).0, 503);
    assert_eq!(post_stateless(&http, "sesame", "tools/list", json!({})).0, 200);
    for (words, said) in [
        (&["--oauth-issuer", "http://as.example"][..], "must use https"),
        (&["--oauth-issuer", "https://as.example", "--oauth-scope", "a=nope"], "'nope'"),
    ] {
        let words = [&["serve", "--http", "127.0.0.1:0"][..], words].concat();
        room.toolhost(words).go().exits(2).says(&[said]);
    }
    room.toolhost(["serve", "--oauth-issuer", "https://as.example"]).go().exits(2);
}
