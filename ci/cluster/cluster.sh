#!/usr/bin/env bash
# A Kubernetes of one, two or three real nodes on this machine, for tests: built from the Go module proxy
# and Debian's packages, without a registry of images and without a daemon.
#
#   cluster.sh build            put the programs into $WEIGH_CLUSTER/bin; what is there stays
#   cluster.sh up [NODES] [--family ipv4|ipv6|dual] [--domain DOMAIN]
#                               start it; afterwards KUBECONFIG=$WEIGH_CLUSTER/kubeconfig. By default one node,
#                               with IPv4 and the names of cluster.local. `ipv6` has no address of IPv4 outside
#                               of loopback, and `dual` has IPv4 first
#   cluster.sh down             end it; only the programs and images stay
#   cluster.sh image NAME FOLDER PROGRAM [ARG…]   an image of one layer out of a folder
#   cluster.sh program NAME PROGRAM   an image of one program and the libraries that it wants
#
# Events of a cluster:
#
#   cluster.sh restart WHAT SECONDS   end kubelet or kube-apiserver of node1, and start it again so much later
#   cluster.sh evict POD [NAMESPACE]  take a pod away by the API of evictions
#   cluster.sh drain NODE             take all pods of a node away, and let no pod come to it
#   cluster.sh lose NODE              turn a node off: its link is dead, and all its processes end at once
#   cluster.sh cut NODE               only its link is dead
#   cluster.sh back NODE              start a node again that was lost, cut or drained
#   cluster.sh clock NODE SECONDS     containers that a node starts from now on have a wall clock so much ahead
#
# The whole cluster is one tree of processes in network, mount and process namespaces of its own: it
# changes neither iptables nor mounts of this machine, and the end of its first process is its end. The
# machine sees one veth, by which it reaches pods, Services and the API server.
#
# Each further node has namespaces of its own below those of node1, which is its router, and a folder for
# everything that a machine would have at fixed places. node1 has the control plane. A kubelet ends pods that
# it does not know, so the pods of each further node lie below a cgroup of its own.
set -euo pipefail

state=${WEIGH_CLUSTER:-/var/tmp/weigh-cluster}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$state"
state=$(cd "$state" && pwd)
export PATH="$state/bin:$PATH:/usr/sbin:/sbin"

kubernetes=1.34.4
coredns=1.13.1
# The link of node 1 leads to the machine, and the links of the others to node 1.
net=10.199 pods=10.244 services=10.96
# The same of IPv6: /48 each, and of these a /64 for each link and for the pods of each node.
net6=fd5e:199 pods6=fd5e:244 services6=fd5e:96
most=3

say() { echo "cluster: $*" >&2; }
fail() { say "$*"; exit 1; }

wait_for() { # SECONDS COMMAND…
  local until=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < until)) || fail "waited in vain for: $*"
    sleep 0.2
  done
}

# The places of a node, and its end of its link.
of_node() { # NODE
  number=$1
  run=$state/run/node$1 data=$state/data/node$1 etc=$state/etc/node$1 log=$state/log/node$1
  local network=$1
  [ "$1" != 1 ] || network=0
  address=$net.$network.2 gateway=$net.$network.1 range=$pods.$network.0/24
  address6=$net6:0:$network::2 gateway6=$net6:0:$network::1 range6=$pods6:0:$network::/64
}

nodes() { cat "$state/run/nodes"; }
family() { cat "$state/run/family"; }
domain() { cat "$state/run/domain"; }

# The families of addresses of the cluster.
has4() { [ "$(family)" != ipv6 ]; }
has6() { [ "$(family)" != ipv4 ]; }

# What the cluster has of both, the first family first.
in_families() { # IPV4 IPV6
  case $(family) in
    ipv4) echo "$1" ;;
    ipv6) echo "$2" ;;
    dual) echo "$1,$2" ;;
  esac
}

# The address of node 1 in the first family, and as it is written before a port.
first_address() { if has4; then echo $net.0.2; else echo $net6::2; fi; }
first_host() { if has4; then echo $net.0.2; else echo "[$net6::2]"; fi; }

