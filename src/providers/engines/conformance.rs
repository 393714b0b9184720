//! Conformance tests that run for every engine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::disk::{Durability, SqliteEngine, StoreFile};
use super::{
    Engine, KeyInfo, KeyPage, Quota, StoredValue, TakeOutcome, WriteCondition, WriteOutcome,
    WriteRequest, numbered,
};
use crate::util::clock::Clock;

#[derive(Default)]
pub(super) struct ManualClock(AtomicU64);

impl ManualClock {
    fn set(&self, millis: u64) {
        self.0.store(millis, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        crate::util::clock::SystemClock.now()
    }

    fn unix(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

const PLENTY: Quota = Quota { keys: 1000, bytes: 1 << 20 };

fn put(space: &str, key: &str, value: &str) -> WriteRequest {
    WriteRequest {
        space: space.to_owned(),
        key: Some(key.to_owned()),
        value: value.to_owned(),
        condition: WriteCondition::Any,
        quota: PLENTY,
        ttl: None,
    }
}

fn done(written: WriteOutcome) -> u64 {
    match written {
        WriteOutcome::Done { version, .. } => version,
        other => panic!("{other:?}"),
    }
}

async fn keys(engine: &dyn Engine, space: &str) -> Vec<String> {
    let page = engine.page(space, "", None, 100).await.unwrap();
    page.items.into_iter().map(|item| item.key).collect()
}

async fn reading_and_writing(engine: &dyn Engine) {
    assert_eq!(engine.read("s", "a").await.unwrap(), None);
    let first = done(engine.write(put("s", "a", "1")).await.unwrap());
    let second = done(engine.write(put("s", "a", "\"zwei\\u0000\"")).await.unwrap());
    assert!(second > first);
    let entry = StoredValue { value: "\"zwei\\u0000\"".to_owned(), version: second };
    assert_eq!(engine.read("s", "a").await.unwrap(), Some(entry.clone()));
    assert_eq!(engine.read("t", "a").await.unwrap(), None, "spaces are apart");
    assert_eq!(engine.take("s", "a", Some(first)).await.unwrap(), TakeOutcome::Conflict(second));
    assert_eq!(engine.take("s", "a", Some(second)).await.unwrap(), TakeOutcome::Removed(entry));
    assert_eq!(engine.take("s", "a", None).await.unwrap(), TakeOutcome::Absent);
    assert_eq!(engine.take("s", "a", Some(second)).await.unwrap(), TakeOutcome::Absent);
    let third = done(engine.write(put("s", "a", "1")).await.unwrap());
    assert!(third > second, "a version never comes back");
}

async fn conditions(engine: &dyn Engine) {
    let on = |condition| WriteRequest { condition, ..put("s", "a", "1") };
    let write = |condition| engine.write(on(condition));
    assert_eq!(write(WriteCondition::Version(1)).await.unwrap(), WriteOutcome::Conflict(None));
    let first = done(write(WriteCondition::Absent).await.unwrap());
    assert_eq!(write(WriteCondition::Absent).await.unwrap(), WriteOutcome::Conflict(Some(first)));
    let second = done(write(WriteCondition::Version(first)).await.unwrap());
    let late = write(WriteCondition::Version(first)).await.unwrap();
    assert_eq!(late, WriteOutcome::Conflict(Some(second)));
}

async fn quotas(engine: &dyn Engine) {
    let two = Quota { keys: 2, bytes: 30 };
    let write = |space: &str, key: &str, value: &str| {
        engine.write(WriteRequest { quota: two, ..put(space, key, value) })
    };
    done(write("s", "a", "1").await.unwrap());
    done(write("s", "b", "1").await.unwrap());
    assert_eq!(write("s", "c", "1").await.unwrap(), WriteOutcome::TooManyKeys);
    done(write("t", "c", "1").await.unwrap());
    // 9 bytes are taken; a space, a key and 20 digits are 22 more.
    let long = "1".repeat(20);
    assert_eq!(write("t", "d", &long).await.unwrap(), WriteOutcome::TooManyBytes);
    done(write("t", "c", &long).await.unwrap());
    // What makes room is allowed, even from above the quota.
    let tight = Quota { keys: 1, bytes: 1 };
    done(engine.write(WriteRequest { quota: tight, ..put("t", "c", "2") }).await.unwrap());
    engine.take("s", "a", None).await.unwrap();
    done(write("s", "c", "1").await.unwrap());
    assert_eq!(engine.clear("s").await.unwrap(), 2);
    assert_eq!(engine.clear("s").await.unwrap(), 0);
    done(write("s", "c", &"1".repeat(25)).await.unwrap());
}

async fn paging(engine: &dyn Engine) {
    for key in ["b", "a", "ä", "aa", "ab", "c\n", "B", "\u{10ffff}"] {
        done(engine.write(put("s", key, "true")).await.unwrap());
    }
    done(engine.write(put("s2", "x", "true")).await.unwrap());
    assert_eq!(
        keys(engine, "s").await,
        ["B", "a", "aa", "ab", "b", "c\n", "ä", "\u{10ffff}"],
        "sorted by their bytes"
    );
    let page = |prefix, after, limit| engine.page("s", prefix, after, limit);
    let names = |page: KeyPage| {
        (page.items.into_iter().map(|item| item.key).collect::<Vec<_>>(), page.more)
    };
    assert_eq!(names(page("a", None, 2).await.unwrap()), (vec!["a".into(), "aa".into()], true));
    assert_eq!(names(page("a", Some("aa"), 2).await.unwrap()), (vec!["ab".into()], false));
    assert_eq!(names(page("a", Some("ab"), 2).await.unwrap()), (vec![], false));
    assert_eq!(names(page("b", Some("a"), 9).await.unwrap()), (vec!["b".into()], false));
    assert_eq!(names(page("zz", None, 9).await.unwrap()), (vec![], false));
    // A cursor whose key is gone still says where to go on.
    engine.take("s", "aa", None).await.unwrap();
    assert_eq!(names(page("a", Some("aa"), 2).await.unwrap()), (vec!["ab".into()], false));
    let items = page("ä", None, 1).await.unwrap().items;
    assert!(matches!(&items[..], [KeyInfo { bytes: 4, .. }]), "{items:?}");
    let spaces = engine.spaces("s", 9).await.unwrap();
    assert_eq!(spaces, [("s".to_owned(), 7), ("s2".to_owned(), 1)]);
    assert_eq!(engine.spaces("s", 1).await.unwrap(), [("s".to_owned(), 7)]);
    assert_eq!(engine.spaces("t", 9).await.unwrap(), []);
}

async fn numbering(engine: &dyn Engine) {
    let send = || engine.write(WriteRequest { key: None, ..put("s", "", "1") });
    let mut sent = Vec::new();
    for _ in 0..12 {
        match send().await.unwrap() {
            WriteOutcome::Done { key, version } => {
                assert_eq!(key, numbered(version));
                sent.push(key);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(keys(engine, "s").await, sent, "they sort in order of writing");
}

async fn expiring(engine: &dyn Engine, clock: &ManualClock) {
    clock.set(1000);
    let expiring = |key| WriteRequest { ttl: Some(10), ..put("s", key, "1") };
    done(engine.write(expiring("a")).await.unwrap());
    done(engine.write(expiring("b")).await.unwrap());
    done(engine.write(expiring("c")).await.unwrap());
    done(engine.write(put("s", "b", "2")).await.unwrap());
    clock.set(1009);
    assert!(engine.read("s", "a").await.unwrap().is_some());
    clock.set(1010);
    assert_eq!(engine.read("s", "a").await.unwrap(), None);
    assert_eq!(keys(engine, "s").await, ["b"], "a value written for ever stays");
    let write = WriteRequest { condition: WriteCondition::Absent, ..put("s", "a", "1") };
    done(engine.write(write).await.unwrap());
    assert_eq!(engine.take("s", "c", None).await.unwrap(), TakeOutcome::Absent);
    assert_eq!(engine.clear("s").await.unwrap(), 2);
}

async fn counting_together(engine: &Arc<dyn Engine>) {
    let workers = (0..8).map(|_| {
        let engine = Arc::clone(engine);
        tokio::spawn(async move {
            for _ in 0..200 {
                loop {
                    let entry = engine.read("s", "count").await.unwrap();
                    let count = entry.as_ref().map_or(0, |e| e.value.parse::<u32>().unwrap());
                    let condition = entry
                        .map_or(WriteCondition::Absent, |e| WriteCondition::Version(e.version));
                    let write = put("s", "count", &(count + 1).to_string());
                    let write = WriteRequest { condition, ..write };
                    if let WriteOutcome::Done { .. } = engine.write(write).await.unwrap() {
                        break;
                    }
                }
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
    assert_eq!(engine.read("s", "count").await.unwrap().unwrap().value, "1600");
}

async fn taking_together(engine: &Arc<dyn Engine>) {
    for at in 0..50 {
        done(engine.write(put("s", &format!("{at:02}"), "1")).await.unwrap());
    }
    let workers = (0..8).map(|_| {
        let engine = Arc::clone(engine);
        tokio::spawn(async move {
            let mut got = 0;
            for at in 0..50 {
                let taken = engine.take("s", &format!("{at:02}"), None).await.unwrap();
                got += u32::from(taken != TakeOutcome::Absent);
            }
            got
        })
    });
    let mut got = 0;
    for worker in workers.collect::<Vec<_>>() {
        got += worker.await.unwrap();
    }
    assert_eq!(got, 50, "each is handed to exactly one");
}

/// The suite. Each part gets its own engine from `fresh`.
async fn conforms(clock: &ManualClock, fresh: impl Fn() -> Arc<dyn Engine>) {
    reading_and_writing(fresh().as_ref()).await;
    conditions(fresh().as_ref()).await;
    quotas(fresh().as_ref()).await;
    paging(fresh().as_ref()).await;
    numbering(fresh().as_ref()).await;
    expiring(fresh().as_ref(), clock).await;
    counting_together(&fresh()).await;
    taking_together(&fresh()).await;
}

#[derive(Debug, Clone)]
enum EngineStep {
    Write { space: u8, key: u8, size: usize, condition: u8, ttl: bool },
    Take { space: u8, key: u8 },
    Clear { space: u8 },
    Wait,
}

fn step() -> impl Strategy<Value = EngineStep> {
    let (space, key) = (0..2_u8, 0..4_u8);
    prop_oneof![
        6 => (space.clone(), key.clone(), 1..20_usize, 0..4_u8, any::<bool>())
            .prop_map(|(space, key, size, condition, ttl)| EngineStep::Write { space, key, size, condition, ttl }),
        2 => (space.clone(), key).prop_map(|(space, key)| EngineStep::Take { space, key }),
        1 => space.prop_map(|space| EngineStep::Clear { space }),
        1 => Just(EngineStep::Wait),
    ]
}

/// What an engine should hold, kept in the plainest way.
#[derive(Default)]
struct ReferenceModel {
    held: BTreeMap<(String, String), (StoredValue, Option<u64>)>,
    now: u64,
}

impl ReferenceModel {
    fn bytes(&self) -> u64 {
        let size =
            |((space, key), (entry, _)): (&(String, String), &(StoredValue, Option<u64>))| {
                (space.len() + key.len() + entry.value.len()) as u64
            };
        self.held.iter().map(size).sum()
    }

    fn keys(&self, space: &str) -> Vec<(String, u64)> {
        let of = self.held.iter().filter(|((s, _), _)| s == space);
        of.map(|((_, key), (entry, _))| (key.clone(), entry.version)).collect()
    }
}

const TIGHT: Quota = Quota { keys: 3, bytes: 60 };

async fn agrees(engine: &dyn Engine, clock: &ManualClock, steps: &[EngineStep]) {
    let mut model = ReferenceModel { now: 1000, ..ReferenceModel::default() };
    clock.set(model.now);
    let named = |space: u8, key: u8| (format!("s{space}"), format!("k{key}"));
    for step in steps {
        match step.clone() {
            EngineStep::Wait => {
                model.now += 7;
                clock.set(model.now);
            }
            EngineStep::Clear { space } => {
                let space = format!("s{space}");
                let gone = model.keys(&space).len() as u64;
                assert_eq!(engine.clear(&space).await.unwrap(), gone);
                model.held.retain(|(s, _), _| *s != space);
            }
            EngineStep::Take { space, key } => {
                let (space, key) = named(space, key);
                let taken = engine.take(&space, &key, None).await.unwrap();
                let held = model.held.remove(&(space, key));
                assert_eq!(
                    taken,
                    held.map_or(TakeOutcome::Absent, |(entry, _)| TakeOutcome::Removed(entry))
                );
            }
            EngineStep::Write { space, key, size, condition, ttl } => {
                let (space, key) = named(space, key);
                let at = model.held.get(&(space.clone(), key.clone())).map(|(e, _)| e.version);
                let condition = match condition {
                    0 => WriteCondition::Absent,
                    1 => WriteCondition::Version(at.unwrap_or(7)),
                    2 => WriteCondition::Version(u64::MAX >> 20),
                    _ => WriteCondition::Any,
                };
                let ttl = ttl.then_some(10);
                let value = "9".repeat(size);
                let write =
                    WriteRequest { condition, ttl, quota: TIGHT, ..put(&space, &key, &value) };
                let written = engine.write(write).await.unwrap();
                let name = (space.clone(), key.clone());
                let before = model
                    .held
                    .get(&name)
                    .map_or(0, |(e, _)| (space.len() + key.len() + e.value.len()) as u64);
                let after = model.bytes() - before + (space.len() + key.len() + size) as u64;
                let expected = if !condition.holds(at) {
                    Some(WriteOutcome::Conflict(at))
                } else if at.is_none() && model.keys(&space).len() as u64 == TIGHT.keys {
                    Some(WriteOutcome::TooManyKeys)
                } else if after > TIGHT.bytes && after > model.bytes() {
                    Some(WriteOutcome::TooManyBytes)
                } else {
                    None
                };
                if let Some(refused) = expected {
                    assert_eq!(written, refused);
                } else {
                    let entry = StoredValue { value, version: done(written) };
                    model.held.insert(name, (entry, ttl.map(|ttl| model.now + ttl)));
                }
            }
        }
        let now = model.now;
        model.held.retain(|_, (_, expires)| expires.is_none_or(|at| at > now));
        for space in ["s0", "s1"] {
            let page = engine.page(space, "", None, 100).await.unwrap();
            let entries: Vec<_> = page.items.into_iter().map(|i| (i.key, i.version)).collect();
            assert_eq!(entries, model.keys(space), "after {step:?}");
        }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn on_disk(path: std::path::PathBuf, clock: Arc<dyn Clock>) -> Arc<dyn Engine> {
    let file = StoreFile {
        path,
        within: None,
        own_directory: false,
        writable: true,
        // The suite is about what is kept, not about power cuts.
        sync: Durability::Off,
    };
    Arc::new(SqliteEngine::new(Some(file), clock))
}

#[tokio::test]
async fn memory_conforms() {
    let clock = Arc::new(ManualClock::default());
    conforms(&clock, || Arc::new(SqliteEngine::new(None, Arc::<ManualClock>::clone(&clock)))).await;
}

#[tokio::test]
async fn disk_conforms() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), Arc::new(ManualClock::default()));
    let made = AtomicU64::new(0);
    conforms(&clock, || {
        let name = format!("{}.db", made.fetch_add(1, Ordering::Relaxed));
        on_disk(dir.path().join(name), Arc::<ManualClock>::clone(&clock) as Arc<dyn Clock>)
    })
    .await;
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn redis_conforms() {
    use super::remote::tests::RedisTestServer;
    let Some(server) = RedisTestServer::start() else { return };
    let (clock, made) = (Arc::new(ManualClock::default()), AtomicU64::new(0));
    conforms(&clock, || {
        let component = format!("c{}", made.fetch_add(1, Ordering::Relaxed));
        server.engine(&component, Arc::<ManualClock>::clone(&clock) as Arc<dyn Clock>)
    })
    .await;
}

#[cfg(feature = "redis")]
#[test]
fn redis_agrees_with_a_model() {
    use super::remote::tests::RedisTestServer;
    let runtime = runtime();
    let Some(server) = RedisTestServer::start() else { return };
    let made = AtomicU64::new(0);
    proptest!(ProptestConfig::with_cases(24), |(steps in prop::collection::vec(step(), 1..40))| {
        let clock = Arc::new(ManualClock::default());
        let component = format!("c{}", made.fetch_add(1, Ordering::Relaxed));
        let engine = server.engine(&component, Arc::<ManualClock>::clone(&clock) as Arc<dyn Clock>);
        runtime.block_on(agrees(engine.as_ref(), &clock, &steps));
    });
}

proptest! {
    #[test]
    fn memory_agrees_with_a_model(steps in prop::collection::vec(step(), 1..60)) {
        let clock = Arc::new(ManualClock::default());
        let engine = SqliteEngine::new(None, Arc::<ManualClock>::clone(&clock));
        runtime().block_on(agrees(&engine, &clock, &steps));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn disk_agrees_with_a_model(steps in prop::collection::vec(step(), 1..40)) {
        let (dir, clock) = (tempfile::tempdir().unwrap(), Arc::new(ManualClock::default()));
        let path = dir.path().join("model.db");
        let engine = on_disk(path, Arc::<ManualClock>::clone(&clock) as Arc<dyn Clock>);
        let runtime = runtime();
        runtime.block_on(agrees(engine.as_ref(), &clock, &steps));
        runtime.block_on(engine.close());
    }
}
