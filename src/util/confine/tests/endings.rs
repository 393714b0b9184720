//! Tests of programs in bubblewrap's namespaces: where metadata can be changed, and how they end.

use super::*;

fn has_bwrap() -> bool {
    levels().contains(&ConfinementLevel::Bwrap)
}

#[tokio::test]
async fn metadata_can_be_changed_where_it_is_said() {
    let script = "cd $ROOM/out && : >f && chmod 600 f && touch -d @1 f && stat -c '%a %Y' f";
    for level in levels() {
        for metadata in [false, true] {
            let room = Room::new();
            std::fs::create_dir(room.path("out")).unwrap();
            let write = vec![room.path("out")];
            let confinement = Confinement { write, metadata, ..room.confinement(level) };
            let ended = room.shell(&confinement, script).await;
            let expected =
                if metadata || level != ConfinementLevel::Landlock { "600 1\n" } else { "" };
            assert_eq!(ended.out, expected, "{level:?} {metadata}: {}", ended.err);
        }
    }
}

#[tokio::test]
async fn what_a_program_leaves_running_ends_with_it() {
    if !has_bwrap() {
        return;
    }
    let room = Room::new();
    // The sleeper holds the pipe open, so that its end is seen.
    let script = "setsid sleep 600 & echo $$; exit 7";
    let ended = room.shell(&room.confinement(ConfinementLevel::Bwrap), script).await;
    assert_eq!((ended.out.as_str(), ended.status.code()), ("2\n", Some(7)), "{}", ended.err);
}

#[tokio::test]
async fn the_memory_of_the_program_is_told_and_not_that_of_its_helpers() {
    if !has_bwrap() {
        return;
    }
    let room = Room::new();
    let program = Program {
        path: "/bin/cat".into(),
        args: Vec::new(),
        env: BTreeMap::new(),
        cwd: room.path("work"),
        stdin: true,
    };
    let confinement = room.confinement(ConfinementLevel::Bwrap);
    let mut process = Process::start_within(&program, Some(&confinement), false).unwrap();
    // What it repeats shows that it is the program by now.
    let stdin = process.stdin.as_mut().unwrap();
    tokio::io::AsyncWriteExt::write_all(stdin, b"x").await.unwrap();
    let mut answer = [0; 1];
    process.stdout.as_mut().unwrap().read_exact(&mut answer).await.unwrap();
    let inside = crate::util::process::program_pid(process.pid());
    let name = std::fs::read_to_string(format!("/proc/{inside}/comm")).unwrap();
    assert_eq!(name, "cat\n");
    process.shut_down(ShutdownTimeouts::default()).await;
}
