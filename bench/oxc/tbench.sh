#!/bin/sh
# In the guest of ./tbench: a connection of tbench, its throughput under shares of the CPU.
# shellcheck source=../../tests/vm/lib.sh
. ./lib.sh

# throughput NAME SHARE: of server and client, which run where this shell does
throughput() {
	tbench_srv >/dev/null &
	server=$!
	sleep 0.2
	tbench -t 2 -c client.txt 1 127.0.0.1 >/out/tbench 2>&1
	say "$1-$2" "$(awk '/^Throughput/ { print $2 }' /out/tbench)"
	kill "$server"
	wait "$server" 2>/dev/null
}

throughput EEVDF 100
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/net
for share in 5 10 20 40 60 80; do
	echo $((share * 200)) 20000 >/sys/fs/cgroup/net/cpu.max
	echo $$ >/sys/fs/cgroup/net/cgroup.procs
	throughput cpu.max-20ms $share
	echo $$ >/sys/fs/cgroup/cgroup.procs
done

begin oxc 1ms-5.toml --stats counts || exit
for period in 1ms 20ms; do
	for share in 5 10 20 40 60 80; do
		tierce apply "$period-$share.toml" >/out/applied 2>&1 || cat /out/applied
		throughput "tierce-$period" $share
	done
done
tierce apply all.toml >/out/applied 2>&1 || cat /out/applied
throughput tierce-all 100
finish TERM
