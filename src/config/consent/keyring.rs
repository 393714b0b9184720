//! `${keyring:NAME}`: a secret from the system's keychain.
//!
//! `NAME` is an account of the service `toolhost`; `SERVICE/ACCOUNT` names another service.

use crate::config::expanded::ExpandedValues;
use crate::model::Diagnostic;
use crate::util::keychain::KeychainError;

const SERVICE: &str = "toolhost";
const MAX_SECRET_BYTES: usize = 64 << 10;

/// The secret for a name, from the keychain that `read` queries. It is recorded in `expanded`, so
/// that it is masked in all output and records.
pub(super) fn secret(
    name: &str,
    read: impl FnOnce(&str, &str) -> Result<Option<Vec<u8>>, KeychainError>,
    expanded: &ExpandedValues,
) -> Result<String, Diagnostic> {
    let (service, account) = name.split_once('/').unwrap_or((SERVICE, name));
    if service.is_empty() || account.is_empty() {
        return Err(Diagnostic::error("${keyring:…} needs a name")
            .with_hint("write ${keyring:ACCOUNT} or ${keyring:SERVICE/ACCOUNT}"));
    }
    let stored = read(service, account).map_err(|why| {
        let is_built = !matches!(why, KeychainError::NotBuilt);
        Diagnostic::error(format!("${{keyring:{name}}}: {why}")).with_hint(if is_built {
            "unlock the keychain, or use ${VAR} or ${file:PATH} instead"
        } else {
            "build toolhost with '--features keyring', or use ${VAR} or ${file:PATH} instead"
        })
    })?;
    let Some(bytes) = stored else {
        let message =
            format!("the keychain has no secret for the account '{account}' of '{service}'");
        return Err(Diagnostic::error(message).with_hint(how_to_keep(service, account)));
    };
    if bytes.len() > MAX_SECRET_BYTES {
        return Err(Diagnostic::error(format!("${{keyring:{name}}} is larger than 64 KiB")));
    }
    let secret = String::from_utf8(bytes)
        .map_err(|_| Diagnostic::error(format!("${{keyring:{name}}} is not UTF-8 text")))?;
    expanded.keychain(name, &secret);
    Ok(secret)
}

fn how_to_keep(service: &str, account: &str) -> String {
    if cfg!(target_os = "macos") {
        format!("security add-generic-password -s '{service}' -a '{account}' -w")
    } else {
        format!("secret-tool store --label '{account}' service '{service}' username '{account}'")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored_secret(service: &str, account: &str) -> Option<Vec<u8>> {
        match (service, account) {
            ("toolhost", "TOKEN") => Some(b"s3cret".to_vec()),
            ("gh", "me/x") => Some(b"12345".to_vec()),
            ("toolhost", "BYTES") => Some(vec![0xff]),
            ("toolhost", "FULL") => Some(vec![b'x'; MAX_SECRET_BYTES]),
            ("toolhost", "LONG") => Some(vec![b'x'; MAX_SECRET_BYTES + 1]),
            _ => None,
        }
    }

    fn read(service: &str, account: &str) -> Result<Option<Vec<u8>>, KeychainError> {
        if service == "locked" {
            Err(KeychainError::NotBuilt)
        } else {
            Ok(stored_secret(service, account))
        }
    }

    #[test]
    fn a_secret_is_found_by_account_or_by_service_and_account_and_is_recorded() {
        let expanded = ExpandedValues::default();
        assert_eq!(secret("TOKEN", read, &expanded).unwrap(), "s3cret");
        assert_eq!(secret("gh/me/x", read, &expanded).unwrap(), "12345");
        assert_eq!(secret("FULL", read, &expanded).unwrap().len(), MAX_SECRET_BYTES);
        assert!(expanded.occur_in("a s3cret b") && expanded.occur_in("12345"));
    }

    #[test]
    fn what_is_missing_is_said_with_the_way_to_get_it() {
        let expanded = ExpandedValues::default();
        let error = secret("locked/TOKEN", read, &expanded).unwrap_err();
        assert!(error.message.contains("without the feature 'keyring'"), "{}", error.message);
        assert!(error.hint.unwrap().contains("--features keyring"));
        let why = |name| secret(name, read, &expanded).unwrap_err();
        let none = why("OTHER");
        assert_eq!(
            none.message,
            "the keychain has no secret for the account 'OTHER' of 'toolhost'"
        );
        let hint = none.hint.unwrap();
        assert!(hint.contains("'toolhost'") && hint.contains("'OTHER'"), "{hint}");
        assert!(why("/x").message.contains("needs a name"));
        assert!(why("BYTES").message.contains("not UTF-8"));
        assert!(why("LONG").message.contains("64 KiB"));
    }
}
