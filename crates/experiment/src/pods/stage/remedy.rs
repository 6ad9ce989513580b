//! Remedies for pods that do not start, by the words of the cluster about them.

use cluster::call::Resource;
use cluster::node::NodeDescription;
use cluster::state::PodState;

use super::Stage;
use crate::pods::wanted::Wanted;

/// The origin of a pod, which decides where its settings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Generator,
    /// A system with an `image`.
    Image,
    /// A system with `manifests`.
    Manifests,
}

impl Stage<'_> {
    pub(super) fn origin_of(&self, one: &Wanted<'_>) -> Origin {
        match self.manifests_of(one) {
            Some(_) => Origin::Manifests,
            None => Origin::Image,
        }
    }

    /// The remedy for a pod with these words about it, as the end of a text. Empty without a known remedy.
    pub(super) fn remedy_for(&self, pod: &PodState, origin: Origin, words: &str) -> String {
        if words.contains(WRONG_FORMAT) {
            let node = pod.node.as_deref().unwrap_or_default();
            let known = self.connection().get(Resource::Nodes, node).ok();
            let known = known.map(|node| NodeDescription::of(&node).architecture);
            return format!(". {}", of_architecture(origin, node, known.as_deref()));
        }
        of_words(origin, words).map_or_else(String::new, |remedy| format!(". {remedy}"))
    }
}

/// The words of a kernel about a program for another processor.
const WRONG_FORMAT: &str = "exec format error";

/// A reason of a scheduler, the beginning of the remedy, and the setting of the remedy.
const UNPLACED: [(&str, &str, &str); 2] = [
    (
        "untolerated taint",
        "Tolerate the taint with",
        "tolerations",
    ),
    (
        "didn't match Pod's node affinity/selector",
        "Choose other nodes with",
        "node-selector",
    ),
];

fn of_words(origin: Origin, words: &str) -> Option<String> {
    if words.contains("ErrImageNeverPull") {
        return Some(match origin {
            Origin::Manifests => "The node does not have the image. Load it there, or change its `imagePullPolicy`",
            _ => "The node does not have the image. Load it there, or allow to pull it with `pull: missing`",
        }
        .to_owned());
    }
    if words.contains("ErrImagePull") || words.contains("ImagePullBackOff") {
        let image = match origin {
            Origin::Generator => {
                "Name an image of weigh that the nodes can pull with `--generator-image`"
            }
            Origin::Image => "Name an image that the nodes can pull with `image`",
            Origin::Manifests => "Name an image that the nodes can pull in the manifests",
        };
        let secrets = key(origin, "image-pull-secrets");
        return Some(format!(
            "{image}. If its registry wants a password, name a Secret in {secrets}"
        ));
    }
    let mut reasons = UNPLACED.iter();
    let (_, what, name) = reasons.find(|(reason, ..)| words.contains(reason))?;
    Some(format!("{what} {}", key(origin, name)))
}

/// The place where a setting of pods is written.
fn key(origin: Origin, name: &str) -> String {
    let part = match origin {
        Origin::Generator => "generators",
        Origin::Image => "systems",
        Origin::Manifests => {
            let own = match name {
                "node-selector" => "nodeSelector",
                "image-pull-secrets" => "imagePullSecrets",
                other => other,
            };
            return format!("`{own}` of the manifests");
        }
    };
    format!("`pods: {{{part}: {{{name}: …}}}}` of the lab")
}

fn of_architecture(origin: Origin, node: &str, architecture: Option<&str>) -> String {
    let known = architecture.filter(|it| !it.is_empty());
    let has = known.map_or_else(String::new, |it| format!(", which is `{it}`"));
    let selector = key(origin, "node-selector");
    format!(
        "The image is for another processor architecture than the node `{node}`{has}. Use an image for both, or \
         choose nodes by `kubernetes.io/arch` with {selector}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_names_the_key_that_helps() {
        let taint = "no node accepts it: 0/1 nodes are available: 1 node(s) had untolerated taint {pool: load}.";
        let pull =
            "ImagePullBackOff: Back-off pulling image \"r/x:1\": ErrImagePull: 401 Unauthorized";
        let never =
            "ErrImageNeverPull: Container image \"x\" is not present with pull policy of Never";
        let selector = "1 node(s) didn't match Pod's node affinity/selector";
        for (origin, words, said) in [
            (
                Origin::Generator,
                taint,
                "`pods: {generators: {tolerations: …}}` of the lab",
            ),
            (
                Origin::Image,
                taint,
                "`pods: {systems: {tolerations: …}}` of the lab",
            ),
            (Origin::Manifests, taint, "`tolerations` of the manifests"),
            (
                Origin::Image,
                selector,
                "`pods: {systems: {node-selector: …}}` of the lab",
            ),
            (Origin::Generator, pull, "`--generator-image`"),
            (
                Origin::Generator,
                pull,
                "`pods: {generators: {image-pull-secrets: …}}`",
            ),
            (
                Origin::Image,
                pull,
                "`pods: {systems: {image-pull-secrets: …}}`",
            ),
            (
                Origin::Manifests,
                pull,
                "`imagePullSecrets` of the manifests",
            ),
            (Origin::Image, never, "`pull: missing`"),
        ] {
            let remedy = of_words(origin, words).unwrap_or_default();
            assert!(remedy.contains(said), "{origin:?}: {remedy}");
        }
        assert_eq!(of_words(Origin::Image, "ended with exit code 3"), None);
    }

    #[test]
    fn an_image_for_another_processor_names_the_architecture_of_the_node() {
        let remedy = of_architecture(Origin::Image, "n1", Some("arm64"));
        assert_eq!(
            remedy,
            "The image is for another processor architecture than the node `n1`, which is `arm64`. Use an image for \
             both, or choose nodes by `kubernetes.io/arch` with `pods: {systems: {node-selector: …}}` of the lab"
        );
        // Without the right to read nodes.
        let remedy = of_architecture(Origin::Generator, "n1", None);
        assert!(remedy.contains("the node `n1`. Use"), "{remedy}");
    }
}
