#!/usr/bin/env bash
# Istio in the cluster of cluster.sh, for labs: built from the Go module proxy, with the Envoy of `./setup layers`.
#
#   istio.sh build   put pilot-discovery and pilot-agent into $WEIGH_CLUSTER/bin. What is there stays
#   istio.sh up      install it in the running cluster, and wait until it injects. It ends with the cluster
#
# The charts are those of the module. Envoy lacks the extensions of Istio's own build, so istiod leaves their filters
# out: the exchange of metadata, the filter of ALPN, and the filters of telemetry.
set -euo pipefail

state=${WEIGH_CLUSTER:-/var/tmp/weigh-cluster}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$state"
state=$(cd "$state" && pwd)
export PATH="$state/bin:$PATH:/usr/sbin:/sbin" KUBECONFIG="$state/kubeconfig"
istio=v0.0.0-20260423205519-b01690e6db7d
envoy=$here/../../labs/layers/.programs/bin/envoy
source=$state/src/istio

say() { echo "istio: $*" >&2; }
fail() { say "$*"; exit 1; }

# A module of ours that needs Istio.
module() {
  mkdir -p "$source"
  cd "$source"
  grep -qs "^require istio.io/istio $istio\$" go.mod && return
  local description
  description=$(go mod download -json "istio.io/istio@$istio")
  description=$(sed -n 's/.*"Dir": "\([^"]*\)".*/\1/p' <<<"$description")
  {
    echo "module istio-programs"
    grep -E '^(go|godebug) ' "$description/go.mod" || true
    echo "require istio.io/istio $istio"
  } >go.mod
  # The database of checksums lacks some of its modules.
  install -m 644 "$description/go.sum" go.sum
}

compile() { # PROGRAM
  [ -x "$state/bin/$1" ] && return
  local began=$SECONDS
  say "$1 is built now"
  cp go.mod go.mod.as-written
  CGO_ENABLED=0 nice -n "${WEIGH_CLUSTER_NICE:-5}" go build -mod=mod -buildvcs=false -trimpath \
    -ldflags "-s -w" -o "$state/bin/$1" "istio.io/istio/pilot/cmd/$1"
  mv go.mod.as-written go.mod
  say "$1 was built in $((SECONDS - began)) s"
}

# The folder of the module, with its charts.
folder() { (cd "$source" && go list -mod=mod -m -f '{{.Dir}}' istio.io/istio); }

# A program and the libraries that it wants, in a folder that becomes an image.
put() { # PROGRAM FOLDER PATH
  local library
  mkdir -p "$2${3%/*}"
  cp -L "$1" "$2$3"
  strip "$2$3" 2>/dev/null || true
  for library in $(ldd "$1" 2>/dev/null | grep -o '/[^ ]*' || true); do
    mkdir -p "$2${library%/*}"
    cp -L "$library" "$2$library"
  done
}

# The images of the running cluster.
images() {
  local work extensions name
  work=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$work'" RETURN
  mkdir -p "$work"/{pilot,proxy}/tmp "$work/proxy/var/lib/istio/envoy"
  chmod 1777 "$work"/*/tmp
  put "$state/bin/pilot-discovery" "$work/pilot" /usr/local/bin/pilot-discovery
  put "$state/bin/pilot-agent" "$work/proxy" /usr/local/bin/pilot-agent
  put "$envoy" "$work/proxy" /usr/local/bin/envoy
  # The rules that redirect connections, and what they load by name.
  put "$(readlink -f "$(command -v iptables)")" "$work/proxy" /usr/bin/xtables-multi
  for name in {iptables,ip6tables}{,-save,-restore}; do ln -s xtables-multi "$work/proxy/usr/bin/$name"; done
  extensions=$(find /usr/lib -maxdepth 2 -name xtables -type d | head -n 1)
  mkdir -p "$work/proxy$extensions"
  cp -L "$extensions"/*.so "$work/proxy$extensions/"
  for name in protocols services; do [ ! -e /etc/$name ] || install -D -m 644 /etc/$name "$work/proxy/etc/$name"; done
  install -m 644 "$(folder)/tools/packaging/common/envoy_bootstrap.json" "$work/proxy/var/lib/istio/envoy/envoy_bootstrap_tmpl.json"
  chmod -R go+rX "$work"/*
  "$here/cluster.sh" image localhost/istio-pilot:1 "$work/pilot" /usr/local/bin/pilot-discovery
  "$here/cluster.sh" image localhost/istio-proxy:1 "$work/proxy" /usr/local/bin/pilot-agent
  # Other clusters would import these large images at each start.
  rm -f "$state"/images/localhost_istio-*
}

build() {
  command -v go >/dev/null || fail "Go 1.26 or newer is missing"
  module
  compile pilot-discovery
  compile pilot-agent
}

# All objects of Istio.
objects() {
  local charts
  charts=$(folder)/manifests/charts
  helm template istiod "$charts/istio-control/istio-discovery" --namespace istio-system --values - <<Y
global:
  imagePullPolicy: Never
  proxy: {image: localhost/istio-proxy:1, resources: {requests: {cpu: 100m, memory: 128Mi}}}
  proxy_init: {image: localhost/istio-proxy:1}
pilot:
  image: localhost/istio-pilot:1
  autoscaleEnabled: false
  resources: {requests: {cpu: 100m, memory: 256Mi}}
  env: {PILOT_ENABLE_METADATA_EXCHANGE: "false", PILOT_ENABLE_ALPN_FILTER: "false"}
telemetry: {enabled: false}
meshConfig:
  accessLogFile: ""
  enablePrometheusMerge: false
  defaultProviders: {metrics: []}
  defaultConfig: {concurrency: 1}
Y
}

up() {
  [ -x "$envoy" ] || fail "Envoy is missing: \`./setup layers\`"
  [ -x "$state/bin/pilot-agent" ] || fail "Istio is not built: \`ci/cluster/istio.sh build\`"
  command -v helm >/dev/null || fail "helm is missing: \`./setup test\`"
  [ -e "$state/run/started" ] || fail "no cluster runs: \`cargo xtask cluster up\`"
  images
  kubectl apply --server-side --filename "$(folder)/manifests/charts/base/files/crd-all.gen.yaml" >/dev/null
  kubectl create namespace istio-system --dry-run=client --output yaml | kubectl apply --filename - >/dev/null
  objects | kubectl apply --namespace istio-system --filename - >/dev/null
  # The chart relies on the user of Istio's own image.
  kubectl patch --namespace istio-system deployment istiod --patch \
    '{"spec": {"template": {"spec": {"securityContext": {"runAsUser": 1337, "runAsGroup": 1337}}}}}' >/dev/null
  kubectl rollout status --namespace istio-system deployment/istiod --timeout 120s >&2
}

case ${1:-} in
  build | up) "$1" ;;
  *) fail "expected build or up, found \`${1:-}\`" ;;
esac
