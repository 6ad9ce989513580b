use std::fs;
use std::path::Path;

use super::*;
use crate::outcome::Enforced;
use crate::spec::ProcessLimits;

const HYBRID_MOUNTS: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:5 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";

#[test]
fn own_groups_are_found_in_every_hierarchy_of_a_hybrid_machine() {
    let membership = "4:memory:/box/a\n2:cpu,cpuacct:/\n9:name=systemd:/\n0::/scope";
    let found = Hierarchies::parse(HYBRID_MOUNTS, membership);
    let own = |controller| found.v1(controller).map(|h| h.own.to_str().unwrap());
    assert_eq!(own("memory"), Some("/sys/fs/cgroup/memory/box/a"));
    assert_eq!(own("cpu"), Some("/sys/fs/cgroup/cpu"));
    assert_eq!(own("cpuacct"), Some("/sys/fs/cgroup/cpu"));
    let v2 = found.v2.clone().unwrap();
    assert_eq!(v2.own, Path::new("/sys/fs/cgroup/unified/scope"));
    assert_eq!(
        found.places(),
        [
            Path::new("/sys/fs/cgroup/unified/scope"),
            Path::new("/sys/fs/cgroup/unified"),
            Path::new("/sys/fs/cgroup/cpu"),
            Path::new("/sys/fs/cgroup/memory/box/a"),
        ]
    );
}

#[test]
fn in_a_container_the_path_counts_from_what_is_mounted() {
    let mounts = "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory";
    let inside = Hierarchies::parse(mounts, "4:memory:/docker/abc/x");
    assert_eq!(
        inside.v1("memory").unwrap().own,
        Path::new("/sys/fs/cgroup/memory/x")
    );
    let outside = Hierarchies::parse(mounts, "4:memory:/docker/other");
    assert_eq!(outside, Hierarchies::default());
    let above = Hierarchies::parse(
        "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
        "0::/../../elsewhere",
    );
    assert_eq!(above.describe(), "none");
}

/// A folder that looks like a version 2 hierarchy. It contains the files that the kernel would create.
fn fake_v2(own_max: &str) -> (tempfile::TempDir, Hierarchies) {
    let root = tempfile::tempdir().unwrap();
    let file = |path: &str, text: &str| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    file("cgroup.controllers", "cpu memory\n");
    file("cgroup.subtree_control", "cpu memory\n");
    file("scope/cgroup.controllers", "\n");
    file("scope/cgroup.subtree_control", "\n");
    file("scope/memory.max", own_max);
    for name in [
        "cgroup.procs",
        "cpu.max",
        "memory.max",
        "memory.swap.max",
        "cgroup.kill",
    ] {
        file(&format!("run/1-a/{name}"), "");
        file(&format!("scope/run/1-a/{name}"), "");
    }
    file("run/cgroup.subtree_control", "");
    let mounts = format!(
        "41 31 0:38 / {} rw - cgroup2 cgroup2 rw",
        root.path().display()
    );
    let hierarchies = Hierarchies::parse(&mounts, "0::/scope");
    (root, hierarchies)
}

const LIMITS: ProcessLimits = ProcessLimits {
    cpus: Some(0.25),
    memory: Some(1 << 20),
};

#[test]
fn version_2_limits_are_set_below_the_nearest_group_that_hands_controllers_on() {
    let (root, hierarchies) = fake_v2("max\n");
    assert_eq!(hierarchies.describe(), "v2");
    let (groups, enforced) = settle(&hierarchies, Path::new("run/1-a"), LIMITS, 77);
    let dir = root.path().join("run/1-a");
    assert_eq!(groups.v2.as_deref(), Some(dir.as_path()));
    let text = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    assert_eq!(text("cpu.max"), "25000 100000");
    assert_eq!(text("memory.max"), "1048576");
    assert_eq!(text("memory.swap.max"), "0");
    assert_eq!(text("cgroup.procs"), "77");
    assert_eq!(enforced.cpus, Some(0.25));
    assert_eq!(enforced.memory, Some(1 << 20));
    assert_eq!(enforced.by.as_deref(), Some("cgroup v2"));
    assert_eq!(enforced.why_not, None);
}

#[test]
fn a_limit_on_the_run_itself_is_not_escaped() {
    let (root, hierarchies) = fake_v2("1048576\n");
    let (groups, enforced) = settle(&hierarchies, Path::new("run/1-a"), LIMITS, 77);
    // It is still counted, in a group below the limited one.
    assert_eq!(groups.v2, Some(root.path().join("scope/run/1-a")));
    assert_eq!((enforced.cpus, enforced.memory), (None, None));
    let why = enforced.why_not.unwrap();
    assert!(why.contains("scope/memory.max"), "{why}");
}

#[test]
fn without_limits_no_controller_is_joined() {
    let (root, hierarchies) = fake_v2("max\n");
    let (groups, enforced) = settle(
        &hierarchies,
        Path::new("run/1-a"),
        ProcessLimits::default(),
        77,
    );
    assert_eq!(groups.v2, Some(root.path().join("scope/run/1-a")));
    assert_eq!(enforced, Enforced::default());
}

#[test]
fn without_any_hierarchy_the_limits_say_why_they_are_not_in_force() {
    let (groups, enforced) = settle(&Hierarchies::default(), Path::new("run/1-a"), LIMITS, 77);
    assert_eq!(groups, Groups::default());
    assert_eq!(
        enforced.why_not.as_deref(),
        Some(
            "no limit on cpus and memory: this machine has no cgroup hierarchy \
             with the controller"
        )
    );
}

#[test]
fn a_program_s_group_is_the_one_with_its_name_whatever_it_has_made_below() {
    let groups = Groups {
        v2: Some("/cg/docker/4f/init.scope".into()),
        v1_cpu: Some("/cg/cpu/docker/4f".into()),
        v1_cpuacct: Some("/cg/cpuacct".into()),
        v1_memory: None,
    };
    let own = groups.up_to("4f");
    assert_eq!(own.v2, Some("/cg/docker/4f".into()));
    assert_eq!(own.v1_cpu, Some("/cg/cpu/docker/4f".into()));
    // The root would count the whole machine.
    assert_eq!(own.v1_cpuacct, None);
}

#[test]
fn limits_that_others_have_set_are_read_in_either_version() {
    let v1 = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(v1.path().join(name), text).unwrap();
    write("cpu.cfs_quota_us", "50000\n");
    write("cpu.cfs_period_us", "100000\n");
    write("memory.limit_in_bytes", "9223372036854771712\n");
    let groups = Groups {
        v1_cpu: Some(v1.path().to_owned()),
        v1_memory: Some(v1.path().to_owned()),
        ..Groups::default()
    };
    let enforced = limits_of(&groups);
    assert_eq!((enforced.cpus, enforced.memory), (Some(0.5), None));
    assert_eq!(enforced.by.as_deref(), Some("cgroup v1"));
    write("cpu.cfs_quota_us", "-1\n");
    write("memory.limit_in_bytes", "67108864\n");
    let enforced = limits_of(&groups);
    assert_eq!((enforced.cpus, enforced.memory), (None, Some(64 << 20)));
    let v2 = tempfile::tempdir().unwrap();
    fs::write(v2.path().join("cpu.max"), "25000 100000\n").unwrap();
    fs::write(v2.path().join("memory.max"), "max\n").unwrap();
    let groups = Groups {
        v2: Some(v2.path().to_owned()),
        ..Groups::default()
    };
    let enforced = limits_of(&groups);
    assert_eq!((enforced.cpus, enforced.memory), (Some(0.25), None));
    assert_eq!(enforced.by.as_deref(), Some("cgroup v2"));
}
