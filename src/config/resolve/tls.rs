//! `tls` of a server: the files with a client's certificate and with authorities.

use std::path::Path;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;

use crate::config::typed::{self, Located};
use crate::model::Diagnostic;
use crate::util::regular_file;
use crate::util::tls::TlsPem;

const MAX_BYTES: u64 = 1 << 20;

/// Certificates for the connection to a server.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
pub struct TlsKeys {
    /// A PEM file with the certificate to present, followed by those that lead to its authority.
    cert: Option<Located<String>>,
    /// A PEM file with the private key of cert, not encrypted.
    key: Option<Located<String>>,
    /// A PEM file with the authorities to accept for this server in place of the system's.
    ca: Option<Located<String>>,
}

impl TlsKeys {
    /// The files that are read.
    pub fn files(&self) -> impl Iterator<Item = String> {
        [&self.cert, &self.key, &self.ca].into_iter().flatten().map(|path| path.value.clone())
    }
}

/// The content of the files, if a connection can be made with it.
pub fn read(
    keys: &Located<TlsKeys>,
    is_encrypted: bool,
    base_dir: &Path,
) -> Result<TlsPem, Diagnostic> {
    if !is_encrypted {
        return Err(keys.error("'tls' needs an https or wss URL"));
    }
    let text = |name: &str, path: &Located<String>| {
        regular_file::text(&base_dir.join(&path.value), MAX_BYTES)
            .map_err(|why| path.error(format!("in 'tls.{name}': cannot read the file: {why}")))
    };
    let certificates = |name: &str, path: &Located<String>, pem: &str| {
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
        match all {
            Ok(all) if !all.is_empty() => Ok(all),
            Ok(_) => Err(path.error(format!("in 'tls.{name}': no PEM certificate in the file"))),
            Err(why) => Err(path.error(format!("in 'tls.{name}': {why}"))),
        }
    };
    let identity = match (&keys.cert, &keys.key) {
        (Some(cert), Some(key)) => {
            let (chain, private) = (text("cert", cert)?, text("key", key)?);
            let certificates = certificates("cert", cert, &chain)?;
            let parsed = PrivateKeyDer::from_pem_slice(private.as_bytes()).map_err(|_| {
                key.error("in 'tls.key': no unencrypted PEM private key in the file")
            })?;
            CertifiedKey::from_der(certificates, parsed, &ring::default_provider())
                .map_err(|why| key.error(format!("in 'tls.key': it does not fit 'cert': {why}")))?;
            Some(SecretString::from(format!("{chain}\n{private}")))
        }
        (Some(cert), None) => return Err(cert.error("'tls.cert' needs 'key'")),
        (None, Some(key)) => return Err(key.error("'tls.key' needs 'cert'")),
        (None, None) => None,
    };
    let authorities = keys.ca.as_ref().map(|ca| {
        let pem = text("ca", ca)?;
        certificates("ca", ca, &pem).map(|_| pem)
    });
    Ok(TlsPem { identity, authorities: authorities.transpose()? })
}
