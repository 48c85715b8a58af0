# Makes a node's half of the network, in the node: network.sh HOST CONGESTION. Each node's
# pods have 10.244.N.0/24, where N is unlike any other node's.
set -eu
host=$1 congestion=$2
mtu=1450 # 50 bytes less, for VXLAN's headers

mac() { printf '02:00:0a:f4:00:%02x' "$1"; }

until [ -s "$host.pid" ]; do sleep 0.01; done
pid=$(cat "$host.pid")
until [ "$(readlink "/proc/$pid/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done

echo 1 >/proc/sys/net/ipv4/ip_forward
ip link add cni0 type bridge
while read -r name ip number; do
    [ "$name" = "$host" ] || continue
    ip link set cni0 mtu $mtu up
    ip address add "10.244.$number.1/24" dev cni0
    ip link add flannel.1 address "$(mac "$number")" mtu $mtu type vxlan id 1 local "$ip" dev data dstport 8472 nolearning
    ip address add "10.244.$number.0/32" dev flannel.1
    ip link set flannel.1 up
    ip link add pod0 mtu $mtu type veth peer name eth0 mtu $mtu netns "$pid"
    ip link set pod0 master cni0 up
    nsenter --net="/proc/$pid/ns/net" sh -ec "
        ip link set lo up
        ip address add 10.244.$number.2/24 dev eth0
        ip link set eth0 up
        ip route add default via 10.244.$number.1 congctl $congestion"
done <nodes
while read -r name ip number; do
    [ -n "$name" ] && [ "$name" != "$host" ] || continue
    ip neighbour add "10.244.$number.0" lladdr "$(mac "$number")" dev flannel.1 nud permanent
    bridge fdb append "$(mac "$number")" dev flannel.1 dst "$ip"
    ip route add "10.244.$number.0/24" via "10.244.$number.0" dev flannel.1 onlink congctl "$congestion"
done <nodes
