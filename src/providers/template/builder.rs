//! Parsing a text into a template.

use super::{Placeholder, TemplatePart, TextTemplate};
use crate::model::Diagnostic;

pub(in crate::providers) struct TemplateBuilder<'t, P> {
    parts: Vec<TemplatePart<P>>,
    written: &'t str,
    /// How many bytes of it were read.
    position: usize,
    literal_braces: u32,
}

impl<'t, P: Placeholder> TemplateBuilder<'t, P> {
    /// A builder for the text `written`.
    pub(in crate::providers) fn new(written: &'t str) -> Self {
        Self { parts: Vec::new(), written, position: 0, literal_braces: 0 }
    }

    pub(in crate::providers) fn read(&mut self, piece: &str) -> Result<(), Diagnostic> {
        let mut rest = piece;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            self.literal(before);
            self.position += at;
            let after = if let Some(after) = from.strip_prefix("{{") {
                self.literal("{");
                after
            } else if let Some(after) = from.strip_prefix("}}") {
                self.literal("}");
                after
            } else if let Some(after) = from.strip_prefix('}') {
                let Some(left) = self.literal_braces.checked_sub(1) else {
                    return Err(self.unmatched('}'));
                };
                self.literal_braces = left;
                self.literal("}");
                after
            } else {
                let inside = from.strip_prefix('{').and_then(|from| from.split_once('}'));
                let Some((inside, after)) = inside else { return Err(self.unmatched('{')) };
                let Some(placeholder) = P::parse(inside)? else {
                    return Err(self.unmatched('{'));
                };
                self.parts.push(TemplatePart::Placeholder(placeholder));
                after
            };
            self.position += from.len() - after.len();
            rest = after;
        }
        self.literal(rest);
        self.position += rest.len();
        Ok(())
    }

    pub(in crate::providers) fn part(&mut self, part: TemplatePart<P>) {
        self.parts.push(part);
    }

    /// Adds `text`, which has an opening brace of another syntax at its end: the brace that closes
    /// it stands for itself.
    pub(in crate::providers) fn open_literal_brace(&mut self, text: &str) {
        self.literal(text);
        self.literal_braces += 1;
    }

    /// Goes past `length` bytes that are in other syntax, so that columns stay right.
    pub(in crate::providers) fn advance(&mut self, length: usize) {
        self.position += length;
    }

    pub(in crate::providers) fn unmatched(&self, brace: char) -> Diagnostic {
        let before = self.written.get(..self.position).unwrap_or_default();
        let column = before.chars().count() + 1;
        Diagnostic::error(format!(
            "the '{brace}' at column {column} of '{}' is not part of a placeholder",
            self.written
        ))
        .with_hint("write {name} for an argument, and {{ or }} for a literal brace")
    }

    pub(in crate::providers) fn finish(mut self) -> TextTemplate<P> {
        self.parts.shrink_to_fit();
        TextTemplate { parts: self.parts }
    }

    fn literal(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(TemplatePart::Literal(literal)) => literal.push_str(text),
            _ => self.parts.push(TemplatePart::Literal(text.to_owned())),
        }
    }
}
