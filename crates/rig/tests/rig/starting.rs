//! Tests of starting, building and readiness.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rig::{BuildError, BuildSpec, Manner, ReadyError, Rig, SpawnError, State, Status};

use crate::scene::{DEADLINE, FIXTURE, Scene, until, wait_for_line};

/// A stop flag that is never raised.
static GO: AtomicBool = AtomicBool::new(false);

#[test]
fn a_system_runs_in_its_folder_with_its_variables_until_it_is_stopped() {
    let scene = Scene::new();
    let mut rig = scene.rig();
    let mut spec = scene.system("say", &[]);
    spec.folder = scene.path().join("elsewhere");
    fs::create_dir(&spec.folder).unwrap();
    spec.env = vec![("RIG_TEST".to_owned(), "with space".to_owned())];
    spec.cpus_allowed = Some(vec![0]);
    let system = rig.spawn(&spec).unwrap();
    wait_for_line(&mut rig, &system, "cpus 1");
    assert_eq!(
        system.last_lines(),
        [
            format!("name {FIXTURE}"),
            format!("folder {}", spec.folder.display()),
            "variable with space".to_owned(),
            "cpus 1".to_owned(),
        ]
    );
    assert_eq!(rig.state(&system), State::Running);

    let stopped = rig.stop(system, DEADLINE);
    assert_eq!(stopped.manner, Manner::OnRequest);
    assert_eq!(stopped.status.to_string(), "signal 15 (SIGTERM)");
    assert!(stopped.usage.unwrap().memory_peak.unwrap() > 0);
    assert!(scene.processes_in("say").is_empty());
    rig.shut_down().unwrap();
    scene.expect_nothing_left();
}

#[test]
fn an_exit_at_the_start_is_reported_at_once_with_the_last_lines() {
    let scene = Scene::new();
    let mut rig = scene.rig();
    let system = rig.spawn(&scene.system("fail", &["3"])).unwrap();
    let mut never = || Err("no answer".to_owned());
    let error = rig
        .wait_ready(&system, DEADLINE, &mut never, &GO)
        .unwrap_err();
    let ReadyError::Exited {
        status, last_lines, ..
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(*status, Status::Code(3));
    assert_eq!(last_lines.len(), 20);
    assert_eq!(last_lines.last().unwrap(), "line 30");
    let message = error.to_string();
    assert!(message.starts_with("`fail` ended with exit code 3 before it was ready. Its log `"));
    assert!(message.ends_with("\n  | line 30"), "{message}");

    let State::Exited { status, .. } = rig.state(&system) else {
        panic!("it has ended");
    };
    assert_eq!(status, Status::Code(3));
    let stopped = rig.stop(system, DEADLINE);
    assert_eq!(stopped.manner, Manner::AlreadyGone);
    assert_eq!(stopped.status, Status::Code(3));
}

#[test]
fn a_missing_program_is_named_with_the_places_searched() {
    let scene = Scene::new();
    let mut rig = scene.rig();
    let mut spec = scene.system("serve", &[]);
    spec.command = vec!["no-such-program".to_owned()];
    spec.env = vec![("PATH".to_owned(), "/nowhere".to_owned())];
    let error = rig.spawn(&spec).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`serve` needs the program `no-such-program`, which is not in any folder of PATH \
         (`/nowhere`). Install it or correct the command"
    );
    spec.command = vec!["./target/none".to_owned()];
    let error = rig.spawn(&spec).unwrap_err();
    assert!(
        matches!(error, SpawnError::ProgramMissing { .. }),
        "{error}"
    );
    spec.command.clear();
    let error = rig.spawn(&spec).unwrap_err();
    assert!(matches!(error, SpawnError::EmptyCommand { .. }), "{error}");
    spec.command = vec![FIXTURE.to_owned()];
    spec.folder = scene.path().join("none");
    let error = rig.spawn(&spec).unwrap_err();
    assert!(matches!(error, SpawnError::FolderMissing { .. }), "{error}");
}

#[test]
fn what_the_kernel_refuses_to_run_says_why_and_leaves_nothing() {
    let scene = Scene::new();
    let mut rig = scene.rig();
    let script = scene.path().join("script");
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let mut spec = scene.system("serve", &[]);
    spec.command = vec![script.to_str().unwrap().to_owned()];
    let error = rig.spawn(&spec).unwrap_err();
    let SpawnError::Exec { reason, .. } = &error else {
        panic!("{error}");
    };
    assert!(reason.contains("interpreter"), "{reason}");

    let mut pinned = scene.system("serve", &[]);
    pinned.cpus_allowed = Some(vec![100_000]);
    let error = rig.spawn(&pinned).unwrap_err();
    assert!(matches!(error, SpawnError::Pin { .. }), "{error}");

    until("shepherds have gone", || scene.shepherds().is_empty());
    // The rig still works.
    let system = rig.spawn(&scene.system("serve", &[])).unwrap();
    assert_eq!(rig.state(&system), State::Running);
}

