//! Signed assertions (RFC 7515, RFC 7523) of a client that has a key.
//!
//! Owns: reading a private key, signing claims. Never does: check a signature.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use crate::model::Error;

/// The signature algorithms of JWTs that keys can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// ECDSA over P-256 with SHA-256.
    Es256,
    /// RSA with PKCS #1 v1.5 and SHA-256.
    Rs256,
    /// Ed25519, which JWTs call `EdDSA`.
    EdDsa,
}

impl Algorithm {
    /// All of them, the usual one first.
    pub const ALL: [Self; 3] = [Self::Es256, Self::Rs256, Self::EdDsa];

    /// The registered name for the `alg` of a JWT.
    pub fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Rs256 => "RS256",
            Self::EdDsa => "EdDSA",
        }
    }
}

/// A private key that signs JWTs.
pub(super) enum SigningKey {
    Ec(EcdsaKeyPair),
    Rsa(RsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl SigningKey {
    /// Reads a key in PEM. `wanted` is how it has to sign; by what it is when not given.
    ///
    /// # Errors
    /// When it is none, or of another kind. The text is never quoted.
    pub(super) fn read(pem: &SecretString, wanted: Option<Algorithm>) -> Result<Self, Error> {
        let (label, der) = decode_pem(pem.expose_secret()).ok_or_else(|| {
            Error::auth("the private key is not in PEM format")
                .with_hint("it starts with -----BEGIN PRIVATE KEY-----")
        })?;
        if label == "EC PRIVATE KEY" || label == "ENCRYPTED PRIVATE KEY" {
            return Err(Error::auth(format!(
                "the private key is a '{label}', which is not supported"
            ))
            .with_hint("convert it: openssl pkcs8 -topk8 -nocrypt -in KEY -out KEY.pk8"));
        }
        let algorithms = match wanted {
            Some(wanted) => vec![wanted],
            None => Algorithm::ALL.to_vec(),
        };
        let key = algorithms.iter().find_map(|algorithm| Self::of(*algorithm, &der));
        key.ok_or_else(|| {
            let names: Vec<&str> = algorithms.iter().map(|algorithm| algorithm.name()).collect();
            Error::auth(format!("the private key cannot sign with {}", names.join(", ")))
                .with_hint("ES256 takes keys on P-256, RS256 of 2048 bits and more, EdDSA Ed25519")
        })
    }

    fn of(algorithm: Algorithm, der: &[u8]) -> Option<Self> {
        match algorithm {
            Algorithm::Es256 => {
                let (kind, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
                EcdsaKeyPair::from_pkcs8(kind, der, &random).ok().map(Self::Ec)
            }
            Algorithm::Rs256 => {
                let key = RsaKeyPair::from_pkcs8(der).or_else(|_| RsaKeyPair::from_der(der));
                key.ok().map(Self::Rsa)
            }
            Algorithm::EdDsa => Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).ok().map(Self::Ed),
        }
    }

    fn algorithm(&self) -> Algorithm {
        match self {
            Self::Ec(_) => Algorithm::Es256,
            Self::Rsa(_) => Algorithm::Rs256,
            Self::Ed(_) => Algorithm::EdDsa,
        }
    }

    /// These claims, signed. `header` is added to `alg`.
    ///
    /// # Errors
    /// When the system provides no random numbers.
    pub(super) fn sign(&self, mut header: Value, claims: &Value) -> Result<SecretString, Error> {
        header["alg"] = self.algorithm().name().into();
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", encode(&header), encode(claims));
        let (random, failed) = (SystemRandom::new(), |_| Error::internal("signing failed"));
        let signature = match self {
            Self::Ec(key) => key.sign(&random, text.as_bytes()).map_err(failed)?.as_ref().to_vec(),
            Self::Ed(key) => key.sign(text.as_bytes()).as_ref().to_vec(),
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, text.as_bytes(), &mut signature)
                    .map_err(failed)?;
                signature
            }
        };
        Ok(SecretString::from(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))))
    }
}

/// How long an assertion holds, in seconds.
const ASSERTION_LIFETIME_SECS: u64 = 300;

/// The assertion by which a client proves who it is to `audience`; `now` in seconds since the Unix
/// epoch.
///
/// # Errors
/// See [`SigningKey::sign`].
pub(super) fn client_assertion(
    key: &SigningKey,
    client_id: &str,
    audience: &str,
    now: u64,
) -> Result<SecretString, Error> {
    let claims = json!({
        "iss": client_id,
        "sub": client_id,
        "aud": audience,
        "iat": now,
        "exp": now + ASSERTION_LIFETIME_SECS,
        "jti": uuid::Uuid::new_v4().to_string(),
    });
    key.sign(json!({ "typ": "JWT" }), &claims)
}

/// The label and the content of the first block of a PEM text.
fn decode_pem(pem: &str) -> Option<(&str, Vec<u8>)> {
    let (_, rest) = pem.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once("-----END ")?;
    let body: String = body.split_whitespace().collect();
    Some((label, STANDARD.decode(body).ok()?))
}

#[cfg(test)]
mod tests {
    use ring::signature::{
        ECDSA_P256_SHA256_FIXED, ED25519, KeyPair as _, UnparsedPublicKey, VerificationAlgorithm,
    };

    use super::*;

    fn pem(der: &[u8]) -> SecretString {
        let body = STANDARD.encode(der);
        format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n").into()
    }

    fn check(key: &SigningKey, public: &[u8], algorithm: &'static dyn VerificationAlgorithm) {
        let jwt = client_assertion(key, "me", "https://as.example", 1000).unwrap();
        let (text, signature) = jwt.expose_secret().rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        UnparsedPublicKey::new(algorithm, public).verify(text.as_bytes(), &signature).unwrap();
        let (header, claims) = text.split_once('.').unwrap();
        let read = |part: &str| -> Value {
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
        };
        assert_eq!(read(header)["alg"], key.algorithm().name());
        let claims = read(claims);
        assert_eq!((&claims["iss"], &claims["aud"]), (&json!("me"), &json!("https://as.example")));
        assert_eq!((&claims["sub"], &claims["exp"]), (&json!("me"), &json!(1300)));
    }

    #[test]
    fn what_is_signed_can_be_checked() {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let key = SigningKey::read(&pem(der.as_ref()), None).unwrap();
        let SigningKey::Ec(pair) = &key else { panic!("another kind") };
        check(&key, pair.public_key().as_ref(), &ECDSA_P256_SHA256_FIXED);

        let der = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let key = SigningKey::read(&pem(der.as_ref()), Some(Algorithm::EdDsa)).unwrap();
        let SigningKey::Ed(pair) = &key else { panic!("another kind") };
        check(&key, pair.public_key().as_ref(), &ED25519);
        assert!(SigningKey::read(&pem(der.as_ref()), Some(Algorithm::Es256)).is_err());
    }

    #[test]
    fn what_is_no_key_is_refused_without_a_quote() {
        for text in ["hunter2", "-----BEGIN PRIVATE KEY-----\nhunter2!\n-----END PRIVATE KEY-----"]
        {
            let error = SigningKey::read(&text.into(), None).err().unwrap();
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
        let old = "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----";
        let error = SigningKey::read(&old.into(), None).err().unwrap();
        assert!(error.hint().unwrap().contains("openssl"));
    }
}
