#!/bin/sh
# In the guest of ./tbench: two connections of tbench, one on each CPU, and their throughput under shares of the CPUs.
# shellcheck source=../../tests/vm/lib.sh
. ./lib.sh
groups=/sys/fs/cgroup
shares='5 10 20 40 60 80'

# For each CPU a group, in it one for the connection and one for whoever takes the rest. A network, too: all servers of tbench listen on
# one port.
echo +cpu +cpuset >$groups/cgroup.subtree_control
for cpu in 0 1; do
	mkdir $groups/cpu$cpu
	echo +cpu >$groups/cpu$cpu/cgroup.subtree_control
	mkdir $groups/cpu$cpu/net $groups/cpu$cpu/rest
	echo 1 >$groups/cpu$cpu/rest/cpu.idle
	unshare -n sleep 100000 &
	echo $! >/tmp/network$cpu
done

on() { # CPU COMMAND...: there, in its group and network
	cpu=$1
	shift
	echo 0 >$groups/cpu"$cpu"/net/cgroup.procs
	exec taskset -c "$cpu" nsenter -t "$(cat /tmp/network"$cpu")" -n "$@"
}
child() { # PID
	tr -d ' ' <"/proc/$1/task/$1/children"
}
born() { # PID: its child is there
	until [ -n "$(child "$1")" ]; do sleep 0.01; done
}
# into_deadline RUNTIME PERIOD SERVER SERVER CLIENT CLIENT: who does the work of each; clients begin only then
into_deadline() {
	budget=$1 every=$2
	shift 2
	for pid in "$3" "$4"; do
		born "$pid"
		kill -STOP "$pid"
	done
	for pid in "$@"; do
		born "$pid"
		chrt -d -T "$budget" -P "$every" -p 0 "$(child "$pid")" || exit
	done
	kill -CONT "$3" "$4"
}
# throughput NAME SHARE [RUNTIME PERIOD]: of both connections, whose processes are begun by $by; of the deadline class, server and client
# with RUNTIME ns each
by=
throughput() {
	pids=
	for cpu in 0 1; do
		# shellcheck disable=SC2086 # a command
		on $cpu $by tbench_srv >/dev/null &
		pids="$pids $!"
	done
	sleep 0.2
	for cpu in 0 1; do
		# shellcheck disable=SC2086 # a command
		on $cpu $by tbench -t 2 -c client.txt 1 127.0.0.1 >/out/tbench-$cpu 2>&1 &
		pids="$pids $!"
	done
	if [ -n "$3" ]; then
		# shellcheck disable=SC2086 # a list
		into_deadline "$3" "$4" $pids
	fi
	# shellcheck disable=SC2086 # a list
	set -- "$1" "$2" $pids
	wait "$5" "$6"
	kill "$3" "$4"
	wait "$3" "$4" 2>/dev/null
	while pidof tbench_srv >/dev/null; do sleep 0.1; done # who served ends, too
	say "$1-$2" "[$(awk '/^Throughput/ { print $2 }' /out/tbench-0),$(awk '/^Throughput/ { print $2 }' /out/tbench-1)]"
}

for cpu in 0 1; do
	(on $cpu ip link set lo up)
done

begin oxc 1ms-5.toml --stats counts || exit
# Both CPUs always have something to do from here on: a CPU of this machine works the faster the less the other does.
for cpu in 0 1; do
	meter spin --name rest --cpu $cpu --group $groups/cpu$cpu/rest --time 100000s >/dev/null &
done
sleep 0.2
for period in 20ms 1ms; do
	for share in $shares; do
		tierce apply "$period-$share.toml" >/out/applied 2>&1 || cat /out/applied
		throughput "tierce-$period" "$share"
	done
done
by='chrt -r 1'
for period in rr-20ms rr-1ms; do
	for share in $shares; do
		tierce apply "$period-$share.toml" >/out/applied 2>&1 || cat /out/applied
		throughput "tierce-$period" "$share"
	done
done
by=
tierce apply all.toml >/out/applied 2>&1 || cat /out/applied
throughput tierce-all 100
finish TERM

throughput EEVDF 100
for share in $shares; do
	for cpu in 0 1; do
		echo $((share * 200)) 20000 >$groups/cpu$cpu/net/cpu.max
	done
	throughput cpu.max-20ms "$share"
done
for cpu in 0 1; do
	echo max >$groups/cpu$cpu/net/cpu.max
done

# The deadline class wants CPUs of its own: of two sets of one CPU each, the machine itself is one.
echo HRTICK_DL >/sys/kernel/debug/sched/features
echo 1 >$groups/cpu1/cpuset.cpus
echo root >$groups/cpu1/cpuset.cpus.partition
grep -qx root $groups/cpu1/cpuset.cpus.partition || exit
for period in 20 1; do
	for share in $shares; do
		throughput "deadline-${period}ms" "$share" $((share * period * 5000)) $((period * 1000000))
	done
done