# ---- programs ----

# Debian's packages, whose daemons are not started.
packages() { # [MORE…]
  local missing=() policy=/usr/sbin/policy-rc.d
  command -v etcd >/dev/null || missing+=(etcd-server)
  local program
  for program in containerd runc iptables conntrack openssl "$@"; do
    command -v "$program" >/dev/null || missing+=("$program")
  done
  [ -x /usr/lib/cni/bridge ] || missing+=(containernetworking-plugins)
  ((${#missing[@]})) || return 0
  [ "$(id -u)" = 0 ] || fail "run as root: apt-get install ${missing[*]}"
  say "installing ${missing[*]}"
  if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod +x $policy
    # shellcheck disable=SC2064
    trap "rm -f $policy" EXIT
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >&2
}

# A module of ours that needs another. Those that the other one takes from its own folders, which its
# archive lacks, are released under numbers of their own: 1.34.4 is 0.34.4 there.
module() { # PATH VERSION
  local folder="$state/src/${1##*/}" description
  mkdir -p "$folder"
  cd "$folder"
  grep -qs "^require $1 v$2\$" go.mod && return
  description=$(go mod download -json "$1@v$2" | sed -n 's/.*"GoMod": "\([^"]*\)".*/\1/p')
  {
    echo "module cluster"
    grep -E '^(go|godebug) ' "$description" || true
    echo "require $1 v$2"
    sed -nE "s#^\s*(k8s.io/[a-z-]+) => ./staging/.*#replace \1 => \1 v0.${2#*.}#p" "$description"
  } >go.mod
  rm -f go.sum
}

compile() { # PROGRAM PACKAGE [LINKER FLAGS]
  [ -x "$state/bin/$1" ] && return
  local began=$SECONDS
  say "$1 is built now"
  cp go.mod go.mod.as-written
  CGO_ENABLED=0 nice -n "${WEIGH_CLUSTER_NICE:-5}" go build -mod=mod -buildvcs=false -trimpath \
    -ldflags "-s -w ${3:-}" -o "$state/bin/$1" "$2"
  mv go.mod.as-written go.mod
  say "$1 was built in $((SECONDS - began)) s"
}

build() { # [MORE PACKAGES…]
  packages "$@"
  mkdir -p "$state/bin" "$state/src"
  command -v go >/dev/null || fail "Go 1.24 or newer is missing"
  local program version=k8s.io/component-base/version minor
  minor=$(cut -d. -f2 <<<"$kubernetes")
  module k8s.io/kubernetes $kubernetes
  for program in kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl; do
    compile $program k8s.io/kubernetes/cmd/$program \
      "-X $version.gitVersion=v$kubernetes -X $version.gitMajor=1 -X $version.gitMinor=$minor"
  done
  # Names of Services and nothing else: the whole of CoreDNS brings the clients of every cloud.
  module github.com/coredns/coredns $coredns
  mkdir -p names
  cat >names/main.go <<'GO'
package main

import (
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
)

func main() { coremain.Run() }
GO
  compile coredns ./names
  [ -x "$state/bin/pause" ] || ${CC:-cc} -Os -static -s -o "$state/bin/pause" "$here/pause.c"
}

# ---- images ----

image() { # NAME FOLDER PROGRAM [ARG…]
  local name=$1 folder=$2 work digest words out architecture=amd64
  shift 2
  [ "$(uname -m)" = aarch64 ] && architecture=arm64
  work=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$work'" RETURN
  tar -C "$folder" --owner=0 --group=0 --numeric-owner --sort=name --mtime=@0 -cf "$work/layer.tar" .
  digest=$(sha256sum "$work/layer.tar" | cut -d' ' -f1)
  words=$(printf '%s\0' "$@" | python3 -c 'import json, sys; print(json.dumps(sys.stdin.read().split("\0")[:-1]))')
  cat >"$work/config.json" <<J
{"architecture": "$architecture", "os": "linux", "rootfs": {"type": "layers", "diff_ids": ["sha256:$digest"]},
 "config": {"Entrypoint": $words, "Env": ["PATH=/usr/local/bin:/usr/bin:/bin"], "WorkingDir": "/"}}
J
  echo "[{\"Config\": \"config.json\", \"RepoTags\": [\"$name\"], \"Layers\": [\"layer.tar\"]}]" >"$work/manifest.json"
  mkdir -p "$state/images"
  out="$state/images/$(tr '/:' '__' <<<"$name").tar"
  tar -C "$work" -cf "$out" manifest.json config.json layer.tar
  [ ! -e "$state/run/started" ] || import "$out"
}

program() { # NAME PROGRAM
  local folder library
  folder=$(mktemp -d)
  # It becomes the root of the image, which a user without rights must be able to enter.
  chmod 755 "$folder"
  mkdir -p "$folder"/{bin,tmp,work}
  chmod 1777 "$folder/tmp"
  # Without what only a debugger reads.
  strip -o "$folder/bin/${2##*/}" "$2" 2>/dev/null || cp "$2" "$folder/bin/"
  # A static program has none.
  for library in $(ldd "$2" 2>/dev/null | grep -o '/[^ ]*' || true); do
    mkdir -p "$folder${library%/*}"
    cp -L "$library" "$folder$library"
  done
  image "$1" "$folder" "/bin/${2##*/}"
  rm -rf "$folder"
}

# The pods of every node find it.
import() { # ARCHIVE
  local each
  for each in $(seq "$(nodes)"); do import_to "$each" "$1"; done
}

import_to() { # NODE ARCHIVE
  ctr -a "$state/run/node$1/containerd.sock" -n k8s.io images import --snapshotter "$(cat "$state/run/snapshotter")" "$2" >/dev/null
}

# ---- configuration ----

certificates() {
  # For every family, so that they stay.
  local names="IP:127.0.0.1,IP:$net.0.2,IP:$services.0.1,IP:$net6::2,IP:$services6::1"
  [ "$(cat "$state/pki/for" 2>/dev/null)" = "$names" ] && return
  rm -rf "$state/pki"
  mkdir -p "$state/pki"
  (
    cd "$state/pki"
    umask 077
    key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }
    signed() { # NAME SUBJECT EXTENSIONS
      key "$1"
      openssl req -new -key "$1.key" -subj "$2" |
        openssl x509 -req -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 -extfile <(echo "$3") -out "$1.crt" 2>/dev/null
    }
    key ca
    openssl req -x509 -new -key ca.key -subj /CN=weigh-cluster -days 3650 -out ca.crt
    signed server /CN=kube-apiserver "extendedKeyUsage=serverAuth
subjectAltName=$names,DNS:kubernetes,DNS:kubernetes.default.svc"
    signed admin /O=system:masters/CN=admin extendedKeyUsage=clientAuth
    key accounts
    openssl ec -in accounts.key -pubout -out accounts.pub 2>/dev/null
    echo "$names" >for
  )
}

write_kubeconfig() {
  local whole
  whole() { base64 -w0 "$state/pki/$1"; }
  (
    umask 077
    cat >"$state/kubeconfig" <<Y
apiVersion: v1
kind: Config
current-context: weigh-cluster
clusters: [{name: weigh-cluster, cluster: {server: "https://$(first_host):6443", certificate-authority-data: $(whole ca.crt)}}]
users: [{name: admin, user: {client-certificate-data: $(whole admin.crt), client-key-data: $(whole admin.key)}}]
contexts: [{name: weigh-cluster, context: {cluster: weigh-cluster, user: admin}}]
Y
  )
}

configure() {
  mkdir -p "$state/etc" "$state/data/etcd" "$state/run" "$state/log" "$state/images"
  chmod 700 "$state/data/etcd"
  case $(stat -f -c %T "$state") in
    overlayfs | tmpfs | UNKNOWN*) echo native ;;
    *) echo overlayfs ;;
  esac >"$state/run/snapshotter"
  certificates
  write_kubeconfig
  echo "nameserver $(first_address)" >"$state/etc/resolv.conf"
  cat >"$state/etc/Corefile" <<C
.:53 {
  bind $(in_families $net.0.2 $net6::2 | tr , ' ')
  errors
  kubernetes $(domain) in-addr.arpa ip6.arpa {
    kubeconfig $state/kubeconfig
    ttl 1
  }
}
C
  # A registry that a test starts on this machine has no TLS.
  mkdir -p "$state/etc/registries/$net.0.1:5000"
  cat >"$state/etc/registries/$net.0.1:5000/hosts.toml" <<T
server = "http://$net.0.1:5000"
[host."http://$net.0.1:5000"]
  capabilities = ["pull", "resolve"]
T
  local each
  for each in $(seq "$(nodes)"); do configure_node "$each"; done
}

