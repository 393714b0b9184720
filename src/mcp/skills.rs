//! Skills of a server (extension `io.modelcontextprotocol/skills`).
//!
//! Owns: listing them, and loading one with the checks that make it trustworthy: every file has
//! the listed size and digest, and the frontmatter of `SKILL.md` matches the list. Never
//! does: fetch a file before its skill is loaded, use one that fails a check, or follow a skill.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::connection::{Connection, RequestOptions};
use super::item_error::{ItemError, SkillListingError};
use super::listing::{self, ListSpec, Listable};
use super::notifications::URI_LIMIT;
use super::offering_items::ItemFields;
use super::offering_requests;
use crate::config::node::SourceText;
use crate::config::parse;
use crate::model::{Error, JsonObject, OfferingListing};
use crate::util::base64;

/// The extension by which a server declares that it has skills.
pub const EXTENSION: &str = "io.modelcontextprotocol/skills";
/// How many files one skill may list.
const MAX_FILES: usize = 1_000;
/// The line that begins and ends a frontmatter.
const FRONTMATTER_DELIMITER: &str = "---";

/// A skill, as its server lists it. All text in it comes from the server.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    /// The address of its `SKILL.md`.
    pub uri: String,
    /// Its frontmatter: `name`, `description` and what else its author wrote.
    pub frontmatter: JsonObject,
    /// Its files, `SKILL.md` included; `None` when they change too often to be listed.
    pub files: Option<Vec<SkillFile>>,
}

/// One file of a skill, and what its bytes must be.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SkillFile {
    /// The address to read the file from.
    pub uri: String,
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// The length of the file in bytes.
    pub size: u64,
}

impl Listable for Skill {
    const LIST: ListSpec = ListSpec {
        method: "skills/list",
        field: "skills",
        capability: EXTENSION,
        singular: "skill",
        plural: "skills",
        is_requested_undeclared: false,
        is_method_optional: false,
    };

    fn read(
        _server: &str,
        _: Box<RawValue>,
        item: Value,
        _modern: bool,
    ) -> Result<Self, ItemError> {
        let fields = ItemFields::of("skill", &item)?;
        let uri = fields.name("uri", URI_LIMIT)?.to_owned();
        let bad = |flaw| ItemError::InvalidSkill { uri: uri.clone(), flaw };
        let frontmatter = match item.get("frontmatter") {
            Some(Value::Object(map)) if map.get("name").is_some_and(Value::is_string) => {
                map.clone()
            }
            _ => return Err(bad(SkillListingError::NoFrontmatter)),
        };
        let files = match item.get("resources") {
            Some(Value::String(word)) if word == "dynamic" => None,
            Some(Value::Array(items)) if items.len() > MAX_FILES => {
                let count = items.len();
                return Err(bad(SkillListingError::TooManyFiles { count, limit: MAX_FILES }));
            }
            Some(list @ Value::Array(_)) => Some(
                Vec::<SkillFile>::deserialize(list)
                    .map_err(|error| bad(SkillListingError::UnreadableFiles(error.to_string())))?,
            ),
            _ => return Err(bad(SkillListingError::NoFiles)),
        };
        Ok(Self { uri, frontmatter, files })
    }

    fn key(&self) -> &str {
        &self.uri
    }
}

/// Lists the skills; none when the server does not declare the extension. No file is fetched.
///
/// # Errors
/// When not even the first page could be had.
pub async fn list(
    connection: &Connection,
    server: &str,
    timeout: Duration,
) -> Result<OfferingListing<Skill>, Error> {
    listing::all(connection, server, timeout).await
}

/// Loads a skill: its `SKILL.md`, checked against the list.
///
/// # Errors
/// As [`file()`]; and when the frontmatter is not the one that was listed.
pub async fn load(
    connection: &Connection,
    server: &str,
    skill: &Skill,
    options: &RequestOptions,
) -> Result<String, Error> {
    let bytes = file(connection, server, skill, &skill.uri, options).await?;
    verify_text(skill, bytes).map_err(|why| invalid_skill(&skill.uri, &why).with_server(server))
}

