//! Finding every form of every known value in one pass.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use memchr::memmem::Finder;

use super::forms::forms;
use super::unescape::{MAX_UNESCAPE_DEPTH, UnescapedText};
use super::{MASK, MIN_SECRET_LEN};

/// What stands where a text was cut, everywhere in this program.
const ELLIPSIS: &[u8] = "…".as_bytes();

/// How much of a pattern the automaton looks for; the rest is compared. It keeps a key of many
/// kilobytes from becoming an automaton of many megabytes.
const MAX_INDEXED_BYTES: usize = 12;

/// The length of the longest escape in JSON, `\\u0000`, in bytes.
const LONGEST_ESCAPE: usize = 6;

pub(super) struct SecretSearch {
    /// Finds how patterns begin; `None` when there are too many for any automaton.
    automaton: Option<AhoCorasick>,
    patterns: Vec<SecretPattern>,
    marks: Vec<String>,
    /// Patterns by their first and by their last [`MIN_SECRET_LEN`] bytes, in lower case: for values of
    /// which a cut left only a part.
    heads: HashMap<[u8; MIN_SECRET_LEN], Vec<usize>>,
    tails: HashMap<[u8; MIN_SECRET_LEN], Vec<usize>>,
    longest: usize,
    ellipsis: Finder<'static>,
}

struct SecretPattern {
    text: Vec<u8>,
    exact: bool,
    /// Which of the marks replaces it; a mark itself, which is left as it is, has none.
    mark: Option<usize>,
}

/// A piece of a text that has to go, and the number of the mark that replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SecretSpan {
    at: Range<usize>,
    mark: usize,
}

/// What was found before it was sorted out.
#[derive(Default)]
struct SearchHits {
    secrets: Vec<SecretSpan>,
    marks: Vec<Range<usize>>,
}

impl SecretSearch {
    /// Searches for `values`, each with the mark that replaces it. Of a form that several values
    /// have, the first has it.
    pub(super) fn new(values: &[(String, String)]) -> Self {
        let mut marks_by_text: BTreeMap<(Vec<u8>, bool), Option<usize>> = BTreeMap::new();
        for (number, (mark, value)) in values.iter().enumerate() {
            for form in forms(value) {
                let text = if form.exact { form.text } else { form.text.to_ascii_lowercase() };
                marks_by_text.entry((text.into_bytes(), form.exact)).or_insert(Some(number));
            }
            // A text may be masked twice, and `${NAME}` may hold what is a value elsewhere.
            marks_by_text.entry((mark.clone().into_bytes(), true)).or_insert(None);
        }
        let patterns: Vec<SecretPattern> = marks_by_text
            .into_iter()
            .map(|((text, exact), mark)| SecretPattern { text, exact, mark })
            .collect();
        let begin = |pattern: &SecretPattern| {
            pattern.text.iter().copied().take(MAX_INDEXED_BYTES).collect()
        };
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .ascii_case_insensitive(true)
            .build(patterns.iter().map(begin).collect::<Vec<Vec<u8>>>())
            .ok();
        let (mut heads, mut tails) = (HashMap::new(), HashMap::new());
        for (index, pattern) in patterns.iter().enumerate().filter(|(_, p)| p.mark.is_some()) {
            let head = pattern.text.first_chunk().map(lower);
            let tail = pattern.text.last_chunk().map(lower);
            for (map, key) in [(&mut heads, head), (&mut tails, tail)] {
                if let Some(key) = key {
                    map.entry(key).or_insert_with(Vec::new).push(index);
                }
            }
        }
        let longest = patterns.iter().map(|pattern| pattern.text.len()).max().unwrap_or(0);
        let marks = values.iter().map(|(mark, _)| mark.clone()).collect();
        Self { automaton, patterns, marks, heads, tails, longest, ellipsis: Finder::new(ELLIPSIS) }
    }

    /// The text with every value replaced by its mark; `None` when there is nothing to replace.
    pub(super) fn replaced(&self, text: &[u8]) -> Option<Vec<u8>> {
        if self.automaton.is_none() {
            return Some(MASK.as_bytes().to_vec());
        }
        let spans = self.find(text);
        if spans.is_empty() {
            return None;
        }
        let mut out = Vec::with_capacity(text.len());
        let mut rest = 0;
        for SecretSpan { at, mark } in spans {
            out.extend_from_slice(text.get(rest..at.start).unwrap_or_default());
            out.extend_from_slice(self.marks.get(mark).map_or(MASK, String::as_str).as_bytes());
            rest = at.end;
        }
        out.extend_from_slice(text.get(rest..).unwrap_or_default());
        Some(out)
    }

