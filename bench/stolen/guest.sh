#!/bin/sh
# In the guest of ./vm: figures 11.3 and 11.4 with THIEF, `thread` or `network`. Half a second of a task that always wants the CPU for each
# way to charge and each over-reservation; and three seconds, the second of them stolen from. When the task ran is in /out/WAY-OVER.csv and
# /out/burst-WAY.csv, what it was given in /out/trace, who stole in /out/points.json.
# shellcheck source=../../tests/vm/lib.sh
. ./lib.sh
thief=$1

# steal SECONDS: a thread of a higher class that wakes 4,000 times a second; or two processes on CPU 1 with a connection, whose packets
# CPU 0 receives
steal() {
	case $thief in
	thread) meter cyclic --name thief --policy fifo:10 --interval 250us --time "$1s" >/dev/null & ;;
	network) taskset -c 1 tbench -t "$1" -c client.txt 1 127.0.0.1 >/dev/null & ;;
	esac
	stealing=$!
}
end_theft() {
	kill $stealing
	killall tbench 2>/dev/null # its child, too
}
# field NAME: the first whole number of that name in the JSON on standard input
field() {
	grep -o "\"$1\": *[0-9]*" | head -1 | grep -o '[0-9]*$'
}
# between NAME: how much it has grown, of CPU 0
between() {
	cpus() { tr -d '\n ' <"$1" | sed 's/.*"cpus":\[//'; }
	echo $(($(cpus /tmp/until | field "$1") - $(cpus /tmp/from | field "$1")))
}
# reserve WAY BUDGET
reserve() {
	tierce ctl set "for-$1" --budget "$2" --period 20ms >/dev/null || exit
}
# point LINE OVER WAY: of a line of the figure
point() {
	reserve "$3" "$((4000 + 40 * $2))us"
	tierce ctl list --json >/tmp/from
	meter service --name "for-$3" --time 500ms --segments "/out/$1-$2.csv" >/dev/null
	tierce ctl list --json >/tmp/until
	printf '{"line":"%s","over":%d,"way":"%s","elapsed_ns":%d,"interrupts_ns":%d,"threads_ns":%d}\n' "$1" "$2" "$3" \
		$(($(tr -d '\n ' </tmp/until | field elapsed_ns) - $(tr -d '\n ' </tmp/from | field elapsed_ns))) \
		"$(between interrupts_ns)" "$(between threads_ns)" >>/out/points.json
}

if [ "$thief" = network ]; then
	ip link set lo up
	echo 1 >/sys/class/net/lo/queues/rx-0/rps_cpus
fi
begin stolen plan.toml --trace /out/trace || exit
taskset -c 0 sha256sum /dev/zero &
others=$!
if [ "$thief" = network ]; then
	taskset -c 1 tbench_srv >/dev/null &
	others="$others $!"
fi
point idle 0 rez
for way in rez rez-c rez-fb; do
	steal 1000
	sleep 0.3
	for over in 0 4 8 12 16 20 24 28; do
		point $way $over $way
	done
	end_theft

	reserve $way 4ms
	meter service --name for-$way --start "$(in_ms 1000)" --time 3s --gap 3us --segments /out/burst-$way.csv >/dev/null &
	meter=$!
	sleep 2
	steal 2
	sleep 1
	end_theft
	wait $meter
	reserve $way 1ms
done
# shellcheck disable=SC2086 # a list
kill $others
finish TERM
