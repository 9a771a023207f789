use pillarbox_programtest::Ended;

use crate::{DEMO, assert_clean};

#[test]
fn sqlite_delivers_everything_once_and_can_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.db");
    let url = format!("sqlite://{}", file.display());
    for _ in 0..2 {
        let ended = DEMO.run(&["--store", &url, "--orders", "300", "--json"]);
        assert_clean(&ended, "shop.db");
        assert_eq!(ended.stderr, "", "nothing to tell in between");
    }
}

#[test]
fn the_default_store_is_a_file_in_the_current_directory() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = DEMO.command(&["--orders", "40"]);
    let ended: Ended = command.current_dir(folder.path()).output().unwrap().into();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("pillarbox-demo.db"), "it says where: {ended:?}");
    assert!(ended.stdout.contains("every committed event was handled once"), "{ended:?}");
    assert!(folder.path().join("pillarbox-demo.db").exists());
}