    fn find(&self, text: &[u8]) -> Vec<SecretSpan> {
        let mut hits = SearchHits::default();
        self.view(text, MAX_UNESCAPE_DEPTH, &|at| at, &mut hits);
        let SearchHits { mut secrets, mut marks } = hits;
        marks.sort_by_key(|mark| mark.start);
        secrets.retain(|span| {
            let before = marks.partition_point(|mark| mark.start <= span.at.start);
            let nearest = before.checked_sub(1).and_then(|at| marks.get(at));
            !nearest.is_some_and(|mark| within(&span.at, mark))
        });
        secrets.sort_by(|a, b| a.at.start.cmp(&b.at.start).then_with(|| b.at.end.cmp(&a.at.end)));
        let mut apart: Vec<SecretSpan> = Vec::new();
        for span in secrets {
            match apart.last_mut() {
                // The first of those that overlap gives its name to all.
                Some(last) if span.at.start < last.at.end => {
                    last.at.end = last.at.end.max(span.at.end);
                }
                _ => apart.push(span),
            }
        }
        apart
    }

    fn view(
        &self,
        text: &[u8],
        depth: usize,
        origin: &dyn Fn(usize) -> usize,
        hits: &mut SearchHits,
    ) {
        let hits_here = self.automaton.iter().flat_map(|all| all.find_overlapping_iter(text));
        for hit in hits_here {
            let Some(pattern) = self.patterns.get(hit.pattern().as_usize()) else { continue };
            let end = hit.start() + pattern.text.len();
            let whole = text.get(hit.start()..end);
            if !whole.is_some_and(|whole| same(whole, &pattern.text, pattern.exact)) {
                continue;
            }
            let at = origin(hit.start())..origin(end);
            match pattern.mark {
                Some(mark) => hits.secrets.push(SecretSpan { at, mark }),
                None => hits.marks.push(at),
            }
        }
        for cut in self.ellipsis.find_iter(text) {
            let (before, after) = text.split_at(cut);
            let ends = self.ending(before).map(|(from, mark)| (from..cut, mark));
            let begun = after.get(ELLIPSIS.len()..).unwrap_or_default();
            let begins = self.beginning(begun).map(|(length, mark)| {
                let from = cut + ELLIPSIS.len();
                (from..from + length, mark)
            });
            for (at, mark) in ends.into_iter().chain(begins) {
                let at = origin(at.start)..origin(at.end);
                hits.secrets.push(SecretSpan { at, mark });
            }
        }
        if depth == 0 {
            return;
        }
        for view in
            [UnescapedText::backslash(text), UnescapedText::percent(text)].into_iter().flatten()
        {
            self.view(&view.bytes, depth - 1, &|at| origin(view.origin(at)), hits);
        }
    }

    /// Where the beginning of a value stands at the end of a text, behind which may stand what a cut
    /// left of an escape.
    fn ending(&self, text: &[u8]) -> Option<(usize, usize)> {
        let last = text.len().saturating_sub(LONGEST_ESCAPE);
        let broken = (last..text.len()).filter(|at| matches!(text.get(*at), Some(b'%' | b'\\')));
        let ends = std::iter::once(text.len()).chain(broken);
        ends.into_iter().find_map(|end| self.ending_at(text.get(..end)?))
    }

    fn ending_at(&self, text: &[u8]) -> Option<(usize, usize)> {
        let first = text.len().saturating_sub(self.longest);
        (first..text.len()).find_map(|from| {
            let rest = text.get(from..)?;
            let numbers = self.heads.get(&lower(rest.first_chunk()?))?;
            let begins = |pattern: &SecretPattern| {
                pattern.text.get(..rest.len()).is_some_and(|head| same(rest, head, pattern.exact))
            };
            let pattern =
                numbers.iter().filter_map(|at| self.patterns.get(*at)).find(|p| begins(p));
            Some((from, pattern?.mark?))
        })
    }

    /// How long the end of a value is that stands at the beginning of a text, with what a cut left
    /// of an escape before it.
    fn beginning(&self, text: &[u8]) -> Option<(usize, usize)> {
        (0..LONGEST_ESCAPE)
            .take_while(|skipped| {
                let before = text.get(..*skipped).unwrap_or_default();
                before.iter().all(u8::is_ascii_alphanumeric)
            })
            .find_map(|skipped| {
                let (length, mark) = self.beginning_at(text.get(skipped..)?)?;
                Some((skipped + length, mark))
            })
    }

    fn beginning_at(&self, text: &[u8]) -> Option<(usize, usize)> {
        let last = text.len().min(self.longest);
        (MIN_SECRET_LEN..=last).rev().find_map(|length| {
            let part = text.get(..length)?;
            let numbers = self.tails.get(&lower(part.last_chunk()?))?;
            let ends = |pattern: &SecretPattern| {
                let from = pattern.text.len().checked_sub(length);
                let tail = from.and_then(|from| pattern.text.get(from..));
                tail.is_some_and(|tail| same(part, tail, pattern.exact))
            };
            let pattern = numbers.iter().filter_map(|at| self.patterns.get(*at)).find(|p| ends(p));
            Some((length, pattern?.mark?))
        })
    }
}

fn within(inner: &Range<usize>, outer: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end && inner.len() < outer.len()
}

fn same(text: &[u8], pattern: &[u8], exact: bool) -> bool {
    if exact { text == pattern } else { text.eq_ignore_ascii_case(pattern) }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "it is given to iterators over references")]
fn lower(bytes: &[u8; MIN_SECRET_LEN]) -> [u8; MIN_SECRET_LEN] {
    bytes.map(|byte| byte.to_ascii_lowercase())
}
