//! Line differences between two texts.

use std::ops::Range;
use std::time::Duration;

use similar::{ChangeTag, TextDiff};

/// Time limit for finding the shortest edit script; after that, any will do.
const DIFF_DEADLINE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffMark {
    /// The line is in both texts.
    Same,
    /// It stood in the old text only.
    Removed,
    /// It is only in the new text.
    Added,
}

impl DiffMark {
    pub fn sign(self) -> char {
        match self {
            Self::Same => ' ',
            Self::Removed => '-',
            Self::Added => '+',
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    pub mark: DiffMark,
    pub text: String,
    /// Its number in the old text, from 1.
    pub old: Option<usize>,
    /// Its number in the new text, from 1.
    pub new: Option<usize>,
}

/// Differences that stand close together, and what surrounds them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The lines of the old text, counted from 0.
    pub old: Range<usize>,
    /// The lines of the new text, counted from 0.
    pub new: Range<usize>,
    pub lines: Vec<DiffLine>,
}

/// The differences, each with up to `around` lines that are the same before and after it.
pub fn hunks(old: &str, new: &str, around: usize) -> Vec<Hunk> {
    let diff = TextDiff::configure().timeout(DIFF_DEADLINE).diff_lines(old, new);
    let groups = diff.grouped_ops(around);
    let hunks = groups.iter().filter_map(|group| {
        let (first, last) = (group.first()?, group.last()?);
        let lines = group.iter().flat_map(|op| diff.iter_changes(op)).map(|line| DiffLine {
            mark: match line.tag() {
                ChangeTag::Equal => DiffMark::Same,
                ChangeTag::Delete => DiffMark::Removed,
                ChangeTag::Insert => DiffMark::Added,
            },
            text: line.value().trim_end_matches('\n').to_owned(),
            old: line.old_index().map(|index| index + 1),
            new: line.new_index().map(|index| index + 1),
        });
        Some(Hunk {
            old: first.old_range().start..last.old_range().end,
            new: first.new_range().start..last.new_range().end,
            lines: lines.collect(),
        })
    });
    hunks.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_change_stands_between_what_is_the_same() {
        let changes = hunks("a\nb\nc\nd\n", "a\nB\nc\nd\n", 1);
        let [hunk] = &changes[..] else { panic!("{changes:?}") };
        assert_eq!((hunk.old.clone(), hunk.new.clone()), (0..3, 0..3));
        let lines: Vec<String> =
            hunk.lines.iter().map(|l| format!("{}{}", l.mark.sign(), l.text)).collect();
        assert_eq!(lines, [" a", "-b", "+B", " c"]);
        assert_eq!((hunk.lines[1].old, hunk.lines[2].new), (Some(2), Some(2)));
        assert!(hunks("same\n", "same\n", 3).is_empty());
    }

    proptest! {
        #[test]
        fn the_new_text_can_be_put_together_from_the_old_one(old in "([ab]\n){0,12}", new in "([ab]\n){0,12}") {
            let all = hunks(&old, &new, 100);
            let side = |not: DiffMark| -> String {
                let lines = all.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.mark != not);
                lines.flat_map(|line| [line.text.as_str(), "\n"]).collect()
            };
            if old == new {
                prop_assert!(all.is_empty());
            } else {
                prop_assert_eq!(side(DiffMark::Added), old);
                prop_assert_eq!(side(DiffMark::Removed), new);
            }
        }
    }
}
