#!/bin/sh
# One CA for the repetition and a certificate for each node, valid for a day. The
# CA's key is in no node's folder, and gone when this ends.
set -eu
umask 077
trap 'rm -rf ca' EXIT
mkdir ca
nebula-cert ca -name skerry-lab -duration 24h -out-crt ca.crt -out-key ca/ca.key
while read -r host inner; do
  nebula-cert sign -ca-crt ca.crt -ca-key ca/ca.key -name "$host" -networks "$inner/16" \
    -out-crt "$host/node.crt" -out-key "$host/node.key"
done <nodes