joined() { local IFS=,; echo "$*"; }

configure_node() { # NODE
  of_node "$1"
  local root="" runtime=runc ranges=() routes=()
  if has4; then ranges+=("[{\"subnet\": \"$range\"}]") routes+=('{"dst": "0.0.0.0/0"}'); fi
  if has6; then ranges+=("[{\"subnet\": \"$range6\"}]") routes+=('{"dst": "::/0"}'); fi
  mkdir -p "$etc/cni" "$data/kubelet" "$run/pids" "$log"
  if ((number > 1)); then
    root="cgroupRoot: /weigh-node$number"
    runtime=$etc/runtime
    write_runtime "$runtime"
  fi
  # Without the right to raise a limit, an OOM score below that of the parent cannot be set.
  cat >"$etc/containerd.toml" <<T
version = 2
root = "$data/containerd"
state = "$run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]
[grpc]
  address = "$run/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  netns_mounts_under_state_dir = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "$state/etc/registries"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$etc/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "$(cat "$state/run/snapshotter")"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "$runtime"
        SystemdCgroup = false
T
  cat >"$etc/cni/10-pods.conflist" <<J
{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "$run/cni", "ranges": [$(joined "${ranges[@]}")], "routes": [$(joined "${routes[@]}")]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
J
  cat >"$etc/kubelet.yaml" <<Y
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: "$(if has6; then echo ::; else echo 0.0.0.0; fi)"
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: "$state/pki/ca.crt"}}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix://$run/containerd.sock
cgroupDriver: cgroupfs
$root
failSwapOn: false
oomScoreAdj: 0
readOnlyPort: 0
clusterDomain: $(domain)
clusterDNS: ["$(first_address)"]
resolvConf: "$state/etc/resolv.conf"
imageGCHighThresholdPercent: 100
imageMinimumGCAge: 24h
evictionHard: {memory.available: 100Mi, nodefs.available: "1%", imagefs.available: "1%", nodefs.inodesFree: "1%"}
serializeImagePulls: false
nodeStatusUpdateFrequency: 4s
Y
  cat >"$etc/kube-proxy.yaml" <<Y
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: "$state/kubeconfig"}
mode: iptables
clusterCIDR: "$(in_families $pods.0.0/16 $pods6::/48)"
nodePortAddresses: [primary]
oomScoreAdj: 0
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
iptables: {minSyncPeriod: 0s, syncPeriod: 30s}
Y
}

