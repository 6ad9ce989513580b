"""Answers as they were in November 2023: a Deployment without probes."""

from request import Node
from route import Route
from text import spaced

INSTANCE = "app.kubernetes.io/instance"


def sync(body: Node, image: str) -> dict:
    parent = body.need("parent")
    name = parent.need("metadata", "name").text()
    parent.need("spec", "replicas")
    return {"status": {}, "children": [deployment_of(Route.of_seed(name, parent), image)]}


def deployment_of(route: Route, image: str) -> dict:
    labels = {
        "app.kubernetes.io/managed-by": "integrationroute-controller",
        "app.kubernetes.io/name": "integrationroute",
        INSTANCE: f"integrationroute-{route.name}",
        "app.kubernetes.io/version": "latest",
    } | route.labels
    metadata = {"labels": labels} | ({"annotations": route.annotations} if route.annotations else {})
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": route.name, "labels": labels},
        "spec": {
            "selector": {"matchLabels": {INSTANCE: labels[INSTANCE]}},
            "replicas": route.replicas,
            "template": {"metadata": metadata, "spec": pod(route, image)},
        },
    }


def pod(route: Route, image: str) -> dict:
    config = "integration-route-config"
    volumes = [{"name": config, "configMap": {"name": route.config_map}}]
    mounts = [{"name": config, "mountPath": "/var/spring/xml"}]
    for secret in route.secrets:
        volumes.append({"name": secret, "secret": {"secretName": secret}})
        mounts.append({"name": secret, "readOnly": True, "mountPath": f"/etc/secrets/{secret}"})
    for claim, path in route.claims:
        volumes.append({"name": claim, "persistentVolumeClaim": {"claimName": claim}})
        mounts.append({"name": claim, "mountPath": path})
    container = {"name": "integration-app", "image": image, "volumeMounts": mounts}
    if route.sources or route.secrets:
        container["env"] = [{"name": "SPRING_APPLICATION_JSON", "value": spaced(spring(route))}]
    return {
        "serviceAccountName": "integrationroute-service",
        "containers": [container],
        "volumes": volumes,
    }


def spring(route: Route) -> dict:
    config = {"fail-fast": True, "namespace": route.namespace, "sources": route.sources_sent}
    cloud = {"kubernetes": {"config": config, "secrets": {"paths": "/etc/secrets"}}}
    application = {"name": route.name}
    return {"spring": {"config.import": "kubernetes:", "application": application, "cloud": cloud}}
