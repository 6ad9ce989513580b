//! The certificates of routes: an add-on that requests them from cert-manager.
//!
//! A pure function of a route. The route's annotations contain the wish for a certificate and its issuer.

use std::borrow::Cow;

use crate::json::{Key, Writer};
use crate::key;
use crate::request::{Body, BodyNode, Refusal};
use crate::route::store_kind;

/// The group of cert-manager's objects, which is also the prefix of its annotations.
const GROUP: &str = "cert-manager.io";

/// The parts of a certificate's subject, with the annotations that hold them.
const SUBJECT: [(Key, &str); 4] = [
    (
        key!("organizationalUnits"),
        "cert-manager.io/subject-organizationalunits",
    ),
    (key!("countries"), "cert-manager.io/subject-countries"),
    (key!("provinces"), "cert-manager.io/subject-provinces"),
    (key!("localities"), "cert-manager.io/subject-localities"),
];

/// The response to a reconciliation: a list of zero or one certificate.
///
/// # Errors
///
/// Fails if the request is not JSON or lacks a required member.
pub fn certificates(body: &[u8]) -> Result<String, Refusal> {
    let body = Body::read(body)?;
    let body = body.root();
    let [object] = body.required(["object"])?;
    let [metadata] = object.required(["metadata"])?;
    let [name, namespace] = metadata.required(["name", "namespace"])?;
    let (name, namespace) = (name.text()?, namespace.text()?);
    let annotations = metadata
        .member("annotations")?
        .and_then(BodyNode::unless_null);
    let mut answer = Writer::new(1024);
    let wanted = match &annotations {
        Some(annotations) => Wanted::of(annotations, &name)?,
        None => None,
    };
    let Some(wanted) = wanted else {
        answer.object(|answer| answer.key(key!("attachments")).list(|_| {}));
        return Ok(answer.finish());
    };
    // Read only here, because a route without certificates need not have TLS settings.
    let [spec] = object.required(["spec"])?;
    let [tls] = spec.required(["tls"])?;
    let [keystore] = tls.required(["keystore"])?;
    let (kind, store) = store_kind(&keystore)?;
    let [password] = store.required(["passwordSecretRef"])?;
    let (kind, password) = (kind.key(), password.text()?);
    answer.object(|answer| {
        answer.key(key!("attachments")).list(|answer| {
            answer.object(|answer| {
                answer.fixed(key!("apiVersion"), "cert-manager.io/v1");
                answer.fixed(key!("kind"), "Certificate");
                answer.key(key!("metadata")).object(|answer| {
                    answer.key(key!("name")).joined(&[&name, "-certs"]);
                    answer.member(key!("namespace"), &namespace);
                });
                answer
                    .key(key!("spec"))
                    .object(|answer| wanted.write(&name, &namespace, kind, &password, answer));
            });
        });
    });
    Ok(answer.finish())
}

/// The certificate that a route's annotations request.
struct Wanted<'a> {
    issuer_kind: &'static str,
    issuer: Cow<'a, str>,
    common_name: Cow<'a, str>,
    alt_names: Option<Cow<'a, str>>,
    subject: [Option<Cow<'a, str>>; 4],
}

impl<'a> Wanted<'a> {
    /// The requested certificate. `None` if the annotations contain no issuer, or two.
    fn of(annotations: &BodyNode<'a, '_>, name: &Cow<'a, str>) -> Result<Option<Self>, Refusal> {
        let names = [
            "cert-manager.io/issuer",
            "cert-manager.io/cluster-issuer",
            "cert-manager.io/common-name",
            "cert-manager.io/alt-names",
        ];
        // As in the original, null is no annotation.
        let members = annotations.members(names)?;
        let [issuer, cluster_issuer, common_name, alt_names] =
            members.map(|member| member.and_then(BodyNode::unless_null));
        let (issuer_kind, issuer) = match (issuer, cluster_issuer) {
            (Some(issuer), None) => ("Issuer", issuer),
            (None, Some(issuer)) => ("ClusterIssuer", issuer),
            // Two issuers contradict each other, and without an issuer no certificate can be requested.
            _ => return Ok(None),
        };
        let text = |node: Option<BodyNode<'a, '_>>| node.map(|node| node.text()).transpose();
        let parts = annotations.members(SUBJECT.map(|(_, annotation)| annotation))?;
        let mut subject = [const { None }; 4];
        // A loop and not `map`, because each text may be a refusal.
        for (place, part) in subject.iter_mut().zip(parts) {
            *place = text(part.and_then(BodyNode::unless_null))?;
        }
        Ok(Some(Self {
            issuer_kind,
            issuer: issuer.text()?,
            common_name: text(common_name)?.unwrap_or_else(|| name.clone()),
            alt_names: text(alt_names)?,
            subject,
        }))
    }

    fn write(&self, name: &str, namespace: &str, kind: Key, password: &str, answer: &mut Writer) {
        let common_name = &*self.common_name;
        answer
            .key(key!("commonName"))
            .joined(&[common_name, ".", namespace]);
        answer.key(key!("dnsNames")).list(|answer| {
            answer.joined(&[common_name, ".", namespace, ".svc.cluster.local"]);
            answer.joined(&[common_name, ".", namespace, ".svc"]);
            answer.joined(&[common_name, ".", namespace]);
            answer.text(common_name);
            answer.joined(&[name, "-actuator.", namespace, ".svc.cluster.local"]);
            for name in listed(self.alt_names.as_deref()) {
                answer.text(name);
            }
        });
        answer.key(key!("issuerRef")).object(|answer| {
            answer.fixed(key!("group"), GROUP);
            answer.member(key!("kind"), self.issuer_kind);
            answer.member(key!("name"), &self.issuer);
        });
        answer.key(key!("keystores")).object(|answer| {
            answer.key(kind).object(|answer| {
                answer.key(key!("create")).truth(true);
                answer.key(key!("passwordSecretRef")).object(|answer| {
                    answer.fixed(key!("key"), "password");
                    answer.member(key!("name"), password);
                });
            });
        });
        answer.key(key!("secretName")).joined(&[name, "-certstore"]);
        answer.key(key!("subject")).object(|answer| {
            for ((member, _), part) in SUBJECT.iter().zip(&self.subject) {
                let mut parts = listed(part.as_deref()).peekable();
                // cert-manager would refuse a certificate with an empty list.
                if parts.peek().is_some() {
                    answer
                        .key(*member)
                        .list(|answer| parts.for_each(|part| answer.text(part)));
                }
            }
        });
    }
}

/// The items of a comma-separated list, trimmed. Empty items are skipped.
fn listed(text: Option<&str>) -> impl Iterator<Item = &str> {
    let items = text.unwrap_or_default().split(',').map(str::trim);
    items.filter(|item| !item.is_empty())
}
