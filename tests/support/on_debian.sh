#!/bin/bash
# on_debian.sh SUITE COMMAND: run COMMAND in a copy of this tree in another Debian (bookworm, trixie, sid ...), with its Python, C
# library and SQLite, as that system's own root. For root, with debootstrap. The system is made once, in build/debian-SUITE.
# LEAST=1: with no more than lava needs, no compiler, git, ps or ip, in build/debian-SUITE-least.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
suite=$1
root=$here/build/debian-$suite${LEAST:+-least}
needs=python3,python3-venv,make,ca-certificates
[ "${LEAST:-}" ] || needs=$needs,python3-dev,gcc,libc6-dev,git,procps,iproute2,openssh-client,man-db

if [ ! -e "$root/.made" ]; then
    rm -rf "$root"
    debootstrap --variant=minbase --include=$needs "$suite" "$root" >&2
    touch "$root/.made"
fi
cp /etc/resolv.conf /etc/hosts "$root/etc/"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
mkdir -p "$root/srv/lava" "$root/.old"
find "$root/srv/lava" -mindepth 1 -maxdepth 1 ! -name .venv -exec rm -rf {} +
tar -c -C "$here" --exclude=./.venv --exclude=./build --exclude='*.egg-info' . | tar -x -C "$root/srv/lava" --no-same-owner
chmod -R a+rX "$root/srv/lava"

export root command=$2
exec unshare -m --propagation private bash -euc '
    mount --rbind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount --rbind /sys "$root/sys"
    mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
    cd "$root"
    pivot_root . .old
    umount -l /.old
    cd /srv/lava
    unset PYTHON
    HOME=/root exec bash -c "$command"'
