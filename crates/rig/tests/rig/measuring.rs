//! Tests of usage and limits.

use std::process::Command;
use std::time::Duration;

use rig::{ProcessLimits, SpawnError, State, Status};

use crate::scene::{DEADLINE, FIXTURE, Scene, until, wait_for_line};

/// CPU time that the fixture reports: the sum of its `used MICROSECONDS` lines.
fn said_used(lines: &[String]) -> Duration {
    let used = lines.iter().filter_map(|line| line.strip_prefix("used "));
    Duration::from_micros(used.map(|us| us.parse::<u64>().unwrap()).sum())
}

/// Both clocks count time on the CPU, so a busy machine does not separate them. The start of the programs and
/// the 10 ms ticks of `/proc` separate them a little.
fn expect_about(found: Duration, expected: Duration) {
    let slack = expected / 10 + Duration::from_millis(40);
    assert!(
        found + slack > expected && found < expected + slack,
        "found {found:?}, expected {expected:?}"
    );
}

#[test]
fn cpu_time_is_what_the_system_itself_says_it_used() {
    let scene = Scene::new();
    let mut rig = scene.rig();
    let system = rig.spawn(&scene.system("burn", &["400"])).unwrap();
    wait_for_line(&mut rig, &system, "burned");
    let said = said_used(&system.last_lines());
    assert!(said >= Duration::from_millis(800));
    let usage = rig.usage(&system).unwrap();
    expect_about(usage.cpu, said);
    assert!(usage.context_switches.is_some());
    let is_counted = std::path::Path::new("/proc/self/schedstat").exists();
    assert_eq!(usage.waited_for_cpu.is_some(), is_counted);
    // After the stop, the usage is still available.
    let last = rig.stop(system, DEADLINE).usage.unwrap();
    assert!(last.cpu >= usage.cpu);
    assert_eq!(last.source, usage.source);
}

#[test]
fn the_peak_of_memory_outlasts_the_memory() {
    const HOG: u64 = 64 << 20;
    let scene = Scene::new();
    let mut rig = scene.rig();
    let system = rig.spawn(&scene.system("hog", &["64"])).unwrap();
    wait_for_line(&mut rig, &system, "let go");
    let usage = rig.usage(&system).unwrap();
    let peak = usage.memory_peak.unwrap();
    assert!((HOG..2 * HOG).contains(&peak), "{peak}");
    assert!(usage.memory_now.unwrap() < HOG);
}

#[test]
fn limits_are_in_force_and_read_back_or_it_is_said_why_not() {
    let scene = Scene::new();
    let mut rig = scene.rig();
    let mut spec = scene.system("burn", &["50"]);
    spec.limits = ProcessLimits {
        cpus: Some(0.1),
        memory: Some(32 << 20),
    };
    let system = rig.spawn(&spec).unwrap();
    let enforced = system.enforced().clone();
    wait_for_line(&mut rig, &system, "burned");
    let usage = rig.usage(&system).unwrap();
    if let Some(why) = &enforced.why_not {
        judged::not_run(why);
        assert!(enforced.cpus.is_none() || enforced.memory.is_none());
        return;
    }
    judged::ran();
    assert_eq!(enforced.cpus, Some(0.1));
    assert_eq!(enforced.memory, Some(32 << 20));
    assert!(enforced.by.unwrap().starts_with("cgroup v"));
    // 100 ms of work at a tenth of a CPU takes ten periods. They are cut short even if other programs leave
    // only a part of a CPU. (Linux 6.18 counts the periods but not always the time, so the test does not
    // check the time.)
    let throttled = usage.throttled.unwrap();
    assert!(throttled.throttled_periods > 0, "{throttled:?}");
    assert!(
        throttled.periods >= throttled.throttled_periods,
        "{throttled:?}"
    );
    let charged = usage.memory_charged_peak.unwrap();
    assert!(charged > 0 && charged <= 32 << 20, "{charged}");
    expect_about(usage.cpu, said_used(&system.last_lines()));
}

