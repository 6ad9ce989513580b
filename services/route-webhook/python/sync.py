"""The sync hook: from what is observed of a route to what it should consist of."""

from collections.abc import Callable

from request import Node, full, given
from route import Route, Store
from text import spaced

USER = 999
APP_NAME = "app.kubernetes.io/name"
MESSAGES = {
    "True": ("ReplicasReady", "All IntegrationRoute pod replicas are ready"),
    "False": ("ReplicasNotReady", "Some IntegrationRoute pod replicas are not ready"),
}


def sync(body: Node, image: str, now: Callable[[], str]) -> dict:
    parent = body.need("parent")
    body.need("children")
    name = parent.need("metadata", "name").text()
    generation = parent.need("metadata", "generation").value
    replicas = parent.need("spec", "replicas").value
    deployment = body.need("children", "Deployment.apps/v1").get(name)
    status = status_of(parent, deployment, replicas, generation, now)
    route = Route.of(name, parent)
    return {"status": status, "children": [deployment_of(route, image), service_of(route)]}


def status_of(parent: Node, deployment: Node | None, replicas: object, generation: object, now) -> dict:
    observed = deployment and full(deployment) and full(deployment.get("status"))
    if not observed:
        return {"expectedReplicas": replicas, "readyReplicas": 0, "runningReplicas": 0}
    ready = full(observed.get("readyReplicas"))
    running = full(observed.get("replicas"))
    conditions = observed.get("conditions")
    counts = {
        "expectedReplicas": replicas,
        "readyReplicas": ready.value if ready else 0,
        "runningReplicas": running.value if running else 0,
    }
    available = [it.value for it in conditions.items() if is_type(it, "Available")] if conditions else []
    is_ready = "True" if counts["readyReplicas"] == replicas else "False"
    condition = unchanged(parent, is_ready, generation) or new_condition(is_ready, generation, now())
    return counts | {"conditions": available + [condition]}


def is_type(condition: Node, wanted: str) -> bool:
    return condition.need("type").value == wanted


def unchanged(parent: Node, is_ready: str, generation: object) -> dict | None:
    """The route's condition where it says the same already, so that its time stays."""
    status = given(parent.get("status"))
    conditions = status and given(status.get("conditions"))
    for condition in conditions.items() if conditions else []:
        if is_type(condition, "Ready"):
            known = condition.value
            is_same = (known.get("status"), known.get("observedGeneration")) == (is_ready, generation)
            return known if is_same else None
    return None


def new_condition(is_ready: str, generation: object, now: str) -> dict:
    reason, message = MESSAGES[is_ready]
    return {
        "lastTransitionTime": now,
        "observedGeneration": generation,
        "status": is_ready,
        "type": "Ready",
        "message": message,
        "reason": reason,
    }


def deployment_of(route: Route, image: str) -> dict:
    labels = {
        "app.kubernetes.io/component": "integration-route",
        "app.kubernetes.io/managed-by": "keip",
        APP_NAME: route.name,
    } | {name: value for name, value in route.labels.items() if not name.startswith("app.kubernetes.io/")}
    metadata = {"labels": labels} | ({"annotations": route.annotations} if route.annotations else {})
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": route.name, "labels": labels, "annotations": route.annotations or {}},
        "spec": {
            "selector": {"matchLabels": {APP_NAME: route.name}},
            "replicas": route.replicas,
            "template": {"metadata": metadata, "spec": pod(route, image)},
        },
    }


def pod(route: Route, image: str) -> dict:
    return {
        "serviceAccountName": "integrationroute-service",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container(route, image)],
        "volumes": [volume for volume, _ in volumes(route)],
    }


def port_of(route: Route) -> tuple[str, int]:
    return ("https", 8443) if route.keystore else ("http", 8080)


