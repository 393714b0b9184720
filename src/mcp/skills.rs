//! Skills that a server offers (extension `io.modelcontextprotocol/skills`).
//!
//! Owns: listing them, and loading one with the checks that make it worth trusting: every file has
//! the size and digest that the list gave, and `SKILL.md` says of itself what the list said. Never
//! does: fetch a file before somebody loads it, use one that fails a check, or follow a skill.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::connection::{Connection, RequestOptions};
use super::listing::{self, Item, List};
use super::news::URI_LIMIT;
use super::offer::Fields;
use super::offering;
use crate::config::node::SourceText;
use crate::config::parse;
use crate::model::{Fault, JsonObject, Offered};
use crate::util::base64;

/// The extension by which a server declares that it has skills.
pub const EXTENSION: &str = "io.modelcontextprotocol/skills";
/// How many files one skill may list.
const FILES: usize = 1_000;
/// The line that begins and ends a frontmatter.
const FENCE: &str = "---";

/// A skill, as its server lists it. All of it is the server's own words.
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
    /// Its address.
    pub uri: String,
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// Its length in bytes.
    pub size: u64,
}

impl Item for Skill {
    const LIST: List = List {
        method: "skills/list",
        field: "skills",
        capability: EXTENSION,
        one: "skill",
        many: "skills",
        undeclared: false,
        optional: false,
    };

    fn read(_server: &str, _: Box<RawValue>, item: Value, _modern: bool) -> Result<Self, String> {
        let fields = Fields::of("skill", &item)?;
        let uri = fields.name("uri", URI_LIMIT)?.to_owned();
        let bad = |what: &str| format!("skill \"{uri}\": {what}");
        let frontmatter = match item.get("frontmatter") {
            Some(Value::Object(map)) if map.get("name").is_some_and(Value::is_string) => {
                map.clone()
            }
            _ => return Err(bad("it has no frontmatter with a name")),
        };
        let files = match item.get("resources") {
            Some(Value::String(word)) if word == "dynamic" => None,
            Some(Value::Array(items)) if items.len() > FILES => {
                return Err(bad(&format!("it lists {} files; {FILES} are allowed", items.len())));
            }
            Some(list @ Value::Array(_)) => Some(
                Vec::<SkillFile>::deserialize(list)
                    .map_err(|error| bad(&format!("its files cannot be read: {error}")))?,
            ),
            _ => return Err(bad("it lists no files")),
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
) -> Result<Offered<Skill>, Fault> {
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
) -> Result<String, Fault> {
    let bytes = file(connection, server, skill, &skill.uri, options).await?;
    checked(skill, bytes).map_err(|why| refused(&skill.uri, &why).server(server))
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
) -> Result<Vec<u8>, Fault> {
    let listed = skill.files.as_ref().map(|files| files.iter().find(|file| file.uri == uri));
    if let Some(None) = listed {
        return Err(Fault::usage(format!("the skill does not list {uri}")).server(server));
    }
    let read = offering::read(connection, server, uri, options).await?;
    let bytes = bytes(&read.contents).ok_or_else(|| refused(uri, "it is not one file"));
    let bytes = bytes.map_err(|fault| fault.server(server))?;
    match listed.flatten().and_then(|file| file.differs(&bytes)) {
        Some(why) => Err(refused(uri, &why).server(server)),
        None => Ok(bytes),
    }
}

impl SkillFile {
    /// Why these bytes are not this file.
    fn differs(&self, bytes: &[u8]) -> Option<String> {
        if bytes.len() as u64 != self.size {
            return Some(format!("it has {} bytes, listed were {}", bytes.len(), self.size));
        }
        let mut digest = "sha256:".to_owned();
        for byte in Sha256::digest(bytes) {
            // Writing to a String cannot fail.
            let _infallible = write!(digest, "{byte:02x}");
        }
        (digest != self.digest)
            .then(|| format!("its digest is {digest}, listed was {}", self.digest))
    }
}

fn refused(uri: &str, why: &str) -> Fault {
    Fault::protocol(format!("{uri} is not used: {why}"))
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
fn checked(skill: &Skill, bytes: Vec<u8>) -> Result<String, String> {
    let text = String::from_utf8(bytes).map_err(|_| "it is no text".to_owned())?;
    let said = frontmatter(&text)?;
    let keys = skill.frontmatter.keys().chain(said.keys());
    let other = keys.into_iter().find(|key| skill.frontmatter.get(*key) != said.get(*key));
    match other {
        Some(key) => Err(format!("its '{key}' is not the one that was listed")),
        None => Ok(text),
    }
}

/// The YAML between the fences at the start of a `SKILL.md`.
fn frontmatter(text: &str) -> Result<JsonObject, String> {
    let mut lines = text.strip_prefix('\u{feff}').unwrap_or(text).lines();
    if lines.next().map(str::trim_end) != Some(FENCE) {
        return Err("it does not begin with a frontmatter".to_owned());
    }
    let mut yaml = String::new();
    loop {
        match lines.next() {
            Some(line) if line.trim_end() == FENCE => break,
            Some(line) => {
                yaml.push_str(line);
                yaml.push('\n');
            }
            None => return Err("its frontmatter has no end".to_owned()),
        }
    }
    let parsed = parse::parse(&SourceText::new("SKILL.yaml", &yaml), &yaml)
        .map_err(|problem| format!("its frontmatter cannot be read: {}", problem.message))?;
    match (parsed.duplicates.is_empty(), parsed.root.to_json()) {
        (true, Value::Object(map)) => Ok(map),
        (true, _) => Err("its frontmatter has no keys".to_owned()),
        (false, _) => Err("its frontmatter has a key twice".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEXT: &str = "---\nname: pdf\ndescription: Fills in forms\nversion: 2\n---\n\nHow to.\n";
    const DIGEST: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn read(item: &Value) -> Result<Skill, String> {
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
        assert_eq!(file.differs(b"abc"), None);
        assert!(file.differs(b"abcd").unwrap().contains("4 bytes, listed were 3"));
        assert!(file.differs(b"abd").unwrap().contains("digest"));
    }

    #[test]
    fn a_skill_says_of_itself_what_the_list_says() {
        assert_eq!(checked(&skill(), TEXT.into()).unwrap(), TEXT);
        for (from, to, words) in [
            ("Fills in forms", "Sends them away", "its 'description'"),
            ("version: 2\n", "", "its 'version'"),
            ("version: 2\n", "version: 2\nmodel: any\n", "its 'model'"),
            ("name: pdf", "name: pdf\nname: pdf", "twice"),
            ("---\n\nHow", "\n\nHow", "no end"),
            ("---\nname", "name", "does not begin"),
            ("name: pdf", "name: [", "cannot be read"),
        ] {
            let why = checked(&skill(), TEXT.replacen(from, to, 1).into()).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
        assert!(checked(&skill(), vec![0xff]).is_err());
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
            let why = read(&item).unwrap_err();
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
