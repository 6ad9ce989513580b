//! No process is left running, regardless of the process that is killed.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rig::{Manner, State, Status};

use crate::scene::{
    DEADLINE, FIXTURE, Scene, cgroups, cgroups_of_keeper, kill, until, wait_for_line,
};

#[test]
fn a_system_that_ignores_sigterm_is_killed_after_the_grace() {
    let scene = Scene::new();
    let mut rig = scene.rig();
    for _ in 0..2 {
        let system = rig.spawn(&scene.system("stubborn", &[])).unwrap();
        wait_for_line(&mut rig, &system, "up");
        let stopped = rig.stop(system, Duration::from_millis(50));
        assert_eq!(stopped.manner, Manner::Killed);
        assert_eq!(stopped.status.to_string(), "signal 9 (SIGKILL)");
        assert!(scene.processes_in("stubborn").is_empty());
    }
    // Its name is there once, with the number of its stops.
    assert_eq!(rig.killed().collect::<Vec<_>>(), [("stubborn", 2)]);
}

#[test]
fn stop_ends_daemons_that_forked_twice_and_left_the_session() {
    let scene = Scene::new();
    let mut rig = scene.rig();
    let bystander = rig.spawn(&scene.system("serve", &[])).unwrap();
    let system = rig.spawn(&scene.system("family", &[])).unwrap();
    scene.wait_for_family();
    let stopped = rig.stop(system, Duration::from_millis(200));
    assert_eq!(stopped.manner, Manner::Killed, "one of them is stubborn");
    assert_eq!(scene.processes_in("marked"), [0; 0]);
    assert_eq!(scene.processes_in("family"), [0; 0]);
    assert_eq!(rig.state(&bystander), State::Running);
}

#[test]
fn a_first_process_that_ends_by_itself_is_exited_and_its_daemons_end_on_stop() {
    let scene = Scene::new();
    let mut rig = scene.rig();
    let system = rig.spawn(&scene.system("family-and-exit", &[])).unwrap();
    until("it has exited", || rig.state(&system) != State::Running);
    until("the daemons are there", || {
        scene.path().join("stubborn-daemon").exists() && scene.path().join("own-group").exists()
    });
    let stopped = rig.stop(system, Duration::from_millis(200));
    assert_eq!(stopped.status, Status::Code(0));
    assert_eq!(stopped.manner, Manner::Killed);
    assert_eq!(scene.processes_in("marked"), [0; 0]);
}

#[test]
fn the_end_of_the_rig_is_the_end_of_its_systems_and_cgroups() {
    for shut_down in [true, false] {
        let scene = Scene::new();
        let mut rig = scene.rig();
        let keeper = rig.keeper_pid();
        let _first = rig.spawn(&scene.system("family", &[])).unwrap();
        let _second = rig.spawn(&scene.system("stubborn", &[])).unwrap();
        scene.wait_for_family();
        if shut_down {
            rig.shut_down().unwrap();
        } else {
            drop(rig);
        }
        // No waiting, because both return only after all processes have ended.
        assert_eq!(scene.processes(), []);
        assert!(cgroups_of_keeper(keeper).is_empty());
    }
}

#[test]
fn folders_that_were_only_for_the_run_are_removed_and_what_they_link_to_stays() {
    let scene = Scene::new();
    let mut rig = scene.rig();
    let (folder, other) = (
        scene.path().join("only-for-the-run"),
        scene.path().join("other"),
    );
    for absent in ["only-for-the-run", "never-made"] {
        rig.remove_at_end(&scene.path().join(absent)).unwrap();
    }
    fs::create_dir_all(folder.join("deep")).unwrap();
    fs::create_dir(&other).unwrap();
    fs::write(other.join("kept"), "").unwrap();
    std::os::unix::fs::symlink(&other, folder.join("deep/link")).unwrap();
    let _system = rig.spawn(&scene.system("stubborn", &[])).unwrap();
    rig.shut_down().unwrap();
    assert!(!folder.exists());
    assert!(other.join("kept").is_file());
}

/// Starts an owner of a rig in a process of its own, and waits for its complete family.
fn owner(scene: &Scene) -> (Child, u32) {
    let owner = Command::new(FIXTURE)
        .arg("owner")
        .arg(scene.path())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    scene.wait_for_family();
    let mut keeper = None;
    until("the keeper is known", || {
        keeper = fs::read_to_string(scene.path().join("keeper-pid"))
            .ok()
            .and_then(|text| text.parse().ok());
        keeper.is_some()
    });
    (owner, keeper.unwrap())
}

fn expect_no_cgroup_of(owner: u32) {
    let beginning = format!("weighbridge-{owner}-");
    until("no cgroup is left", || {
        cgroups(|name| name.starts_with(&beginning)).is_empty()
    });
}

#[test]
fn an_owner_killed_with_sigkill_leaves_no_process_and_no_cgroup() {
    let scene = Scene::new();
    let (mut owner, _) = owner(&scene);
    owner.kill().unwrap();
    owner.wait().unwrap();
    scene.expect_nothing_left();
    expect_no_cgroup_of(owner.id());
    let ran = fs::read_to_string(scene.path().join("errand"));
    assert_eq!(ran.unwrap(), "Gone");
}

