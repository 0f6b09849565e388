#!/bin/sh
# The first program of a guest. It gives the guest a root directory that can be written, loads the file systems, sets up the
# network, runs the script "program" and turns the guest off. The kernel passes GUEST_ADDRESS, GUEST_GATEWAY and
# GUEST_WRITABLE, a list of directories with colons between them.
set -eu
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
files=${0%/*}
kernel=/usr/lib/uml/modules/$(uname -r)

# The host's root directory is below, what the guest writes is above, in memory.
mount -t tmpfs overlay /run
mkdir /run/upper /run/work /run/root
insmod "$kernel/kernel/fs/overlayfs/overlay.ko"
mount -t overlay -o lowerdir=/,upperdir=/run/upper,workdir=/run/work overlay /run/root
cd /run/root
mount -t proc proc proc
mount -t sysfs sysfs sys
mount --move /dev dev
mkdir -p dev/pts dev/shm lib/modules
mount -t devpts devpts dev/pts
mount -t tmpfs -o mode=1777 shm dev/shm
mount --bind "$kernel" --mkdir "lib/modules/$(uname -r)"
mount -t tmpfs -o mode=0755 run run
mkdir run/host run/guest
pivot_root . run/host
exec <dev/null
umount -l /run/host

IFS=:
for directory in $GUEST_WRITABLE; do
  mkdir -p "$directory"
  mount -t hostfs -o "$directory" host "$directory"
done
mount -t hostfs -o "$files" host /run/guest
modprobe -a cifs nfsv4
# The host's name servers are out of reach: names are those of /etc/hosts, which a test can write.
rm -f /etc/resolv.conf
echo "options attempts:1 timeout:1" >/etc/resolv.conf
ip link set lo up
if [ -n "${GUEST_ADDRESS:-}" ]; then
  ip address add "$GUEST_ADDRESS" dev vec0
  ip link set vec0 up
  ip route add default via "$GUEST_GATEWAY"
fi

# The serial line carries the program's output as it is.
stty raw -echo </dev/ttyS0
: >/run/guest/started
code=0
sh /run/guest/program >/dev/ttyS0 2>&1 || code=$?
echo "$code" >/run/guest/code
for directory in $GUEST_WRITABLE /run/guest; do
  sync -f "$directory"
done
echo o >/proc/sysrq-trigger
while :; do sleep 1; done
