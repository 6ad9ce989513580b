//! A run with precedence restores the weight of the session, regardless of the process that is killed.

use std::fs;
use std::process::{Child, Command, Stdio};

use crate::scene::{FIXTURE, Scene, cgroups, kill, until};

/// An owner with its keeper and a bystander in the owner's session.
struct First {
    owner: Child,
    keeper: u32,
    bystander: u32,
}

impl First {
    /// Starts an owner with precedence. `None`, with a note, if this machine does not allow it.
    fn of(scene: &Scene) -> Option<First> {
        let mut owner = Command::new(FIXTURE)
            .arg("owner-first")
            .arg(scene.path())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        until("the owner has told", || scene.path().join("told").exists());
        let told = fs::read_to_string(scene.path().join("told")).unwrap();
        let (keeper, is_first) = told.split_once(' ').unwrap();
        let keeper = keeper.parse().unwrap();
        until("the bystander is there", || {
            scene.path().join("bystander").exists()
        });
        let bystander = scene.processes_in("marked")[0];
        if is_first == "false" {
            judged::not_run("this machine does not weigh sessions, or not for this user");
            // Then everything is unchanged.
            assert_eq!(nice(bystander).unwrap_or(0), 0);
            owner.kill().unwrap();
            owner.wait().unwrap();
            kill(bystander);
            return None;
        }
        judged::ran();
        Some(First {
            owner,
            keeper,
            bystander,
        })
    }

    fn expect_given_back(&self, scene: &Scene) {
        until("the session has what it had", || {
            nice(self.bystander) == Some(0)
        });
        kill(self.bystander);
        scene.expect_nothing_left();
    }
}

/// The niceness of the session of a process.
fn nice(pid: u32) -> Option<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/autogroup")).ok()?;
    text.trim().rsplit(' ').next()?.parse().ok()
}

#[test]
fn the_sessions_of_owner_and_keeper_and_the_group_of_the_run_weigh_the_same() {
    let scene = Scene::new();
    let Some(mut first) = First::of(&scene) else {
        return;
    };
    assert_eq!(nice(first.bystander), Some(-10));
    assert_eq!(nice(first.keeper), Some(-10));
    let beginning = format!("weighbridge-{}-", first.owner.id());
    for group in cgroups(|name| name.starts_with(&beginning)) {
        if let Ok(shares) = fs::read_to_string(group.join("cpu.shares")) {
            // The kernel's weight for a program of that niceness.
            assert_eq!(shares.trim(), "9548");
        }
    }
    first.owner.kill().unwrap();
    first.owner.wait().unwrap();
    first.expect_given_back(&scene);
    until("no cgroup is left", || {
        cgroups(|name| name.starts_with(&beginning)).is_empty()
    });
}

#[test]
fn an_owner_whose_keeper_was_killed_gives_precedence_back() {
    let scene = Scene::new();
    let Some(mut first) = First::of(&scene) else {
        return;
    };
    kill(first.keeper);
    until("the session has what it had", || {
        nice(first.bystander) == Some(0)
    });
    first.owner.kill().unwrap();
    first.owner.wait().unwrap();
    first.expect_given_back(&scene);
}
