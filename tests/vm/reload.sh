#!/bin/sh
# A plan in force becomes one that its kernel object has no room for. See crates/tierce-cli/tests/reload.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

plan=$1 at_zero=
[ "$(nproc)" = 1 ] || at_zero="cpu = 0, "
cp "$plan" a.toml
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

# status SCENARIO: who is where
status() {
	say "$1" "$(tierce status --json | tr -d '\n')"
}

if [ "$(nproc)" -gt 1 ]; then
	begin several a.toml || exit
	apply plain b.toml
	apply refused b.toml --reload
	apply tried b.toml --reload --dry-run
	apply needless a.toml --reload
	status after
	finish TERM
	exit
fi

meters=
begin reload a.toml --trace /out/reload.trace --record /out/reload.rec || exit
for who in hog pair extra; do
	meter spin --name $who --time 600s >/dev/null &
	meters="$meters $!"
done
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
for name in hog pair; do
	meter spin --name $name --time 1000s >/dev/null &
done
./reload "$plan"
./reload "$plan" 5
