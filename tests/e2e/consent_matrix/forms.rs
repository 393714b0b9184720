//! Every form in which a text of the files can refer to something outside of it.

use std::path::Path;

use super::entries::Reach;
use crate::support::Sandbox;

/// The beginning of every planted value; a number and a 'z' follow.
pub const STEM: &str = "canary";

/// One form of reference, and where in the text it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// A variable is the whole text; its value is an address that listens.
    Variable,
    /// The long spelling; the value is the path of a program.
    EnvVariable,
    /// A variable with a default.
    Default,
    /// A file is the whole text.
    File,
    /// An entry of the keyring.
    Keyring,
    /// The name of a variable alone, for keys that want one.
    Name,
    /// A variable in the middle of an address that listens.
    InUrl,
    /// A file in the middle of an address that listens.
    FileInUrl,
    /// A variable in the middle of a path.
    InPath,
    /// The home directory.
    Tilde,
}

impl Form {
    pub const ALL: [Self; 10] = [
        Self::Variable,
        Self::EnvVariable,
        Self::Default,
        Self::File,
        Self::Keyring,
        Self::Name,
        Self::InUrl,
        Self::FileInUrl,
        Self::InPath,
        Self::Tilde,
    ];

    /// The text of case `number`. What it refers to is planted in the room; a variable is returned
    /// for the environment.
    pub fn plant(
        self,
        number: usize,
        room: &Sandbox,
        reach: &Reach<'_>,
    ) -> (String, Option<(String, String)>) {
        let value = format!("{STEM}{number:05}z");
        let name = format!("MX_{number}");
        let file = room.path(&format!("planted/{number}"));
        let shown = file.display();
        let url = |inner: &str| format!("http://{}/e{number}/{inner}/b", reach.authority);
        let variable = |text: String, value: String| (text, Some((name.clone(), value)));
        let write = |path: &Path| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{value}\n")).unwrap();
        };
        match self {
            Self::Variable => {
                let address = format!("http://{}/{value}", reach.authority);
                variable(format!("${{{name}}}"), address)
            }
            Self::EnvVariable => {
                let path = room.path("planted").join(&value);
                reach.recorder.name(&path);
                variable(format!("${{env:{name}}}"), path.display().to_string())
            }
            Self::Default => variable(format!("${{{name}:-x}}"), value),
            Self::File => {
                write(&file);
                (format!("${{file:{shown}}}"), None)
            }
            Self::Keyring => (format!("${{keyring:mx/{number}}}"), None),
            Self::Name => variable(name.clone(), value),
            Self::InUrl => variable(url(&format!("${{{name}}}")), value),
            Self::FileInUrl => {
                write(&file);
                (url(&format!("${{file:{shown}}}")), None)
            }
            Self::InPath => variable(format!("./a/${{{name}}}/b"), value),
            Self::Tilde => {
                reach.recorder.name(&room.path(&format!("home/x{number}")));
                (format!("~/x{number}"), None)
            }
        }
    }
}
