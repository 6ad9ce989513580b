"""The certificates of routes: an add-on that asks cert-manager for them."""

from request import Node, given
from route import store_of

GROUP = "cert-manager.io"
SUBJECT = ("organizationalUnits", "countries", "provinces", "localities")


def certificates(body: Node) -> dict:
    metadata = body.need("object", "metadata")
    name, namespace = metadata.need("name").text(), metadata.need("namespace").text()
    annotations = given(metadata.get("annotations"))
    if annotations is None:
        return {"attachments": []}
    issuers = [
        (kind, issuer)
        for kind, key in (("Issuer", "issuer"), ("ClusterIssuer", "cluster-issuer"))
        if (issuer := given(annotations.get(f"{GROUP}/{key}")))
    ]
    if len(issuers) != 1:
        return {"attachments": []}
    [(issuer_kind, issuer)] = issuers
    kind, store = store_of(body.need("object", "spec", "tls", "keystore"))
    password = {"key": "password", "name": store.need("passwordSecretRef").text()}
    common = given(annotations.get(f"{GROUP}/common-name"))
    common = common.text() if common else name
    spec = {
        "commonName": f"{common}.{namespace}",
        "dnsNames": [
            f"{common}.{namespace}.svc.cluster.local",
            f"{common}.{namespace}.svc",
            f"{common}.{namespace}",
            common,
            f"{name}-actuator.{namespace}.svc.cluster.local",
        ]
        + listed(annotations.get(f"{GROUP}/alt-names")),
        "issuerRef": {"group": GROUP, "kind": issuer_kind, "name": issuer.text()},
        "keystores": {kind: {"create": True, "passwordSecretRef": password}},
        "secretName": f"{name}-certstore",
        "subject": subject(annotations),
    }
    certificate = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Certificate",
        "metadata": {"name": f"{name}-certs", "namespace": namespace},
        "spec": spec,
    }
    return {"attachments": [certificate]}


def subject(annotations: Node) -> dict:
    parts = {part: listed(annotations.get(f"{GROUP}/subject-{part.lower()}")) for part in SUBJECT}
    return {part: values for part, values in parts.items() if values}


def listed(node: Node | None) -> list[str]:
    """The items of a list with commas, without space around them; empty ones do not count."""
    return [item for it in (node.text() if given(node) else "").split(",") if (item := it.strip())]
