#!/bin/sh
# Runs nginx, which reads no environment: nginx.sh PORT UPSTREAM close|keep
# Writes its configuration from nginx.conf.template into a folder, which goes when nginx ends.
set -eu
case "$3" in
  close) connection=close ;;
  keep) connection= ;;
  *) echo "nginx.sh: expected close or keep, found \`$3\`" >&2; exit 2 ;;
esac
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -e "s|@port@|$1|" -e "s|@upstream@|$2|" -e "s|@folder@|$folder|" -e "s|@connection@|$connection|" \
  "$(dirname "$0")/nginx.conf.template" > "$folder/nginx.conf"
nginx -e stderr -p "$folder" -c "$folder/nginx.conf" &
nginx=$!
trap 'kill -TERM $nginx' TERM INT
# The first wait ends when a signal comes, the second one when nginx has ended.
wait $nginx || wait $nginx
