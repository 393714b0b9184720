//! Certificates for one server.

use secrecy::SecretString;

/// As PEM, which was checked when it was read.
#[derive(Debug, Clone, Default)]
pub struct TlsPem {
    /// What this side presents: a certificate with its chain, and its private key.
    pub identity: Option<SecretString>,
    /// The authorities that are accepted in place of the system's.
    pub authorities: Option<String>,
}
