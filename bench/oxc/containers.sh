#!/bin/sh
# In the guest of ./containers: systemd, Docker and Podman as they are, on a machine of their own, whose cgroups are those of the guest.
# shellcheck source=../../tests/vm/lib.sh
. ./lib.sh
machine=/machine
mkdir $machine
tar -xf debian.tar -C $machine
rm debian.tar
mount --bind $machine $machine
mount -t proc proc $machine/proc
mount --rbind /sys $machine/sys
mount --rbind /dev $machine/dev
mount -t tmpfs tmpfs $machine/run
mkdir -p $machine/etc/docker
# No network, and no file system that a RAM disk has not.
echo '{ "bridge": "none", "iptables": false, "ip6tables": false, "storage-driver": "vfs" }' >$machine/etc/docker/daemon.json
printf '[storage]\ndriver = "vfs"\nrunroot = "/run/containers"\ngraphroot = "/var/lib/containers"\n' \
	>$machine/etc/containers/storage.conf
container=tierce unshare --fork --pid --mount-proc=$machine/proc chroot $machine /lib/systemd/systemd >/out/systemd.log 2>&1 &
sleep 5
first=$(tr -d ' ' <"/proc/$!/task/$!/children")
inside() {
	nsenter --target "$first" --pid --mount --root --wd "$@"
}
until inside docker info >/out/docker 2>&1; do sleep 1; done

# A container of one program that never stops, by each; and a service.
tar -C / -cf $machine/srv/image.tar bin/busybox
for tool in docker podman; do
	inside $tool import /srv/image.tar tiny >"/out/$tool-import" 2>&1
	inside $tool run -d --network none --name $tool tiny /bin/busybox sha256sum /dev/zero >"/out/$tool-id" 2>"/out/$tool-run"
done
inside systemd-run --slice=work.slice --unit=job sha256sum /dev/zero >/out/service 2>&1
path() { # CONTAINER PREFIX: its cgroup
	find /sys/fs/cgroup -type d -name "$2-$(cat "/out/$1-id").scope" | sed 's,/sys/fs/cgroup/,,'
}
say paths "[\"$(path docker docker)\",\"$(path podman libpod)\",\"work.slice/job.service\"]"

# shares NAME: what each node gets in 4 s
shares() {
	from=$(tierce ctl list --json)
	sleep 4
	say "$1" "{\"from\":$(echo "$from" | tr -d '\n'),\"until\":$(tierce ctl list --json | tr -d '\n')}"
}
ctl() {
	echo "\$ tierce ctl $*" >>/out/ctl
	tierce ctl "$@" >>/out/ctl 2>&1
}
sha256sum /dev/zero &
begin containers containers.toml --stats counts || exit
shares before
ctl create docker --policy fair --under rt --budget 2ms --period 10ms --match "cgroup=$(path docker docker)"
ctl create podman --policy fair --under rt --budget 1ms --period 10ms --match "cgroup=$(path podman libpod)"
ctl create service --policy fair --under rt --budget 3ms --period 20ms --match unit=job.service
shares reserved
inside docker exec -d docker /bin/busybox sha256sum /dev/zero
shares "another program in docker's"
ctl set docker --budget 4ms
shares "4ms of 10 for docker's"
inside docker stop -t 0 docker >/dev/null
shares "docker's stopped"
inside docker start docker >/dev/null
shares "docker's started again"
ctl destroy podman --all
shares "no reservation for podman's"
ctl set docker --budget 9ms
cat /out/ctl >&2
finish TERM
