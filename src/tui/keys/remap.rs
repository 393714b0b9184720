//! Applying the user's key bindings to the default tables.

use super::keymap::Keymap;
use super::{Action, Binding, KEY_TABLES, KeyContext, KeyPress};

/// Rebinds a key in one context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remap {
    pub context: KeyContext,
    pub key: KeyPress,
    /// The new action; `None` unbinds the key.
    pub action: Option<Action>,
}

impl KeyContext {
    /// The name in `console.yaml`. It is a contract: a variant may be renamed, its name may not.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anywhere => "anywhere",
            Self::Pane => "pane",
            Self::Tools => "tools",
            Self::ToolTree => "tree",
            Self::Result => "result",
            Self::ResultTable => "table",
            Self::Servers => "servers",
            Self::Trace => "trace",
            Self::Stats => "stats",
            Self::Bench => "bench",
            Self::History => "history",
            Self::Offerings => "offers",
            Self::OfferingForm => "asking",
            Self::Inbox => "inbox",
            Self::Form => "form",
            Self::FormLast => "last-field",
            Self::FormItems => "items",
            Self::FormLines => "field-lines",
            Self::FormChoice => "field-choice",
            Self::MultilineText => "lines",
            Self::Answer => "answer",
            Self::Text => "text",
            Self::Picker => "choosing",
            Self::Approval => "approval",
            Self::Trust => "trust",
            Self::Palette => "palette",
            Self::Running => "running",
            Self::Problems => "problems",
            Self::PinReview => "pin",
            Self::SaveCall => "save-call",
            Self::Overlay => "overlay",
        }
    }

    /// The context with this name, if it has a table of keys.
    pub fn from_name(name: &str) -> Option<Self> {
        KEY_TABLES.iter().map(|place| place.context).find(|when| when.name() == name)
    }
}

impl Action {
    pub fn from_name(name: &str) -> Option<Self> {
        let bindings = KEY_TABLES.iter().flat_map(|place| place.bindings);
        bindings.map(|binding| binding.action).find(|action| action.name() == name)
    }

    /// How the tables call it: its word in the footer and what it does. Those of this place, else
    /// of any.
    fn labels(self, when: KeyContext) -> (Option<&'static str>, &'static str) {
        let here = KEY_TABLES.iter().filter(|place| place.context == when);
        let bindings = here.chain(KEY_TABLES).flat_map(|place| place.bindings);
        let mut described =
            bindings.filter(|binding| binding.action == self && !binding.about.is_empty());
        described.next().map_or((None, ""), |binding| (binding.label, binding.about))
    }
}

impl Keymap {
    /// Rebinds a key. Returns the action that lost its last key in that context.
    pub fn remap(&mut self, remap: Remap) -> Option<Action> {
        let Remap { context: when, key, action } = remap;
        let bindings = self.bindings_mut(when)?;
        let before = bindings.iter().position(|binding| binding.key == key);
        let lost = before.map(|at| bindings.remove(at)).filter(|lost| Some(lost.action) != action);
        if let Some(lost) = lost
            && let Some(successor) = bindings.iter_mut().find(|b| b.action == lost.action)
            && successor.about.is_empty()
        {
            (successor.label, successor.about) = (lost.label, lost.about);
        }
        let orphan = lost.map(|lost| lost.action);
        let orphan = orphan.filter(|lost| !bindings.iter().any(|b| b.action == *lost));
        if let Some(action) = action {
            let (word, about) = action.labels(when);
            let first = bindings.iter().position(|binding| binding.action == action);
            // A person's own key is the one that is shown.
            for other in bindings.iter_mut().filter(|other| other.action == action) {
                (other.label, other.about) = (None, "");
            }
            bindings.insert(first.unwrap_or(0), Binding { key, action, label: word, about });
        }
        orphan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remap(when: KeyContext, key: KeyPress, action: Option<Action>) -> (Keymap, Option<Action>) {
        let mut keys = Keymap::default();
        let orphan = keys.remap(Remap { context: when, key, action });
        (keys, orphan)
    }

    #[test]
    fn every_action_has_a_name_that_leads_back_to_it() {
        for binding in KEY_TABLES.iter().flat_map(|place| place.bindings) {
            let name = binding.action.name();
            assert_eq!(Action::from_name(&name), Some(binding.action), "{name}");
        }
        for place in KEY_TABLES {
            assert_eq!(KeyContext::from_name(place.context.name()), Some(place.context));
        }
    }

    #[test]
    fn a_key_of_ones_own_is_the_one_that_is_shown() {
        let (keys, orphan) = remap(KeyContext::Tools, KeyPress::Char('c'), Some(Action::Fill));
        assert_eq!(orphan, None);
        assert_eq!(keys.key_of(Action::Fill, &[KeyContext::Tools]), Some(KeyPress::Char('c')));
        assert_eq!(keys.action(KeyPress::Enter, &[KeyContext::Tools]), Some(Action::Fill));
        let shown: Vec<KeyPress> = keys
            .bindings(KeyContext::Tools)
            .iter()
            .filter(|binding| binding.action == Action::Fill && binding.label.is_some())
            .map(|binding| binding.key)
            .collect();
        assert_eq!(shown, [KeyPress::Char('c')]);
    }

    #[test]
    fn what_loses_its_last_key_is_told_and_a_second_key_inherits_the_words() {
        let (keys, orphan) = remap(KeyContext::Tools, KeyPress::Char('s'), Some(Action::Fill));
        assert_eq!(orphan, Some(Action::Sort));
        assert_eq!(keys.key_of(Action::Sort, &[KeyContext::Tools]), None);
        let (keys, orphan) = remap(KeyContext::Tools, KeyPress::Enter, None);
        assert_eq!(orphan, None);
        let successor =
            keys.bindings(KeyContext::Tools).iter().find(|b| b.action == Action::Fill).unwrap();
        assert_eq!((successor.key, successor.label), (KeyPress::Char('e'), Some("call")));
    }
}
