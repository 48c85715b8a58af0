#!/bin/sh
# Makes the device of the node and stays as long as that is to be there.
set -eu
if ip link add wireguard type wireguard 2>/dev/null; then
  echo "the kernel's device"
  exec sleep infinity
fi
echo "wireguard-go's device"
# Its socket has the device's name, in a folder of the whole machine: this mount
# is the node's alone, and goes with it.
mkdir -p /run/wireguard
mountpoint -q /run/wireguard || mount -t tmpfs -o mode=700 tmpfs /run/wireguard
exec wireguard-go --foreground wireguard
