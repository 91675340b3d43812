#!/bin/sh
# The plan in force is changed by operations on real threads, one CPU, one boot. See crates/tierce-cli/tests/ctl.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

# ctl NAME [ARGUMENT...]: its exit code, and what it said
ctl() {
	scenario=$1
	shift
	tierce ctl "$@" --json >"/out/$scenario.said" 2>"/out/$scenario.refused"
	code=$?
	[ -s "/out/$scenario.said" ] || echo null >"/out/$scenario.said"
	say "$scenario" "{\"code\":$code,\"said\":$(tr -d '\n' <"/out/$scenario.said")}"
}
# watch NAME: the graph, and again after half a second
watch() {
	ctl "$1-before" list
	sleep 0.5
	ctl "$1-after" list
}
# spin NAME: a thread that never stops
spin() {
	meter spin --name "$1" --time 300s >/dev/null &
}

mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null
ctl nobody list
begin ctl ctl.toml --policies round-robin,constraint --trace /out/ctl.trace --record /out/ctl.rec || exit
spin steady
steady=$! meters=$!
spin one
one=$! meters="$meters $!"
spin two
two=$! meters="$meters $!"
for _ in 1 2; do
	spin pair
	meters="$meters $!"
done
sleep 0.5
say threads "{\"one\":$one,\"two\":$two}"

# A reservation for one thread, and what is refused beside it.
ctl reserve-dry reserve "$one" --under rt --budget 3ms --period 10ms --dry-run
ctl reserve reserve "$one" --under rt --budget 3ms --period 10ms
watch reserved
tierce ctl plan >/out/before.toml
ctl too-much reserve "$two" --under rt --budget 6ms --period 10ms
ctl too-large set "tid-$one" --budget 9ms
ctl no-key set "tid-$one" --weight 3
ctl no-thread reserve 4000000 --under rt --budget 1ms --period 10ms
ctl twice reserve "$one" --under rt --budget 1ms --period 10ms
tierce ctl plan >/out/after.toml
ctl larger set "tid-$one" --budget 4ms
watch larger

# A cgroup, whose threads come and go.
ctl create create group --policy round-robin --quantum 2ms --under rt --budget 1ms --period 10ms --match cgroup=/work
mkdir /sys/fs/cgroup/work /sys/fs/cgroup/work/inner /sys/fs/cgroup/other
echo "$two" >/sys/fs/cgroup/work/inner/cgroup.procs
watch group
echo "$two" >/sys/fs/cgroup/other/cgroup.procs
watch left
# Programs that one there starts are there from their first moment, however short they live.
(
	echo 0 >/sys/fs/cgroup/work/cgroup.procs
	while :; do head -c 50000 /dev/zero | cksum >/dev/null; done
) &
forks=$!
sleep 0.5
watch forks
kill "$forks"
ctl rematch set group --match cgroup=other
ctl joined list
ctl not-empty destroy group
ctl destroy destroy group --all

# Places: a set to a new node with one share, the end of a reservation, another default node.
ctl batch create batch --policy fair --quantum 1ms --under rest --weight 50
ctl move move pair --under batch
watch moved
ctl carry move "tid-$one" --under batch --weight 300
watch carried
tierce ctl plan >/out/carried.toml
ctl end end "tid-$one"
ctl ended list
ctl turns create turns --policy round-robin --under rest --weight 300
ctl default default turns
watch turns
ctl back default rest --weight nice
ctl no-turns destroy turns
ctl root destroy top --all
ctl default-node destroy rest --all

# A time constraint, and all that may be said to one.
ctl activity create activity --policy constraint --under rt --budget 1ms --period 10ms --match "$two"
sleep 0.2
ctl infeasible constrain "$two" --work 50ms --within 60ms
ctl yes constrain "$two" --work 50ms --within 1s
ctl already constrain "$two" --work 1ms --within 1s
ctl over unconstrain "$two"
ctl none unconstrain "$two"
ctl deaf constrain "$steady" --work 1ms --within 1s
ctl unbound constrain 4000000 --work 1ms --within 1s
ctl no-activity destroy activity --all

# What was made for a thread goes with it.
ctl brief reserve "$two" --under rt --budget 1ms --period 10ms
kill "$two"
sleep 0.2
ctl gone list
tierce ctl list >/out/list.txt
say status "$(tierce status --json | tr -d '\n')"
say apply "$(tierce apply ctl.toml --json | tr -d '\n')"
# shellcheck disable=SC2086 # a list
kill $meters
finish TERM
