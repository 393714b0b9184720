//! Tests of the disk engine: where the file may be, what is refused, and what survives.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;

use super::{Durability, SqliteEngine, StoreFile};
use crate::model::{Error, ErrorKind};
use crate::providers::engines::{Engine as _, Quota, WriteCondition, WriteOutcome, WriteRequest};
use crate::util::clock::SystemClock;

fn file(path: &Path) -> StoreFile {
    StoreFile {
        path: path.to_owned(),
        within: None,
        own_directory: false,
        writable: true,
        sync: Durability::Full,
    }
}

fn disk(file: StoreFile) -> SqliteEngine {
    SqliteEngine::new(Some(file), Arc::new(SystemClock))
}

fn put(key: &str, value: &str) -> WriteRequest {
    WriteRequest {
        space: "s".to_owned(),
        key: Some(key.to_owned()),
        value: value.to_owned(),
        condition: WriteCondition::Any,
        quota: Quota { keys: 1 << 30, bytes: 1 << 30 },
        ttl: None,
    }
}

/// A store with one key at `path`, closed.
async fn made(path: &Path) {
    let disk = disk(file(path));
    disk.write(put("a", "1")).await.unwrap();
    disk.close().await;
}

async fn refused(file: StoreFile) -> Error {
    disk(file).write(put("b", "2")).await.unwrap_err()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn a_store_is_private_and_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/er/a.db");
    made(&path).await;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    let left: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "closed tidily: {left:?}");
    let again = disk(file(&path));
    assert_eq!(again.read("s", "a").await.unwrap().unwrap().value, "1");
    again.close().await;
    // An engine that was closed opens again.
    assert_eq!(again.read("s", "a").await.unwrap().unwrap().value, "1");
}

#[tokio::test]
async fn what_may_only_be_read_is_never_written_or_made() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let reader = || StoreFile { writable: false, ..file(&path) };
    let error = disk(reader()).read("s", "a").await.unwrap_err();
    assert!(error.message().ends_with("does not exist yet"), "{error}");
    assert!(!path.exists());
    made(&path).await;
    let disk = disk(reader());
    assert_eq!(disk.read("s", "a").await.unwrap().unwrap().value, "1");
    assert_eq!(disk.write(put("b", "2")).await.unwrap_err().kind(), ErrorKind::Denied);
}

#[tokio::test]
async fn links_and_other_things_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("target.db");
    made(&target).await;
    let link = dir.path().join("link.db");
    symlink(&target, &link).unwrap();
    assert!(refused(file(&link)).await.message().ends_with("is a symbolic link"));
    std::fs::create_dir(dir.path().join("dir.db")).unwrap();
    let error = refused(file(&dir.path().join("dir.db"))).await;
    assert!(error.message().ends_with("is not a regular file"), "{error}");
    // A link in the way is followed, but not out of where the store may be.
    let (inside, outside) = (dir.path().join("in"), dir.path().join("out"));
    std::fs::create_dir_all(inside.join("real")).unwrap();
    std::fs::create_dir(&outside).unwrap();
    symlink(inside.join("real"), inside.join("good")).unwrap();
    symlink(&outside, inside.join("bad")).unwrap();
    let within =
        |path: &str| StoreFile { within: Some(inside.clone()), ..file(&inside.join(path)) };
    disk(within("good/a.db")).write(put("a", "1")).await.unwrap();
    for path in ["bad/a.db", "bad/new/a.db"] {
        let error = refused(within(path)).await;
        assert_eq!(error.kind(), ErrorKind::Denied);
        assert!(error.message().contains("through a link"), "{error}");
    }
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}

#[tokio::test]
async fn a_file_open_to_others_becomes_private() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    made(&path).await;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o664)).unwrap();
    made(&path).await;
    assert_eq!(mode(&path), 0o600);
}

#[tokio::test]
async fn what_is_damaged_is_named_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    made(&path).await;
    let good = std::fs::read(&path).unwrap();
    let mut flipped = good.clone();
    flipped[..64].reverse();
    let damaged: [(&str, Vec<u8>); 4] = [
        ("empty", Vec::new()),
        ("no store", b"dear diary, ".repeat(500)),
        ("truncated", good[..good.len() / 2].to_vec()),
        ("flipped", flipped),
    ];
    for (what, bytes) in damaged {
        std::fs::write(&path, &bytes).unwrap();
        let error = refused(file(&path)).await;
        assert_eq!(error.kind(), ErrorKind::Protocol, "{what}: {error}");
        assert!(error.message().contains(path.to_str().unwrap()), "{what}: {error}");
        assert!(error.hint().unwrap().contains(".recover"), "{what}: {error}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{what}: it was changed");
    }
    std::fs::write(&path, good).unwrap();
    assert_eq!(disk(file(&path)).read("s", "a").await.unwrap().unwrap().value, "1");
}

