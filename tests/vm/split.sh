#!/bin/sh
# Plans that `tierce split` wrote, one after the other in one boot, with real processes that have the tasks' jobs.
# Each algorithm's plan is there as ALGORITHM.toml, the tasks are in split.csv. See crates/tierce-cli/tests/kernel.rs.
#
#   split.sh TIME     how long each
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

for plan in *.toml; do
	run=${plan%.toml}
	begin "$run" "$plan" --trace "/out/$run.trace" || exit
	pids=
	while IFS=, read -r task work period; do
		tierce job --name "$task" --work "$work" --period "$period" --for "$1" --json >"/out/$run-$task.job" &
		pids="$pids $!"
	done <<-END
		$(grep '^t' split.csv)
	END
	# shellcheck disable=SC2086 # a list
	wait $pids
	finish INT
	for job in "/out/$run"-*.job; do
		say "$(basename "$job" .job)" "$(cat "$job")"
	done
	tierce measure --epoch 0ns "/out/$run.trace" >"/out/$run.table"
done
