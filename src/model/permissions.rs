//! What a server may offer and use, and which secrets it gets: by name, never by value.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Error;
use crate::util::pattern;

/// How a credential is sent.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CredentialKind {
    /// The `Authorization: Bearer` header of a request.
    Bearer,
    /// A request header, named by the credential.
    Header,
    /// An API key in a header, `X-API-Key` unless the credential names another.
    ApiKey,
    /// An environment variable of a program.
    Env,
    /// A login by a person.
    #[serde(rename = "oauth")]
    #[strum(serialize = "oauth")]
    OAuth,
    /// A login by the program itself (OAuth).
    ClientCredentials,
}

impl CredentialKind {
    /// Every kind, in the order of messages.
    pub const ALL: [Self; 6] =
        [Self::Bearer, Self::Header, Self::ApiKey, Self::Env, Self::OAuth, Self::ClientCredentials];

    /// Reads the word used in files.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// A credential of an entry: its handle, and how it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct CredentialUse {
    /// The name under `credentials` of a file.
    pub handle: String,
    /// How the credential is sent.
    #[serde(rename = "type")]
    pub kind: CredentialKind,
}

impl std::fmt::Display for CredentialUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.handle, self.kind.as_str())
    }
}

/// What a server's entry allows it to offer and use. `None` means unrestricted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct ServerPermissions {
    /// Patterns of the tools that are listed and may be called.
    pub tools: Option<Vec<String>>,
    /// Patterns of the prompts that are listed and may be filled in.
    pub prompts: Option<Vec<String>>,
    /// Patterns of the addresses or names of resources that are listed and may be read.
    pub resources: Option<Vec<String>>,
    /// Whether its program may use the network.
    pub network: Option<bool>,
    /// The kinds of credentials it may get.
    pub credentials: Option<Vec<CredentialKind>>,
}

impl ServerPermissions {
    /// Whether a tool may be listed and called.
    pub fn allows_tool(&self, name: &str) -> bool {
        allows(self.tools.as_deref(), [name])
    }

    /// Whether a prompt may be listed and filled in.
    pub fn allows_prompt(&self, name: &str) -> bool {
        allows(self.prompts.as_deref(), [name])
    }

    /// Whether a resource with these addresses and names may be listed and read.
    pub fn allows_resource<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> bool {
        allows(self.resources.as_deref(), names)
    }

    /// All restrictions, as lines for people.
    pub fn lines(&self) -> Vec<String> {
        let patterns = |name: &str, patterns: &Option<Vec<String>>| {
            let patterns = patterns.as_ref()?;
            let listed = if patterns.is_empty() { "none".to_owned() } else { patterns.join(", ") };
            Some(format!("{name}: {listed}"))
        };
        let kinds = self.credentials.as_ref().map(|kinds| {
            kinds.iter().map(|kind| kind.as_str().to_owned()).collect::<Vec<String>>()
        });
        let network = self.network.map(|on| format!("network: {}", if on { "yes" } else { "no" }));
        let lines = [
            patterns("tools", &self.tools),
            patterns("prompts", &self.prompts),
            patterns("resources", &self.resources),
            patterns("credentials", &kinds),
            network,
        ];
        lines.into_iter().flatten().collect()
    }
}

fn allows<'n>(patterns: Option<&[String]>, names: impl IntoIterator<Item = &'n str>) -> bool {
    let Some(patterns) = patterns else { return true };
    names.into_iter().any(|name| patterns.iter().any(|p| pattern::matches(p, name)))
}

/// Something that a server offers and its entry withholds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WithheldItem {
    /// The server's own name for it, or its address.
    pub name: String,
    /// The error of a request for it.
    pub reason: Error,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_is_free_and_an_empty_list_allows_nothing() {
        let free = ServerPermissions::default();
        assert!(free.allows_tool("a") && free.allows_prompt("a") && free.allows_resource(["a:b"]));
        assert!(free.lines().is_empty());
        let some = ServerPermissions {
            tools: Some(vec!["read_*".to_owned()]),
            prompts: Some(Vec::new()),
            resources: Some(vec!["note:*".to_owned()]),
            network: Some(false),
            credentials: Some(vec![CredentialKind::Bearer, CredentialKind::OAuth]),
        };
        assert!(some.allows_tool("read_x") && !some.allows_tool("write"));
        assert!(!some.allows_prompt("greet"));
        assert!(some.allows_resource(["file:x", "note:x"]) && !some.allows_resource(["file:x"]));
        assert_eq!(
            some.lines(),
            [
                "tools: read_*",
                "prompts: none",
                "resources: note:*",
                "credentials: bearer, oauth",
                "network: no"
            ]
        );
    }
}