#[tokio::test]
async fn a_database_of_another_program_is_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("places.sqlite");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE entry (x)").unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = refused(file(&path)).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.message().contains("another program"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn a_store_of_a_newer_version_is_only_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    made(&path).await;
    let db = Connection::open(&path).unwrap();
    db.pragma_update(None, "user_version", 99).unwrap();
    drop(db);
    let disk = disk(file(&path));
    assert_eq!(disk.read("s", "a").await.unwrap().unwrap().value, "1");
    let error = disk.write(put("b", "2")).await.unwrap_err();
    assert!(error.message().contains("newer toolhost (layout 99)"), "{error}");
}

#[tokio::test]
async fn a_locked_store_is_waited_for_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    made(&path).await;
    let holder = Connection::open(&path).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let disk = disk(file(&path));
    // Reading does not wait for the lock.
    assert!(disk.read("s", "a").await.unwrap().is_some());
    let error = disk.write(put("b", "2")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(error.message().contains("locked by another process for 5 s"), "{error}");
    holder.execute_batch("ROLLBACK").unwrap();
    assert!(matches!(disk.write(put("b", "2")).await.unwrap(), WriteOutcome::Done { .. }));
}

#[tokio::test]
async fn one_that_cannot_be_written_harms_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    made(&path).await;
    let db = Connection::open(&path).unwrap();
    db.execute_batch(
        "CREATE TRIGGER bad BEFORE INSERT ON entry WHEN new.key = 'bad' BEGIN
             SELECT raise(FAIL, 'no'); END",
    )
    .unwrap();
    let disk = disk(file(&path));
    let names = ["k1", "bad", "k2", "k3"];
    let all = names.map(|key| disk.write(put(key, "1")));
    let outcomes = futures_util::future::join_all(all).await;
    let good: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
    assert_eq!(good, [true, false, true, true], "{outcomes:?}");
    let page = disk.page("s", "k", None, 9).await.unwrap();
    assert_eq!(page.items.len(), 3);
}

#[tokio::test]
async fn the_sums_that_quotas_are_about_are_true() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let disk = disk(file(&path));
    for at in 0..20 {
        disk.write(put(&format!("k{}", at % 7), &"1".repeat(at))).await.unwrap();
    }
    disk.take("s", "k3", None).await.unwrap();
    disk.close().await;
    let db = Connection::open(&path).unwrap();
    let row = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(row("SELECT bytes FROM total"), row("SELECT sum(size) FROM entry"));
    assert_eq!(row("SELECT keys FROM space"), row("SELECT count(*) FROM entry"));
}

const CHILD: &str = "TOOLHOST_TEST_STORE";

/// Not a test by itself: writes until it is killed, and says what was acknowledged.
#[tokio::test]
#[ignore = "the child of acknowledged_writes_survive_kill_9"]
async fn a_child_that_writes() {
    use std::io::Write as _;
    #[expect(clippy::disallowed_methods, reason = "a test that is its own child")]
    let Some(path) = std::env::var_os(CHILD) else { return };
    let disk = disk(file(Path::new(&path)));
    for round in 0_u64.. {
        let names: Vec<String> =
            (0..8).map(|at| format!("{}-{round}-{at}", std::process::id())).collect();
        let all = names.iter().map(|name| disk.write(put(name, "1")));
        let written = futures_util::future::join_all(all).await;
        let mut out = std::io::stdout().lock();
        for (name, written) in names.iter().zip(written) {
            if let Ok(WriteOutcome::Done { .. }) = written {
                writeln!(out, "\nwrote {name}").unwrap();
            }
        }
    }
}

#[tokio::test]
async fn acknowledged_writes_survive_kill_9() {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let mut written = Vec::new();
    for round in 0..10_usize {
        let mut children: Vec<_> = (0..2)
            .map(|_| {
                Command::new(std::env::current_exe().unwrap())
                    .args(["--exact", "--ignored", "--nocapture"])
                    .arg("providers::engines::disk::tests::a_child_that_writes")
                    .env(CHILD, &path)
                    .stdin(Stdio::null())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap()
            })
            .collect();
        let mut readers: Vec<_> = children
            .iter_mut()
            .map(|child| BufReader::new(child.stdout.take().unwrap()).lines())
            .collect();
        // Killed in the middle of whatever it does after so many writes.
        let wrote =
            |line: std::io::Result<String>| line.unwrap().strip_prefix("wrote ").map(str::to_owned);
        written.extend(readers[0].by_ref().filter_map(wrote).take(1 + round));
        for (child, reader) in children.iter_mut().zip(readers) {
            child.kill().unwrap();
            child.wait().unwrap();
            written.extend(reader.filter_map(wrote));
        }
        let db = Connection::open(&path).unwrap();
        let check: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok", "round {round}");
        let sums: bool = db
            .query_row("SELECT bytes = (SELECT sum(size) FROM entry) FROM total", [], |r| r.get(0))
            .unwrap();
        assert!(sums, "round {round}");
        for name in &written {
            let rows: i64 = db
                .query_row("SELECT count(*) FROM entry WHERE key = ?1", [name], |row| row.get(0))
                .unwrap();
            assert_eq!(rows, 1, "round {round}: {name} was acknowledged and is gone");
        }
    }
    assert!(written.len() >= 10);
}
