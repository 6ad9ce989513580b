"""An IntegrationRoute as its Deployment needs it. Unknown members are ignored."""

import re
from dataclasses import dataclass, field

from request import Missing, Node, Unfit, full, given, kind_of


@dataclass
class Store:
    """One file of a ConfigMap or Secret that holds certificates."""

    kind: str
    name: str
    key: str
    alias: str = ""
    password: str = ""


@dataclass
class Route:
    name: str
    replicas: object
    config_map: str
    labels: dict
    annotations: dict | None
    sources: list | None
    sources_sent: object
    secrets: list[str]
    namespace: str | None
    claims: list[tuple[str, object]]
    image: Node | None = None
    config_maps: list[tuple[str, object]] = field(default_factory=list)
    truststore: Store | None = None
    keystore: Store | None = None
    env: list = field(default_factory=list)
    env_from: list | None = None
    resources: dict | None = None

    @classmethod
    def of(cls, name: str, parent: Node) -> "Route":
        """A route as it is written today."""
        route = cls.of_seed(name, parent)
        spec = parent.need("spec")
        route.image = spec.get("image")
        route.config_maps = mounted(spec.get("configMaps"), "name")
        if tls := given(spec.get("tls")):
            if truststore := given(tls.get("truststore")):
                route.truststore = truststore_of(truststore)
            if keystore := given(tls.get("keystore")):
                route.keystore = keystore_of(keystore)
        env = spec.get("env")
        route.env = [item.value for item in env.items()] if env else []
        env_from = full(spec.get("envFrom"))
        route.env_from = env_from and env_from.list()
        resources = full(spec.get("resources"))
        route.resources = resources and resources.object()
        return route

    @classmethod
    def of_seed(cls, name: str, parent: Node) -> "Route":
        """A route as it was written in November 2023."""
        spec = parent.need("spec")
        config_map = spec.need("routeConfigMap").text()
        annotations = full(spec.get("annotations"))
        labels = spec.get("labels")
        sent = spec.get("propSources")
        sources = full(sent)
        secrets = spec.get("secretSources")
        route = cls(
            name=name,
            replicas=spec.need("replicas").value,
            config_map=config_map,
            annotations=annotations and annotations.object(),
            labels=labels.entries() if labels else {},
            sources=sources and sources.list(),
            sources_sent=sent.value if sent else None,
            secrets=[secret_name(item) for item in secrets.items()] if secrets else [],
            namespace=None,
            claims=mounted(spec.get("persistentVolumeClaims"), "claimName"),
        )
        if route.sources or route.secrets:
            route.namespace = parent.need("metadata", "namespace").text()
        return route


def secret_name(secret: Node) -> str:
    """A text in v1alpha1, an object with a name in v1alpha2."""
    match secret.value:
        case str():
            return secret.value
        case dict():
            return secret.need("name").text()
        case _:
            expected = "a text or an object with a `name`"
            raise Unfit(secret.place, expected, kind_of(secret.value))


def mounted(items: Node | None, name: str) -> list[tuple[str, object]]:
    return [(it.need(name).text(), it.need("mountPath").value) for it in items.items()] if items else []


def store_of(node: Node) -> tuple[str, Node]:
    """The format of a store, `jks` where there is one, and what is said of it."""
    for kind in ("jks", "pkcs12"):
        if store := node.get(kind):
            return kind, store
    raise Missing(node.at("pkcs12"))


def truststore_of(node: Node) -> Store:
    kind, store = store_of(node)
    store.need("configMapName"), store.need("key")
    return Store(kind.upper(), store.need("configMapName").text(), file_key(store.need("key")))


def file_key(node: Node) -> str:
    """A key of a ConfigMap or Secret; it becomes part of a path and of Java's options."""
    key = node.text()
    if re.fullmatch(r"[-_.a-zA-Z0-9]{1,253}", key) and key != "." and not key.startswith(".."):
        return key
    expected = "a key of 1 to 253 letters, digits, `-`, `_` and `.`, not `.` and not from `..`"
    raise Unfit(node.place, expected, "another text")


def keystore_of(node: Node) -> Store:
    kind, store = store_of(node)
    for key in ("secretName", "key", "passwordSecretRef"):
        store.need(key)
    alias = given(store.get("alias"))
    return Store(
        kind.upper(),
        store.need("secretName").text(),
        file_key(store.need("key")),
        alias="1" if kind == "pkcs12" else alias.text() if alias else "certificate",
        password=store.need("passwordSecretRef").text(),
    )