def container(route: Route, image: str) -> dict:
    scheme, port = port_of(route)

    def probe(path: str, failures: int) -> dict:
        get = {"path": f"/actuator/health/{path}", "port": port, "scheme": scheme.upper()}
        return {"httpGet": get, "failureThreshold": failures, "timeoutSeconds": 3}

    container = {
        "name": "integration-app",
        "image": route.image.value if route.image else image,
        "volumeMounts": [mount for _, mount in volumes(route)],
        "livenessProbe": probe("liveness", 3),
        "readinessProbe": probe("readiness", 2),
        "startupProbe": probe("liveness", 24),
        "env": variables(route),
    }
    if route.resources:
        container["resources"] = route.resources
    if route.env_from:
        container["envFrom"] = route.env_from
    return container


def volumes(route: Route) -> list[tuple[dict, dict]]:
    """Each volume with its mount."""
    pairs = [volume("integration-route-config", "configMap", {"name": route.config_map}, "/var/spring/xml")]
    for secret in route.secrets:
        pairs.append(volume(f"secret-{secret}", "secret", {"secretName": secret}, f"/etc/secrets/{secret}", True))
    for claim, path in route.claims:
        pairs.append(volume(f"pvc-{claim}", "persistentVolumeClaim", {"claimName": claim}, path))
    for config_map, path in route.config_maps:
        pairs.append(volume(f"cm-{config_map}", "configMap", {"name": config_map}, path))
    if route.truststore:
        source = {"name": route.truststore.name, "items": items(route.truststore)}
        pairs.append(volume("truststore", "configMap", source, "/etc/cabundle", True))
    if route.keystore:
        source = {"secretName": route.keystore.name, "items": items(route.keystore)}
        pairs.append(volume("keystore", "secret", source, "/etc/keystore", True))
    return pairs


def items(store: Store) -> list[dict]:
    return [{"key": store.key, "path": store.key}]


def volume(name: str, kind: str, source: dict, path: object, is_read_only: bool = False) -> tuple[dict, dict]:
    read_only = {"readOnly": True} if is_read_only else {}
    return {"name": name, kind: source}, {"name": name} | read_only | {"mountPath": path}


def variables(route: Route) -> list[dict]:
    own = [{"name": "SPRING_APPLICATION_JSON", "value": spaced(spring(route))}]
    if route.truststore:
        own.append({"name": "JDK_JAVA_OPTIONS", "value": java_options(route.truststore)})
    if route.keystore:
        secret = {"name": route.keystore.password, "key": "password"}
        own.append({"name": "SERVER_SSL_KEYSTOREPASSWORD", "valueFrom": {"secretKeyRef": secret}})
    own.append({"name": "SERVICE_NAME", "value": route.name})
    return own + route.env


def java_options(store: Store) -> str:
    password = "changeit" if store.kind == "JKS" else ""
    return (
        f"-Djavax.net.ssl.trustStore=/etc/cabundle/{store.key} "
        f"-Djavax.net.ssl.trustStorePassword={password} "
        f"-Djavax.net.ssl.trustStoreType={store.kind}"
    )


def spring(route: Route) -> dict:
    settings = {"application": {"name": route.name}}
    if route.sources or route.secrets:
        config = {"fail-fast": True, "namespace": route.namespace}
        if route.sources:
            config["sources"] = route.sources
        settings["config.import"] = "kubernetes:"
        settings["cloud"] = {"kubernetes": {"config": config, "secrets": {"paths": "/etc/secrets"}}}
    whole = {"spring": settings}
    if route.keystore:
        ssl = {
            "key-alias": route.keystore.alias,
            "key-store": f"/etc/keystore/{route.keystore.key}",
            "key-store-type": route.keystore.kind,
        }
        whole["server"] = {"ssl": ssl, "port": 8443}
    whole["management"] = {
        "endpoint": {"health": {"enabled": True}, "prometheus": {"enabled": True}},
        "endpoints": {"web": {"exposure": {"include": "health,prometheus"}}},
    }
    return whole


def service_of(route: Route) -> dict:
    name, port = port_of(route)
    labels = {"integration-route": route.name, "prometheus-metrics-enabled": "true"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"labels": labels, "name": f"{route.name}-actuator"},
        "spec": {
            "ports": [{"name": name, "port": port, "protocol": "TCP", "targetPort": port}],
            "selector": {APP_NAME: route.name},
        },
    }
