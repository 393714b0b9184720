//! Words that are meant for a model and against its user, and paths of secrets.
//!
//! Letters are compared in lower case, white space is one blank, and invisible characters are
//! left out, so that neither line breaks nor zero-width characters hide a phrase. Lets pass:
//! ordinary markup in descriptions (`<example>`, `<use_case>`), "always", "must" and the like,
//! which honest authors shout too, and "ignore" of anything but instructions.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::hidden::around;
use super::{Found, Severity};
use crate::util::text::is_invisible;

/// Verbs that put instructions out of force.
const VERBS: [&str; 5] = ["ignore", "disregard", "forget", "override", "bypass"];
/// What is put out of force.
const ORDERS: [&str; 7] =
    ["instruction", "instructions", "prompt", "prompts", "directives", "guidelines", "guardrails"];
/// Whose.
const WHOSE: [&str; 8] =
    ["previous", "prior", "above", "earlier", "your", "all", "system", "preceding"];

const AGAINST: &str = "it asks for something behind the user's back";
const TAG: &str = "it imitates the markup of a prompt";
const FIRST: &str = "it claims to come before other tools";
const LEAK: &str = "it asks for what other tools or the conversation hold";

/// Phrases, in lower case.
const PHRASES: &[(&str, Severity, &str)] = &[
    ("do not tell the user", Severity::High, AGAINST),
    ("don't tell the user", Severity::High, AGAINST),
    ("never tell the user", Severity::High, AGAINST),
    ("not inform the user", Severity::High, AGAINST),
    ("don't inform the user", Severity::High, AGAINST),
    ("do not mention this", Severity::High, AGAINST),
    ("don't mention this", Severity::High, AGAINST),
    ("do not mention that you", Severity::High, AGAINST),
    ("without telling the user", Severity::High, AGAINST),
    ("without informing the user", Severity::High, AGAINST),
    ("without the user knowing", Severity::High, AGAINST),
    ("hide this from the user", Severity::High, AGAINST),
    ("keep this from the user", Severity::High, AGAINST),
    ("do not let the user know", Severity::High, AGAINST),
    ("do not show this to the user", Severity::High, AGAINST),
    ("the user must not know", Severity::High, AGAINST),
    ("the user should not know", Severity::High, AGAINST),
    ("ignore previous", Severity::Medium, "it puts instructions of others out of force"),
    ("<important>", Severity::High, TAG),
    ("<hidden>", Severity::High, TAG),
    ("<secret>", Severity::High, TAG),
    ("<|im_start|>", Severity::High, TAG),
    ("<|system|>", Severity::High, TAG),
    ("<<sys>>", Severity::High, TAG),
    ("[inst]", Severity::High, TAG),
    ("<system-reminder>", Severity::High, TAG),
    ("<system_prompt>", Severity::High, TAG),
    ("<system>", Severity::Medium, TAG),
    ("<instructions>", Severity::Medium, TAG),
    ("<critical>", Severity::Medium, TAG),
    ("<admin>", Severity::Medium, TAG),
    ("new instructions:", Severity::Medium, "it gives a model instructions"),
    ("exfiltrate", Severity::Medium, LEAK),
    ("full conversation history", Severity::Medium, LEAK),
    ("entire conversation history", Severity::Medium, LEAK),
    ("contents of your system prompt", Severity::High, LEAK),
    ("your system prompt", Severity::Medium, LEAK),
    ("before using any other tool", Severity::Low, FIRST),
    ("before calling any other tool", Severity::Low, FIRST),
    ("instead of any other tool", Severity::Low, FIRST),
];

/// Places where secrets are kept, in lower case.
const SECRETS: &[(&str, Severity)] = &[
    ("~/.ssh", Severity::Medium),
    (".ssh/", Severity::Medium),
    ("id_rsa", Severity::Medium),
    ("id_ed25519", Severity::Medium),
    ("id_ecdsa", Severity::Medium),
    (".aws/credentials", Severity::Medium),
    ("/etc/shadow", Severity::Medium),
    ("/etc/passwd", Severity::Medium),
    (".netrc", Severity::Medium),
    (".npmrc", Severity::Medium),
    (".pypirc", Severity::Medium),
    (".git-credentials", Severity::Medium),
    (".kube/config", Severity::Medium),
    (".docker/config.json", Severity::Medium),
    (".gnupg", Severity::Medium),
    (".bash_history", Severity::Medium),
    (".zsh_history", Severity::Medium),
    ("wallet.dat", Severity::Medium),
    (".cursor/mcp.json", Severity::Medium),
    ("claude_desktop_config.json", Severity::Medium),
    (".env", Severity::Low),
];

