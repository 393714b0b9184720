//! One page of a server's list, with its items still as text.
//!
//! A list in a peer's JSON, read up to a bounded number of items.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::message::RawJson;
use crate::model::{Error, Freshness};

/// How many items of one page are read, and of one list in all.
pub(super) const MAX_ITEMS: usize = 25_000;

pub(super) type PageItems = BoundedList<Box<RawValue>, MAX_ITEMS>;

#[derive(Debug)]
pub(super) struct ListPage {
    pub items: PageItems,
    /// The cursor of the next page, if there is one; the error is something that is no cursor.
    pub next: Result<Option<String>, String>,
    /// How long it holds, as the server says.
    pub freshness: Freshness,
}

impl ListPage {
    /// Reads a page whose items are in `field`; `what` names the list for messages.
    pub fn read(raw: &RawJson, field: &'static str, what: &str) -> Result<Self, Error> {
        let mut text = serde_json::Deserializer::from_str(raw.get());
        text.deserialize_map(PageVisitor { field })
            .map_err(|error| Error::protocol(format!("not a {what} list: {error}")))
    }
}

/// Reads the members of an answer that say how long it holds; nonsense is nothing.
pub(super) fn freshness(ttl: Option<&Value>, scope: Option<&Value>) -> Freshness {
    Freshness {
        ttl_ms: ttl.and_then(Value::as_u64),
        scope: scope.and_then(Value::as_str).map(str::to_owned),
    }
}

struct PageVisitor {
    field: &'static str,
}

impl<'de> Visitor<'de> for PageVisitor {
    type Value = ListPage;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ListPage, A::Error> {
        let (mut items, mut next, mut ttl, mut scope) = (None, Ok(None), None, None);
        while let Some(key) = map.next_key::<String>()? {
            if key == self.field {
                if items.replace(map.next_value::<PageItems>()?).is_some() {
                    return Err(A::Error::duplicate_field(self.field));
                }
                continue;
            }
            match key.as_str() {
                "nextCursor" => next = cursor(map.next_value()?),
                "ttlMs" => ttl = small_value(map.next_value()?),
                "cacheScope" => scope = small_value(map.next_value()?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let items = items.ok_or_else(|| A::Error::missing_field(self.field))?;
        Ok(ListPage { items, next, freshness: freshness(ttl.as_ref(), scope.as_ref()) })
    }
}

fn cursor(raw: &RawValue) -> Result<Option<String>, String> {
    match serde_json::from_str(raw.get()) {
        Ok(Value::Null) => Ok(None),
        Ok(Value::String(cursor)) => Ok(Some(cursor)),
        Ok(other) => Err(other.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// A value that is a number or a word; anything larger is none.
fn small_value(raw: &RawValue) -> Option<Value> {
    const LONGEST: usize = 64;
    (raw.get().len() <= LONGEST).then(|| serde_json::from_str(raw.get()).ok()).flatten()
}

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

    fn read(text: &str) -> Result<ListPage, Error> {
        ListPage::read(
            &RawJson(RawValue::from_string(text.to_owned()).unwrap()),
            "prompts",
            "prompt",
        )
    }

    #[test]
    fn a_page_is_read_whatever_stands_beside_its_items() {
        let page = read(
            r#"{"_meta":{"a":[1]},"ttlMs":5000,"prompts":[{},1],"cacheScope":"public","nextCursor":"b"}"#,
        )
        .unwrap();
        assert_eq!(page.items.items.len(), 2);
        assert_eq!(page.next, Ok(Some("b".to_owned())));
        let scope = Some("public".to_owned());
        assert_eq!(page.freshness, Freshness { ttl_ms: Some(5000), scope });
        let odd = read(r#"{"prompts":[],"ttlMs":-1,"cacheScope":7,"nextCursor":[1]}"#).unwrap();
        assert_eq!(odd.freshness, Freshness::default());
        assert_eq!(odd.next, Err("[1]".to_owned()));
    }

    #[test]
    fn what_is_no_page_says_why() {
        for (text, expected) in [
            ("[]", "an object"),
            ("{}", "missing field `prompts`"),
            (r#"{"tools":[]}"#, "missing field `prompts`"),
            (r#"{"prompts":"x"}"#, "a list"),
            (r#"{"prompts":[],"prompts":[]}"#, "duplicate"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.message().contains(expected), "{}", error.message());
        }
    }

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