#[test]
fn a_system_that_outgrows_its_memory_is_said_to_have_done_so() {
    let scene = Scene::new();
    let mut rig = scene.rig();
    let mut spec = scene.system("hog", &["256"]);
    spec.limits.memory = Some(32 << 20);
    let system = rig.spawn(&spec).unwrap();
    if let Some(why) = &system.enforced().why_not {
        judged::not_run(why);
        return;
    }
    judged::ran();
    until("it has ended", || rig.state(&system) != State::Running);
    let status = rig.stop(system, DEADLINE).status;
    assert!(
        matches!(
            status,
            Status::Signal {
                signal: 9,
                out_of_memory: true
            }
        ),
        "{status}"
    );
    assert_eq!(
        status.to_string(),
        "signal 9 (SIGKILL), out of the memory it may use"
    );
}

#[test]
fn a_limit_without_sense_is_refused() {
    let scene = Scene::new();
    let mut rig = scene.rig();
    for cpus in [0.0, -1.0, 0.001, f64::NAN, f64::INFINITY] {
        let mut spec = scene.system("serve", &[]);
        spec.limits.cpus = Some(cpus);
        let error = rig.spawn(&spec).unwrap_err();
        assert!(
            matches!(error, SpawnError::Limit { limit: "cpus", .. }),
            "{error}"
        );
    }
    let mut spec = scene.system("serve", &[]);
    spec.limits.memory = Some(0);
    let error = rig.spawn(&spec).unwrap_err();
    assert!(
        matches!(
            error,
            SpawnError::Limit {
                limit: "memory",
                ..
            }
        ),
        "{error}"
    );
}

/// A command in a mount namespace of its own that hides all cgroups.
fn without_cgroups(scene: &Scene, mode: &str) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c"])
        .arg("umount -l -R /sys/fs/cgroup && exec \"$@\"")
        .args(["sh", FIXTURE, mode])
        .arg(scene.path());
    command
}

/// True if such a namespace can be created here.
#[track_caller]
fn can_hide_cgroups() -> bool {
    let tried = Command::new("unshare")
        .args(["--mount", "sh", "-c", "umount -l -R /sys/fs/cgroup"])
        .output();
    let can = tried.as_ref().is_ok_and(|output| output.status.success());
    if can {
        judged::ran();
    } else {
        judged::not_run(format_args!(
            "cannot hide cgroups from a process here: {tried:?}"
        ));
    }
    can
}

#[test]
fn without_cgroups_usage_comes_from_proc_and_limits_say_why_not() {
    if !can_hide_cgroups() {
        return;
    }
    let scene = Scene::new();
    let output = without_cgroups(&scene, "usage").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let value = |key: &str| {
        let lines = text.lines();
        lines
            .filter_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
            .next()
            .unwrap_or_else(|| panic!("no `{key}` in {text}"))
            .to_owned()
    };
    assert_eq!(value("source"), "/proc");
    assert_eq!(value("by"), "nothing");
    assert!(value("why").starts_with("no limit on cpus and memory: "));
    assert!(value("peak").parse::<u64>().unwrap() > 0);
    let log = std::fs::read_to_string(scene.path().join("burn.log")).unwrap();
    let lines: Vec<String> = log.lines().map(str::to_owned).collect();
    let cpu = Duration::from_micros(value("cpu").parse().unwrap());
    expect_about(cpu, said_used(&lines));
    assert_eq!(scene.processes(), []);
}

#[test]
fn without_cgroups_a_killed_owner_still_leaves_nothing() {
    if !can_hide_cgroups() {
        return;
    }
    let scene = Scene::new();
    let mut owner = without_cgroups(&scene, "owner").spawn().unwrap();
    scene.wait_for_family();
    owner.kill().unwrap();
    owner.wait().unwrap();
    scene.expect_nothing_left();
}
