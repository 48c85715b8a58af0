#!/bin/sh
# route.sh INNER CONGESTION: the route by Nebula's device, with the lab's
# congestion control. Nebula sets one itself first, with its MTU.
set -eu
until ip -4 route show dev nebula 2>/dev/null | grep -q 'mtu 1300'; do
  sleep 0.01
done
ip route replace 10.99.0.0/16 dev nebula proto kernel scope link src "$1" mtu 1300 congctl "$2"
