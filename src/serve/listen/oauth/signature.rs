//! The keys of an issuer and the signatures they make (RFC 7517, RFC 7518).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    self, ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RsaParameters,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use strum::AsRefStr;

/// The algorithms a token may be signed with: no `none`, and nothing with a shared secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, AsRefStr)]
pub enum TokenAlgorithm {
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    EdDSA,
}

#[derive(Debug, Clone, Deserialize)]
pub struct JsonWebKey {
    kty: String,
    pub(super) kid: Option<String>,
    /// The one algorithm it is for; absent allows all of its kind.
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub struct JsonWebKeys {
    pub(super) keys: Vec<JsonWebKey>,
}

impl JsonWebKey {
    /// Whether this key signed `text` in this way.
    pub(super) fn verifies(
        &self,
        algorithm: TokenAlgorithm,
        text: &[u8],
        signature: &[u8],
    ) -> bool {
        self.purpose.as_deref().is_none_or(|purpose| purpose == "sig")
            && self.alg.as_deref().is_none_or(|own| own == algorithm.as_ref())
            && self.check(algorithm, text, signature).is_some()
    }

    fn check(&self, algorithm: TokenAlgorithm, text: &[u8], signature: &[u8]) -> Option<()> {
        let rsa = |parameters: &'static RsaParameters| {
            let (n, e) = (decode(self.n.as_ref())?, decode(self.e.as_ref())?);
            let key = (self.kty == "RSA").then_some(RsaPublicKeyComponents { n, e })?;
            key.verify(parameters, text, signature).ok()
        };
        let curve = |name: &str, algorithm: &'static signature::EcdsaVerificationAlgorithm| {
            let (x, y) = (decode(self.x.as_ref())?, decode(self.y.as_ref())?);
            let is_fitting = self.kty == "EC" && self.crv.as_deref() == Some(name);
            let point = is_fitting.then(|| [&[4][..], &x, &y].concat())?;
            UnparsedPublicKey::new(algorithm, point).verify(text, signature).ok()
        };
        match algorithm {
            TokenAlgorithm::RS256 => rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
            TokenAlgorithm::RS384 => rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
            TokenAlgorithm::RS512 => rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
            TokenAlgorithm::PS256 => rsa(&signature::RSA_PSS_2048_8192_SHA256),
            TokenAlgorithm::PS384 => rsa(&signature::RSA_PSS_2048_8192_SHA384),
            TokenAlgorithm::PS512 => rsa(&signature::RSA_PSS_2048_8192_SHA512),
            TokenAlgorithm::ES256 => curve("P-256", &ECDSA_P256_SHA256_FIXED),
            TokenAlgorithm::ES384 => curve("P-384", &ECDSA_P384_SHA384_FIXED),
            TokenAlgorithm::EdDSA => {
                let is_fitting = self.kty == "OKP" && self.crv.as_deref() == Some("Ed25519");
                let key = is_fitting.then(|| decode(self.x.as_ref()))??;
                UnparsedPublicKey::new(&ED25519, key).verify(text, signature).ok()
            }
        }
    }
}

fn decode(text: Option<&String>) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text?).ok()
}