/// Fetches one file of a skill that was loaded, checked against the list.
///
/// # Errors
/// When the skill does not list it, when it cannot be read, and when its bytes are not the ones
/// that were listed.
pub async fn file(
    connection: &Connection,
    server: &str,
    skill: &Skill,
    uri: &str,
    options: &RequestOptions,
) -> Result<Vec<u8>, Error> {
    let listed = skill.files.as_ref().map(|files| files.iter().find(|file| file.uri == uri));
    if let Some(None) = listed {
        return Err(Error::usage(format!("the skill does not list {uri}")).with_server(server));
    }
    let read = offering_requests::read(connection, server, uri, options).await?;
    let bytes =
        bytes(&read.contents).ok_or_else(|| invalid_skill(uri, &SkillFileError::NotOneFile));
    let bytes = bytes.map_err(|error| error.with_server(server))?;
    match listed.flatten().and_then(|file| file.mismatch(&bytes)) {
        Some(why) => Err(invalid_skill(uri, &why).with_server(server)),
        None => Ok(bytes),
    }
}

impl SkillFile {
    /// Why these bytes are not this file.
    fn mismatch(&self, bytes: &[u8]) -> Option<SkillFileError> {
        if bytes.len() as u64 != self.size {
            return Some(SkillFileError::WrongSize { came: bytes.len(), listed: self.size });
        }
        let mut digest = "sha256:".to_owned();
        for byte in Sha256::digest(bytes) {
            // Writing to a String cannot fail.
            let _infallible = write!(digest, "{byte:02x}");
        }
        (digest != self.digest)
            .then(|| SkillFileError::WrongDigest { came: digest, listed: self.digest.clone() })
    }
}

/// Why a file of a skill is not used although it could be fetched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum SkillFileError {
    /// The resource has no part, several parts, or one that is neither text nor base64.
    #[error("it is not one file")]
    NotOneFile,
    /// Another number of bytes than the list says.
    #[error("it has {came} bytes, but {listed} were listed")]
    WrongSize { came: usize, listed: u64 },
    /// Other bytes than the list says.
    #[error("its digest is {came}, but {listed} was listed")]
    WrongDigest { came: String, listed: String },
    /// A `SKILL.md` that is not UTF-8.
    #[error("it is not text")]
    NotText,
    /// A key of the frontmatter that the list has with another value, or not at all.
    #[error("its '{0}' is not the one that was listed")]
    OtherFrontmatter(String),
    /// A `SKILL.md` whose first line is not the delimiter.
    #[error("it does not start with frontmatter")]
    NoFrontmatter,
    /// A `SKILL.md` without a second delimiter.
    #[error("its frontmatter does not end")]
    EndlessFrontmatter,
    /// YAML that cannot be parsed, with the parser's message.
    #[error("its frontmatter cannot be read: {0}")]
    UnreadableFrontmatter(String),
    /// YAML that is not a mapping.
    #[error("its frontmatter has no keys")]
    FrontmatterWithoutKeys,
    /// YAML that says two things of one key.
    #[error("its frontmatter has a key twice")]
    DuplicateKey,
}

fn invalid_skill(uri: &str, why: &SkillFileError) -> Error {
    Error::protocol(format!("{uri} is not used: {why}"))
}

/// The bytes of a resource that is one file.
fn bytes(contents: &[Value]) -> Option<Vec<u8>> {
    let [part] = contents else { return None };
    match (part.get("text").and_then(Value::as_str), part.get("blob").and_then(Value::as_str)) {
        (Some(text), None) => Some(text.as_bytes().to_vec()),
        (None, Some(blob)) => base64::decode(blob),
        _ => None,
    }
}

/// The text of a `SKILL.md` whose frontmatter is the listed one.
fn verify_text(skill: &Skill, bytes: Vec<u8>) -> Result<String, SkillFileError> {
    let text = String::from_utf8(bytes).map_err(|_| SkillFileError::NotText)?;
    let said = frontmatter(&text)?;
    let keys = skill.frontmatter.keys().chain(said.keys());
    let other = keys.into_iter().find(|key| skill.frontmatter.get(*key) != said.get(*key));
    match other {
        Some(key) => Err(SkillFileError::OtherFrontmatter(key.clone())),
        None => Ok(text),
    }
}

