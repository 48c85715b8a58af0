#!/usr/bin/env bash
# Downloads Debian's cloud kernel and unpacks it into the cache, where internal/guest
# looks for it. Installs nothing; does nothing when the kernel is there already.
#
#   test/guest/fetch.sh
#
# SKERRY_GUEST_PACKAGE names the package with the kernel; by default it is the one
# that linux-image-cloud-amd64 stands for.
set -euo pipefail

readonly cache=${XDG_CACHE_HOME:-$HOME/.cache}/skerry/guest
readonly meta=linux-image-cloud-amd64

fail() {
	printf 'fetch: error: %s\nfetch: hint: %s\n' "$1" "$2" >&2
	exit 1
}

[[ ! -e $cache/kernel/vmlinuz ]] || exit 0
PATH=$PATH:/usr/sbin:/sbin
for program in apt-cache apt-get dpkg-deb depmod; do
	command -v "$program" >/dev/null ||
		fail "no $program on the path" "this needs Debian with the package kmod: apt-get install --no-install-recommends kmod"
done
package=${SKERRY_GUEST_PACKAGE:-$(apt-cache depends "$meta" | sed -n 's/^ *Depends: //p' | head -n 1)}
[[ -n $package ]] || fail "apt knows no package $meta" "run apt-get update, then this again"

mkdir -p "$cache"
work=$(mktemp -d "$cache/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
printf 'fetch: downloading %s to %s\n' "$package" "$cache" >&2
apt-get -q download "$package" >&2 || fail "apt-get download failed, as it says above" "check the network, then run this again"
dpkg-deb --extract ./*.deb tree
version=$(ls tree/lib/modules)
depmod -b tree "$version"
mkdir kernel
mv tree/boot/vmlinuz-* kernel/vmlinuz
mv "tree/lib/modules/$version" kernel/modules
# Another fetch may have been faster; its kernel is as good.
mv -T kernel "$cache/kernel" || [[ -e $cache/kernel/vmlinuz ]]
