#!/bin/sh
# A copy of a node with a budget for each cgroup below a parent: they come with their first thread, and go with the cgroup. One CPU, one
# boot. See `cgroups` in crates/tierce-cli/tests/kernel.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

shop=/sys/fs/cgroup/shop

# spin CGROUP: a thread there that never stops; its number is in $spun
spin() {
	meter spin --name "in-$(basename "$1")" --time 300s >/dev/null &
	spun=$!
	echo $spun >"$1/cgroup.procs"
}
# ran PID...: CPU time of each, in us, as a list
ran() {
	for tid in "$@"; do
		awk '{ printf "%d ", $1 / 1000 }' "/proc/$tid/schedstat"
	done | sed 's/ $//; s/ /,/g; s/.*/[&]/'
}
# shares SCENARIO PID...: what each gets in two seconds
shares() {
	scenario=$1
	shift
	sleep 0.5
	before=$(ran "$@") from=$(now_ms)
	sleep 2
	say "$scenario" "{\"before\":$before,\"after\":$(ran "$@"),\"ms\":$(($(now_ms) - from))}"
}
status() {
	sleep 0.5
	say "$1" "$(tierce status --json | tr -d '\n')"
}

mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null
mkdir -p $shop/a $shop/b/inner
meter spin --name other --time 300s >/dev/null &
other=$!
begin cgroups cgroups.toml || exit
status none

# Two threads in one, a thread below the other.
spin $shop/a
one=$spun
spin $shop/a
two=$spun
status first
spin $shop/b/inner
three=$spun
shares two-shares $one $two $three $other
status two
tierce status >/out/status.txt

# One more, to which a thread of the first moves; and one for which there is no copy left.
mkdir $shop/c $shop/d
echo $two >$shop/c/cgroup.procs
status three
spin $shop/d
four=$spun
status full
say tids "{\"one\":$one,\"two\":$two,\"three\":$three,\"four\":$four}"

# One goes, and its copy with it: the next in line gets it.
kill $three
wait $three
rmdir $shop/b/inner $shop/b
shares next-shares $one $two $four $other
status next
kill $one
wait $one
rmdir $shop/a
status gone

# It comes again, by the same name.
mkdir $shop/a
spin $shop/a
one=$spun
shares again-shares $one $two $four $other
status again
kill $one $two $four $other
finish TERM
