"""An admission webhook that injects a sidecar, for tests: `injector.py ADDRESS CERTIFICATE KEY IMAGE`.

Pods of the namespace `old` get a container before their others. Pods of the namespace `native` get an init container
that is restarted for ever. Both run until the pod is removed. Its output is its MutatingWebhookConfiguration.
"""

import base64
import http.server
import json
import ssl
import sys

ADDRESS, CERTIFICATE, KEY, IMAGE = sys.argv[1:]
SIDECAR = {
    "name": "sidecar",
    "image": IMAGE,
    "imagePullPolicy": "Never",
    "args": ["null-server", "--listen", "0.0.0.0:15001"],
}


def patch(kind, pod):
    if kind == "/old":
        return [{"op": "add", "path": "/spec/containers/0", "value": SIDECAR}]
    if kind == "/native":
        before = pod["spec"].get("initContainers", [])
        always = SIDECAR | {"restartPolicy": "Always"}
        return [{"op": "add", "path": "/spec/initContainers", "value": [always, *before]}]
    raise ValueError(f"expected /old or /native, found {kind}")


class Injector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = review["request"]
        # The API server adds its time limit to the path.
        change = json.dumps(patch(self.path.partition("?")[0], request["object"]))
        review["response"] = {
            "uid": request["uid"],
            "allowed": True,
            "patchType": "JSONPatch",
            "patch": base64.b64encode(change.encode()).decode(),
        }
        del review["request"]
        body = json.dumps(review).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def hook(kind, port):
    with open(CERTIFICATE, "rb") as certificate:
        trusted = base64.b64encode(certificate.read()).decode()
    return {
        "name": f"{kind}.injector.test",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "clientConfig": {"url": f"https://{ADDRESS}:{port}/{kind}", "caBundle": trusted},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": kind}},
        # Pods refuse a sidecar by this label, as in Istio.
        "objectSelector": {
            "matchExpressions": [{"key": "sidecar.istio.io/inject", "operator": "NotIn", "values": ["false"]}]
        },
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
    }


server = http.server.ThreadingHTTPServer((ADDRESS, 0), Injector)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERTIFICATE, KEY)
server.socket = context.wrap_socket(server.socket, server_side=True)
configuration = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "MutatingWebhookConfiguration",
    "metadata": {"name": "injector"},
    "webhooks": [hook(kind, server.server_port) for kind in ("old", "native")],
}
print(json.dumps(configuration), flush=True)
server.serve_forever()
