#!/bin/sh
# A pair of keys for each node, in its folder.
set -eu
umask 077
while read -r host _; do
  mkdir "$host"
  wg genkey >"$host/private"
  wg pubkey <"$host/private" >"$host/public"
done <nodes
