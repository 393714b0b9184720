//! Calls saved under a name: `call --save-as NAME`, the console, `run NAME`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::{Error, check_name, unreadable_file};
use crate::util::atomic_file::{self, FileMode};
use crate::util::spelling::nearest;
use crate::util::{private_file, regular_file, units};

const FILE: &str = "saved-calls.json";
const MAX_BYTES: u64 = 4 << 20;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedCall {
    pub tool: String,
    /// Its arguments, as typed; a file in `key=@file` is read again each time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server: Vec<String>,
    /// The value of `--timeout`, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
}

impl SavedCall {
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout_ms.map(Duration::from_millis)
    }

    pub fn words_with(&self, overrides: &[String]) -> Vec<String> {
        let replaced = |word: &&String| overrides.iter().any(|other| key(other) == key(word));
        self.words.iter().filter(|word| !replaced(word)).chain(overrides).cloned().collect()
    }

    /// The command line that makes the call, without the program's name.
    pub fn command_words(&self) -> Vec<String> {
        let mut words = vec!["call".to_owned(), self.tool.clone()];
        words.extend(self.words.iter().cloned());
        let mut option = |name: &str, value: &str| {
            words.extend([name.to_owned(), value.to_owned()]);
        };
        self.args.iter().for_each(|args| option("--args", args));
        self.server.iter().for_each(|server| option("--server", server));
        self.timeout().iter().for_each(|time| option("--timeout", &units::show_duration(*time)));
        self.retries.iter().for_each(|count| option("--retries", &count.to_string()));
        self.query.iter().for_each(|query| option("--query", query));
        words
    }
}

fn key(word: &str) -> &str {
    let key = word.split_once('=').map_or(word, |(key, _)| key);
    key.strip_suffix(':').unwrap_or(key)
}

#[derive(Debug)]
pub struct SavedCalls {
    path: PathBuf,
    pub calls: BTreeMap<String, SavedCall>,
}

impl SavedCalls {
    /// Reads the saved calls; none if the file does not exist.
    pub fn open(config_dir: Option<&Path>) -> Result<Self, Error> {
        let directory = config_dir
            .ok_or_else(|| Error::config("there is no configuration directory for saved calls"))?;
        Self::read(&directory.join(FILE))
    }

    fn read(path: &Path) -> Result<Self, Error> {
        if !path.exists() {
            return Ok(Self { path: path.to_path_buf(), calls: BTreeMap::new() });
        }
        let bytes = regular_file::bytes(path, MAX_BYTES).map_err(|why| {
            unreadable_file("saved calls", path, &why).with_hint("move it away to start over")
        })?;
        let calls = serde_json::from_slice(&bytes).map_err(|why| {
            Error::config(format!("{} is damaged: {why}", path.display()))
                .with_hint("fix it, or move it away")
        })?;
        Ok(Self { path: path.to_path_buf(), calls })
    }

    pub fn get(&self, name: &str) -> Result<&SavedCall, Error> {
        self.calls.get(name).ok_or_else(|| {
            let error = Error::usage(format!("no call is saved as '{name}'"));
            match nearest(name, self.calls.keys().map(String::as_str)) {
                Some(near) => error.with_hint(format!("did you mean '{near}'?")),
                None if self.calls.is_empty() => {
                    error.with_hint("save one: toolhost call NAME [ARGS] --save-as NAME")
                }
                None => error.with_hint("'toolhost run' lists them"),
            }
        })
    }

    /// Saves a call under a name; returns the previous one, if any.
    pub fn save(&mut self, name: &str, call: SavedCall) -> Result<Option<SavedCall>, Error> {
        check_name(name).map_err(|error| Error::usage(format!("cannot save the call: {error}")))?;
        self.change(|calls| calls.insert(name.to_owned(), call))
    }

    pub fn remove(&mut self, name: &str) -> Result<(), Error> {
        self.get(name)?;
        self.change(|calls| calls.remove(name)).map(drop)
    }

    fn change<T>(
        &mut self,
        change: impl FnOnce(&mut BTreeMap<String, SavedCall>) -> T,
    ) -> Result<T, Error> {
        let failed = |why: std::io::Error| {
            Error::internal(format!("cannot write {}: {why}", self.path.display()))
        };
        if let Some(directory) = self.path.parent() {
            private_file::make_directory(directory).map_err(failed)?;
        }
        let _turn = atomic_file::lock(&self.path).map_err(failed)?;
        let mut now = Self::read(&self.path)?;
        let changed = change(&mut now.calls);
        let text = serde_json::to_vec_pretty(&now.calls)
            .map_err(|error| Error::internal(error.to_string()))?;
        atomic_file::replace(&self.path, &text, FileMode::Private).map_err(failed)?;
        *self = now;
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_kept_replaced_and_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config").join(FILE);
        let call = |tool: &str| SavedCall {
            tool: tool.to_owned(),
            words: vec!["a=1".to_owned(), "b:=2".to_owned()],
            args: None,
            server: Vec::new(),
            timeout_ms: Some(1500),
            retries: None,
            query: None,
        };
        let mut calls = SavedCalls::read(&path).unwrap();
        calls.save("one", call("x")).unwrap();
        // Another process has read the file before that.
        SavedCalls { path: path.clone(), calls: BTreeMap::new() }.save("two", call("y")).unwrap();
        assert_eq!(calls.save("one", call("z")).unwrap().unwrap().tool, "x");
        assert_eq!(SavedCalls::read(&path).unwrap().calls.len(), 2);
        assert_eq!(calls.get("one").unwrap().tool, "z");
        assert!(calls.get("on").unwrap_err().hint().unwrap().contains("'one'"));
        assert!(calls.save("no name", call("x")).is_err());
        calls.remove("one").unwrap();
        assert!(calls.remove("one").is_err());
        let overrides = ["b=3".to_owned(), "c=4".to_owned()];
        assert_eq!(calls.get("two").unwrap().words_with(&overrides), ["a=1", "b=3", "c=4"]);
        assert_eq!(
            calls.get("two").unwrap().command_words(),
            ["call", "y", "a=1", "b:=2", "--timeout", "1.50 s"]
        );
    }
}
