#!/bin/sh
# Makes an authority, a certificate for this machine's own address, and one for a client, in a folder:
# certificates.sh FOLDER. What is there and valid for another month stays.
set -eu
folder=$1
if openssl x509 -checkend 2592000 -noout -in "$folder/both.pem" >/dev/null 2>&1; then
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
sign server "subjectAltName=IP:127.0.0.1,DNS:localhost"
sign client "extendedKeyUsage=clientAuth"
cat "$work/server.pem" "$work/server.key" > "$work/both.pem"
mv "$work"/authority.pem "$work"/both.pem "$work"/server.pem "$work"/server.key \
  "$work"/client.pem "$work"/client.key "$folder"
