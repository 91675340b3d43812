#!/bin/sh
# In the guest of ./vm: JOBS jobs for each way to charge and each over-reservation; what came of it in /out/points.json.
# shellcheck source=../../tests/vm/lib.sh
. ./lib.sh
jobs=$1

# field NAME: the first whole number of that name in the JSON on standard input
field() {
	grep -o "\"$1\": *[0-9]*" | head -1 | grep -o '[0-9]*$'
}
# point VARIANT OVER
point() {
	tierce ctl set victim --budget "$((4000 + 40 * $2))us" --period 20ms >/dev/null
	tierce ctl list --json >/tmp/from
	tierce job --name victim --period 20ms --work 4ms --jobs "$jobs" --json >/tmp/job
	tierce ctl list --json >/tmp/until
	cpus() { tr -d '\n ' <"$1" | sed 's/.*"cpus":\[{\([^}]*\)}.*/\1/'; }
	stolen=$(($(cpus /tmp/until | field stolen_ns) - $(cpus /tmp/from | field stolen_ns)))
	elapsed=$(($(tr -d '\n ' </tmp/until | field elapsed_ns) - $(tr -d '\n ' </tmp/from | field elapsed_ns)))
	printf '{"variant":"%s","over":%d,"jobs":%d,"misses":%d,"stolen":%s}\n' "$1" "$2" "$jobs" "$(field misses </tmp/job)" \
		"$(awk "BEGIN { print 100 * $stolen / $elapsed }")" >>/out/points.json
}

begin rez rez.toml
sha256sum /dev/zero &
hog=$!
point idle 0
finish TERM
for variant in rez rez-c rez-fb; do
	begin "$variant" "$variant.toml"
	meter cyclic --name thief --policy fifo:10 --interval 250us --time 1000s >/dev/null &
	thief=$!
	for over in 0 4 8 12 16 24; do
		point "$variant" $over
	done
	kill $thief
	finish TERM
done
kill $hog
wait
