//! The arguments of a call as written on the command line (`call NAME …`).

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::host::request::{ArgumentWord, CallArguments};
use crate::model::{Error, JsonObject, unreadable_file};
use crate::util::{base64, output_paths};

const MAX_BYTES: u64 = 16 << 20;

#[derive(Debug)]
pub struct RawArguments {
    /// The words after the name.
    pub words: Vec<String>,
    /// The value of `--args`.
    pub json_option: Option<String>,
    /// The directory relative file names are relative to.
    pub cwd: PathBuf,
}

impl RawArguments {
    /// Whether reading may block: on stdin, or on a named file that is a pipe.
    fn may_block(&self) -> bool {
        let whole = self.json_option.as_deref().is_some_and(|w| w == "-" || w.starts_with('@'));
        whole || self.words.iter().any(|word| word.contains("=@"))
    }

    /// Reads them, on a thread of their own where that may block: signals must still be handled.
    pub async fn read(self) -> Result<CallArguments, Error> {
        if !self.may_block() {
            return read(&self, &mut io::empty());
        }
        tokio::task::spawn_blocking(move || read(&self, &mut io::stdin()))
            .await
            .map_err(|error| Error::internal(format!("cannot read the arguments: {error}")))?
    }
}

/// Reads the arguments of a call; `stdin` is read for `--args -` only.
pub fn read(sources: &RawArguments, stdin: &mut dyn Read) -> Result<CallArguments, Error> {
    if let Some(whole) = &sources.json_option {
        if let Some(word) = sources.words.first() {
            return Err(Error::usage(format!("'{word}' and --args cannot both be given"))
                .with_hint("put all arguments into the object"));
        }
        return parse_object(&whole_text(whole, sources, stdin)?, "--args");
    }
    match &sources.words[..] {
        [word] if word.trim_start().starts_with('{') => parse_object(word, "the argument"),
        words => {
            let mut parsed: Vec<ArgumentWord> = Vec::with_capacity(words.len());
            for word in words {
                let word = parse(word, &sources.cwd)?;
                let key = word.key();
                if parsed.iter().any(|earlier| earlier.key() == key) {
                    return Err(Error::usage(format!("'{key}' is given twice"))
                        .with_hint(format!("pass a list as {key}:='[…]'")));
                }
                parsed.push(word);
            }
            Ok(CallArguments::Words(parsed))
        }
    }
}

fn whole_text(whole: &str, sources: &RawArguments, stdin: &mut dyn Read) -> Result<String, Error> {
    match whole.strip_prefix('@') {
        Some(file) => as_text(file_bytes(&sources.cwd.join(file), "--args")?)
            .map_err(|why| unreadable_file("--args", &sources.cwd.join(file), &why)),
        None if whole == "-" => bounded(stdin)
            .and_then(as_text)
            .map_err(|why| Error::usage(format!("--args: cannot read standard input: {why}"))),
        None => Ok(whole.to_owned()),
    }
}

fn parse_object(text: &str, what: &str) -> Result<CallArguments, Error> {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(map)) => Ok(CallArguments::Object(map)),
        Ok(_) => Err(Error::usage(format!("{what} must be a JSON object such as {{\"key\": 1}}"))),
        // Empty stdin means no arguments, as from a command that printed nothing.
        Err(_) if text.trim().is_empty() => Ok(CallArguments::Object(JsonObject::new())),
        Err(error) => Err(Error::usage(format!("{what} is not valid JSON: {error}"))),
    }
}

fn parse(word: &str, cwd: &Path) -> Result<ArgumentWord, Error> {
    let Some((key, value)) = word.split_once('=') else {
        let error = Error::usage(format!("'{word}' is not an argument: it has no '='"));
        return Err(if word == "-" || word.starts_with('@') {
            error.with_hint(format!("for the whole object, use --args {word}"))
        } else {
            error
                .with_hint("write key=value, key:=json, key=@file, or one object as '{\"key\": 1}'")
        });
    };
    let (key, json) = match key.strip_suffix(':') {
        Some(key) => (key, true),
        None => (key, false),
    };
    if key.is_empty() {
        return Err(Error::usage(format!("'{word}' has no key before '='")));
    }
    let text = match value.strip_prefix('@') {
        Some(literal) if literal.starts_with('@') => literal.to_owned(),
        Some(file) if !json => {
            let (path, key) = (cwd.join(file), key.to_owned());
            let base64 = base64::encode(&file_bytes(&path, &key)?);
            let media_type = output_paths::media_type(&path).to_owned();
            return Ok(ArgumentWord::File { key, base64, media_type });
        }
        Some(file) => as_text(file_bytes(&cwd.join(file), key)?)
            .map_err(|why| unreadable_file(key, &cwd.join(file), &why))?,
        None => value.to_owned(),
    };
    let key = key.to_owned();
    if !json {
        return Ok(ArgumentWord::Text { key, value: text });
    }
    match serde_json::from_str(&text) {
        Ok(value) => Ok(ArgumentWord::Json { key, value }),
        Err(cause) => Err(Error::usage(format!("'{key}' is not valid JSON: {cause}"))
            .with_hint(format!("for text, write {key}=value, not :="))),
    }
}

fn file_bytes(path: &Path, what: &str) -> Result<Vec<u8>, Error> {
    std::fs::File::open(path)
        .map_err(|error| error.to_string())
        .and_then(|mut file| bounded(&mut file))
        .map_err(|why| {
            unreadable_file(what, path, &why).with_hint(
                "a value that starts with '@' names a file; write '@@' for a literal '@'",
            )
        })
}

