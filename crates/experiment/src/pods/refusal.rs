//! Checks for labs that a cluster cannot run, before the first object is created.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use lab::{Attach, Elsewhere, Endpoint, Lab, Setup, Text, Variant};
use model::Order;

use super::systems::Which;

/// The reason why a cluster cannot measure this lab with `generators` generators, as a sentence.
pub fn refusal(lab: &Lab, generators: u32) -> Option<String> {
    of_order(lab)
        .or_else(|| of_load(lab, generators))
        .or_else(|| of_systems(lab))
}

fn of_order(lab: &Lab) -> Option<String> {
    if lab.groups.is_some() {
        return Some(
            "`groups` separate variants on one machine, but in a cluster all variants run at once. Remove them".to_owned(),
        );
    }
    match lab.order() {
        (Order::SideBySide, _) => None,
        (Order::InTurn, because) => Some(format!(
            "a cluster measures variants side by side, which is not possible for this lab: {}",
            because.unwrap_or("it has `order: in-turn`")
        )),
    }
}

fn of_load(lab: &Lab, generators: u32) -> Option<String> {
    if lab.capacity.is_some() {
        return Some(
            "a search for the highest rate needs a decision after each step, which generators in pods cannot make together. Write a `rate`".to_owned(),
        );
    }
    if lab.rate_choice.is_some() {
        return Some(
            "`rate: auto` needs short loads from this machine, which a cluster does not receive. Write a rate, such as `rate: 100/s`".to_owned(),
        );
    }
    if lab.load.connections() < generators {
        return Some(format!(
            "expected at least one connection for each of {generators} generators, found {}",
            lab.load.connections()
        ));
    }
    None
}

fn of_systems(lab: &Lab) -> Option<String> {
    for (variant, candidate) in lab.all().enumerate() {
        let setups = Variant::systems(candidate).iter();
        // The reading of manifests has its own checks.
        let ours = setups.filter(|setup| setup.balances.is_none() && setup.manifests().is_none());
        for setup in ours {
            if let Some(url) = setup.elsewhere() {
                match of_url(&setup.system, url) {
                    None => continue,
                    Some(reason) => return Some(format!("`{}`: {reason}", candidate.name)),
                }
            }
            if let Some(reason) = of_references(candidate, setup) {
                return Some(format!("`{}`: {reason}", candidate.name));
            }
            let which = Which {
                run: "check",
                variant: Some(variant),
                setup,
                settings: lab.pods.of_system(&setup.system),
                listen: Ipv4Addr::UNSPECIFIED.into(),
                node: None,
            };
            // Any address suffices, because no connection is made.
            let anywhere = |_: &str| Some(Endpoint::from(SocketAddr::from(([192, 0, 2, 1], 1))));
            let checked = which.workload(String::new(), Duration::ZERO, &anywhere);
            if let Err(reason) = checked {
                return Some(format!("`{}`: {reason}", candidate.name));
            }
        }
    }
    None
}

/// The reason why a generator in a pod cannot load a system that already runs.
fn of_url(system: &str, url: &Elsewhere) -> Option<String> {
    let host = url.host.trim_matches(['[', ']']);
    let address: Option<IpAddr> = host.parse().ok();
    let is_own_pod = host.eq_ignore_ascii_case("localhost")
        || address.is_some_and(|ip| ip.to_canonical().is_loopback() || ip.is_unspecified());
    if is_own_pod {
        return Some(format!(
            "`{system}` has the `url` of host `{}`, which is the generator's own pod in a cluster. Write the name of a Service, such as `http://{system}:8080`",
            url.host
        ));
    }
    let key = match url.attach.as_ref()? {
        Attach::Pods(_) => return None,
        Attach::Metrics(_) => {
            return Some(format!(
                "`{system}` has `attach: {{metrics: …}}`, but a cluster reads processor time and memory from kubelets. Write the labels of its pods, such as `attach: {{pods: app={system}}}`"
            ));
        }
        Attach::Pid(_) => "pid",
        Attach::Cgroup(_) => "cgroup",
        Attach::Container(_) => "container",
    };
    Some(format!(
        "`{system}` has `attach: {{{key}: …}}`, which names a program of this machine. Write the labels of its pods, such as `attach: {{pods: app={system}}}`"
    ))
}

