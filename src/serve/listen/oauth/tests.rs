//! Tokens of an issuer: what is valid, and every way in which one may be wrong.

use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
};
use serde_json::{Value, json};

use super::signature::{JsonWebKey, JsonWebKeys};
use super::*;

const ISSUER: &str = "https://as.example";
const AUDIENCE: &str = "https://t.example/mcp";

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn keys(keys: &Value) -> Vec<JsonWebKey> {
    let keys: JsonWebKeys = serde_json::from_value(json!({ "keys": keys })).unwrap();
    keys.keys
}

struct EcIssuer(EcdsaKeyPair);

impl EcIssuer {
    fn new() -> Self {
        let (kind, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let der = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        Self(EcdsaKeyPair::from_pkcs8(kind, der.as_ref(), &random).unwrap())
    }

    fn jwk(&self) -> Value {
        let point = self.0.public_key().as_ref();
        json!({ "kty": "EC", "crv": "P-256", "kid": "one", "alg": "ES256",
                "x": encode(&point[1..33]), "y": encode(&point[33..]) })
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let text = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
        let signature = self.0.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
        format!("{text}.{}", encode(signature))
    }
}

fn check(token: &str, keys: &[JsonWebKey]) -> Option<TokenClaims> {
    let now = Duration::from_secs(1_000);
    UncheckedToken::read(token)?.check(keys, ISSUER, &[AUDIENCE.to_owned()], now)
}

fn claims() -> Value {
    json!({ "iss": ISSUER, "aud": [AUDIENCE, "other"], "exp": 2_000, "sub": "ada",
            "client_id": "editor", "scope": "tools other" })
}

fn with(mut value: Value, key: &str, new: Value) -> Value {
    value[key] = new;
    value
}

#[test]
fn a_token_of_the_issuer_says_whose_it_is() {
    let issuer = EcIssuer::new();
    let token = issuer.sign(&json!({ "alg": "ES256", "kid": "one", "typ": "at+jwt" }), &claims());
    let read = check(&token, &keys(&json!([issuer.jwk()]))).unwrap();
    assert_eq!((read.subject.as_str(), read.client.as_deref()), ("ada", Some("editor")));
    assert_eq!(read.scopes, ["tools", "other"]);
    // A minute of difference between clocks is allowed.
    for (key, value) in [("exp", json!(950)), ("nbf", json!(1_050))] {
        let token = issuer.sign(&json!({ "alg": "ES256" }), &with(claims(), key, value));
        assert!(check(&token, &keys(&json!([issuer.jwk()]))).is_some(), "{key}");
    }
}

#[test]
fn other_claims_are_refused() {
    let issuer = EcIssuer::new();
    let keys = keys(&json!([issuer.jwk()]));
    let header = json!({ "alg": "ES256", "kid": "one" });
    for (key, value) in [
        ("iss", json!("https://as.example/")),
        ("iss", json!(null)),
        ("aud", json!("other")),
        ("aud", json!([])),
        ("aud", json!(null)),
        ("exp", json!(900)),
        ("exp", json!(null)),
        ("exp", json!("2000")),
        ("exp", json!(-1)),
        ("nbf", json!(1_100)),
        ("nbf", json!("0")),
    ] {
        let token = issuer.sign(&header, &with(claims(), key, value.clone()));
        assert_eq!(check(&token, &keys), None, "{key}: {value}");
    }
}

#[test]
fn a_token_that_the_issuer_did_not_sign_is_refused() {
    let (issuer, other) = (EcIssuer::new(), EcIssuer::new());
    let own = keys(&json!([issuer.jwk()]));
    let header = json!({ "alg": "ES256", "kid": "one" });
    assert_eq!(check(&other.sign(&header, &claims()), &own), None);
    for (key, value) in [
        ("alg", json!("none")),
        ("alg", json!("HS256")),
        ("alg", json!("ES384")),
        ("alg", json!("RS256")),
        ("kid", json!("two")),
        ("crit", json!(["b64"])),
        ("typ", json!("logout+jwt")),
    ] {
        let token = issuer.sign(&with(header.clone(), key, value.clone()), &claims());
        assert_eq!(check(&token, &own), None, "{key}: {value}");
    }
    let good = issuer.sign(&header, &claims());
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let (head, _) = signed.split_once('.').unwrap();
    let forged = encode(with(claims(), "sub", json!("root")).to_string());
    for token in [
        format!("{head}.{forged}.{signature}"),
        format!("{signed}."),
        format!("{signed}.{signature}.x"),
        format!("{good}="),
        "a.b".to_owned(),
        String::new(),
        "x".repeat(17 << 10),
    ] {
        assert_eq!(check(&token, &own), None, "{token}");
    }
    // The key of a shared secret, of encryption, and of another algorithm.
    let secret = json!([{ "kty": "oct", "kid": "one", "k": "c2VjcmV0" }]);
    for keys in [
        keys(&secret),
        keys(&json!([with(issuer.jwk(), "use", json!("enc"))])),
        keys(&json!([with(issuer.jwk(), "alg", json!("ES384"))])),
        keys(&json!([with(issuer.jwk(), "crv", json!("P-384"))])),
        keys(&json!([])),
    ] {
        assert_eq!(check(&good, &keys), None);
    }
}

#[test]
fn keys_of_every_kind_are_read() {
    let der = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8(der.as_ref()).unwrap();
    let text = format!(
        "{}.{}",
        encode(json!({ "alg": "EdDSA" }).to_string()),
        encode(claims().to_string())
    );
    let token = format!("{text}.{}", encode(pair.sign(text.as_bytes())));
    let jwk = json!([{ "kty": "OKP", "crv": "Ed25519", "x": encode(pair.public_key()) }]);
    assert!(check(&token, &keys(&jwk)).is_some());

    // Made by OpenSSL: RSA of 2,048 bits.
    let jwk = keys(&json!([{ "kty": "RSA", "e": "AQAB", "n": RSA_N }]));
    for (head, signature) in [(RS256_HEAD, RS256_SIGNATURE), (PS384_HEAD, PS384_SIGNATURE)] {
        let token = format!("{head}.{RSA_CLAIMS}.{signature}");
        assert_eq!(check(&token, &jwk).unwrap().subject, "ada");
        let other = token.replace(head, RS256_HEAD).replace(signature, PS384_SIGNATURE);
        assert_eq!(check(&other, &jwk), None, "the algorithm is the token's own");
    }
}

#[test]
fn a_client_is_led_to_the_metadata_and_scopes_lead_to_profiles() {
    let scope = |name: &str, profile: Option<&str>| AcceptedScope {
        name: name.to_owned(),
        profile: profile.map(str::to_owned),
    };
    let scopes = vec![scope("few", Some("few")), scope("all", None)];
    let audiences = vec![AUDIENCE.to_owned(), "api://t".to_owned()];
    let own = "http://127.0.0.1:1/mcp".parse().unwrap();
    let resource = ProtectedResource::new(ISSUER, own, audiences, scopes).unwrap();
    let metadata: Value = serde_json::from_str(&resource.metadata(METADATA_PATH).unwrap()).unwrap();
    assert_eq!(metadata["resource"], AUDIENCE);
    assert_eq!(metadata["authorization_servers"], json!([ISSUER]));
    assert_eq!(metadata["scopes_supported"], json!(["few", "all"]));
    let with_path = format!("{METADATA_PATH}/mcp");
    assert!(resource.metadata(&with_path).is_some());
    assert!(resource.metadata(&format!("{METADATA_PATH}/x")).is_none());
    let challenge = resource.challenge(AccessError::Token, true);
    assert_eq!(
        challenge,
        "Bearer realm=\"toolhost\", resource_metadata=\"https://t.example/.well-known/\
         oauth-protected-resource/mcp\", scope=\"few all\", error=\"invalid_token\""
    );
    assert!(!resource.challenge(AccessError::Token, false).contains("error"));
    let identity = |scopes: &[&str]| {
        resource.identity(TokenClaims {
            subject: "ada".into(),
            client: Some("editor".into()),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            expires: Duration::from_secs(2_000),
        })
    };
    let few = identity(&["few", "unknown"]).unwrap();
    assert_eq!((few.scope.client.as_str(), few.scope.views[0].len()), ("ada (editor)", 1));
    let both = identity(&["few", "all"]).unwrap();
    assert_eq!((both.scope.views.len(), both.scope.views[1].len()), (2, 0));
    assert_ne!(few.key, both.key);
    assert_eq!(identity(&["unknown"]).unwrap_err(), AccessError::Scope);
    for issuer in ["http://as.example", "as.example", "https://as.example?x=1", "ftp://x"] {
        let url = "http://127.0.0.1:1/mcp".parse().unwrap();
        assert!(ProtectedResource::new(issuer, url, Vec::new(), Vec::new()).is_err(), "{issuer}");
    }
}

const RSA_N: &str = "yupNCKrJIpRqfoy6X8zijbaYiisQzPaFb5vfQ-UXO0E8mg9g27ONJAvuhqP_KbeT0i6jm58qrzRIQONDXwESDmap\
    i966wqdkkLtDHSboJYDZO75lx1lg07Yy8QzjVtibpjt7d7LlUcRHFxAFQomCM2uiYMp_UL9zv42_CdEvwNJm5jdq\
    _uWgfL5TVm5wTO_q0uNJ8gFDOJdX0VeCYBwUkreMOKhIrsgUfGbQQsv7K8KuZFs8V9c591KFVDvMk2c75v1HqZ9s\
    Vq_LXN9lTNr5z0xqhI5YEaEnJ03t9D7pUqFv_DQ21UMcoHOOqtr8dmFBA_i-8J9eyIZm4AVLQp6UGw";
const RSA_CLAIMS: &str = "eyJpc3MiOiAiaHR0cHM6Ly9hcy5leGFtcGxlIiwgImF1ZCI6ICJodHRwczovL3QuZXhhbXBsZS9tY3AiLCAiZXhw\
    IjogMjAwMCwgInN1YiI6ICJhZGEifQ";
const RS256_HEAD: &str = "eyJhbGciOiAiUlMyNTYifQ";
const RS256_SIGNATURE: &str = "cRGkSnyDKYzVV-huN5Ufw_Y-68_EnVCK7-22L224CJkNQ04W9-dO-NgxeP-mBYKoguQa5-9sKU3Npl5DaFIUtMWx\
    4ZQL_AdXZj4bvOqM7moiF6F0UxIYrFTWef1H294nt0fZGln3yQYR0a_2QR42No7IL-kTToQn3nY626YEEsacsBwF\
    I4GQ-R1UO9U8kh5M1B2pm7VUBec775TsfQAvWCWqf1kdL1YU_SUxRw3CroqAINZXbNNK2OftLLYIYfzCnUBJZ8jz\
    HygjVVE6yARILFQ3WLhqWBdhQKZ2T5Ui0mdlHPU5hpAzNNdykM-il6nko6bQvsfgxBagXmed9mWA5Q";
const PS384_HEAD: &str = "eyJhbGciOiAiUFMzODQifQ";
const PS384_SIGNATURE: &str = "FUVRQLgOBMJjBHCN1TN2hEi1YsACfs1IZyZcAYEgHZYFaaseqPtzd9r7jy3AqAd5Jpnrjd-yYRo_jDNCyTgl-T4g\
    gzindK85SAVJD9TyTIFTw6s5mYnWPZcrewgTzuEBCULPppIeLol6HKEbFgiMYEJTlG0DPJGcf1nXuZMQeAk3VS1T\
    pBeFK5B-vZPcFq6WHZ4GjuBRFoWS9mLOGkxg0GCAAIgbTIIeAdwN302lhCsmIQd2EpmCpoJ-kX3rqXbMFmDo8Di_\
    k8q8N6EVzCRbIdwTQwb1mjUbHoMf_Z6LcdXMVRaZhd9zOPl9_ge4uONlHS_TPE-1KwWRjGoqAeFsOg";
