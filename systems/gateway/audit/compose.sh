#!/bin/sh
# Composes the supergraph of every corpus again, or of those that are named.
#
#   (cd ../tests/compose && npm ci)
#   ./compose.sh [NAME…]
#
# Run by hand when a subgraph changes; what it writes is committed.
set -eu
cd "$(dirname "$0")"
[ $# -gt 0 ] || set -- $(ls corpus)
for name in "$@"; do
    words=
    for file in corpus/"$name"/subgraphs/*.graphql; do
        subgraph=$(basename "$file" .graphql)
        words="$words $subgraph=http://$subgraph.test/graphql=$file"
    done
    # Names of subgraphs hold no spaces.
    # shellcheck disable=SC2086
    if node "${COMPOSE:-../tests/compose/compose.mjs}" $words >"corpus/$name/supergraph.new"; then
        mv "corpus/$name/supergraph.new" "corpus/$name/supergraph.graphql"
    else
        rm -f "corpus/$name/supergraph.new"
        echo "$name does not compose" >&2
    fi
done
