#!/bin/sh
# A plan in force becomes one that its kernel object has no room for. See crates/tierce-cli/tests/reload.rs.
#
#     reload.sh PLAN          by `tierce apply`, and on one CPU with failures
#     reload.sh PLAN storm    with failures, ten times while shells start processes on all CPUs
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

plan=$1

# meters NAME...: threads of these names that compute
meters=
meters() {
	for who in "$@"; do
		meter spin --name "$who" --time 1000s >/dev/null &
		meters="$meters $!"
	done
}

# Processes that come and go while ./reload has objects take turns, not while it loads them: that would take long.
processes() {
	until [ -e storm ]; do
		sleep 1
	done
	while [ -e storm ]; do
		/bin/true
		(exit 0)
	done
}

if [ "$2" = storm ]; then
	for _ in $(seq 0 "$(nproc)"); do
		processes &
	done
	./reload "$plan" 10
	exit
fi

# With `extra` more threads than CPUs: they move.
others=
for _ in $(seq "$(nproc)"); do
	others="$others pair"
done

cp "$plan" a.toml
{
	cat a.toml
	cat <<END
[node.turns]
policy = "round-robin"
under.rt = { cpu = 0, budget = "1ms", period = "20ms" }
[tasks.extra]
under.turns = {}
match = { comm = "extra" }
END
} >b.toml
{
	cat a.toml
	cat <<END
[node.jobs]
policy = "edf"
under.rt = { cpu = 0, budget = "1ms", period = "20ms" }
[tasks.job]
under.jobs = { deadline = "20ms" }
match = { comm = "job" }
END
} >c.toml

# status SCENARIO: who is where
status() {
	say "$1" "$(tierce status --json | tr -d '\n')"
}

begin reload a.toml --trace /out/reload.trace --record /out/reload.rec || exit
# shellcheck disable=SC2086 # a list
meters hog $others extra
sleep 1
status before
apply refused b.toml
apply dry b.toml --reload --dry-run
apply add-1 b.toml --reload
status after
apply take-1 a.toml --reload
# shellcheck disable=SC2086 # a list
kill ${meters#* * } # all but the hog: they make it slow
apply add-2 c.toml --reload
apply take-2 a.toml --reload
sleep 0.5
# shellcheck disable=SC2086 # a list
kill $meters 2>/dev/null
# shellcheck disable=SC2086 # a list
wait $meters
sleep 1
say report "$(tierce status --report --json | tr -d '\n')"
finish TERM

[ "$(nproc)" = 1 ] || exit 0

# No descriptors for a second object.
(
	# shellcheck disable=SC3045 # the guest's sh has it
	ulimit -n 90
	begin narrow a.toml || exit
	say hog-begins "$(meter service --name hog --budget 2ms --time 1s)"
	apply no-object b.toml --reload
	status still
	finish TERM
)

# Failures at every step, and five times without.
./reload "$plan" 5