# runc with the clock of the node, if it has one of its own.
write_runtime() { # FILE
  cat >"$1" <<S
#!/bin/sh
[ -e "$run/clock" ] || exec runc "\$@"
exec python3 "$here/clock.py" "$run/clock" "$state/bin/clock.so" "\$@"
S
  chmod +x "$1"
}

# The cgroups of further nodes, in every hierarchy.
cgroups() {
  local each hierarchy hierarchies=(/sys/fs/cgroup)
  (($(nodes) > 1)) || return 0
  if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    echo "+cpu +cpuset +memory +pids" >/sys/fs/cgroup/cgroup.subtree_control
  else
    hierarchies=(/sys/fs/cgroup/*/)
  fi
  for each in $(seq 2 "$(nodes)"); do
    for hierarchy in "${hierarchies[@]}"; do mkdir -p "$hierarchy/weigh-node$each"; done
  done
}

# ---- the inside: the first process of each node, and what it starts ----

# In a process of its own, which becomes the program.
start() { # NAME
  case $1 in
    etcd)
      exec etcd --data-dir "$state/data/etcd" --unsafe-no-fsync --log-level warn \
        --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
        --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 \
        --initial-cluster default=http://127.0.0.1:2380 ;;
    containerd) exec containerd --config "$etc/containerd.toml" ;;
    coredns) exec coredns -conf "$state/etc/Corefile" ;;
    # Debian's etcd is too old for the server's watch lists.
    kube-apiserver)
      exec kube-apiserver --feature-gates WatchList=false --etcd-servers http://127.0.0.1:2379 \
        --secure-port 6443 --bind-address "$(first_address)" --advertise-address "$(first_address)" --authorization-mode Node,RBAC \
        --client-ca-file "$state/pki/ca.crt" --tls-cert-file "$state/pki/server.crt" --tls-private-key-file "$state/pki/server.key" \
        --kubelet-client-certificate "$state/pki/admin.crt" --kubelet-client-key "$state/pki/admin.key" \
        --kubelet-preferred-address-types InternalIP --service-cluster-ip-range "$(in_families $services.0.0/16 $services6::/112)" \
        --service-account-key-file "$state/pki/accounts.pub" --service-account-signing-key-file "$state/pki/accounts.key" \
        --service-account-issuer https://kubernetes.default.svc --cert-dir "$run/certs" --profiling=false ;;
    kube-controller-manager)
      exec kube-controller-manager --kubeconfig "$state/kubeconfig" --leader-elect=false --root-ca-file "$state/pki/ca.crt" \
        --service-account-private-key-file "$state/pki/accounts.key" --bind-address 127.0.0.1 --cert-dir "$run/certs" ;;
    kube-scheduler)
      exec kube-scheduler --kubeconfig "$state/kubeconfig" --leader-elect=false --bind-address 127.0.0.1 --cert-dir "$run/certs" ;;
    kubelet)
      exec kubelet --config "$etc/kubelet.yaml" --kubeconfig "$state/kubeconfig" --hostname-override "node$number" \
        --node-ip "$(in_families "$address" "$address6")" --cert-dir "$run/certs" ;;
    kube-proxy) exec kube-proxy --config "$etc/kube-proxy.yaml" --hostname-override "node$number" ;;
    *) fail "no program of the cluster: $1" ;;
  esac >>"$log/$1" 2>&1 </dev/null 7>&- &
  echo $! >"$run/pids/$1"
  # Its end is no news.
  disown 2>/dev/null || true
}

# What is looked for at fixed places is this node's own.
own_places() {
  local folder
  mount --make-rprivate /
  mount -t proc proc /proc
  mkdir -p /run/containerd /var/lib/kubelet /var/lib/cni
  for folder in /run/containerd /var/log /var/lib/cni; do mount -t tmpfs tmpfs $folder; done
  mount --bind "$data/kubelet" /var/lib/kubelet
  mount --make-rshared /var/lib/kubelet
}

link() {
  wait_for 30 ip link show eth0
  ip link set lo up
  ip link set eth0 up
  if has4; then
    ip addr replace "$address/30" dev eth0
    ip route replace default via "$gateway"
    echo 1 >/proc/sys/net/ipv4/ip_forward
  fi
  if has6; then
    # An address of a new bridge serves at once.
    echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad
    echo 0 >/proc/sys/net/ipv6/conf/all/disable_ipv6
    ip -6 addr replace "$address6/64" dev eth0 nodad
    ip -6 route replace default via "$gateway6"
    echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
  fi
}

# The other end of the link of a node.
link_to() { # NODE INTERFACE
  of_node "$1"
  ip link set "$2" up
  if has4; then ip addr add "$gateway/30" dev "$2"; fi
  if has6; then
    # The machine may have turned IPv6 off for new links.
    echo 0 >"/proc/sys/net/ipv6/conf/$2/disable_ipv6"
    ip -6 addr add "$gateway6/64" dev "$2" nodad
  fi
}

begin_containers() {
  start containerd
  wait_for 60 ctr -a "$run/containerd.sock" version
}

# A process has other namespaces than this one when its `unshare` has come so far.
has_own_network() { # PID
  [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]
}

# The first process of another node, and its link, by which this one is its router.
add_node() { # NODE
  local first veth=node$1
  of_node "$1"
  unshare --net --mount --pid --fork --kill-child bash "$here/cluster.sh" node "$1" >"$state/log/node$1/inside" 2>&1 </dev/null &
  first=$!
  wait_for 30 has_own_network $first
  ip link add "$veth" type veth peer name eth0 netns $first
  link_to "$1" "$veth"
  if has4; then ip route replace "$range" via "$address"; fi
  if has6; then ip -6 route replace "$range6" via "$address6"; fi
  of_node 1
}

inside() {
  local archive program each
  of_node 1
  own_places
  link
  # Before this node has pods, whose mounts are none of theirs.
  for each in $(seq 2 "$(nodes)"); do add_node "$each"; done
  for program in containerd coredns etcd kube-apiserver; do start $program; done
  wait_for 120 kubectl --kubeconfig "$state/kubeconfig" get --raw /readyz
  : >"$state/run/serves"
  start kube-controller-manager
  start kube-scheduler
  wait_for 60 ctr -a "$run/containerd.sock" version
  for archive in "$state"/images/*.tar; do import_to 1 "$archive"; done
  start kubelet
  start kube-proxy
  : >"$run/started"
  obey
}

node() { # NODE
  local archive
  of_node "$1"
  own_places
  link
  begin_containers
  for archive in "$state"/images/*.tar; do import_to "$number" "$archive"; done
  wait_for 120 test -e "$state/run/serves"
  start kubelet
  start kube-proxy
  : >"$run/started"
  obey
}

# Orders of the machine, which must be carried out in here: `WHAT ARGUMENT…`.
obey() {
  local what words
  mkfifo "$run/orders"
  # Open for both, so that it never ends.
  exec 7<>"$run/orders"
  while read -r what words <&7; do
    # shellcheck disable=SC2086
    "obey_$what" $words
    : >"$run/done"
  done
}

obey_restart() { # PROGRAM SECONDS
  kill -9 "$(cat "$run/pids/$1")" || true
  sleep "$2"
  start "$1"
}

obey_cut() { ip link set eth0 down; }

obey_lose() {
  local place
  # First, so that no other node hears of the end of a process.
  obey_cut
  kill -9 -1 || true
  # A machine that is turned on again has none of these.
  while read -r place; do umount -l "$place" 2>/dev/null || true; done < <(
    cut -d' ' -f5 /proc/self/mountinfo | grep -E "^($run|$data|/run/containerd/|/var/lib/kubelet/)" | tac
  )
  rm -rf /run/containerd/* "$run/containerd" "$run/cni" "$run/clock"
  ip link del cni0 2>/dev/null || true
}

obey_back() {
  link
  # It says so by a failed signal that it was lost.
  if ! kill -0 "$(cat "$run/pids/containerd")" 2>/dev/null; then
    begin_containers
    start kubelet
    start kube-proxy
  fi
}

# ---- the outside ----

order() { # NODE WHAT [ARGUMENT…]
  of_node "$1"
  [ -e "$run/started" ] || fail "node$1 is not up: cluster.sh up"
  shift
  rm -f "$run/done"
  # Open for both, so that it does not wait for a first process that has ended.
  echo "$*" 1<>"$run/orders"
}

# A further node, which may be lost without the control plane.
further() { # NODE
  local last
  last=$(nodes 2>/dev/null) || fail "the cluster is not up: cluster.sh up 2"
  [[ $1 =~ ^node([2-9])$ ]] && ((BASH_REMATCH[1] <= last)) ||
    fail "expected a node from node2 to node$last, found \`$1\`. node1 has the control plane, and \`up 2\` starts a second node"
  number=${BASH_REMATCH[1]}
}

ask() { kubectl --kubeconfig "$state/kubeconfig" "$@"; }

change() { # WHAT NODE
  further "$2"
  order "$number" "$1"
  wait_for 60 test -e "$run/done"
}

back() { # NODE
  change back "$1"
  ask uncordon "$1" >&2
  wait_for 60 ask wait --for=condition=Ready "node/$1" --timeout=50s
}

drain() { # NODE
  further "$1"
  ask drain "$1" --ignore-daemonsets --delete-emptydir-data --force --timeout=60s >&2
}

evict() { # POD [NAMESPACE]
  local space=${2:-default}
  ask create --raw "/api/v1/namespaces/$space/pods/$1/eviction" -f - >/dev/null <<J
{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "$1", "namespace": "$space"}}
J
}

clock() { # NODE SECONDS
  further "$1"
  [[ $2 =~ ^-?[0-9]+(\.[0-9]+)?$ ]] || fail "expected seconds, such as 1.5, found \`$2\`"
  of_node "$number"
  [ -e "$state/bin/clock.so" ] || ${CC:-cc} -O2 -shared -fPIC -o "$state/bin/clock.so" "$here/clock.c"
  echo "$2" >"$run/clock"
}

has_started_or_ended() { # NODE PROCESS
  [ -e "$state/run/node$1/started" ] || [ ! -e "/proc/$2" ]
}

# What a cluster that is up already has, and what was said.
check_same() { # WHAT FOUND [WANTED]
  [ -z "${3:-}" ] || [ "$2" = "$3" ] || fail "is up with the $1 $2 and not $3: \`cluster.sh down\` ends it"
}

up() { # [NODES] [--family FAMILY] [--domain DOMAIN]
  [ "$(id -u)" = 0 ] || fail "a real node needs root"
  ((${#state} <= 70)) || fail "the path of \$WEIGH_CLUSTER is too long for the sockets in it: $state"
  local count="" kind="" names=""
  while (($#)); do
    case $1 in
      --family) kind=${2:-}; [[ $kind =~ ^(ipv4|ipv6|dual)$ ]] || fail "expected --family ipv4, ipv6 or dual, found \`$kind\`"; shift ;;
      --domain) names=${2:-}; [[ $names =~ ^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$ ]] || fail "expected --domain with a name such as corp.internal, found \`$names\`"; shift ;;
      *) [ -z "$count" ] || fail "expected: up [NODES] [--family ipv4|ipv6|dual] [--domain DOMAIN], found \`$1\`"; count=$1 ;;
    esac
    shift
  done
  local wanted=${count:-1}
  [[ $wanted =~ ^[1-9]$ ]] && ((wanted <= most)) || fail "expected 1 to $most nodes, found \`$wanted\`"
  if [ -e "$state/run/started" ] && ask --request-timeout 5s get --raw /readyz >/dev/null 2>&1; then
    check_same "number of nodes" "$(nodes)" "$count"
    check_same family "$(family)" "$kind"
    check_same domain "$(domain)" "$names"
    say "is up already"
    return
  fi
  down
  build
  # Two kubelets with the same cgroups would end each other's pods.
  [ -z "$(find /sys/fs/cgroup -maxdepth 2 \( -name kubepods -o -name 'weigh-node*' \) 2>/dev/null)" ] ||
    fail "another cluster runs on this machine (kubepods or weigh-node* in /sys/fs/cgroup)"
  mkdir -p "$state/run"
  echo "$wanted" >"$state/run/nodes"
  echo "${kind:-ipv4}" >"$state/run/family"
  echo "${names:-cluster.local}" >"$state/run/domain"
  configure
  local first veth pause each
  pause=$(mktemp -d)
  cp "$state/bin/pause" "$pause/"
  image localhost/pause:1 "$pause" /pause
  rm -rf "$pause"
  # A kubelet writes these, and they are the whole machine's.
  local key
  for key in vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops kernel.keys.root_maxkeys kernel.keys.root_maxbytes; do
    echo "$key=$(sysctl -n $key)"
  done >"$state/run/sysctl"
  cgroups
  WEIGH_CLUSTER=$state setsid unshare --net --mount --pid --fork --kill-child bash "$here/cluster.sh" inside >"$state/log/inside" 2>&1 </dev/null &
  first=$!
  echo $first >"$state/run/first"
  wait_for 30 has_own_network $first
  veth=weigh$first
  ip link add "$veth" type veth peer name eth0 netns $first
  link_to 1 "$veth"
  if has4; then
    ip route replace $pods.0.0/16 via "$address"
    ip route replace $services.0.0/16 via "$address"
    ((wanted == 1)) || ip route replace $net.0.0/16 via "$address"
  fi
  if has6; then
    ip -6 route replace $pods6::/48 via "$address6"
    ip -6 route replace $services6::/112 via "$address6"
    ((wanted == 1)) || ip -6 route replace $net6::/48 via "$address6"
  fi
  for each in $(seq "$wanted"); do
    wait_for 150 has_started_or_ended "$each" $first
    [ -e "$state/run/node$each/started" ] || fail "the cluster did not start: $(tail -q -n 2 "$state/log/inside" "$state/log"/node*/inside 2>/dev/null)"
    wait_for 60 ask wait --for=condition=Ready "node/node$each" --timeout=50s
  done
  wait_for 30 ask get serviceaccount default
  : >"$state/run/started"
  say "up with $wanted $([ "$wanted" = 1 ] && echo node || echo nodes); KUBECONFIG=$state/kubeconfig"
}

