//! Tests of programs in namespaces of their own: where metadata can be changed, and how they end.

use super::*;

fn has_namespaces() -> bool {
    levels().contains(&ConfinementLevel::Namespaces)
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
async fn with_metadata_allowed_other_files_stay_as_they_are_in_namespaces() {
    if !has_namespaces() {
        return;
    }
    let room = Room::new();
    std::fs::write(room.path("home/secret"), "x").unwrap();
    let confinement =
        Confinement { metadata: true, ..room.confinement(ConfinementLevel::Namespaces) };
    let ended = room.shell(&confinement, "chmod 777 $ROOM/home/secret").await;
    assert!(ended.err.contains("Read-only file system"), "{}", ended.err);
}

#[tokio::test]
async fn what_a_program_leaves_running_ends_with_it() {
    if !has_namespaces() {
        return;
    }
    let room = Room::new();
    // The sleeper holds the pipe open, so that its end is seen.
    let script = "setsid sleep 600 & echo $$; exit 7";
    let ended = room.shell(&room.confinement(ConfinementLevel::Namespaces), script).await;
    assert_eq!((ended.out.as_str(), ended.status.code()), ("2\n", Some(7)), "{}", ended.err);
}

#[tokio::test]
async fn a_program_in_namespaces_may_end_in_peace() {
    if !has_namespaces() {
        return;
    }
    let room = Room::new();
    let program = Program {
        path: "/bin/sh".into(),
        args: vec![
            "-c".into(),
            "trap 'echo peace; exit 5' TERM; echo ready; while :; do sleep 0.01; done".into(),
        ],
        env: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]),
        cwd: room.path("work"),
        stdin: false,
    };
    let confinement = room.confinement(ConfinementLevel::Namespaces);
    let mut process = Process::start_confined(&program, &confinement, false).unwrap();
    let mut stdout = process.stdout.take().unwrap();
    let mut ready = [0; 6];
    stdout.read_exact(&mut ready).await.unwrap();
    process.signal(rustix::process::Signal::TERM);
    let mut last = String::new();
    stdout.read_to_string(&mut last).await.unwrap();
    assert_eq!(process.wait().await.unwrap().code(), Some(5));
    assert_eq!(last, "peace\n");
}

#[tokio::test]
async fn the_memory_of_the_program_is_told_and_not_that_of_its_helpers() {
    if !has_namespaces() {
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
    let confinement = room.confinement(ConfinementLevel::Namespaces);
    let mut process = Process::start_confined(&program, &confinement, false).unwrap();
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