/// The YAML between the fences at the start of a `SKILL.md`.
fn frontmatter(text: &str) -> Result<JsonObject, SkillFileError> {
    let mut lines = text.strip_prefix('\u{feff}').unwrap_or(text).lines();
    if lines.next().map(str::trim_end) != Some(FRONTMATTER_DELIMITER) {
        return Err(SkillFileError::NoFrontmatter);
    }
    let mut yaml = String::new();
    loop {
        match lines.next() {
            Some(line) if line.trim_end() == FRONTMATTER_DELIMITER => break,
            Some(line) => {
                yaml.push_str(line);
                yaml.push('\n');
            }
            None => return Err(SkillFileError::EndlessFrontmatter),
        }
    }
    let parsed = parse::parse(&SourceText::new("SKILL.yaml", &yaml), &yaml)
        .map_err(|diagnostic| SkillFileError::UnreadableFrontmatter(diagnostic.message))?;
    match (parsed.duplicates.is_empty(), parsed.root.to_json()) {
        (true, Value::Object(map)) => Ok(map),
        (true, _) => Err(SkillFileError::FrontmatterWithoutKeys),
        (false, _) => Err(SkillFileError::DuplicateKey),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEXT: &str = "---\nname: pdf\ndescription: Fills in forms\nversion: 2\n---\n\nHow to.\n";
    const DIGEST: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn read(item: &Value) -> Result<Skill, ItemError> {
        Skill::read("s", serde_json::value::to_raw_value(item).unwrap(), item.clone(), true)
    }

    fn skill() -> Skill {
        let frontmatter = json!({ "description": "Fills in forms", "version": 2, "name": "pdf" });
        read(&json!({ "uri": "skill://pdf/SKILL.md", "frontmatter": frontmatter, "resources": [] }))
            .unwrap()
    }

    #[test]
    fn a_file_is_what_was_listed_or_nothing() {
        let file = SkillFile { uri: "skill://a".to_owned(), digest: DIGEST.to_owned(), size: 3 };
        assert_eq!(file.mismatch(b"abc"), None);
        assert!(file.mismatch(b"abcd").unwrap().to_string().contains("4 bytes, but 3 were listed"));
        assert!(file.mismatch(b"abd").unwrap().to_string().contains("digest"));
    }

    #[test]
    fn a_skill_says_of_itself_what_the_list_says() {
        assert_eq!(verify_text(&skill(), TEXT.into()).unwrap(), TEXT);
        for (from, to, words) in [
            ("Fills in forms", "Sends them away", "its 'description'"),
            ("version: 2\n", "", "its 'version'"),
            ("version: 2\n", "version: 2\nmodel: any\n", "its 'model'"),
            ("name: pdf", "name: pdf\nname: pdf", "twice"),
            ("---\n\nHow", "\n\nHow", "does not end"),
            ("---\nname", "name", "does not start"),
            ("name: pdf", "name: [", "cannot be read"),
        ] {
            let why = verify_text(&skill(), TEXT.replacen(from, to, 1).into()).unwrap_err();
            assert!(why.to_string().contains(words), "{why}");
        }
        assert!(verify_text(&skill(), vec![0xff]).is_err());
    }

    #[test]
    fn what_is_no_skill_says_why() {
        let named = json!({ "name": "pdf" });
        for (item, words) in [
            (json!(1), "not an object"),
            (json!({}), "no uri"),
            (json!({ "uri": "skill://a" }), "no frontmatter"),
            (json!({ "uri": "skill://a", "frontmatter": {} }), "no frontmatter"),
            (json!({ "uri": "skill://a", "frontmatter": named }), "no files"),
            (json!({ "uri": "skill://a", "frontmatter": named, "resources": [1] }), "files"),
        ] {
            let why = read(&item).unwrap_err().to_string();
            assert!(why.contains(words), "{why}");
        }
        let moving = json!({ "uri": "skill://a", "frontmatter": named, "resources": "dynamic" });
        assert_eq!(read(&moving).unwrap().files, None);
    }

    #[test]
    fn a_file_comes_as_text_or_as_base64_and_as_one_part() {
        assert_eq!(bytes(&[json!({ "text": "abc" })]).unwrap(), b"abc");
        assert_eq!(bytes(&[json!({ "blob": "YWJj" })]).unwrap(), b"abc");
        assert_eq!(bytes(&[]), None);
        assert_eq!(bytes(&[json!({ "text": "a" }), json!({ "text": "b" })]), None);
    }
}
