//! Prompt-injection phrases, and paths of secrets.
//!
//! Letters are compared in lower case, white space is one blank, and invisible characters are
//! left out, so that neither line breaks nor zero-width characters hide a phrase. Lets pass:
//! ordinary markup in descriptions (`<example>`, `<use_case>`), "always", "must" and the like,
//! which honest authors shout too, and "ignore" of anything but instructions.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::hidden::around;
use super::{FindingCollector, FindingSeverity};
use crate::util::text::is_invisible;

/// Verbs that override instructions.
const VERBS: [&str; 5] = ["ignore", "disregard", "forget", "override", "bypass"];
/// What those verbs would override.
const INSTRUCTION_NOUNS: [&str; 7] =
    ["instruction", "instructions", "prompt", "prompts", "directives", "guidelines", "guardrails"];
/// Words that, before such a noun, mean the instructions a model already has.
const POSSESSIVES: [&str; 8] =
    ["previous", "prior", "above", "earlier", "your", "all", "system", "preceding"];

const BEHIND_USERS_BACK: &str = "it asks for something behind the user's back";
const TAG: &str = "it imitates prompt markup";
const CLAIMS_PRIORITY: &str = "it claims priority over other tools";
const LEAK: &str = "it asks for data of other tools or the conversation";

/// Suspicious phrases in lower case, each with its severity and reason.
const PHRASES: &[(&str, FindingSeverity, &str)] = &[
    ("do not tell the user", FindingSeverity::High, BEHIND_USERS_BACK),
    ("don't tell the user", FindingSeverity::High, BEHIND_USERS_BACK),
    ("never tell the user", FindingSeverity::High, BEHIND_USERS_BACK),
    ("not inform the user", FindingSeverity::High, BEHIND_USERS_BACK),
    ("don't inform the user", FindingSeverity::High, BEHIND_USERS_BACK),
    ("do not mention this", FindingSeverity::High, BEHIND_USERS_BACK),
    ("don't mention this", FindingSeverity::High, BEHIND_USERS_BACK),
    ("do not mention that you", FindingSeverity::High, BEHIND_USERS_BACK),
    ("without telling the user", FindingSeverity::High, BEHIND_USERS_BACK),
    ("without informing the user", FindingSeverity::High, BEHIND_USERS_BACK),
    ("without the user knowing", FindingSeverity::High, BEHIND_USERS_BACK),
    ("hide this from the user", FindingSeverity::High, BEHIND_USERS_BACK),
    ("keep this from the user", FindingSeverity::High, BEHIND_USERS_BACK),
    ("do not let the user know", FindingSeverity::High, BEHIND_USERS_BACK),
    ("do not show this to the user", FindingSeverity::High, BEHIND_USERS_BACK),
    ("the user must not know", FindingSeverity::High, BEHIND_USERS_BACK),
    ("the user should not know", FindingSeverity::High, BEHIND_USERS_BACK),
    ("ignore previous", FindingSeverity::Medium, "it overrides other instructions"),
    ("<important>", FindingSeverity::High, TAG),
    ("<hidden>", FindingSeverity::High, TAG),
    ("<secret>", FindingSeverity::High, TAG),
    ("<|im_start|>", FindingSeverity::High, TAG),
    ("<|system|>", FindingSeverity::High, TAG),
    ("<<sys>>", FindingSeverity::High, TAG),
    ("[inst]", FindingSeverity::High, TAG),
    ("<system-reminder>", FindingSeverity::High, TAG),
    ("<system_prompt>", FindingSeverity::High, TAG),
    ("<system>", FindingSeverity::Medium, TAG),
    ("<instructions>", FindingSeverity::Medium, TAG),
    ("<critical>", FindingSeverity::Medium, TAG),
    ("<admin>", FindingSeverity::Medium, TAG),
    ("new instructions:", FindingSeverity::Medium, "it gives a model instructions"),
    ("exfiltrate", FindingSeverity::Medium, LEAK),
    ("full conversation history", FindingSeverity::Medium, LEAK),
    ("entire conversation history", FindingSeverity::Medium, LEAK),
    ("contents of your system prompt", FindingSeverity::High, LEAK),
    ("your system prompt", FindingSeverity::Medium, LEAK),
    ("before using any other tool", FindingSeverity::Low, CLAIMS_PRIORITY),
    ("before calling any other tool", FindingSeverity::Low, CLAIMS_PRIORITY),
    ("instead of any other tool", FindingSeverity::Low, CLAIMS_PRIORITY),
];

/// Places where secrets are kept, in lower case.
const SECRETS: &[(&str, FindingSeverity)] = &[
    ("~/.ssh", FindingSeverity::Medium),
    (".ssh/", FindingSeverity::Medium),
    ("id_rsa", FindingSeverity::Medium),
    ("id_ed25519", FindingSeverity::Medium),
    ("id_ecdsa", FindingSeverity::Medium),
    (".aws/credentials", FindingSeverity::Medium),
    ("/etc/shadow", FindingSeverity::Medium),
    ("/etc/passwd", FindingSeverity::Medium),
    (".netrc", FindingSeverity::Medium),
    (".npmrc", FindingSeverity::Medium),
    (".pypirc", FindingSeverity::Medium),
    (".git-credentials", FindingSeverity::Medium),
    (".kube/config", FindingSeverity::Medium),
    (".docker/config.json", FindingSeverity::Medium),
    (".gnupg", FindingSeverity::Medium),
    (".bash_history", FindingSeverity::Medium),
    (".zsh_history", FindingSeverity::Medium),
    ("wallet.dat", FindingSeverity::Medium),
    (".cursor/mcp.json", FindingSeverity::Medium),
    ("claude_desktop_config.json", FindingSeverity::Medium),
    (".env", FindingSeverity::Low),
];

/// Everything that is looked for, in the order of [`PHRASES`], [`VERBS`] and [`SECRETS`].
static FINDERS: LazyLock<Vec<Finder<'static>>> = LazyLock::new(|| {
    let phrases = PHRASES.iter().map(|(phrase, _, _)| *phrase);
    let secrets = SECRETS.iter().map(|(path, _)| *path);
    phrases.chain(VERBS).chain(secrets).map(Finder::new).collect()
});

pub(super) fn check(text: &str, found: &mut FindingCollector) {
    // Nothing in the lists is shorter.
    const SHORTEST: usize = 4;
    if text.len() < SHORTEST {
        return;
    }
    let plain = NormalizedText::of(text);
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
            if plain.names_instructions(from) {
                let why = "it overrides other instructions";
                found.add(
                    FindingSeverity::High,
                    "instructions",
                    &around(text, plain.origin(at)),
                    why,
                );
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
struct NormalizedText {
    text: String,
    origins: Vec<u32>,
}

impl NormalizedText {
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
    fn names_instructions(&self, from: usize) -> bool {
        const WORDS: usize = 7;
        let rest = self.text.get(from..).unwrap_or_default();
        let mut whose = false;
        let words = rest.split(|c: char| !is_word(c)).filter(|word| !word.is_empty());
        for word in words.take(WORDS) {
            if INSTRUCTION_NOUNS.contains(&word) {
                return whose;
            }
            whose |= POSSESSIVES.contains(&word);
        }
        false
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
