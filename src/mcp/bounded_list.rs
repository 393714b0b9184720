//! A list in a peer's JSON, read up to a bounded number of items.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};

/// The first `MOST` items of a list. Sixteen mebibytes hold millions of tiny ones; what is more
/// than `MOST` is skipped while it is read and never held.
#[derive(Debug)]
pub struct BoundedList<T, const MOST: usize> {
    pub items: Vec<T>,
    pub skipped: usize,
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for BoundedList<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(BoundedListVisitor(PhantomData))
    }
}

struct BoundedListVisitor<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for BoundedListVisitor<T, MOST> {
    type Value = BoundedList<T, MOST>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<BoundedList<T, MOST>, A::Error> {
        let mut few = BoundedList { items: Vec::new(), skipped: 0 };
        while few.items.len() < MOST {
            match items.next_element()? {
                Some(item) => few.items.push(item),
                None => return Ok(few),
            }
        }
        while items.next_element::<IgnoredAny>()?.is_some() {
            few.skipped += 1;
        }
        Ok(few)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_more_is_counted_and_not_kept() {
        let few = |text: &str| serde_json::from_str::<BoundedList<u8, 3>>(text);
        let all = few("[1,2,3]").unwrap();
        assert_eq!((all.items.as_slice(), all.skipped), ([1, 2, 3].as_slice(), 0));
        let some = few(r#"[1,2,3,"four",5]"#).unwrap();
        assert_eq!((some.items.as_slice(), some.skipped), ([1, 2, 3].as_slice(), 2));
        assert!(few("[1,2,3,").is_err() && few("{}").is_err() && few("[300]").is_err());
    }
}
