#!/bin/sh
# many-cpus.sh PLAN: a machine of many CPUs, emulated by few: a reservation on CPU 0 among hogs, hogs on the last CPU, hogs that go
# where a CPU is idle, and more of them for each shared node that the plan has for them. See crates/tierce-cli/tests/kernel.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

last=$(sed 's/.*-//' /sys/devices/system/cpu/online)
begin many "$1" --contention || exit
tasks="audio first last free" named=1
for shared in pair couple; do
	grep -q "tasks.$shared" "$1" || continue
	tasks="$tasks $shared" named=$((named + 3))
done
# of TASK COMMAND...: a meter, for 8 s, of which the host may take some
of() {
	task=$1
	shift
	"$@" --start "$at" --time 8s >"/out/$task.meter" &
	meters="$meters $!"
}
launch() {
	of audio meter service --name audio --budget 2ms
	of first taskset -c 0 meter hogs --count 2
	of last taskset -c "$last" meter hogs --count 2
	of free meter hogs --count 2
	for shared in pair couple; do
		case $tasks in *$shared*) of $shared meter hogs --name $shared --count 3 ;; esac
	done
}
# ready: all that the plan names have their places, and of the other hogs each has its name
ready() {
	places $named && [ "$(cat /proc/[0-9]*/comm | grep -c '^hog[01]$')" = 6 ]
}
together launch 12000 ready
# shellcheck disable=SC2086 # a list
wait $meters
for task in $tasks; do
	say "$task" "$(cat "/out/$task.meter")"
done
say last-cpu "$last"
settled many-held
finish TERM
