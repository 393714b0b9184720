//! Sender-constrained tokens (DPoP, RFC 9449).
//!
//! Owns: the key and the proofs of possession. A token and its key are stored together; each login
//! gets its own key.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use url::Url;

use super::jwt::SigningKey;
use crate::model::Error;

/// How proofs are signed; every server that knows DPoP knows it.
pub(super) const ALGORITHM: &str = "ES256";

/// A key that tokens are bound to.
pub(super) struct ProofKey {
    key: SigningKey,
    /// The public half of the key, as a JWK.
    public: Value,
    /// The whole key pair, as stored.
    serialized: SecretString,
}

impl ProofKey {
    /// A new key.
    ///
    /// # Errors
    /// When the system provides no random numbers.
    pub(super) fn generate() -> Result<Self, Error> {
        let kind = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let der = EcdsaKeyPair::generate_pkcs8(kind, &SystemRandom::new()).ok();
        let key = der.and_then(|der| Self::restore(&URL_SAFE_NO_PAD.encode(der.as_ref())));
        key.ok_or_else(|| Error::internal("the system provides no random numbers"))
    }

    /// The key that was kept as this text; `None` when it is none.
    pub(super) fn restore(kept: &str) -> Option<Self> {
        let der = URL_SAFE_NO_PAD.decode(kept).ok()?;
        let kind = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair = EcdsaKeyPair::from_pkcs8(kind, &der, &SystemRandom::new()).ok()?;
        // An uncompressed point: a byte that says so, and both coordinates.
        let (x, y) = pair.public_key().as_ref().get(1..)?.split_at_checked(32)?;
        let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
        let public = json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y });
        Some(Self {
            key: SigningKey::Ec(pair),
            public,
            serialized: SecretString::from(kept.to_owned()),
        })
    }

    /// The key as stored.
    pub(super) fn serialized(&self) -> &str {
        self.serialized.expose_secret()
    }

    /// A proof for one request, with the token it goes with, if any.
    ///
    /// # Errors
    /// See [`SigningKey::sign`].
    pub(super) fn proof(
        &self,
        method: &str,
        url: &Url,
        (nonce, token): (Option<&str>, Option<&str>),
        now: u64,
    ) -> Result<SecretString, Error> {
        let mut place = url.clone();
        place.set_query(None);
        place.set_fragment(None);
        let mut claims = json!({
            "jti": uuid::Uuid::new_v4().to_string(),
            "htm": method,
            "htu": place.as_str(),
            "iat": now,
        });
        if let Some(nonce) = nonce {
            claims["nonce"] = nonce.into();
        }
        if let Some(token) = token {
            claims["ath"] = URL_SAFE_NO_PAD.encode(Sha256::digest(token.as_bytes())).into();
        }
        self.key.sign(json!({ "typ": "dpop+jwt", "jwk": self.public }), &claims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_names_the_request_and_carries_only_the_public_half() {
        let key = ProofKey::generate().unwrap();
        let again = ProofKey::restore(key.serialized()).unwrap();
        assert_eq!(key.public, again.public);
        let url = "https://mcp.example.com/mcp?key=1#x".parse().unwrap();
        let proof = again.proof("POST", &url, (Some("n-1"), Some("token")), 7).unwrap();
        let parts: Vec<Value> = proof
            .expose_secret()
            .split('.')
            .take(2)
            .map(|part| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap())
            .collect();
        assert_eq!((&parts[0]["typ"], &parts[0]["alg"]), (&json!("dpop+jwt"), &json!("ES256")));
        assert!(parts[0]["jwk"].get("d").is_none());
        assert_eq!(parts[1]["htu"], "https://mcp.example.com/mcp");
        assert_eq!((&parts[1]["nonce"], &parts[1]["iat"]), (&json!("n-1"), &json!(7)));
        // SHA-256 of "token".
        assert_eq!(parts[1]["ath"], "PEaenWxYddN6Q_NT1PiOYfz4EsZu7jRXRlpAsNpBU-A");
        assert!(ProofKey::restore("nonsense").is_none());
    }
}