#[test]
fn an_errand_is_run_once_and_told_how_its_owner_has_ended() {
    let scene = Scene::new();
    let mut rig = scene.rig();
    let errand = scene.path().join("errand");
    for _ in 0..2 {
        rig.run_at_end(&errand.display().to_string()).unwrap();
    }
    let _system = rig.spawn(&scene.system("serve", &[])).unwrap();
    assert!(!errand.exists());
    rig.shut_down().unwrap();
    assert_eq!(fs::read_to_string(errand).unwrap(), "Finished");
}

#[test]
fn an_owner_killed_at_any_moment_of_its_start_leaves_nothing() {
    // Owner, keeper, shepherd, launcher, first process and family appear one after the other. The kill comes
    // when `count` of them exist.
    for count in (1..=8).cycle().take(24) {
        let scene = Scene::new();
        let mut owner = Command::new(FIXTURE)
            .arg("owner")
            .arg(scene.path())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        until("the moment", || scene.processes().len() >= count);
        owner.kill().unwrap();
        owner.wait().unwrap();
        scene.expect_nothing_left();
        expect_no_cgroup_of(owner.id());
    }
}

#[test]
fn a_keeper_killed_with_sigkill_leaves_no_system_and_no_cgroup() {
    let scene = Scene::new();
    let mut rig = scene.rig();
    let keeper = rig.keeper_pid();
    let system = rig.spawn(&scene.system("family", &[])).unwrap();
    scene.wait_for_family();
    kill(keeper);
    until("the loss is seen", || rig.state(&system) != State::Running);
    assert!(matches!(
        rig.state(&system),
        State::Exited {
            status: Status::Lost,
            ..
        }
    ));
    assert_eq!(scene.processes(), []);
    assert!(cgroups_of_keeper(keeper).is_empty());

    let error = rig.spawn(&scene.system("serve", &[])).unwrap_err();
    assert!(
        error.to_string().contains("the keeper process has ended"),
        "{error}"
    );
    assert_eq!(rig.stop(system, DEADLINE).status, Status::Lost);
    assert!(rig.shut_down().is_err());
}

#[test]
fn owner_and_keeper_killed_together_leave_no_process_and_no_cgroup() {
    let scene = Scene::new();
    let (mut owner, keeper) = owner(&scene);
    kill(keeper);
    kill(owner.id());
    owner.wait().unwrap();
    scene.expect_nothing_left();
    expect_no_cgroup_of(owner.id());
}

#[test]
fn owner_and_shepherd_killed_together_leave_no_process_and_no_cgroup() {
    let scene = Scene::new();
    let (mut owner, _) = owner(&scene);
    for shepherd in scene.shepherds() {
        kill(shepherd);
    }
    kill(owner.id());
    owner.wait().unwrap();
    scene.expect_nothing_left();
    expect_no_cgroup_of(owner.id());
}

#[test]
fn a_shepherd_killed_with_sigkill_takes_its_system_along_and_only_that() {
    let scene = Scene::new();
    let mut rig = scene.rig();
    let system = rig.spawn(&scene.system("family", &[])).unwrap();
    scene.wait_for_family();
    let shepherds = scene.shepherds();
    let bystander = rig.spawn(&scene.system("serve", &[])).unwrap();
    assert_eq!(shepherds.len(), 1);
    kill(shepherds[0]);
    until("the loss is seen", || rig.state(&system) != State::Running);
    assert_eq!(scene.processes_in("marked"), [0; 0]);
    assert_eq!(scene.processes_in("family"), [0; 0]);
    assert_eq!(rig.state(&bystander), State::Running);
    assert_eq!(rig.stop(system, DEADLINE).status, Status::Lost);
    rig.shut_down().unwrap();
}

#[test]
fn the_first_process_of_an_orphaned_system_dies_even_without_a_shepherd_or_keeper() {
    let scene = Scene::new();
    let (mut owner, keeper) = owner(&scene);
    let shepherds = scene.shepherds();
    // Stopped processes cannot clean up. The parent-death signal comes from the kernel.
    for pid in [keeper, shepherds[0]] {
        let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    }
    kill(shepherds[0]);
    until("the first process is dead", || {
        scene.processes_in("family").is_empty()
    });
    owner.kill().unwrap();
    owner.wait().unwrap();
    let pid = rustix::process::Pid::from_raw(keeper.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    scene.expect_nothing_left();
    expect_no_cgroup_of(owner.id());
}

#[test]
fn keeper_and_shepherds_have_left_the_session_so_ctrl_c_does_not_reach_them() {
    let scene = Scene::new();
    let mut rig = scene.rig();
    let _system = rig.spawn(&scene.system("serve", &[])).unwrap();
    // Read from the process table. It shows 0 for a session that began outside this process's namespace, and
    // the system call's wrapper does not expect 0.
    let session = |pid: u32| -> u32 {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        fields.split_whitespace().nth(3).unwrap().parse().unwrap()
    };
    let keeper = session(rig.keeper_pid());
    assert_ne!(keeper, session(std::process::id()));
    for pid in [scene.shepherds(), scene.processes_in("serve")].concat() {
        assert_eq!(session(pid), keeper);
    }
}

#[test]
fn a_keeper_asked_to_end_ends_everything_first() {
    let scene = Scene::new();
    let mut rig = scene.rig();
    let keeper = rig.keeper_pid();
    let system = rig.spawn(&scene.system("family", &[])).unwrap();
    scene.wait_for_family();
    let pid = rustix::process::Pid::from_raw(keeper.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    until("the loss is seen", || rig.state(&system) != State::Running);
    assert_eq!(scene.processes(), []);
    assert!(cgroups_of_keeper(keeper).is_empty());
}
