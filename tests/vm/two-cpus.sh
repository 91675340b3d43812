#!/bin/sh
# Two CPUs, one boot: trees apart, a node below both, affinity. See crates/tierce-cli/tests/kernel.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

begin two two-cpus.toml --contention --trace /out/two.trace || exit
at=$(in_ms 1500)
meter service --name left --budget 2ms --start "$at" --time 2s --segments /out/left.csv >/out/left.meter &
meters=$!
meter service --name right --budget 3ms --period 20ms --start "$at" --time 2s >/out/right.meter &
meters="$meters $!"
meter spin --name hyper --start "$at" --time 2s >/out/hyper.meter &
meters="$meters $!"
meter hogs --count 4 --start "$at" --time 2s >/out/rest.meter
# shellcheck disable=SC2086 # a list
wait $meters
for task in left right hyper rest; do
	say $task "$(cat /out/$task.meter)"
done

# Affinity that changes while it runs.
at=$(in_ms 500)
meter hogs --count 3 --start "$at" --time 1500ms >/out/affinity.meter &
meters=$!
sleep 0.7
for pid in $(pidof meter); do
	taskset -p 2 "$pid" >/dev/null
done
sleep 0.3
for pid in $(pidof meter); do
	taskset -p 1 "$pid" >/dev/null
done
sleep 0.3
for pid in $(pidof meter); do
	taskset -p 3 "$pid" >/dev/null
done
wait $meters
say affinity "$(cat /out/affinity.meter)"

# Affinity that changes again and again: nobody stays with a CPU that may no longer run it.
meters=
for who in roam1 roam2 roam3; do
	meter service --name $who --time 5s >/out/$who.meter &
	meters="$meters $!"
done
sleep 0.3
turn=0
while [ $turn -lt 100 ]; do
	turn=$((turn + 1))
	for pid in $(pidof meter); do
		taskset -p $((1 + turn % 2)) "$pid" >/dev/null
	done
	sleep 0.04
done
# shellcheck disable=SC2086 # a list
wait $meters
for who in roam1 roam2 roam3; do
	say $who "$(cat /out/$who.meter)"
done

# A CPU goes and comes back while processes come and go.
meter service --name right --time 1s >/out/right.meter &
right=$!
meter forkstorm --count 300 --parallel 8 --hogs 2 >/out/storm.meter &
storm=$!
cycles=0 slowest=0
while kill -0 $storm 2>/dev/null; do
	for online in 0 1; do
		from=$(now_ms)
		echo $online >/sys/devices/system/cpu/cpu1/online
		took=$(($(now_ms) - from))
		[ $took -le $slowest ] || slowest=$took
		sleep 0.1
	done
	cycles=$((cycles + 1))
done
wait $right
say storm "$(cat /out/storm.meter)"
say unplugged "{\"cycles\":$cycles,\"slowest_ms\":$slowest}"

# One that has to stay, for what the deadline class has promised, does so.
chrt -d -T 80000000 -D 100000000 -P 100000000 0 sleep 100 &
promised=$!
chrt -d -T 80000000 -D 100000000 -P 100000000 0 sleep 100 &
promised="$promised $!"
sleep 0.1
went=true
echo 0 >/sys/devices/system/cpu/cpu1/online || went=false
meter hogs --count 2 --start "$(in_ms 100)" --time 500ms >/out/stays.meter
say stays "{\"went\":$went,\"online\":\"$(cat /sys/devices/system/cpu/online)\",\"hogs\":$(cat /out/stays.meter)}"
# shellcheck disable=SC2086 # a list
kill $promised
sleep 0.2
finish INT