fn bounded(reader: &mut dyn Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    reader.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err("it is larger than 16 MiB".to_owned());
    }
    Ok(bytes)
}

fn as_text(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read_words(words: &[&str]) -> Result<CallArguments, Error> {
        let words = words.iter().map(|w| (*w).to_owned()).collect();
        let sources = RawArguments { words, json_option: None, cwd: PathBuf::from("/nowhere") };
        read(&sources, &mut io::empty())
    }

    fn read_whole(whole: &str, stdin: &str) -> Result<CallArguments, Error> {
        let sources = RawArguments {
            words: Vec::new(),
            json_option: Some(whole.to_owned()),
            cwd: PathBuf::from("/nowhere"),
        };
        read(&sources, &mut stdin.as_bytes())
    }

    fn words(arguments: CallArguments) -> Vec<ArgumentWord> {
        match arguments {
            CallArguments::Words(words) => words,
            CallArguments::Object(map) => panic!("an object: {map:?}"),
        }
    }

    fn map(arguments: CallArguments) -> Value {
        match arguments {
            CallArguments::Object(map) => Value::Object(map),
            CallArguments::Words(words) => panic!("words: {words:?}"),
        }
    }

    #[test]
    fn arguments_that_nest_too_deep_are_refused_wherever_they_come_from() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        let whole = |levels| format!("{{\"k\":{}}}", nested(levels));
        assert!(read_words(&[&format!("k:={}", nested(127))]).is_ok());
        assert!(read_whole(&whole(126), "").is_ok());
        for refused in [
            read_words(&[&format!("k:={}", nested(129))]),
            read_words(&[&whole(129)]),
            read_whole(&whole(129), ""),
            read_whole("-", &whole(129)),
        ] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind().exit_code(), 2);
            assert!(error.message().contains("recursion limit"), "{error}");
        }
    }

    #[test]
    fn text_stays_text_and_json_is_json() {
        let parsed = words(read_words(&["message=12", "n:=12", "x=a=b", "e="]).unwrap());
        let text = |key: &str, value: &str| ArgumentWord::Text {
            key: key.to_owned(),
            value: value.to_owned(),
        };
        assert_eq!(
            parsed,
            [
                text("message", "12"),
                ArgumentWord::Json { key: "n".to_owned(), value: json!(12) },
                text("x", "a=b"),
                text("e", ""),
            ]
        );
    }

    #[test]
    fn one_object_is_the_whole() {
        assert_eq!(map(read_words(&[r#"{"a":1}"#]).unwrap()), json!({ "a": 1 }));
        assert_eq!(map(read_whole(r#"{"a":1}"#, "").unwrap()), json!({ "a": 1 }));
        assert_eq!(map(read_whole("-", r#"{"b":2}"#).unwrap()), json!({ "b": 2 }));
        assert_eq!(map(read_whole("-", "").unwrap()), json!({}));
    }

    #[test]
    fn files_are_read_and_a_doubled_sign_is_literal() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("body"), "two\nlines\n").unwrap();
        std::fs::write(dir.path().join("n.json"), "[1]").unwrap();
        let list = ["a=@body", "b:=@n.json", "c=@@body"].map(str::to_owned).to_vec();
        let sources =
            RawArguments { words: list, json_option: None, cwd: dir.path().to_path_buf() };
        let parsed = words(read(&sources, &mut io::empty()).unwrap());
        let file = ArgumentWord::File {
            key: "a".to_owned(),
            base64: "dHdvCmxpbmVzCg==".to_owned(),
            media_type: "application/octet-stream".to_owned(),
        };
        assert_eq!(parsed[0], file);
        assert!(matches!(&parsed[1], ArgumentWord::Json { value, .. } if *value == json!([1])));
        assert!(matches!(&parsed[2], ArgumentWord::Text { value, .. } if value == "@body"));
    }

    #[test]
    fn what_cannot_be_understood_is_a_usage_error_and_a_lost_file_is_not() {
        for list in [
            &["message"][..],
            &["=x"],
            &[":=1"],
            &["n:=abc"],
            &["a=1", "a=2"],
            &["{\"a\":1}", "b=2"],
            &["{broken"],
        ] {
            let error = read_words(list).unwrap_err();
            assert_eq!(error.kind().exit_code(), 2, "{list:?}");
        }
        for whole in ["[1]", "{", "\"text\""] {
            assert_eq!(read_whole(whole, "").unwrap_err().kind().exit_code(), 2, "{whole}");
        }
        assert_eq!(read_words(&["a=@missing"]).unwrap_err().kind().exit_code(), 9);
        assert_eq!(read_whole("@missing", "").unwrap_err().kind().exit_code(), 9);
    }

    #[test]
    fn too_large_an_input_is_refused() {
        let sources = RawArguments {
            words: Vec::new(),
            json_option: Some("-".to_owned()),
            cwd: PathBuf::new(),
        };
        let error = read(&sources, &mut io::repeat(b' ')).unwrap_err();
        assert!(error.message().contains("16 MiB"), "{error}");
    }

    proptest! {
        #[test]
        fn any_text_survives_as_a_value(key in "[a-z_][a-z0-9_.-]{0,8}", value in "[^@].*") {
            let word = format!("{key}={value}");
            let parsed = words(read_words(&[&word]).unwrap());
            prop_assert_eq!(parsed, [ArgumentWord::Text { key, value }]);
        }

        #[test]
        fn no_word_panics(list in proptest::collection::vec(any::<String>(), 0..4)) {
            let list: Vec<&str> = list.iter().map(String::as_str).collect();
            let _outcome = read_words(&list);
        }
    }
}