#[test]
fn readiness_is_what_the_probe_says_and_the_time_out_tells_its_last_reason() {
    let scene = Scene::new();
    let mut rig = scene.rig();
    let system = rig.spawn(&scene.system("serve", &[])).unwrap();
    let asked = Cell::new(0);
    let mut third_time = || {
        asked.set(asked.get() + 1);
        match asked.get() {
            1 | 2 => Err(format!("answer {}", asked.get())),
            _ => Ok(()),
        }
    };
    rig.wait_ready(&system, DEADLINE, &mut third_time, &GO)
        .unwrap();
    assert_eq!(asked.get(), 3);

    let mut never = || Err("status 503".to_owned());
    let error = rig
        .wait_ready(&system, Duration::ZERO, &mut never, &GO)
        .unwrap_err();
    assert!(
        matches!(&error, ReadyError::TimedOut { last_reason, .. } if last_reason == "status 503")
    );
    let stop = AtomicBool::new(true);
    let error = rig
        .wait_ready(&system, DEADLINE, &mut never, &stop)
        .unwrap_err();
    assert!(matches!(error, ReadyError::Interrupted { .. }));
}

#[test]
fn systems_still_start_after_the_keepers_own_program_was_replaced() {
    let scene = Scene::new();
    let mut command = scene.keeper_command();
    command.program = scene.path().join("weigh");
    fs::copy(FIXTURE, &command.program).unwrap();
    let program = command.program.clone();
    let mut rig = Rig::start(command, scene.path()).unwrap();
    fs::remove_file(&program).unwrap();
    fs::write(&program, "half a program").unwrap();
    let system = rig.spawn(&scene.system("serve", &[])).unwrap();
    wait_for_line(&mut rig, &system, "up");
}

fn step(scene: &Scene, command: &[&str]) -> BuildSpec {
    BuildSpec {
        name: "server".to_owned(),
        command: command.iter().map(|&word| word.to_owned()).collect(),
        folder: scene.path().to_owned(),
        env: vec![("RIG_TEST".to_owned(), "built".to_owned())],
        log: scene.path().join("logs/build.log"),
        within: None,
    }
}

#[test]
fn a_build_step_runs_to_its_end_and_a_failed_one_shows_its_last_lines() {
    let scene = Scene::new();
    let mut rig = scene.rig();
    let good = step(&scene, &["sh", "-c", "echo $RIG_TEST >product"]);
    rig.build(&good, &GO).unwrap();
    let product = fs::read_to_string(scene.path().join("product")).unwrap();
    assert_eq!(product, "built\n");

    let bad = step(&scene, &["sh", "-c", "echo no such crate >&2; exit 101"]);
    let error = rig.build(&bad, &GO).unwrap_err();
    let message = error.to_string();
    assert!(
        message.starts_with(
            "`sh -c 'echo no such crate >&2; exit 101'` (building `server`) ended with exit code 101"
        ),
        "{message}"
    );
    assert!(message.ends_with("\n  | no such crate"), "{message}");
}

#[test]
fn what_a_build_step_leaves_running_is_ended_with_it() {
    let scene = Scene::new();
    let mut rig = scene.rig();
    let folder = scene.path().to_str().unwrap();
    rig.build(&step(&scene, &[FIXTURE, "family-and-exit", folder]), &GO)
        .unwrap();
    assert!(scene.processes_in("marked").is_empty());
}

#[test]
fn a_step_that_does_not_end_in_its_time_is_ended_and_its_last_lines_are_told() {
    let scene = Scene::new();
    let mut rig = scene.rig();
    let folder = scene.path().to_str().unwrap();
    let mut step = step(&scene, &[FIXTURE, "family", folder]);
    step.within = Some(Duration::from_millis(500));
    let error = rig.build(&step, &GO).unwrap_err();
    assert!(
        matches!(&error, BuildError::TimedOut { within, .. } if *within == Duration::from_millis(500)),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .contains("(server) did not end within 500ms"),
        "{error}"
    );
    assert!(scene.processes_in("marked").is_empty());

    step.command = ["sh", "-c", "sleep 0.01"].map(str::to_owned).to_vec();
    step.within = Some(Duration::from_secs(60));
    rig.build(&step, &GO).unwrap();
}

#[test]
fn an_interrupted_build_is_ended() {
    let scene = Scene::new();
    let mut rig = scene.rig();
    let folder = scene.path().to_str().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            scene.wait_for_family();
            stop.store(true, Ordering::Relaxed);
        });
        let error = rig
            .build(&step(&scene, &[FIXTURE, "family", folder]), &stop)
            .unwrap_err();
        assert!(matches!(error, BuildError::Interrupted { .. }), "{error}");
    });
    assert!(scene.processes_in("marked").is_empty());
}
