#!/bin/sh
# Makes an authority, a certificate for this machine's own address and other names, and one for a client, in a
# folder: certificates.sh FOLDER [NAME…]. What is there and valid for another month stays.
set -eu
folder=$1
shift
is_good() { # NAME…
  openssl x509 -checkend 2592000 -noout -in "$folder/both.pem" >/dev/null 2>&1 || return
  for name; do
    openssl x509 -checkhost "$name" -noout -in "$folder/both.pem" | grep -q "does match" || return
  done
}
if is_good "$@"; then
  exit 0
fi
mkdir -p "$folder"
work=$(mktemp -d "$folder/new.XXXXXX")
trap 'rm -rf "$work"' EXIT
key="ec -pkeyopt ec_paramgen_curve:P-256"

openssl req -x509 -newkey $key -nodes -days 365 -subj "/CN=authority of a lab" \
  -addext basicConstraints=critical,CA:TRUE -keyout "$work/authority.key" -out "$work/authority.pem" 2>/dev/null
sign() { # NAME EXTENSIONS
  openssl req -newkey $key -nodes -subj "/CN=$1 of a lab" -keyout "$work/$1.key" -out "$work/$1.csr" 2>/dev/null
  printf 'basicConstraints=CA:FALSE\n%s\n' "$2" > "$work/$1.ext"
  openssl x509 -req -in "$work/$1.csr" -CA "$work/authority.pem" -CAkey "$work/authority.key" -CAcreateserial \
    -days 365 -extfile "$work/$1.ext" -out "$work/$1.pem" 2>/dev/null
}
names=$(printf ',DNS:%s' localhost "$@")
sign server "subjectAltName=IP:127.0.0.1$names"
sign client "extendedKeyUsage=clientAuth"
cat "$work/server.pem" "$work/server.key" > "$work/both.pem"
mv "$work"/authority.pem "$work"/both.pem "$work"/server.pem "$work"/server.key \
  "$work"/client.pem "$work"/client.key "$folder"