/// Everything that is looked for, in the order of [`PHRASES`], [`VERBS`] and [`SECRETS`].
static FINDERS: LazyLock<Vec<Finder<'static>>> = LazyLock::new(|| {
    let phrases = PHRASES.iter().map(|(phrase, _, _)| *phrase);
    let secrets = SECRETS.iter().map(|(path, _)| *path);
    phrases.chain(VERBS).chain(secrets).map(Finder::new).collect()
});

pub(super) fn check(text: &str, found: &mut Found) {
    // Nothing in the lists is shorter.
    const SHORTEST: usize = 4;
    if text.len() < SHORTEST {
        return;
    }
    let plain = Plain::of(text);
    let mut finders = FINDERS.iter();
    for ((_, severity, why), finder) in PHRASES.iter().zip(finders.by_ref().take(PHRASES.len())) {
        if let Some(at) = plain.find(finder, 0) {
            found.add(*severity, "instructions", &around(text, plain.origin(at)), *why);
        }
    }
    for finder in finders.by_ref().take(VERBS.len()) {
        let mut from = 0;
        while let Some(at) = plain.find(finder, from) {
            from = at + finder.needle().len();
            if plain.dismisses(from) {
                let why = "it puts instructions of others out of force";
                found.add(Severity::High, "instructions", &around(text, plain.origin(at)), why);
                break;
            }
        }
    }
    for ((_, severity), finder) in SECRETS.iter().zip(finders) {
        if let Some(at) = plain.find(finder, 0) {
            let quote = around(text, plain.origin(at));
            found.add(*severity, "secrets", &quote, "it names a place where secrets are kept");
        }
    }
}

/// Text in lower case with one blank for all white space and nothing invisible, and where each of
/// its bytes came from.
struct Plain {
    text: String,
    origins: Vec<u32>,
}

impl Plain {
    fn of(text: &str) -> Self {
        let mut plain = Self {
            text: String::with_capacity(text.len()),
            origins: Vec::with_capacity(text.len()),
        };
        for (at, c) in text.char_indices() {
            let c = match c {
                c if c.is_whitespace() => ' ',
                '’' => '\'',
                c if is_invisible(c) => continue,
                c => c.to_ascii_lowercase(),
            };
            if c == ' ' && plain.text.ends_with(' ') {
                continue;
            }
            plain.text.push(c);
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            plain.origins.resize(plain.text.len(), at);
        }
        plain
    }

    /// Where a phrase begins that is no part of longer words.
    fn find(&self, finder: &Finder<'_>, from: usize) -> Option<usize> {
        let phrase = finder.needle();
        let first = phrase.first().copied().map(char::from);
        let last = phrase.last().copied().map(char::from);
        let mut from = from;
        loop {
            let at = from + finder.find(self.text.as_bytes().get(from..)?)?;
            let edge = |neighbour: Option<char>, inside: Option<char>| {
                !(neighbour.is_some_and(is_word) && inside.is_some_and(is_word))
            };
            let before = self.text.get(..at).and_then(|head| head.chars().next_back());
            let after = self.text.get(at + phrase.len()..).and_then(|rest| rest.chars().next());
            let dotted = first == Some('.') && before.is_some_and(is_word);
            if edge(before, first) && edge(after, last) && !dotted {
                return Some(at);
            }
            from = at + 1;
        }
    }

    /// Where a byte came from.
    fn origin(&self, at: usize) -> usize {
        self.origins.get(at).map_or(0, |at| *at as usize)
    }

    /// Whether the few words from here on name instructions, and whose.
    fn dismisses(&self, from: usize) -> bool {
        const WORDS: usize = 7;
        let rest = self.text.get(from..).unwrap_or_default();
        let mut whose = false;
        let words = rest.split(|c: char| !is_word(c)).filter(|word| !word.is_empty());
        for word in words.take(WORDS) {
            if ORDERS.contains(&word) {
                return whose;
            }
            whose |= WHOSE.contains(&word);
        }
        false
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
