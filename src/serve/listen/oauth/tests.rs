//! Tokens of an issuer: what is valid, and every way in which one may be wrong.

use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
};
use serde_json::json;

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
    assert_eq!((read.subject.as_str(), read.client.as_str()), ("ada", "editor"));
    assert_eq!(read.scopes, ["tools", "other"]);
    // A minute of difference between clocks is allowed.
    for (key, value) in [("exp", json!(941)), ("nbf", json!(1_060))] {
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
        ("exp", json!(940)),
        ("exp", json!(null)),
        ("exp", json!("2000")),
        ("exp", json!(-1)),
        ("nbf", json!(1_061)),
        ("nbf", json!("0")),
        ("sub", json!(null)),
        ("sub", json!("")),
        ("client_id", json!(null)),
        ("client_id", json!("")),
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
fn a_token_has_a_bound() {
    const MOST: usize = 16 << 10;
    let head = encode(json!({ "alg": "ES256" }).to_string());
    for (length, is_read) in [(MOST, true), (MOST + 1, false)] {
        let token = format!("{head}.{}.", "x".repeat(length - head.len() - 2));
        assert_eq!(UncheckedToken::read(&token).is_some(), is_read, "{length}");
    }
}

#[test]
fn a_key_is_unknown_when_it_is_named_and_not_among_the_keys() {
    let issuer = EcIssuer::new();
    let own = keys(&json!([issuer.jwk()]));
    for (id, is_known) in [(json!("one"), true), (json!("two"), false), (json!(null), true)] {
        let token = issuer.sign(&json!({ "alg": "ES256", "kid": id }), &claims());
        assert_eq!(UncheckedToken::read(&token).unwrap().is_key_known(&own), is_known, "{id}");
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
    // The same bytes, said to be of another curve or of another kind.
    for (kind, curve) in [("OKP", "X25519"), ("EC", "Ed25519")] {
        let jwk = json!([{ "kty": kind, "crv": curve, "x": encode(pair.public_key()) }]);
        assert_eq!(check(&token, &keys(&jwk)), None, "{kind} {curve}");
    }

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
    let own: Url = "http://127.0.0.1:1/mcp".parse().unwrap();
    let slash = vec![format!("{AUDIENCE}/")];
    let slash = ProtectedResource::new(ISSUER, own.clone(), slash, Vec::new()).unwrap();
    assert!(slash.metadata(&format!("{METADATA_PATH}/mcp")).is_some());
    let audiences = vec![AUDIENCE.to_owned(), "api://t".to_owned()];
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
            client: "editor".into(),
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

const RSA_N: &str = "o6VVps2ox01wRg9aTtD4ukayke2KzRYRp60jDZ3PMXCebGCimtm6DkcXYJLfzRwphtkIfzMgJ9eZYTgWxVi0dOir\
    7cGhgRu9CppxtEEOM7CW6OHlCFFF6UeBxkISO0NdXpY2I0DvhA888Ty3YpamjsbsDqtd29KJPG4rcIhfW6ICpM5x\
    0B5_WOwIr0PkIAzqxzkmRLE4JeHnPbIMpYBwMx27LfV_mgXIhn5jbevqH_8JSTMpVBFawYqjT6kM3hOTNt_qg2T_\
    mE9dgRinE_pjfLivlgmF8XYKSIFEfRhF7HMooSHbgbAzzJ3uRTCeTllQNWWQgnAV3m8_-ZaDGVNjIw";
const RSA_CLAIMS: &str = "eyJpc3MiOiAiaHR0cHM6Ly9hcy5leGFtcGxlIiwgImF1ZCI6ICJodHRwczovL3QuZXhhbXBsZS9tY3AiLCAiZXhw\
    IjogMjAwMCwgInN1YiI6ICJhZGEiLCAiY2xpZW50X2lkIjogImVkaXRvciJ9";
const RS256_HEAD: &str = "eyJhbGciOiAiUlMyNTYifQ";
const RS256_SIGNATURE: &str = "RoBUDc3Gb2eHJjNzOUX5EnrDstsNGd9n_U6-EMkb-1SWY1dX5fpHObEf1RWQ8wiYV99dlDmYF08S7aE5TKwNDurv\
    dml-cgysQNUKB0jldEIsZ0_F9uLPZf2a2GyPYOI8rDwbBGn1eLBv2WAxDzKu4y6wSklKJlgBiwpfvBB1d9IyQcAF\
    xYOb-A-hyQ8UBc5sw32TVxLdoWX1Z3cH7qtOe0KpzGQEBfKqLghiDcnhLGzcM7yKyP0-zwZWjIIgDhawxnaa4mCD\
    NiQsYXxGsIlCakH4KilxUajC1tuq2kcB6Pgh9afldZEQ14DR6TmcgTf0_7RNvE8o_43MYeRqb1A4Bw";
const PS384_HEAD: &str = "eyJhbGciOiAiUFMzODQifQ";
const PS384_SIGNATURE: &str = "fSbLcv2tN0UjH0IWc56rdwHdIo8j67ap_4z9GNG7rd4Tz8ViopUSDZdmhkfYLG8tmWvTT_0V_ctKI-MloOW2-bVQ\
    j1hEqDrzokZeffR2agjnNM-MLKesXbEWvrYNUqL-bslmqubSXtxnfwoOlNqYxSioGBhCfVgEIE_EmvQ6OG6jtGWY\
    fO90hG-2lQu8uRlcT9cyigF8tlXjGvkKxTPMzL1VYwcSe5BRHiy1gqCWia-SiacVwS8h_jBPSENoQcJYKRDBE5_4\
    9D5I3XYn9FnZq1wy_Om9opaqxxB5k35aCUSqA8cWNYM1mVJHn5n_9-74e_eTwP9miVQI-MHgHIbh1Q";