/// The reason why a system in a pod cannot know a system that already runs. `weigh` does not resolve the names
/// of a cluster, so it knows the URL and no numbers.
fn of_references(candidate: &Variant, setup: &Setup) -> Option<String> {
    let systems = candidate.systems().iter();
    let urls = systems.filter(|other| other.elsewhere().is_some());
    let mut numbers = urls.filter(|url| {
        let uses = |text: &Text| text.has_address_of(&url.system);
        setup.env.iter().any(|(_, text)| uses(text))
            || setup.files.iter().any(|file| uses(&file.text))
            || setup
                .container()
                .is_some_and(|container| container.command.iter().any(uses))
    });
    let url = numbers.next()?;
    Some(format!(
        "`{}` uses `{{{{{1}.addr}}}}` or `{{{{{1}.port}}}}`, but `{1}` has a `url`, whose address only the cluster knows. Use `{{{{{1}.url}}}}`, or write host and port",
        setup.system, url.system
    ))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::files::Unwritten;

    /// A lab with these lines of its own, and these keys of its system.
    fn lab(lines: &str, system: &str) -> Lab {
        let text = format!(
            "question: Why?\n{lines}\ntarget: server\nsystems:\n  server: {system}\n\
             baseline: {{name: a}}\nvariants: [{{name: b}}]\nexpect: {{status: 200}}\n"
        );
        let files = Unwritten(vec![(PathBuf::from("lab.yaml"), text.clone().into_bytes())]);
        lab::parse(Path::new("lab.yaml"), &files)
            .unwrap_or_else(|mistakes| panic!("{text}{}", mistakes.render(false)))
    }

    const RATE: &str = "load: {rate: 10/s, duration: 1s}";
    const SYSTEM: &str = "{image: 'a:1', port: 80}";

    #[test]
    fn what_a_cluster_can_have_is_not_refused() {
        assert_eq!(refusal(&lab(RATE, SYSTEM), 2), None);
        let closed = lab("load: {connections: 4, duration: 1s}", SYSTEM);
        assert_eq!(refusal(&closed, 4), None);
        let replicas = "{image: 'a:1', port: 80, replicas: 4, limits: {cpus: 1, memory: 64MiB}}";
        assert_eq!(refusal(&lab(RATE, replicas), 2), None);
        for url in [
            "{url: 'http://web.shop.svc'}",
            "{url: 'https://10.1.2.3:8443', attach: {pods: 'app=web,tier in (front)'}}",
        ] {
            assert_eq!(refusal(&lab(RATE, url), 2), None, "{url}");
        }
    }

    #[test]
    fn a_pod_may_know_the_url_of_a_system_that_runs_already_and_no_numbers() {
        let refused = |reference: &str| {
            let system = format!(
                "{{image: 'a:1', port: 80, env: {{UPSTREAM: '{{{{api.{reference}}}}}'}}}}\n  api: {{url: 'http://api:80'}}"
            );
            refusal(&lab(RATE, &system), 1)
        };
        assert_eq!(refused("url"), None);
        for numbers in ["addr", "port"] {
            let reason = refused(numbers).unwrap_or_default();
            assert!(reason.contains("Use `{{api.url}}`"), "{reason}");
        }
    }

    #[test]
    fn loads_that_generators_would_have_to_decide_about_are_refused() {
        let refused = |lines: &str, generators: u32| {
            refusal(&lab(lines, SYSTEM), generators).unwrap_or_default()
        };
        let search = "load: {capacity: {from: 10/s, to: 20/s, p99-below: 1ms}, duration: 1s}";
        assert!(refused(search, 1).contains("a search for the highest rate"));
        let closed = "load: {connections: 4, duration: 1s}";
        assert!(refused(closed, 5).contains("each of 5 generators, found 4"));
        let in_turn = format!("{RATE}\norder: in-turn");
        assert!(refused(&in_turn, 1).contains("side by side"));
        let few = "load: {rate: 10/s, duration: 1s, connections-max: 1}";
        assert!(refused(few, 2).contains("each of 2 generators, found 1"));
    }

    #[test]
    fn systems_that_are_of_this_machine_are_refused_by_name_with_advice() {
        for (system, said) in [
            (
                "{run: 'server --listen {{addr}}'}",
                "`server` has no `image`",
            ),
            ("{image: 'a:1', port: 80, pin: 0}", "static CPU manager"),
            (
                "{image: 'a:1', port: 80, limits: {cpus: 1}}",
                "Add `limits.memory`",
            ),
            (
                "{image: 'a:1', port: 80, limits: {memory: 64MiB}}",
                "Add `limits.cpus`",
            ),
            (
                "{image: 'a:1', port: 80, volumes: './x:/x'}",
                "Put it into the image",
            ),
            (
                "{image: 'a:1', port: 80, user: app}",
                "expected the number of a user",
            ),
            (
                "{image: 'a:1', port: 80, ready: healthy}",
                "Give it `ready: {path: …}`",
            ),
            (
                "{image: 'a:1', port: 80, ready: {path: /, status: 404}}",
                "from 200 to 399",
            ),
            (
                "{image: 'a:1', port: 80, replicas: 2, env: {A: 'n-{{instance}}'}}",
                "equal settings",
            ),
            (
                "{url: 'http://127.0.0.1:8080'}",
                "the generator's own pod in a cluster",
            ),
            ("{url: 'http://[::1]'}", "the generator's own pod"),
            ("{url: 'http://LOCALHOST:80'}", "the generator's own pod"),
            ("{url: 'http://0.0.0.0:80'}", "the generator's own pod"),
            (
                "{url: 'http://web:80', attach: {pid: 4711}}",
                "`attach: {pid: …}`",
            ),
            (
                "{url: 'http://web', attach: {metrics: 'http://web:9090/metrics'}}",
                "from kubelets",
            ),
            (
                "{url: 'http://web:80', attach: {container: web-1}}",
                "attach: {pods: app=server}",
            ),
        ] {
            let refused = refusal(&lab(RATE, system), 1).unwrap_or_default();
            assert!(
                refused.contains(said) && refused.starts_with("`a`"),
                "{system}: {refused}"
            );
        }
    }
}
