#!/bin/sh
# configure.sh HOST INNER CONGESTION: keys, peers, address and route of a node.
set -eu
until wg show wireguard >/dev/null 2>&1; do
  sleep 0.01
done
wg set wireguard listen-port 51820 private-key "$1/private"
rm "$1/private"
while read -r host inner ip; do
  [ "$host" = "$1" ] ||
    wg set wireguard peer "$(cat "$host/public")" endpoint "$ip:51820" allowed-ips "$inner/32"
done <nodes
ip address add "$2/32" dev wireguard
ip link set wireguard mtu 1420 up
ip route add 10.98.0.0/16 dev wireguard src "$2" congctl "$3"
