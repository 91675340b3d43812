#!/bin/sh
# A plan in force becomes one that its kernel object has no room for, again and again. See crates/tierce-cli/tests/reload.rs.
# reload.sh CPUS TIMES
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

cpus=$1 times=$2
case $cpus in
1) at_zero='' ;;
*) at_zero='cpu = 0, ' ;;
esac
cp "reload-$cpus.toml" a.toml
{
	cat a.toml
	cat <<END
[node.turns]
policy = "round-robin"
under.rt = { ${at_zero}budget = "1ms", period = "20ms" }
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
under.rt = { ${at_zero}budget = "1ms", period = "20ms" }
[tasks.job]
under.jobs = { deadline = "20ms" }
match = { comm = "job" }
END
} >c.toml

# apply NAME PLAN [ARGUMENT...]: its exit code, and what it said
apply() {
	scenario=$1
	shift
	tierce apply "$@" --json >"/out/$scenario.said" 2>"/out/$scenario.refused"
	code=$?
	[ -s "/out/$scenario.said" ] || echo null >"/out/$scenario.said"
	say "$scenario" "{\"code\":$code,\"said\":$(tr -d '\n' <"/out/$scenario.said")}"
}
# status SCENARIO: who is where
status() {
	say "$1" "$(tierce status --json | tr -d '\n')"
}
# spins NAME: a thread that always wants a CPU
spins() {
	meter spin --name "$1" --time 600s >/dev/null &
	meters="$meters $!"
}

meters=
begin reload a.toml --trace /out/reload.trace --record /out/reload.rec || exit
for who in hog pair extra; do
	spins $who
done
[ "$cpus" = 1 ] || spins hyper
sleep 1
status before
apply refused b.toml
apply dry b.toml --reload --dry-run
n=0
while [ $n -lt "$times" ]; do
	n=$((n + 1))
	apply "add-$n" b.toml --reload
	[ $n -gt 1 ] || status after
	apply "take-$n" a.toml --reload
	[ $n -lt "$times" ] || break
	n=$((n + 1))
	# shellcheck disable=SC2086 # a list
	[ $n -gt 2 ] || kill ${meters#* * } # all but the hog: they make it slow
	apply "add-$n" c.toml --reload
	apply "take-$n" a.toml --reload
done
sleep 0.5
# shellcheck disable=SC2086 # a list
kill $meters 2>/dev/null
# shellcheck disable=SC2086 # a list
wait $meters
sleep 1
say report "$(tierce status --report --json | tr -d '\n')"
finish TERM

# No descriptors for a second object.
(
	ulimit -n 90
	begin narrow a.toml || exit
	say hog-begins "$(meter service --name hog --budget 2ms --time 1s)"
	apply no-object b.toml --reload
	status still
	finish TERM
)

# Failures at every step, and twenty times without.
for name in hog pair; do
	meter spin --name $name --time 1000s >/dev/null &
done
./reload reload-1.toml
./reload reload-1.toml 20