down() {
  if [ -e "$state/run/first" ]; then
    local first children
    first=$(cat "$state/run/first")
    # By its words too: another process may have its number by now.
    if tr '\0' ' ' <"/proc/$first/cmdline" 2>/dev/null | grep -q 'cluster.sh inside'; then
      children=$(cat "/proc/$first/task/$first/children" 2>/dev/null || true)
      kill -9 "$first"
      for first in $first $children; do wait_for 15 test ! -e "/proc/$first"; done
    fi
  fi
  if [ -e "$state/run/sysctl" ]; then
    local line
    while read -r line; do sysctl -qw "$line" 2>/dev/null || true; done <"$state/run/sysctl"
    find /sys/fs/cgroup -depth -type d \( -path '*/kubepods*' -o -path '*/weigh-node*' \) -exec rmdir {} + 2>/dev/null || true
  fi
  rm -rf "$state/run" "$state/data" "$state/etc" "$state/kubeconfig" "$state/log.before"
  [ ! -d "$state/log" ] || mv "$state/log" "$state/log.before"
}

words=$#
expect() { # NUMBER WORDS
  ((words == $1 + 1)) || fail "expected: $2"
}

case ${1:-} in
  # The registry is for tests of images that need a password. A cluster starts without it.
  build) build docker-registry ;;
  down | inside) "$1" ;;
  up) shift; up "$@" ;;
  node) node "$2" ;;
  image) shift; (($# >= 3)) || fail "expected: image NAME FOLDER PROGRAM [ARG…]"; image "$@" ;;
  program) expect 2 "program NAME PROGRAM"; program "$2" "$3" ;;
  restart) order 1 restart "${2:?what}" "${3:-0}" ;;
  evict) (($# == 2 || $# == 3)) || fail "expected: evict POD [NAMESPACE]"; shift; evict "$@" ;;
  drain | back) expect 1 "$1 NODE"; "$1" "$2" ;;
  lose | cut) expect 1 "$1 NODE"; change "$1" "$2" ;;
  clock) expect 2 "clock NODE SECONDS"; clock "$2" "$3" ;;
  *) fail "expected build, up, down, image, program, restart, evict, drain, lose, cut, back or clock, found \`${1:-}\`" ;;
esac
